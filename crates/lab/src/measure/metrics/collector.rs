//! All metrics of one connection.

use serde::{Deserialize, Serialize};
use units::{Duration, Instant, Rate};

use super::{
    Acked, ActiveSet, Arrival, Arrived, BlockGoodput, Delay, DelayRatio, Delivered, DeliveryDelay, FileGoodput,
    FinishedBlock, Histogram, InOrderGoodput, Jitter, MeanThroughput, ReceiveBuffer, Reordering, SendLog, Sent,
    SubflowCount, SubflowThroughput, UnitClock, UnitClocks, UnitGoodput, WindowThroughput, range_bytes,
};

/// N in Co-MPTCP.
const BLOCK_PACKETS: u64 = 100;

/// Parameters that the definitions leave open.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// F.
    pub window: Duration,
    /// TBR.
    pub tbr: Rate,
    /// theta: half width of the range around TBR, over TBR.
    pub theta: f64,
    /// Unit of G1, octets.
    pub unit_bytes: u64,
    /// Block of G2 and of the receive buffer, octets.
    pub block_bytes: u64,
    /// Size of the file of G4, if the transfer is a download.
    pub file_bytes: Option<u64>,
    /// When the transfer was requested.
    pub began: Instant,
    /// Number of blocks to keep individually; 0 for none.
    pub blocks_max: usize,
    /// Whether to time the units of G1 by other clocks, too.
    pub unit_clocks: bool,
}

impl Settings {
    /// The papers' values, for packets of `packet_bytes` octets of payload: units of H, blocks of 100 packets, theta 0.1.
    pub fn papers(window: Duration, tbr: Rate, packet_bytes: u32) -> Self {
        let unit_bytes = range_bytes(tbr, window, packet_bytes);
        let block_bytes = BLOCK_PACKETS * u64::from(packet_bytes.max(1));
        let (file_bytes, began) = (None, Instant::ZERO);
        Self { window, tbr, theta: 0.1, unit_bytes, block_bytes, file_bytes, began, blocks_max: 0, unit_clocks: false }
    }
}

/// The metrics of a window, at its end: a monitor point. `None` where nothing happened that defines a value.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowValues {
    /// The monitor point.
    pub at: Instant,
    /// Payload that arrived, duplicates included.
    pub aggregate_throughput_bps: f64,
    /// Size of the active set.
    pub subflows: u64,
    /// G1.
    pub unit_goodput_bps: Option<f64>,
    /// G1 with units as large as the blocks of G2.
    pub block_unit_goodput_bps: Option<f64>,
    /// G2.
    pub block_goodput_bps: Option<f64>,
    /// G3.
    pub in_order_goodput_bps: f64,
    /// Largest number of octets stored.
    pub receive_buffer_bytes: u64,
    /// Acknowledged payload by subflow; later subflows may be missing.
    pub subflow_throughput_bps: Vec<f64>,
    /// O3-DSN: the offset with the largest absolute value.
    pub reordering_bytes: i64,
    /// Mean delay.
    pub delay_s: Option<f64>,
    /// Jitter.
    pub jitter_s: Option<f64>,
    /// eta.
    pub delay_ratio: Option<f64>,
}

/// The metrics of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Payload that arrived over the time of the run, duplicates included.
    pub throughput_bps: Option<f64>,
    /// G1: mean over all units.
    pub unit_goodput_bps: Option<f64>,
    /// Number of units in this mean.
    pub units: u64,
    /// G4.
    pub file_goodput_bps: Option<f64>,
    /// Octets delivered in order.
    pub delivered_bytes: u64,
    /// Largest number of octets stored.
    pub receive_buffer_bytes: u64,
    /// O3-DSN: largest absolute value.
    pub reordering_peak_bytes: u64,
    /// Mean delay.
    pub delay_s: Option<f64>,
    /// Jitter.
    pub jitter_s: Option<f64>,
    /// Largest eta of all windows.
    pub delay_ratio_max: Option<f64>,
    /// Payload acknowledged, by subflow.
    pub acked_bytes: Vec<u64>,
}

