//! Logs of what an engine decided, in the qlog format (draft-ietf-quic-qlog-main-schema), as JSON text sequences (RFC
//! 7464): one record a line, each after an octet 0x1e.
//!
//! Names and units follow qlog where it has the same thing (`recovery:metrics_updated`): milliseconds, octets, bit/s.
//! What only MPTCP has is named here. docs/qlog.md lists all of it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};
use transport::event::Event;
use transport::inspection::SubflowTimer;
use transport::observation::{
    CongestionCause, CongestionState, CutCause, Observation, Occurrence, PathMetrics, ReinjectionCause, Subject,
};
use units::{Duration, Instant};

/// RFC 7464 section 2.2: what every record begins with.
const RECORD_SEPARATOR: u8 = 0x1e;

/// Writes one log: the engine of one host.
pub struct Log<W: Write> {
    writer: W,
    /// Added to every time.
    offset: Duration,
}

#[derive(Serialize)]
struct Record<'a> {
    time: f64,
    name: &'a str,
    group_id: String,
    data: Map<String, Value>,
}

/// What a log says of itself in its first record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header<'a> {
    /// The host.
    pub host: &'a str,
    /// What ran, for example the name of a scenario.
    pub title: &'a str,
    /// Further descriptions, such as changed settings.
    pub comments: &'a [String],
    /// Time from 1970 to time zero, if time is that of a clock. Virtual time has no relation to that of a calendar.
    pub since_1970: Option<Duration>,
}

impl<W: Write> Log<W> {
    /// Begins a log.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn new(writer: W, header: Header<'_>) -> io::Result<Self> {
        let mut log = Self { writer, offset: header.since_1970.unwrap_or(Duration::ZERO) };
        log.write(&first_record(header))?;
        Ok(log)
    }

    /// Adds an observation.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn record(&mut self, observation: &Observation) -> io::Result<()> {
        let Some((name, mut data)) = event_of(observation) else { return Ok(()) };
        let time = milliseconds(observation.at.saturating_since(Instant::ZERO) + self.offset);
        let group_id = match observation.subject {
            Subject::Connection(connection) => connection.to_string(),
            Subject::Subflow(connection, subflow) => {
                data.insert("subflow".into(), subflow.0.into());
                connection.to_string()
            }
            Subject::Leg(splice, to) => {
                data.insert("leg".into(), json!(to));
                splice.to_string()
            }
        };
        self.write(&Record { time, name, group_id, data })
    }

    fn write(&mut self, record: &impl Serialize) -> io::Result<()> {
        self.writer.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut self.writer, record)?;
        self.writer.write_all(b"\n")
    }

    /// Returns the writer, for flushing.
    pub fn writer_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// Ends the log and returns the writer.
    pub fn finish(self) -> W {
        self.writer
    }
}

fn first_record(header: Header<'_>) -> Value {
    let Header { host, title, comments, since_1970 } = header;
    let reference = match since_1970 {
        None => json!({ "clock_type": "monotonic", "epoch": "unknown" }),
        Some(_) => json!({ "clock_type": "system", "epoch": "1970-01-01T00:00:00.000Z" }),
    };
    json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": title,
        "description": comments.join("; "),
        "trace": {
            "vantage_point": { "name": host, "type": "unknown" },
            "event_schemas": ["urn:anabranch:qlog:mptcp"],
            "common_fields": { "time_format": "relative_to_epoch", "reference_time": reference },
        },
    })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// Returns name and data of an event, if observers see events of its kind.
fn event_of(observation: &Observation) -> Option<(&'static str, Map<String, Value>)> {
    let (name, data) = match &observation.what {
        Occurrence::Notified(event) => notification(event)?,
        Occurrence::SubflowBegun { local, remote, by_peer, backup } => (
            "mptcp:subflow_begun",
            json!({ "local": local, "remote": remote, "by": if *by_peer { "peer" } else { "self" }, "backup": backup }),
        ),
        Occurrence::StateChanged { from, to } => {
            let is_data_level = matches!(observation.subject, Subject::Connection(_));
            let name = if is_data_level { "mptcp:state_updated" } else { "tcp:state_updated" };
            (name, json!({ "old": from.name(), "new": to.name() }))
        }
        Occurrence::CongestionStateChanged { from, to, cause } => (
            "recovery:congestion_state_updated",
            json!({ "old": state(*from), "new": state(*to), "trigger": congestion_cause(*cause) }),
        ),
        Occurrence::MetricsUpdated(metrics) => ("recovery:metrics_updated", metrics_data(metrics)),
        Occurrence::DataLost { bytes } => ("recovery:data_lost", json!({ "length": bytes })),
        Occurrence::TimerExpired(timer) => {
            ("recovery:timer_updated", json!({ "event_type": "expired", "timer_type": timer_name(*timer) }))
        }
        Occurrence::PathMtuChanged { bytes } => ("recovery:mtu_updated", json!({ "new": bytes })),
        Occurrence::DataReinjected { offset, bytes, instead_of, cause } => (
            "mptcp:data_reinjected",
            json!({
                "offset": offset, "length": bytes, "instead_of": instead_of, "trigger": reinjection_cause(*cause),
            }),
        ),
        Occurrence::DataTimedOut { in_a_row } => ("mptcp:data_timed_out", json!({ "in_a_row": in_a_row })),
        Occurrence::Suspended { for_bytes } => ("mptcp:subflow_suspended", json!({ "length": for_bytes })),
        Occurrence::WindowCut { cwnd_bytes, ssthresh_bytes, cause } => (
            "mptcp:window_cut",
            json!({ "congestion_window": cwnd_bytes, "ssthresh": ssthresh_bytes, "trigger": cut_cause(*cause) }),
        ),
        Occurrence::ControllerChanged { name } => ("mptcp:controller_changed", json!({ "new": name })),
    };
    match data {
        Value::Object(data) => Some((name, data)),
        _ => None,
    }
}

