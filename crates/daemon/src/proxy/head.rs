//! Heads of HTTP requests and answers, as the proxy reads them and passes them on (RFC 9110 section 7.6, RFC 9112).
//! Sans-IO.

use std::fmt;

pub use linux::http::ANSWER_HEAD_BYTES_MAX;
use linux::http::{ANSWER_FIELDS_MAX as FIELDS_MAX, answer_syntax, lacks_version, merged_length};

use super::framing::Framing;
use super::target::Target;

/// Maximum octets of a request's head: cookies may be long.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// Fields that concern one connection only, whether or not Connection names them (RFC 9110 section 7.6.1).
/// Transfer-Encoding stays: the proxy passes bodies on in their chunks, except to clients that understand none.
const HOP_BY_HOP: [&str; 7] =
    ["connection", "proxy-connection", "keep-alive", "te", "upgrade", "proxy-authorization", "proxy-authenticate"];
/// Fields that Connection cannot remove: without them, the other side would understand another message than the proxy
/// does.
const NEVER_NOMINATED: [&str; 3] = ["host", "content-length", "transfer-encoding"];
/// Fields about chunks, which are removed with the chunks.
const OF_CHUNKS: [&str; 2] = ["transfer-encoding", "trailer"];
const MAX_FORWARDS: &str = "max-forwards";
const PORT: u16 = 80;
const NO_WEBSOCKET: &str =
    "a WebSocket needs CONNECT: configure the program to use this proxy for ws:// as for wss://, or as a SOCKS5 proxy";

/// A request that the proxy refuses, with the reason for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status code and its phrase.
    pub status: (u16, &'static str),
    /// What is wrong.
    pub why: String,
}

/// What an HTTP client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A tunnel.
    Connect(Target),
    /// One request to be passed on.
    Forward(Box<Forward>),
}

/// A request to be passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The server.
    pub target: Target,
    /// The head as the server gets it.
    pub head: Vec<u8>,
    /// Framing of the body.
    pub body: Framing,
    /// Properties of the request that shape its answer.
    pub asked: Asked,
    /// Whether the client may send another request after this one.
    pub keep_alive: bool,
    /// Whether it may be sent twice without harm, and can be, since it has no body (RFC 9110 section 9.2.2).
    pub repeatable: bool,
}

/// Properties of a request that shape its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The answer has no body, whatever its head says.
    pub for_head: bool,
    /// The client speaks HTTP/1.0: it would take chunks for the content (RFC 9112 section 6.1), and an informational
    /// answer for the final one (RFC 9110 section 15.2).
    pub by_old: bool,
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The head as the client gets it, without the end of the fields, which [`Answer::finish`] adds.
    head: Vec<u8>,
    /// Framing of the body.
    pub body: Framing,
    /// Whether another answer to the same request follows (RFC 9110 section 15.2).
    pub is_informational: bool,
    /// Whether the server accepts another request on its connection.
    pub keep_alive: bool,
}

fn refuse(code: u16, phrase: &'static str, why: impl Into<String>) -> Refusal {
    Refusal { status: (code, phrase), why: why.into() }
}

fn too_large(why: impl Into<String>) -> Refusal {
    refuse(431, "Request Header Fields Too Large", why)
}

fn bad(why: impl Into<String>) -> Refusal {
    refuse(400, "Bad Request", why)
}

