//! A relay's knowledge of the data in one direction.

use std::collections::BTreeMap;

use units::narrow::u32_from;
use units::{Dsn, Instant};
use wire::Payload;
use wire::mptcp::DataSeq;

use super::space::DataSpace;

/// Largest window that TCP can announce (RFC 7323 section 2.3).
const WINDOW_MAX: u64 = 0xffff << 14;

/// Data towards one of the hosts, and that host's acknowledgements of them.
#[derive(Debug)]
pub(super) struct Flow {
    space: DataSpace,
    /// Shift of all located numbers since the mappings of arriving data were last moved.
    moved: u64,
    /// The same for the labels of leaving data.
    labels_moved: u64,
    /// The host's DATA_ACK.
    ack: Option<Dsn>,
    /// The host takes data below this number.
    edge: Option<Dsn>,
    /// DATA_ACK and edge, as last passed on to the other host.
    told: Option<(Dsn, Dsn)>,
    /// When the news must be passed on if no segment leaves earlier.
    pub(super) news_at: Instant,
    /// End of the stream.
    pub(super) fin: Option<Dsn>,
    /// Whether a DATA_FIN must be passed on by itself.
    pub(super) fin_due: bool,
    /// Octets in the relay: taken from one leg, and not yet acknowledged by the host behind the other leg.
    pub(super) stored_bytes: u64,
    /// Stored octets that the owner holds.
    out_bytes: u64,
    /// The pieces in which the owner holds them.
    out_pieces: usize,
    /// Pieces beyond the host's window, by data sequence number and arrival.
    waiting: BTreeMap<(u64, u64), Payload>,
    arrivals: u64,
    /// Whether no more data will come.
    pub(super) ended: bool,
}

impl Flow {
    pub(super) fn new() -> Self {
        Self {
            space: DataSpace::default(),
            moved: 0,
            labels_moved: 0,
            ack: None,
            edge: None,
            told: None,
            news_at: Instant::FAR_FUTURE,
            fin: None,
            fin_due: false,
            stored_bytes: 0,
            out_bytes: 0,
            out_pieces: 0,
            waiting: BTreeMap::new(),
            arrivals: 0,
            ended: false,
        }
    }

    /// Learns from `value`, which a host wrote, and returns its full data sequence number.
    pub(super) fn learn(&mut self, value: DataSeq) -> Dsn {
        let shift = self.space.learn(value);
        self.shift(shift);
        self.space.locate(value)
    }

    /// Learns all bits of a recent data sequence number.
    pub(super) fn anchor(&mut self, dsn: Dsn) {
        let shift = self.space.anchor(dsn);
        self.shift(shift);
    }

    /// Derives the bits that checksums cover from a checksum over a mapping that starts at `dsn`; see
    /// [`DataSpace::fit`].
    pub(super) fn fit(&mut self, dsn: Dsn, error: u16) {
        let shift = self.space.fit(dsn, error);
        self.shift(shift);
    }

    /// As [`Self::fit`], from a checksum that covers data. The next mismatch then shows damage.
    pub(super) fn fit_data(&mut self, dsn: Dsn, error: u16) {
        self.fit(dsn, error);
        self.space.trust();
    }

    fn shift(&mut self, shift: u64) {
        if shift != 0 {
            self.moved = self.moved.wrapping_add(shift);
            self.labels_moved = self.labels_moved.wrapping_add(shift);
            let shifted = |dsn: &mut Dsn| *dsn = Dsn(dsn.0.wrapping_add(shift));
            self.ack.iter_mut().chain(&mut self.edge).chain(&mut self.fin).for_each(shifted);
            self.told = self.told.map(|(ack, edge)| (Dsn(ack.0.wrapping_add(shift)), Dsn(edge.0.wrapping_add(shift))));
            let waiting = core::mem::take(&mut self.waiting).into_iter();
            self.waiting = waiting.map(|((dsn, n), payload)| ((dsn.wrapping_add(shift), n), payload)).collect();
        }
    }

    /// Takes the shift to add to the mappings of arriving data that were located before it was last taken.
    pub(super) fn take_moved(&mut self) -> u64 {
        core::mem::take(&mut self.moved)
    }

    /// Takes the shift to add to the labels of leaving data that were located before it was last taken.
    pub(super) fn take_labels_moved(&mut self) -> u64 {
        core::mem::take(&mut self.labels_moved)
    }

    /// Returns the present place of `dsn`, whose high bits may have been guessed.
    pub(super) fn locate(&self, dsn: Dsn) -> Dsn {
        self.space.locate(DataSeq::Short(dsn.low()))
    }