/// Takes events in chronological order, and yields the values of windows and of the run.
///
/// An event at the very end of a window counts in that window. Only the values of windows grow with time.
#[derive(Clone, Debug)]
pub struct Collector {
    settings: Settings,
    /// Events no longer count.
    has_ended: bool,
    window_end: Instant,
    values: Vec<WindowValues>,
    goodput_blocks: Vec<FinishedBlock>,
    buffer_blocks: Vec<u64>,
    arrived: Arrived,
    sent: SendLog,
    sent_by_subflow: Vec<SendLog>,
    throughput: WindowThroughput,
    mean_throughput: MeanThroughput,
    unit_goodput: UnitGoodput,
    block_unit_goodput: UnitGoodput,
    unit_clock: Option<UnitClock>,
    block_goodput: BlockGoodput,
    in_order_goodput: InOrderGoodput,
    file_goodput: Option<FileGoodput>,
    receive_buffer: ReceiveBuffer,
    subflow_throughput: SubflowThroughput,
    subflow_count: SubflowCount,
    reordering: Reordering,
    delay: Delay,
    jitter: Jitter,
    delay_ratio: DelayRatio,
    delivery_delay: Histogram,
}

impl Collector {
    /// Starts to collect at the start of the run.
    pub fn new(settings: Settings) -> Self {
        Self {
            has_ended: false,
            window_end: Instant::ZERO + settings.window,
            values: Vec::new(),
            goodput_blocks: Vec::new(),
            buffer_blocks: Vec::new(),
            arrived: Arrived::default(),
            sent: SendLog::default(),
            sent_by_subflow: Vec::new(),
            throughput: WindowThroughput::default(),
            mean_throughput: MeanThroughput::default(),
            unit_goodput: UnitGoodput::new(settings.unit_bytes),
            block_unit_goodput: UnitGoodput::new(settings.block_bytes),
            unit_clock: settings.unit_clocks.then(|| UnitClock::new(settings.unit_bytes)),
            block_goodput: BlockGoodput::new(settings.block_bytes),
            in_order_goodput: InOrderGoodput::default(),
            file_goodput: settings.file_bytes.map(|bytes| FileGoodput::new(settings.began, bytes)),
            receive_buffer: ReceiveBuffer::new(settings.block_bytes),
            subflow_throughput: SubflowThroughput::default(),
            subflow_count: SubflowCount::default(),
            reordering: Reordering::default(),
            delay: Delay::default(),
            jitter: Jitter::default(),
            delay_ratio: DelayRatio::default(),
            delivery_delay: Histogram::default(),
            settings,
        }
    }

    /// Returns the settings it was created with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Data reached the destination.
    pub fn arrival(&mut self, event: &Arrival) {
        if !self.goes_on(event.at) {
            return;
        }
        self.throughput.arrival(u64::from(event.len));
        self.mean_throughput.arrival(u64::from(event.len));
        self.reordering.arrival(event.dsn);
        let (mut first, mut fresh_bytes) = (None, 0);
        let (unit, block_unit) = (&mut self.unit_goodput, &mut self.block_unit_goodput);
        let (clock, log) = (&mut self.unit_clock, self.sent_by_subflow.get(event.subflow));
        self.arrived.insert(event.range(), |piece| {
            first = first.or(Some(piece.start));
            fresh_bytes += piece.end - piece.start;
            unit.fresh(event.at, piece.clone());
            block_unit.fresh(event.at, piece.clone());
            if let Some(clock) = clock {
                let sent_at = log.and_then(|log| log.first_sent(piece.start));
                let delay = sent_at.map(|sent_at| event.at.saturating_since(sent_at));
                clock.fresh(event.at, piece, event.subflow, delay);
            }
        });
        if let Some(first) = first {
            self.blocks(event.at, fresh_bytes);
            if let Some(clock) = &mut self.unit_clock {
                clock.arrived(event.at, self.arrived.in_order());
            }
            self.delays(event, first);
        }
    }

