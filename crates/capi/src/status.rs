//! Status codes, the text of the last error, and the barrier for panics.

use core::ffi::c_char;
use core::fmt::Display;
use std::cell::RefCell;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use transport::error::{ChangeError, ConnectError, ConnectionError, ListenError};

/// Result of a call: zero on success, positive if there is nothing now, negative on error.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnabranchStatus {
    /// Success.
    Ok = 0,
    /// Nothing now; try again later.
    Again = 1,
    /// The peer's stream has ended and everything was received.
    Finished = 2,
    /// An argument is null, out of range or not understood.
    InvalidArgument = -1,
    /// No such connection, listener or subflow.
    Unknown = -2,
    /// Not possible in this state.
    WrongState = -3,
    /// The connection is over.
    Closed = -4,
    /// Address and port are in use.
    InUse = -5,
    /// The limit on connections or subflows has been reached.
    Limit = -6,
    /// Not an established MPTCP connection.
    NotMptcp = -7,
    /// The packet cannot be read; nothing happened.
    MalformedPacket = -8,
    /// The buffer is too short; nothing is lost. Try again with a larger one.
    BufferTooSmall = -9,
    /// A bug of the library: the endpoint refuses further work.
    Internal = -10,
    /// The setting cannot change once the connection exists.
    Fixed = -11,
    /// The peer forbids further subflows to that address and port (RFC 8684 section 3.1, flag C).
    JoinsForbidden = -12,
}

/// Result of a function body: a status that is not an error, or a failure.
pub(crate) type Outcome = Result<AnabranchStatus, Failure>;

/// A status that is an error, with the reason.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: AnabranchStatus,
    message: String,
}

impl Failure {
    pub fn new(status: AnabranchStatus, message: impl Display) -> Self {
        Self { status, message: message.to_string() }
    }

    /// An invalid argument.
    pub fn argument(message: impl Display) -> Self {
        Self::new(AnabranchStatus::InvalidArgument, message)
    }

    #[cfg(test)]
    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn null(name: &str) -> Self {
        Self::argument(format_args!("{name} is null"))
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        let status = match error {
            ListenError::InUse => AnabranchStatus::InUse,
            ListenError::PortZero | ListenError::UnusablePolicy(_) | ListenError::UnusableSetting(_) => {
                AnabranchStatus::InvalidArgument
            }
        };
        Self::new(status, error)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let status = match error {
            ConnectError::UnknownConnection => AnabranchStatus::Unknown,
            ConnectError::InUse => AnabranchStatus::InUse,
            ConnectError::Limit => AnabranchStatus::Limit,
            ConnectError::NotMptcp => AnabranchStatus::NotMptcp,
            ConnectError::JoinsForbidden(_) => AnabranchStatus::JoinsForbidden,
            ConnectError::FamilyMismatch
            | ConnectError::NoPeer(_)
            | ConnectError::NoLocalAddress
            | ConnectError::UnusablePolicy(_)
            | ConnectError::UnusableSetting(_) => AnabranchStatus::InvalidArgument,
        };
        Self::new(status, error)
    }
}

impl From<ChangeError> for Failure {
    fn from(error: ChangeError) -> Self {
        let status = match error {
            ChangeError::UnknownConnection => AnabranchStatus::Unknown,
            ChangeError::Closed(_) => AnabranchStatus::Closed,
            ChangeError::UnusablePolicy(_) | ChangeError::UnusableSetting(_) => AnabranchStatus::InvalidArgument,
        };
        Self::new(status, error)
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        let status = match error {
            ConnectionError::UnknownConnection | ConnectionError::UnknownSubflow => AnabranchStatus::Unknown,
            ConnectionError::WrongState => AnabranchStatus::WrongState,
            ConnectionError::UnusableAddress(_) => AnabranchStatus::InvalidArgument,
            ConnectionError::Limit => AnabranchStatus::Limit,
            ConnectionError::Closed(_) => AnabranchStatus::Closed,
        };
        Self::new(status, error)
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Returns the message of this thread's last failed call; empty if none failed. Valid until this thread's next failed
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_last_error() -> *const c_char {
    LAST_ERROR.with_borrow(|message| message.as_ptr())
}

fn set_last_error(message: String) {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    LAST_ERROR.set(text);
}

/// Runs the body of an interface function: records errors and stops panics.
pub(crate) fn guard(body: impl FnOnce() -> Outcome) -> AnabranchStatus {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let said = said.unwrap_or("no message");
        Err(Failure::new(AnabranchStatus::Internal, format_args!("bug in the library, please report it: {said}")))
    });
    outcome.unwrap_or_else(|failure| {
        set_last_error(failure.message);
        failure.status
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use transport::{ConnectionConfig, Endpoint, EndpointConfig};
    use units::Instant;

    use super::*;

    fn last_error() -> String {
        // SAFETY: a string that is valid until the next failed call.
        unsafe { CStr::from_ptr(anabranch_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_and_a_text() {
        let status = guard(|| panic!("said {}", 7));
        assert_eq!(status, AnabranchStatus::Internal);
        assert!(last_error().contains("said 7"), "{}", last_error());
    }

    #[test]
    fn a_policy_that_cannot_be_had_is_told_from_those_that_can() {
        let mut endpoint = Endpoint::with_seed(EndpointConfig::default(), 1);
        let [local, remote] = ["10.0.0.1:0", "10.0.0.2:80"].map(|text| text.parse().unwrap());
        let mut refusal = |congestion: &str, scheduler: &str| {
            let (congestion, scheduler) = (congestion.parse().unwrap(), scheduler.into());
            let config = ConnectionConfig { congestion, scheduler, ..ConnectionConfig::default() };
            let listened = Failure::from(endpoint.listen(remote, config.clone()).unwrap_err());
            let connected = Failure::from(endpoint.connect(local, remote, config, Instant::ZERO).unwrap_err());
            assert_eq!(listened.message, connected.message);
            assert_eq!([listened.status, connected.status], [AnabranchStatus::InvalidArgument; 2]);
            connected.message
        };
        let bounds = refusal("aimd(1,2)", "linux");
        assert!(bounds.starts_with("congestion controller aimd: beta = 2 must be above 0"), "{bounds}");
        assert!(refusal("scalable(0)", "linux").starts_with("unknown congestion controller \"scalable\" (there are: "));
        assert!(refusal("lia", "linx").starts_with("unknown scheduler \"linx\"; did you mean linux? (there are: "));
    }

    #[test]
    fn an_error_says_why() {
        assert_eq!(guard(|| Err(ConnectError::Limit.into())), AnabranchStatus::Limit);
        assert_eq!(last_error(), "limit reached");
        let remote = "192.0.2.1:80".parse().unwrap();
        let forbidden = || Err(ConnectError::JoinsForbidden(remote).into());
        assert_eq!(guard(forbidden), AnabranchStatus::JoinsForbidden);
        assert!(last_error().starts_with("the peer forbids further subflows to 192.0.2.1:80"));
        assert_eq!(guard(|| Err(ConnectionError::UnknownSubflow.into())), AnabranchStatus::Unknown);
        assert_eq!(guard(|| Ok(AnabranchStatus::Again)), AnabranchStatus::Again);
        assert_eq!(last_error(), "no such subflow");
    }
}
