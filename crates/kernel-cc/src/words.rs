//! Reports and settings as words for the kernel's programs: `struct told` in `bpf/layers.h` and `struct
//! cc_acc_settings` in `bpf/rules/acc.h`.

use std::time::Duration;

use cooperation::adaptive_congestion::{Beyond, Settings};
use transport::congestion::Competition;

use crate::layout::word;
use crate::{Adapting, PathId, Told};

/// The number one, in the unit of the kernel's rules.
const ONE_Q16: f64 = 65_536.0;

impl PathId {
    /// Returns the key in the map.
    pub(crate) fn key(self) -> [u8; 8] {
        (u64::from(self.token) | u64::from(self.address_id) << 32).to_ne_bytes()
    }

    /// Returns the token in a key of the map.
    pub(crate) fn token_of(key: &[u8]) -> u32 {
        u32::try_from(word(key, 0) & u64::from(u32::MAX)).unwrap_or(0)
    }
}

impl Told {
    /// Returns whether the report is empty.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the value in the map, valid until `until_ns`.
    pub(crate) fn octets(&self, until_ns: u64) -> Vec<u8> {
        // A ratio of zero means that there is no competition.
        let competition = self.competition.map(|told| [q16(told.ratio).max(1), q16(told.increase), q16(told.decrease)]);
        let way = self.way.map_or(0, nanos);
        octets(competition.unwrap_or_default().into_iter().chain([way, until_ns]))
    }

    /// Parses a value of the map, as far as it is still valid.
    pub(crate) fn parse(octets: &[u8], now_ns: u64) -> Self {
        if word(octets, 32) <= now_ns {
            return Self::default();
        }
        let [ratio, increase, decrease] = [0, 8, 16].map(|at| decimal(word(octets, at)));
        let competition = (ratio > 0.0).then_some(Competition { ratio, increase, decrease });
        Self { competition, way: Some(word(octets, 24)).filter(|way| *way > 0).map(Duration::from_nanos) }
    }
}

impl Adapting {
    /// Value in the map when it is off.
    #[cfg(bpf_programs)]
    pub(crate) const OFF: [u8; 56] = [0; 56];

    /// Returns the value in the map, of settings that come into force at `since_ns`.
    pub(crate) fn octets(&self, since_ns: u64) -> Vec<u8> {
        let Settings { eta_min, eta_max, beyond, cuts_max, age_rtts, .. } = self.acc;
        let period = nanos(self.period);
        octets([period, q16(eta_min), q16(eta_max), beyond_word(beyond), cuts_max.into(), age_rtts, since_ns])
    }

    /// Whether a value of the map holds these settings, whenever they came into force. Both are rounded alike.
    #[cfg(bpf_programs)]
    pub(crate) fn is_written_in(&self, value: &[u8]) -> bool {
        let settings = |octets: &[u8]| octets.get(..48).map(<[u8]>::to_vec);
        settings(value) == settings(&self.octets(0))
    }

    /// Parses a value of the map; `None` when it is off.
    pub(crate) fn parse(octets: &[u8]) -> Option<Self> {
        let period = Some(word(octets, 0)).filter(|period| *period > 0).map(Duration::from_nanos)?;
        let beyond = [Beyond::Ignore, Beyond::Cap, Beyond::Spread];
        let acc = Settings {
            eta_min: decimal(word(octets, 8)),
            eta_max: decimal(word(octets, 16)),
            beyond: beyond.into_iter().find(|known| beyond_word(*known) == word(octets, 24))?,
            cuts_max: u32::try_from(word(octets, 32)).unwrap_or(u32::MAX),
            age_rtts: word(octets, 40),
            ..Settings::default()
        };
        Some(Self { acc, period })
    }
}

/// Returns the number in `enum cc_beyond`.
fn beyond_word(beyond: Beyond) -> u64 {
    match beyond {
        Beyond::Ignore => 0,
        Beyond::Cap => 1,
        Beyond::Spread => 2,
    }
}

fn octets(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_ne_bytes).collect()
}

/// Converts to units of 2^-16; a number beyond the largest becomes the largest, which is outside any trusted range.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that does not fit gives the nearest integer that does"
)]
fn q16(value: f64) -> u64 {
    (value * ONE_Q16).round() as u64
}

fn decimal(q16: u64) -> f64 {
    q16 as f64 / ONE_Q16
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_token_below_its_identifier() {
        let key = PathId { token: 0xfedc_ba98, address_id: 3 }.key();
        assert_eq!((key, PathId::token_of(&key)), (0x3_fedc_ba98_u64.to_ne_bytes(), 0xfedc_ba98));
    }

    /// Ratios are rounded in the map.
    #[cfg(bpf_programs)]
    #[test]
    fn settings_are_known_again_whenever_they_came_into_force() {
        let acc = Settings { eta_min: 1.1, ..Settings::default() };
        let adapting = Adapting { acc, period: Duration::from_secs(2) };
        assert!(adapting.is_written_in(&adapting.octets(77)));
        assert!(!adapting.is_written_in(&Adapting { period: Duration::from_secs(3), acc }.octets(77)));
        assert!(!adapting.is_written_in(&Adapting::OFF));
    }

    #[test]
    fn what_is_told_is_read_back_until_it_holds_no_longer() {
        let competition = Some(Competition { ratio: 2.5, increase: 0.75, decrease: 0.625 });
        let way = Some(Duration::from_millis(20));
        for told in [Told { competition, way }, Told { competition, way: None }, Told { competition: None, way }] {
            assert_eq!(Told::parse(&told.octets(1000), 999), told);
            assert!(Told::parse(&told.octets(1000), 1000).is_nothing());
        }
    }

    /// Even the smallest ratio does not become zero, and too large ones become the largest word.
    #[test]
    fn every_number_has_its_word() {
        let word_of = |ratio| {
            let competition = Some(Competition { ratio, ..Competition::NONE });
            word(&Told { competition, way: None }.octets(0), 0)
        };
        assert_eq!([1e-9, 1.0, 2.5, 1e300].map(word_of), [1, 65_536, 163_840, u64::MAX]);
    }

    #[test]
    fn settings_are_read_back_as_they_were_written() {
        for beyond in [Beyond::Ignore, Beyond::Cap, Beyond::Spread] {
            let acc =
                Settings { eta_min: 1.125, eta_max: 2.5, beyond, cuts_max: 2, age_rtts: 5, ..Settings::default() };
            let adapting = Adapting { acc, period: Duration::from_millis(500) };
            assert_eq!(Adapting::parse(&adapting.octets(7)), Some(adapting));
        }
        assert_eq!(Adapting::parse(&[0; 56]), None);
    }
}
