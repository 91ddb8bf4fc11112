//! The records of a sweep on disk: JSON Lines, manifest first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::build::this_build;
use super::content::{Key, contents};
use super::difference::{told_apart, told_apart_by_case};
use super::workers::missing;
use super::{Manifest, Plan, Record, numbers};

/// A file that grows by one line per run. After the program was killed, finished runs are still there on restart.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    records: Vec<Record>,
    /// What the runs of each case of its plan depend on.
    contents: BTreeMap<Key, String>,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("cannot use {}: {source}\n  help: choose another --out, a writable directory", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another program is writing to it.
    #[error("{} is being written by another sweep\n  help: wait for it, or choose another --out", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Its runs are of another scenario, or depend on something that has changed.
    #[error("{} holds runs of {theirs}, not of {ours}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What its runs belong to.
        theirs: String,
        /// What they should belong to.
        ours: String,
    },
    /// A line in its middle is not a record.
    #[error("{}:{line}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

impl Journal {
    /// Opens the journal of `plan` at `path`, or creates one there; with `restart`, discards its contents. It may hold
    /// runs of more or fewer variants, points and seeds than the plan.
    ///
    /// # Errors
    /// If it cannot be read or written, is being written by another program, is damaged, or has runs that would not come
    /// out the same today: of another scenario or version, or with other settings, or with other contents of files that
    /// the scenario names. A half-written last line is no damage: it is dropped.
    pub fn open(path: &Path, plan: &Plan, restart: bool) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: path.into(), source };
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory).map_err(|source| JournalError::Io { path: directory.into(), source })?;
        }
        let mut file = lock(path)?;
        if restart {
            file.set_len(0).map_err(io)?;
        }
        let mut octets = Vec::new();
        file.read_to_end(&mut octets).map_err(io)?;
        let whole = whole_lines(&octets);
        let mut journal = Self { file, path: path.into(), records: Vec::new(), contents: contents(plan) };
        let manifest = Manifest::new(plan);
        if !whole.is_empty() {
            let (theirs, records) = read_journal(path, whole)?;
            journal.records = records;
            journal.check([&theirs, &manifest], plan)?;
            if line(&theirs) != line(&manifest) {
                return journal.with_first_line(&manifest, whole);
            }
        } else if !octets.is_empty() && !is_begun(&octets) {
            return Err(damaged(path, 1, "this is not a journal of a sweep"));
        }
        journal.file.set_len(whole.len() as u64).map_err(io)?;
        journal.file.seek(SeekFrom::End(0)).map_err(io)?;
        if whole.is_empty() {
            journal.write(&manifest)?;
        }
        Ok(journal)
    }

    /// Puts the sweep that begins into the first line, in place of the former sweep whose lines are `whole`: what the
    /// variants of its runs set is read there, also if it does not finish.
    fn with_first_line(mut self, manifest: &Manifest, whole: &[u8]) -> Result<Self, JournalError> {
        let runs = whole.iter().position(|octet| *octet == b'\n').map_or(whole.len(), |newline| newline + 1);
        let io = |error: atomic_file::Error| JournalError::Io { path: self.path.clone(), source: error.source };
        atomic_file::write(&self.path, &[line(manifest).as_bytes(), &whole[runs..]].concat()).map_err(io)?;
        self.file = lock(&self.path)?;
        self.file.seek(SeekFrom::End(0)).map_err(|source| JournalError::Io { path: self.path.clone(), source })?;
        Ok(self)
    }

    /// Checks that the records stand beside new runs of the plan.
    fn check(&mut self, [theirs, ours]: [&Manifest; 2], plan: &Plan) -> Result<(), JournalError> {
        let path = self.path.clone();
        let refused = |[theirs, ours]: [String; 2]| Err(JournalError::Other { path, theirs, ours });
        if let Some(both) = told_apart([theirs, ours], &plan.scenario, self.beyond(plan) == 0) {
            return refused(both);
        }
        for record in &mut self.records {
            let Some(content) = self.contents.get(&(record.variant.clone(), record.point.clone())) else { continue };
            if record.content.is_empty() && theirs.content == ours.content {
                // It was written by a version that only stated this for all cases together.
                record.content.clone_from(content);
            }
            if record.content != *content {
                return refused(told_apart_by_case(theirs, ours));
            }
        }
        Ok(())
    }

    /// The runs finished so far.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Number of runs made by other or unknown builds of this program: developers of this program may not want to mix
    /// them.
    pub fn of_other_builds(&self) -> usize {
        self.records.iter().filter(|record| record.build != this_build()).count()
    }

    /// Counts runs of `plan` for which `are_void` holds as unfinished. Their new records will replace those in the file.
    /// Other runs are not repeated, so their records stay.
    pub(super) fn forget(&mut self, plan: &Plan, are_void: impl Fn(&Record) -> bool) {
        let (numbers, seeds) = (numbers(plan), plan.seeds.iter().copied().collect::<BTreeSet<_>>());
        let is_planned = |record: &Record| {
            seeds.contains(&record.seed) && numbers.contains_key(&(record.variant.as_str(), record.point.as_slice()))
        };
        self.records.retain(|record| !(is_planned(record) && are_void(record)));
    }

    /// Number of runs of variants or points that `plan` does not have: they are kept.
    pub fn beyond(&self, plan: &Plan) -> usize {
        let numbers = numbers(plan);
        let is_known = |record: &&Record| numbers.contains_key(&(record.variant.as_str(), record.point.as_slice()));
        self.records.len() - self.records.iter().filter(is_known).count()
    }

    /// The seeds of all runs of the cases of `plan`, in order.
    pub fn seeds(&self, plan: &Plan) -> Vec<u64> {
        let numbers = numbers(plan);
        let known = self
            .records
            .iter()
            .filter(|record| numbers.contains_key(&(record.variant.as_str(), record.point.as_slice())));
        known.map(|record| record.seed).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Adds a record; it is on disk when this returns.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, mut record: Record) -> Result<(), JournalError> {
        let content = self.contents.get(&(record.variant.clone(), record.point.clone()));
        record.content = content.cloned().unwrap_or_default();
        self.write(&record)?;
        self.records.push(record);
        Ok(())
    }

    /// Returns the records. If no run of `plan` is missing, it also writes each record once, in the order of the plan
    /// instead of arrival: the file of a finished sweep does not show how many runs were made in parallel.
    ///
    /// # Errors
    /// If the file cannot be written; its previous contents then remain.
    pub fn finish(self, plan: &Plan) -> Result<Vec<Record>, JournalError> {
        let complete = missing(plan, &self).is_empty();
        let Self { file, path, mut records, .. } = self;
        if complete {
            let numbers = numbers(plan);
            let number = |record: &Record| numbers.get(&(record.variant.as_str(), record.point.as_slice())).copied();
            records.sort_by_key(|record| (number(record), record.seed));
            let text = line(&Manifest::new(plan)) + &records.iter().map(line).collect::<String>();
            let io = |error: atomic_file::Error| JournalError::Io { path: path.clone(), source: error.source };
            atomic_file::write(&path, text.as_bytes()).map_err(io)?;
        }
        // No other sweep may add to it before this point.
        drop(file);
        Ok(records)
    }

    fn write(&mut self, of: &impl serde::Serialize) -> Result<(), JournalError> {
        let text = line(of);
        self.file.write_all(text.as_bytes()).map_err(|source| JournalError::Io { path: self.path.clone(), source })
    }
}

