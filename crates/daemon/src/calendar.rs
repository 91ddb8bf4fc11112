//! Conversion of days between the calendar and the relay's messages.

use cooperation::link::Renewal;
use jiff::Span;
use jiff::civil::{Date, date as day};

const FIRST: Date = day(1970, 1, 1);

/// Returns `date` as relays send it, or `None` before 1970.
pub fn renewal(date: Date) -> Option<Renewal> {
    let days = FIRST.until(date).ok()?.get_days();
    Some(Renewal { day: u32::try_from(days).ok()? })
}

/// Returns the day as text, such as `2026-12-01`, or `None` if the calendar has no such day.
pub fn date(renewal: Renewal) -> Option<String> {
    // The peer chooses the number. A span that is too long must not panic here.
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
