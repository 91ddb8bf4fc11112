//! Sends requests to a running daemon.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use linux::{Error, Result};
use serde_json::Value;

use super::Place;
use super::message::{Answer, Request};

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the devices of the daemons that run here. Sockets left behind by killed daemons do not count.
///
/// # Errors
/// If there is no `/proc`.
pub fn running() -> Result<Vec<String>> {
    let place = Place::here()?;
    let lives = |path: &Path| match UnixStream::connect(path) {
        Ok(_) => true,
        // The daemon runs but refuses this process; `ask` reports that.
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    };
    Ok(place.sockets().into_iter().filter(|(_, path)| lives(path)).map(|(device, _)| device).collect())
}

/// Returns whether the daemon whose engine is behind `device` accepts requests from this process.
pub fn may_ask(device: &str) -> bool {
    Place::here().is_ok_and(|place| UnixStream::connect(place.socket(device)).is_ok())
}

/// Removes the sockets of killed daemons, in all network namespaces.
///
/// # Errors
/// If there is no `/proc`.
pub fn clean() -> Result<()> {
    Place::here()?.all_sockets().iter().for_each(|path| remove_if_dead(path));
    Ok(())
}

/// Another process may do the same first, or replace the socket by one that listens.
fn remove_if_dead(path: &Path) {
    let is_dead =
        |path: &Path| UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if !is_dead(path) {
        return;
    }
    let aside = path.with_extension(format!("dead-{}", std::process::id()));
    if fs::rename(path, &aside).is_ok() {
        let _ = if is_dead(&aside) { fs::remove_file(&aside) } else { fs::rename(&aside, path) };
    }
}

/// Sends a request to the daemon whose engine is behind `device`.
///
/// # Errors
/// In one line: if the daemon does not run, does not accept requests from this process, or refuses this one.
pub fn ask(device: &str, request: &Request) -> Result<Value> {
    let path = Place::here()?.socket(device);
    let answer = exchange(&path, request).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Error::Peer(format!("only root and the group of `join --control-group` may control {device} (try sudo)"))
        }
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Error::Peer(format!(
            "{device} is not running here{}",
            running()
                .ok()
                .filter(|all| !all.is_empty())
                .map_or(String::new(), |all| format!("; running: {}", all.join(", ")))
        )),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let later = if matches!(request, Request::Status) { "" } else { ", but may act on the request later" };
            Error::Peer(format!(
                "{device} does not answer: it is busy or stopped{later}; if this persists, kill its process"
            ))
        }
        _ => Error::system(format!("send a request to {device} at {}", path.display()))(error),
    })?;
    match answer {
        Answer::Done(value) => Ok(value),
        Answer::Refused(why) => Err(Error::Usage(why)),
    }
}

fn exchange(path: &Path, request: &Request) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}
