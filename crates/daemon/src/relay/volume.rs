//! How much of a data plan may be lent, and how much was: it survives the end of the program and of the power.

use std::io;
use std::path::PathBuf;

use jiff::civil::Date;
use linux::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::store::{file, remedy};

/// From so much of the volume on the relay is a backup, in percent.
const BACKUP_PERCENT: u64 = 80;
/// How much is taken down in advance, or 1 % of the volume if that is less: a program that is killed has then counted too much rather
/// than too little.
const STEP_BYTES: u64 = 4_000_000;
/// Days that are remembered, on which something was lent: more than the longest period has.
const DAYS_MAX: usize = 64;
/// Of the file.
const VERSION: u32 = 1;

/// How much, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Octets on the wire, both ways.
    pub bytes: u64,
    /// After what time it begins anew.
    pub period: Period,
}

/// After what time a volume begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// At midnight.
    Day,
    /// Once a month.
    Month {
        /// At the beginning of this day, from 1 to 31; in a month that has it not, at the beginning of its last one.
        reset_day: i8,
    },
}

impl Period {
    /// The first day of the period that `today` is in.
    fn start(self, today: Date) -> Date {
        let Self::Month { reset_day } = self else { return today };
        let in_month = |month: Date| {
            let first = month.first_of_month();
            first.with().day(reset_day.min(first.days_in_month())).build().unwrap_or(first)
        };
        let this = in_month(today);
        if this <= today { this } else { today.first_of_month().yesterday().map_or(this, in_month) }
    }

    /// The first day of the period after the one that `today` is in; none at the end of time.
    fn next_start(self, today: Date) -> Option<Date> {
        let since = self.start(today);
        // The next period begins 31 days later at most, and no day before is in it.
        let mut days = core::iter::successors(since.tomorrow().ok(), |day| day.tomorrow().ok());
        days.find(|day| self.start(*day) != since)
    }
}

/// What the file says.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    version: u32,
    /// The first day of the period.
    since: Date,
    /// Octets that have gone or may have gone since.
    bytes: u64,
    /// The same of all periods together, counted on whatever the date. A file from before this was told has none, nor have its periods.
    #[serde(default)]
    total: u64,
    /// Days that this device has been in; a file from before they were told has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    days: Vec<Day>,
    /// What such a file has instead: other periods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<Other>,
}

/// A day, and what had gone before it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Day {
    date: Date,
    /// Octets of all periods when it began: what lies above them has gone on this day or under a date that was set later.
    before: u64,
}

/// What was used of another period's volume.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Other {
    since: Date,
    bytes: u64,
    /// The sum of all periods when this one was left.
    #[serde(default)]
    total: u64,
}

impl Entry {
    /// Its days; those of a file that has none are the first ones of its periods.
    fn days(&self) -> Vec<Day> {
        if !self.days.is_empty() {
            return self.days.clone();
        }
        let day = |since: Date, bytes: u64, total: u64| Day { date: since, before: total.saturating_sub(bytes) };
        let others = self.others.iter().map(|other| day(other.since, other.bytes, other.total));
        others.chain([day(self.since, self.bytes, self.total.max(self.bytes))]).collect()
    }
}

/// What was used of a limit.
#[derive(Debug)]
pub struct Volume {
    limit: Limit,
    path: PathBuf,
    since: Date,
    bytes: u64,
    /// Octets of all periods.
    total: u64,
    /// The one of now comes last.
    days: Vec<Day>,
    /// As the file says.
    written: Entry,
}

impl Volume {
    /// What the file at `path` says was used of `limit`; nothing, if there is none.
    ///
    /// # Errors
    /// If the file cannot be read or written, or is broken.
    pub fn open(limit: Limit, path: PathBuf, today: Date) -> Result<Self> {
        let since = limit.period.start(today);
        let empty = Entry { version: VERSION, since, bytes: 0, total: 0, days: Vec::new(), others: Vec::new() };
        let cannot = |error: io::Error| Error::system(format!("read {}{}", path.display(), remedy(&error)))(error);
        let entry = match file::read(&path).map_err(cannot)? {
            Some(octets) => serde_json::from_slice::<Entry>(&octets)
                .ok()
                .filter(|entry| entry.version == VERSION)
                .ok_or_else(|| broken(&path))?,
            None => empty,
        };
        let (since, bytes, total, days) = (entry.since, entry.bytes, entry.total.max(entry.bytes), entry.days());
        let mut volume = Self { limit, path, since, bytes, total, days, written: entry };
        volume.roll(today);
        volume.write(0)?;
        Ok(volume)
    }

