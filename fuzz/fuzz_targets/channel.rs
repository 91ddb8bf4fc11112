//! Feeds arbitrary octets to the channels of the control plane, in every state from the first octet on. Nothing panics,
//! nothing beyond a record is kept, nobody is mistaken for the peer, no unsealed record passes, and a parsed frame
//! writes the same octets again.
//!
//! Input: the length of the cuts, the stage of the handshake, then the octets.

#![no_main]

use bytes::{Bytes, BytesMut};
use cooperation::channel::codec::{Frame, decode, encode};
use cooperation::channel::from_source::FromSource;
use cooperation::channel::secure::{BODY_BYTES_MAX, KEPT_BYTES_MAX, SecureChannel};
use cooperation::channel::to_destination::ToDestination;
use cooperation::channel::to_relay::ToRelay;
use cooperation::channel::to_source::ToSource;
use cooperation::channel::{
    ChannelEnd, DestinationEnd, Identity, PREFIX_BYTES, RelayEnd, Role, SourceEnd, ToSourceEnd,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&[cut, stage], octets)) = input.split_first_chunk() else { return };
    assert_survives::<ToDestination>(octets);
    assert_survives::<ToRelay>(octets);
    assert_survives::<ToSource>(octets);
    assert_survives::<FromSource>(octets);
    let cut = usize::from(cut).max(1);
    let stage = Stage::of(stage);
    let (destination, relay) = (Identity::from_secret([1; 32]), Identity::from_secret([2; 32]));
    if stage.is_sealed() {
        return assert_frames_are_checked(octets, &destination, &relay);
    }
    let to_relay = DestinationEnd::initiator(&destination, relay.public(), [3; 32]);
    assert_nothing_is_forged(to_relay, RelayEnd::responder(&relay, [4; 32]), stage, octets, cut);
    let to_source = ToSourceEnd::initiator(&destination, relay.public(), [3; 32]);
    assert_nothing_is_forged(to_source, SourceEnd::responder(&relay, [4; 32]), stage, octets, cut);
});

/// Stage of the handshake when the octets arrive.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Start,
    Prefix,
    Message,
    Open,
    /// Open, and the peer itself sends an invalid frame.
    Sealed,
}

impl Stage {
    fn of(octet: u8) -> Self {
        [Self::Start, Self::Prefix, Self::Message, Self::Open, Self::Sealed][usize::from(octet) % 5]
    }

    fn is_sealed(self) -> bool {
        self == Self::Sealed
    }
}

fn assert_survives<F: Frame>(octets: &[u8]) {
    if let Ok(frame) = decode::<F>(octets) {
        let mut written = BytesMut::new();
        encode(&frame, &mut written);
        assert_eq!(written, octets);
    }
}

/// Feeds octets that neither peer wrote to both ends of a channel.
fn assert_nothing_is_forged<A: Frame, B: Frame>(
    mut initiator: ChannelEnd<A, B>,
    mut responder: ChannelEnd<B, A>,
    stage: Stage,
    octets: &[u8],
    cut: usize,
) {
    advance(&mut initiator, &mut responder, stage);
    assert_end_stays(&mut initiator, octets, cut);
    assert_end_stays(&mut responder, octets, cut);
}

/// Exchanges the output of both ends until `stage`.
fn advance<A: Frame, B: Frame>(initiator: &mut ChannelEnd<A, B>, responder: &mut ChannelEnd<B, A>, stage: Stage) {
    let heard = match stage {
        Stage::Start => return,
        Stage::Prefix => {
            let (mut first, mut prefix) = (initiator.take_octets(), responder.take_octets());
            responder.receive(&mut first.split_to(PREFIX_BYTES)).is_ok()
                && initiator.receive(&mut prefix.split_to(PREFIX_BYTES)).is_ok()
        }
        Stage::Message => responder.receive(&mut initiator.take_octets()).is_ok(),
        Stage::Open | Stage::Sealed => {
            responder.receive(&mut initiator.take_octets()).is_ok()
                && initiator.receive(&mut responder.take_octets()).is_ok()
                && responder.receive(&mut initiator.take_octets()).is_ok()
        }
    };
    assert!(heard);
}

fn assert_end_stays<A: Frame, B: Frame>(end: &mut ChannelEnd<A, B>, octets: &[u8], cut: usize) {
    let was_open = end.is_open();
    for chunk in octets.chunks(cut) {
        let frame = end.receive(&mut Bytes::copy_from_slice(chunk));
        assert!(!matches!(frame, Ok(Some(_))), "a frame that nobody wrote");
        assert!(end.kept_bytes() <= KEPT_BYTES_MAX);
        if frame.is_err() {
            assert!(end.peer().is_none() && !end.is_open());
            return;
        }
        assert_eq!(end.is_open(), was_open, "a handshake with nobody");
    }
}

/// A broken peer that has its key: its record contains anything.
fn assert_frames_are_checked(octets: &[u8], destination: &Identity, relay: &Identity) {
    let body = &octets[..octets.len().min(BODY_BYTES_MAX)];
    if body.is_empty() {
        return;
    }
    let mut to_relay = DestinationEnd::initiator(destination, relay.public(), [3; 32]);
    let mut broken = SecureChannel::responder(Role::Relay, relay, [4; 32]);
    let mut room = [0; BODY_BYTES_MAX];
    assert_eq!(broken.open(&mut to_relay.take_octets(), &mut room), Ok(None));
    assert_eq!(to_relay.receive(&mut broken.take_octets()).ok(), Some(None));
    assert_eq!(broken.open(&mut to_relay.take_octets(), &mut room), Ok(None));
    assert!(broken.seal(body));
    let frame = to_relay.receive(&mut broken.take_octets());
    assert_eq!(frame.ok(), decode(body).ok().map(Some));
}
