//! The records of a sweep on disk: JSON Lines, manifest first.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::build::this_build;
use super::workers::missing;
use super::{Manifest, Plan, Record, numbers};
use crate::scenario::shell::quote;

/// A file that grows by one line per run. After the program was killed, finished runs are still there on restart.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    records: Vec<Record>,
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
    /// It belongs to another scenario, or to another version of this one.
    #[error("{} holds runs of {theirs}, not of {ours}\n  help: choose another --out, or discard the file with sweep --restart", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What its runs belong to.
        theirs: String,
        /// What they should belong to.
        ours: String,
    },
    /// A line in its middle is not a record.
    #[error("{}:{line}: {problem}\n  help: choose another --out, or discard the file with sweep --restart", path.display())]
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
    /// Opens the journal at `path`, or creates one there; with `restart`, discards its contents.
    ///
    /// # Errors
    /// If it cannot be read or written, is being written by another program, belongs to something else, or is damaged.
    /// A half-written last line is no damage: it is dropped.
    pub fn open(path: &Path, manifest: &Manifest, restart: bool) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: path.into(), source };
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory).map_err(|source| JournalError::Io { path: directory.into(), source })?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A link might lead to any of the user's files, and must not make this program write to it.
        let mut file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path).map_err(io)?;
        // The lock lasts until the file is dropped, however the program ends.
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            Errno::WOULDBLOCK => JournalError::Busy { path: path.into() },
            errno => io(errno.into()),
        })?;
        if restart {
            file.set_len(0).map_err(io)?;
        }
        let text = io::read_to_string(&mut file).map_err(io)?;
        // Octets after the last newline were being written when the program ended.
        let whole = &text[..text.rfind('\n').map_or(0, |newline| newline + 1)];
        let mut journal = Self { file, path: path.into(), records: Vec::new() };
        if let Some((first, rest)) = whole.split_once('\n') {
            journal.check_manifest(first, manifest)?;
            let records = rest.lines().zip(2..).map(|(text, line)| journal.parse(text, line));
            journal.records = latest(records.collect::<Result<_, _>>()?);
        } else if !text.is_empty() && !is_begun(&text) {
            return Err(journal.damaged(1, "this is not a journal of a sweep"));
        }
        journal.file.set_len(whole.len() as u64).map_err(io)?;
        journal.file.seek(SeekFrom::End(0)).map_err(io)?;
        if whole.is_empty() {
            journal.write(manifest)?;
        }
        Ok(journal)
    }

    fn check_manifest(&self, line: &str, manifest: &Manifest) -> Result<(), JournalError> {
        let theirs: Manifest = self.parse(line, 1)?;
        if theirs == *manifest {
            return Ok(());
        }
        let [theirs, ours] = told_apart(&theirs, manifest);
        Err(JournalError::Other { path: self.path.clone(), theirs, ours })
    }

    fn damaged(&self, line: usize, problem: impl Into<String>) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), line, problem: problem.into() }
    }

    fn parse<T: serde::de::DeserializeOwned>(&self, text: &str, line: usize) -> Result<T, JournalError> {
        serde_json::from_str(text)
            .map_err(|error| self.damaged(line, format!("this is not a line of a sweep: {error}")))
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

    /// Counts runs for which `are_void` holds as unfinished. Their new records will replace those in the file.
    pub(super) fn forget(&mut self, are_void: impl Fn(&Record) -> bool) {
        self.records.retain(|record| !are_void(record));
    }

    /// Adds a record; it is on disk when this returns.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, record: Record) -> Result<(), JournalError> {
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
        let Self { file, path, mut records } = self;
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

/// Returns whether `text`, which has no complete line, is the beginning of a manifest.
fn is_begun(text: &str) -> bool {
    let begin = "{\"scenario\":";
    text.starts_with(begin) || begin.starts_with(text)
}

/// Describes two manifests by their differences.
fn told_apart(theirs: &Manifest, ours: &Manifest) -> [String; 2] {
    let both = [theirs, ours];
    let named = both.map(|manifest| format!("the scenario \"{}\"", manifest.scenario));
    if theirs.scenario != ours.scenario {
        return named;
    }
    let [their_name, our_name] = named;
    if theirs.version != ours.version {
        let [their_version, our_version] = both.map(|manifest| &manifest.version);
        return [format!("{their_name} by version {their_version} of this program"), format!("version {our_version}")];
    }
    if theirs.world != ours.world {
        let [their_world, our_world] = both.map(|manifest| match manifest.world.as_str() {
            "" => "in the simulator",
            world => world,
        });
        return [format!("{their_name} {their_world}"), format!("the same {our_world}")];
    }
    if theirs.overrides != ours.overrides {
        let [their_sets, our_sets] = both.map(|manifest| match manifest.overrides.as_slice() {
            [] => "without --set".to_string(),
            overrides => {
                format!("with --set {}", overrides.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" --set "))
            }
        });
        return [format!("{their_name} {their_sets}"), format!("the same {our_sets}")];
    }
    [format!("{their_name} before its files changed"), format!("{our_name} as it is now")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Course;

    fn manifest(content: &str) -> Manifest {
        Manifest {
            scenario: "x".into(),
            content: content.into(),
            version: "1".into(),
            overrides: Vec::new(),
            world: String::new(),
        }
    }

    fn record(seed: u64) -> Record {
        let (variant, point) = ("a".into(), vec![("p".into(), "v".into())]);
        let values = [("n".to_string(), 0.1)].into();
        let (course, goodput_points_bps) = (Course::default(), Vec::new());
        Record {
            variant,
            point,
            seed,
            values,
            course,
            goodput_points_bps,
            faults: Vec::new(),
            build: this_build().into(),
        }
    }

    #[test]
    fn runs_of_other_builds_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let mut journal = Journal::open(&path, &manifest("m"), false).unwrap();
        journal.add(record(1)).unwrap();
        // Like records of older versions, which did not state the build.
        journal.add(Record { build: String::new(), ..record(2) }).unwrap();
        journal.add(Record { build: "another".into(), ..record(3) }).unwrap();
        drop(journal);
        let journal = Journal::open(&path, &manifest("m"), false).unwrap();
        assert_eq!((journal.records().len(), journal.of_other_builds()), (3, 2));
    }

    #[test]
    fn a_run_that_was_done_again_counts_as_it_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        let mut journal = Journal::open(&path, &manifest("m"), false).unwrap();
        journal.add(Record { faults: vec!["lost".into()], ..record(1) }).unwrap();
        journal.add(record(2)).unwrap();
        journal.forget(|record| !record.faults.is_empty());
        assert_eq!(journal.records(), [record(2)]);
        drop(journal);
        // It has not been repeated yet.
        let mut journal = Journal::open(&path, &manifest("m"), false).unwrap();
        assert_eq!(journal.records().len(), 2);
        journal.add(record(1)).unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path, &manifest("m"), false).unwrap().records(), [record(2), record(1)]);
    }

    #[test]
    fn what_was_finished_is_there_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/runs.jsonl");
        let mut journal = Journal::open(&path, &manifest("m"), false).unwrap();
        journal.add(record(1)).unwrap();
        journal.add(record(2)).unwrap();
        drop(journal);
        // The program was killed in the middle of a line.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"variant\":\"a\",\"po").unwrap();
        let mut journal = Journal::open(&path, &manifest("m"), false).unwrap();
        assert_eq!(journal.records(), [record(1), record(2)]);
        journal.add(record(3)).unwrap();
        let busy = Journal::open(&path, &manifest("m"), true).unwrap_err().to_string();
        assert!(busy.contains("is being written by another sweep"), "{busy}");
        drop(journal);
        assert_eq!(Journal::open(&path, &manifest("m"), false).unwrap().records().len(), 3);
        assert_eq!(Journal::open(&path, &manifest("m"), true).unwrap().records().len(), 0);
    }

    #[test]
    fn a_journal_of_something_else_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        Journal::open(&path, &manifest("m"), false).unwrap().add(record(1)).unwrap();
        let error = Journal::open(&path, &manifest("other"), false).unwrap_err().to_string();
        assert!(
            error.contains("runs of the scenario \"x\" before its files changed") && error.contains("--restart"),
            "{error}"
        );
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"seed\":1", "\"seed\":one")).unwrap();
        let error = Journal::open(&path, &manifest("m"), false).unwrap_err().to_string();
        assert!(error.contains("runs.jsonl:2: this is not a line of a sweep"), "{error}");
    }

    #[test]
    fn whose_runs_lie_there_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        Journal::open(&path, &manifest("m"), false).unwrap().add(record(1)).unwrap();
        let change = |change: fn(&mut Manifest)| {
            let mut manifest = manifest("m");
            change(&mut manifest);
            Journal::open(&path, &manifest, false).unwrap_err().to_string()
        };
        for (error, parts) in [
            (
                change(|other| other.scenario = "y".into()),
                ["the scenario \"x\", not of the scenario \"y\"", "choose another --out"],
            ),
            (
                change(|other| other.version = "2".into()),
                ["by version 1 of this program, not of version 2", "--restart"],
            ),
            (
                change(|other| other.overrides = vec!["a=1 B".into()]),
                ["without --set, not of the same with --set 'a=1 B'", "--out"],
            ),
            (
                change(|other| other.world = "--backend linux".into()),
                ["in the simulator, not of the same --backend linux", "--out"],
            ),
        ] {
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn what_is_no_journal_is_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        for text in ["my own notes", "my own\nnotes without an end", "\0\n"] {
            std::fs::write(&path, text).unwrap();
            let error = Journal::open(&path, &manifest("m"), false).unwrap_err().to_string();
            assert!(error.contains("runs.jsonl:1: this is not"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let link = directory.path().join("link.jsonl");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let error = Journal::open(&link, &manifest("m"), true).unwrap_err().to_string();
        assert!(error.contains("link.jsonl") && error.contains("help:"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "\0\n");
    }
}
