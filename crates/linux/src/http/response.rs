//! Responses, as a client reads them.

use std::time::Duration;

use super::{ANSWER_FIELDS_MAX, ANSWER_HEAD_BYTES_MAX, ContentRange, field};

/// How a body ends (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// After this many octets.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// When the connection ends.
    UntilClose,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Status code.
    pub status: u16,
    /// The server's explanation of the status.
    pub reason: String,
    /// How the body ends.
    pub body: Body,
    /// Where to look instead, in a redirection.
    pub location: Option<String>,
    /// Position of the body's octets, if it is a part.
    pub content_range: Option<ContentRange>,
    /// Proves later, in an If-Range field, that the file is still the same: a strong entity tag, or a strong date (RFC
    /// 9110 section 8.8.2.2).
    pub validator: Option<String>,
    /// The entity tag without the mark of weak ones: strong and weak tags that differ are those of two versions.
    pub tag: Option<String>,
    /// When the file was last changed, as the server writes it.
    pub last_modified: Option<String>,
    /// Whether the server sends parts of files, if it says so (Accept-Ranges, RFC 9110 section 14.3).
    pub sends_parts: Option<bool>,
}

impl ResponseHead {
    /// Returns whether another answer to the same request follows (RFC 9110 section 15.2).
    pub fn is_informational(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }

    /// Returns whether the answer names another version than that of the validator `ours`. What is weak proves no
    /// version to be the same, but shows that it is another one.
    pub fn names_another(&self, ours: &str) -> bool {
        let theirs = if ours.starts_with('"') { &self.tag } else { &self.last_modified };
        theirs.as_ref().is_some_and(|theirs| theirs != ours)
    }
}

/// Returns how answers are parsed. Some servers write a space before the colon of a field, which does not belong to its
/// name (RFC 9112 section 5.1); a request with such a space is refused.
pub fn answer_syntax() -> httparse::ParserConfig {
    let mut syntax = httparse::ParserConfig::default();
    syntax.allow_spaces_after_header_name_in_responses(true);
    syntax
}

/// Reads the head at the start of `octets` and returns it with its length. `None`: more octets are needed.
///
/// # Errors
/// What is wrong with it.
pub fn parse_response_head(octets: &[u8]) -> Result<Option<(ResponseHead, usize)>, String> {
    let mut fields = [httparse::EMPTY_HEADER; ANSWER_FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    #[cfg(test)]
    super::PARSED.set(super::PARSED.get() + 1);
    let len = match answer_syntax().parse_response(&mut parsed, octets) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if octets.len() < ANSWER_HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => {
            return Err(format!("the answer's head is longer than {} KiB", ANSWER_HEAD_BYTES_MAX >> 10));
        }
        Err(httparse::Error::TooManyHeaders) => {
            return Err(format!("the answer has more than {ANSWER_FIELDS_MAX} fields"));
        }
        Err(error) => return Err(format!("the answer is not HTTP: {error}")),
    };
    let headers = &*parsed.headers;
    let visible = |text: String| text.replace(|c: char| c.is_control(), "\u{fffd}");
    let head = ResponseHead {
        status: parsed.code.unwrap_or(0),
        reason: parsed.reason.unwrap_or_default().into(),
        body: body(headers)?,
        location: field(headers, "location").map(visible),
        content_range: field(headers, "content-range").and_then(|text| ContentRange::parse(&text)),
        validator: validator(headers),
        tag: field(headers, "etag").map(|tag| tag.strip_prefix("W/").unwrap_or(&tag).to_owned()),
        last_modified: field(headers, "last-modified"),
        sends_parts: field(headers, "accept-ranges").map(|units| units.to_ascii_lowercase().contains("bytes")),
    };
    Ok(Some((head, len)))
}

/// Returns the length that all values of Content-Length agree on, in one field or several; `None` if they do not, or if
/// one is no number (RFC 9112 section 6.3, 5).
pub fn merged_length<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> Option<u64> {
    let mut merged = None;
    for value in fields.into_iter().flat_map(|field| field.split(|octet| *octet == b',')) {
        let digits = value.trim_ascii();
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let length = core::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
        if *merged.get_or_insert(length) != length {
            return None;
        }
    }
    merged
}

/// Returns how the body ends, or an error if that is unclear. Chunks override a length (RFC 9112 section 6.3). Octets
/// that follow the chunks of such an answer may be meant for a reader that goes by the length, so its connection serves
/// no other request.
fn body(headers: &[httparse::Header<'_>]) -> Result<Body, String> {
    let lines = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("content-length"));
    match (field(headers, "transfer-encoding"), field(headers, "content-length")) {
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Ok(Body::Chunked),
        (Some(coding), _) => Err(format!("the transfer coding {coding:?} is not supported")),
        (None, Some(len)) => match merged_length(lines.map(|header| header.value)) {
            Some(len) => Ok(Body::Length(len)),
            None => Err(format!("{len:?} is not a Content-Length")),
        },
        (None, None) => Ok(Body::UntilClose),
    }
}

