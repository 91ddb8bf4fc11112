//! Answers to requests.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::time::SystemTime;

use super::files::{Folder, Found};
use super::listing::Listing;
use crate::http::{Judgement, Method, Refusal, Request, Validators, decode_path, with_slash};

/// An answer, head and body.
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Octets of the body of an answer to GET, as in the head; `None` where the head does not say it: for a page that is
    /// made while it is sent, and for HEAD of any page.
    pub len: Option<u64>,
    /// The head.
    pub head: String,
    /// The body.
    pub body: Body,
    /// Whether the connection ends after this answer.
    pub last: bool,
}

/// Body of an answer.
pub enum Body {
    /// No body.
    None,
    /// A text.
    Text(String),
    /// A part of a file: position of its first octet, and of the octet after its last; size and time of the last change of
    /// the file as it was opened.
    File(File, u64, u64, Version),
    /// A page, in chunks or plain.
    Page(Box<Listing>, Framing),
}

/// What tells an edited file from the one that was opened.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    len: u64,
    modified: SystemTime,
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self { len: metadata.len(), modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH) }
    }

    /// Returns whether the octets of this version may still be those of the file. One that has only grown, as logs do,
    /// usually still begins with them.
    pub fn is_in(&self, file: &File) -> std::io::Result<bool> {
        let now = Self::of(&file.metadata()?);
        Ok(now.len > self.len || (now.len, now.modified) == (self.len, self.modified))
    }
}

impl Body {
    /// Returns the octets of the body; `None` for a page, which is made while it is sent.
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Text(text) => Some(text.len() as u64),
            Self::File(_, at, end, _) => Some(end - at),
            Self::Page(..) => None,
        }
    }
}

/// How the end of a page is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// By the last chunk.
    Chunks,
    /// By the end of the connection.
    UntilClose,
}

/// Answers a request from `folder`.
#[expect(clippy::disallowed_methods, reason = "the Date field is the wall clock's (RFC 9110 section 6.6.1)")]
pub fn answer(request: &Request, folder: &Folder) -> Answer {
    let now = SystemTime::now();
    let found = decode_path(&request.target).ok_or(400).and_then(|path| folder.find(&path));
    let slashed = with_slash(&request.target);
    let mut answer = match found {
        // The links of a page there begin at the last slash.
        Ok(Found::Index(..) | Found::Listing(_)) if slashed.is_some() => moved(&slashed.unwrap_or_default()),
        // Only folders have a slash at the end: `with_slash` has nothing to add to it.
        Ok(Found::File(..)) if slashed.is_none() => text(404, format!("{}\n", reason(404))),
        Ok(Found::File(file, metadata, content_type) | Found::Index(file, metadata, content_type)) => {
            of_file(request, file, &metadata, content_type, now)
        }
        Ok(Found::Listing(listing)) => of_listing(request, listing),
        Err(status) => text(status, format!("{}\n", reason(status))),
    };
    if request.method == Method::Head {
        answer.body = Body::None;
    }
    answer.finish(request.keep_alive, now)
}

/// Answers a request that cannot be carried out; the connection ends.
#[expect(clippy::disallowed_methods, reason = "the Date field is the wall clock's (RFC 9110 section 6.6.1)")]
pub fn refusal(refusal: Refusal) -> Answer {
    let mut answer = text(refusal.status, format!("{}: {}\n", reason(refusal.status), refusal.reason));
    if refusal.status == 405 {
        answer.head += "Allow: GET, HEAD\r\n";
    }
    answer.finish(false, SystemTime::now())
}

fn of_file(request: &Request, file: File, metadata: &Metadata, content_type: &str, now: SystemTime) -> Answer {
    let len = metadata.len();
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let validators = Validators::new(metadata.ino(), len, modified, now);
    let about = format!("Last-Modified: {}\r\nETag: {}\r\n", validators.last_modified(), validators.etag());
    match request.conditions.judge(&validators) {
        Judgement::Answer => {}
        Judgement::NotModified => return bare(304, None, about),
        Judgement::Failed => return text(412, format!("{}\n", reason(412))),
    }
    let range = request.range.filter(|_| request.conditions.allow_range(&validators));
    let (status, at, count, range) = match range.map(|range| range.and_then(|range| range.within(len))) {
        None => (200, 0, len, String::new()),
        Some(Ok((at, count))) => (206, at, count, format!("Content-Range: bytes {at}-{}/{len}\r\n", at + count - 1)),
        Some(Err(_)) => return bare(416, Some(0), format!("Content-Range: bytes */{len}\r\n")),
    };
    let head = format!("Content-Type: {content_type}\r\n{about}Accept-Ranges: bytes\r\n{range}");
    let body = if count == 0 { Body::None } else { Body::File(file, at, at + count, Version::of(metadata)) };
    Answer { body, ..bare(status, Some(count), head) }
}

/// Sends the client to `location` for good.
fn moved(location: &str) -> Answer {
    let mut answer = text(301, format!("{}: {location}\n", reason(301)));
    answer.head += &format!("Location: {location}\r\n");
    answer
}

/// A folder that fits into one slice has a page of known length.
fn of_listing(request: &Request, mut listing: Listing) -> Answer {
    let content_type = "Content-Type: text/html; charset=utf-8\r\n";
    if request.method == Method::Head {
        // Its length may be left out (RFC 9110 section 8.6): only the whole page tells it.
        return bare(200, None, content_type.into());
    }
    let mut page = listing.slice();
    while !page.is_empty() && !listing.is_done() {
        page += &listing.slice();
    }
    if listing.is_done() {
        return Answer { body: Body::Text(page.clone()), ..bare(200, Some(page.len() as u64), content_type.into()) };
    }
    let (framing, coding) = match request.takes_chunks {
        true => (Framing::Chunks, "Transfer-Encoding: chunked\r\n"),
        false => (Framing::UntilClose, ""),
    };
    let body = Body::Page(Box::new(listing), framing);
    Answer { body, last: framing == Framing::UntilClose, ..bare(200, None, format!("{content_type}{coding}")) }
}

fn text(status: u16, text: String) -> Answer {
    let len = text.len() as u64;
    Answer { body: Body::Text(text), ..bare(status, Some(len), "Content-Type: text/plain\r\n".into()) }
}

/// Creates an answer without a body, whose head has only `fields`.
fn bare(status: u16, len: Option<u64>, fields: String) -> Answer {
    Answer { status, len, head: fields, body: Body::None, last: false }
}

impl Answer {
    /// Completes the head with what every head has.
    fn finish(self, keep_alive: bool, now: SystemTime) -> Self {
        let Self { status, len, head: fields, body, last } = self;
        let last = last || !keep_alive;
        let (date, reason) = (httpdate::fmt_http_date(now), reason(status));
        let connection = if last { "close" } else { "keep-alive" };
        let len_field = len.map_or(String::new(), |len| format!("Content-Length: {len}\r\n"));
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nDate: {date}\r\nServer: anabranch\r\n\
             {len_field}Connection: {connection}\r\n{fields}\r\n"
        );
        Self { status, len, head, body, last }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}
