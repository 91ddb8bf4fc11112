//! How much of a data plan may be lent, and how much was used. The record survives the end of the program and power
//! failures.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::Date;
use linux::{Error, Result};
use serde::{Deserialize, Serialize};

use super::storer::Storer;
use crate::store::{file, remedy};

/// Used part of the volume from which the relay is a backup, percent.
const BACKUP_PERCENT: u64 = 80;
/// Advance that is stored as used, or 1 % of the volume if that is less: after a kill, the record shows too much rather
/// than too little. The next advance is stored once half of the present one is used, while the rest is lent.
const STEP_BYTES: u64 = 4_000_000;
/// Maximum number of remembered days: more than the longest period has.
const DAYS_MAX: usize = 64;
/// Format version of the file.
const VERSION: u32 = 1;

/// A limit on lent traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Octets on the wire, both ways.
    pub bytes: u64,
    /// When it renews.
    pub period: Period,
}

/// When a volume renews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Daily, at midnight.
    Day,
    /// Monthly.
    Month {
        /// The day on which it renews, from 1 to 31; in a shorter month, the last day.
        reset_day: i8,
    },
}

impl Period {
    /// Returns the first day of the period that contains `today`.
    fn start(self, today: Date) -> Date {
        let Self::Month { reset_day } = self else { return today };
        let in_month = |month: Date| {
            let first = month.first_of_month();
            first.with().day(reset_day.min(first.days_in_month())).build().unwrap_or(first)
        };
        let this = in_month(today);
        if this <= today { this } else { today.first_of_month().yesterday().map_or(this, in_month) }
    }

    /// Returns the first day of the next period, or `None` at the end of the calendar.
    fn next_start(self, today: Date) -> Option<Date> {
        let since = self.start(today);
        // The next period begins at most 31 days later, and no earlier day belongs to it.
        let mut days = core::iter::successors(since.tomorrow().ok(), |day| day.tomorrow().ok());
        days.find(|day| self.start(*day) != since)
    }
}

/// Content of the file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    version: u32,
    /// First day of the period.
    since: Date,
    /// Octets used since then, including the advance.
    bytes: u64,
    /// The same over all periods, regardless of dates. Older files have neither this nor that of their periods.
    #[serde(default)]
    total: u64,
    /// Days on which this device ran; older files have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    days: Vec<Day>,
    /// Other periods, which older files have instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<Other>,
}

/// A day, and the total before it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Day {
    date: Date,
    /// Total of all periods when the day began. The rest was used on this day or under a date that was set later.
    before: u64,
}

/// Volume used in another period.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Other {
    since: Date,
    bytes: u64,
    /// Total of all periods when this one was left.
    #[serde(default)]
    total: u64,
}

impl Entry {
    /// Returns the days. For a file without days, these are the first days of its periods.
    fn days(&self) -> Vec<Day> {
        if !self.days.is_empty() {
            return self.days.clone();
        }
        let day = |since: Date, bytes: u64, total: u64| Day { date: since, before: total.saturating_sub(bytes) };
        let others = self.others.iter().map(|other| day(other.since, other.bytes, other.total));
        others.chain([day(self.since, self.bytes, self.total.max(self.bytes))]).collect()
    }
}

/// The used part of a limit.
#[derive(Debug)]
pub struct Volume {
    limit: Limit,
    path: PathBuf,
    since: Date,
    bytes: u64,
    /// Octets of all periods.
    total: u64,
    /// Known days; the present one is last.
    days: Vec<Day>,
    /// Content of the file.
    written: Entry,
    storer: Storer<Entry>,
}

