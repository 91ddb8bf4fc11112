//! Requests, as a server reads them.

use super::{Conditions, FIELDS_MAX, HEAD_BYTES_MAX, Range, RangeError, field};

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The file.
    Get,
    /// Only its head.
    Head,
}

impl Method {
    /// Returns the name, as in a request.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
        }
    }
}

/// A request that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// The target as sent: a path with an optional query.
    pub target: String,
    /// The requested part.
    pub range: Option<Result<Range, RangeError>>,
    /// Conditions of the answer.
    pub conditions: Conditions,
    /// Whether the client accepts bodies in chunks, as HTTP/1.1 clients do.
    pub takes_chunks: bool,
    /// Whether the connection stays open afterwards.
    pub keep_alive: bool,
}

/// A request that only a status can answer; the connection then ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status code.
    pub status: u16,
    /// What is wrong, for the user.
    pub reason: &'static str,
}

const fn refuse(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

/// Reads the request at the start of `octets` and returns it with its length. `None`: more octets are needed.
///
/// # Errors
/// A [`Refusal`] if the request is malformed, too long, or carries a body (skipping a body safely takes care: RFC 9112
/// section 11.2 on request smuggling).
pub fn parse_request(octets: &[u8]) -> Result<Option<(Request, usize)>, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    #[cfg(test)]
    super::PARSED.set(super::PARSED.get() + 1);
    match parsed.parse(octets) {
        Ok(httparse::Status::Complete(len)) => read(&parsed).map(|request| Some((request, len))),
        Ok(httparse::Status::Partial) if octets.len() < HEAD_BYTES_MAX => Ok(None),
        Ok(httparse::Status::Partial) => Err(refuse(431, "the request's head is too long")),
        Err(httparse::Error::TooManyHeaders) => Err(refuse(431, "the request's head has too many fields")),
        Err(httparse::Error::Version) if lacks_version(octets) => Err(refuse(400, "the request is malformed")),
        Err(httparse::Error::Version) => Err(refuse(505, "only HTTP/1.1 and HTTP/1.0 are supported")),
        Err(_) => Err(refuse(400, "the request is malformed")),
    }
}

/// Returns whether something else than a version of HTTP follows the target of the request at the start of `octets`, such
/// as the rest of a target with a space.
pub fn lacks_version(octets: &[u8]) -> bool {
    let line = octets.trim_ascii_start().split(|octet| matches!(octet, b'\r' | b'\n')).next().unwrap_or_default();
    let third = line.split(|octet| *octet == b' ').nth(2).unwrap_or_default();
    !third.starts_with(b"HTTP/")
}

/// Converts a parsed head to a request.
fn read(parsed: &httparse::Request<'_, '_>) -> Result<Request, Refusal> {
    let method = match parsed.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => return Err(refuse(405, "only GET and HEAD are supported")),
    };
    let version = parsed.version.unwrap_or(0);
    let hosts = parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host")).count();
    if hosts > 1 || version == 1 && hosts == 0 {
        return Err(refuse(400, "HTTP/1.1 needs one Host field"));
    }
    let field = |name: &str| field(parsed.headers, name);
    if field("transfer-encoding").is_some() || field("content-length").is_some_and(|len| len != "0") {
        return Err(refuse(400, "GET and HEAD take no body"));
    }
    let connection = field("connection").unwrap_or_default().to_ascii_lowercase();
    let says = |token: &str| connection.split(',').any(|option| option.trim() == token);
    // Ranges are defined for no other method (RFC 9110 section 14.2).
    let range = field("range").filter(|_| method == Method::Get).and_then(|text| Range::parse(&text));
    let conditions = Conditions {
        if_match: field("if-match"),
        if_none_match: field("if-none-match"),
        if_modified_since: field("if-modified-since"),
        if_unmodified_since: field("if-unmodified-since"),
        if_range: field("if-range"),
    };
    Ok(Request {
        method,
        target: parsed.path.unwrap_or_default().to_owned(),
        range,
        conditions,
        takes_chunks: version == 1,
        keep_alive: if version == 1 { !says("close") } else { says("keep-alive") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<(Request, usize)>, Refusal> {
        parse_request(text.as_bytes())
    }

    #[test]
    fn a_browser_s_request() {
        let text = "GET /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nRange: bytes=5-9\r\n\r\nGET /next";
        let (request, len) = parse(text).unwrap().unwrap();
        assert_eq!((request.method, request.target.as_str(), request.keep_alive), (Method::Get, "/a%20b?x=1", true));
        assert_eq!(request.range, Some(Ok(Range::FromTo(5, 9))));
        assert_eq!(&text[len..], "GET /next");
    }

    #[test]
    fn fields_in_several_lines_are_one_list() {
        let text =
            "HEAD / HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"a\"\r\nif-none-match: \"b\"\r\nRange: bytes=1-\r\n\r\n";
        let (request, _) = parse(text).unwrap().unwrap();
        assert_eq!(request.conditions.if_none_match.as_deref(), Some("\"a\", \"b\""));
        assert_eq!(request.range, None, "a part of a head is none");
    }

    #[test]
    fn connections_end_when_asked_to() {
        let keep_alive = |text: &str| parse(text).unwrap().unwrap().0.keep_alive;
        assert!(!keep_alive("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n"));
        assert!(!keep_alive("GET / HTTP/1.0\r\n\r\n"));
        assert!(keep_alive("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    }

    #[test]
    fn refusals_carry_their_status() {
        let status = |text: &str| parse(text).unwrap_err().status;
        assert_eq!(status("POST / HTTP/1.1\r\nHost: h\r\n\r\n"), 405);
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"), 400);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
        assert_eq!(status("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n"), 400);
        assert_eq!(status("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
        assert_eq!(status("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
        assert_eq!(status("\x16\x03\x01 TLS\r\n\r\n"), 400);
        assert_eq!(status(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(HEAD_BYTES_MAX))), 431);
        let many: String = (0..=FIELDS_MAX).map(|n| format!("X-{n}: 1\r\n")).collect();
        let refusal = parse(&format!("GET / HTTP/1.1\r\n{many}\r\n")).unwrap_err();
        assert_eq!((refusal.status, refusal.reason), (431, "the request's head has too many fields"));
        assert_eq!(parse("GET / HTTP/1.1\r\nHos"), Ok(None));
    }
}
