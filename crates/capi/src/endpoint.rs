//! The endpoint handle: creation, time, wake-up.

use core::ffi::c_char;
use core::slice;

use cooperation::agent::Role;
use host::{EndpointHost, Host as _};
use transport::{ConnectionId, Endpoint, ListenerId};
use units::Instant;

use crate::address::{AnabranchAddress, read_address};
use crate::agent::{AgentNews, Program};
use crate::config::endpoint_config;
use crate::early::EarlyEvents;
use crate::handles::Handles;
use crate::status::{AnabranchStatus, Failure, Outcome, guard};

/// Octets of the seed of `anabranch_endpoint_new`.
pub const ANABRANCH_SEED_LEN: usize = 32;

/// Value of `anabranch_poll_timeout` if no wake-up is needed.
pub const ANABRANCH_NEVER: u64 = u64::MAX;

/// One host: an engine, and an agent if it has one. The program is its application.
pub struct AnabranchEndpoint {
    pub(crate) host: EndpointHost<Role, Program>,
    pub(crate) agent: AgentNews,
    pub(crate) early: EarlyEvents,
    pub(crate) connections: Handles<ConnectionId>,
    pub(crate) listeners: Handles<ListenerId>,
    /// Octets of the latest packet to send, and whether the caller still waits for it: its buffer was too small.
    pub(crate) packet: Vec<u8>,
    pub(crate) has_packet: bool,
    now: Instant,
    broken: bool,
}

impl AnabranchEndpoint {
    /// Updates the time. The engine asserts that time never runs backwards; a C program gets an error instead.
    pub(crate) fn advance(&mut self, now_ns: u64) -> Result<Instant, Failure> {
        let now = Instant::from_nanos(now_ns);
        if now < self.now {
            let last = self.now.as_nanos();
            return Err(Failure::argument(format_args!("now_ns {now_ns} is before the last one, {last}")));
        }
        self.now = now;
        Ok(now)
    }

    /// Returns the latest time.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    pub(crate) fn connection(&self, number: u64) -> Result<ConnectionId, Failure> {
        let unknown = || Failure::new(AnabranchStatus::Unknown, format_args!("no connection {number}"));
        self.connections.thing(number).ok_or_else(unknown)
    }

    /// Returns the part of `data` that is worth copying. One octet more than fits tells the engine that this side waits
    /// for room.
    pub(crate) fn offered<'a>(&self, connection: ConnectionId, data: &'a [u8]) -> &'a [u8] {
        let room = usize::try_from(self.host.endpoint.send_capacity(connection)).unwrap_or(usize::MAX);
        &data[..data.len().min(room.saturating_add(1))]
    }

    pub(crate) fn listener(&self, number: u64) -> Result<ListenerId, Failure> {
        let unknown = || Failure::new(AnabranchStatus::Unknown, format_args!("no listener {number}"));
        self.listeners.thing(number).ok_or_else(unknown)
    }
}

/// Runs `body` on an endpoint argument. After a bug the endpoint is not used again, because its state may be
/// inconsistent.
///
/// # Safety
/// `endpoint` is null or comes from `anabranch_endpoint_new` and was not freed.
pub(crate) unsafe fn with_endpoint(
    endpoint: *mut AnabranchEndpoint,
    body: impl FnOnce(&mut AnabranchEndpoint) -> Outcome,
) -> AnabranchStatus {
    guard(|| {
        // SAFETY: null, or an endpoint that only this call uses: the interface requires one thread at a time.
        let endpoint = unsafe { endpoint.as_mut() }.ok_or_else(|| Failure::null("endpoint"))?;
        if endpoint.broken {
            let message = "a bug was met in this endpoint before: free it";
            return Err(Failure::new(AnabranchStatus::Internal, message));
        }
        endpoint.broken = true;
        let outcome = body(endpoint);
        endpoint.broken = false;
        outcome
    })
}

