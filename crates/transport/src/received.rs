//! What reading from a connection gives.

use wire::Payload;

/// What [`crate::Endpoint::recv`] found.
#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    /// The next octets of the stream.
    Data(Payload),
    /// Nothing yet.
    Pending,
    /// The peer sent all its data and everything was received.
    Finished,
}
