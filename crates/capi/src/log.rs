//! Logs of what the engine decides.

use core::ffi::{c_char, c_void};
use std::io::{self, Write};

use qlog::{Header, Log};
use transport::observation::{Observation, Observer};

use crate::address::read_text;
use crate::endpoint::{AnabranchEndpoint, with_endpoint};
use crate::status::{AnabranchStatus, Failure};

/// Takes `len` octets of a log. Called in the middle of other calls on the endpoint, so it must not call any. `context`
/// is that of `anabranch_start_log`.
pub type AnabranchWrite = Option<unsafe extern "C" fn(context: *mut c_void, octets: *const u8, len: usize)>;

/// Starts a log of what the engine decides and why: windows, states, losses, timers, reinjection, events. It consists
/// of JSON records in the qlog format (docs/qlog.md), and `write` gets one whole record in each call, the first at
/// once. Write them into a file as they are. Times are those of the caller's clock, in milliseconds. `host` names the
/// host in the log. The log ends with the endpoint, or when another one is started, which goes on with the connections
/// of this one. Of connections that are older than the first log, only events are in it.
///
/// # Safety
/// `endpoint` is null or valid; `host` is null or a string; `write` is null or a function as described, and it and
/// `context` remain valid until the endpoint is freed or another log is started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_start_log(
    endpoint: *mut AnabranchEndpoint,
    host: *const c_char,
    write: AnabranchWrite,
    context: *mut c_void,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let host = read_text(host, "host")?;
            let write = write.ok_or_else(|| Failure::null("write"))?;
            let sink = Sink { write, context, record: Vec::new() };
            let header = Header { host, title: "anabranch", ..Header::default() };
            let log = Log::new(sink, header).map_err(|error| Failure::new(AnabranchStatus::Internal, error))?;
            endpoint.host.endpoint.set_observer(Box::new(Logger(log)));
            Ok(AnabranchStatus::Ok)
        })
    }
}

struct Logger(Log<Sink>);

impl Observer for Logger {
    fn observe(&mut self, observation: &Observation) {
        // A sink has no errors, and a record that cannot be written as JSON is a bug that must not end a run.
        let _ = self.0.record(observation);
    }
}

/// Collects a record and passes it on when it is complete.
struct Sink {
    write: unsafe extern "C" fn(*mut c_void, *const u8, usize),
    context: *mut c_void,
    record: Vec<u8>,
}

// SAFETY: the function is called only in calls on the endpoint, and one thread at a time makes these: by the contract of
// the interface, the caller may do so on any thread.
unsafe impl Send for Sink {}

impl Write for Sink {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.record.extend_from_slice(octets);
        if self.record.last() == Some(&b'\n') {
            // SAFETY: by the contract of `anabranch_start_log`, the function and its context are valid.
            unsafe { (self.write)(self.context, self.record.as_ptr(), self.record.len()) };
            self.record.clear();
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::*;
    use crate::address::{AnabranchAddress, anabranch_address_parse};
    use crate::connection::{anabranch_abort, anabranch_connect};
    use crate::endpoint::{ANABRANCH_SEED_LEN, anabranch_endpoint_free, anabranch_endpoint_new};

    unsafe extern "C" fn keep(context: *mut c_void, octets: *const u8, len: usize) {
        // SAFETY: the tests pass a vector, and the library valid octets.
        unsafe { (*context.cast::<Vec<Vec<u8>>>()).push(core::slice::from_raw_parts(octets, len).to_vec()) };
    }

    #[test]
    fn a_log_begins_at_once_and_needs_a_function() {
        let (mut endpoint, seed, mut records) = (ptr::null_mut(), [7; ANABRANCH_SEED_LEN], Vec::<Vec<u8>>::new());
        let context = (&raw mut records).cast();
        // SAFETY: null where it is allowed, and variables of this function, which outlive the endpoint.
        unsafe {
            assert_eq!(anabranch_endpoint_new(ptr::null(), seed.as_ptr(), &mut endpoint), AnabranchStatus::Ok);
            let start = |host, write| anabranch_start_log(endpoint, host, write, context);
            assert_eq!(start(c"laptop".as_ptr(), None), AnabranchStatus::InvalidArgument);
            assert_eq!(start(ptr::null(), Some(keep)), AnabranchStatus::InvalidArgument);
            assert_eq!(start(c"laptop".as_ptr(), Some(keep)), AnabranchStatus::Ok);
            anabranch_endpoint_free(endpoint);
        }
        let [record] = &records[..] else { panic!("{} records", records.len()) };
        let text = std::str::from_utf8(record).unwrap();
        assert!(text.starts_with('\u{1e}') && text.ends_with('\n') && text.contains("laptop"), "{text}");
    }

    /// What the first log writes to is free to go, also while connections of its time live on.
    #[test]
    fn another_log_goes_on_with_connections_of_the_first() {
        let (mut endpoint, seed, mut connection) = (ptr::null_mut(), [7; ANABRANCH_SEED_LEN], 0);
        let (mut first, mut second) = (Vec::<Vec<u8>>::new(), Vec::<Vec<u8>>::new());
        let (mut local, mut remote) = (AnabranchAddress::default(), AnabranchAddress::default());
        // SAFETY: null where it is allowed, and variables of this function, which outlive the endpoint.
        unsafe {
            assert_eq!(anabranch_endpoint_new(ptr::null(), seed.as_ptr(), &mut endpoint), AnabranchStatus::Ok);
            assert_eq!(anabranch_address_parse(c"10.0.0.1".as_ptr(), &mut local), AnabranchStatus::Ok);
            assert_eq!(anabranch_address_parse(c"10.0.0.2:80".as_ptr(), &mut remote), AnabranchStatus::Ok);
            let start = |records: *mut Vec<_>| anabranch_start_log(endpoint, c"a".as_ptr(), Some(keep), records.cast());
            assert_eq!(start(&raw mut first), AnabranchStatus::Ok);
            let connected = anabranch_connect(endpoint, &local, &remote, ptr::null(), 0, &mut connection);
            assert_eq!(connected, AnabranchStatus::Ok);
            assert!(first.len() > 1, "{} records", first.len());
            first.clear();
            assert_eq!(start(&raw mut second), AnabranchStatus::Ok);
            assert_eq!(anabranch_abort(endpoint, connection, 5_000_000), AnabranchStatus::Ok);
            anabranch_endpoint_free(endpoint);
        }
        assert_eq!(first.len(), 0);
        let text = String::from_utf8(second.concat()).unwrap();
        assert!(text.contains("tcp:state_updated"), "{text}");
    }
}
