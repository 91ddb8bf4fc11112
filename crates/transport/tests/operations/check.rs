//! Invariants of every segment that the endpoint sends.

use transport::ConnectionConfig;
use units::SeqNr;
use wire::mptcp::{DataSeq, Dss, MptcpOption};
use wire::{Flags, Options, Segment};

/// RFC 9293 section 3.7.1: the MSS of a peer without the option, and the smallest that the engine accepts.
const MSS_DEFAULT: u16 = 536;
const MSS_MIN: u16 = 88;

/// Segments farther away lie in no window; their claims do not count.
const FAR: u32 = 1 << 29;

/// History of one flow, seen from the endpoint.
#[derive(Default)]
pub(super) struct Emitted {
    peer_mss: Option<u16>,
    scale: u8,
    scaling: bool,
    /// Start of the peer's sequence numbers, and the highest number that it sent, relative to that.
    peer_start: Option<SeqNr>,
    received_to: u32,
    /// Start of our sequence numbers; the rightmost edge of the peer's window relative to that, and the shift of its
    /// windows.
    start: Option<SeqNr>,
    peer_edge: u32,
    peer_scale: u8,
    ack: Option<SeqNr>,
    /// The low halves, because the high ones are not always on the wire.
    data_ack: Option<SeqNr>,
    data_edge: Option<SeqNr>,
}

impl Emitted {
    /// Records a segment of the peer, honest or not, on its way to the endpoint.
    pub(super) fn note_received(&mut self, segment: &Segment, end: SeqNr) {
        if segment.flags.contains(Flags::SYN) {
            // Only one SYN counts, and the endpoint decides which: take the most permissive bound of all.
            let mss = segment.options.mss.unwrap_or(MSS_DEFAULT).max(MSS_MIN);
            self.peer_mss = Some(self.peer_mss.map_or(mss, |known| known.max(mss)));
            self.peer_scale = self.peer_scale.max(segment.options.window_scale.unwrap_or(0).min(14));
            self.scaling |= segment.options.window_scale.is_some();
        }
        let sent_to = self.peer_start.map_or(FAR, |start| end.since(start));
        if sent_to < FAR {
            self.received_to = self.received_to.max(sent_to);
        }
        if let Some(start) = self.start.filter(|_| segment.flags.contains(Flags::ACK)) {
            let acked = segment.ack.since(start);
            if acked < FAR {
                self.peer_edge = self.peer_edge.max(acked + (u32::from(segment.window) << self.peer_scale));
            }
        }
    }

    pub(super) fn check(&mut self, segment: &Segment, config: &ConnectionConfig) {
        let options = segment.options.encoded_len();
        assert!(options <= Options::MAX_BYTES, "{options} octets of options: {segment:?}");
        if segment.flags.contains(Flags::RST) {
            return assert!(segment.payload.is_empty());
        }
        if segment.flags.contains(Flags::SYN) {
            assert!(segment.payload.is_empty());
            // The four-tuple may belong to another connection now.
            *self = Self { ack: None, data_ack: None, data_edge: None, received_to: 1, ..core::mem::take(self) };
            self.start = Some(segment.seq);
            // Only the answer shows which of the peer's SYNs counts.
            self.peer_start = segment.flags.contains(Flags::ACK).then(|| segment.ack - 1);
            self.scale = segment.options.window_scale.unwrap_or(0);
            return;
        }
        self.check_size(segment, config);
        self.check_window(segment);
        self.check_ack(segment);
        self.check_data_level(segment);
    }

    fn check_size(&self, segment: &Segment, config: &ConnectionConfig) {
        if segment.payload.is_empty() {
            return;
        }
        let mss = self.peer_mss.unwrap_or(MSS_DEFAULT).min((config.mtu - 40).max(MSS_MIN));
        let bytes = segment.payload.len() + segment.options.encoded_len();
        if config.offload_max_bytes == 0 {
            assert!(bytes <= usize::from(mss), "{bytes} octets exceed the MSS of {mss}: {segment:?}");
        } else {
            let max = usize::from(mss).max(config.offload_max_bytes as usize);
            assert!(segment.payload.len() <= max, "{} octets of payload", segment.payload.len());
        }
    }

    /// RFC 9293 section 3.8.6: nothing may lie beyond what the peer ever allowed.
    fn check_window(&self, segment: &Segment) {
        if let Some(start) = self.start.filter(|_| !segment.payload.is_empty()) {
            let end = (segment.seq + segment.payload.len() as u32).since(start);
            assert!(end <= self.peer_edge, "ends at {end}, beyond the peer's edge at {}: {segment:?}", self.peer_edge);
        }
    }

    fn check_ack(&mut self, segment: &Segment) {
        if let Some(start) = self.peer_start {
            let acked = segment.ack.since(start);
            assert!(acked <= self.received_to, "acknowledges what was never sent: {segment:?}");
        }
        if let Some(ack) = self.ack {
            assert!(segment.ack.at_or_after(ack), "the acknowledgement moved back: {segment:?}");
        }
        self.ack = Some(segment.ack);
    }

    /// DATA_ACK and the window's right edge never move back, except for rounding by the scaling.
    fn check_data_level(&mut self, segment: &Segment) {
        let data_ack = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Dss(Dss { data_ack, .. }) => *data_ack,
            _ => None,
        });
        let scale = if self.scaling { self.scale } else { 0 };
        let window = u32::from(segment.window) << scale;
        let rounding = (1_u32 << scale) - 1;
        let data_ack = SeqNr(match data_ack {
            Some(DataSeq::Long(long)) => long as u32,
            Some(DataSeq::Short(short)) => short,
            None => return,
        });
        let edge = data_ack + window;
        assert!(self.data_ack.is_none_or(|known| data_ack.at_or_after(known)), "DATA_ACK moved back: {segment:?}");
        let kept = self.data_edge.is_none_or(|known| (edge + rounding).at_or_after(known));
        assert!(kept, "the window's edge moved back: {segment:?}");
        self.data_ack = Some(data_ack);
        self.data_edge = Some(self.data_edge.map_or(edge, |known| known.max(edge)));
    }
}
