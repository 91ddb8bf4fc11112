//! Packet-delivery traces in the mahimahi format.
//!
//! Each line is an opportunity to deliver one packet of 1500 octets: a time in milliseconds since the start. Times
//! never decrease. A repeated line means several opportunities in that millisecond. The trace loops at its end; its
//! last line is its period. Lines that start with `#` are comments.

mod cellular;
mod cursor;

use core::fmt;
use std::sync::Arc;

use units::{Duration, Instant, Rate};

pub use cellular::CellularTrace;
pub(crate) use cursor::TraceCursor;

/// Octets that one opportunity delivers.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// The times at which packets can be delivered. Clones share the times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    times_ms: Arc<[u32]>,
    /// How far into the trace its user starts; less than its period.
    offset: Duration,
}

/// Why text, or a list of times, is not a valid trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line is not a number.
    #[error("line {line}: {text:?} is not a time; write one whole number of milliseconds per line")]
    NotATime {
        /// Line number, from 1.
        line: usize,
        /// The content of the line, cut to 40 characters.
        text: String,
    },
    /// A time is earlier than the one before it.
    #[error("line {line}: time falls from {before_ms} to {time_ms} ms; sort the lines")]
    Falling {
        /// Line number, from 1.
        line: usize,
        /// The time on the line before.
        before_ms: u32,
        /// The time on this line.
        time_ms: u32,
    },
    /// The trace has only blank lines and comments, or only times of zero.
    #[error("a trace needs a line with a time above zero: its last line is the period of its loop")]
    NoPeriod,
}

impl Trace {
    /// Parses the text form.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times_ms: Vec<u32> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = (index + 1, line.trim());
            if line.1.is_empty() || line.1.starts_with('#') {
                continue;
            }
            let time_ms = parse_time(line)?;
            check_rise(line.0, times_ms.last(), time_ms)?;
            times_ms.push(time_ms);
        }
        Self::checked(times_ms)
    }

    /// Creates a trace from times in milliseconds; errors count the times as lines.
    pub fn from_times_ms(times_ms: Vec<u32>) -> Result<Self, TraceError> {
        for (index, time_ms) in times_ms.iter().enumerate().skip(1) {
            check_rise(index + 1, times_ms.get(index - 1), *time_ms)?;
        }
        Self::checked(times_ms)
    }

    /// Creates a trace of constant rate that repeats every `period`, with at least one opportunity.
    pub fn constant(rate: Rate, period: Duration) -> Self {
        let period_ms = period.as_millis().clamp(1, u64::from(u32::MAX));
        let count = (rate.bytes_in(Duration::from_millis(period_ms)) / u64::from(OPPORTUNITY_BYTES)).max(1);
        Self::new((1..=count).map(|index| (index * period_ms / count) as u32).collect())
    }

    fn new(times_ms: Vec<u32>) -> Self {
        Self { times_ms: times_ms.into(), offset: Duration::ZERO }
    }

    /// The same trace, started `offset` after its beginning. It wraps around: an offset of a period is none.
    pub fn starting_at(self, offset: Duration) -> Self {
        Self { offset: Duration::from_nanos(offset.as_nanos() % self.period().as_nanos()), ..self }
    }

    fn checked(times_ms: Vec<u32>) -> Result<Self, TraceError> {
        match times_ms.last() {
            None | Some(0) => Err(TraceError::NoPeriod),
            Some(_) => Ok(Self::new(times_ms)),
        }
    }

    /// Returns the opportunities of one period, in milliseconds.
    pub fn times_ms(&self) -> &[u32] {
        &self.times_ms
    }

    /// Returns the time after which the trace repeats.
    pub fn period(&self) -> Duration {
        Duration::from_millis(u64::from(self.period_ms()))
    }

    fn period_ms(&self) -> u32 {
        self.times_ms.last().copied().unwrap_or(1)
    }

    /// Returns the mean rate: opportunities times 1500 octets over the period.
    pub fn mean_rate(&self) -> Rate {
        Rate::from_bytes_per(self.times_ms.len() as u64 * u64::from(OPPORTUNITY_BYTES), self.period())
    }

    /// Returns how many opportunities there are up to `at`, that instant included, from its start on.
    pub fn opportunities_until(&self, at: Instant) -> u64 {
        let from_ms = self.offset.as_nanos().div_ceil(1_000_000);
        let until_ms = (at + self.offset).as_millis();
        // Opportunities in [from, until].
        (self.opportunities_by(until_ms))
            .saturating_sub(from_ms.checked_sub(1).map_or(0, |ms| self.opportunities_by(ms)))
    }

    /// Opportunities at times of up to `time_ms` after the beginning of the first repetition.
    fn opportunities_by(&self, time_ms: u64) -> u64 {
        let (period_ms, each) = (u64::from(self.period_ms()), self.times_ms.len() as u64);
        let within_ms = time_ms % period_ms;
        let within = self.times_ms.partition_point(|opportunity_ms| u64::from(*opportunity_ms) <= within_ms) as u64;
        time_ms / period_ms * each + within
    }

    /// Returns the longest time without an opportunity.
    pub fn longest_gap(&self) -> Duration {
        let inner = self.times_ms.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        // The gap across the end of the loop lasts up to the first time.
        let gap_ms = inner.max(self.times_ms.first().copied().unwrap_or(0));
        Duration::from_millis(u64::from(gap_ms))
    }
}

