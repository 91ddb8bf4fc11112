//! Octets between a stream and one end of a pairing.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;

use bytes::Bytes;
use cooperation::link::pairing::PairingError;
use linux::Error;
use linux::clock::Clock;
use linux::stop::Stop;
use linux::wait::wait;
use units::{Duration, Instant};

/// Why devices are not paired.
#[derive(Debug)]
pub enum Broken {
    /// Somebody wants it to end.
    Stopped,
    /// This device cannot.
    Own(Error),
    /// The other one does not do its part.
    Pairing(PairingError),
    /// The connection failed, or took too long.
    Stream(io::Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

/// A connection with a time by which it must be over.
pub struct Exchange<'a> {
    stream: &'a TcpStream,
    stop: &'a Stop,
    clock: Clock,
    until: Instant,
}

impl<'a> Exchange<'a> {
    /// Over `stream`, which may take `patience`.
    pub fn new(stream: &'a TcpStream, stop: &'a Stop, patience: Duration) -> Result<Self, Broken> {
        stream.set_nonblocking(true).map_err(Broken::Stream)?;
        let _ = stream.set_nodelay(true);
        let clock = Clock::start();
        Ok(Self { stream, stop, clock, until: clock.now() + patience })
    }

    /// Moves octets until one end has what it wants.
    pub fn run<P, T>(
        &self,
        pairing: &mut P,
        take: fn(&mut P) -> Bytes,
        handle: fn(&mut P, &[u8]) -> Result<Option<T>, PairingError>,
    ) -> Result<T, Broken> {
        let mut room = [0; 512];
        loop {
            self.send(&take(pairing)).map_err(Broken::Stream)?;
            let octets = match (&mut &*self.stream).read(&mut room) {
                Ok(0) => return Err(Broken::Stream(ErrorKind::UnexpectedEof.into())),
                Ok(len) => &room[..len],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait()?;
                    continue;
                }
                Err(error) => return Err(Broken::Stream(error)),
            };
            match handle(pairing, octets) {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {}
                Err(error) => {
                    // The other end is told why, if there is a way to.
                    let _ = self.send(&take(pairing));
                    return Err(Broken::Pairing(error));
                }
            }
        }
    }

    /// Sends octets: few enough for the kernel to take them at once.
    pub fn send(&self, octets: &[u8]) -> io::Result<()> {
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
