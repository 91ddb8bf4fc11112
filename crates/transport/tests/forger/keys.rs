//! A second implementation of RFC 8684's cryptography, for a peer that knows the keys and may lie.

use core::net::IpAddr;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use units::Dsn;
use wire::mptcp::{AddressId, Key, Token};

pub fn token(key: Key) -> Token {
    let digest = Sha256::digest(key.0.to_be_bytes());
    Token(u32::from_be_bytes(digest[..4].try_into().unwrap()))
}

/// Returns the data sequence number of the first octet of the stream.
pub fn first_dsn(key: Key) -> Dsn {
    let digest = Sha256::digest(key.0.to_be_bytes());
    Dsn(u64::from_be_bytes(digest[24..].try_into().unwrap())) + 1
}

fn hmac(sender: Key, receiver: Key, message: &[u8]) -> [u8; 32] {
    let key = [sender.0.to_be_bytes(), receiver.0.to_be_bytes()].concat();
    let mac = Hmac::<Sha256>::new_from_slice(&key).unwrap().chain_update(message);
    mac.finalize().into_bytes().into()
}

/// Returns the HMAC of a join, as sent by the side with `sender` and `sender_nonce`.
pub fn join(sender: Key, receiver: Key, sender_nonce: u32, receiver_nonce: u32) -> [u8; 32] {
    hmac(sender, receiver, &[sender_nonce.to_be_bytes(), receiver_nonce.to_be_bytes()].concat())
}

/// Returns the truncated HMAC of an ADD_ADDR.
pub fn address(sender: Key, receiver: Key, id: AddressId, address: IpAddr, port: Option<u16>) -> u64 {
    let octets = match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let message = [&[id.0], &octets[..], &port.unwrap_or(0).to_be_bytes()].concat();
    u64::from_be_bytes(hmac(sender, receiver, &message)[24..].try_into().unwrap())
}