    /// Octets whose place in the stream is unknown reached the destination: they count as throughput.
    pub fn unplaced_arrival(&mut self, at: Instant, bytes: u64) {
        if !self.goes_on(at) {
            return;
        }
        self.throughput.arrival(bytes);
        self.mean_throughput.arrival(bytes);
    }

    /// Returns the end of the data that arrived without a hole.
    pub fn in_order_bytes(&self) -> u64 {
        self.arrived.in_order()
    }

    /// Updates the metrics of blocks, some of which may be complete now.
    fn blocks(&mut self, at: Instant, fresh_bytes: u64) {
        let (in_order, max) = (self.arrived.in_order(), self.settings.blocks_max);
        let kept = &mut self.goodput_blocks;
        self.block_goodput.arrival(at, in_order, |block| {
            if kept.len() < max {
                kept.push(block);
            }
        });
        let kept = &mut self.buffer_blocks;
        self.receive_buffer.arrival(fresh_bytes, in_order, |_, bytes| {
            if kept.len() < max {
                kept.push(bytes);
            }
        });
    }

    /// Records the delay of a packet whose first new octet is `first`.
    fn delays(&mut self, event: &Arrival, first: u64) {
        if let Some(sent_at) = self.sent.first_sent(first) {
            let delay = event.at.saturating_since(sent_at);
            self.delay.sample(delay);
            self.jitter.sample(delay);
        }
        self.release_sent();
        let Some(log) = self.sent_by_subflow.get_mut(event.subflow) else { return };
        if let Some(sent_at) = log.first_sent(first) {
            self.delay_ratio.sample(event.subflow, event.at.saturating_since(sent_at));
        }
        log.release_below(self.arrived.in_order());
    }

    /// Data left the source.
    pub fn sent(&mut self, event: &Sent) {
        if !self.goes_on(event.at) {
            return;
        }
        let clock = &mut self.unit_clock;
        self.sent.insert(event.at, event.range(), |part| {
            if let Some(clock) = clock {
                clock.sent(event.at, part);
            }
        });
        if self.sent_by_subflow.len() <= event.subflow {
            self.sent_by_subflow.resize(event.subflow + 1, SendLog::default());
        }
        let log = &mut self.sent_by_subflow[event.subflow];
        log.release_below(self.arrived.in_order());
        log.sent(event.at, event.range());
    }

    /// The application received data.
    pub fn delivered(&mut self, event: &Delivered) {
        if !self.goes_on(event.at) {
            return;
        }
        let from = self.in_order_goodput.total_bytes();
        self.in_order_goodput.delivered(event.bytes);
        let delays = &mut self.delivery_delay;
        self.sent.each_sent(from..self.in_order_goodput.total_bytes(), |bytes, sent_at| {
            delays.add(event.at.saturating_since(sent_at), bytes);
        });
        self.release_sent();
        if let Some(file) = &mut self.file_goodput {
            file.delivered(event.at, event.bytes);
        }
    }

    /// Forgets when data were sent that have arrived and were delivered.
    fn release_sent(&mut self) {
        self.sent.release_below(self.arrived.in_order().min(self.in_order_goodput.total_bytes()));
    }

    /// The active set changed.
    pub fn active_set(&mut self, event: &ActiveSet) {
        if !self.goes_on(event.at) {
            return;
        }
        self.subflow_count.active(event.count);
    }

    /// A subflow's data were acknowledged.
    pub fn acked(&mut self, event: &Acked) {
        if !self.goes_on(event.at) {
            return;
        }
        self.subflow_throughput.acked(event.subflow, event.bytes);
    }

    /// Advances to `at`, and returns whether an event at that time counts.
    fn goes_on(&mut self, at: Instant) -> bool {
        if !self.has_ended {
            self.close_before(at);
        }
        !self.has_ended
    }

    /// Closes all windows that end before `at`.
    fn close_before(&mut self, at: Instant) {
        while self.window_end < at {
            self.close();
        }
    }

    /// Closes all windows that end at `at` or before: no further events happen then.
    pub fn close_until(&mut self, at: Instant) {
        self.close_before(at);
        if self.window_end == at {
            self.close();
        }
    }

