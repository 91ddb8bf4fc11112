//! As much of HTTP/1.1 (RFC 9110, RFC 9112) as moving files needs. Pure: octets and values, no IO.

mod chunked;
mod range;
mod request;
mod response;
mod target;
mod url;

pub use chunked::{Chunked, ChunkedError};
pub use range::{Range, RangeError};
pub use request::{Method, Refusal, Request, parse_request};
pub use response::{Body, ResponseHead, parse_response_head};
pub use target::{content_type, decode_path, encode_path};
pub use url::Url;

/// Octets of a request's or response's head at most.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Header fields at most.
const FIELDS_MAX: usize = 64;