/// Writes through a pointer argument.
///
/// # Safety
/// `out` is null or valid for writes.
pub(crate) unsafe fn write_out<T>(out: *mut T, name: &str, value: T) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: not null, and so valid for writes by the contract of this function; the old content need not be
    // initialised.
    unsafe { out.write(value) };
    Ok(())
}

/// Creates an endpoint. `config_json` is null for the defaults, or an object with any of `local_addresses` (a list of
/// `{"ip": "10.0.0.1", "backup": false}`), `ephemeral_port_first`, `connections_max`, `backlog` and `reset_unknown`.
/// `seed` points to `ANABRANCH_SEED_LEN` octets from which all keys and initial sequence numbers are derived: on a real
/// network take them from the operating system's random numbers, in a simulation from the scenario.
///
/// # Safety
/// `config_json` is null or a string, `seed` is null or points to 32 octets, `endpoint` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_endpoint_new(
    config_json: *const c_char,
    seed: *const u8,
    endpoint: *mut *mut AnabranchEndpoint,
) -> AnabranchStatus {
    guard(|| {
        // SAFETY: null, or a string by the contract of this function.
        let config = unsafe { endpoint_config(config_json) }?;
        if seed.is_null() {
            return Err(Failure::null("seed"));
        }
        // SAFETY: not null, and so as many octets by the contract of this function; octets have no alignment.
        let seed: [u8; ANABRANCH_SEED_LEN] = unsafe { seed.cast::<[u8; ANABRANCH_SEED_LEN]>().read() };
        if endpoint.is_null() {
            return Err(Failure::null("endpoint"));
        }
        let mut host = EndpointHost::with_app(Endpoint::new(config, seed), Role::Alone, Program::default());
        host.start(Instant::ZERO);
        let made = AnabranchEndpoint {
            host,
            agent: AgentNews::default(),
            early: EarlyEvents::default(),
            connections: Handles::default(),
            listeners: Handles::default(),
            packet: Vec::new(),
            has_packet: false,
            now: Instant::ZERO,
            broken: false,
        };
        // SAFETY: not null, and so valid for writes by the contract of this function.
        unsafe { write_out(endpoint, "endpoint", Box::into_raw(Box::new(made))) }?;
        Ok(AnabranchStatus::Ok)
    })
}

/// Frees an endpoint; null is allowed. Peers are not notified: close or abort connections first.
///
/// # Safety
/// `endpoint` is null or comes from `anabranch_endpoint_new` and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_endpoint_free(endpoint: *mut AnabranchEndpoint) {
    if !endpoint.is_null() {
        guard(|| {
            // SAFETY: `anabranch_endpoint_new` made it from a box, and the caller frees it once.
            drop(unsafe { Box::from_raw(endpoint) });
            Ok(AnabranchStatus::Ok)
        });
    }
}

/// Tells the endpoint the time: `now_ns`, in nanoseconds since any fixed moment. Harmless before the wake-up.
///
/// # Safety
/// `endpoint` is null or comes from `anabranch_endpoint_new` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_handle_timeout(endpoint: *mut AnabranchEndpoint, now_ns: u64) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let now = endpoint.advance(now_ns)?;
            endpoint.host.handle_timeout(now);
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Returns when to call `anabranch_handle_timeout` next, in nanoseconds of the same clock; `ANABRANCH_NEVER` if nothing
/// is due. May be early, never late.
///
/// # Safety
/// `endpoint` is null or comes from `anabranch_endpoint_new` and was not freed; `at_ns` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_poll_timeout(endpoint: *mut AnabranchEndpoint, at_ns: *mut u64) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let at = endpoint.host.poll_timeout().unwrap_or(Instant::FAR_FUTURE).min(endpoint.next_measurement());
            let at = if at < Instant::FAR_FUTURE { at.as_nanos() } else { ANABRANCH_NEVER };
            write_out(at_ns, "at_ns", at)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Tells the endpoint that a local address became usable; path managers may open subflows from it. The port is
