//! Functions on a connection other than sending and receiving: settings, addresses, room, corks.

use core::ffi::c_char;

use bytes::Bytes;
use transport::SubflowId;
use wire::Payload;

use crate::address::{AnabranchAddress, read_address};
use crate::config::settings_change;
use crate::endpoint::{AnabranchEndpoint, read_octets, with_endpoint, write_out};
use crate::status::{AnabranchStatus, Failure};

/// Changes settings of a connection: all that `config_json` names or, on an error, none. It is an object as for
/// `anabranch_connect`, with any of `congestion`, `scheduler`, `send_buffer_bytes`, `unsent_max_bytes`,
/// `receive_buffer_bytes`, `nagle`, `delayed_ack`, `keep_alive` (null sends none), `user_timeout`, `subflows_max`,
/// `remote_addresses_max` and `time_wait`. All other settings were agreed upon with the peer, or used, when the
/// connection was opened: `ANABRANCH_STATUS_FIXED`. Allowed immediately after `anabranch_connect`, and after
/// `anabranch_accept`.
///
/// # Safety
/// `endpoint` is null or valid; `config_json` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_change(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    config_json: *const c_char,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let change = settings_change(config_json)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.change(id, &change, now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Like `anabranch_send`, but announces that more data will follow at once: data that do not fill a segment wait for
/// it. They leave with the next data, with `anabranch_set_corked(..., false, ...)`, or at the end of the stream.
///
/// # Safety
/// Pointers are null or valid; `data` points to `len` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_send_more(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    data: *const u8,
    len: usize,
    now_ns: u64,
    taken: *mut usize,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let data = read_octets(data, len, "data")?;
            write_out(taken, "taken", 0)?;
            let now = endpoint.advance(now_ns)?;
            let offered = Payload::from(Bytes::copy_from_slice(endpoint.offered(id, data)));
            let count = endpoint.host.endpoint.send_more(id, offered, now)?;
            write_out(taken, "taken", count)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Corks or uncorks a connection. While corked, every segment that the data do not fill waits, without limit, until the
/// connection is uncorked, the stream ends, or the waiting data fill three quarters of the send buffer.
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_set_corked(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    corked: bool,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.set_corked(id, corked, now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Stops reading: discards data that wait or still arrive, so that the peer is not held up. `anabranch_recv` then
/// returns `ANABRANCH_STATUS_FINISHED`. This side may continue to send; the peer is not notified.
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_shutdown_read(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.shutdown_read(id, now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Returns both addresses of a connection, this side's and the peer's: those of its first subflow, even if that is
/// gone.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_addresses(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    local: *mut AnabranchAddress,
    remote: *mut AnabranchAddress,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let known = endpoint.host.endpoint.addresses(id);
            let (here, there) = known.ok_or_else(|| Failure::new(AnabranchStatus::Unknown, "no such connection"))?;
            write_out(local, "local", here.into())?;
            write_out(remote, "remote", there.into())?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Returns the connection that has a subflow between these addresses and ports, open or being opened.
/// `ANABRANCH_STATUS_UNKNOWN` if there is none, or nobody has accepted it yet.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_connection_of(
    endpoint: *mut AnabranchEndpoint,
    local: *const AnabranchAddress,
    remote: *const AnabranchAddress,
    connection: *mut u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let (here, there) = (read_address(local, "local")?, read_address(remote, "remote")?);
            write_out(connection, "connection", 0)?;
            let found = endpoint.host.endpoint.by_addresses(here, there).filter(|id| endpoint.connections.has(*id));
            let id = found.ok_or_else(|| Failure::new(AnabranchStatus::Unknown, "no such subflow"))?;
            write_out(connection, "connection", endpoint.connections.number(id))?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Returns the number of octets that `anabranch_send` would take now; zero after `anabranch_shutdown`.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_send_capacity(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    bytes: *mut u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            write_out(bytes, "bytes", endpoint.host.endpoint.send_capacity(id))?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Returns the number of octets that `anabranch_recv` would return now, without taking any.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_readable_bytes(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    bytes: *mut u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            write_out(bytes, "bytes", endpoint.host.endpoint.readable_bytes(id))?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Returns the largest payload in octets of one packet of a subflow: the smaller MSS of both sides, less the options.
/// It may change during the connection. `ANABRANCH_STATUS_UNKNOWN` for a subflow that is gone.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_mss(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    subflow: u16,
    bytes: *mut u32,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let unknown = || Failure::new(AnabranchStatus::Unknown, format_args!("no subflow {subflow}"));
            let mss = endpoint.host.endpoint.mss(id, SubflowId(subflow)).ok_or_else(unknown)?;
            write_out(bytes, "bytes", mss)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Returns the congestion window of a subflow, octets. For callers that look often: it costs less than statistics.
/// `ANABRANCH_STATUS_UNKNOWN` for a subflow that is gone.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_congestion_window(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    subflow: u16,
    bytes: *mut u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let unknown = || Failure::new(AnabranchStatus::Unknown, format_args!("no subflow {subflow}"));
            let cwnd = endpoint.host.endpoint.cwnd(id, SubflowId(subflow)).ok_or_else(unknown)?;
            write_out(bytes, "bytes", cwnd)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Returns the number of established connections of a listener that wait for `anabranch_accept`.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_pending_accepts(
    endpoint: *mut AnabranchEndpoint,
    listener: u64,
    count: *mut usize,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.listener(listener)?;
            write_out(count, "count", endpoint.host.endpoint.pending_accepts(id))?;
            Ok(AnabranchStatus::Ok)
        })
    }
}
