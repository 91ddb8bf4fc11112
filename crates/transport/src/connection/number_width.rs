//! How wide the data sequence numbers are that we send (RFC 8684 section 3.3.1).
//!
//! Four octets are enough as long as nothing of the stream can be taken for octets 2^32 further on. A path that comes back
//! after minutes has old segments to repeat, and others may have carried gigabytes meanwhile. So the first GiB of a stream
//! has short numbers, whatever its rate, and the rest long ones, repetitions of the first included.

use units::Dsn;
use wire::mptcp::{DataSeq, Mapping};

use super::Connection;

/// Octets acknowledged from which on numbers are long. With a window, which is no larger, short ones span half of what
/// they can tell apart.
const SHORT_BYTES: u64 = 1 << 30;
/// What a long number takes beyond a short one.
const WIDER_BYTES: u32 = 4;

impl Connection {
    fn sends_long_numbers(&self) -> bool {
        // MPTCP-rec needs the room for its rounds.
        self.sender.buffer.start().since(self.sender.first) >= SHORT_BYTES && self.rate_control().is_none()
    }

    /// Option room that data segments need beyond that of short numbers.
    pub(super) fn wider_number_bytes(&self) -> u32 {
        if self.sends_long_numbers() { WIDER_BYTES } else { 0 }
    }

    /// A data sequence number of ours as it is to be sent.
    pub(super) fn sent_number(&self, dsn: Dsn) -> DataSeq {
        if self.sends_long_numbers() { DataSeq::Long(dsn.0) } else { DataSeq::Short(dsn.low()) }
    }

    /// The mapping of a repetition: that of the first time, of octets near `dsn`, with a number as wide as is due now.
    pub(super) fn sent_again(&self, mapping: Mapping, dsn: Dsn) -> Mapping {
        Mapping { dsn: self.sent_number(mapping.dsn.expand(dsn)), ..mapping }
    }

    /// The peer has acknowledged data, those before `una` earlier: from now on numbers may be wider.
    pub(super) fn widen_numbers(&mut self, una: Dsn) {
        let were_long = una.since(self.sender.first) >= SHORT_BYTES;
        if !were_long && self.sends_long_numbers() && self.is_mptcp() {
            let room = self.data_option_room(self.sender.long_data_ack);
            self.subflows.iter_mut().for_each(|subflow| subflow.tcb.change_reserved_options(room));
        }
    }
}