impl Volume {
    /// Opens the record of `limit` in the file at `path`. Without a file, nothing was used.
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
        let file = path.clone();
        let storer = Storer::start(move |entry| write(&file, entry))?;
        let mut volume = Self { limit, path, since, bytes, total, days, written: entry, storer };
        volume.roll(today);
        volume.write(0)?;
        Ok(volume)
    }

    /// Counts octets without storing them.
    pub const fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.total = self.total.saturating_add(bytes);
    }

    /// Counts octets, and has the record stored by another thread if necessary.
    ///
    /// # Errors
    /// If the record could not be stored, also after an earlier call. The next call tries again, also with zero octets.
    pub fn count(&mut self, bytes: u64) -> Result<()> {
        self.add(bytes);
        if let Some(outcome) = self.storer.outcome() {
            self.written = outcome?;
        }
        let is_low = self.total.saturating_add(self.advance_bytes() / 2) > self.written.total;
        if !self.storer.is_busy() && (is_low || self.written.days.last() != self.days.last()) {
            self.storer.store(self.entry(self.advance_bytes()));
        }
        Ok(())
    }

    /// Returns whether the file shows everything that was counted. If not, nothing may be lent: a power failure would
    /// forget it.
    pub const fn is_recorded(&self) -> bool {
        self.total <= self.written.total
    }

    /// Returns whether the record is being stored, and nobody knows yet whether that works.
    pub const fn is_being_stored(&self) -> bool {
        self.storer.is_busy()
    }

    /// Sets the date, which may begin a new period. The used volume is everything since the period's first known day,
    /// under whatever limits: a monthly limit continues where it was after a while with a daily one.
    pub fn roll(&mut self, today: Date) {
        let before = self.before(today);
        self.days.retain(|day| day.date != today);
        self.days.push(Day { date: today, before });
        self.days.drain(..self.days.len().saturating_sub(DAYS_MAX));
        self.since = self.limit.period.start(today);
        let within = self.days.iter().filter(|day| (self.since..=today).contains(&day.date));
        self.bytes = within.map(|day| self.total.saturating_sub(day.before)).max().unwrap_or(0);
    }

    /// Returns the total before `today`.
    fn before(&self, today: Date) -> u64 {
        // The clock may be wrong for a while, without a clock battery or before the network sets it. In neither
        // direction may that give the volume away twice. A known day began when it first did, and includes everything
        // used since, under any date. A new day before the last one inherits the use of the present period.
        if let Some(known) = self.days.iter().find(|day| day.date == today) {
            return known.before;
        }
        let is_back = self.days.last().is_some_and(|last| today < last.date);
        if is_back { self.total.saturating_sub(self.bytes) } else { self.total }
    }

    /// Stores the exact use, without an advance. Waits for the disk for `limit`, or twice that if the record is being
    /// stored already.
    ///
    /// # Errors
    /// If the file cannot be written, or the disk takes longer. The record then shows the use with an advance.
    pub fn settle(self, limit: Duration) -> Result<()> {
        let entry = self.entry(0);
        let Self { mut storer, path, .. } = self;
        // Whatever is being stored is older.
        let _ = storer.wait_for(limit);
        let stored = match storer.is_busy() {
            true => None,
            false => {
                storer.store(entry);
                storer.wait_for(limit)
            }
        };
        storer.leave();
        match stored {
            Some(outcome) => outcome.map(drop),
            None => {
                Err(Error::system(format!("write {}", path.display()))(io::Error::other("the disk does not answer")))
            }
        }
    }

    /// Stores the use plus `ahead_bytes`, and waits for that.
    fn write(&mut self, ahead_bytes: u64) -> Result<()> {
        // Whatever is being stored is older.
        let _ = self.storer.wait();
        let entry = self.entry(ahead_bytes);
        write(&self.path, &entry)?;
        self.written = entry;
        Ok(())
    }

    fn advance_bytes(&self) -> u64 {
        STEP_BYTES.min(self.limit.bytes / 100)
    }

    /// Returns the content of a file that shows the use plus `ahead_bytes`.
    fn entry(&self, ahead_bytes: u64) -> Entry {
        let (bytes, total) = (self.bytes.saturating_add(ahead_bytes), self.total.saturating_add(ahead_bytes));
        Entry { version: VERSION, since: self.since, bytes, total, days: self.days.clone(), others: Vec::new() }
    }

    /// Returns the limit.
    pub const fn limit(&self) -> Limit {
        self.limit
    }

    /// Returns the date on which the volume renews.
    pub fn renews(&self) -> Option<Date> {
        self.limit.period.next_start(self.days.last().map_or(self.since, |day| day.date))
    }

    /// Returns the used octets.
    pub const fn used_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the remaining octets.
    pub const fn left_bytes(&self) -> u64 {
        self.limit.bytes.saturating_sub(self.bytes)
    }

    /// Returns whether so much was used that other uplinks should carry if they can.
    pub const fn is_low(&self) -> bool {
        self.bytes >= self.limit.bytes / 100 * BACKUP_PERCENT
    }
}

fn write(path: &Path, entry: &Entry) -> Result<()> {
    let text = serde_json::to_string(entry).expect("all keys are field names") + "\n";
    atomic_file::write_private(path, text.as_bytes()).map_err(|error| {
        let what = format!("write {}{}", path.display(), remedy(&error.source));
        Error::system(what)(error.source)
    })
}

