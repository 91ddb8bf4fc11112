//! Observations: what an endpoint decides, and why, for whoever studies it.
//!
//! Statistics state how things are, events ask the owner to act, and captures show segments. Observations complete
//! them: each states a change inside the engine and its cause. An observer cannot influence the endpoint. Without one,
//! an observation costs a comparison with zero. See docs/decisions/0057.

use core::fmt;
use core::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use units::{Duration, Instant};

pub use crate::state::State;

use crate::event::Event;
use crate::inspection::SubflowTimer;
use crate::relay::{Side, SpliceId};
use crate::{ConnectionId, SubflowId};

/// Receives the observations of an endpoint, in the order in which they are made.
pub trait Observer: Send {
    /// Takes an observation. It is called in the middle of the endpoint's work, so it should be quick.
    fn observe(&mut self, observation: &Observation);
}

/// An observer that several endpoints or threads share.
#[derive(Clone)]
pub struct SharedObserver(Arc<Mutex<dyn Observer>>);

impl SharedObserver {
    /// Shares `observer`.
    pub fn new(observer: impl Observer + 'static) -> Self {
        Self(Arc::new(Mutex::new(observer)))
    }
}

impl Observer for SharedObserver {
    fn observe(&mut self, observation: &Observation) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).observe(observation);
    }
}

impl fmt::Debug for SharedObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedObserver")
    }
}

/// Something that happened inside an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// When.
    pub at: Instant,
    /// To what.
    pub subject: Subject,
    /// What happened.
    pub what: Occurrence,
}

/// What an observation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A connection, at its data level.
    Connection(ConnectionId),
    /// A subflow of a connection.
    Subflow(ConnectionId, SubflowId),
    /// A leg of a spliced subflow at a relay, towards this side.
    Leg(SpliceId, Side),
}

impl Subject {
    /// Returns the subflow, if it is one.
    pub const fn subflow(self) -> Option<SubflowId> {
        match self {
            Self::Subflow(_, id) => Some(id),
            Self::Connection(_) | Self::Leg(..) => None,
        }
    }

    const fn of(connection: ConnectionId, subflow: Option<SubflowId>) -> Self {
        match subflow {
            Some(id) => Self::Subflow(connection, id),
            None => Self::Connection(connection),
        }
    }
}

/// What happened. Octet offsets count from the first octet of the data stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Occurrence {
    /// The owner was notified: every event except [`Event::Incoming`], [`Event::Readable`] and [`Event::Writable`],
    /// which only invite the owner to act.
    Notified(Event),
    /// A subflow or a leg was begun with a SYN.
    SubflowBegun {
        /// This side's address.
        local: SocketAddr,
        /// The peer's address.
        remote: SocketAddr,
        /// Whether the peer sent the first SYN.
        by_peer: bool,
        /// Whether either side wants it as backup.
        backup: bool,
    },
    /// The TCP state changed (RFC 9293 section 3.3.2), or that of the data level (RFC 8684 section 3.3.3). The first
    /// state of a subflow is SYN-SENT or, if the peer began it, SYN-RECEIVED.
    StateChanged {
        /// State before.
        from: State,
        /// State after.
        to: State,
    },
    /// The state of congestion control changed. The first state is slow start.
    CongestionStateChanged {
        /// State before.
        from: CongestionState,
        /// State after; may be the same, for example if a time-out follows another.
        to: CongestionState,
        /// Why.
        cause: CongestionCause,
    },
    /// Windows and round-trip times, once a round trip and after every change of the congestion state.
    MetricsUpdated(PathMetrics),
    /// An ACK, or RACK's timer, shows that data in flight are lost (RFC 8985, RFC 6675, RFC 6582). A retransmission
    /// time-out deems everything lost without this.
    DataLost {
        /// Octets of payload.
        bytes: u64,
    },
    /// A timer of loss recovery or flow control fired.
    TimerExpired(SubflowTimer),
    /// The largest packet size changed.
    PathMtuChanged {
        /// Octets of the largest IP packet now.
        bytes: u16,
    },
    /// Data were handed to a subflow again at the data level.
    DataReinjected {
        /// First octet.
        offset: u64,
        /// Octets.
        bytes: u64,
        /// The subflow that failed to deliver them, if one is to blame.
        instead_of: Option<SubflowId>,
        /// Why.
        cause: ReinjectionCause,
    },
    /// Nothing was acknowledged at the data level for too long (RFC 8684 section 3.3.6).
    DataTimedOut {
        /// Time-outs in a row, including this one.
        in_a_row: u32,
    },
    /// The subflow acknowledged octets that the peer's data level lacks: it gets no data while others can carry them.
    Suspended {
        /// Octets of the data stream for which this holds.
        for_bytes: u64,
    },
    /// The scheduler or the owner lowered the congestion window.
    WindowCut {
        /// Congestion window after, octets.
        cwnd_bytes: u64,
        /// Slow start threshold after, octets.
        ssthresh_bytes: u64,
        /// Why.
        cause: CutCause,
    },
    /// The owner replaced the congestion controller.
    ControllerChanged {
        /// Name of the new one.
        name: &'static str,
    },
}

