//! Keys and the values derived from them: tokens, initial data sequence numbers, and the HMACs that prove a join or an
//! announced address (RFC 8684 sections 3.1, 3.2 and 3.4.1).

use core::net::IpAddr;

use hmac::{Hmac, Mac};
use rand_core::RngCore;
use sha2::{Digest, Sha256};
use units::Dsn;
use wire::mptcp::{AddAddr, AddressId, Key, Token};

use crate::error::Violation;

/// Generates a key. `rng` must be cryptographic on a real network: anyone who guesses the key can join the connection.
pub fn generate(rng: &mut impl RngCore) -> Key {
    Key(rng.next_u64())
}

/// Returns the most significant 32 bits of the SHA-256 of `key` (RFC 8684 section 3.2).
pub fn token(key: Key) -> Token {
    let [first, second, third, fourth, ..] = sha256(key);
    Token(u32::from_be_bytes([first, second, third, fourth]))
}

/// Returns the initial data sequence number of the host with `key`: the least significant 64 bits of the SHA-256 of the
/// key (RFC 8684 section 3.1).
pub fn initial_dsn(key: Key) -> Dsn {
    Dsn(u64::from_be_bytes(*sha256(key).last_chunk().expect("a digest has 32 octets")))
}

fn sha256(key: Key) -> [u8; 32] {
    Sha256::digest(key.0.to_be_bytes()).into()
}

/// Proof that the peer of a new subflow knows both keys of the connection. Only [`KeyPair::verify_syn_ack`] and
/// [`KeyPair::verify_ack`] create it, so code that requires it cannot run without the check.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct VerifiedJoin(());

/// An announced address with a valid HMAC. Only [`KeyPair::verify_address`] creates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct VerifiedAddress {
    address_id: AddressId,
    address: IpAddr,
    port: Option<u16>,
}

impl VerifiedAddress {
    /// Returns its identifier.
    pub const fn address_id(&self) -> AddressId {
        self.address_id
    }

    /// Returns the address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the port, if it differs from that of the first subflow.
    pub const fn port(&self) -> Option<u16> {
        self.port
    }
}

/// The random numbers of one MP_JOIN exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonces {
    /// This side's random number.
    pub local: u32,
    /// The peer's random number.
    pub remote: u32,
}

/// The two keys of a connection, as seen from this side.
///
/// Every HMAC begins with the key and the random number of its sender, so both sides of a join use the same functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPair {
    /// This side's key.
    pub local: Key,
    /// The peer's key.
    pub remote: Key,
}

impl KeyPair {
    /// Returns the HMAC for this side's SYN/ACK of a join: its leftmost 64 bits (RFC 8684 section 3.2, figure 7).
    pub fn syn_ack_hmac(&self, nonces: Nonces) -> u64 {
        let hmac: [u8; 32] =
            join_mac(self.local, self.remote, nonces.local, nonces.remote).finalize().into_bytes().into();
        u64::from_be_bytes(*hmac.first_chunk().expect("an HMAC has 32 octets"))
    }

    /// Returns the HMAC for this side's third ACK of a join: its leftmost 160 bits (RFC 8684 section 3.2, figure 8).
    pub fn ack_hmac(&self, nonces: Nonces) -> [u8; 20] {
        let hmac: [u8; 32] =
            join_mac(self.local, self.remote, nonces.local, nonces.remote).finalize().into_bytes().into();
        *hmac.first_chunk().expect("an HMAC has 32 octets")
    }

    /// Checks the HMAC of the peer's SYN/ACK, in constant time.
    ///
    /// # Errors
    /// [`Violation::JoinHmac`]: reset the subflow (RFC 8684 section 3.2).
    pub fn verify_syn_ack(&self, nonces: Nonces, hmac: u64) -> Result<VerifiedJoin, Violation> {
        self.verify_join(nonces, &hmac.to_be_bytes())
    }

