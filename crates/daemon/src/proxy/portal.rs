//! Detects uplinks behind a captive portal: a network that answers in place of every server until somebody has logged
//! in, or has paid. It is near, and so would win every race.
//!
//! ```text
//! question  the first octets for a server that answers without MPTCP: a whole GET or HEAD without a body and without a
//!           query, which may be sent twice (RFC 9110 section 9.2.2)
//! doubtful  an answer that redirects to another host (301, 302, 303, 307, 308 with Location), or says that the network
//!           wants a login (511, RFC 6585 section 6), if the uplink has not recently shown that it leads to the
//!           Internet, and there is another uplink
//! then      the client does not get the answer: the proxy repeats the request to the same address over another uplink
//! verdict   if the second answer redirects to the same place, both uplinks are trusted; otherwise the first one has a
//!           portal, and comes after all others for some time
//! trust     an uplink is trusted for some minutes after an answer without a redirect, unless it is suspected, or the
//!           answer comes from the place to which its portal redirected: that may be the login itself
//! ```
//!
//! A portal that answers by itself, without a redirect, passes for the server. So does one that answers in TLS, but the
//! client sees that its certificate is wrong.

use std::net::IpAddr;

use bytes::Bytes;
use linux::http::{ANSWER_FIELDS_MAX as FIELDS_MAX, answer_syntax};
use transport::Endpoint;
use units::{Duration, Instant};

use super::Proxy;
use super::dial::Dial;
use super::opening::Purpose;
use super::session::{Session, Stage};
use super::target::{Host, Target, without_dot};

/// How long a doubtful uplink comes after all others: as long as the repeated request may take.
const DOUBTED_FOR: Duration = Duration::from_secs(10);
/// How long an uplink with a portal does. After that, somebody may have logged in.
const PORTAL_FOR: Duration = Duration::from_secs(60);

/// Where an answer redirects to: the host of its Location; `None` if the network itself says that it wants a login.
type Place = Option<Host>;

/// A client's first octets, and the answer, which is not passed on yet.
#[derive(Debug)]
pub struct Answered {
    /// The request.
    pub question: Bytes,
    /// The answer.
    pub octets: Bytes,
}

/// A request that is repeated over another uplink.
pub struct Again {
    /// The doubtful uplink, and where its answer redirects to.
    doubted: IpAddr,
    place: Place,
    question: Bytes,
    /// The client's stage, which is restored once there is a connection again.
    stage: Stage,
}

/// Whether octets are a request that may be sent twice.
pub fn is_repeatable(octets: &[u8]) -> bool {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let is_whole = request.parse(octets).is_ok_and(|it| it == httparse::Status::Complete(octets.len()));
    let is_safe = matches!(request.method, Some("GET" | "HEAD"));
    let is_plain = request.path.is_some_and(|path| !path.contains('?'));
    let is_of_body =
        |name: &str| ["content-length", "transfer-encoding"].iter().any(|it| name.eq_ignore_ascii_case(it));
    is_whole && is_safe && is_plain && !request.headers.iter().any(|field| is_of_body(field.name))
}

/// Meaning of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Says {
    /// It redirects to another host, or asks for a login.
    Elsewhere(Place),
    /// Something else.
    Here,
    /// Its head is not HTTP, or incomplete.
    Unclear,
}

fn read(question: &[u8], answer: &[u8]) -> Says {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    if !answer_syntax().parse_response(&mut head, answer).is_ok_and(|it| it.is_complete()) {
        return Says::Unclear;
    }
    let to = match head.code {
        Some(511) => return Says::Elsewhere(None),
        Some(301 | 302 | 303 | 307 | 308) => field(head.headers, "location").and_then(authority).and_then(host),
        _ => None,
    };
    let asked = host_of(question);
    match to {
        Some(to) if !asked.is_some_and(|asked| is_akin(&to, &asked)) => Says::Elsewhere(Some(to)),
        _ => Says::Here,
    }
}

fn field<'a>(fields: &[httparse::Header<'a>], name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
    core::str::from_utf8(found.value).ok().map(str::trim)
}

