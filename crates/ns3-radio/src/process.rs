//! The process that simulates the radio, and the lines that are exchanged with it: `ns3/radio/main.cc` describes them.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use lab::run::Entry;
use network::Gate;
use units::Instant;

use crate::Error;

/// Environment variable that names the program.
pub const PROGRAM_VARIABLE: &str = "ANABRANCH_NS3_RADIO";
const PROGRAM: &str = "anabranch-radio";
/// Octets of the program's last words that are shown.
const WORDS_MAX: usize = 2000;

/// Returns the program: the one that the environment names, one beside this executable, or the one that `scripts/ns3.sh`
/// builds in the folder of this executable's build.
///
/// # Errors
/// Where it was looked for.
pub fn find_program() -> Result<PathBuf, Error> {
    let named = std::env::var_os(PROGRAM_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let places = named.map_or_else(|| beside(std::env::current_exe().ok().as_deref()), |path| vec![path]);
    let found = places.iter().find(|path| path.is_file()).cloned();
    found.ok_or(Error::NoProgram(places))
}

/// `target/ns3/` is beside `target/debug/`; test programs are one folder deeper.
fn beside(executable: Option<&Path>) -> Vec<PathBuf> {
    let folders = executable.into_iter().flat_map(Path::ancestors).skip(1);
    let builds = folders.clone().skip(1).take(2).map(|folder| folder.join("ns3").join(PROGRAM));
    folders.take(1).map(|folder| folder.join(PROGRAM)).chain(builds).collect()
}

/// A medium of the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The LTE cell.
    Cell,
    /// The Wi-Fi channel.
    Wlan,
}

/// A packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub medium: Medium,
    pub from: Gate,
    pub to: Gate,
    pub number: u64,
}

/// The running program.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// `None` once it is told to end.
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
    /// Reads what it says on its standard error, which it must not wait to be read. `None` once the words were taken.
    words: Option<JoinHandle<Vec<u8>>>,
    line: String,
}

