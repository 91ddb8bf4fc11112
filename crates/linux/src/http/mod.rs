//! The part of HTTP/1.1 (RFC 9110, RFC 9112) that moving files needs. Pure: octets and values, no IO.
//!
//! Crates parse heads, chunk sizes, ranges, dates, URLs and percent-encoding. The framing of bodies and the meaning of
//! conditions are our own code: the crate without IO that frames bodies (ureq-proto) accepts a body of which it knows
//! only the last transfer coding, so a file that is still compressed would count as complete.

mod chunked;
mod conditional;
mod growing_head;
mod range;
mod request;
mod response;
mod target;
mod url;

pub use chunked::{Chunked, ChunkedError};
pub use conditional::{Conditions, Judgement, Validators};
pub use growing_head::{GrowingHead, Pace};
pub use range::{ContentRange, Range, RangeError};
pub use request::{Method, Refusal, Request, lacks_version, parse_request};
pub use response::{Body, ResponseHead, answer_syntax, merged_length, parse_response_head};
pub use target::{content_type, decode_path, encode_path, with_slash};
pub use url::Url;

/// Maximum octets of the head of a request.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of header fields of a request.
const FIELDS_MAX: usize = 64;
/// Maximum octets of the head of a response, as in browsers.
pub const ANSWER_HEAD_BYTES_MAX: usize = 256 << 10;
/// Maximum number of header fields of a response. They are on the stack, 32 octets each, while a head is parsed.
pub const ANSWER_FIELDS_MAX: usize = 256;

#[cfg(test)]
thread_local! {
    /// Heads that this thread has parsed, complete or not.
    pub static PARSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the value of a field; several lines of the same name form one list (RFC 9110 section 5.3).
fn field(headers: &[httparse::Header<'_>], name: &str) -> Option<String> {
    let lines = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let values: Vec<_> = lines.map(|header| String::from_utf8_lossy(header.value).trim().to_owned()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}