    /// Whether the high bits are unknown, so that a checksum may still determine them.
    pub(super) fn is_open(&self) -> bool {
        self.space.is_open()
    }

    /// Whether enough is known of these numbers to compute checksums.
    pub(super) fn can_be_summed(&self) -> bool {
        self.space.can_be_summed()
    }

    /// Whether the hosts write all 64 bits of these numbers.
    pub(super) fn is_long(&self) -> bool {
        self.space.is_long()
    }

    /// Takes the host's DATA_ACK and window.
    pub(super) fn on_data_ack(&mut self, value: DataSeq, window_bytes: u64) {
        let ack = self.learn(value);
        self.ack = Some(self.ack.map_or(ack, |known| known.max(ack)));
        let edge = ack + window_bytes.min(WINDOW_MAX);
        self.edge = Some(self.edge.map_or(edge, |known| known.max(edge)));
    }

    /// Returns the DATA_ACK to pass on, once the host has sent one.
    pub(super) fn data_ack(&self) -> Option<DataSeq> {
        self.ack.map(|ack| self.written(ack))
    }

    /// Returns `dsn` in the width that the hosts use. A host writes all bits once its numbers could be mistaken for
    /// others (RFC 8684 section 3.3.1), and this relay may take minutes to deliver what it holds.
    pub(super) fn written(&self, dsn: Dsn) -> DataSeq {
        if self.is_long() { DataSeq::Long(dsn.0) } else { DataSeq::Short(dsn.low()) }
    }

    /// Returns the window to announce: widened by `widened` octets, and at most `free` octets of memory.
    pub(super) fn window(&self, widened: u64, free: u64) -> u32 {
        let window = match (self.ack, self.edge) {
            (Some(ack), Some(edge)) => edge.since(ack).saturating_add(widened),
            _ => free,
        };
        u32_from(window.min(free))
    }

    /// Records that the other host has the latest news.
    pub(super) fn note_told(&mut self) {
        self.told = self.ack.zip(self.edge);
        self.news_at = Instant::FAR_FUTURE;
    }

    /// Returns the octets by which the news passed on lag behind the present state.
    pub(super) fn untold_bytes(&self) -> u64 {
        match (self.told, self.ack, self.edge) {
            (Some((ack, edge)), Some(new_ack), Some(new_edge)) => new_ack.since(ack).max(new_edge.since(edge)),
            (None, Some(_), _) => u64::MAX,
            _ => 0,
        }
    }

    /// Records a piece that is handed to the owner.
    pub(super) fn hand_out(&mut self, payload: &Payload) {
        self.stored_bytes += payload.len() as u64;
        self.out_bytes += payload.len() as u64;
        self.out_pieces += 1;
    }

    /// Takes a piece back from the owner.
    pub(super) fn take_back(&mut self, dsn: Dsn, payload: Payload) {
        self.out_bytes = self.out_bytes.saturating_sub(payload.len() as u64);
        // An owner may have joined some.
        self.out_pieces = if self.out_bytes == 0 { 0 } else { self.out_pieces.saturating_sub(1) };
        self.enqueue(dsn, payload);
    }

    /// Returns the number of stored pieces that no leg has.
    pub(super) fn pieces(&self) -> usize {
        self.out_pieces + self.waiting.len()
    }

    /// Takes data that the owner sends on.
    fn enqueue(&mut self, dsn: Dsn, payload: Payload) {
        let dsn = self.locate(dsn);
        self.waiting.insert((dsn.0, self.arrivals), payload);
        self.arrivals += 1;
    }

    /// Returns the next data to send; with `within_edge`, only data known to fit the host's window. Drops acknowledged
    /// data.
    pub(super) fn dequeue(&mut self, within_edge: bool) -> Option<(Dsn, Payload)> {
        loop {
            let entry = self.waiting.first_entry()?;
            let (dsn, len) = (Dsn(entry.key().0), entry.get().len() as u64);
            let end = dsn + len;
            if self.ack.is_some_and(|ack| end.before_or_at(ack)) {
                entry.remove();
                self.stored_bytes = self.stored_bytes.saturating_sub(len);
                continue;
            }
            if within_edge && self.edge.is_some_and(|edge| end.after(edge)) {
                return None;
            }
            return Some((dsn, entry.remove()));
        }
    }