/// ignored.
///
/// # Safety
/// `endpoint` is null or comes from `anabranch_endpoint_new` and was not freed; `address` is null or points to an
/// address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_add_local_address(
    endpoint: *mut AnabranchEndpoint,
    address: *const AnabranchAddress,
    backup: bool,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let ip = read_address(address, "address")?.ip();
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.add_local_address(transport::path_manager::LocalAddress { ip, backup }, now);
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Tells the endpoint that a local address is gone: its subflows fail. The port is ignored.
///
/// # Safety
/// Those of `anabranch_add_local_address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_remove_local_address(
    endpoint: *mut AnabranchEndpoint,
    address: *const AnabranchAddress,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let ip = read_address(address, "address")?.ip();
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.remove_local_address(ip, now);
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Reads an argument of octets.
///
/// # Safety
/// `data` is null or points to `len` octets that outlive the result.
pub(crate) unsafe fn read_octets<'a>(data: *const u8, len: usize, name: &str) -> Result<&'a [u8], Failure> {
    match len {
        0 => Ok(&[]),
        _ if data.is_null() => Err(Failure::null(name)),
        // SAFETY: not null, and so as many octets that outlive the result by the contract of this function.
        _ => Ok(unsafe { slice::from_raw_parts(data, len) }),
    }
}

/// Space for octets in the caller's buffer. It need not be initialised, so no slice of it is ever formed.
pub(crate) struct Room {
    start: *mut u8,
    pub capacity: usize,
}

impl Room {
    /// Wraps an argument for output octets.
    ///
    /// # Safety
    /// `start` is null or points to `capacity` octets that are valid for writes while the room is used.
    pub unsafe fn new(start: *mut u8, capacity: usize, name: &str) -> Result<Self, Failure> {
        if start.is_null() && capacity > 0 { Err(Failure::null(name)) } else { Ok(Self { start, capacity }) }
    }

    /// Writes `octets` from position `at` on.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write(&mut self, at: usize, octets: &[u8]) {
        assert!(at <= self.capacity && octets.len() <= self.capacity - at, "no room for {} octets", octets.len());
        // SAFETY: by the contract of `new` all of the room is valid for writes, and by the assertion the octets lie
        // within it. `copy` permits an overlap of the octets with the caller's room.
        unsafe { core::ptr::copy(octets.as_ptr(), self.start.add(at), octets.len()) };
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::*;

    fn endpoint() -> *mut AnabranchEndpoint {
        let mut endpoint = ptr::null_mut();
        let seed = [7; ANABRANCH_SEED_LEN];
        // SAFETY: null where it is allowed, and variables of this function.
        let status = unsafe { anabranch_endpoint_new(ptr::null(), seed.as_ptr(), &mut endpoint) };
        assert_eq!(status, AnabranchStatus::Ok);
        endpoint
    }

    #[test]
    fn an_endpoint_in_which_a_bug_was_met_refuses_further_work() {
        let endpoint = endpoint();
        let mut at_ns = 0;
        // SAFETY: an endpoint that was made above and is freed at the end, and variables of this function.
        unsafe {
            assert_eq!(anabranch_poll_timeout(endpoint, &mut at_ns), AnabranchStatus::Ok);
            assert_eq!(at_ns, ANABRANCH_NEVER);
            assert_eq!(with_endpoint(endpoint, |_| panic!("a bug")), AnabranchStatus::Internal);
            assert_eq!(anabranch_poll_timeout(endpoint, &mut at_ns), AnabranchStatus::Internal);
            anabranch_endpoint_free(endpoint);
        }
    }

    #[test]
    fn an_error_does_not_break_an_endpoint() {
        let endpoint = endpoint();
        // SAFETY: an endpoint that was made above and is freed at the end, and variables of this function.
        unsafe {
            assert_eq!(anabranch_handle_timeout(endpoint, 5), AnabranchStatus::Ok);
            assert_eq!(anabranch_handle_timeout(endpoint, 4), AnabranchStatus::InvalidArgument);
            assert_eq!(anabranch_handle_timeout(endpoint, 5), AnabranchStatus::Ok);
            anabranch_endpoint_free(endpoint);
        }
    }
}