fn broken(path: &Path) -> Error {
    Error::file(path)(format!(
        "it does not say how much volume was used: remove it (rm {}) to start from zero",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const MONTH: Period = Period::Month { reset_day: 31 };
    /// Longer than any disk takes that works.
    const PATIENCE: Duration = Duration::from_secs(60);

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
        // Killed: the stored advance counts as used.
        drop(volume);
        let mut volume = Volume::open(limit, path.clone(), today).unwrap();
        assert_eq!(volume.used_bytes(), 80_999_999);
        volume.count(19_000_000).unwrap();
        volume.settle(PATIENCE).unwrap();
        let mut volume = Volume::open(limit, path.clone(), today).unwrap();
        assert_eq!(volume.left_bytes(), 1);
        volume.roll(today.yesterday().unwrap());
        assert_eq!(volume.left_bytes(), 1, "a clock that goes back gives nothing");
        volume.roll(today.tomorrow().unwrap());
        assert_eq!(volume.left_bytes(), limit.bytes);
        volume.count(5).unwrap();
        volume.wait();
        assert_eq!(Volume::open(limit, path, today.tomorrow().unwrap()).unwrap().used_bytes(), 1_000_005);
    }

    #[test]
    fn a_start_that_comes_to_nothing_costs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let used: u64 = (0..10).map(|_| volume(&folder, date(2026, 5, 9)).used_bytes()).sum();
        assert_eq!(used, 0);
    }

    impl Volume {
        /// Waits until what is being stored is stored.
        pub fn wait(&mut self) {
            if let Some(outcome) = self.storer.wait() {
                self.written = outcome.unwrap();
            }
        }

        /// Lets the disk hang until the value that is returned is dropped.
        pub fn hang(&mut self) -> std::sync::mpsc::Sender<()> {
            let (permit, permits) = std::sync::mpsc::channel();
            let wait = move |_: &Entry| {
                let _ = permits.recv();
                Ok(())
            };
            self.storer = Storer::start(wait).unwrap();
            permit
        }

        /// Waits for one that cannot be stored, and handles it like [`Self::count`].
        pub fn wait_in_vain(&mut self) -> Result<()> {
            self.storer.wait().expect("something is being stored").map(|_| ())
        }
    }

    #[test]
    fn the_end_does_not_wait_for_a_disk_that_hangs_and_the_record_shows_enough() {
        // The last record is stored in vain, or the one before.
        for used in [20, 40] {
            let folder = tempfile::tempdir().unwrap();
            let mut volume = volume(&folder, date(2026, 5, 9));
            volume.count(0).unwrap();
            volume.wait();
            let _permit = volume.hang();
            volume.count(used).unwrap();
            assert_eq!((volume.is_being_stored(), volume.is_recorded()), (used > 25, true));
            let why = volume.settle(Duration::from_millis(20)).unwrap_err().to_string();
            assert!(why.contains("volume.json") && why.contains("the disk does not answer"), "{why}");
            assert!(self::volume(&folder, date(2026, 5, 9)).used_bytes() >= used);
        }
    }

    #[test]
    fn what_is_lent_does_not_wait_for_the_disk_before_the_advance_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let mut volume = volume(&folder, date(2026, 5, 9));
        volume.count(0).unwrap();
        volume.wait();
        let (permit, permits) = std::sync::mpsc::channel::<()>();
        volume.storer = Storer::start(move |_| {
            permits.recv().unwrap();
            Ok(())
        })
        .unwrap();
        volume.count(25).unwrap();
        assert!(!volume.is_being_stored(), "half of the advance is left");
        for _ in 0..25 {
            volume.count(1).unwrap();
            assert!(volume.is_being_stored() && volume.is_recorded());
        }
        volume.count(1).unwrap();
        assert!(!volume.is_recorded());
        permit.send(()).unwrap();
        volume.wait();
        assert!(volume.is_recorded());
        volume.count(1).unwrap();
        assert!(volume.is_being_stored(), "the one after that");
        permit.send(()).unwrap();
    }

    fn volume(folder: &tempfile::TempDir, today: Date) -> Volume {
        let limit = Limit { bytes: 5_000, period: Period::Month { reset_day: 1 } };
        Volume::open(limit, folder.path().join("volume.json"), today).unwrap()
    }

    #[test]
    fn a_device_that_does_not_know_the_time_at_first_gives_nothing_away() {
        let folder = tempfile::tempdir().unwrap();
        volume(&folder, date(2026, 5, 20)).count(4_000).unwrap();
        // The device starts in 1970 or in the previous month, and lends until it learns the time.
        for wrong in [date(1970, 1, 1), date(2026, 4, 30)] {
            let mut volume = volume(&folder, wrong);
            let used = volume.used_bytes();
            volume.count(100).unwrap();
            volume.wait();
            volume.roll(date(2026, 5, 20));
            volume.count(0).unwrap();
            volume.wait();
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
            let used = volume.used_bytes();
            volume.settle(PATIENCE).unwrap();
            let least = 4_000 + start * 100;
            assert!((least..=least + 50).contains(&used), "{used} after {start}: 50 were taken down in advance once");
        }
        // The first start in the next month.
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
            volume.settle(PATIENCE).unwrap();
        };
        lend(start(from(1), 3), 5_000);
        // More days than the periods alone would keep.
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
        assert!(why.contains("a folder is in its place: move it away"), "{why}");
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
