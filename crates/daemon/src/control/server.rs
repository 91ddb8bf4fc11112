//! The daemon's end: every process that may open the socket may send requests.

use std::fs::{self, Permissions};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use linux::clock::Clock;
use linux::stop::Stop;
use linux::{Error, Result, run_folder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};
use units::{Duration, Instant};

use super::Place;
use super::message::{Answer, Request};

/// Time limit for a client to send its line, and again to read the answer. Other clients wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause after a failed `accept`. If the process is out of descriptors, `poll` would report the same waiting client
/// again at once.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Clients that may wait.
const BACKLOG: i32 = 128;
/// Maximum length of a request, octets.
const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// A socket, removed on drop.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
}

impl Server {
    /// Listens for the daemon whose engine is behind `device`. Its owner may connect, and the members of `group` if
    /// there is one.
    ///
    /// # Errors
    /// If the socket cannot be created or given to the group.
    pub fn open(place: &Place, device: &str, group: Option<u32>) -> Result<Self> {
        let path = place.socket(device);
        let cannot = |what: &str| format!("{what} {}, the control socket of this program", path.display());
        run_folder::make(place.folder()).map_err(Error::system(cannot("create")))?;
        // Sockets of killed daemons do no harm, but are of no use either.
        let _ = super::clean();
        // The device's name is ours now, so any previous daemon of this name is dead. The socket gets its name only
        // when it listens: other processes take one that refuses them for that of a killed daemon.
        let early = path.with_extension("early");
        let _ = fs::remove_file(&early);
        let listener = bind(&early).map_err(Error::system(cannot("listen on")))?;
        let mut server = Self { listener, path: early };
        if group.is_some() {
            let cannot = || Error::system(format!("set the permissions of {}", server.path.display()));
            chown(&server.path, None, group).map_err(cannot())?;
            fs::set_permissions(&server.path, Permissions::from_mode(0o660)).map_err(cannot())?;
        }
        server.listener.set_nonblocking(true).map_err(Error::system("set up a socket"))?;
        fs::rename(&server.path, &path).map_err(Error::system(cannot("rename")))?;
        server.path = path;
        Ok(server)
    }

    /// Answers requests one at a time, until `stop`.
    pub fn serve(&self, stop: &Stop, mut answer: impl FnMut(Request) -> Answer) {
        loop {
            let mut fds = [stop.as_fd(), self.listener.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            if !fds[0].revents().is_empty() {
                return;
            }
            match self.listener.accept() {
                // If the client is gone or sends nothing, only the client suffers.
                Ok((stream, _)) => drop(talk(&stream, &mut answer)),
                Err(_) => {
                    let _ = poll(&mut fds[..1], Some(&PAUSE));
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Listens on a socket that only its owner may use. A socket's mode is that of its descriptor, less the umask: set
/// afterwards, it would come too late for whoever connects at once.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(BACKLOG)?;
    Ok(OwnedFd::from(socket).into())
}

fn talk(stream: &UnixStream, answer: &mut impl FnMut(Request) -> Answer) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let mut line = String::new();
    BufReader::new(Hurried::new(stream)).take(REQUEST_BYTES_MAX).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => answer(request),
        Err(error) => {
            Answer::Refused(format!("cannot parse the request: {error}; use one version of anabranch at both ends"))
        }
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    Hurried::new(stream).write_all(&line)
}

/// A stream with a time limit of [`PATIENCE`] for everything together. With a limit per octet, a client that sends
/// octets one by one could block all others for hours.
struct Hurried<'a> {
    stream: &'a UnixStream,
    clock: Clock,
}

impl<'a> Hurried<'a> {
    fn new(stream: &'a UnixStream) -> Self {
        Self { stream, clock: Clock::start() }
    }

    fn left(&self) -> io::Result<std::time::Duration> {
        match (Instant::ZERO + PATIENCE).saturating_since(self.clock.now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            // The kernel counts in microseconds and takes zero for "no limit".
            left => Ok(std::time::Duration::from(left).max(std::time::Duration::from_millis(1))),
        }
    }
}

impl Read for Hurried<'_> {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(octets)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_socket_is_its_owners_from_the_first_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.sock");
        let _listener = bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn who_says_an_octet_at_a_time_keeps_nobody_waiting() {
        let path = std::env::temp_dir().join(format!("control-dribble-{}.sock", std::process::id()));
        let server = Server { listener: UnixListener::bind(&path).unwrap(), path: path.clone() };
        let stop = Stop::new().unwrap();
        let (done, is_done) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(|| server.serve(&stop, |_| Answer::Done(serde_json::json!("here"))));
            let mut slow = UnixStream::connect(&path).unwrap();
            slow.write_all(b"x").unwrap();
            scope.spawn(move || {
                while is_done.recv_timeout(std::time::Duration::from_millis(200)).is_err() {
                    let _ = slow.write(b"x");
                }
            });
            let mut other = UnixStream::connect(&path).unwrap();
            other.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            other.write_all(b"{\"request\":\"status\"}\n").unwrap();
            let mut heard = String::new();
            let read = BufReader::new(other).read_line(&mut heard);
            stop.handle().unwrap().stop();
            let _ = done.send(());
            assert!(heard.contains("here"), "{read:?}: {heard}");
        });
    }
}
