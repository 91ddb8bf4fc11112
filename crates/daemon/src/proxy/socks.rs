//! SOCKS version 5 without authentication, CONNECT only (RFC 1928). Sans-IO: octets and values.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::target::{Host, Target};

/// The first octet of every message.
pub const VERSION: u8 = 5;
/// The first octet of version 4, which is refused in its own format.
pub const VERSION_4: u8 = 4;
/// The refusal of version 4.
pub const REFUSAL_4: [u8; 8] = [0, 91, 0, 0, 0, 0, 0, 0];

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

/// Reply codes (section 6) that follow from the request alone.
const GENERAL_FAILURE: u8 = 1;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_TYPE_NOT_SUPPORTED: u8 = 8;

/// What the client's octets begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// An incomplete message.
    More,
    /// A message, and its length in octets.
    Whole(T, usize),
    /// A message that ends the conversation, with the answer to it.
    Refuse(Vec<u8>),
}

/// Reads the methods that a client offers (section 3). The answer to an acceptable offer is [`METHOD_CHOSEN`].
pub fn read_methods(octets: &[u8]) -> Step<()> {
    match octets {
        [first, ..] if *first != VERSION => Step::Refuse(vec![VERSION, NO_METHOD]),
        [_, count, rest @ ..] => match rest.get(..usize::from(*count)) {
            Some(methods) if methods.contains(&NO_AUTHENTICATION) => Step::Whole((), 2 + methods.len()),
            Some(_) => Step::Refuse(vec![VERSION, NO_METHOD]),
            None => Step::More,
        },
        _ => Step::More,
    }
}

/// The answer to an offer that includes "no authentication".
pub const METHOD_CHOSEN: [u8; 2] = [VERSION, NO_AUTHENTICATION];

/// Reads a request (section 4).
pub fn read_request(octets: &[u8]) -> Step<Target> {
    let refuse = |code| Step::Refuse(reply(code, None));
    // Errors are reported at once, since the rest of such a request may have any form.
    match octets {
        [version, ..] if *version != VERSION => return refuse(GENERAL_FAILURE),
        [_, command, ..] if *command != CONNECT => return refuse(COMMAND_NOT_SUPPORTED),
        _ => {}
    }
    let Some((kind, rest)) = octets.get(3..).and_then(<[u8]>::split_first) else { return Step::More };
    let (host, after) = match (kind, rest) {
        (1, [a, b, c, d, after @ ..]) => (Ok(Host::Ip(IpAddr::V4(Ipv4Addr::new(*a, *b, *c, *d)))), after),
        (3, [len, after @ ..]) if after.len() >= usize::from(*len) => {
            let (name, after) = after.split_at(usize::from(*len));
            (core::str::from_utf8(name).map_err(|_| "not ASCII").and_then(Host::parse), after)
        }
        (4, rest) if rest.len() >= 16 => {
            let (address, after) = rest.split_at(16);
            let octets: [u8; 16] = address.try_into().unwrap_or_default();
            (Ok(Host::Ip(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical())), after)
        }
        (1 | 3 | 4, _) => return Step::More,
        _ => return refuse(ADDRESS_TYPE_NOT_SUPPORTED),
    };
    let [high, low, left @ ..] = after else { return Step::More };
    match (host, u16::from_be_bytes([*high, *low])) {
        (Ok(host), port) if port != 0 => Step::Whole(Target { host, port }, octets.len() - left.len()),
        _ => refuse(GENERAL_FAILURE),
    }
}

/// Builds a reply (section 6). Code zero is success; `bound` is then the local address of the connection.
pub fn reply(code: u8, bound: Option<SocketAddr>) -> Vec<u8> {
    let mut octets = vec![VERSION, code, 0];
    let bound = bound.unwrap_or(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0));
    match bound.ip() {
        IpAddr::V4(ip) => {
            octets.push(1);
            octets.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            octets.push(4);
            octets.extend(ip.octets());
        }
    }
    octets.extend(bound.port().to_be_bytes());
    octets
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text, None).unwrap()
    }

    #[test]
    fn offers_are_read_however_they_are_cut() {
        let offer = [5, 2, 2, 0, 99];
        for cut in 0..4 {
            assert_eq!(read_methods(&offer[..cut]), Step::More, "{cut}");
        }
        assert_eq!(read_methods(&offer), Step::Whole((), 4));
        assert_eq!(read_methods(&[5, 1, 2]), Step::Refuse(vec![5, 0xff]), "only with a password");
        assert_eq!(read_methods(&[5, 0]), Step::Refuse(vec![5, 0xff]), "no method at all");
    }

    #[test]
    fn requests_are_read_however_they_are_cut() {
        let name = [&[5, 1, 0, 3, 11][..], b"Example.org", &[1, 187]].concat();
        let v4 = [5, 1, 0, 1, 10, 0, 0, 1, 0, 80].to_vec();
        let v6 = [&[5, 1, 0, 4, 0x20, 1, 0xd, 0xb8][..], &[0; 11], &[1, 0, 22]].concat();
        for (octets, expected) in [(name, "example.org:443"), (v4, "10.0.0.1:80"), (v6, "[2001:db8::1]:22")] {
            for cut in 0..octets.len() {
                assert_eq!(read_request(&octets[..cut]), Step::More, "{expected} {cut}");
            }
            let longer = [&octets[..], b"GET /"].concat();
            assert_eq!(read_request(&longer), Step::Whole(target(expected), octets.len()));
        }
    }

    #[test]
    fn refusals_have_their_codes() {
        let code = |octets: &[u8]| match read_request(octets) {
            Step::Refuse(reply) => reply[1],
            step => panic!("{step:?}"),
        };
        assert_eq!(code(&[5, 2]), 7, "BIND");
        assert_eq!(code(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0]), 7, "UDP ASSOCIATE");
        assert_eq!(code(&[5, 1, 0, 2]), 8);
        assert_eq!(code(&[4]), 1);
        assert_eq!(code(&[5, 1, 0, 1, 10, 0, 0, 1, 0, 0]), 1, "port 0");
        assert_eq!(code(&[5, 1, 0, 3, 1, b'/', 0, 80]), 1, "no name");
        assert_eq!(code(&[5, 1, 0, 3, 0, 0, 80]), 1, "an empty name");
    }

    #[test]
    fn replies_carry_the_address() {
        assert_eq!(reply(5, None), [5, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(reply(0, Some("10.1.0.2:258".parse().unwrap())), [5, 0, 0, 1, 10, 1, 0, 2, 1, 2]);
        assert_eq!(reply(0, Some("[::2]:1".parse().unwrap())).len(), 22);
    }

    proptest! {
        #[test]
        fn any_octets_are_taken_calmly(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            for step in [read_request(&octets).into_len(), read_methods(&octets).into_len()] {
                prop_assert!(step.unwrap_or(0) <= octets.len());
            }
        }
    }

    impl<T> Step<T> {
        fn into_len(self) -> Option<usize> {
            match self {
                Self::Whole(_, len) => Some(len),
                _ => None,
            }
        }
    }
}
