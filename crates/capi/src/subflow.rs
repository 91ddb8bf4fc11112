//! Subflows and addresses of one connection (after RFC 6897's socket options).

use transport::SubflowId;

use crate::address::{AnabranchAddress, read_address};
use crate::endpoint::{AnabranchEndpoint, with_endpoint, write_out};
use crate::status::AnabranchStatus;

/// Opens a subflow (RFC 6897 TCP_MULTIPATH_ADD). Port zero in `local` lets the endpoint choose one. Returns the number
/// of the subflow within its connection, in order of creation from zero. Also returns `ANABRANCH_STATUS_NOT_MPTCP`
/// until the peer has acknowledged data of a connection that this side opened (RFC 8684 section 3.1): try again then.
/// `ANABRANCH_STATUS_JOINS_FORBIDDEN` if the peer takes no further subflows at `remote`: join an address that it
/// announces.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_add_subflow(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    local: *const AnabranchAddress,
    remote: *const AnabranchAddress,
    backup: bool,
    now_ns: u64,
    subflow: *mut u16,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let local = read_address(local, "local")?;
            let remote = read_address(remote, "remote")?;
            write_out(subflow, "subflow", 0)?;
            let now = endpoint.advance(now_ns)?;
            let SubflowId(number) = endpoint.host.endpoint.add_subflow(id, local, remote, backup, now)?;
            write_out(subflow, "subflow", number)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Closes a subflow (RFC 6897 TCP_MULTIPATH_REMOVE); other subflows carry its unacknowledged data.
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_remove_subflow(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    subflow: u16,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.remove_subflow(id, SubflowId(subflow), now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Makes a subflow a backup, or regular again, and asks the peer to do the same (MP_PRIO).
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_set_priority(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    subflow: u16,
    backup: bool,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.set_priority(id, SubflowId(subflow), backup, now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Announces an address to the peer of a connection (ADD_ADDR); port zero announces no port.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_announce_address(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    address: *const AnabranchAddress,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let address = read_address(address, "address")?;
            let port = Some(address.port()).filter(|port| *port != 0);
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.announce_address(id, address.ip(), port, now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Withdraws an address from a connection (REMOVE_ADDR) and closes its subflows. The port is ignored.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_withdraw_address(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    address: *const AnabranchAddress,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let address = read_address(address, "address")?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.withdraw_address(id, address.ip(), now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}
