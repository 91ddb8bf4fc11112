//! What a client says before its octets pass: its protocol, which the first octet shows, and its target. Sans-IO.

use linux::http::Pace;

use super::failure::Failure;
use super::head::{self, Forward, HEAD_BYTES_MAX, Refusal, Request};
use super::socks::{self, Step};
use super::target::Target;

/// The kind of request, which decides how the client is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A tunnel by SOCKS5.
    Socks,
    /// A tunnel by HTTP CONNECT.
    Connect,
    /// A plain HTTP request.
    Forward(Box<Forward>),
    /// A request that is repeated over another uplink.
    Again {
        /// It is in a tunnel: octets pass unchanged, and the client already knows that it is connected.
        in_tunnel: bool,
    },
}

/// What the client's octets begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum Opening {
    /// An incomplete message.
    More,
    /// A message that gets this answer, after which the client continues.
    Answer(Vec<u8>),
    /// A request for this target.
    Go(Target, Purpose),
    /// A message that gets this answer, after which the connection ends.
    Refuse(Vec<u8>),
}

const USAGE: &str = "This is a proxy for SOCKS5 and HTTP. Enter its address in the settings of your program, or try: \
    curl --proxy socks5h://ADDRESS:PORT https://example.org/";

/// Reads from the front of `inbox`, and removes what it has parsed. `greeted`: the SOCKS5 greeting is over. `pace`
/// belongs to the inbox.
pub fn read(inbox: &mut Vec<u8>, greeted: bool, pace: &mut Pace) -> Opening {
    match inbox.first() {
        None => Opening::More,
        Some(_) if greeted => match taken(inbox, socks::read_request) {
            Step::More => Opening::More,
            Step::Whole(target, _) => Opening::Go(target, Purpose::Socks),
            Step::Refuse(reply) => Opening::Refuse(reply),
        },
        Some(&socks::VERSION) => match taken(inbox, socks::read_methods) {
            Step::More => Opening::More,
            Step::Whole((), _) => Opening::Answer(socks::METHOD_CHOSEN.to_vec()),
            Step::Refuse(reply) => Opening::Refuse(reply),
        },
        Some(&socks::VERSION_4) => Opening::Refuse(socks::REFUSAL_4.to_vec()),
        Some(_) if !pace.is_due(inbox) => Opening::More,
        Some(_) => match head::parse_request(inbox) {
            Ok(None) => {
                pace.note_parsed(inbox, HEAD_BYTES_MAX);
                Opening::More
            }
            Ok(Some((request, len))) => {
                inbox.drain(..len);
                *pace = Pace::default();
                match request {
                    Request::Connect(target) => Opening::Go(target, Purpose::Connect),
                    Request::Forward(forward) => Opening::Go(forward.target.clone(), Purpose::Forward(forward)),
                }
            }
            Err(Refusal { status, why }) => Opening::Refuse(head::own_answer(status, format!("{why}\n{USAGE}"))),
        },
    }
}

fn taken<T>(inbox: &mut Vec<u8>, read: impl FnOnce(&[u8]) -> Step<T>) -> Step<T> {
    let step = read(inbox);
    if let Step::Whole(_, len) = &step {
        inbox.drain(..*len);
    }
    step
}

impl Purpose {
    /// Returns the answer to a client that does not get what it asked for.
    pub fn refusal(&self, failure: &Failure) -> Vec<u8> {
        match self {
            Self::Socks => socks::reply(failure.socks_reply(), None),
            Self::Again { in_tunnel: true } => Vec::new(),
            Self::Connect | Self::Forward(_) | Self::Again { .. } => head::own_answer(failure.http_status(), failure),
        }
    }

    /// Returns its name in `status`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Socks => "socks5",
            Self::Connect => "connect",
            Self::Forward(_) => "http",
            Self::Again { .. } => "again",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(inbox: &mut Vec<u8>, greeted: bool) -> Opening {
        read(inbox, greeted, &mut Pace::default())
    }

    #[test]
    fn protocols_are_told_by_their_first_octet() {
        let mut inbox = vec![5, 1, 0, 5, 1, 0, 1, 10, 0, 0, 1, 0, 80, b'x'];
        assert_eq!(read_all(&mut inbox, false), Opening::Answer(vec![5, 0]));
        let target = Target::parse("10.0.0.1:80", None).unwrap();
        assert_eq!(read_all(&mut inbox, true), Opening::Go(target.clone(), Purpose::Socks));
        assert_eq!(inbox, b"x", "what follows is the server's");
        let mut inbox = b"CONNECT 10.0.0.1:80 HTTP/1.1\r\n\r\nx".to_vec();
        assert_eq!(read_all(&mut inbox, false), Opening::Go(target, Purpose::Connect));
        assert_eq!(inbox, b"x");
        assert_eq!(read_all(&mut Vec::new(), false), Opening::More);
        assert_eq!(read_all(&mut vec![4, 1], false), Opening::Refuse(socks::REFUSAL_4.to_vec()));
    }

    #[test]
    fn who_takes_it_for_something_else_is_told_what_it_is() {
        for text in ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "\x16\x03\x01\x02", "SSH-2.0-x\r\n"] {
            let Opening::Refuse(answer) = read_all(&mut text.as_bytes().to_vec(), false) else { panic!("{text}") };
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("socks5h://"), "{answer}");
        }
    }

    /// The proxy would do nothing else for a second if it parsed such a head with each octet.
    #[test]
    fn a_head_that_comes_octet_by_octet_is_read_now_and_then() {
        let field = format!("X: {}\r\n", "1".repeat(300));
        let head = format!("GET http://10.0.0.1/ HTTP/1.1\r\n{}\r\n", field.repeat(200)).into_bytes();
        let (mut inbox, mut pace, mut reads) = (Vec::new(), Pace::default(), 0);
        let (last, before) = head.split_last().unwrap();
        for octet in before {
            inbox.push(*octet);
            let read_from = pace.read_from();
            assert_eq!(read(&mut inbox, false, &mut pace), Opening::More);
            reads += usize::from(pace.read_from() != read_from);
        }
        assert!((10..20).contains(&reads), "{reads}");
        inbox.push(*last);
        assert!(matches!(read(&mut inbox, false, &mut pace), Opening::Go(_, Purpose::Forward(_))));
        // The next request is read at once, also if all of it has come with the one before.
        inbox.extend(b"CONNECT 10.0.0.1:80 HTTP/1.1\r\n\r\n");
        assert!(matches!(read(&mut inbox, false, &mut pace), Opening::Go(_, Purpose::Connect)));
        // A head without an end is refused as soon as it is too long.
        inbox.extend(head[..head.len() - 2].iter());
        while inbox.len() < HEAD_BYTES_MAX {
            assert_eq!(read(&mut inbox, false, &mut pace), Opening::More);
            inbox.push(b'1');
        }
        assert!(matches!(read(&mut inbox, false, &mut pace), Opening::Refuse(_)));
    }
}
