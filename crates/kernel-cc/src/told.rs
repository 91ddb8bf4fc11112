//! What is told of a path, and how `struct told` of `bpf/layers.h` has it.

use std::time::Duration;

use transport::congestion::Competition;

#[cfg(any(test, bpf_programs))]
use crate::layout::word;
use crate::{Error, Result};

/// One, in the unit of the kernel's rules.
const ONE_Q16: f64 = 65_536.0;

/// What is told holds a day at most: who tells of what changes tells again.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A path of a connection, as agents know it: by the connection's token and the identifier of the other end's address
/// (RFC 8684 section 3.2), which several subflows may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathId {
    /// Of the connection, at this end.
    pub token: u32,
    /// Of the other end's address.
    pub address_id: u8,
}

/// What the relay of a path tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// Of the flows that end there, for controllers that yield to them. The rules take numbers out of the range that they believe for the nearest
    /// inside it, as the engine does.
    pub competition: Option<Competition>,
    /// How long data take from it to the destination: a part of the path's delay that no round trip shows, for adaptive congestion control.
    pub way: Option<Duration>,
}

impl PathId {
    /// The key of the map.
    #[cfg(any(test, bpf_programs))]
    pub(crate) fn key(self) -> [u8; 8] {
        (u64::from(self.token) | u64::from(self.address_id) << 32).to_ne_bytes()
    }

    /// The token in a key of the map.
    #[cfg(any(test, bpf_programs))]
    pub(crate) fn token_of(key: &[u8]) -> u32 {
        u32::try_from(word(key, 0) & u64::from(u32::MAX)).unwrap_or(0)
    }
}

impl Told {
    /// Whether it is nothing.
    #[cfg(any(test, bpf_programs))]
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// What the map has of it, until `until_ns`.
    #[cfg(any(test, bpf_programs))]
    pub(crate) fn octets(&self, until_ns: u64) -> Vec<u8> {
        // A ratio of zero is none.
        let competition = self.competition.map(|told| [q16(told.ratio).max(1), q16(told.increase), q16(told.decrease)]);
        let way = self.way.map_or(0, nanos);
        let words = competition.unwrap_or_default().into_iter().chain([way, until_ns]);
        words.flat_map(u64::to_ne_bytes).collect()
    }

    /// What still holds of what the map has.
    #[cfg(any(test, bpf_programs))]
    pub(crate) fn parse(octets: &[u8], now_ns: u64) -> Self {
        if word(octets, 32) <= now_ns {
            return Self::default();
        }
        let [ratio, increase, decrease] = [0, 8, 16].map(|at| word(octets, at) as f64 / ONE_Q16);
        let competition = (ratio > 0.0).then_some(Competition { ratio, increase, decrease });
        Self { competition, way: Some(word(octets, 24)).filter(|way| *way > 0).map(Duration::from_nanos) }
    }

    /// Refuses what no relay could mean.
    pub(crate) fn check(&self) -> Result<()> {
        let told = self.competition.unwrap_or(Competition::NONE);
        for (what, value) in [("rho", told.ratio), ("alpha'", told.increase), ("beta'", told.decrease)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::Absurd { what, value: value.to_string(), range: "a number above zero" });
            }
        }
        self.way.map_or(Ok(()), |way| check_time("the way", way))
    }
}

/// Refuses a time that cannot be meant.
pub(crate) fn check_time(what: &'static str, time: Duration) -> Result<()> {
    if time.is_zero() || time > TIME_MAX {
        let value = format!("{} s", time.as_secs_f64());
        return Err(Error::Absurd { what, value, range: "above zero, and a day at most" });
    }
    Ok(())
}

/// In units of 2^-16; what is beyond all that is believed is as good as the largest.
#[cfg(any(test, bpf_programs))]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that does not fit gives the nearest integer that does"
)]
pub(crate) fn q16(value: f64) -> u64 {
    (value * ONE_Q16).round() as u64
}

#[cfg(any(test, bpf_programs))]
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(ratio: f64) -> Told {
        Told { competition: Some(Competition { ratio, ..Competition::NONE }), way: None }
    }

    #[test]
    fn a_path_is_its_token_below_its_identifier() {
        let key = PathId { token: 0xfedc_ba98, address_id: 3 }.key();
        assert_eq!((key, PathId::token_of(&key)), (0x3_fedc_ba98_u64.to_ne_bytes(), 0xfedc_ba98));
    }

    #[test]
    fn what_is_told_is_read_back_until_it_holds_no_longer() {
        let competition = Some(Competition { ratio: 2.5, increase: 0.75, decrease: 0.625 });
        let way = Some(Duration::from_millis(20));
        for told in [Told { competition, way }, Told { competition, way: None }, Told { competition: None, way }] {
            assert_eq!(Told::parse(&told.octets(1000), 999), told);
            assert!(Told::parse(&told.octets(1000), 1000).is_nothing());
        }
        assert_eq!(tcp(2.5).octets(0)[..8], 163_840_u64.to_ne_bytes());
    }

    /// Not even the smallest ratio is none, and the largest is one.
    #[test]
    fn every_number_has_its_word() {
        let word_of = |ratio| word(&tcp(ratio).octets(0), 0);
        assert_eq!([1e-9, 1.0, 1e300].map(word_of), [1, 65_536, u64::MAX]);
    }

    #[test]
    fn what_nobody_could_mean_is_refused() {
        assert!(tcp(5.0).check().is_ok());
        for number in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            let message = tcp(number).check().unwrap_err().to_string();
            assert!(message.starts_with("rho"), "{message}");
            for competition in [
                Competition { increase: number, ..Competition::NONE },
                Competition { decrease: number, ..Competition::NONE },
            ] {
                assert!(Told { competition: Some(competition), way: None }.check().is_err());
            }
        }
        assert!(Told { way: Some(Duration::MAX), ..Told::default() }.check().is_err());
        assert!(check_time("it", Duration::from_secs(6)).is_ok());
        assert!(check_time("it", Duration::ZERO).is_err());
    }
}
