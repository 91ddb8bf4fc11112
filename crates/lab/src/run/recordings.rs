//! The files of a run: captures of packets, and logs of what the engines decided.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use atomic_file::AtomicFile;
use qlog::{Header, Log};
use simulator::HostId;
use transport::observation::{Observation, Observer};

use super::capture::{Captures, comments};
use super::stage::{DESTINATION, SOURCE, Stage};
use crate::scenario::{Addresses, RelayMode, Scenario};

/// What to record of a run, and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recordings<'a> {
    /// Directory for captures of what source and destination send and receive: `source.pcapng`, `destination.pcapng`.
    pub pcap: Option<&'a Path>,
    /// Directory for logs of what the engines decide: `source.sqlog`, `destination.sqlog` and, of relays that splice
    /// subflows, `relay-1.sqlog` and so on, in the scenario's order.
    pub qlog: Option<&'a Path>,
}

impl Recordings<'_> {
    /// Starts the files.
    pub(super) fn begin(self, scenario: &Scenario) -> io::Result<Files> {
        Ok(Files {
            captures: self.pcap.map(|directory| Captures::create(directory, scenario)).transpose()?,
            logs: match self.qlog {
                Some(directory) => HostLog::of_all(directory, scenario)?,
                None => Vec::new(),
            },
        })
    }
}

/// The files of one run, until they are committed.
pub(super) struct Files {
    captures: Option<Captures>,
    logs: Vec<HostLog>,
}

/// A committed file, or why one is missing.
pub(super) enum Written {
    /// The file.
    File(PathBuf),
    /// There was nothing to write.
    Nothing(String),
    /// It cannot be written.
    Failed(String),
}

impl Files {
    /// Lets the hosts of the run write to the files.
    pub fn attach(&mut self, stage: &mut Stage, addresses: &Addresses) {
        if let Some(captures) = &self.captures {
            stage.simulation.add_tap(captures.tap(&addresses.paths));
        }
        self.logs.iter_mut().for_each(|log| log.attach(stage));
        // A relay that routes has nothing to log.
        self.logs.retain(|log| log.is_attached || !matches!(log.of, Logged::Relay(_)));
    }

    /// Moves the files to their places. The stage must be gone.
    pub fn commit(self) -> Vec<Written> {
        let captures = self.captures.map(Captures::commit).unwrap_or_default();
        let captures = captures.into_iter().map(|capture| capture.map_or_else(Written::Failed, Written::File));
        captures.chain(self.logs.into_iter().map(HostLog::commit)).collect()
    }
}

/// The log of a host.
struct HostLog {
    of: Logged,
    path: PathBuf,
    file: Arc<Mutex<Growing>>,
    /// Whether there is an engine to log.
    is_attached: bool,
}

/// What a log is about.
#[derive(Clone, Copy)]
enum Logged {
    /// The engine of source or destination.
    End(HostId),
    /// The spliced subflows of the relay with this number.
    Relay(usize),
}

struct Growing {
    log: Log<AtomicFile>,
    /// The first error; an observer cannot stop a run.
    error: Option<io::Error>,
}

impl HostLog {
    /// Begins a log of each host.
    fn of_all(directory: &Path, scenario: &Scenario) -> io::Result<Vec<Self>> {
        let begin = |of, file: &str, host: &str| Self::create(of, &directory.join(file), host, scenario);
        let ends = [(SOURCE, "source"), (DESTINATION, "destination")];
        let ends = ends.into_iter().map(|(id, name)| begin(Logged::End(id), &format!("{name}.sqlog"), name));
        let splicing = scenario.relays.iter().enumerate().filter(|_| scenario.cooperation.relays == RelayMode::FastAck);
        let relays = splicing
            .map(|(index, relay)| begin(Logged::Relay(index), &format!("relay-{}.sqlog", index + 1), &relay.name));
        ends.chain(relays).collect()
    }

    fn create(of: Logged, path: &Path, host: &str, scenario: &Scenario) -> io::Result<Self> {
        let header = Header { host, title: &scenario.name, comments: &comments(scenario), since_1970: None };
        let (path, log) = (path.to_owned(), Log::new(AtomicFile::create_with_folders(path)?, header)?);
        Ok(Self { of, path, file: Arc::new(Mutex::new(Growing { log, error: None })), is_attached: false })
    }

    fn attach(&mut self, stage: &mut Stage) {
        let observer = Box::new(LogObserver(self.file.clone()));
        let host = match self.of {
            Logged::End(host) => Some(host),
            Logged::Relay(index) => stage.relays[index].host,
        };
        let Some(host) = host else { return };
        let is_end = matches!(self.of, Logged::End(_));
        self.is_attached = stage.simulation.with_host(host, |host, _| {
            let Some(engine) = host.engine_mut() else { return false };
            if is_end {
                engine.endpoint.set_observer(observer);
                return true;
            }
            engine.with_agent_mut(|role, _| role.relay_mut().is_some_and(|relay| relay.set_observer(observer)))
        });
    }

    fn commit(self) -> Written {
        let path = self.path.display();
        if !self.is_attached {
            let end = if matches!(self.of, Logged::End(SOURCE)) { "source" } else { "destination" };
            let stale = if self.path.exists() { "; the file of that name is of an earlier run" } else { "" };
            return Written::Nothing(format!(
                "{path} is not written: the {end} is the kernel, not the engine (--{end} engine changes it){stale}"
            ));
        }
        let Ok(growing) = Arc::try_unwrap(self.file) else {
            return Written::Failed(format!("{path} is still being written"));
        };
        let growing = growing.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = growing.error {
            return Written::Failed(format!(
                "cannot write {path}: {error}; this log is discarded, but the run is complete\n  \
                 help: choose a folder on a disk with enough space"
            ));
        }
        match growing.log.finish().commit() {
            Ok(()) => Written::File(self.path),
            Err(error) => Written::Failed(error.to_string()),
        }
    }
}

struct LogObserver(Arc<Mutex<Growing>>);

impl Observer for LogObserver {
    fn observe(&mut self, observation: &Observation) {
        let mut growing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if growing.error.is_none() {
            growing.error = growing.log.record(observation).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    /// Whoever reads the folder later would take both logs for those of one run.
    #[test]
    fn a_log_of_an_earlier_run_is_said_to_be_one() {
        let text = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
            cellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n";
        let scenario = load("x.toml", text, &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source.sqlog");
        let said = || match HostLog::create(Logged::End(SOURCE), &path, "source", &scenario).unwrap().commit() {
            Written::Nothing(note) => note,
            Written::File(_) | Written::Failed(_) => panic!("there is no engine to log"),
        };
        assert!(said().ends_with("(--source engine changes it)"), "{}", said());
        std::fs::write(&path, "earlier").unwrap();
        assert!(said().ends_with("; the file of that name is of an earlier run"), "{}", said());
    }
}
