//! Where within a recorded trace a run begins.

use core::fmt;
use core::str::FromStr;

use network::Trace;
use units::{Duration, Prng};

/// Denominator of random shares of a trace.
const SHARES: u64 = 1 << 32;

/// How far into a trace a run begins: `"30 s"`, or `"random"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// This far; beyond the trace's end it wraps around, as the trace repeats.
    At(Duration),
    /// Anywhere, as the seed says.
    Random,
}

impl Offset {
    /// Moves the beginning of `trace`. Traces with equal generators begin at the same share of their length.
    pub fn apply(self, trace: Trace, mut prng: Prng) -> Trace {
        let at = match self {
            Self::At(at) => at,
            Self::Random => trace.period().mul_div(prng.below(SHARES), SHARES),
        };
        trace.starting_at(at)
    }
}

impl FromStr for Offset {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "random" => Ok(Self::Random),
            time => time
                .parse()
                .map(Self::At)
                .map_err(|_| format!("{text:?} is not a place in a trace: write a time like \"30 s\", or \"random\"")),
        }
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at) => write!(f, "{at}"),
            Self::Random => f.write_str("random"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_a_time_or_random() {
        assert_eq!("30 s".parse(), Ok(Offset::At(Duration::from_secs(30))));
        for text in ["30 s", "random"] {
            assert_eq!(text.parse::<Offset>().unwrap().to_string(), text);
        }
        let refused = "half".parse::<Offset>().unwrap_err();
        assert!(refused.contains("\"half\"") && refused.contains("\"random\""), "{refused}");
    }

    #[test]
    fn both_directions_begin_at_the_same_share() {
        let trace = |period: &str| Trace::parse(period).unwrap();
        let moved = |period: &str, seed| Offset::Random.apply(trace(period), Prng::new(seed));
        assert_eq!(moved("1000", 7), moved("1000", 7));
        assert_ne!(moved("1000", 7), moved("1000", 8));
        let share = Prng::new(7).below(SHARES);
        let at = Duration::from_secs(2).mul_div(share, SHARES);
        assert_eq!(moved("2000", 7), trace("2000").starting_at(at));
        assert_eq!(Offset::At(at).apply(trace("2000"), Prng::new(1)), moved("2000", 7));
    }
}
