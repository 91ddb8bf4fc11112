//! A UE's downlink in RLC acknowledged mode: queues packets, cuts them into transport blocks, and delivers them in
//! order.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use units::Prng;

use super::cargo::Cargo;
use super::config::{EarlyDrop, RlcConfig};
use super::wire::Wire;
use crate::{Amount, DropCause, Gate, MediumOutput};

/// Numbers the transport blocks of one UE.
pub(crate) type BlockNr = u64;

/// The downlink from queue to delivery. A packet is in `queue` until its last octet is in a block, then in `sent` until
/// all blocks up to that one have arrived.
#[derive(Debug)]
pub(crate) struct Bearer {
    queue: VecDeque<Cargo>,
    queued: Amount,
    /// Average queue length that arriving packets find, for early drops.
    average: Average,
    /// Octets of the queue's first packet that are already in blocks.
    head_sent: u32,
    sent: VecDeque<(BlockNr, Cargo)>,
    in_air: Amount,
    /// Whether each block from `first_block` on has arrived.
    arrived: VecDeque<bool>,
    first_block: BlockNr,
    served: Amount,
}

/// Usual maximum number of one UE's blocks that are in the air or awaited after a failure.
const BLOCKS_EXPECTED: usize = 128;

impl Bearer {
    /// Creates an empty downlink.
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            queued: Amount::default(),
            average: Average::default(),
            head_sent: 0,
            sent: VecDeque::new(),
            in_air: Amount::default(),
            arrived: VecDeque::with_capacity(BLOCKS_EXPECTED),
            first_block: 0,
            served: Amount::default(),
        }
    }

    /// The packets that wait, including the one in service.
    #[inline]
    pub(crate) fn queued(&self) -> Amount {
        self.queued
    }

    /// The packets in the air, or waiting for earlier ones.
    pub(crate) fn in_air(&self) -> Amount {
        self.in_air
    }

    /// The packets delivered so far.
    pub(crate) fn served(&self) -> Amount {
        self.served
    }

    /// Puts a packet at the end of the queue, or gives it back if the queue refuses it.
    #[inline]
    pub(crate) fn enqueue(&mut self, mut packet: Cargo, rlc: &RlcConfig, prng: &mut Prng) -> Result<(), Cargo> {
        // The mean is over all packets that arrive, whether the queue takes them or not.
        let found_bytes = rlc.early.map(|early| self.average.update(self.queued.bytes, early.averaging));
        if !rlc.queue.admits(self.queued, packet.wire_len()) {
            return Err(packet);
        }
        if let (Some(early), Some(found_bytes)) = (&rlc.early, found_bytes) {
            if early.strikes(found_bytes, prng) && !(early.ecn && packet.mark_congestion()) {
                return Err(packet);
            }
        }
        if rlc.queue.marks(self.queued) {
            packet.mark_congestion();
        }
        self.queued = self.queued + Amount::one(packet.wire_len());
        self.queue.push_back(packet);
        Ok(())
    }

    /// Fills a block of `room` octets from the queue. Returns the block's number and the octets of packets in it.
    pub(crate) fn fill(&mut self, room: u32, rlc: &RlcConfig) -> (BlockNr, u32) {
        let block = self.first_block + self.arrived.len() as u64;
        self.arrived.push_back(false);
        let pdcp = rlc.pdcp_header.0 as u32;
        let mut left = room.saturating_sub(rlc.rlc_header.0 as u32);
        let mut payload = 0;
        while let Some(head) = self.queue.front() {
            let needed = head.wire_len() + pdcp - self.head_sent;
            let taken = needed.min(left);
            (payload, left) = (payload + taken, left - taken);
            if taken < needed {
                self.head_sent += taken;
                break;
            }
            left = left.saturating_sub(rlc.length_indicator.0 as u32);
            self.finish_head(block);
        }
        (block, payload)
    }

    /// Moves the first packet, whose last octet is in `block`, from `queue` to `sent`.
    fn finish_head(&mut self, block: BlockNr) {
        let Some(packet) = self.queue.pop_front() else { return };
        self.head_sent = 0;
        self.queued.packets -= 1;
        self.queued.bytes -= u64::from(packet.wire_len());
        self.in_air = self.in_air + Amount::one(packet.wire_len());
        self.sent.push_back((block, packet));
    }

    /// Handles the arrival of a block and delivers the packets that are complete and in order.
    #[inline]
    pub(crate) fn arrive(&mut self, block: BlockNr, gate: Gate, wire: Option<&Wire>, out: &mut MediumOutput) {
        // Blocks from before a flush are no longer needed.
        let Some(index) = block.checked_sub(self.first_block) else { return };
        self.arrived[index as usize] = true;
        while self.arrived.front() == Some(&true) {
            self.arrived.pop_front();
            self.first_block += 1;
        }
        while self.sent.front().is_some_and(|(last, _)| *last < self.first_block) {
            let Some((_, packet)) = self.sent.pop_front() else { return };
            self.in_air.packets -= 1;
            self.in_air.bytes -= u64::from(packet.wire_len());
            self.served = self.served + Amount::one(packet.wire_len());
            packet.forward(gate, wire, out);
        }
    }

    /// Whether a block is still awaited.
    pub(crate) fn awaits(&self, block: BlockNr) -> bool {
        block >= self.first_block
    }

    /// Drops everything inside.
    pub(crate) fn flush(&mut self, gate: Gate, lost: &mut Vec<(Gate, Cargo, DropCause)>) {
        let packets = self.sent.drain(..).map(|(_, packet)| packet).chain(self.queue.drain(..));
        lost.extend(packets.map(|packet| (gate, packet, DropCause::Outage)));
        self.first_block += self.arrived.len() as u64;
        self.arrived.clear();
        (self.queued, self.in_air, self.head_sent) = (Amount::default(), Amount::default(), 0);
    }
}

