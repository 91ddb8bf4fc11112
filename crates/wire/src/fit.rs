//! The policy that packs options into the 40 octets of a TCP header.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::Options;
use crate::mptcp::MptcpOption;

/// MPTCP options for which there was no room; the caller sends them on a later segment.
pub type Deferred = SmallVec<[MptcpOption; 1]>;

impl Options {
    /// Makes the options fit into [`Self::MAX_BYTES`] and returns the MPTCP options that a later segment has to carry.
    /// Options that fit stay as they are. In RFC 8684's own use nearly all fit: the longest DSS (28 octets) leaves the
    /// 12 that timestamps take.
    ///
    /// Options give way in this order, each only as far as needed:
    ///
    /// | | gives way | how | why it may |
    /// |---|---|---|---|
    /// | 1 | SACK | oldest blocks first, to none | each block is repeated on later ACKs (RFC 2018 section 4) |
    /// | 2 | 64-bit DSN of a mapping | low 32 bits | the receiver infers the rest (RFC 8684 section 3.3.1) |
    /// | 3 | MPTCP-rec's round | left out | every data segment carries one |
    /// | 4 | ADD_ADDR, REMOVE_ADDR, MP_PRIO, experimental | deferred, the last one first | not tied to this segment |
    /// | 5 | DATA_ACK beside a mapping | left out | cumulative: the next segment carries it |
    /// | 6 | timestamps | left out | receivers may, but rarely do, drop a segment without (RFC 7323 section 3.2) |
    /// | 7 | DSS, then the handshake options | deferred, the last one first | only if the caller asks the impossible |
    ///
    /// SYN options (MSS, window scale, SACK-permitted) never give way. They fit beside any one handshake option
    /// (MP_CAPABLE, MP_JOIN, MP_FASTCLOSE, MP_FAIL, MP_TCPRST), so that option never gives way either. A DATA_ACK is
    /// not shortened: a peer that sends 64-bit data sequence numbers must be acknowledged in 64 bits (RFC 8684 section
    /// 3.3.2).
    ///
    /// An IPv6 ADD_ADDR (28 octets, with port 30) has no room beside timestamps and DSS: send it on an ACK without DSS.
    pub fn fit(&mut self) -> Deferred {
        if self.encoded_len() <= Self::MAX_BYTES { Deferred::new() } else { self.pack() }
    }

    /// Returns these options as they are sent: unchanged if they fit, else packed.
    pub(crate) fn fitted(&self) -> Cow<'_, Self> {
        if self.encoded_len() <= Self::MAX_BYTES {
            return Cow::Borrowed(self);
        }
        let mut options = self.clone();
        options.pack();
        Cow::Owned(options)
    }

    #[cold]
    fn pack(&mut self) -> Deferred {
        // SACK gives way to all others, so it takes what they leave.
        let mut sack = core::mem::take(&mut self.sack);
        let deferred = self.pack_without_sack();
        sack.truncate(Self::sack_blocks_in(Self::MAX_BYTES - self.encoded_len()));
        self.sack = sack;
        deferred
    }

    fn pack_without_sack(&mut self) -> Deferred {
        let mut deferred = Deferred::new();
        if self.overflows() {
            self.shorten_dsn();
        }
        if self.overflows() {
            self.round = None;
        }
        self.defer_while_too_long(is_signal, &mut deferred);
        if self.overflows() {
            self.drop_data_ack();
        }
        if self.overflows() {
            self.timestamps = None;
        }
        self.defer_while_too_long(|option| matches!(option, MptcpOption::Dss(_)), &mut deferred);
        self.defer_while_too_long(|_| true, &mut deferred);
        deferred
    }

    fn overflows(&self) -> bool {
        self.encoded_len_without_sack() > Self::MAX_BYTES
    }

    fn shorten_dsn(&mut self) {
        for option in &mut self.mptcp {
            if let MptcpOption::Dss(dss) = option {
                dss.mapping.iter_mut().for_each(|mapping| mapping.dsn = mapping.dsn.shortened());
            }
        }
    }

    fn drop_data_ack(&mut self) {
        for option in &mut self.mptcp {
            if let MptcpOption::Dss(dss) = option {
                dss.data_ack = dss.data_ack.filter(|_| dss.mapping.is_none());
            }
        }
    }

    /// Moves options that `may_go` to the front of `deferred`, the last one first, until the rest fits.
    fn defer_while_too_long(&mut self, may_go: impl Fn(&MptcpOption) -> bool, deferred: &mut Deferred) {
        while self.overflows() {
            let Some(last) = self.mptcp.iter().rposition(&may_go) else { return };
            deferred.insert(0, self.mptcp.remove(last));
        }
    }
}

/// Returns whether the option concerns the connection, not the segment that carries it.
fn is_signal(option: &MptcpOption) -> bool {
    matches!(
        option,
        MptcpOption::AddAddr(_) | MptcpOption::RemoveAddr(_) | MptcpOption::Prio(_) | MptcpOption::Experimental(_)
    )
}
