//! Timestamps and protection against wrapped sequence numbers (RFC 7323 sections 3 and 5).

use units::narrow::{low_u32, precedes};
use units::{Duration, Instant, SeqNr};
use wire::Timestamps;

use crate::stats::Echo;

/// Octets of the option with its padding.
pub(super) const OPTION_LEN: u32 = 12;

/// One tick of our clock: a millisecond (RFC 7323 section 5.4 asks for 1 ms to 1 s).
const TICK_NANOS: u64 = 1_000_000;
/// By how much a time since a tick may be too small.
pub(super) const ECHO_ERROR: Duration = Duration::from_nanos(TICK_NANOS);

/// A timestamp older than this proves nothing (RFC 7323 section 5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 24 * 3600);

/// Both directions of the timestamps option.
#[derive(Debug)]
pub(super) struct TimestampState {
    /// Random start of our clock, which hides the uptime.
    offset: u32,
    /// TS.Recent and its time of arrival.
    recent: Option<(u32, Instant)>,
    /// The echo that came with it: a tick of our clock.
    echo: Option<u32>,
    /// Last.ACK.sent.
    last_ack_sent: SeqNr,
    /// The peer echoes something older than the data that it acknowledges.
    echoes_old: bool,
}

impl TimestampState {
    pub(super) fn new(offset: u32) -> Self {
        Self { offset, recent: None, echo: None, last_ack_sent: SeqNr(0), echoes_old: false }
    }

    /// Whether the peer's SYN had the option too.
    pub(super) fn is_agreed(&self) -> bool {
        self.recent.is_some()
    }

    /// Returns the option for a segment sent now.
    pub(super) fn stamp(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.ticks(now), echo: self.recent.map_or(0, |(value, _)| value) }
    }

    /// Returns our clock at `now`.
    pub(super) fn ticks(&self, now: Instant) -> u32 {
        low_u32(now.as_nanos() / TICK_NANOS).wrapping_add(self.offset)
    }

    /// Judges the echo of an ACK for data of which the first were sent once, at `sent_at`. A receiver echoes these or
    /// something later (section 4.3). If it does not, a network removes our timestamps, and the echo is left over from
    /// before.
    #[inline]
    pub(super) fn judge_echo(&mut self, timestamps: Timestamps, sent_at: Instant) {
        self.echoes_old = precedes(timestamps.echo, self.ticks(sent_at));
    }

    /// Returns the echo of an ACK, unless it tells nothing about the data acknowledged.
    #[inline]
    pub(super) fn echo_of(&self, timestamps: Timestamps) -> Option<u32> {
        (!self.echoes_old).then_some(timestamps.echo)
    }

    /// Returns the peer's latest echo.
    pub(super) fn latest_echo(&self) -> Option<Echo> {
        let (tick, (_, at)) = self.echo.zip(self.recent)?;
        Some(Echo { tick, took: self.since(tick, at)? })
    }

    /// Returns the time since a tick of our clock that was echoed, in whole ticks: up to [`ECHO_ERROR`] too small.
    /// `None` if the echo is implausible.
    pub(super) fn since(&self, tick: u32, now: Instant) -> Option<Duration> {
        /// A longer round-trip time means a false echo.
        const TICKS_MAX: u32 = 120_000;
        let ticks = self.ticks(now).wrapping_sub(tick);
        (ticks <= TICKS_MAX).then(|| Duration::from_nanos(u64::from(ticks.max(1)) * TICK_NANOS))
    }

    pub(super) fn on_ack_sent(&mut self, ack: SeqNr) {
        self.last_ack_sent = ack;
    }

    /// Takes the timestamp of a SYN.
    pub(super) fn start(&mut self, value: u32, now: Instant, irs: SeqNr) {
        self.recent = Some((value, now));
        self.last_ack_sent = irs + 1;
    }

    /// PAWS test R1 (section 5.3): whether the segment is an old duplicate.
    pub(super) fn is_old(&self, timestamps: Timestamps, now: Instant) -> bool {
        self.recent
            .is_some_and(|(recent, at)| precedes(timestamps.value, recent) && now.saturating_since(at) < PAWS_IDLE)
    }

    /// Whether the option was agreed on and this timestamp is not older than the last. PAWS then accepts it, however
    /// old the last is.
    #[inline]
    pub(super) fn is_up_to_date(&self, timestamps: Timestamps) -> bool {
        self.recent.is_some_and(|(recent, _)| !precedes(timestamps.value, recent))
    }

    /// R3 (section 4.3): stores the timestamp of the segment that the next ACK answers.
    pub(super) fn update(&mut self, timestamps: Timestamps, seq: SeqNr, now: Instant) {
        // What PAWS lets through after a long silence counts, although it looks older.
        if !self.is_old(timestamps, now) && seq.before_or_at(self.last_ack_sent) {
            self.recent = Some((timestamps.value, now));
            self.echo = Some(timestamps.echo);
        }
    }
}