/// Parses the request at the start of `octets`. Returns it with its length; `None`: more octets are needed.
///
/// # Errors
/// A [`Refusal`], with which the connection ends.
pub fn parse_request(octets: &[u8]) -> Result<Option<(Request, usize)>, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let len = match parsed.parse(octets) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if octets.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(too_large("the request's head is too long")),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(too_large(format!("the request's head has more than {FIELDS_MAX} fields")));
        }
        Err(httparse::Error::Version) if lacks_version(octets) => {
            return Err(bad("no version of HTTP follows the URL: a space in a URL is written %20"));
        }
        Err(httparse::Error::Version) => {
            return Err(refuse(505, "HTTP Version Not Supported", "only HTTP/1.1 and HTTP/1.0 are supported"));
        }
        Err(error) => return Err(bad(format!("this is neither SOCKS5 nor HTTP ({error})"))),
    };
    let (method, path) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
    if method == "CONNECT" {
        let target = Target::parse(path, None).map_err(|why| bad(format!("CONNECT {path}: {why}")))?;
        return Ok(Some((Request::Connect(target), len)));
    }
    let forward = forward(method, path, parsed.version.unwrap_or(0), parsed.headers)?;
    Ok(Some((Request::Forward(Box::new(forward)), len)))
}

fn forward(method: &str, path: &str, version: u8, fields: &[httparse::Header<'_>]) -> Result<Forward, Refusal> {
    let (authority, origin_form) = split_url(method, path)?;
    let target = Target::parse(authority, Some(PORT)).map_err(|why| bad(format!("{path}: {why}")))?;
    let body = request_body(version, fields)?;
    if asks_for_websocket(fields) {
        // Without the field, which concerns one connection only, the server would answer another request than was made.
        return Err(refuse(501, "Not Implemented", NO_WEBSOCKET));
    }
    let forwards_left = forwards_left(method, fields)?;
    let options = Options::of(fields);
    // A client with HTTP/1.0 understands no chunks, so the server must not use them. Some servers still do.
    let asked = Asked { for_head: method == "HEAD", by_old: version == 0 };
    let keep_alive = version == 1 && !options.says("close");
    let mut head = format!("{method} {origin_form} HTTP/1.{version}\r\nHost: {authority}\r\n").into_bytes();
    let nominated = |name: &str| options.nominates(name);
    write_fields(&mut head, fields, |name| {
        name.eq_ignore_ascii_case("host")
            || nominated(name)
            || forwards_left.is_some() && name.eq_ignore_ascii_case(MAX_FORWARDS)
    });
    if let Some(left) = forwards_left {
        head.extend(format!("Max-Forwards: {left}\r\n").bytes());
    }
    write_via(&mut head, version);
    if version == 0 {
        head.extend(b"Connection: close\r\n");
    }
    head.extend(b"\r\n");
    let idempotent = matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE");
    let repeatable = idempotent && body.is_done();
    Ok(Forward { target, head, body, asked, keep_alive, repeatable })
}

/// Returns how many more intermediaries may pass a request on, if it says so (RFC 9110 section 7.6.2).
///
/// # Errors
/// If none may: this proxy would be the one that answers, and has nothing to say to these methods.
fn forwards_left(method: &str, fields: &[httparse::Header<'_>]) -> Result<Option<u64>, Refusal> {
    let mut values = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(MAX_FORWARDS));
    if !matches!(method, "OPTIONS" | "TRACE") {
        return Ok(None);
    }
    match (values.next().map(|field| field.value.trim_ascii()), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
            // A larger number means as much as the largest.
            let count = core::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(u64::MAX);
            let none =
                || refuse(501, "Not Implemented", format!("Max-Forwards is 0, and this proxy answers no {method}"));
            count.checked_sub(1).map(Some).ok_or_else(none)
        }
        (Some(_), _) => Err(bad("the Max-Forwards is not a single number")),
    }
}

/// Whether the client asks to change to WebSocket (RFC 6455 section 4.1).
fn asks_for_websocket(fields: &[httparse::Header<'_>]) -> bool {
    let lines = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("upgrade"));
    let mut protocols = lines.flat_map(|field| field.value.split(|octet| *octet == b','));
    protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

/// Returns the authority, and the target in origin-form (RFC 9112 sections 3.2.1 and 3.2.2).
fn split_url<'a>(method: &str, url: &'a str) -> Result<(&'a str, String), Refusal> {
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
            return Err(bad("https needs CONNECT: programs use it by themselves once this is their proxy for https"));
        }
        Some(_) => return Err(bad(format!("{url:?} is not an http URL"))),
        None => return Err(bad(format!("{url:?} is not a URL, and this proxy is not a web server"))),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    if authority.contains('@') {
        return Err(bad("the URL contains a user name or password, which is not passed on: remove it"));
    }
    let target = target.split('#').next().unwrap_or_default();
    let origin_form = match target {
        "" if method == "OPTIONS" => "*".to_owned(),
        query if !query.starts_with('/') => format!("/{query}"),
        path => path.to_owned(),
    };
    Ok((authority, origin_form))
}

