//! Settings of a Wi-Fi channel, and their checks.

use units::{Duration, Probability};

use super::{DataRate, StationId};
use crate::{Packet, Queue};

/// Settings of a channel. [`Default`] is IEEE 802.11a in ad hoc mode at 54 Mbit/s, as in thesis table 3.1.
#[derive(Clone, Debug, PartialEq)]
pub struct WlanConfig {
    /// Number of stations; each is a gate.
    pub stations: u16,
    /// Rate of data frames.
    pub data_rate: DataRate,
    /// Limit of each station's queue, including the frame in transmission.
    pub queue: Queue,
    /// Frames longer than this are preceded by RTS and CTS, octets.
    pub rts_threshold_bytes: u64,
    /// Smallest contention window: a station draws a backoff from 0 to this many slots.
    pub contention_window_min: u32,
    /// Largest contention window.
    pub contention_window_max: u32,
    /// Attempts at a frame without a CTS before the station drops it (dot11ShortRetryLimit, IEEE 802.11-2016 section
    /// 10.3.3).
    pub short_retry_limit: u32,
    /// Attempts at a frame after a CTS before the station drops it (dot11LongRetryLimit).
    pub long_retry_limit: u32,
    /// Fraction of frames that noise destroys, in addition to collisions.
    pub frame_error: Probability,
    /// Propagation delay.
    pub propagation: Duration,
    /// Pairs of stations that do not hear each other. By default all stations hear each other.
    pub hidden: Vec<(StationId, StationId)>,
    /// TCP segments from or to this port cross without delay and take no airtime. A comparison with and without it
    /// shows their cost.
    pub free_port: Option<u16>,
}

impl Default for WlanConfig {
    fn default() -> Self {
        Self {
            stations: 11,
            data_rate: DataRate::FASTEST,
            queue: Queue::packets(400),
            rts_threshold_bytes: 2200,
            contention_window_min: 15,
            contention_window_max: 1023,
            short_retry_limit: 7,
            long_retry_limit: 4,
            frame_error: Probability::ZERO,
            propagation: Duration::ZERO,
            hidden: Vec::new(),
            free_port: None,
        }
    }
}

/// A setting that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wlan: {field}: {problem}")]
pub struct WlanError {
    /// The invalid setting.
    pub field: &'static str,
    /// What is wrong with it, and which values are valid.
    pub problem: String,
}

impl WlanConfig {
    /// Returns whether a packet takes no airtime.
    pub(super) fn is_free(&self, packet: &Packet) -> bool {
        let segment = self.free_port.zip(packet.segment());
        segment.is_some_and(|(port, segment)| segment.src.port() == port || segment.dst.port() == port)
    }

    pub(super) fn validate(&self) -> Result<(), WlanError> {
        let refuse = |field, problem: String| Err(WlanError { field, problem });
        let (min, max) = (self.contention_window_min, self.contention_window_max);
        if self.stations < 2 {
            return refuse("stations", format!("{} is too few: set 2 or more", self.stations));
        }
        if min == 0 || min > max || max > 0xffff {
            return refuse(
                "contention_window_min",
                format!("there are no windows from {min} to {max}: 15 to 1023 are usual"),
            );
        }
        if self.short_retry_limit == 0 || self.long_retry_limit == 0 {
            return refuse("short_retry_limit", "no frame can be sent: 7 and 4 are usual".into());
        }
        if self.frame_error.value() >= 1.0 {
            return refuse("frame_error", "no frame gets through: it must be less than 1".into());
        }
        if self.propagation > Duration::from_micros(3) {
            let problem = format!("{} is longer than IEEE 802.11a's slot allows: set at most 3 us", self.propagation);
            return refuse("propagation", problem);
        }
        for (one, other) in &self.hidden {
            if one == other || one.0.max(other.0) >= self.stations {
                let (one, other, last) = (one.0, other.0, self.stations - 1);
                let problem =
                    format!("{one} and {other} are not a pair of stations: name two different ones from 0 to {last}");
                return refuse("hidden", problem);
            }
        }
        Ok(())
    }
}