    /// The run ended at `at`: later events do not count.
    pub fn end(&mut self, at: Instant) {
        if !self.has_ended {
            self.close_until(at);
            self.has_ended = true;
        }
    }

    fn close(&mut self) {
        let at = self.window_end;
        // A window of length zero has no rate and never ends.
        self.window_end = if self.settings.window.is_zero() { Instant::FAR_FUTURE } else { at + self.settings.window };
        self.values.push(WindowValues {
            at,
            aggregate_throughput_bps: self.throughput.close(at).unwrap_or(0.0),
            subflows: self.subflow_count.point(),
            unit_goodput_bps: self.unit_goodput.close(),
            block_unit_goodput_bps: self.block_unit_goodput.close(),
            block_goodput_bps: self.block_goodput.close(),
            in_order_goodput_bps: self.in_order_goodput.close(at).unwrap_or(0.0),
            receive_buffer_bytes: self.receive_buffer.close(),
            subflow_throughput_bps: self.subflow_throughput.close(at),
            reordering_bytes: self.reordering.close(),
            delay_s: self.delay.close(),
            jitter_s: self.jitter.close(),
            delay_ratio: self.delay_ratio.close(),
        });
    }

    /// The closed windows, in chronological order.
    pub fn values(&self) -> &[WindowValues] {
        &self.values
    }

    /// G2 of the first blocks, up to the number that the settings keep.
    pub fn goodput_blocks(&self) -> &[FinishedBlock] {
        &self.goodput_blocks
    }

    /// Octets stored when each of the first blocks was complete, up to the number that the settings keep.
    pub fn buffer_blocks(&self) -> &[u64] {
        &self.buffer_blocks
    }

    /// The units of the run by other clocks, if the settings ask for it.
    pub fn unit_clocks(&self) -> Option<UnitClocks> {
        self.unit_clock.as_ref().map(UnitClock::values)
    }

    /// How long after its first transmission each octet was delivered; `None` if none was.
    pub fn delivery_delay(&self) -> Option<DeliveryDelay> {
        DeliveryDelay::of(&self.delivery_delay)
    }

    /// Totals of the run up to `at`.
    pub fn totals(&self, at: Instant) -> Totals {
        Totals {
            throughput_bps: self.mean_throughput.value_bps(at),
            unit_goodput_bps: self.unit_goodput.mean_bps(),
            units: self.unit_goodput.units(),
            file_goodput_bps: self.file_goodput.as_ref().and_then(FileGoodput::value_bps),
            delivered_bytes: self.in_order_goodput.total_bytes(),
            receive_buffer_bytes: self.receive_buffer.max_bytes(),
            reordering_peak_bytes: self.reordering.peak_bytes(),
            delay_s: self.delay.mean_s(),
            jitter_s: self.jitter.mean_s(),
            delay_ratio_max: self.delay_ratio.max(),
            acked_bytes: self.subflow_throughput.total_bytes().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            unit_bytes: 4000,
            block_bytes: 2000,
            file_bytes: Some(6000),
            blocks_max: 2,
            ..Settings::papers(Duration::from_secs(2), Rate::from_bps(16_000), 1000)
        }
    }

    /// Carries packets of 1000 octets; each has a number, a time of sending, a subflow and a time of arrival.
    fn carry(collector: &mut Collector, packets: &[(u64, u64, usize, u64)]) {
        let mut events: Vec<_> =
            packets.iter().flat_map(|packet| [(packet.0, false, packet), (packet.1, true, packet)]).collect();
        events.sort_by_key(|(at, arrives, _)| (*at, *arrives));
        for (at_ms, arrives, (_, _, subflow, packet)) in events {
            let (at, subflow, dsn, len) = (Instant::from_millis(at_ms), *subflow, packet * 1000, 1000);
            match arrives {
                false => collector.sent(&Sent { at, subflow, dsn, len }),
                true => collector.arrival(&Arrival { at, subflow, dsn, len }),
            }
        }
    }

