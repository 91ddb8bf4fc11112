//! Computes the tokens and HMACs by which a host proves that it knows a connection's keys (RFC 8684 sections 3.2 and
//! 3.4.1), from the keys seen in MP_CAPABLE. HMAC is implemented here from RFC 2104: the engine's library does not
//! check itself.

use core::net::IpAddr;

use sha2::{Digest, Sha256};
use units::Dsn;
use wire::mptcp::{AddAddr, Key, Token};

/// Block size of SHA-256, octets.
const BLOCK: usize = 64;

/// Token and initial data sequence number of a key (RFC 8684 section 3.2).
pub(super) fn derive(key: Key) -> (Token, Dsn) {
    let hash: [u8; 32] = Sha256::digest(key.0.to_be_bytes()).into();
    (Token((word(&hash[..8]) >> 32) as u32), Dsn(word(&hash[24..])))
}

fn word(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |word, octet| word << 8 | u64::from(*octet))
}

/// RFC 2104 with SHA-256, for keys no longer than a block.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut block = [with; BLOCK];
        block.iter_mut().zip(key).for_each(|(octet, of_key)| *octet ^= of_key);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

/// The keys of a connection; `own` is the key of the host that proves something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) own: Key,
    pub(super) peer: Key,
}

impl Keys {
    fn octets(self) -> [u8; 16] {
        (u128::from(self.own.0) << 64 | u128::from(self.peer.0)).to_be_bytes()
    }

    /// The HMAC of a join. A SYN/ACK carries its leftmost 64 bits, a third ACK the leftmost 160.
    pub(super) fn join(self, own_nonce: u32, peer_nonce: u32) -> [u8; 32] {
        hmac(&self.octets(), &(u64::from(own_nonce) << 32 | u64::from(peer_nonce)).to_be_bytes())
    }

    /// The leftmost 64 bits of [`Self::join`].
    pub(super) fn join_word(self, own_nonce: u32, peer_nonce: u32) -> u64 {
        word(&self.join(own_nonce, peer_nonce)[..8])
    }

    /// The HMAC of an announced address: the rightmost 64 bits, over the identifier, address and port.
    pub(super) fn address(self, add: &AddAddr) -> u64 {
        let mut message = vec![add.address_id.0];
        match add.address {
            IpAddr::V4(address) => message.extend(address.octets()),
            IpAddr::V6(address) => message.extend(address.octets()),
        }
        message.extend(add.port.unwrap_or(0).to_be_bytes());
        word(&hmac(&self.octets(), &message)[24..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231 section 4.3: key "Jefe".
    #[test]
    fn hmac_is_that_of_the_rfc() {
        let mac = hmac(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(word(&mac[..8]), 0x5bdc_c146_bf60_754e);
        assert_eq!(word(&mac[24..]), 0x9dec_58b9_64ec_3843);
    }

    #[test]
    fn a_key_gives_token_and_number() {
        assert_eq!(derive(Key(0)), (Token(0xaf55_70f5), Dsn(0xe5b2_328d_e0e8_3dfc)));
    }
}
