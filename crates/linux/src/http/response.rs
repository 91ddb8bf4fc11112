//! Responses, as a client reads them.

use super::{FIELDS_MAX, HEAD_BYTES_MAX};

/// How the end of a body is recognised (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// So many octets.
    Length(u64),
    /// In chunks.
    Chunked,
    /// When the connection ends.
    UntilClose,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Status code.
    pub status: u16,
    /// What the server says about it.
    pub reason: String,
    /// How the body ends.
    pub body: Body,
    /// Where to look instead, for redirections.
    pub location: Option<String>,
}

/// Reads the head at the start of `octets` and tells how many of them it takes. `None`: more is needed.
///
/// # Errors
/// What is wrong with it.
pub fn parse_response_head(octets: &[u8]) -> Result<Option<(ResponseHead, usize)>, String> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    let len = match parsed.parse(octets) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) if octets.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => return Err("the answer's head is too long".into()),
        Err(error) => return Err(format!("the answer is not HTTP: {error}")),
    };
    let field = |name: &str| {
        let mut found = parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let first = found.next().map(|header| String::from_utf8_lossy(header.value).trim().to_owned());
        (first, found.next().is_some())
    };
    let body = match (field("transfer-encoding"), field("content-length")) {
        ((Some(coding), false), (None, _)) if coding.eq_ignore_ascii_case("chunked") => Body::Chunked,
        ((Some(coding), _), _) => return Err(format!("the transfer coding {coding:?} is not known here")),
        ((None, _), (Some(len), false)) => {
            let digits = !len.is_empty() && len.bytes().all(|digit| digit.is_ascii_digit());
            let len = len.parse().ok().filter(|_| digits).ok_or(format!("{len:?} is no Content-Length"))?;
            Body::Length(len)
        }
        ((None, _), (Some(_), true)) => return Err("the answer has two Content-Lengths".into()),
        ((None, _), (None, _)) => Body::UntilClose,
    };
    let (location, _) = field("location");
    let status = parsed.code.unwrap_or(0);
    Ok(Some((ResponseHead { status, reason: parsed.reason.unwrap_or_default().into(), body, location }, len)))
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
        assert_eq!(body(""), Ok(Body::UntilClose));
    }

    #[test]
    fn ambiguous_lengths_are_refused() {
        assert!(body("Content-Length: 12\r\nContent-Length: 13\r\n").is_err());
        assert!(body("Content-Length: +12\r\n").is_err());
        assert!(body("Content-Length: 12\r\nTransfer-Encoding: chunked\r\n").is_err());
        assert!(body("Transfer-Encoding: gzip, chunked\r\n").is_err());
    }

    #[test]
    fn heads_arrive_in_pieces() {
        assert_eq!(parse_response_head(b"HTTP/1.1 404 Not"), Ok(None));
        let (head, len) = parse_response_head(b"HTTP/1.0 404 Not Found\r\n\r\nbody").unwrap().unwrap();
        assert_eq!((head.status, head.reason.as_str(), len), (404, "Not Found", 26));
        assert!(parse_response_head(b"SSH-2.0-OpenSSH\r\n").is_err());
    }
}