/// Finds out how a request's body ends (RFC 9112 section 6.3). Refuses ambiguous requests.
fn request_body(version: u8, fields: &[httparse::Header<'_>]) -> Result<Framing, Refusal> {
    match (coding(fields), length(fields)) {
        (Some(_), Some(_)) => Err(bad("the request has a Transfer-Encoding and a Content-Length: use only one")),
        (Some(coding), None) if version == 1 && coding.eq_ignore_ascii_case("chunked") => Ok(Framing::chunked()),
        (Some(coding), None) => Err(refuse(501, "Not Implemented", format!("unsupported transfer coding {coding:?}"))),
        (None, Some(len)) => len.map(Framing::Length).ok_or_else(|| bad("the Content-Length is not a single number")),
        (None, None) => Ok(Framing::NONE),
    }
}

/// Parses the answer at the start of `octets`. Returns it with its length; `None`: more octets are needed.
///
/// # Errors
/// Says what is wrong with it.
pub fn parse_answer(octets: &[u8], asked: Asked) -> Result<Option<(Answer, usize)>, &'static str> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    let len = match answer_syntax().parse_response(&mut parsed, octets) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if octets.len() < ANSWER_HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => return Err("its answer's head is longer than 256 KiB"),
        Err(httparse::Error::TooManyHeaders) => return Err("its answer has more than 256 fields"),
        Err(_) => return Err("its answer is not HTTP"),
    };
    let (code, version) = (parsed.code.unwrap_or(0), parsed.version.unwrap_or(0));
    if code == 101 {
        return Err("it changes to a protocol that was not requested");
    }
    let fields = &*parsed.headers;
    let options = Options::of(fields);
    let is_informational = (100..200).contains(&code);
    let bodiless = asked.for_head || is_informational || code == 204 || code == 304;
    let body = if bodiless { Framing::NONE } else { answer_body(version, asked.by_old, fields)? };
    let mut head = format!("HTTP/1.1 {code} {}\r\n", parsed.reason.unwrap_or_default()).into_bytes();
    // A length beside a coding must be ignored (RFC 9112 section 6.3, 3).
    let has_coding = coding(fields).is_some();
    // A length that is repeated may be merged (RFC 9110 section 8.6): the client must not have to choose one.
    let merged = if has_coding { None } else { repeated_length(fields) };
    write_fields(&mut head, fields, |name| {
        let is_of_chunks = OF_CHUNKS.iter().any(|known| name.eq_ignore_ascii_case(known));
        options.nominates(name)
            || (has_coding || merged.is_some()) && name.eq_ignore_ascii_case("content-length")
            || is_of_chunks && asked.by_old
    });
    if let Some(len) = merged {
        head.extend(format!("Content-Length: {len}\r\n").bytes());
    }
    if !is_informational {
        write_via(&mut head, version);
    }
    let keep_alive = if version == 1 { !options.says("close") } else { options.says("keep-alive") };
    let keep_alive = keep_alive && body != Framing::UntilClose;
    Ok(Some((Answer { head, body, is_informational, keep_alive }, len)))
}