    /// Checks the HMAC of the peer's third ACK, in constant time.
    ///
    /// # Errors
    /// [`Violation::JoinHmac`]: reset the subflow (RFC 8684 section 3.2).
    pub fn verify_ack(&self, nonces: Nonces, hmac: &[u8; 20]) -> Result<VerifiedJoin, Violation> {
        self.verify_join(nonces, hmac)
    }

    fn verify_join(&self, nonces: Nonces, hmac: &[u8]) -> Result<VerifiedJoin, Violation> {
        let mac = join_mac(self.remote, self.local, nonces.remote, nonces.local);
        mac.verify_truncated_left(hmac).map(|()| VerifiedJoin(())).map_err(|_| Violation::JoinHmac)
    }

    /// Returns the HMAC for this side's ADD_ADDR: the rightmost 64 bits of the HMAC over identifier, address and port,
    /// which is zero if there is none (RFC 8684 section 3.4.1).
    pub fn address_hmac(&self, address_id: AddressId, address: IpAddr, port: Option<u16>) -> u64 {
        let mac = address_mac(self.local, self.remote, address_id, address, port);
        let hmac: [u8; 32] = mac.finalize().into_bytes().into();
        u64::from_be_bytes(*hmac.last_chunk().expect("an HMAC has 32 octets"))
    }

    /// Checks the HMAC of the peer's ADD_ADDR, in constant time. `None`, also for an echo, means: ignore the option, as
    /// RFC 8684 section 3.4.1 requires.
    pub fn verify_address(&self, option: &AddAddr) -> Option<VerifiedAddress> {
        let AddAddr { address_id, address, port, hmac } = *option;
        let mac = address_mac(self.remote, self.local, address_id, address, port);
        mac.verify_truncated_right(&hmac?.to_be_bytes()).ok()?;
        Some(VerifiedAddress { address_id, address, port })
    }
}

fn mac(sender: Key, receiver: Key) -> Hmac<Sha256> {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&sender.0.to_be_bytes());
    key[8..].copy_from_slice(&receiver.0.to_be_bytes());
    Hmac::new_from_slice(&key).expect("HMAC takes keys of any length")
}

fn join_mac(sender: Key, receiver: Key, sender_nonce: u32, receiver_nonce: u32) -> Hmac<Sha256> {
    mac(sender, receiver).chain_update(sender_nonce.to_be_bytes()).chain_update(receiver_nonce.to_be_bytes())
}

fn address_mac(sender: Key, receiver: Key, id: AddressId, address: IpAddr, port: Option<u16>) -> Hmac<Sha256> {
    let mac = mac(sender, receiver).chain_update([id.0]);
    let mac = match address {
        IpAddr::V4(v4) => mac.chain_update(v4.octets()),
        IpAddr::V6(v6) => mac.chain_update(v6.octets()),
    };
    mac.chain_update(port.unwrap_or(0).to_be_bytes())
}

#[cfg(test)]
mod tests {
    //! Expected values come from Python's hashlib and hmac.

    use super::*;

    const A: KeyPair = KeyPair { local: Key(0x0123_4567_89ab_cdef), remote: Key(0xfedc_ba98_7654_3210) };
    const B: KeyPair = KeyPair { local: A.remote, remote: A.local };
    const NONCES_OF_A: Nonces = Nonces { local: 0xa1b2_c3d4, remote: 0x0102_0304 };
    const NONCES_OF_B: Nonces = Nonces { local: NONCES_OF_A.remote, remote: NONCES_OF_A.local };

    const SYN_ACK_OF_B: u64 = 0x41a1_5d7b_1df9_2766;
    const ACK_OF_A: [u8; 20] = [
        0x88, 0x52, 0x6b, 0x3c, 0x0e, 0x6b, 0xdd, 0x0e, 0x29, 0xd5, 0x98, 0xb1, 0x3d, 0x18, 0x0e, 0x95, 0x1f, 0x1b,
        0x01, 0x1c,
    ];

    fn announced(last: &str, port: Option<u16>, hmac: u64) -> AddAddr {
        AddAddr { address_id: AddressId(2), address: last.parse().unwrap(), port, hmac: Some(hmac) }
    }