impl Process {
    /// Starts `program` with these settings, and waits until the radio is ready.
    ///
    /// # Errors
    /// If it cannot be started, or refuses the settings.
    pub fn start(program: &Path, settings: &str) -> Result<Self, Error> {
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for this process, which then ends the other one in good order.
        let mut child = command.process_group(0).spawn().map_err(|source| start_error(program, source))?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Error::Ended(String::new()));
        };
        let (input, output) = (Some(BufWriter::new(input)), BufReader::new(output));
        let words = Some(thread::spawn(move || last_words(errors)));
        let mut process = Self { child, input, output, words, line: String::new() };
        process.tell(format_args!("{settings}begin"))?;
        match process.hear()? {
            "ready" => Ok(process),
            other => Err(Error::NotUnderstood(other.into())),
        }
    }

    /// Passes a packet on to a medium.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn send(&mut self, medium: Medium, packet: &Entry) -> Result<(), Error> {
        let Entry { number, from, to, wire_len } = packet;
        self.tell(format_args!("{} {} {} {number} {wire_len}", letter(medium), from.0, to.0))
    }

    /// Runs the radio up to `until`, or to the first arrival. Returns the time, and adds what arrives then.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn run(&mut self, until: Instant, arrivals: &mut Vec<Arrival>) -> Result<Instant, Error> {
        self.tell(format_args!("r {}", until.as_nanos()))?;
        loop {
            let line = self.hear()?;
            match parse(line) {
                Some(Answer::Arrival(arrival)) => arrivals.push(arrival),
                Some(Answer::Time(now)) => return Ok(now),
                None => return Err(Error::NotUnderstood(line.into())),
            }
        }
    }

    fn tell(&mut self, line: core::fmt::Arguments<'_>) -> Result<(), Error> {
        let told = self.input.as_mut().map(|input| writeln!(input, "{line}"));
        if told.is_some_and(|told| told.is_ok()) { Ok(()) } else { Err(self.ended()) }
    }

    fn hear(&mut self) -> Result<&str, Error> {
        self.line.clear();
        let asked = self.input.as_mut().is_some_and(|input| input.flush().is_ok());
        let heard = asked && self.output.read_line(&mut self.line).is_ok_and(|len| len > 0);
        if heard { Ok(self.line.trim_end()) } else { Err(self.ended()) }
    }

    /// Waits for its end, and returns what it said last.
    fn ended(&mut self) -> Error {
        self.input = None;
        // What it has said stays in the pipe.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let words = self.words.take().and_then(|words| words.join().ok()).unwrap_or_default();
        Error::Ended(String::from_utf8_lossy(&words).trim().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end, and returns the last octets.
fn last_words(mut errors: impl Read) -> Vec<u8> {
    let (mut words, mut room) = (Vec::new(), [0; 4096]);
    while let Ok(len) = errors.read(&mut room) {
        if len == 0 {
            break;
        }
        words.extend_from_slice(&room[..len]);
        words.drain(..words.len().saturating_sub(WORDS_MAX));
    }
    words
}

fn start_error(program: &Path, source: std::io::Error) -> Error {
    Error::Start { path: program.into(), source }
}

const fn letter(medium: Medium) -> char {
    match medium {
        Medium::Cell => 'c',
        Medium::Wlan => 'w',
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Arrival(Arrival),
    Time(Instant),
}

fn parse(line: &str) -> Option<Answer> {
    let mut words = line.split(' ');
    let medium = match words.next()? {
        "c" => Medium::Cell,
        "w" => Medium::Wlan,
        "t" => {
            let now = Instant::from_nanos(words.next()?.parse().ok()?);
            return words.next().is_none().then_some(Answer::Time(now));
        }
        _ => return None,
    };
    let mut gate = || words.next()?.parse().ok().map(Gate);
    let (from, to) = (gate()?, gate()?);
    let number = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Answer::Arrival(Arrival { medium, from, to, number }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a program that runs `script`. Another process writes the file: a program that any process has open for
    /// writing cannot be started, and a process that another test starts meanwhile would inherit it open.
    fn program(script: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("radio");
        let mut writer = Command::new("sh");
        writer.args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$2\" >\"$1\"; chmod 755 \"$1\"", "sh"]).arg(&path).arg(script);
        assert!(writer.status().unwrap().success());
        (folder, path)
    }

    /// A program that first says more than a pipe holds.
    fn talkative(then: &str) -> (tempfile::TempDir, PathBuf) {
        let talk =
            "i=0; while [ $i -lt 3000 ]; do echo \"a warning of some length, number $i\" >&2; i=$((i + 1)); done";
        program(&format!("read line\n{talk}\n{then}"))
    }

    #[test]
    fn a_program_that_says_much_goes_on_and_its_last_words_are_told() {
        let (_folder, path) = talkative("echo ready; read line; echo t 5");
        let mut process = Process::start(&path, "").unwrap();
        assert_eq!(process.run(Instant::from_nanos(5), &mut Vec::new()).unwrap(), Instant::from_nanos(5));
        let (_folder, path) = talkative("echo it cannot >&2");
        let Err(Error::Ended(words)) = Process::start(&path, "") else { panic!("it has ended") };
        assert!(words.ends_with("number 2999\nit cannot") && words.len() <= WORDS_MAX, "{words}");
    }

    #[test]
    fn answers_are_understood_or_not() {
        let arrival = Arrival { medium: Medium::Wlan, from: Gate(1), to: Gate(0), number: 7 };
        assert_eq!(parse("w 1 0 7"), Some(Answer::Arrival(arrival)));
        assert_eq!(parse("t 12"), Some(Answer::Time(Instant::from_nanos(12))));
        for odd in ["", "w", "w 1 0", "w 1 0 7 8", "w 1 70000 7", "t", "t -1", "t 1 2", "x 1 0 7", "ready"] {
            assert_eq!(parse(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn the_program_is_looked_for_beside_the_executable_and_its_build() {
        let places = beside(Some(Path::new("/tree/target/debug/anabranch")));
        let expected =
            ["/tree/target/debug/anabranch-radio", "/tree/target/ns3/anabranch-radio", "/tree/ns3/anabranch-radio"];
        assert_eq!(places, expected.map(PathBuf::from));
    }

    fn start(script: &str) -> Result<Process, Error> {
        let (_folder, program) = program(script);
        Process::start(&program, "seed 1\n")
    }

    #[test]
    fn a_program_that_ends_is_quoted() {
        let error = start("echo 'no such scheduler' >&2; exit 3").unwrap_err();
        assert_eq!(error.to_string(), "the radio of ns-3 ended: no such scheduler");
    }

    #[test]
    fn a_program_that_says_something_else_is_refused() {
        assert!(matches!(start("echo hello; sleep 60"), Err(Error::NotUnderstood(line)) if line == "hello"));
        let mut process = start("echo ready; echo nonsense; sleep 60").unwrap();
        let result = process.run(Instant::from_secs(1), &mut Vec::new());
        assert!(matches!(result, Err(Error::NotUnderstood(line)) if line == "nonsense"));
    }
}
