//! The few things that networks ask of the wire format.

use wire::Segment;
use wire::mptcp::{DataSeq, MpCapable, MpJoin, MptcpOption};

/// Octets of the packet that carries `segment`: IP header, TCP header with options, payload.
#[inline]
pub(crate) fn packet_len(segment: &Segment) -> u32 {
    let ip = if segment.dst.is_ipv4() { 20 } else { 40 };
    ip + 20 + options_len(segment).next_multiple_of(4) + segment.payload.len() as u32
}

fn options_len(segment: &Segment) -> u32 {
    let options = &segment.options;
    let mut len = options.timestamps.map_or(0, |_| 10);
    len += options.mss.map_or(0, |_| 4) + options.window_scale.map_or(0, |_| 3);
    len += if options.sack_permitted { 2 } else { 0 };
    len += if options.sack.is_empty() { 0 } else { 2 + 8 * options.sack.len() as u32 };
    len + options.mptcp.iter().map(mptcp_len).sum::<u32>()
}

/// Octets of one option, from its kind on (the figures of RFC 8684 section 3).
fn mptcp_len(option: &MptcpOption) -> u32 {
    match option {
        MptcpOption::Capable(MpCapable { sender_key, receiver_key, data, .. }) => {
            let keys = u32::from(sender_key.is_some()) + u32::from(receiver_key.is_some());
            4 + 8 * keys + data.map_or(0, |data| 2 + data.checksum.map_or(0, |_| 2))
        }
        MptcpOption::Join(MpJoin::Syn { .. }) => 12,
        MptcpOption::Join(MpJoin::SynAck { .. }) => 16,
        MptcpOption::Join(MpJoin::Ack { .. }) => 24,
        MptcpOption::Dss(dss) => {
            let mapping = dss.mapping.map_or(0, |map| data_seq_len(map.dsn) + 6 + map.checksum.map_or(0, |_| 2));
            4 + dss.data_ack.map_or(0, data_seq_len) + mapping
        }
        MptcpOption::AddAddr(add) => {
            let address = if add.address.is_ipv4() { 4 } else { 16 };
            4 + address + add.port.map_or(0, |_| 2) + add.hmac.map_or(0, |_| 8)
        }
        MptcpOption::RemoveAddr(remove) => 3 + remove.address_ids.len() as u32,
        MptcpOption::Prio(_) => 3,
        MptcpOption::Fail(_) | MptcpOption::Fastclose(_) => 12,
        MptcpOption::TcpRst(_) => 4,
        MptcpOption::Experimental(experimental) => 3 + experimental.data.len() as u32,
    }
}

fn data_seq_len(number: DataSeq) -> u32 {
    match number {
        DataSeq::Short(_) => 4,
        DataSeq::Long(_) => 8,
    }
}