/// An exponentially weighted mean over arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    /// The mean times the weight's denominator.
    scaled: u64,
}

impl Average {
    /// Updates the mean with a packet that finds `queued_bytes`, weighted by 1 / `packets`, and returns it. An empty
    /// queue restarts the mean.
    fn update(&mut self, queued_bytes: u64, packets: NonZeroU32) -> u64 {
        let packets = u64::from(packets.get());
        if queued_bytes == 0 {
            self.scaled = 0;
        }
        self.scaled = self.scaled - self.scaled / packets + queued_bytes;
        self.scaled / packets
    }
}

impl EarlyDrop {
    fn strikes(&self, waiting_bytes: u64, prng: &mut Prng) -> bool {
        let Some(above) = waiting_bytes.checked_sub(self.min.0) else { return false };
        let span = self.max.0.saturating_sub(self.min.0);
        let share = if above >= span { 1.0 } else { above as f64 / span as f64 };
        prng.chance(share * self.probability_max.value())
    }
}

#[cfg(test)]
mod tests {
    use units::{ByteCount, Probability};

    use super::*;
    use crate::Queue;
    use crate::testing::{ecn_packet, is_marked, packet};

    const GATE: Gate = Gate(1);

    fn bearer(sizes: &[u32], rlc: &RlcConfig) -> Bearer {
        let mut bearer = Bearer::new();
        sizes.iter().for_each(|size| bearer.enqueue(packet(*size).into(), rlc, &mut Prng::new(1)).unwrap());
        bearer
    }

    fn delivered(out: &mut MediumOutput) -> Vec<u32> {
        out.take_forwarded().map(|(_, packet)| packet.wire_len()).collect()
    }

    #[test]
    fn packets_are_cut_and_joined() {
        let rlc = RlcConfig::default();
        let mut bearer = bearer(&[100, 100, 100], &rlc);
        // RLC takes 4, the first packet with its PDCP header 102, a length indicator 2: 42 are left for the second.
        assert_eq!(bearer.fill(150, &rlc), (0, 144));
        assert_eq!(bearer.queued(), Amount { packets: 2, bytes: 200 });
        // 60 are left of the second packet, then 2, then 34 of the third.
        assert_eq!(bearer.fill(100, &rlc), (1, 94));
        assert_eq!(bearer.fill(1000, &rlc), (2, 68));
        assert_eq!((bearer.queued(), bearer.in_air().packets), (Amount::default(), 3));
    }

    #[test]
    fn delivery_is_in_order() {
        let rlc = RlcConfig::default();
        let mut bearer = bearer(&[100, 200, 300], &rlc);
        let blocks = [106, 206, 306].map(|room| bearer.fill(room, &rlc).0);
        let mut out = MediumOutput::new();
        bearer.arrive(blocks[1], GATE, None, &mut out);
        assert_eq!(delivered(&mut out), []);
        bearer.arrive(blocks[0], GATE, None, &mut out);
        assert_eq!(delivered(&mut out), [100, 200]);
        bearer.arrive(blocks[2], GATE, None, &mut out);
        assert_eq!((delivered(&mut out), bearer.served()), (vec![300], Amount { packets: 3, bytes: 600 }));
    }

