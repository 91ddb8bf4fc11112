//! Statistics as JSON.

use core::ffi::c_char;
use std::ffi::CString;

use serde_json::Value;

use crate::endpoint::{AnabranchEndpoint, with_endpoint, write_out};
use crate::status::{AnabranchStatus, Failure};

/// Times in the statistics, in nanoseconds; their names in JSON get the unit.
const TIMES: [&str; 6] = ["srtt", "rtt_sum", "min_rtt", "least_rtt", "established_at", "closed_at"];

/// Returns the statistics of a connection, open or closed, as a JSON object; free it with `anabranch_string_free`.
/// Names end in their unit (`_bytes`, `_segments`, `_ns`); `subflows` lists every subflow, including closed ones.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_stats_json(
    endpoint: *mut AnabranchEndpoint,
    connection: u64,
    json: *mut *mut c_char,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            write_out(json, "json", core::ptr::null_mut())?;
            let id = endpoint.connection(connection)?;
            let unknown = || Failure::new(AnabranchStatus::Unknown, "no such connection");
            let stats = endpoint.host.endpoint.stats(id).ok_or_else(unknown)?;
            let internal = |error| Failure::new(AnabranchStatus::Internal, error);
            let text = with_units(serde_json::to_value(stats).map_err(internal)?).to_string();
            write_out(json, "json", CString::new(text).unwrap_or_default().into_raw())?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Frees a string that the library returned; null is allowed.
///
/// # Safety
/// `string` is null or comes from a function that says so, and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_string_free(string: *mut c_char) {
    if !string.is_null() {
        // SAFETY: it comes from `into_raw`, and the caller frees it once, by the contract of this function.
        drop(unsafe { CString::from_raw(string) });
    }
}

/// Returns the same statistics, with the unit in the name of every time.
fn with_units(stats: Value) -> Value {
    match stats {
        Value::Object(fields) => {
            let named = |(name, value): (String, Value)| {
                (if TIMES.contains(&&*name) { name + "_ns" } else { name }, with_units(value))
            };
            Value::Object(fields.into_iter().map(named).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(with_units).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_carry_their_unit() {
        let stats = serde_json::json!({"srtt": 1, "sent_bytes": 2, "subflows": [{"closed_at": null, "id": 0}]});
        let named = serde_json::json!({"srtt_ns": 1, "sent_bytes": 2, "subflows": [{"closed_at_ns": null, "id": 0}]});
        assert_eq!(with_units(stats), named);
    }
}