    /// Octets that have gone, and nothing is written down.
    pub const fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.total = self.total.saturating_add(bytes);
    }

    /// Octets that have gone.
    ///
    /// # Errors
    /// If that cannot be written down. It is tried again with the next ones, also with none.
    pub fn count(&mut self, bytes: u64) -> Result<()> {
        self.add(bytes);
        if self.total > self.written.total || self.written.days.last() != self.days.last() {
            self.write(STEP_BYTES.min(self.limit.bytes / 100))?;
        }
        Ok(())
    }

    /// It is `today`: perhaps the volume begins anew. What was used of it is what has gone since the first of its days that is known,
    /// whatever limits there were meanwhile: one of a month goes on where it was after a while with one of a day.
    pub fn roll(&mut self, today: Date) {
        let before = self.before(today);
        self.days.retain(|day| day.date != today);
        self.days.push(Day { date: today, before });
        self.days.drain(..self.days.len().saturating_sub(DAYS_MAX));
        self.since = self.limit.period.start(today);
        let within = self.days.iter().filter(|day| (self.since..=today).contains(&day.date));
        self.bytes = within.map(|day| self.total.saturating_sub(day.before)).max().unwrap_or(0);
    }

    /// What had gone before `today`.
    fn before(&self, today: Date) -> u64 {
        // A clock that was wrong for a while, on a device without a battery for it or until the network has told the time, must not give
        // the volume away twice, whichever way it was wrong: a day that it comes back to began when it did the first time, and has used
        // also what has gone since then under other dates. An earlier one that is new has used what the one has that it comes from.
        if let Some(known) = self.days.iter().find(|day| day.date == today) {
            return known.before;
        }
        let is_back = self.days.last().is_some_and(|last| today < last.date);
        if is_back { self.total.saturating_sub(self.bytes) } else { self.total }
    }

    /// Writes down what is true, without any advance.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn settle(&mut self) -> Result<()> {
        self.write(0)
    }

    /// Writes down what is true, as if `ahead_bytes` more had gone.
    fn write(&mut self, ahead_bytes: u64) -> Result<()> {
        let (bytes, total) = (self.bytes.saturating_add(ahead_bytes), self.total.saturating_add(ahead_bytes));
        let (since, days) = (self.since, self.days.clone());
        let entry = Entry { version: VERSION, since, bytes, total, days, others: Vec::new() };
        let text = serde_json::to_string(&entry).expect("it has no keys but names of fields") + "\n";
        atomic_file::write_private(&self.path, text.as_bytes()).map_err(|error| {
            let what = format!("write {}{}", self.path.display(), remedy(&error.source));
            Error::system(what)(error.source)
        })?;
        self.written = entry;
        Ok(())
    }

    /// How much, and for how long.
    pub const fn limit(&self) -> Limit {
        self.limit
    }

    /// When it begins anew.
    pub fn renews(&self) -> Option<Date> {
        self.limit.period.next_start(self.days.last().map_or(self.since, |day| day.date))
    }

    /// Octets that were used.
    pub const fn used_bytes(&self) -> u64 {
        self.bytes
    }

    /// Octets that are left.
    pub const fn left_bytes(&self) -> u64 {
        self.limit.bytes.saturating_sub(self.bytes)
    }

    /// Whether so much was used that others should carry if they can.
    pub const fn is_low(&self) -> bool {
        self.bytes >= self.limit.bytes / 100 * BACKUP_PERCENT
    }
}

