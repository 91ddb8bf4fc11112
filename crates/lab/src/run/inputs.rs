//! Inputs of a scenario: the octets to send, and the traces of its links.

use core::net::SocketAddr;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use network::Trace;
use sha2::{Digest, Sha256};
use simulator::Source;
use simulator::app::Transfer;
use simulator::traffic::video::{FrameSizes, Viewer};
use simulator::traffic::{Answers, LiveServer, Pace, Reader, Script};
use transport::ConnectionConfig;
use units::text::Text;
use units::{ByteCount, Duration, Instant, Prng, Rate};

use super::RunError;
use super::hosts::EngineHost;
use super::sink::User;
use crate::measure::integrity::hexadecimal;
use crate::measure::results::FileDigest;
use crate::scenario::{Hop, Link, LinkRate, Scenario, TextOr, WorkloadKind, drawing};

/// How much data a paced source may have waiting. Any more would leave in a burst as soon as links recover.
const BACKLOG: Duration = Duration::from_millis(100);

/// Largest number of octets to read from a pipe.
const PIPE_BYTES_MAX: u64 = 256_000_000;

/// Returns the data that the source sends.
///
/// # Errors
/// If a file cannot be read.
pub fn workload(scenario: &Scenario) -> Result<Source, RunError> {
    let workload = &scenario.workload;
    let stream = Prng::fork(scenario.seed, "workload").below(1 << 32) as u32;
    match (workload.kind, &workload.path, workload.size) {
        (WorkloadKind::File, Some(path), _) => {
            let path = scenario.directory.join(path);
            match read(&path) {
                Ok(octets) => Ok(Source::Bytes(Bytes::from(octets))),
                Err(source) => Err(unreadable(scenario, "workload.path".into(), &path, source)),
            }
        }
        (WorkloadKind::None, ..) => Ok(Source::Pattern { stream, len: 0 }),
        (WorkloadKind::Bulk | WorkloadKind::Video | WorkloadKind::Requests, ..) => {
            Ok(Source::Pattern { stream, len: u64::MAX })
        }
        (_, _, size) => Ok(Source::Pattern { stream, len: size.map_or(0, |size| size.0.0) }),
    }
}

/// Adds the source's application: it listens at `local` and sends `source`, at once or as the data are produced.
pub(super) fn server(
    scenario: &Scenario,
    source: Source,
    local: SocketAddr,
    config: ConnectionConfig,
) -> impl FnOnce(EngineHost) -> EngineHost {
    let script = script(scenario);
    move |host| match (script, source) {
        (Some(script), Source::Pattern { stream, .. }) => host.app(LiveServer::new(local, config, script, stream)),
        (_, source) => host.app(Transfer::listen(local, config).sending(source)),
    }
}

/// How the source's streams are produced while they are sent; `None` if all of the data exist when the run begins.
pub fn script(scenario: &Scenario) -> Option<Script> {
    match scenario.workload.kind {
        WorkloadKind::Video => Some(Script::Video(frames(scenario))),
        WorkloadKind::Requests => Some(Script::Answers(answers(scenario))),
        WorkloadKind::Bulk => pace(scenario).map(Script::Paced),
        WorkloadKind::File | WorkloadKind::Generated | WorkloadKind::None => None,
    }
}

/// Pace of bulk data; `None` if they are sent as fast as possible.
fn pace(scenario: &Scenario) -> Option<Pace> {
    let target = scenario.target.filter(|target| target.paced)?;
    Some(Pace::new(target.bit_rate, BACKLOG))
}

/// The users of the data that arrive: one per connection.
pub(super) fn users(scenario: &Scenario) -> Vec<User> {
    let workload = &scenario.workload;
    let user = |number: u32| match workload.kind {
        WorkloadKind::Video => {
            User::Viewer(Viewer::new(frames(scenario), workload.video.unwrap_or_default().playback()))
        }
        WorkloadKind::Requests => {
            let pauses = drawing(workload.pauses.as_ref());
            let prng = Prng::fork(scenario.seed, &format!("pauses of reader {number}"));
            User::Reader(Reader::new(answers(scenario), pauses, prng, Instant::ZERO))
        }
        WorkloadKind::File | WorkloadKind::Generated | WorkloadKind::Bulk | WorkloadKind::None => User::Keeper,
    };
    let count = if workload.kind == WorkloadKind::None { 0 } else { workload.connections };
    (0..count).map(user).collect()
}

fn frames(scenario: &Scenario) -> FrameSizes {
    let (rate, video) = (scenario.workload.rate, scenario.workload.video.unwrap_or_default());
    FrameSizes::new(video.format(rate.map_or(Rate::ZERO, |Text(rate)| rate)), scenario.seed)
}

fn answers(scenario: &Scenario) -> Answers {
    let sizes = drawing(scenario.workload.answers.as_ref());
    Answers::new(sizes, Prng::fork(scenario.seed, "answers"))
}

/// Traces of the rates of the two directions of a link; `None` for a fixed rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces {
    /// Towards the destination.
    pub down: Option<Trace>,
    /// Towards the source.
    pub up: Option<Trace>,
}

/// Traces of a link of a relay.
///
/// # Errors
/// If a file cannot be read or is not a trace.
pub(super) fn rate_traces(scenario: &Scenario, relay: usize, hop: Hop) -> Result<Traces, RunError> {
    let Some(link) = scenario.relays[relay].link(hop) else { return Ok(Traces::default()) };
    let field = format!("relays[{relay}].{}", hop.name());
    // Labelled by the relay's name: adding a relay does not change the traces of others.
    let label = |what: &str| format!("{} {what} of {}", hop.name(), scenario.relays[relay].name);
    traces_of(scenario, link, &field, label)
}

