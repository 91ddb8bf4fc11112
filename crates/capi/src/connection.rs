//! The socket calls. None of them blocks.

use core::ffi::c_char;

use bytes::Bytes;
use transport::Received;
use wire::Payload;

use crate::address::{AnabranchAddress, read_address};
use crate::config::connection_config;
use crate::endpoint::{AnabranchEndpoint, Room, read_octets, with_endpoint, write_out};
use crate::status::{AnabranchStatus, Failure};

/// Waits for connections to `local`; an unspecified address accepts any. `config_json` is null for the defaults, or an
/// object of connection settings: see `anabranch_connect`. Returns a number for the listener, never zero.
///
/// # Safety
/// Pointers are null or valid; `config_json` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_listen(
    endpoint: *mut AnabranchEndpoint,
    local: *const AnabranchAddress,
    config_json: *const c_char,
    listener: *mut u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let local = read_address(local, "local")?;
            let config = connection_config(config_json)?;
            write_out(listener, "listener", 0)?;
            let id = endpoint.host.endpoint.listen(local, config)?;
            write_out(listener, "listener", endpoint.listeners.number(id))?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Stops listening. Accepted connections stay. Those not yet accepted are aborted and released, without an event.
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_close_listener(
    endpoint: *mut AnabranchEndpoint,
    listener: u64,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.listener(listener)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.close_listener(id, now);
            endpoint.listeners.remove(listener);
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Accepts the next established connection of a listener; `ANABRANCH_STATUS_AGAIN` if there is none. Events of the
/// connection begin now, with what has happened before: its first subflow, data that wait to be received, even its end.
/// Subflows that are gone again are left out.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_accept(
    endpoint: *mut AnabranchEndpoint,
    listener: u64,
    connection: *mut u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let listener = endpoint.listener(listener)?;
            write_out(connection, "connection", 0)?;
            let Some(id) = endpoint.host.endpoint.accept(listener) else { return Ok(AnabranchStatus::Again) };
            endpoint.early.accept(id);
            write_out(connection, "connection", endpoint.connections.number(id))?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Opens a connection. Port zero in `local` lets the endpoint choose one; an unspecified address there stands for the
/// first of its family among `local_addresses` of `anabranch_endpoint_new`. `config_json` is null for the defaults, or
/// an object with any of these, durations written as text ("40 ms"):
/// `mptcp`, `checksum`, `congestion`, `scheduler`, `path_manager`, `send_buffer_bytes`, `unsent_max_bytes`,
/// `receive_buffer_bytes`, `mtu`,
/// `offload_max_bytes`, `initial_window_segments`, `timestamps`, `sack`, `ecn`, `nagle`, `suspension`, `hystart`,
/// `delayed_ack`, `rto_min`, `keep_alive` (or null), `user_timeout`, `subflows_max`, `remote_addresses_max`,
/// `time_wait`, `receiver_centric` (null, or an object: `{}` turns MPTCP-rec on).
/// Returns a number for the connection, never zero and never reused.
///
/// # Safety
/// Pointers are null or valid; `config_json` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_connect(
    endpoint: *mut AnabranchEndpoint,
    local: *const AnabranchAddress,
    remote: *const AnabranchAddress,
    config_json: *const c_char,
    now_ns: u64,
    connection: *mut u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let local = read_address(local, "local")?;
            let remote = read_address(remote, "remote")?;
            let config = connection_config(config_json)?;
            write_out(connection, "connection", 0)?;
            let now = endpoint.advance(now_ns)?;
            let id = endpoint.host.endpoint.connect(local, remote, endpoint.adapted(config), now)?;
            write_out(connection, "connection", endpoint.connections.number(id))?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Sends `len` octets of data, which are copied. `taken` gets the number of octets taken from the front. If it is less
/// than `len`, the send buffer is full; `ANABRANCH_EVENT_KIND_WRITABLE` reports when it has room again.
///
/// # Safety
/// Pointers are null or valid; `data` points to `len` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_send(
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
            let count = endpoint.host.endpoint.send(id, offered, now)?;
            write_out(taken, "taken", count)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Receives at most `capacity` octets, as many as are available. `ANABRANCH_STATUS_AGAIN` if there are none now,
/// `ANABRANCH_STATUS_FINISHED` if the peer's stream has ended; `len` is zero in both cases.
///
/// # Safety
/// Pointers are null or valid; `out` points to `capacity` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_recv(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    out: *mut u8,
    capacity: usize,
    now_ns: u64,
    len: *mut usize,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let out = Room::new(out, capacity, "out")?;
            if out.capacity == 0 {
                return Err(Failure::argument("capacity is zero"));
            }
            write_out(len, "len", 0)?;
            endpoint.advance(now_ns)?;
            let (count, status) = receive_into(endpoint, id, out)?;
            write_out(len, "len", count)?;
            Ok(status)
        })
    }
}

/// Fills `out` piece by piece: each call to the engine returns one contiguous piece.
fn receive_into(
    endpoint: &mut AnabranchEndpoint,
    connection: transport::ConnectionId,
    mut out: Room,
) -> Result<(usize, AnabranchStatus), Failure> {
    let now = endpoint.now();
    let mut filled = 0;
    while filled < out.capacity {
        let received = endpoint.host.endpoint.recv(connection, out.capacity - filled, now);
        match received {
            Ok(Received::Data(piece)) => {
                out.write(filled, &piece.to_bytes());
                filled += piece.len();
            }
            // Taken data must reach the caller; the next call reports the status.
            _ if filled > 0 => break,
            Ok(Received::Pending) => return Ok((0, AnabranchStatus::Again)),
            Ok(Received::Finished) => return Ok((0, AnabranchStatus::Finished)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok((filled, AnabranchStatus::Ok))
}

/// Ends this side's stream; the other direction stays open.
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_shutdown(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.shutdown(id, now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Ends this side's stream and discards data that still arrive. The connection lingers until the peer has all data, and
/// is aborted if the peer acknowledges nothing more for `user_timeout`.
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_close(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.close(id, now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Ends the connection at once: MP_FASTCLOSE, or RST for plain TCP.
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_abort(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.endpoint.abort(id, now)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Releases a connection with its statistics; its number is invalid from then on. The connection must have closed
/// (event `ANABRANCH_EVENT_KIND_CLOSED`): `ANABRANCH_STATUS_WRONG_STATE` otherwise.
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_release(endpoint: *mut AnabranchEndpoint, connection: u64) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let id = endpoint.connection(connection)?;
            if endpoint.host.endpoint.stats(id).is_some_and(|stats| stats.closed_at.is_none()) {
                let why = "the connection has not closed: abort it, and wait for the event";
                return Err(Failure::new(AnabranchStatus::WrongState, why));
            }
            endpoint.host.endpoint.release(id);
            endpoint.connections.remove(connection);
            Ok(AnabranchStatus::Ok)
        })
    }
}
