//! Applications of simulated hosts.

mod echo;
mod request_response;
mod source;
mod transfer;

pub use echo::Echo;
pub use request_response::RequestResponse;
pub use source::Source;
pub use transfer::Transfer;