    /// Six packets over a fast path (200 ms) and a slow one (1000 ms); packet 2 is sent again over the fast path, so its
    /// first copy arrives late.
    fn run() -> Collector {
        let mut collector = Collector::new(settings());
        collector.active_set(&ActiveSet { at: Instant::ZERO, count: 2 });
        let packets = [
            (0, 200, 0, 0),
            (200, 400, 0, 1),
            (400, 1400, 1, 2),
            (1000, 1200, 0, 2),
            (2000, 2200, 0, 3),
            (2000, 3000, 1, 4),
        ];
        carry(&mut collector, &packets);
        for (at_ms, bytes) in [(3000, 5000), (3500, 1000)] {
            collector.delivered(&Delivered { at: Instant::from_millis(at_ms), bytes });
        }
        collector.acked(&Acked { at: Instant::from_secs(4), subflow: 1, bytes: 2000 });
        collector.close_until(Instant::from_secs(4));
        collector
    }

    /// First window: packets at 200, 400, 1200 and, again, 1400 ms: 4000 * 8 / 2. Delays 200, 200, 800 (since the first
    /// transmission of packet 2, 400 ms); on the subflow that brought it, 200. Unit 0 is not finished; block 1 is (0.2 s).
    #[test]
    fn the_first_window() {
        let collector = run();
        let first = &collector.values()[0];
        assert_eq!((first.at, first.aggregate_throughput_bps, first.subflows), (Instant::from_secs(2), 16_000.0, 2));
        assert_eq!((first.unit_goodput_bps, first.block_unit_goodput_bps), (None, Some(80_000.0)));
        assert_eq!((first.block_goodput_bps, first.in_order_goodput_bps), (Some(80_000.0), 0.0));
        assert_eq!((first.receive_buffer_bytes, first.reordering_bytes), (2000, 1000));
        assert_eq!((first.delay_s, first.jitter_s, first.delay_ratio), (Some(0.4), Some(0.3), None));
        assert_eq!(first.subflow_throughput_bps, [0.0; 0]);
    }

    /// Second window: packets at 2200 (unit 0: 32000 bit in 2 s; block 2: 16000 bit in 1.8 s) and 3000 ms. An
    /// acknowledgement at the very end of the window counts in it.
    #[test]
    fn the_second_window() {
        let collector = run();
        let second = &collector.values()[1];
        assert_eq!((second.aggregate_throughput_bps, second.in_order_goodput_bps), (8000.0, 24_000.0));
        assert_eq!((second.unit_goodput_bps, second.block_unit_goodput_bps), (Some(16_000.0), Some(16_000.0)));
        assert_eq!((second.block_goodput_bps, second.receive_buffer_bytes), (Some(16_000.0 / 1.8), 2000));
        assert_eq!((second.delay_s, second.jitter_s, second.delay_ratio), (Some(0.6), Some(0.7), Some(5.0)));
        assert_eq!(second.subflow_throughput_bps, [0.0, 8000.0]);
        assert_eq!(collector.values().len(), 2);
    }