/// Opens the file at `path`, or creates it, for this program alone: until it is dropped, however the program ends.
fn lock(path: &Path) -> Result<File, JournalError> {
    let io = |source| JournalError::Io { path: path.into(), source };
    let mut options = OpenOptions::new();
    // A link might lead to any of the user's files, and must not make this program write to it.
    options.read(true).write(true).create(true).truncate(false).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    loop {
        let file = options.open(path).map_err(io)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            Errno::WOULDBLOCK => JournalError::Busy { path: path.into() },
            errno => io(errno.into()),
        })?;
        if is_at(&file, path).map_err(io)? {
            return Ok(file);
        }
        // A sweep that finished in between has put another file in its place.
    }
}

/// Returns whether the open `file` is the one at `path`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let there = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        there => there?,
    };
    let open = file.metadata()?;
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

/// The manifest and the records in `octets`, the contents of the journal at `path`: the last record of each run.
///
/// # Errors
/// If a line is something else. A half-written last line does not count, even if it ends within a character.
pub fn read_journal(path: &Path, octets: &[u8]) -> Result<(Manifest, Vec<Record>), JournalError> {
    let mut lines = text_of(path, whole_lines(octets))?.lines();
    let manifest = parse(path, lines.next().unwrap_or_default(), 1)?;
    let records = lines.zip(2..).map(|(text, line)| parse(path, text, line));
    Ok((manifest, latest(records.collect::<Result<_, _>>()?)))
}

