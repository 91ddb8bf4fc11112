//! What is told of a path, and how `struct told` of `bpf/layers.h` has it.

use std::time::Duration;

#[cfg(any(test, bpf_programs))]
use crate::layout::word;
use crate::{Error, Result};

/// One, in the unit of the kernel's rules.
const ONE_Q16: f64 = 65_536.0;

/// What is told holds a day at most: who tells of what changes tells again.
const HOLDS_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A path of a connection, as agents know it: by the connection's token and the identifier of the other end's address
/// (RFC 8684 section 3.2), which its subflows may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathId {
    /// Of the connection, at this end.
    pub token: u32,
    /// Of the other end's address.
    pub address_id: u8,
}

/// What the relay of a path tells of the flows that end there (docs/algorithms/bandwidth-sharing.md). The rules take numbers out of the
/// range that they believe for the nearest inside it, as the engine does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Competition {
    /// How far the subflow would exceed what it can have without harm (rho); above 1 there is competition. Up to 1000 is believed.
    pub ratio: f64,
    /// Segments that a competing flow gains per round trip (alpha'), 1/64 to 3; 1 is NewReno. For `gmcc-coop` only.
    pub increase: f64,
    /// What a loss leaves of the window of a competing flow (beta'), up to 7/8; 1/2 is NewReno. For `gmcc-coop` only.
    pub decrease: f64,
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

impl Competition {
    /// Flows of TCP, with which a subflow competes by so much.
    pub const fn with_tcp(ratio: f64) -> Self {
        Self { ratio, increase: 1.0, decrease: 0.5 }
    }

    /// What the map has of it, until `until_ns`.
    #[cfg(any(test, bpf_programs))]
    pub(crate) fn octets(&self, until_ns: u64) -> Vec<u8> {
        // A ratio of zero is none.
        let words = [q16(self.ratio).max(1), q16(self.increase), q16(self.decrease), until_ns];
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    /// What still holds of what the map has.
    #[cfg(any(test, bpf_programs))]
    pub(crate) fn parse(octets: &[u8], now_ns: u64) -> Option<Self> {
        let [ratio, increase, decrease] = [0, 8, 16].map(|at| word(octets, at) as f64 / ONE_Q16);
        (ratio > 0.0 && word(octets, 24) > now_ns).then_some(Self { ratio, increase, decrease })
    }

    /// Refuses what no relay could mean.
    pub(crate) fn check(&self) -> Result<()> {
        for (what, value) in [("rho", self.ratio), ("alpha'", self.increase), ("beta'", self.decrease)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::Absurd { what, value: value.to_string(), range: "a number above zero" });
            }
        }
        Ok(())
    }
}

/// Refuses a time that cannot be meant.
pub(crate) fn check_time(holds: Duration) -> Result<()> {
    if holds.is_zero() || holds > HOLDS_MAX {
        let value = format!("{} s", holds.as_secs_f64());
        return Err(Error::Absurd { what: "how long it holds", value, range: "above zero, and a day at most" });
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
fn q16(value: f64) -> u64 {
    (value * ONE_Q16).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_token_below_its_identifier() {
        let key = PathId { token: 0xfedc_ba98, address_id: 3 }.key();
        assert_eq!((key, PathId::token_of(&key)), (0x3_fedc_ba98_u64.to_ne_bytes(), 0xfedc_ba98));
    }

    #[test]
    fn what_is_told_is_read_back_until_it_holds_no_longer() {
        let told = Competition { ratio: 2.5, increase: 0.75, decrease: 0.625 };
        assert_eq!(Competition::parse(&told.octets(1000), 999), Some(told));
        assert_eq!(Competition::parse(&told.octets(1000), 1000), None);
        assert_eq!(word(&told.octets(0), 0), 163_840);
        assert_eq!(Competition::parse(&[0; 32], 0), None);
    }

    /// Not even the smallest ratio is none, and the largest is one.
    #[test]
    fn every_number_has_its_word() {
        let told = |ratio| word(&Competition::with_tcp(ratio).octets(0), 0);
        assert_eq!([1e-9, 1.0, 1e300].map(told), [1, 65_536, u64::MAX]);
    }

    #[test]
    fn what_nobody_could_mean_is_refused() {
        assert!(Competition::with_tcp(5.0).check().is_ok());
        for number in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            let message = Competition::with_tcp(number).check().unwrap_err().to_string();
            assert!(message.starts_with("rho"), "{message}");
            assert!(Competition { increase: number, ..Competition::with_tcp(5.0) }.check().is_err());
            assert!(Competition { decrease: number, ..Competition::with_tcp(5.0) }.check().is_err());
        }
        assert!(check_time(Duration::from_secs(6)).is_ok());
        assert!(check_time(Duration::ZERO).is_err());
        assert!(check_time(Duration::MAX).is_err());
    }
}
