//! The rule of TCP that RFC 8684 changes for segments with its options. [`crate::tcp`] asks here and knows no option
//! itself.

use wire::Segment;
use wire::mptcp::MptcpOption;

/// RFC 8684 section 3: an ACK with an MPTCP option other than a DSS carries information of its own. If it repeats the
/// previous ACK, it therefore does not indicate congestion (RFC 5681 section 2).
pub(crate) fn speaks_for_itself(segment: &Segment) -> bool {
    !segment.options.mptcp.iter().all(|option| matches!(option, MptcpOption::Dss(_)))
}