/// Without the octets after the last newline, which were being written when a program ended.
fn whole_lines(octets: &[u8]) -> &[u8] {
    &octets[..octets.iter().rposition(|octet| *octet == b'\n').map_or(0, |newline| newline + 1)]
}

fn text_of<'o>(path: &Path, octets: &'o [u8]) -> Result<&'o str, JournalError> {
    core::str::from_utf8(octets).map_err(|error| {
        let before = &octets[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|octet| **octet == b'\n').count();
        damaged(path, line, "this is not a line of a sweep: it is not UTF-8 text")
    })
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str, line: usize) -> Result<T, JournalError> {
    serde_json::from_str(text).map_err(|error| damaged(path, line, format!("this is not a line of a sweep: {error}")))
}

fn damaged(path: &Path, line: usize, problem: impl Into<String>) -> JournalError {
    JournalError::Damaged { path: path.into(), line, problem: problem.into() }
}

fn line(of: &impl serde::Serialize) -> String {
    serde_json::to_string(of).expect("lines have text keys and finite numbers") + "\n"
}

/// Keeps the last record of each run.
fn latest(records: Vec<Record>) -> Vec<Record> {
    let key = |record: &Record| (record.variant.clone(), record.point.clone(), record.seed);
    let mut seen = BTreeSet::new();
    let mut kept: Vec<Record> = records.into_iter().rev().filter(|record| seen.insert(key(record))).collect();
    kept.reverse();
    kept
}