/// State of a path's congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionState {
    /// The window is below the threshold.
    SlowStart,
    /// The window has reached the threshold: the controller decides how it grows.
    Avoidance,
    /// Losses are repaired, or an ECN echo is answered (RFC 6937).
    Recovery,
    /// Slow start after a retransmission time-out, until the data outstanding then are acknowledged.
    Loss,
}

/// Why the state of congestion control changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionCause {
    /// Data were lost.
    Loss,
    /// The peer echoed a congestion mark (RFC 3168).
    EcnEcho,
    /// The retransmission timer expired (RFC 6298).
    RetransmissionTimeout,
    /// Everything outstanding when the repair began is acknowledged.
    Repaired,
    /// Nothing had been lost (RFC 3522): the reduction is undone, unless a mark is echoed too (RFC 4015). A time-out
    /// during a recovery leads back to that recovery.
    Spurious,
    /// Window or threshold moved past the other.
    Threshold,
}

/// Windows and round-trip times of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMetrics {
    /// Congestion window, octets.
    pub cwnd_bytes: u64,
    /// Slow start threshold, octets; `u64::MAX` before the first reduction.
    pub ssthresh_bytes: u64,
    /// Octets in flight.
    pub in_flight_bytes: u64,
    /// Latest round-trip time sample.
    pub latest_rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time of about the last five minutes.
    pub min_rtt: Option<Duration>,
    /// Variation of the round-trip time (RFC 6298).
    pub rttvar: Duration,
    /// Retransmission time-out.
    pub rto: Duration,
    /// Pacing rate, octets/s, if paced.
    pub pacing_bytes_per_s: Option<u64>,
}

/// Why data are sent again at the data level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReinjectionCause {
    /// The subflow that carried them timed out.
    SubflowTimedOut,
    /// The subflow that carried them has ended.
    SubflowEnded,
    /// Another subflow came to life, and the one that carried them shows no life.
    SubflowSilent,
    /// The subflow that carried them gets no more data: they were still waiting there.
    SubflowWithdrawn,
    /// The data-level time-out.
    DataTimedOut,
    /// They are missing at the head of the stream while a subflow is idle.
    SubflowIdle,
    /// They hold the peer's window shut (NSDI 2012 section 4.2).
    WindowBlocked,
    /// They measure a path that the receiver does not want to use now (MPTCP-rec).
    Probe,
}

/// Who lowered a window, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutCause {
    /// The scheduler penalised the subflow for holding the peer's window shut (NSDI 2012 section 4.2).
    Penalty,
    /// The owner of the connection asked for it.
    Owner,
}

/// The observer of an endpoint, and the time of what it is told.
pub(crate) struct Observed {
    now: Instant,
    observer: Box<dyn Observer>,
}

/// The way to the observer of an endpoint, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Observers(Option<Arc<Mutex<Observed>>>);

impl Observers {
    /// Sets the observer. The ways of connections and legs to the former one lead to this one from now on; the former
    /// is dropped, because its owner may not keep what it uses any longer.
    pub(crate) fn set(&mut self, observer: Box<dyn Observer>, now: Instant) {
        let observed = Observed { now, observer };
        match &self.0 {
            Some(shared) => *lock(shared) = observed,
            None => self.0 = Some(Arc::new(Mutex::new(observed))),
        }
    }

    /// Sets the time of what follows.
    #[inline]
    pub(crate) fn advance(&self, now: Instant) {
        if let Some(observed) = &self.0 {
            set_time(observed, now);
        }
    }

    /// Returns the watch on a connection or a leg.
    pub(crate) fn watch(&self, subject: Subject) -> Watch {
        let watching = |observed: &Arc<Mutex<Observed>>| {
            let (observed, congestion) = (observed.clone(), CongestionState::SlowStart);
            Box::new(Watching { observed, subject, congestion })
        };
        Watch(self.0.as_ref().map(watching))
    }

