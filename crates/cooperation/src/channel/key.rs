//! The identities on a channel: key pairs of Curve25519 (RFC 7748).

use core::fmt;
use core::str::FromStr;

use super::noise;

/// Octets of a key.
pub const KEY_BYTES: usize = 32;

/// The public key by which others know a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// Creates the key from its octets.
    pub const fn new(octets: [u8; KEY_BYTES]) -> Self {
        Self(octets)
    }

    /// Returns the octets of the key.
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

/// The error for a text that is not a public key.
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

/// The static key pair of a device, used on all its channels.
#[derive(Clone)]
pub struct Identity {
    secret: [u8; KEY_BYTES],
    public: PublicKey,
}

impl Identity {
    /// Creates the key pair of a private key. The octets must be unpredictable; keep them as long as other devices
    /// should recognise this one.
    pub fn from_secret(secret: [u8; KEY_BYTES]) -> Self {
        Self { secret, public: PublicKey(noise::public_key(&secret)) }
    }

    /// Returns the public key, by which others know the device.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// Returns the secret that only this device and the one with the key `other` can compute; `None` if everybody can.
    pub(crate) fn shared_secret(&self, other: PublicKey) -> Option<[u8; KEY_BYTES]> {
        noise::shared_secret(&self.secret, other.octets())
    }

    pub(super) const fn secret(&self) -> &[u8; KEY_BYTES] {
        &self.secret
    }
}

/// Keeps private keys out of logs.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("public", &self.public).finish_non_exhaustive()
    }
}
