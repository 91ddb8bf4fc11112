//! The daemon's end: whoever may open the socket may ask.

use std::fs::{self, Permissions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use linux::stop::Stop;
use linux::{Error, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Place;
use super::message::{Answer, Request};

/// How long somebody who has connected may take for a line.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request, octets.
const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// A socket that is removed when it is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
}

impl Server {
    /// Listens for the daemon whose engine is behind `device`; its owner may ask, and `group` if there is one.
    ///
    /// # Errors
    /// If the socket cannot be made, or given to the group.
    pub fn open(place: &Place, device: &str, group: Option<u32>) -> Result<Self> {
        let path = place.socket(device);
        let cannot = |what: &str| format!("{what} {}, where this program is asked for its status", path.display());
        fs::create_dir_all(place.folder()).map_err(Error::system(cannot("create")))?;
        // What killed daemons have left is in nobody's way, but nobody's use either.
        let _ = super::clean();
        // Who had the device's name is dead: the name is ours now.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(Error::system(cannot("listen on")))?;
        let server = Self { listener, path };
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        let cannot = format!("protect {}", server.path.display());
        fs::set_permissions(&server.path, Permissions::from_mode(mode)).map_err(Error::system(cannot.clone()))?;
        if group.is_some() {
            chown(&server.path, None, group).map_err(Error::system(cannot))?;
        }
        server.listener.set_nonblocking(true).map_err(Error::system("set up a socket"))?;
        Ok(server)
    }

    /// Answers until `stop`, one at a time.
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
            if let Ok((stream, _)) = self.listener.accept() {
                // Who asked is gone, or says nothing: that is their affair.
                let _ = talk(&stream, &mut answer);
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn talk(stream: &UnixStream, answer: &mut impl FnMut(Request) -> Answer) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream).take(REQUEST_BYTES_MAX).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => answer(request),
        Err(error) => Answer::Refused(format!("not understood: {error}; is this the same version of anabranch?")),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    let mut stream = stream;
    stream.write_all(&line)
}