fn answer_body(version: u8, to_old: bool, fields: &[httparse::Header<'_>]) -> Result<Framing, &'static str> {
    match (coding(fields), length(fields)) {
        (Some(_), _) if version == 0 => Err("it uses a transfer coding, which HTTP/1.0 does not have"),
        // The client would take any other coding for a part of the content.
        (Some(coding), _) if to_old && !coding.eq_ignore_ascii_case("chunked") => {
            Err("it uses a transfer coding that cannot be removed for an HTTP/1.0 client")
        }
        (Some(coding), _) => {
            let last = coding.rsplit(',').next().unwrap_or_default().trim();
            Ok(if last.eq_ignore_ascii_case("chunked") { Framing::chunked() } else { Framing::UntilClose })
        }
        (None, Some(len)) => {
            let merged = len.or_else(|| repeated_length(fields));
            merged.map(Framing::Length).ok_or("its Content-Length is not a single number")
        }
        (None, None) => Ok(Framing::UntilClose),
    }
}

impl Answer {
    /// Returns the head as the client gets it. `last`: its connection ends after the body.
    pub fn finish(mut self, last: bool) -> Vec<u8> {
        if last && !self.is_informational {
            self.head.extend(b"Connection: close\r\n");
        }
        self.head.extend(b"\r\n");
        self.head
    }
}

/// Options that the Connection fields name.
struct Options(Vec<String>);

impl Options {
    fn of(fields: &[httparse::Header<'_>]) -> Self {
        let names = ["connection", "proxy-connection"];
        let lines = fields.iter().filter(|field| names.iter().any(|name| field.name.eq_ignore_ascii_case(name)));
        let options = lines.flat_map(|field| {
            let text = String::from_utf8_lossy(field.value).to_ascii_lowercase();
            text.split(',').map(|option| option.trim().to_owned()).collect::<Vec<_>>()
        });
        Self(options.collect())
    }

    fn says(&self, option: &str) -> bool {
        self.0.iter().any(|said| said == option)
    }

    fn nominates(&self, name: &str) -> bool {
        let is = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        is(&HOP_BY_HOP) || !is(&NEVER_NOMINATED) && self.0.iter().any(|said| said.eq_ignore_ascii_case(name))
    }
}

fn write_fields(head: &mut Vec<u8>, fields: &[httparse::Header<'_>], leave_out: impl Fn(&str) -> bool) {
    for field in fields.iter().filter(|field| !leave_out(field.name)) {
        head.extend(field.name.as_bytes());
        head.extend(b": ");
        head.extend(field.value);
        head.extend(b"\r\n");
    }
}

/// Names the proxy as an intermediary (RFC 9110 section 7.6.3), in a way that says nothing about this device.
fn write_via(head: &mut Vec<u8>, version: u8) {
    head.extend(format!("Via: 1.{version} anabranch\r\n").bytes());
}

/// Returns the transfer codings, in order.
fn coding(fields: &[httparse::Header<'_>]) -> Option<String> {
    let lines = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("transfer-encoding"));
    let values: Vec<_> = lines.map(|field| String::from_utf8_lossy(field.value).trim().to_owned()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// Returns the length; `Some(None)` if the field is invalid.
fn length(fields: &[httparse::Header<'_>]) -> Option<Option<u64>> {
    let mut lines = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("content-length"));
    let (first, is_only) = (lines.next()?, lines.next().is_none());
    let text = core::str::from_utf8(first.value).unwrap_or_default().trim();
    let digits = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    Some(text.parse().ok().filter(|_| digits && is_only))
}

/// Returns the length of an answer that repeats one, in one Content-Length or several. Of requests this is not accepted:
/// a server that does not merge them might take a part of the body for a request.
fn repeated_length(fields: &[httparse::Header<'_>]) -> Option<u64> {
    let lines = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("content-length"));
    merged_length(lines.map(|field| field.value)).filter(|_| length(fields) == Some(None))
}

/// Builds an answer of the proxy itself, after which the connection ends.
pub fn own_answer(status: (u16, &str), text: impl fmt::Display) -> Vec<u8> {
    let body = format!("anabranch: {text}\n");
    let (code, phrase) = status;
    format!(
        "HTTP/1.1 {code} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests;