    #[test]
    fn what_was_flushed_does_not_arrive() {
        let rlc = RlcConfig::default();
        let mut bearer = bearer(&[100, 200], &rlc);
        let (old, _) = bearer.fill(150, &rlc);
        let mut lost = Vec::new();
        bearer.flush(GATE, &mut lost);
        assert_eq!(lost.iter().map(|(_, packet, _)| packet.wire_len()).collect::<Vec<_>>(), [100, 200]);
        bearer.enqueue(packet(300).into(), &rlc, &mut Prng::new(1)).unwrap();
        let (new, _) = bearer.fill(400, &rlc);
        let mut out = MediumOutput::new();
        assert_eq!([old, new].map(|block| bearer.awaits(block)), [false, true]);
        bearer.arrive(old, GATE, None, &mut out);
        assert_eq!(delivered(&mut out), []);
        bearer.arrive(new, GATE, None, &mut out);
        assert_eq!(delivered(&mut out), [300]);
    }

    #[test]
    fn the_queue_has_a_limit() {
        let rlc = RlcConfig { queue: Queue::packets(2), ..RlcConfig::default() };
        let mut bearer = bearer(&[100, 100], &rlc);
        assert!(bearer.enqueue(packet(100).into(), &rlc, &mut Prng::new(1)).is_err());
        bearer.fill(106, &rlc);
        assert!(bearer.enqueue(packet(100).into(), &rlc, &mut Prng::new(1)).is_ok());
    }

    #[test]
    fn packets_that_find_a_long_queue_are_marked() {
        let rlc = RlcConfig { queue: Queue::packets(9).mark_above(2), ..RlcConfig::default() };
        let mut bearer = Bearer::new();
        (0..4).for_each(|_| bearer.enqueue(ecn_packet(100).into(), &rlc, &mut Prng::new(1)).unwrap());
        assert_eq!(
            bearer.queue.iter().map(|cargo| is_marked(cargo.packet().unwrap())).collect::<Vec<_>>(),
            [false, false, true, true]
        );
    }

    #[test]
    fn a_mean_follows_what_packets_find_and_forgets_an_empty_queue() {
        let four = NonZeroU32::new(4).unwrap();
        let mut average = Average::default();
        let means: Vec<_> = [4000, 4000, 4000].map(|found| average.update(found, four)).into();
        assert_eq!(means, [1000, 1750, 2312]);
        let later = (0..100).map(|_| average.update(4000, four)).last();
        assert!(later.is_some_and(|mean| (3990..=4000).contains(&mean)), "{later:?}");
        assert_eq!((average.update(0, four), average.update(4000, four)), (0, 1000));
        // With a weight of one packet, the mean is the value that this packet finds.
        assert_eq!(average.update(1234, NonZeroU32::MIN), 1234);
    }

    #[test]
    fn what_a_full_queue_refuses_counts_in_the_mean() {
        let averaging = NonZeroU32::new(2).unwrap();
        let never = Probability::ZERO;
        let early =
            EarlyDrop { min: ByteCount(150), max: ByteCount(151), probability_max: never, averaging, ecn: false };
        let rlc = RlcConfig { queue: Queue::packets(2), early: Some(early), ..RlcConfig::default() };
        let mut bearer = bearer(&[100, 100], &rlc);
        (0..40).for_each(|_| assert!(bearer.enqueue(packet(100).into(), &rlc, &mut Prng::new(1)).is_err()));
        // It approaches the 200 octets that each of them found.
        assert!((398..=400).contains(&bearer.average.scaled), "{:?}", bearer.average);
    }

    #[test]
    fn early_drops_begin_at_the_threshold_and_spare_what_can_be_marked() {
        let certain = Probability::new(1.0).unwrap();
        let averaging = NonZeroU32::MIN;
        let early =
            EarlyDrop { min: ByteCount(150), max: ByteCount(151), probability_max: certain, averaging, ecn: true };
        let rlc = RlcConfig { early: Some(early), ..RlcConfig::default() };
        let mut bearer = bearer(&[100, 100], &rlc);
        assert!(bearer.enqueue(packet(100).into(), &rlc, &mut Prng::new(1)).is_err());
        bearer.enqueue(ecn_packet(100).into(), &rlc, &mut Prng::new(1)).unwrap();
        assert!(is_marked(bearer.queue.back().unwrap().packet().unwrap()));
        // Half way up the ramp every second packet is hit, on average.
        let half = EarlyDrop { min: ByteCount(0), max: ByteCount(200), ..early };
        let mut prng = Prng::new(1);
        let hits = (0..1000).filter(|_| half.strikes(100, &mut prng)).count();
        assert!((450..550).contains(&hits), "{hits}");
    }
}
