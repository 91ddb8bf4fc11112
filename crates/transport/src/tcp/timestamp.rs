//! Timestamps and protection against wrapped sequence numbers (RFC 7323 sections 3 and 5).

use units::narrow::{low_u32, precedes};
use units::{Duration, Instant, SeqNr};
use wire::Timestamps;

use crate::stats::Echo;

/// Octets of the option with its padding.
pub(super) const OPTION_LEN: u32 = 12;

/// One tick of our clock: a millisecond (RFC 7323 section 5.4 asks for 1 ms to 1 s).
const TICK_NANOS: u64 = 1_000_000;

/// A timestamp older than this proves nothing (RFC 7323 section 5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 24 * 3600);

/// Both directions of the timestamps option.
#[derive(Debug)]
pub(super) struct TimestampState {
    /// Random start of our clock, so that it does not tell the uptime.
    offset: u32,
    /// TS.Recent and when it was taken.
    recent: Option<(u32, Instant)>,
    /// What came with it: a tick of our clock.
    echo: Option<u32>,
    /// Last.ACK.sent.
    last_ack_sent: SeqNr,
}

impl TimestampState {
    pub(super) fn new(offset: u32) -> Self {
        Self { offset, recent: None, echo: None, last_ack_sent: SeqNr(0) }
    }

    /// The peer's SYN had the option too.
    pub(super) fn is_agreed(&self) -> bool {
        self.recent.is_some()
    }

    /// The option for a segment sent now.
    pub(super) fn stamp(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.ticks(now), echo: self.recent.map_or(0, |(value, _)| value) }
    }

    /// Our clock at `now`.
    pub(super) fn ticks(&self, now: Instant) -> u32 {
        low_u32(now.as_nanos() / TICK_NANOS).wrapping_add(self.offset)
    }

    /// Time since the peer's echo was sent, to the tick; `None` if the echo makes no sense.
    pub(super) fn since_echo(&self, timestamps: Timestamps, now: Instant) -> Option<Duration> {
        self.since(timestamps.echo, now)
    }

    /// The peer's latest echo.
    pub(super) fn latest_echo(&self) -> Option<Echo> {
        let (tick, (_, at)) = self.echo.zip(self.recent)?;
        Some(Echo { tick, took: self.since(tick, at)? })
    }

    fn since(&self, tick: u32, now: Instant) -> Option<Duration> {
        /// A longer round-trip time is a false echo.
        const TICKS_MAX: u32 = 120_000;
        let ticks = self.ticks(now).wrapping_sub(tick);
        (ticks <= TICKS_MAX).then(|| Duration::from_nanos(u64::from(ticks.max(1)) * TICK_NANOS))
    }

    pub(super) fn on_ack_sent(&mut self, ack: SeqNr) {
        self.last_ack_sent = ack;
    }

    /// The timestamp of a SYN.
    pub(super) fn start(&mut self, value: u32, now: Instant, irs: SeqNr) {
        self.recent = Some((value, now));
        self.last_ack_sent = irs + 1;
    }

    /// PAWS test R1 (section 5.3): whether the segment is an old duplicate.
    pub(super) fn is_old(&self, timestamps: Timestamps, now: Instant) -> bool {
        self.recent
            .is_some_and(|(recent, at)| precedes(timestamps.value, recent) && now.saturating_since(at) < PAWS_IDLE)
    }

    /// The option was agreed upon, and this one is not older than the last: PAWS has nothing to object, however old the last is.
    #[inline]
    pub(super) fn is_up_to_date(&self, timestamps: Timestamps) -> bool {
        self.recent.is_some_and(|(recent, _)| !precedes(timestamps.value, recent))
    }

    /// R3 (section 4.3): keeps the timestamp of the segment that the next ACK answers.
    pub(super) fn update(&mut self, timestamps: Timestamps, seq: SeqNr, now: Instant) {
        let newer = self.recent.is_none_or(|(recent, _)| !precedes(timestamps.value, recent));
        if newer && seq.before_or_at(self.last_ack_sent) {
            self.recent = Some((timestamps.value, now));
            self.echo = Some(timestamps.echo);
        }
    }
}