fn notification(event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::Connected { mptcp, .. } => ("mptcp:connected", json!({ "mptcp": mptcp })),
        Event::FullyEstablished(_) => ("mptcp:fully_established", json!({})),
        Event::PeerFinished(_) => ("mptcp:peer_finished", json!({})),
        Event::AllAcknowledged(_) => ("mptcp:all_acknowledged", json!({})),
        Event::FellBack(_) => ("mptcp:fell_back", json!({})),
        Event::SubflowEstablished { local, remote, .. } => {
            ("mptcp:subflow_established", json!({ "local": local, "remote": remote }))
        }
        Event::SubflowClosed { reason, .. } => ("mptcp:subflow_closed", json!({ "reason": reason.to_string() })),
        Event::PriorityChanged { backup, .. } => ("mptcp:priority_changed", json!({ "backup": backup })),
        Event::AddressAnnounced { address_id, address, .. } => {
            ("mptcp:address_announced", json!({ "address_id": address_id.0, "address": address }))
        }
        Event::AddressWithdrawn { address_id, .. } => {
            ("mptcp:address_withdrawn", json!({ "address_id": address_id.0 }))
        }
        Event::Closed { reason, .. } => ("mptcp:closed", json!({ "reason": reason.to_string() })),
        Event::Incoming(_) | Event::Readable(_) | Event::Writable(_) => return None,
    })
}

/// Fields that are not known are left out.
fn metrics_data(metrics: &PathMetrics) -> Value {
    let rtts = [
        ("smoothed_rtt", metrics.srtt),
        ("latest_rtt", metrics.latest_rtt),
        ("min_rtt", metrics.min_rtt),
        ("rtt_variance", Some(metrics.rttvar)),
        ("retransmission_timeout", Some(metrics.rto)),
    ];
    let known = rtts.into_iter().filter_map(|(name, time)| Some((name, milliseconds(time?).into())));
    let mut data: Map<String, Value> = known.map(|(name, time): (_, Value)| (name.to_owned(), time)).collect();
    data.insert("congestion_window".into(), metrics.cwnd_bytes.into());
    data.insert("bytes_in_flight".into(), metrics.in_flight_bytes.into());
    if metrics.ssthresh_bytes != u64::MAX {
        data.insert("ssthresh".into(), metrics.ssthresh_bytes.into());
    }
    if let Some(rate) = metrics.pacing_bytes_per_s {
        data.insert("pacing_rate".into(), rate.saturating_mul(8).into());
    }
    Value::Object(data)
}

fn state(state: CongestionState) -> &'static str {
    match state {
        CongestionState::SlowStart => "slow_start",
        CongestionState::Avoidance => "congestion_avoidance",
        CongestionState::Recovery => "recovery",
        CongestionState::Loss => "loss",
    }
}

fn congestion_cause(cause: CongestionCause) -> &'static str {
    match cause {
        CongestionCause::Loss => "loss",
        CongestionCause::EcnEcho => "ecn",
        CongestionCause::RetransmissionTimeout => "retransmission_timeout",
        CongestionCause::Repaired => "repaired",
        CongestionCause::Spurious => "spurious",
        CongestionCause::Threshold => "threshold",
    }
}

fn timer_name(timer: SubflowTimer) -> &'static str {
    match timer {
        SubflowTimer::Retransmit => "retransmission",
        SubflowTimer::Reorder => "reordering",
        SubflowTimer::TailProbe => "tail_loss_probe",
        SubflowTimer::Persist => "persist",
        SubflowTimer::Pace => "pacing",
    }
}

fn reinjection_cause(cause: ReinjectionCause) -> &'static str {
    match cause {
        ReinjectionCause::SubflowTimedOut => "subflow_timed_out",
        ReinjectionCause::SubflowEnded => "subflow_ended",
        ReinjectionCause::SubflowSilent => "subflow_silent",
        ReinjectionCause::SubflowWithdrawn => "subflow_withdrawn",
        ReinjectionCause::DataTimedOut => "data_timed_out",
        ReinjectionCause::SubflowIdle => "subflow_idle",
        ReinjectionCause::WindowBlocked => "window_blocked",
        ReinjectionCause::Probe => "probe",
    }
}

fn cut_cause(cause: CutCause) -> &'static str {
    match cause {
        CutCause::Penalty => "penalty",
        CutCause::Owner => "owner",
    }
}
