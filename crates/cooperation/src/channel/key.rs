//! Who is who on a channel: key pairs of Curve25519 (RFC 7748).

use core::fmt;
use core::str::FromStr;

use super::noise;

/// Octets of a key.
pub const KEY_BYTES: usize = 32;

/// What others know a device by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// The key with these octets.
    pub const fn new(octets: [u8; KEY_BYTES]) -> Self {
        Self(octets)
    }

    /// Its octets.
    pub const fn octets(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

/// 64 hexadecimal digits.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// A text is no public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a public key has {} hexadecimal digits: copy it whole, as the other device shows it", 2 * KEY_BYTES)]
pub struct NoKey;

impl FromStr for PublicKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        let mut octets = [0; KEY_BYTES];
        if text.len() != 2 * KEY_BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NoKey);
        }
        for (at, octet) in octets.iter_mut().enumerate() {
            *octet = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| NoKey)?;
        }
        Ok(Self(octets))
    }
}

/// The static key pair of a device, on all its channels.
#[derive(Clone)]
pub struct Identity {
    secret: [u8; KEY_BYTES],
    public: PublicKey,
}

impl Identity {
    /// The key pair of a private key, whose octets must be unpredictable and are kept for as long as others shall know this
    /// device.
    pub fn from_secret(secret: [u8; KEY_BYTES]) -> Self {
        Self { secret, public: PublicKey(noise::public_key(&secret)) }
    }

    /// What others know the device by.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    pub(super) const fn secret(&self) -> &[u8; KEY_BYTES] {
        &self.secret
    }
}

/// Private keys stay out of logs.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("public", &self.public).finish_non_exhaustive()
    }
}
