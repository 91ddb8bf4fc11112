//! The Noise handshake, by `snow`, with two additions: randomness comes from a seed, and public keys whose shared
//! secrets everybody knows are refused.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};

use super::key::{Identity, KEY_BYTES, PublicKey};

/// SHA-256, because the engine has it already.
const PROTOCOL: &str = "Noise_IK_25519_ChaChaPoly_SHA256";
/// The pattern for ends that share a key but do not know each other's static keys yet.
const INTRODUCTION: &str = "Noise_XXpsk0_25519_ChaChaPoly_SHA256";
/// Octets of an authentication tag (RFC 8439 section 2.5).
pub(crate) const TAG_BYTES: usize = 16;
/// e, s, es, ss: an ephemeral key, our own key encrypted, and nothing else.
pub(crate) const FIRST_MESSAGE_BYTES: usize = KEY_BYTES + (KEY_BYTES + TAG_BYTES) + TAG_BYTES;
/// e, ee, se: an ephemeral key, and nothing else.
pub(crate) const SECOND_MESSAGE_BYTES: usize = KEY_BYTES + TAG_BYTES;

/// Creates the initiator's handshake.
pub(crate) fn initiator(identity: &Identity, peer: PublicKey, prologue: &[u8], seed: [u8; 32]) -> HandshakeState {
    let builder = builder(identity, prologue, seed).and_then(|builder| builder.remote_public_key(peer.octets()));
    // The builder fails only for keys that are missing, set twice, or of the wrong length.
    builder.and_then(Builder::build_initiator).expect("all keys are there, each once")
}

/// Creates the responder's handshake.
pub(crate) fn responder(identity: &Identity, prologue: &[u8], seed: [u8; 32]) -> HandshakeState {
    builder(identity, prologue, seed).and_then(Builder::build_responder).expect("all keys are there, each once")
}

/// Creates the handshake in which two ends that share a key exchange their static keys, encrypted under that key.
pub(crate) fn introduction(
    initiates: bool,
    identity: &Identity,
    shared: &[u8; 32],
    prologue: &[u8],
    seed: [u8; 32],
) -> HandshakeState {
    let builder = builder_of(INTRODUCTION, identity, prologue, seed).and_then(|builder| builder.psk(0, shared));
    let build = if initiates { Builder::build_initiator } else { Builder::build_responder };
    builder.and_then(build).expect("all keys are there, each once")
}

fn builder<'a>(identity: &'a Identity, prologue: &'a [u8], seed: [u8; 32]) -> Result<Builder<'a>, Error> {
    builder_of(PROTOCOL, identity, prologue, seed)
}

fn builder_of<'a>(
    protocol: &str,
    identity: &'a Identity,
    prologue: &'a [u8],
    seed: [u8; 32],
) -> Result<Builder<'a>, Error> {
    let builder = Builder::with_resolver(protocol.parse()?, Box::new(Seeded { seed }));
    builder.local_private_key(identity.secret())?.prologue(prologue)
}

/// Computes the public key of a private one.
pub(super) fn public_key(secret: &[u8; KEY_BYTES]) -> [u8; KEY_BYTES] {
    let mut pair = DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("the curve is built in");
    pair.set(secret);
    pair.pubkey().try_into().expect("a key has its length")
}

/// Computes the secret that the owners of two keys share; `None` for a public key of small order.
pub(super) fn shared_secret(secret: &[u8; KEY_BYTES], public: &[u8; KEY_BYTES]) -> Option<[u8; KEY_BYTES]> {
    let mut pair = Contributory(DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("the curve is built in"));
    pair.set(secret);
    let mut shared = [0; KEY_BYTES];
    pair.dh(public, &mut shared).ok().map(|()| shared)
}

/// The usual primitives, with randomness from the caller's seed: a run is a function of its seed.
struct Seeded {
    seed: [u8; 32],
}

impl CryptoResolver for Seeded {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Drawn(ChaCha12Rng::from_seed(self.seed))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice).map(|dh| Box::new(Contributory(dh)) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

struct Drawn(ChaCha12Rng);

impl Random for Drawn {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        self.0.fill_bytes(dest);
        Ok(())
    }
}

/// Refuses public keys of small order: their shared secret is zero whatever the private key (RFC 7748 section 6.1), so
/// anybody could pass for their owner.
struct Contributory(Box<dyn Dh>);

impl Dh for Contributory {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn pub_len(&self) -> usize {
        self.0.pub_len()
    }

    fn priv_len(&self) -> usize {
        self.0.priv_len()
    }

    fn set(&mut self, privkey: &[u8]) {
        self.0.set(privkey);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        self.0.generate(rng)
    }

    fn pubkey(&self) -> &[u8] {
        self.0.pubkey()
    }

    fn privkey(&self) -> &[u8] {
        self.0.privkey()
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        self.0.dh(pubkey, out)?;
        // Reads all octets, so the time taken reveals nothing about the secret.
        let any = out[..self.dh_len()].iter().fold(0, |any, octet| any | octet);
        if any == 0 { Err(Error::Dh) } else { Ok(()) }
    }
}