fn broken(path: &std::path::Path) -> Error {
    Error::file(path)(format!(
        "it does not say how much volume was used: remove it (rm {}) to begin with none",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const MONTH: Period = Period::Month { reset_day: 31 };

    #[test]
    fn a_period_begins_on_its_day_or_on_the_last_one() {
        for (today, start) in [
            (date(2026, 1, 30), date(2025, 12, 31)),
            (date(2026, 1, 31), date(2026, 1, 31)),
            (date(2026, 2, 27), date(2026, 1, 31)),
            (date(2026, 2, 28), date(2026, 2, 28)),
            (date(2028, 2, 28), date(2028, 1, 31)),
            (date(2026, 3, 30), date(2026, 2, 28)),
            (date(2026, 4, 30), date(2026, 4, 30)),
        ] {
            assert_eq!(MONTH.start(today), start, "{today}");
        }
        assert_eq!(Period::Month { reset_day: 1 }.start(date(2026, 5, 9)), date(2026, 5, 1));
        assert_eq!(Period::Day.start(date(2026, 5, 9)), date(2026, 5, 9));
        for (today, next) in [
            (date(2026, 1, 30), date(2026, 1, 31)),
            (date(2026, 1, 31), date(2026, 2, 28)),
            (date(2026, 2, 28), date(2026, 3, 31)),
            (date(2026, 12, 31), date(2027, 1, 31)),
        ] {
            assert_eq!(MONTH.next_start(today), Some(next), "{today}");
        }
        assert_eq!(Period::Month { reset_day: 1 }.next_start(date(2026, 12, 9)), Some(date(2027, 1, 1)));
        assert_eq!(Period::Day.next_start(date(2026, 5, 31)), Some(date(2026, 6, 1)));
        assert_eq!(Period::Day.next_start(Date::MAX), None);
    }

    #[test]
    fn what_was_used_survives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume.json");
        let limit = Limit { bytes: 100_000_000, period: Period::Day };
        let today = date(2026, 5, 9);
        let mut volume = Volume::open(limit, path.clone(), today).unwrap();
        volume.count(79_999_999).unwrap();
        assert!(!volume.is_low());
        volume.count(1).unwrap();
        assert!(volume.is_low());
        // Killed: it has counted what it took down in advance.
        drop(volume);
        let mut volume = Volume::open(limit, path.clone(), today).unwrap();
        assert_eq!(volume.used_bytes(), 80_999_999);
        volume.count(19_000_000).unwrap();
        volume.settle().unwrap();
        let mut volume = Volume::open(limit, path.clone(), today).unwrap();
        assert_eq!(volume.left_bytes(), 1);
        volume.roll(today.yesterday().unwrap());
        assert_eq!(volume.left_bytes(), 1, "a clock that goes back gives nothing");
        volume.roll(today.tomorrow().unwrap());
        assert_eq!(volume.left_bytes(), limit.bytes);
        volume.count(5).unwrap();
        assert_eq!(Volume::open(limit, path, today.tomorrow().unwrap()).unwrap().used_bytes(), 1_000_005);
    }

    fn volume(folder: &tempfile::TempDir, today: Date) -> Volume {
        let limit = Limit { bytes: 5_000, period: Period::Month { reset_day: 1 } };
        Volume::open(limit, folder.path().join("volume.json"), today).unwrap()
    }

    #[test]
    fn a_device_that_does_not_know_the_time_at_first_gives_nothing_away() {
        let folder = tempfile::tempdir().unwrap();
        volume(&folder, date(2026, 5, 20)).count(4_000).unwrap();
        // It starts in 1970, or in the month before, and lends until it hears the time.
        for wrong in [date(1970, 1, 1), date(2026, 4, 30)] {
            let mut volume = volume(&folder, wrong);
            let used = volume.used_bytes();
            volume.count(100).unwrap();
            volume.roll(date(2026, 5, 20));
            volume.count(0).unwrap();
            assert_eq!(volume.used_bytes(), used + 100, "{wrong}");
        }
        let mut volume = volume(&folder, date(2026, 5, 31));
        assert!(volume.used_bytes() >= 4_200);
        volume.roll(date(2026, 6, 1));
        assert_eq!(volume.used_bytes(), 0);
    }

    #[test]
    fn a_wrong_date_at_each_start_counts_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        volume(&folder, date(2026, 5, 20)).count(4_000).unwrap();
        for start in 1..=5 {
            let mut volume = volume(&folder, date(1970, 1, 1));
            volume.count(100).unwrap();
            volume.roll(date(2026, 5, 20));
            volume.settle().unwrap();
            let least = 4_000 + start * 100;
            let used = volume.used_bytes();
            assert!((least..=least + 50).contains(&used), "{used} after {start}: 50 were taken down in advance once");
        }
        // The first start of the next month.
        let mut volume = volume(&folder, date(1970, 1, 1));
        volume.count(100).unwrap();
        volume.roll(date(2026, 6, 1));
        assert_eq!(volume.used_bytes(), 0);
    }

    #[test]
    fn a_period_that_was_looked_into_too_early_begins_without_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let mut volume = volume(&folder, date(2026, 5, 20));
        volume.count(4_000).unwrap();
        volume.roll(date(2026, 6, 1));
        volume.count(100).unwrap();
        volume.roll(date(2026, 5, 20));
        assert_eq!(volume.used_bytes(), 4_100);
        volume.count(10).unwrap();
        volume.roll(date(2026, 6, 1));
        assert_eq!(volume.used_bytes(), 110, "what has gone since may be its own");
    }

    #[test]
    fn a_month_goes_on_after_a_while_with_another_period() {
        let folder = tempfile::tempdir().unwrap();
        let start = |period: Period, day: i8| {
            let limit = Limit { bytes: 10_000, period };
            Volume::open(limit, folder.path().join("volume.json"), date(2026, 11, day)).unwrap()
        };
        let from = |reset_day: i8| Period::Month { reset_day };
        let lend = |mut volume: Volume, bytes: u64| {
            volume.count(bytes).unwrap();
            volume.settle().unwrap();
        };
        lend(start(from(1), 3), 5_000);
        // More days than anybody remembers by their periods alone.
        (17..=26).for_each(|day| lend(start(Period::Day, day), 100));
        let today = start(Period::Day, 27);
        assert_eq!(today.used_bytes(), 0);
        lend(today, 70);
        for (reset_day, used) in [(1, 6_070), (15, 1_070), (20, 770), (15, 1_070), (28, 6_070), (1, 6_070)] {
            assert_eq!(start(from(reset_day), 27).used_bytes(), used, "from the {reset_day}th on");
        }
        assert_eq!(start(Period::Day, 27).used_bytes(), 70);
    }

    #[test]
    fn a_file_with_periods_in_place_of_days_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"version":1,"since":"2026-11-27","bytes":0,"total":5281002,"others":[{"since":"2026-11-01","bytes":5281002,"total":5281002}]}"#;
        std::fs::write(folder.path().join("volume.json"), text).unwrap();
        assert_eq!(volume(&folder, date(2026, 11, 27)).used_bytes(), 5_281_002);
        let text = std::fs::read_to_string(folder.path().join("volume.json")).unwrap();
        assert!(!text.contains("others"), "{text}");
        assert_eq!(volume(&folder, date(2026, 12, 1)).used_bytes(), 0);
    }

    #[test]
    fn the_days_of_a_month_are_remembered_among_those_of_a_wrong_clock() {
        let folder = tempfile::tempdir().unwrap();
        let mut volume = volume(&folder, date(2026, 5, 1));
        for day in 1..=31 {
            volume.roll(date(1970, 1, day));
            volume.count(10).unwrap();
            volume.roll(date(2026, 5, day));
            volume.count(10).unwrap();
        }
        assert_eq!((volume.used_bytes(), volume.days.len()), (620, 62));
        for year in 1971..2026 {
            volume.roll(date(year, 1, 1));
        }
        assert_eq!(volume.days.len(), DAYS_MAX);
    }

    #[test]
    fn a_file_without_the_sum_of_all_periods_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"version":1,"since":"2026-05-01","bytes":7,"others":[{"since":"1970-01-01","bytes":5}]}"#;
        std::fs::write(folder.path().join("volume.json"), text).unwrap();
        let mut volume = volume(&folder, date(2026, 5, 9));
        volume.count(1).unwrap();
        assert_eq!(volume.used_bytes(), 8);
        volume.roll(date(1970, 1, 1));
        volume.count(1).unwrap();
        volume.roll(date(2026, 5, 9));
        assert_eq!(volume.used_bytes(), 9);
    }

    #[test]
    fn a_clock_that_was_ahead_for_a_while_gives_nothing_away() {
        let folder = tempfile::tempdir().unwrap();
        let mut volume = volume(&folder, date(2026, 5, 20));
        volume.count(4_000).unwrap();
        volume.roll(date(2031, 1, 1));
        assert_eq!(volume.used_bytes(), 0);
        volume.count(100).unwrap();
        volume.roll(date(2026, 5, 20));
        assert_eq!(volume.used_bytes(), 4_100);
        volume.roll(date(2026, 6, 1));
        assert_eq!(volume.used_bytes(), 0);
    }

    #[test]
    fn a_folder_in_its_place_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let limit = Limit { bytes: 1, period: Period::Day };
        let why = Volume::open(limit, folder.path().into(), date(2026, 5, 9)).unwrap_err().to_string();
        assert!(why.contains("a folder is in its place: move that away"), "{why}");
    }

    #[test]
    fn a_broken_file_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume.json");
        let limit = Limit { bytes: 1, period: Period::Day };
        Volume::open(limit, path.clone(), date(2026, 5, 9)).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        let cut = (0..whole.len() - 1).map(|len| &whole[..len]);
        let others: [&[u8]; 3] = [b"{}", br#"{"version":9,"since":"2026-05-09","bytes":1}"#, &[0xff, 0xfe]];
        for text in cut.map(str::as_bytes).chain(others) {
            std::fs::write(&path, text).unwrap();
            let why = Volume::open(limit, path.clone(), date(2026, 5, 9)).unwrap_err().to_string();
            assert!(why.contains("volume.json") && why.contains("rm "), "{why}");
        }
    }
}
