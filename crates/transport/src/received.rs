//! Result of reading from a connection.

use wire::Payload;

/// Result of [`crate::Endpoint::recv`].
#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    /// The next octets of the stream.
    Data(Payload),
    /// No data yet.
    Pending,
    /// The peer has sent all its data, and the application has read them.
    Finished,
}