    /// Tells the observer that the owner is notified.
    #[inline]
    pub(crate) fn notify(&self, event: &Event) {
        if let Some(observed) = &self.0 {
            notify(observed, event);
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.0.is_some()).finish()
    }
}

#[cold]
#[inline(never)]
fn set_time(observed: &Mutex<Observed>, now: Instant) {
    lock(observed).now = now;
}

#[cold]
#[inline(never)]
fn notify(observed: &Mutex<Observed>, event: &Event) {
    if let Some((connection, subflow)) = event.subject() {
        let mut observed = lock(observed);
        let (at, what) = (observed.now, Occurrence::Notified(event.clone()));
        observed.observer.observe(&Observation { at, subject: Subject::of(connection, subflow), what });
    }
}

/// A panic of the observer ends its own run; what it saw before is still whole.
fn lock(observed: &Mutex<Observed>) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the observer of the endpoint, if there is one, about one connection or subflow.
#[derive(Clone, Default)]
pub(crate) struct Watch(Option<Box<Watching>>);

#[derive(Clone)]
struct Watching {
    observed: Arc<Mutex<Observed>>,
    subject: Subject,
    /// The state of congestion control that the observer knows.
    congestion: CongestionState,
}

impl Watch {
    /// Returns the watch on a subflow of the connection.
    pub(crate) fn of_subflow(&self, id: SubflowId) -> Self {
        let mut watch = self.clone();
        if let Some(watching) = &mut watch.0 {
            watching.subject = watching.subject_of(id);
        }
        watch
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Tells the observer what happened.
    #[inline]
    pub(crate) fn tell(&self, what: impl FnOnce() -> Occurrence) {
        if let Some(watching) = &self.0 {
            watching.tell_that(watching.subject, what);
        }
    }

    /// Tells the observer what happened to a subflow of the connection.
    #[inline]
    pub(crate) fn tell_of(&self, subflow: SubflowId, what: impl FnOnce() -> Occurrence) {
        if let Some(watching) = &self.0 {
            watching.tell_that(watching.subject_of(subflow), what);
        }
    }

    /// Tells the observer that the state changed, if it did.
    #[inline]
    pub(crate) fn tell_state(&self, from: State, to: State) {
        if from != to {
            self.tell(|| Occurrence::StateChanged { from, to });
        }
    }

    /// Tells the observer the state of congestion control. Without a cause it is told only if it changed.
    pub(crate) fn tell_congestion(&mut self, to: CongestionState, cause: Option<CongestionCause>, now: PathMetrics) {
        let Some(watching) = &mut self.0 else { return };
        let from = core::mem::replace(&mut watching.congestion, to);
        if cause.is_some() || from != to {
            let cause = cause.unwrap_or(CongestionCause::Threshold);
            watching.tell(watching.subject, Occurrence::CongestionStateChanged { from, to, cause });
        }
        watching.tell(watching.subject, Occurrence::MetricsUpdated(now));
    }
}

impl Watching {
    /// Keeps the making of observations out of the code that hardly ever makes one.
    #[cold]
    #[inline(never)]
    fn tell_that(&self, subject: Subject, what: impl FnOnce() -> Occurrence) {
        self.tell(subject, what());
    }

    fn tell(&self, subject: Subject, what: Occurrence) {
        let mut observed = lock(&self.observed);
        let at = observed.now;
        observed.observer.observe(&Observation { at, subject, what });
    }

    /// Returns a subflow of the connection; a leg has none.
    fn subject_of(&self, subflow: SubflowId) -> Subject {
        match self.subject {
            Subject::Connection(connection) | Subject::Subflow(connection, _) => Subject::Subflow(connection, subflow),
            leg @ Subject::Leg(..) => leg,
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.is_on()).finish()
    }
}

impl Event {
    /// Returns what an event that observers see is about.
    fn subject(&self) -> Option<(ConnectionId, Option<SubflowId>)> {
        match *self {
            Self::Incoming(_) | Self::Readable(_) | Self::Writable(_) => None,
            Self::Connected { connection, .. }
            | Self::AddressAnnounced { connection, .. }
            | Self::AddressWithdrawn { connection, .. }
            | Self::Closed { connection, .. }
            | Self::FullyEstablished(connection)
            | Self::PeerFinished(connection)
            | Self::AllAcknowledged(connection)
            | Self::FellBack(connection) => Some((connection, None)),
            Self::SubflowEstablished { connection, subflow, .. }
            | Self::SubflowClosed { connection, subflow, .. }
            | Self::PriorityChanged { connection, subflow, .. } => Some((connection, Some(subflow))),
        }
    }
}