fn host_of(question: &[u8]) -> Option<Host> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    request.parse(question).ok()?;
    field(request.headers, "host").and_then(host)
}

/// Returns the authority of an absolute URL.
fn authority(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("//")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    rest[..end].rsplit('@').next()
}

/// Accepts names and addresses only, since the host is shown to people.
fn host(authority: &str) -> Option<Host> {
    /// The port does not matter.
    const ANY_PORT: u16 = 80;
    Target::parse(authority, Some(ANY_PORT)).ok().map(|target| target.host)
}

/// Whether the hosts are the same, or one name is within the other: www.example.org counts as example.org.
fn is_akin(a: &Host, b: &Host) -> bool {
    let within = |inner: &str, outer: &str| inner.strip_suffix(outer).is_some_and(|rest| rest.ends_with('.'));
    match (a, b) {
        (Host::Name(a), Host::Name(b)) => {
            let (a, b) = (without_dot(a), without_dot(b));
            a == b || within(a, b) || within(b, a)
        }
        _ => a == b,
    }
}

impl Proxy {
    /// Examines the first answer of a server without MPTCP. Returns whether the client gets it.
    pub(super) fn judge(&mut self, key: usize, answered: &Answered, endpoint: &mut Endpoint, now: Instant) -> bool {
        let says = read(&answered.question, &answered.octets);
        let session = &mut self.sessions[key];
        let Some((home, remote)) = session.server.as_ref().map(|server| (server.home, server.remote)) else {
            return true;
        };
        if let Some(again) = session.again.take() {
            self.conclude(&again, &says, home, now);
            return true;
        }
        match says {
            Says::Unclear => true,
            // A host of the uplink's own network says nothing about what is behind its gateway.
            _ if self.choice.is_near(remote.ip()) => true,
            Says::Here => {
                if self.is_proof(home, &answered.question, now) {
                    self.choice.trust(home, now);
                }
                true
            }
            Says::Elsewhere(_) if self.choice.is_trusted(home, now) || !self.choice.has_other(home) => true,
            Says::Elsewhere(place) => !self.ask_again(key, home, place, answered.question.clone(), endpoint, now),
        }
    }

    /// Whether an answer without a redirect shows that the uplink leads to the Internet. The pages of a portal do not,
    /// and come from more hosts than the one to which it redirects, so nothing counts while the uplink is suspected.
    fn is_proof(&self, home: IpAddr, question: &[u8], now: Instant) -> bool {
        let is_of_portal = self.choice.portal_host(home).zip(host_of(question)).is_some_and(|(a, b)| is_akin(a, &b));
        !is_of_portal && !self.choice.is_suspected(home, now)
    }

    /// Concludes from the answer to a repeated request, which another uplink gave, or the same one if no other did.
    fn conclude(&mut self, again: &Again, says: &Says, home: IpAddr, now: Instant) {
        let Again { doubted, place, .. } = again;
        match says {
            _ if home == *doubted => {}
            Says::Elsewhere(other) if other == place => {
                [*doubted, home].into_iter().for_each(|ip| self.choice.trust(ip, now))
            }
            Says::Elsewhere(_) | Says::Here => self.found_portal(*doubted, place, now),
            Says::Unclear => {}
        }
    }

    fn found_portal(&mut self, doubted: IpAddr, place: &Place, now: Instant) {
        if !self.choice.found_portal(doubted, place.clone(), now + PORTAL_FOR) {
            return;
        }
        let name = self.names.get(&doubted).cloned().unwrap_or_else(|| doubted.to_string());
        let to = place.as_ref().map(|host| format!(" at {host}")).unwrap_or_default();
        (self.say)(&format!(
            "{name} wants a login (captive portal{to}) and is used last: log in with a browser that does not use the \
             proxy, or exclude {name} with `anabranch join set {name}=never`"
        ));
    }