/// Returns whether `octets`, which have no complete line, are the beginning of a manifest.
fn is_begun(octets: &[u8]) -> bool {
    let begin = b"{\"scenario\":";
    octets.starts_with(begin) || begin.starts_with(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Override, load};

    const TEXT: &str = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
        cellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n\
        [[variants]]\nname = \"a\"\nset = { \"connection.congestion\" = \"lia\" }\n\
        [sweep.grid]\n\"connection.mtu\" = [\"1400 B\", \"1500 B\"]\n";

    fn changed(text: &str, sets: &[&str]) -> Plan {
        let sets: Vec<Override> = sets.iter().map(|text| text.parse().unwrap()).collect();
        Plan::new(|overrides| load("x.toml", text, overrides), &sets, None).unwrap()
    }

    fn plan() -> Plan {
        changed(TEXT, &[])
    }

    fn record(seed: u64) -> Record {
        record_at("1400 B", seed)
    }

    fn record_at(mtu: &str, seed: u64) -> Record {
        let (variant, point) = ("a".to_string(), vec![("connection.mtu".to_string(), mtu.to_string())]);
        let content = contents(&plan()).remove(&(variant.clone(), point.clone())).unwrap_or_default();
        let values = [("n".to_string(), 0.1)].into();
        Record { variant, point, seed, values, build: this_build().into(), content, ..Record::default() }
    }

    #[test]
    fn runs_of_other_builds_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let mut journal = Journal::open(&path, &plan(), false).unwrap();
        journal.add(record(1)).unwrap();
        // Like records of older versions, which did not state the build.
        journal.add(Record { build: String::new(), ..record(2) }).unwrap();
        journal.add(Record { build: "another".into(), ..record(3) }).unwrap();
        drop(journal);
        let journal = Journal::open(&path, &plan(), false).unwrap();
        assert_eq!((journal.records().len(), journal.of_other_builds()), (3, 2));
    }

    #[test]
    fn a_run_that_was_done_again_counts_as_it_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let mut journal = Journal::open(&path, &plan(), false).unwrap();
        journal.add(Record { faults: vec!["lost".into()], ..record(1) }).unwrap();
        journal.add(record(2)).unwrap();
        journal.forget(&plan(), |record| !record.faults.is_empty());
        assert_eq!(journal.records(), [record(2)]);
        drop(journal);
        // It has not been repeated yet.
        let mut journal = Journal::open(&path, &plan(), false).unwrap();
        assert_eq!(journal.records().len(), 2);
        journal.add(record(1)).unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path, &plan(), false).unwrap().records(), [record(2), record(1)]);
    }

    /// A sweep over other seeds, or fewer points, does not repeat them.
    #[test]
    fn faulty_runs_that_are_not_repeated_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let faulty = |record| Record { faults: vec!["lost".into()], build: "another".into(), ..record };
        let mut journal = Journal::open(&path, &plan(), false).unwrap();
        journal.add(faulty(record(1))).unwrap();
        journal.add(faulty(record_at("1500 B", 2))).unwrap();
        drop(journal);
        let grown = changed(TEXT, &["connection.mtu=1400 B", "sweep.seeds=2..2"]);
        let mut journal = Journal::open(&path, &grown, false).unwrap();
        journal.add(faulty(record(2))).unwrap();
        journal.forget(&grown, |record| !record.faults.is_empty());
        assert_eq!(missing(&grown, &journal).len(), 1);
        journal.add(record(2)).unwrap();
        journal.finish(&grown).unwrap();
        let kept = Journal::open(&path, &plan(), false).unwrap();
        let kept: Vec<(u64, bool)> =
            kept.records().iter().map(|record| (record.seed, record.faults.is_empty())).collect();
        assert_eq!(kept, [(2, false), (1, false), (2, true)]);
    }

    #[test]
    fn what_was_finished_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/runs.jsonl");
        let mut journal = Journal::open(&path, &plan(), false).unwrap();
        journal.add(record(1)).unwrap();
        journal.add(record(2)).unwrap();
        drop(journal);
        // The program was killed in the middle of a line.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"variant\":\"a\",\"po").unwrap();
        let mut journal = Journal::open(&path, &plan(), false).unwrap();
        assert_eq!(journal.records(), [record(1), record(2)]);
        journal.add(record(3)).unwrap();
        let busy = Journal::open(&path, &plan(), true).unwrap_err().to_string();
        assert!(busy.contains("is being written by another sweep"), "{busy}");
        drop(journal);
        assert_eq!(Journal::open(&path, &plan(), false).unwrap().records().len(), 3);
        assert_eq!(Journal::open(&path, &plan(), true).unwrap().records().len(), 0);
    }

    /// As when the disk is full.
    #[test]
    fn a_line_may_end_within_a_character() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let mut journal = Journal::open(&path, &plan(), false).unwrap();
        journal.add(record(1)).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        let half = [&whole[..], "{\"variant\":\"Größe".as_bytes()].concat();
        let within = half.len() - "ße".len() - 1;
        std::fs::write(&path, &half[..within]).unwrap();
        assert_eq!(read_journal(&path, &half[..within]).unwrap().1, [record(1)]);
        assert_eq!(Journal::open(&path, &plan(), false).unwrap().records(), [record(1)]);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        // Within the file it is damage.
        std::fs::write(&path, [&half[..within], b"\n"].concat()).unwrap();
        let error = Journal::open(&path, &plan(), false).unwrap_err().to_string();
        assert!(error.contains("runs.jsonl:3: this is not a line of a sweep"), "{error}");
    }

    #[test]
    fn a_journal_of_something_else_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        Journal::open(&path, &plan(), false).unwrap().add(record(1)).unwrap();
        let other = changed(&TEXT.replace("3 Mbit/s", "2 Mbit/s"), &[]);
        let error = Journal::open(&path, &other, false).unwrap_err().to_string();
        let both = "the scenario \"x\" with relays[0].cellular.rate = 3 Mbit/s, not of the same with \
                    relays[0].cellular.rate = 2 Mbit/s";
        assert!(error.contains(both), "{error}");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"seed\":1,\"values\"", "\"seed\":one,\"values\"")).unwrap();
        let error = Journal::open(&path, &plan(), false).unwrap_err().to_string();
        assert!(error.contains("runs.jsonl:2: this is not a line of a sweep"), "{error}");
    }

    #[test]
    fn whose_runs_lie_there_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        Journal::open(&path, &plan(), false).unwrap().add(record(1)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let refused = |plan: &Plan, parts: &[&str]| {
            let error = Journal::open(&path, plan, false).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        };
        let named = changed(&TEXT.replace("\"x\"", "\"y\""), &[]);
        refused(&named, &["the scenario \"x\", not of the scenario \"y\""]);
        let set = changed(TEXT, &["connection.scheduler=random"]);
        refused(
            &set,
            &[
                "connection.scheduler = lowest-rtt (without --set), not of the same with connection.scheduler = random (with --set connection.scheduler=random)",
            ],
        );
        let variant = changed(&TEXT.replace("lia", "cubic"), &[]);
        refused(&variant, &["connection.congestion of the variant \"a\" = lia, not of", "= cubic"]);
        let elsewhere = Plan { world: "--backend linux".into(), ..plan() };
        refused(&elsewhere, &["in the simulator, not of the same --backend linux"]);
        // Neither are they mixed where no case is in both.
        let beside =
            changed(&TEXT.replace("3 Mbit/s", "2 Mbit/s").replace("\"1400 B\", \"1500 B\"", "\"1300 B\""), &[]);
        refused(&beside, &["cellular.rate = 3 Mbit/s, not of the same with relays[0].cellular.rate = 2 Mbit/s"]);
        let version = env!("CARGO_PKG_VERSION");
        let older = text.replace(&format!("\"version\":\"{version}\""), "\"version\":\"0\"");
        std::fs::write(&path, older).unwrap();
        refused(&plan(), &["by version 0 of this program, not of version"]);
    }

    #[test]
    fn more_points_seeds_and_variants_stand_beside_finished_runs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let first = changed(TEXT, &["sweep.grid={ \"connection.mtu\" = [\"1400 B\"] }", "sweep.seeds=1..2"]);
        let mut journal = Journal::open(&path, &first, false).unwrap();
        journal.add(record(1)).unwrap();
        journal.add(record(2)).unwrap();
        journal.finish(&first).unwrap();
        let more = changed(&TEXT.replace("1500 B", "9000 B"), &["sweep.seeds=2..3"]);
        let mut journal = Journal::open(&path, &more, false).unwrap();
        assert_eq!((missing(&more, &journal).len(), journal.seeds(&more), journal.beyond(&more)), (3, vec![1, 2], 0));
        let [small, large] = ["1400 B", "9000 B"];
        for (mtu, seed) in [(small, 3), (large, 2), (large, 3)] {
            journal.add(record_at(mtu, seed)).unwrap();
        }
        journal.finish(&more).unwrap();
        // A value by --set instead of the grid is a point, too.
        let fewer = changed(TEXT, &["connection.mtu=9000 B", "sweep.seeds=2..3"]);
        let journal = Journal::open(&path, &fewer, false).unwrap();
        assert_eq!((missing(&fewer, &journal), journal.beyond(&fewer)), (Vec::new(), 3));
        assert_eq!(journal.finish(&fewer).unwrap().len(), 5);
        assert_eq!(Journal::open(&path, &more, false).unwrap().records().len(), 5);
    }

    /// Comparisons read the settings of its variants there.
    #[test]
    fn the_first_line_is_of_the_latest_sweep_also_if_it_does_not_finish() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let mut journal = Journal::open(&path, &plan(), false).unwrap();
        journal.add(record(1)).unwrap();
        drop(journal);
        let more = changed(&TEXT.replace("1500 B", "9000 B"), &[]);
        let mut journal = Journal::open(&path, &more, false).unwrap();
        assert!(matches!(Journal::open(&path, &more, false), Err(JournalError::Busy { .. })));
        journal.add(record_at("9000 B", 1)).unwrap();
        drop(journal);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.split_inclusive('\n').next().unwrap(), line(&Manifest::new(&more)));
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn runs_that_do_not_state_what_they_depend_on_belong_to_the_same_sweep_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let manifest = serde_json::json!({
            "scenario": "x", "content": Manifest::new(&plan()).content, "version": env!("CARGO_PKG_VERSION")
        });
        let mut record = record(1);
        record.content = String::new();
        std::fs::write(&path, format!("{manifest}\n{}", line(&record))).unwrap();
        assert_eq!(Journal::open(&path, &plan(), false).unwrap().records(), [super::tests::record(1)]);
        let more = changed(&TEXT.replace("1500 B", "9000 B"), &[]);
        let error = Journal::open(&path, &more, false).unwrap_err().to_string();
        assert!(error.contains("before its files changed"), "{error}");
    }

    /// Earlier versions of `claims` stated them without the condition.
    #[test]
    fn runs_of_the_same_cases_stand_side_by_side_whatever_is_stated_besides() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let mut other = plan();
        other.scenario.connection.sack = false;
        Journal::open(&path, &other, false).unwrap().add(record(1)).unwrap();
        assert_eq!(Journal::open(&path, &plan(), false).unwrap().records().len(), 1);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.split_inclusive('\n').next().unwrap(), line(&Manifest::new(&plan())));
    }

    /// Runs without a variant have the settings as written, also if all variants of the latest sweep set others.
    #[test]
    fn runs_as_written_are_of_the_scenario_as_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let text = TEXT.replace("[[relays]]", "connection = { congestion = \"cubic\" }\n[[relays]]");
        let point = vec![("connection.mtu".to_string(), "1400 B".to_string())];
        let as_written = Record { variant: "as written".into(), point, seed: 1, ..Record::default() };
        Journal::open(&path, &changed(&text, &["variants=[]"]), false).unwrap().add(as_written).unwrap();
        assert_eq!(Journal::open(&path, &changed(&text, &[]), false).unwrap().records().len(), 1);
        let edited = changed(&text.replace("cubic", "newreno"), &[]);
        let error = Journal::open(&path, &edited, false).unwrap_err().to_string();
        let said = "connection.congestion = cubic, not of the same with connection.congestion = newreno";
        assert!(error.contains(said), "{error}");
    }

    #[test]
    fn what_is_no_journal_is_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        for text in ["my own notes", "my own\nnotes without an end", "\0\n"] {
            std::fs::write(&path, text).unwrap();
            let error = Journal::open(&path, &plan(), false).unwrap_err().to_string();
            assert!(error.contains("runs.jsonl:1: this is not"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let link = directory.path().join("link.jsonl");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let error = Journal::open(&link, &plan(), true).unwrap_err().to_string();
        assert!(error.contains("link.jsonl") && error.contains("help:"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "\0\n");
    }
}