    #[test]
    fn the_run() {
        let collector = run();
        let totals = collector.totals(Instant::from_secs(4));
        assert_eq!((totals.throughput_bps, totals.delivered_bytes), (Some(12_000.0), 6000));
        assert_eq!((totals.unit_goodput_bps, totals.units), (Some(16_000.0), 1));
        assert_eq!(totals.file_goodput_bps, Some(48_000.0 / 3.5));
        assert_eq!(
            (totals.delay_s, totals.delay_ratio_max, totals.reordering_peak_bytes),
            (Some(0.48), Some(5.0), 1000)
        );
        assert_eq!(collector.goodput_blocks().iter().map(|block| block.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(collector.buffer_blocks(), [2000, 2000]);
        assert_eq!(totals.acked_bytes, [0, 2000]);
    }

    /// At 3000 ms, packets 0 to 4 are delivered, first sent at 0, 200, 400, 2000 and 2000 ms: 3000, 2800, 2600, 1000 and
    /// 1000 ms. Of the rest it is not known when it was sent.
    #[test]
    fn delivery_is_timed_from_the_first_transmission_and_by_octets() {
        let collector = run();
        let delay = collector.delivery_delay().unwrap();
        assert_eq!((delay.bytes, delay.mean_s, delay.min_s, delay.max_s), (5000, 2.08, 1.0, 3.0));
        assert_eq!(delay.histogram.bytes, [2000, 1000, 1000, 1000]);
        // The upper end of the bucket of 1 s, and the middle of that of 2.6 s.
        assert!((delay.median_s / 2.6 - 1.0).abs() < 1.0 / 32.0 && delay.p25_s < 1.04, "{delay:?}");
        assert!(Collector::new(settings()).delivery_delay().is_none());
    }

    /// Units of two packets. The second packet leaves at 0 ms over the fast subflow, the first at 90 ms over the slow one:
    /// the source takes 90 ms. What it sends again takes no time.
    #[test]
    fn the_source_takes_until_it_has_sent_all_octets_in_whatever_order() {
        let mut collector = Collector::new(Settings { unit_bytes: 2000, unit_clocks: true, ..settings() });
        carry(&mut collector, &[(0, 200, 0, 1), (90, 1090, 1, 0), (150, 350, 0, 0)]);
        let clocks = collector.unit_clocks().unwrap();
        assert_eq!((clocks.source.mean_s, clocks.first_sent.mean_s), (Some(0.09), Some(0.35)));
        let mut collector = Collector::new(Settings { unit_bytes: 2000, unit_clocks: true, ..settings() });
        carry(&mut collector, &[(0, 1000, 1, 0), (10, 210, 0, 1), (500, 700, 0, 0)]);
        assert_eq!(collector.unit_clocks().unwrap().source.mean_s, Some(0.01));
    }

    /// An hour at 8 Mbit/s over three subflows, with each packet sent twice, in runs of 20 packets that overtake each
    /// other.
    #[test]
    fn what_is_held_does_not_grow_with_time() {
        let mut collector = Collector::new(Settings { file_bytes: None, ..settings() });
        let (mut at, mut delivered_bytes) = (Instant::ZERO, 0);
        for run in 0..60_000_u64 {
            for step in [2, 0, 1] {
                for packet in (0..20).map(|packet| (run * 3 + step) * 20 + packet) {
                    let (subflow, dsn, len) = (step as usize, packet * 1000, 1000);
                    collector.sent(&Sent { at, subflow, dsn, len });
                    collector.sent(&Sent { at, subflow: (subflow + 1) % 3, dsn, len });
                    at += Duration::from_millis(1);
                    collector.arrival(&Arrival { at, subflow, dsn, len });
                    collector.arrival(&Arrival { at, subflow: (subflow + 1) % 3, dsn, len });
                    let bytes = collector.in_order_bytes() - delivered_bytes;
                    delivered_bytes += bytes;
                    collector.delivered(&Delivered { at, bytes });
                }
            }
        }
        assert_eq!((at, collector.in_order_bytes()), (Instant::from_secs(3600), 3_600_000_000));
        let held =
            [&collector.sent, &collector.sent_by_subflow[0], &collector.sent_by_subflow[2]].map(SendLog::ranges_max);
        assert!(held.iter().all(|ranges| *ranges <= 64), "{held:?}");
        assert_eq!(collector.values().len(), 1799);
        assert!(collector.values().iter().all(|values| values.aggregate_throughput_bps <= 16e6));
    }

    /// Silence yields windows, too: a stalled transfer is an outage.
    #[test]
    fn windows_without_events_are_windows() {
        let mut collector = Collector::new(settings());
        collector.delivered(&Delivered { at: Instant::from_secs(7), bytes: 1 });
        assert_eq!(collector.values().len(), 3);
        collector.close_until(Instant::from_secs(8));
        let goodput: Vec<_> = collector.values().iter().map(|values| values.in_order_goodput_bps).collect();
        assert_eq!(goodput, [0.0, 0.0, 0.0, 4.0]);
    }
}