/// Like [`rate_traces`], for the link that all paths share.
pub(super) fn bottleneck_traces(scenario: &Scenario) -> Result<Traces, RunError> {
    let Some(link) = &scenario.bottleneck else { return Ok(Traces::default()) };
    traces_of(scenario, link, "bottleneck", |what| format!("{what} of the bottleneck"))
}

/// The traces of the link at `field`; what is random is drawn under labels.
fn traces_of(
    scenario: &Scenario,
    link: &Link,
    field: &str,
    label: impl Fn(&str) -> String,
) -> Result<Traces, RunError> {
    let draw = |what: &str| Prng::fork(scenario.seed, &label(what));
    let trace = |(name, rate): (&str, &LinkRate), what: &str| -> Result<Option<Trace>, RunError> {
        let TextOr::Table(model) = rate else { return Ok(None) };
        let Some(path) = &model.trace else {
            return Ok(model.generator().map(|generator| generator.generate(draw(what).below(u64::MAX))));
        };
        let trace = read_trace(scenario, &scenario.directory.join(path), format!("{field}.{name}.trace"))?;
        Ok(Some(match model.offset {
            // One label for both directions, which were recorded together.
            Some(Text(offset)) => offset.apply(trace, draw("trace offset")),
            None => trace,
        }))
    };
    let [down, up] = link.rates();
    Ok(Traces { down: trace(down, "rate")?, up: trace(up, "uplink rate")? })
}

/// Contents of the file at `path`, or output of a pipe, such as a shell's `<(...)`. It refuses devices, which never
/// end, and limits pipes, which may not end either.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    let mut octets = Vec::new();
    if kind.is_fifo() {
        file.take(PIPE_BYTES_MAX + 1).read_to_end(&mut octets)?;
        return match octets.len() as u64 {
            ..=PIPE_BYTES_MAX => Ok(octets),
            _ => Err(io::Error::other(format!("the pipe delivers more than {}", ByteCount(PIPE_BYTES_MAX)))),
        };
    }
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::other("it is neither a file nor a pipe"));
    }
    file.read_to_end(&mut octets)?;
    Ok(octets)
}

/// SHA-256 of the file at `path`; `None` for an unreadable file, and for pipes, which can be read only once. The run
/// reports errors in them.
pub(super) fn digest(path: &Path) -> Option<Sha256> {
    let (mut digest, mut file) = (Sha256::new(), path.is_file().then(|| File::open(path).ok()).flatten()?);
    io::copy(&mut file, &mut digest).ok()?;
    Some(digest)
}

/// The files named by `scenario`, each once, with the digests of their contents.
pub(super) fn digests(scenario: &Scenario) -> Vec<FileDigest> {
    let named: BTreeSet<(PathBuf, PathBuf)> = named(scenario).collect();
    named.iter().map(|(path, place)| file_digest(path, place)).collect()
}

/// The file that a scenario names `path` and that lies at `place`.
pub(super) fn file_digest(path: &Path, place: &Path) -> FileDigest {
    FileDigest { path: path.display().to_string(), sha256: digest(place).map(hexadecimal) }
}

/// Files named by `scenario`: as it names them, and where they lie.
pub(super) fn named(scenario: &Scenario) -> impl Iterator<Item = (PathBuf, PathBuf)> + '_ {
    named_files(scenario).map(|path| (path.clone(), scenario.directory.join(path)))
}

/// Files named by `scenario`: a run depends on their contents as well as on the scenario.
pub(super) fn files(scenario: &Scenario) -> Vec<PathBuf> {
    named_files(scenario).map(|path| scenario.directory.join(path)).collect()
}

fn named_files(scenario: &Scenario) -> impl Iterator<Item = &PathBuf> {
    let links = scenario.relays.iter().flat_map(|relay| [relay.link(Hop::Cellular), relay.link(Hop::Wifi)]);
    let rates = links.chain([scenario.bottleneck.as_ref()]).flatten().flat_map(Link::rates);
    let traces = rates.filter_map(|(_, rate)| match rate {
        TextOr::Table(model) => model.trace.as_ref(),
        TextOr::Text(_) => None,
    });
    scenario.workload.path.iter().chain(traces)
}

/// Text in the file at `path`, or from a pipe.
///
/// # Errors
/// If it cannot be read, is a device, is a pipe with too much output, or is not text.
pub fn read_text(path: &Path) -> io::Result<String> {
    text(read(path)?)
}

/// The contents of a file as text.
///
/// # Errors
/// If they are not.
pub(crate) fn text(octets: Vec<u8>) -> io::Result<String> {
    String::from_utf8(octets).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// The error for the file at `path` that `field` names. Where the file lies beside the scenario instead of beside the
/// file that the scenario extends, it says so.
fn unreadable(scenario: &Scenario, field: String, path: &Path, source: io::Error) -> RunError {
    let inherited = path.strip_prefix(&scenario.directory).unwrap_or(path);
    let suffixes =
        (1..inherited.components().count()).map(|from| inherited.components().skip(from).collect::<PathBuf>());
    let beside = suffixes.map(|suffix| scenario.directory.join(suffix)).find(|other| other.is_file());
    let source = match beside {
        Some(other) => io::Error::new(source.kind(), format!("{source}, but {} can be", other.display())),
        None => source,
    };
    RunError::Unreadable { field, path: path.into(), source }
}

fn read_trace(scenario: &Scenario, path: &Path, field: String) -> Result<Trace, RunError> {
    match read_text(path) {
        Ok(text) => Trace::parse(&text).map_err(|source| RunError::Trace { field, path: path.into(), source }),
        Err(source) => Err(unreadable(scenario, field, path, source)),
    }
}
