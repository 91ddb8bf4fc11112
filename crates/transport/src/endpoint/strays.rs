//! Data for subflows that no longer exist: an owner that gave up a silent subflow learns that it was only slow.

use core::net::SocketAddr;

use units::Instant;
use wire::Segment;

use super::Endpoint;

/// Maximum number of strays that wait for the owner; further ones are not recorded.
const STRAYS_MAX: usize = 16;

/// Data that arrived between two ends without a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Address of this end.
    pub local: SocketAddr,
    /// Address of the peer's end.
    pub remote: SocketAddr,
    /// When the first of the data arrived.
    pub at: Instant,
    /// Number of octets.
    pub bytes: u64,
}

impl Endpoint {
    /// Takes the strays since the last call, in order of arrival, at most 16. Anyone can send some: they say nothing
    /// about ends that the caller does not remember.
    pub fn take_strays(&mut self) -> Vec<Stray> {
        core::mem::take(&mut self.strays)
    }

    pub(super) fn note_stray(&mut self, segment: &Segment, at: Instant) {
        let (local, remote) = (segment.dst, segment.src);
        let bytes = segment.payload.len() as u64;
        if bytes == 0 {
            return;
        }
        if let Some(known) = self.strays.iter_mut().find(|stray| (stray.local, stray.remote) == (local, remote)) {
            known.bytes += bytes;
        } else if self.strays.len() < STRAYS_MAX {
            self.strays.push(Stray { local, remote, at, bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EndpointConfig;
    use wire::{Flags, Payload};

    fn segment(port: u16, payload: &'static [u8]) -> Segment {
        let mut segment = Segment::new(([10, 0, 0, 2], 80).into(), ([10, 0, 0, 1], port).into());
        segment.flags = Flags::ACK;
        segment.payload = Payload::from(payload.to_vec());
        segment
    }

    #[test]
    fn data_between_unknown_ends_are_told_once() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        endpoint.handle_segment(segment(1, b""), Instant::from_secs(1));
        endpoint.handle_segment(segment(1, b"late"), Instant::from_secs(2));
        endpoint.handle_segment(segment(1, b"later"), Instant::from_secs(3));
        let stray = |port, at_s| Stray {
            local: ([10, 0, 0, 1], port).into(),
            remote: ([10, 0, 0, 2], 80).into(),
            at: Instant::from_secs(at_s),
            bytes: 9,
        };
        assert_eq!(endpoint.take_strays(), [stray(1, 2)]);
        assert_eq!(endpoint.take_strays(), []);
        for port in 1..100 {
            endpoint.handle_segment(segment(port, b"late"), Instant::from_secs(4));
        }
        assert_eq!(endpoint.take_strays().len(), STRAYS_MAX);
    }
}
