//! Tests of the codec from outside: hand-made octets, and properties of arbitrary input.

mod malformed;
mod mptcp_vectors;
mod packets;
mod receiver_centric_vectors;
mod round_trip;
mod strategies;
mod tcp_vectors;

/// The octets written in `hex`; blanks are ignored.
fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn emitted(options: &wire::Options) -> Vec<u8> {
    let mut out = Vec::new();
    options.emit(&mut out);
    assert_eq!(out.len(), options.encoded_len());
    out
}
