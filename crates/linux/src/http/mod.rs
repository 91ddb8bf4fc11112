//! As much of HTTP/1.1 (RFC 9110, RFC 9112) as moving files needs. Pure: octets and values, no IO.
//!
//! Heads, sizes of chunks, ranges, dates, URLs and percent-encoding are read by crates. How bodies end and what conditions
//! mean is our own: the crate without IO that frames bodies (ureq-proto) takes a body of which it knows only the last
//! transfer coding, and a file would be called complete that is still packed.

mod chunked;
mod conditional;
mod range;
mod request;
mod response;
mod target;
mod url;

pub use chunked::{Chunked, ChunkedError};
pub use conditional::{Conditions, Judgement, Validators};
pub use range::{ContentRange, Range, RangeError};
pub use request::{Method, Refusal, Request, parse_request};
pub use response::{Body, ResponseHead, parse_response_head};
pub use target::{content_type, decode_path, encode_path};
pub use url::Url;

/// Octets of a request's or response's head at most.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Header fields at most.
const FIELDS_MAX: usize = 64;

/// The value of a field; several lines of the same name are one list (RFC 9110 section 5.3).
fn field(headers: &[httparse::Header<'_>], name: &str) -> Option<String> {
    let lines = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let values: Vec<_> = lines.map(|header| String::from_utf8_lossy(header.value).trim().to_owned()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}