/// Writes the text form that [`Trace::parse`] reads.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.times_ms.iter().try_for_each(|time_ms| writeln!(f, "{time_ms}"))
    }
}

fn parse_time((line, text): (usize, &str)) -> Result<u32, TraceError> {
    text.parse().map_err(|_| TraceError::NotATime { line, text: text.chars().take(40).collect() })
}

fn check_rise(line: usize, before_ms: Option<&u32>, time_ms: u32) -> Result<(), TraceError> {
    match before_ms {
        Some(&before_ms) if before_ms > time_ms => Err(TraceError::Falling { line, before_ms, time_ms }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_comments_gaps_and_repetitions() {
        let trace = Trace::parse("# a trace\n0\n3\n3\n\n5000\r\n").unwrap();
        assert_eq!(trace.times_ms(), [0, 3, 3, 5000]);
        assert_eq!(trace.longest_gap(), Duration::from_millis(4997));
        // 4 x 1500 octets x 8 bit in 5 s.
        assert_eq!(trace.mean_rate(), Rate::from_bps(9600));
        assert_eq!(Trace::parse(&trace.to_string()), Ok(trace));
    }

    #[test]
    fn names_the_line_at_fault() {
        let not_a_time = Trace::parse("1\n2x\n3").unwrap_err();
        assert_eq!(
            not_a_time.to_string(),
            "line 2: \"2x\" is not a time; write one whole number of milliseconds per line"
        );
        assert_eq!(Trace::parse("1\n\n5\n4").unwrap_err(), TraceError::Falling { line: 4, before_ms: 5, time_ms: 4 });
        assert_eq!(Trace::parse("-1").unwrap_err(), TraceError::NotATime { line: 1, text: "-1".into() });
        assert_eq!(Trace::parse("").unwrap_err(), TraceError::NoPeriod);
        assert_eq!(Trace::parse("0\n0\n").unwrap_err(), TraceError::NoPeriod);
        assert!(Trace::from_times_ms(vec![2, 1]).is_err());
    }

    #[test]
    fn a_trace_may_start_within_itself() {
        // Opportunities at 0, 3, 3 and 10 ms, then at 10, 13, 13 and 20 ms.
        let trace = Trace::parse("0\n3\n3\n10\n").unwrap();
        let until = |trace: &Trace, ms: &[u64]| -> Vec<u64> {
            ms.iter().map(|ms| trace.opportunities_until(Instant::from_millis(*ms))).collect()
        };
        assert_eq!(until(&trace, &[0, 2, 3, 9, 10, 13, 20, 1_000_000]), [1, 1, 3, 3, 5, 7, 9, 400_001]);
        let later = trace.clone().starting_at(Duration::from_millis(3));
        assert_eq!(until(&later, &[0, 6, 7, 10, 17]), [2, 2, 4, 6, 8]);
        assert_eq!(until(&trace.clone().starting_at(Duration::from_micros(3001)), &[0, 7, 10]), [0, 2, 4]);
        assert_eq!(trace.clone().starting_at(Duration::from_millis(23)), later);
        assert_eq!(trace.clone().starting_at(Duration::from_millis(20)), trace);
    }

    #[test]
    fn a_constant_trace_has_its_rate() {
        let trace = Trace::constant(Rate::from_mbps(12), Duration::from_secs(1));
        assert_eq!(trace.times_ms().len(), 1000);
        assert_eq!(trace.mean_rate(), Rate::from_mbps(12));
        assert_eq!(trace.longest_gap(), Duration::from_millis(1));
    }
}
