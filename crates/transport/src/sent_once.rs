//! Options that are sent once: MP_PRIO, ADD_ADDR, REMOVE_ADDR, MP_FAIL, and whatever a relay passes on.
//!
//! Every segment repeats the DATA_ACK, and a retransmission its mapping; but if no receiver reads one of these, nothing
//! repeats it, or only after seconds (RFC 8684 sections 3.3.8, 3.4.1 and 3.4.2). Connections and relays therefore treat
//! them alike:
//!
//! | question | answer |
//! |---|---|
//! | which segment carries one? | An ACK without data that its receiver will process ([`Tcb::is_fresh`]). Data have no room beside their mapping; a receiver drops repetitions and probes unread |
//! | what gives way? | To the first one on an ACK: the DATA_ACK, and if that is not enough the timestamps (section 3.4.1: ADD_ADDR for an IPv6 address with its port). To others, nothing. The end of the stream never gives way. SACK blocks come last, and take the rest |
//! | who asks for the ACK? | The owner, with [`Tcb::demand_fresh_ack`]. The demand stands until such an ACK has left, whatever else leaves before. What found no room stays with its owner, and another ACK is demanded |

use wire::Segment;
use wire::mptcp::MptcpOption;

use crate::tcp::Tcb;

/// Adds `option` to `segment`, which `tcb` has just built and which has its DSS already. Returns false if it must wait
/// for another ACK, which is then demanded.
pub(crate) fn carry(option: &MptcpOption, segment: &mut Segment, tcb: &mut Tcb) -> bool {
    if !tcb.is_fresh(segment) {
        return false;
    }
    let options = &mut segment.options;
    let is_first = options.mptcp.iter().all(is_repeated);
    options.mptcp.push(option.clone());
    if options.fits() {
        return true;
    }
    if !is_first {
        options.mptcp.pop();
        tcb.demand_fresh_ack();
        return false;
    }
    options.mptcp.retain(|other| !is_repeated(other));
    if !options.fits() {
        options.timestamps = None;
    }
    true
}

/// Adds as many of the options of a RST as fit, the first ones first: no other segment follows.
pub(crate) fn carry_at_the_end(options: impl IntoIterator<Item = MptcpOption>, segment: &mut Segment) {
    for option in options {
        segment.options.mptcp.push(option);
        if !segment.options.fits() {
            segment.options.mptcp.pop();
        }
    }
}

/// Whether `segment` tells the peer what has arrived at the data level.
#[inline]
pub(crate) fn has_data_ack(segment: &Segment) -> bool {
    let is_told = |option: &MptcpOption| matches!(option, MptcpOption::Dss(dss) if dss.data_ack.is_some());
    segment.options.mptcp.iter().any(is_told)
}

/// A mere DATA_ACK, or an empty DSS.
fn is_repeated(option: &MptcpOption) -> bool {
    matches!(option, MptcpOption::Dss(dss) if dss.mapping.is_none())
}
