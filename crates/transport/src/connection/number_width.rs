//! Width of the data sequence numbers that we send (RFC 8684 section 3.3.1).
//!
//! Four octets suffice while no octet of the stream can be confused with one 2^32 further on. A path that returns after
//! minutes has old segments to repeat, and others may have carried gigabytes meanwhile. Therefore the first GiB of a
//! stream has short numbers, whatever its rate, and the rest has long ones, as do repetitions of the first.

use units::Dsn;
use wire::mptcp::{DataSeq, Mapping};

use super::Connection;

/// Acknowledged octets from which on numbers are long. Together with a window, which is no larger, short numbers span
/// half of what they can distinguish.
const SHORT_BYTES: u64 = 1 << 30;

impl Connection {
    /// Whether our data have long numbers now.
    pub(super) fn sends_long_numbers(&self) -> bool {
        // MPTCP-rec needs the room for its rounds.
        self.sender.buffer.start().since(self.sender.first) >= SHORT_BYTES && self.rate_control().is_none()
    }

    /// Returns one of our data sequence numbers in the width to send.
    pub(super) fn sent_number(&self, dsn: Dsn) -> DataSeq {
        if self.sends_long_numbers() { DataSeq::Long(dsn.0) } else { DataSeq::Short(dsn.low()) }
    }

    /// Returns the mapping for a repetition: the original one, of octets near `dsn`, with its number in the present
    /// width.
    pub(super) fn sent_again(&self, mapping: Mapping, dsn: Dsn) -> Mapping {
        Mapping { dsn: self.sent_number(mapping.dsn.expand(dsn)), ..mapping }
    }

    /// The peer has acknowledged data, up to `una` before: from now on numbers may be wider.
    pub(super) fn widen_numbers(&mut self, una: Dsn) {
        let were_long = una.since(self.sender.first) >= SHORT_BYTES;
        if !were_long && self.sends_long_numbers() && self.is_mptcp() {
            let room = self.data_option_room(self.sender.long_data_ack);
            self.subflows.iter_mut().for_each(|subflow| subflow.tcb.change_reserved_options(room));
        }
    }
}