    #[test]
    fn tokens_and_initial_numbers() {
        assert_eq!(token(A.local), Token(0x55c5_3f5d));
        assert_eq!(initial_dsn(A.local), Dsn(0x5707_62cd_38be_9818));
        assert_eq!(token(A.remote), Token(0x18f9_781b));
        assert_eq!(initial_dsn(A.remote), Dsn(0x2808_18bf_0fa7_e28e));
        assert_eq!(token(Key(0)), Token(0xaf55_70f5));
    }

    #[test]
    fn a_join_opened_by_a() {
        assert_eq!(B.syn_ack_hmac(NONCES_OF_B), SYN_ACK_OF_B);
        assert_eq!(A.verify_syn_ack(NONCES_OF_A, SYN_ACK_OF_B), Ok(VerifiedJoin(())));
        assert_eq!(A.ack_hmac(NONCES_OF_A), ACK_OF_A);
        assert_eq!(B.verify_ack(NONCES_OF_B, &ACK_OF_A), Ok(VerifiedJoin(())));
    }

    #[test]
    fn a_join_with_any_bit_wrong_is_refused() {
        for bit in 0..64 {
            assert_eq!(A.verify_syn_ack(NONCES_OF_A, SYN_ACK_OF_B ^ (1 << bit)), Err(Violation::JoinHmac));
        }
        for bit in 0..160 {
            let mut hmac = ACK_OF_A;
            hmac[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(B.verify_ack(NONCES_OF_B, &hmac), Err(Violation::JoinHmac));
        }
        let replayed = Nonces { local: NONCES_OF_A.local + 1, ..NONCES_OF_A };
        assert_eq!(A.verify_syn_ack(replayed, SYN_ACK_OF_B), Err(Violation::JoinHmac));
    }

    #[test]
    fn an_hmac_reflected_to_its_sender_is_refused() {
        // Keys and nonces have an order: an HMAC sent by A proves nothing to A.
        assert_eq!(A.verify_ack(NONCES_OF_A, &A.ack_hmac(NONCES_OF_A)), Err(Violation::JoinHmac));
    }

    #[test]
    fn announced_addresses_of_both_families() {
        let v4: IpAddr = "192.0.2.7".parse().unwrap();
        let v6: IpAddr = "2001:db8::7".parse().unwrap();
        assert_eq!(A.address_hmac(AddressId(2), v4, None), 0xbe58_6234_50dd_3801);
        assert_eq!(A.address_hmac(AddressId(2), v4, Some(8443)), 0xd180_636b_df93_53d8);
        assert_eq!(B.address_hmac(AddressId(5), v6, None), 0xa082_75c1_fe2b_5df5);
    }

    #[test]
    fn an_announcement_is_believed_only_if_nothing_was_changed() {
        let verified = B.verify_address(&announced("192.0.2.7", Some(8443), 0xd180_636b_df93_53d8)).unwrap();
        assert_eq!(verified.address_id(), AddressId(2));
        assert_eq!(verified.address(), "192.0.2.7".parse::<IpAddr>().unwrap());
        assert_eq!(verified.port(), Some(8443));
        let refused = [
            announced("192.0.2.8", Some(8443), 0xd180_636b_df93_53d8),
            announced("192.0.2.7", Some(8444), 0xd180_636b_df93_53d8),
            announced("192.0.2.7", None, 0xd180_636b_df93_53d8),
            announced("192.0.2.7", Some(8443), 0xd180_636b_df93_53d9),
            AddAddr { hmac: None, ..announced("192.0.2.7", Some(8443), 0) },
        ];
        assert!(refused.iter().all(|option| B.verify_address(option).is_none()));
        let own = announced("192.0.2.7", Some(8443), 0xd180_636b_df93_53d8);
        assert!(A.verify_address(&own).is_none(), "reflected to its sender");
    }

    #[test]
    fn keys_come_from_the_generator() {
        let draw = |seed| generate(&mut units::Prng::new(seed));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
