//! Test data, computed on one side and checked on the other.

use std::io::{self, Read, Write};
use std::sync::OnceLock;

use bytes::Bytes;

/// FNV-1a over a stream, 64 bits: enough to detect octets that are lost, duplicated or swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    hash: u64,
    /// Octets so far.
    pub bytes: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, bytes: 0 }
    }
}

impl Digest {
    /// Adds octets of any length, eight at a time at multiples of eight in the stream.
    pub fn add(&mut self, octets: &[u8]) {
        for octet in octets {
            self.hash = (self.hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        }
        self.bytes += octets.len() as u64;
    }

    /// Returns the digest of the first `bytes` octets of the pattern.
    pub fn of_pattern(bytes: u64) -> Self {
        let mut digest = Self::default();
        send_pattern(&mut DigestSink(&mut digest), bytes).expect("adding cannot fail");
        digest
    }
}

struct DigestSink<'a>(&'a mut Digest);

impl Write for DigestSink<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.add(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The pattern's period does not divide a power of two, so a shift by a buffer is always detected.
const PERIOD: usize = 65521;

fn block() -> &'static Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    BLOCK.get_or_init(|| (0..PERIOD as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect())
}

/// Returns some octets of the pattern from `offset` on, at most `bytes_max`.
pub fn pattern_piece(offset: u64, bytes_max: u64) -> Bytes {
    let start = (offset % PERIOD as u64) as usize;
    let len = (PERIOD - start).min(usize::try_from(bytes_max).unwrap_or(usize::MAX));
    block().slice(start..start + len)
}

/// Returns the first `bytes` octets of the pattern.
pub fn pattern(bytes: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes);
    send_pattern(&mut all, bytes as u64).expect("memory takes everything");
    all
}

/// Writes the first `bytes` octets of the pattern.
///
/// # Errors
/// The errors of `to`.
pub fn send_pattern(to: &mut impl Write, bytes: u64) -> io::Result<()> {
    send_pattern_from(to, 0, bytes)
}

/// Writes the octets of the pattern from `sent` up to `bytes`.
///
/// # Errors
/// The errors of `to`.
pub fn send_pattern_from(to: &mut impl Write, mut sent: u64, bytes: u64) -> io::Result<()> {
    while sent < bytes {
        let piece = pattern_piece(sent, bytes - sent);
        to.write_all(&piece)?;
        sent += piece.len() as u64;
    }
    Ok(())
}

/// Reads to the end of the stream.
///
/// # Errors
/// The errors of `from`.
pub fn receive_all(from: &mut impl Read) -> io::Result<Digest> {
    receive_rest(from, Digest::default())
}

/// Reads to the end of a stream whose beginning is in `digest`.
///
/// # Errors
/// The errors of `from`.
pub fn receive_rest(from: &mut impl Read, mut digest: Digest) -> io::Result<Digest> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(digest),
            Ok(len) => digest.add(&buffer[..len]),
            // A socket with a time-out is interrupted when its process continues after a stop.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