    /// Whether no data for the host are left between the legs.
    pub(super) fn is_drained(&self) -> bool {
        self.out_bytes == 0 && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(len: usize) -> Payload {
        Payload::Bytes(vec![0; len].into())
    }

    #[test]
    fn data_wait_for_the_window_and_leave_in_order() {
        let mut flow = Flow::new();
        flow.learn(DataSeq::Short(1000));
        flow.on_data_ack(DataSeq::Short(1000), 250);
        for dsn in [1200, 1000, 1100] {
            flow.enqueue(Dsn(dsn), octets(100));
        }
        assert_eq!(flow.dequeue(true).map(|(dsn, _)| dsn), Some(Dsn(1000)));
        assert_eq!(flow.dequeue(true).map(|(dsn, _)| dsn), Some(Dsn(1100)));
        assert_eq!(flow.dequeue(true), None);
        flow.on_data_ack(DataSeq::Short(1100), 200);
        assert_eq!(flow.dequeue(true).map(|(dsn, _)| dsn), Some(Dsn(1200)));
        assert!(flow.is_drained());
        flow.enqueue(Dsn(1300), octets(100));
        assert_eq!(flow.dequeue(false).map(|(dsn, _)| dsn), Some(Dsn(1300)));
    }

    #[test]
    fn what_the_host_has_is_not_sent() {
        let mut flow = Flow::new();
        flow.stored_bytes = 200;
        flow.enqueue(Dsn(1000), octets(100));
        flow.enqueue(Dsn(1100), octets(100));
        flow.on_data_ack(DataSeq::Short(1100), 1000);
        assert_eq!(flow.dequeue(true).map(|(dsn, _)| dsn), Some(Dsn(1100)));
        assert_eq!(flow.stored_bytes, 100);
    }

    #[test]
    fn the_window_hangs_on_the_data_ack_and_is_bounded_by_memory() {
        let mut flow = Flow::new();
        assert_eq!(flow.window(0, 5000), 5000);
        flow.on_data_ack(DataSeq::Short(1000), 3000);
        assert_eq!(flow.window(1000, 5000), 4000);
        assert_eq!(flow.window(1000, 3500), 3500);
        // An edge never moves left: 4000 stays promised.
        flow.on_data_ack(DataSeq::Short(2000), 500);
        assert_eq!(flow.window(0, 5000), 2000);
    }

    /// Windows also come from the destination's messages, with 64 bits: an edge half the number space away would seem to
    /// precede the DATA_ACK.
    #[test]
    fn windows_that_no_tcp_can_announce_are_cut() {
        const ACK: u64 = 1 << 20;
        const LARGEST: u32 = 0xffff << 14;
        for window_bytes in [u64::MAX, 1 << 63, (1 << 63) - 1] {
            let mut flow = Flow::new();
            flow.on_data_ack(DataSeq::Long(ACK), window_bytes);
            assert_eq!(flow.window(1000, u64::MAX), LARGEST + 1000);
            flow.on_data_ack(DataSeq::Long(ACK - 10), 0);
            assert_eq!(flow.window(1000, u64::MAX), LARGEST + 1000, "an edge never moves left");
            assert_eq!(flow.window(u64::MAX, u64::MAX), u32::MAX);
        }
    }

    /// RFC 8684 does not authenticate DATA_ACKs. A relay reads the low half of them, so that none is far away.
    #[test]
    fn data_acks_in_a_circle_leave_a_window() {
        const ACK: u64 = 1 << 20;
        let mut flow = Flow::new();
        flow.on_data_ack(DataSeq::Long(ACK), 3000);
        flow.on_data_ack(DataSeq::Long(ACK + (1 << 63) + 3000 - 1), 0);
        flow.on_data_ack(DataSeq::Long(ACK - 1), 0);
        assert_eq!(flow.window(1000, u64::MAX), 1001);
    }

    #[test]
    fn news_are_what_was_not_told() {
        let mut flow = Flow::new();
        assert_eq!(flow.untold_bytes(), 0);
        flow.on_data_ack(DataSeq::Short(1000), 3000);
        assert_eq!(flow.untold_bytes(), u64::MAX);
        flow.note_told();
        flow.on_data_ack(DataSeq::Short(1500), 3000);
        assert_eq!(flow.untold_bytes(), 500);
    }

    #[test]
    fn numbers_known_before_the_high_bits_move_with_them() {
        let mut flow = Flow::new();
        flow.on_data_ack(DataSeq::Short(1000), 3000);
        flow.note_told();
        flow.learn(DataSeq::Long(0x5_0000_0000 + 1000));
        assert_eq!(flow.data_ack(), Some(DataSeq::Long(0x5_0000_0000 + 1000)));
        assert_eq!(flow.untold_bytes(), 0);
        assert_eq!(flow.window(0, 9000), 3000);
    }
}