/// Returns the validator. A date is strong if the file had been unchanged for a while when it was sent.
fn validator(headers: &[httparse::Header<'_>]) -> Option<String> {
    if let Some(tag) = field(headers, "etag") {
        return (tag.starts_with('"') && !tag.contains(['\r', '\n'])).then_some(tag);
    }
    let text = field(headers, "last-modified")?;
    let modified = httpdate::parse_http_date(&text).ok()?;
    let sent = httpdate::parse_http_date(&field(headers, "date")?).ok()?;
    sent.duration_since(modified).is_ok_and(|age| age >= Duration::from_secs(2)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(fields: &str) -> Result<Body, String> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        parse_response_head(text.as_bytes()).map(|head| head.unwrap().0.body)
    }

    #[test]
    fn how_bodies_end() {
        assert_eq!(body("Content-Length: 12\r\n"), Ok(Body::Length(12)));
        assert_eq!(body("transfer-encoding: Chunked\r\n"), Ok(Body::Chunked));
        assert_eq!(body("Content-Length: 12\r\nTransfer-Encoding: chunked\r\n"), Ok(Body::Chunked));
        assert_eq!(body(""), Ok(Body::UntilClose));
        assert_eq!(body("Content-Length : 12\r\n"), Ok(Body::Length(12)), "as embedded servers may write it");
    }

    #[test]
    fn equal_lengths_are_one() {
        for fields in ["Content-Length: 12\r\nContent-length: 12\r\n", "Content-Length: 12, 12\r\n"] {
            assert_eq!(body(fields), Ok(Body::Length(12)), "{fields}");
        }
        for values in ["12, 13", "12,", ",12", "12, +12", "12 12", "", "99999999999999999999"] {
            assert!(body(&format!("Content-Length: {values}\r\n")).is_err(), "{values}");
        }
    }

    /// The same as those of the proxy.
    #[test]
    fn heads_have_a_limit_in_octets_and_one_in_fields() {
        let with = |fields: &str| parse_response_head(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes());
        let kilobyte = format!("X: {}\r\n", "a".repeat(1000));
        assert!(matches!(with(&kilobyte.repeat(250)), Ok(Some(_))));
        let too_long = parse_response_head(format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(256 << 10)).as_bytes());
        assert_eq!(too_long, Err("the answer's head is longer than 256 KiB".into()));
        assert!(matches!(with(&"X: 1\r\n".repeat(256)), Ok(Some(_))));
        assert_eq!(with(&"X: 1\r\n".repeat(257)), Err("the answer has more than 256 fields".into()));
    }

    #[test]
    fn ambiguous_lengths_are_refused() {
        assert!(body("Content-Length: 12\r\nContent-Length: 13\r\n").is_err());
        assert!(body("Content-Length: +12\r\n").is_err());
        assert!(body("Transfer-Encoding: gzip, chunked\r\n").is_err());
        assert!(body("Content-Length: 12\r\nTransfer-Encoding: gzip\r\n").is_err());
    }

    #[test]
    fn validators_are_strong_or_none() {
        let validator = |fields: &str| {
            let text = format!("HTTP/1.1 200 OK\r\nDate: Tue, 15 Nov 1994 12:45:26 GMT\r\n{fields}\r\n");
            parse_response_head(text.as_bytes()).unwrap().unwrap().0.validator
        };
        let (old, young) = ("Tue, 15 Nov 1994 12:45:24 GMT", "Tue, 15 Nov 1994 12:45:25 GMT");
        assert_eq!(validator("ETag: \"x\"\r\n").as_deref(), Some("\"x\""));
        assert_eq!(validator(&format!("ETag: W/\"x\"\r\nLast-Modified: {old}\r\n")), None);
        assert_eq!(validator(&format!("Last-Modified: {old}\r\n")).as_deref(), Some(old));
        assert_eq!(validator(&format!("Last-Modified: {young}\r\n")), None);
        assert_eq!(validator("Last-Modified: yesterday\r\n"), None);
    }

    #[test]
    fn heads_arrive_in_pieces() {
        assert_eq!(parse_response_head(b"HTTP/1.1 404 Not"), Ok(None));
        let (head, len) = parse_response_head(b"HTTP/1.0 404 Not Found\r\n\r\nbody").unwrap().unwrap();
        assert_eq!((head.status, head.reason.as_str(), len), (404, "Not Found", 26));
        assert!(parse_response_head(b"SSH-2.0-OpenSSH\r\n").is_err());
    }
}