    /// Repeats the request over another uplink. Returns whether that has begun.
    fn ask_again(
        &mut self,
        key: usize,
        doubted: IpAddr,
        place: Place,
        question: Bytes,
        endpoint: &mut Endpoint,
        now: Instant,
    ) -> bool {
        self.choice.doubt(doubted, now + DOUBTED_FOR);
        let session = &mut self.sessions[key];
        let Some((target, remote)) = session.server.as_ref().map(|server| (server.target.clone(), server.remote))
        else {
            return false;
        };
        let Ok(dial) = Dial::new(target.clone(), &[remote.ip()], &self.choice, now) else { return false };
        let in_tunnel = matches!(session.stage, Stage::Tunnel);
        let dialing = Stage::Dialing(Box::new(dial), target, Purpose::Again { in_tunnel });
        let stage = core::mem::replace(&mut session.stage, dialing);
        session.again = Some(Box::new(Again { doubted, place, question, stage }));
        self.drop_server(key, true, endpoint, now);
        self.note_busy(key, now);
        self.dial(key, endpoint, now);
        true
    }
}

impl Session {
    /// Sends the repeated request.
    pub(super) fn begin_again(&mut self) {
        let Some(again) = &mut self.again else { return };
        self.stage = core::mem::replace(&mut again.stage, Stage::Opening);
        self.to_server = again.question.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: Example.test:80\r\n\r\n";

    #[test]
    fn what_may_be_sent_twice_is_told_apart() {
        assert!(is_repeatable(GET));
        assert!(is_repeatable(b"HEAD / HTTP/1.0\r\n\r\n"));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(FIELDS_MAX));
        assert!(is_repeatable(many.as_bytes()), "as many fields as the proxy passes on");
        let others: [&[u8]; 7] = [
            b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET /login?code=1 HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n",
            b"\x16\x03\x01\x02\x00\x01",
            b"",
        ];
        others.iter().for_each(|octets| assert!(!is_repeatable(octets), "{}", String::from_utf8_lossy(octets)));
    }

    #[test]
    fn an_answer_sends_elsewhere_or_not() {
        let place = |question: &[u8], answer: &[u8]| match read(question, answer) {
            Says::Elsewhere(place) => Some(place.map_or("login".into(), |host| host.to_string())),
            Says::Here => None,
            Says::Unclear => Some("unclear".into()),
        };
        let of = |code: u16, location: &str| {
            place(GET, format!("HTTP/1.1 {code} X\r\nLocation: {location}\r\n\r\n").as_bytes())
        };
        assert_eq!(of(302, "http://Login.test:8080/?a=b").as_deref(), Some("login.test"));
        assert_eq!(of(307, "//login.test").as_deref(), Some("login.test"));
        assert_eq!(of(303, "http://user@10.0.0.1/x").as_deref(), Some("10.0.0.1"));
        assert_eq!(of(302, "http://badexample.test/").as_deref(), Some("badexample.test"));
        let akin =
            ["https://example.test/a", "/b", "https://www.example.test/", "b", "http://test/", "//example.test./"];
        akin.iter().for_each(|location| assert_eq!(of(302, location), None, "{location}"));
        assert_eq!(of(200, "http://login.test/"), None);
        assert_eq!(of(304, "http://login.test/"), None);
        assert_eq!(of(511, "").as_deref(), Some("login"));
        assert_eq!(of(302, "http://\u{9b}31m.test/"), None, "no host, and nothing to be shown");
        assert_eq!(place(GET, b"HTTP/1.1 302 X\r\n\r\n"), None);
        assert_eq!(place(GET, b"SSH-2.0-x\r\n").as_deref(), Some("unclear"));
        assert_eq!(place(GET, b"HTTP/1.1 302 X\r\nLocation: http://a/").as_deref(), Some("unclear"));
        assert_eq!(place(GET, b"HTTP/1.1 302 X\r\nLocation : http://a/\r\n\r\n").as_deref(), Some("a"));
        assert_eq!(place(GET, b"HTTP/1.1 302 X\r\nLocation: http://\xff/\r\n\r\n"), None);
        assert_eq!(place(b"", b"HTTP/1.1 302 X\r\nLocation: http://a/\r\n\r\n").as_deref(), Some("a"));
    }
}
