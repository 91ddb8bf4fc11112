//! Days, as relays tell of them.

use cooperation::link::Renewal;
use jiff::Span;
use jiff::civil::{Date, date as day};

const FIRST: Date = day(1970, 1, 1);

/// A day as it is told; none before 1970.
pub fn renewal(date: Date) -> Option<Renewal> {
    let days = FIRST.until(date).ok()?.get_days();
    Some(Renewal { day: u32::try_from(days).ok()? })
}

/// For people: `2026-12-01`; none if there is no such day.
pub fn date(renewal: Renewal) -> Option<String> {
    // Whatever a peer says must not panic here, as a span that is too long would.
    let days = Span::new().try_days(i64::from(renewal.day)).ok()?;
    FIRST.checked_add(days).ok().map(|date| date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_that_was_told_is_that_day() {
        for date in [day(1970, 1, 1), day(2026, 12, 1), day(2028, 2, 29), Date::MAX] {
            assert_eq!(renewal(date).and_then(super::date), Some(date.to_string()));
        }
        assert_eq!(renewal(day(2026, 12, 1)), Some(Renewal { day: 20_788 }));
        assert_eq!(renewal(day(1969, 12, 31)), None);
        for odd in [i32::MAX as u32, u32::MAX] {
            assert_eq!(super::date(Renewal { day: odd }), None, "whatever a peer says");
        }
    }
}
