//! Moves octets between a stream and one end of a pairing.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;

use cooperation::link::pairing::{Borrower, Pairing, PairingError, Relay};
use linux::Error;
use linux::clock::Clock;
use linux::stop::Stop;
use linux::wait::wait;
use units::{Duration, Instant};

/// Why a pairing failed.
#[derive(Debug)]
pub enum Broken {
    /// The user stopped it.
    Stopped,
    /// An error of this device.
    Own(Error),
    /// The other device did not follow the protocol or does not know the code.
    Pairing(PairingError),
    /// The connection failed or timed out.
    Stream(io::Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

/// A connection with a deadline.
pub struct Exchange<'a> {
    stream: &'a TcpStream,
    stop: &'a Stop,
    clock: Clock,
    until: Instant,
}

impl<'a> Exchange<'a> {
    /// Wraps `stream`, with a time limit of `patience` for the whole exchange.
    pub fn new(stream: &'a TcpStream, stop: &'a Stop, patience: Duration) -> Result<Self, Broken> {
        stream.set_nonblocking(true).map_err(Broken::Stream)?;
        let _ = stream.set_nodelay(true);
        let clock = Clock::start();
        Ok(Self { stream, stop, clock, until: clock.now() + patience })
    }

    /// Moves octets until the pairing is complete, and returns the relay.
    pub fn run(&self, pairing: &mut Pairing<Borrower>) -> Result<Relay, Broken> {
        let mut room = [0; 512];
        loop {
            self.send(&pairing.take_octets()).map_err(Broken::Stream)?;
            let octets = match (&mut &*self.stream).read(&mut room) {
                Ok(0) => return Err(Broken::Stream(ErrorKind::UnexpectedEof.into())),
                Ok(len) => &room[..len],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait()?;
                    continue;
                }
                Err(error) => return Err(Broken::Stream(error)),
            };
            match pairing.handle_octets(octets) {
                Ok(Some(relay)) => return Ok(relay),
                Ok(None) => {}
                Err(error) => {
                    // Tell the other end why, if possible.
                    let _ = self.send(&pairing.take_octets());
                    return Err(Broken::Pairing(error));
                }
            }
        }
    }

    /// Sends octets. They are few enough for the kernel to take them at once.
    fn send(&self, octets: &[u8]) -> io::Result<()> {
        (&mut &*self.stream).write_all(octets)
    }

    fn wait(&self) -> Result<(), Broken> {
        let mut ready = Vec::new();
        if !wait(&self.clock, Some(self.until), self.stop.as_fd(), [self.stream.as_fd()], &mut ready)? {
            return Err(Broken::Stopped);
        }
        if self.clock.now() >= self.until { Err(Broken::Stream(ErrorKind::TimedOut.into())) } else { Ok(()) }
    }
}
