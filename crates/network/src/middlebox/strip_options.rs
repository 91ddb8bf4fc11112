//! Removes TCP options.

use units::Instant;
use wire::mptcp::MptcpOption;
use wire::{Flags, Segment};

use crate::{Node, Output, Packet};

/// Which segments lose options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripOn {
    /// SYNs without ACK.
    Syn,
    /// SYN/ACKs.
    SynAck,
    /// All segments.
    All,
}

/// A set of TCP options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionKinds(u8);

impl OptionKinds {
    /// Maximum segment size.
    pub const MSS: Self = Self(1);
    /// Window scale.
    pub const WINDOW_SCALE: Self = Self(2);
    /// SACK permitted, and SACK blocks.
    pub const SACK: Self = Self(4);
    /// Timestamps.
    pub const TIMESTAMPS: Self = Self(8);
    /// All MPTCP options: to a middlebox that knows only the options above, they are unknown.
    pub const MPTCP: Self = Self(16);

    /// Returns the union of both sets.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Removes a set of options from some segments.
#[derive(Clone, Debug)]
pub struct StripOptions {
    kinds: OptionKinds,
    on: StripOn,
    only: Option<fn(&MptcpOption) -> bool>,
    seen: u64,
    after: u64,
    until: Instant,
}

impl StripOptions {
    /// Removes `kinds` from the segments of `on`.
    pub fn new(kinds: OptionKinds, on: StripOn) -> Self {
        Self { kinds, on, only: None, seen: 0, after: 0, until: Instant::FAR_FUTURE }
    }

    /// Removes every MPTCP option.
    pub fn mptcp(on: StripOn) -> Self {
        Self::new(OptionKinds::MPTCP, on)
    }

    /// Removes only the MPTCP options for which `matches` returns true.
    pub fn mptcp_matching(on: StripOn, matches: fn(&MptcpOption) -> bool) -> Self {
        Self { only: Some(matches), ..Self::mptcp(on) }
    }

    /// Leaves the first `segments` segments unchanged, of whatever kind.
    pub fn after(self, segments: u64) -> Self {
        Self { after: segments, ..self }
    }

    /// Removes nothing from `end` on.
    pub fn until(self, end: Instant) -> Self {
        Self { until: end, ..self }
    }

    fn applies(&mut self, segment: &Segment, now: Instant) -> bool {
        self.seen += 1;
        self.seen > self.after
            && now < self.until
            && match self.on {
                StripOn::Syn => segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK),
                StripOn::SynAck => segment.flags.contains(Flags::SYN | Flags::ACK),
                StripOn::All => true,
            }
    }

    fn strip(&self, segment: &mut Segment) {
        let options = &mut segment.options;
        if self.kinds.contains(OptionKinds::MSS) {
            options.mss = None;
        }
        if self.kinds.contains(OptionKinds::WINDOW_SCALE) {
            options.window_scale = None;
        }
        if self.kinds.contains(OptionKinds::SACK) {
            options.sack_permitted = false;
            options.sack.clear();
        }
        if self.kinds.contains(OptionKinds::TIMESTAMPS) {
            options.timestamps = None;
        }
        if self.kinds.contains(OptionKinds::MPTCP) {
            options.mptcp.retain(|option| self.only.is_some_and(|only| !only(option)));
        }
    }
}

impl Node for StripOptions {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        let Some(mut packet) = packet else { return };
        packet.edit(|segment| {
            if self.applies(segment, now) {
                self.strip(segment);
            }
        });
        out.forward(packet);
    }

    fn conserves(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lane, segment};
    use wire::Timestamps;
    use wire::mptcp::MpPrio;

    /// SYN, SYN/ACK and two ACKs, each with every kind of option: 4 + 3 + 2 + 10 + 3 octets, padded to 24.
    fn handshake() -> Vec<Segment> {
        let flags = [Flags::SYN, Flags::SYN | Flags::ACK, Flags::ACK, Flags::ACK];
        let full = |flags| {
            let mut segment = Segment { flags, ..segment(0) };
            segment.options.mss = Some(1460);
            segment.options.window_scale = Some(7);
            segment.options.sack_permitted = true;
            segment.options.timestamps = Some(Timestamps::default());
            segment.options.mptcp.push(MptcpOption::Prio(MpPrio { backup: false }));
            segment
        };
        flags.map(full).to_vec()
    }

    fn mptcp_survives(node: StripOptions) -> Vec<bool> {
        let mut lane = Lane::new(node);
        lane.send_all(handshake());
        lane.segments().iter().map(|segment| !segment.options.mptcp.is_empty()).collect()
    }

    #[test]
    fn strips_where_it_was_told_to() {
        assert_eq!(mptcp_survives(StripOptions::mptcp(StripOn::Syn)), [false, true, true, true]);
        assert_eq!(mptcp_survives(StripOptions::mptcp(StripOn::SynAck)), [true, false, true, true]);
        assert_eq!(mptcp_survives(StripOptions::mptcp(StripOn::All)), [false; 4]);
        assert_eq!(mptcp_survives(StripOptions::mptcp(StripOn::All).after(3)), [true, true, true, false]);
        let syn_ack = |after| mptcp_survives(StripOptions::mptcp(StripOn::SynAck).after(after));
        assert_eq!([syn_ack(1), syn_ack(2)], [vec![true, false, true, true], vec![true; 4]]);
        let only_dss = StripOptions::mptcp_matching(StripOn::All, |option| matches!(option, MptcpOption::Dss(_)));
        assert_eq!(mptcp_survives(only_dss), [true; 4]);
    }

    #[test]
    fn other_kinds_go_and_the_packet_shrinks() {
        let kinds = OptionKinds::MSS.and(OptionKinds::WINDOW_SCALE).and(OptionKinds::SACK).and(OptionKinds::TIMESTAMPS);
        let mut lane = Lane::new(StripOptions::new(kinds, StripOn::Syn));
        lane.send_all(handshake());
        let lengths: Vec<u32> = lane.arrived.iter().map(|(_, packet)| packet.wire_len()).collect();
        // 40 octets of headers; MP_PRIO alone pads to 4.
        assert_eq!(lengths, [44, 64, 64, 64]);
    }
}
