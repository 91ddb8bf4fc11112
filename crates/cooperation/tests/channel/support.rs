//! Ends of channels, and the exchange between them.

use bytes::{Bytes, BytesMut};
use cooperation::channel::codec::{Frame, encode};
use cooperation::channel::secure::{BODY_BYTES_MAX, SecureChannel};
use cooperation::channel::{
    AuthenticationError, ChannelEnd, ChannelError, DestinationEnd, Identity, RelayEnd, Role, SourceEnd, ToSourceEnd,
};

/// Seeds of private keys.
pub const DESTINATION: u8 = 0x11;
pub const RELAY: u8 = 0x22;
pub const STRANGER: u8 = 0x33;

pub fn identity(secret: u8) -> Identity {
    Identity::from_secret([secret; 32])
}

pub fn encoded<F: Frame>(frame: &F) -> Vec<u8> {
    let mut out = BytesMut::new();
    encode(frame, &mut out);
    out.to_vec()
}

/// Returns the destination's end of a new channel to the relay, and the relay's end.
pub fn closed_ends(seed: u8) -> (DestinationEnd, RelayEnd) {
    let (destination, relay) = (identity(DESTINATION), identity(RELAY));
    (
        DestinationEnd::initiator(&destination, relay.public(), [seed; 32]),
        RelayEnd::responder(&relay, [seed ^ 0xff; 32]),
    )
}

/// Returns both ends of a channel after their handshake.
pub fn ends(seed: u8) -> (DestinationEnd, RelayEnd) {
    let (mut destination, mut relay) = closed_ends(seed);
    shake_hands(&mut destination, &mut relay).unwrap();
    (destination, relay)
}

/// Returns both ends of a channel to the source after their handshake.
pub fn source_ends() -> (ToSourceEnd, SourceEnd) {
    let (destination, source) = (identity(DESTINATION), identity(STRANGER));
    let mut to_source = ToSourceEnd::initiator(&destination, source.public(), [5; 32]);
    let mut source = SourceEnd::responder(&source, [6; 32]);
    shake_hands(&mut to_source, &mut source).unwrap();
    (to_source, source)
}

/// Carries the octets of both ends across until neither sends any.
pub fn shake_hands<A: Frame, B: Frame>(
    one: &mut ChannelEnd<A, B>,
    other: &mut ChannelEnd<B, A>,
) -> Result<(), ChannelError> {
    for _ in 0..3 {
        assert!(other.receive(&mut one.take_octets())?.is_none());
        assert!(one.receive(&mut other.take_octets())?.is_none());
    }
    Ok(())
}

/// Returns all frames in `octets`, and the error that ended them.
pub fn received<A: Frame, B: Frame>(end: &mut ChannelEnd<A, B>, octets: &[u8]) -> (Vec<B>, Option<ChannelError>) {
    let (mut input, mut frames) = (Bytes::copy_from_slice(octets), Vec::new());
    loop {
        match end.receive(&mut input) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

/// Returns the record of each frame.
pub fn records<A: Frame, B: Frame>(end: &mut ChannelEnd<A, B>, frames: &[A]) -> Vec<Bytes> {
    let record = |frame| {
        assert!(end.send(frame));
        end.take_octets()
    };
    frames.iter().map(record).collect()
}

/// As [`ends`], for arbitrary octets instead of frames.
pub fn secure_pair(seed: u8) -> (SecureChannel, SecureChannel) {
    let (destination, relay) = (identity(DESTINATION), identity(RELAY));
    let role = Role::DestinationToRelay;
    let mut destination = SecureChannel::initiator(role, &destination, relay.public(), [seed; 32]);
    let mut relay = SecureChannel::responder(Role::Relay, &relay, [seed ^ 0xff; 32]);
    assert_eq!(opened(&mut relay, &destination.take_octets()), Ok(None));
    assert_eq!(opened(&mut destination, &relay.take_octets()), Ok(None));
    assert_eq!(opened(&mut relay, &destination.take_octets()), Ok(None));
    assert!(destination.is_open() && relay.is_open());
    (destination, relay)
}

/// Returns the first body in `octets`.
pub fn opened(channel: &mut SecureChannel, octets: &[u8]) -> Result<Option<Vec<u8>>, AuthenticationError> {
    let mut room = [0; BODY_BYTES_MAX];
    let body = channel.open(&mut Bytes::copy_from_slice(octets), &mut room)?;
    Ok(body.map(<[u8]>::to_vec))
}

pub fn sealed(channel: &mut SecureChannel, body: &[u8]) -> Bytes {
    assert!(channel.seal(body));
    channel.take_octets()
}
