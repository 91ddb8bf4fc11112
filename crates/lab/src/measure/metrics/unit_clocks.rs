//! G1 by other clocks: the parts of a unit's time, and its time if all subflows were equally late.

use core::ops::Range;
use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use units::{Duration, Instant};

use super::{FinishedUnit, Units, rate_bps};

/// The units of a run, timed by five clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitClocks {
    /// From the first arrival to the last: the clock of G1.
    pub first_arrival: Clock,
    /// From the first transmission of any of its octets at the source to the last arrival.
    pub first_sent: Clock,
    /// From the time at which all earlier units were complete until this one is, too: the clock of G2, with units as
    /// blocks.
    pub unit_before: Clock,
    /// From the first transmission of any of its octets to that of the octets sent last, in whatever order: the time that
    /// the source takes to send it.
    pub source: Clock,
    /// Like `first_arrival`, if every subflow had the mean delay of the unit: shifts each arrival by the difference
    /// between the mean delay of the unit's octets on its subflow and on all subflows.
    pub levelled: Clock,
}

/// Results of one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Mean time of a unit; null without units.
    pub mean_s: Option<f64>,
    /// Mean, over units, of payload over time; units that take no time are left out.
    pub goodput_bps: Option<f64>,
}

/// Times the units of a connection. Keeps only outstanding units: begun and incomplete.
#[derive(Clone, Debug)]
pub struct UnitClock {
    units: Units,
    /// Number of the first unit in `open`; all earlier units are complete.
    first_open: u64,
    open: VecDeque<OpenUnit>,
    /// When the units before `first_open` became complete.
    complete_at: Option<Instant>,
    sums: [Sum; 5],
}

/// State of a unit that has been sent in part.
#[derive(Clone, Debug, Default)]
struct OpenUnit {
    first_sent: Option<Instant>,
    /// Time of the latest first transmission of any octets of the unit.
    last_sent: Option<Instant>,
    by_subflow: BTreeMap<usize, Carried>,
}

/// Octets of a unit that arrived over one subflow.
#[derive(Clone, Copy, Debug)]
struct Carried {
    first_at: Instant,
    last_at: Instant,
    /// Number of packets, and the sum of their delays.
    packets: u64,
    delay_nanos: u128,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    nanos: u128,
    units: u64,
    bps: f64,
    rates: u64,
}

impl UnitClock {
    /// Times units of `unit_bytes` octets, at least one.
    pub fn new(unit_bytes: u64) -> Self {
        Self {
            units: Units::new(unit_bytes),
            first_open: 0,
            open: VecDeque::new(),
            complete_at: None,
            sums: Default::default(),
        }
    }

    /// The source sends `range` for the first time. Ranges may come in any order, times do not decrease.
    pub fn sent(&mut self, at: Instant, range: Range<u64>) {
        for index in touched(range, self.units.unit_bytes()) {
            let Some(unit) = open(&mut self.open, self.first_open, index) else { continue };
            unit.first_sent.get_or_insert(at);
            unit.last_sent = Some(at);
        }
    }

    /// Octets in `range` arrive for the first time over `subflow`, on which they were first sent `delay` ago.
    pub fn fresh(&mut self, at: Instant, range: Range<u64>, subflow: usize, delay: Option<Duration>) {
        let unit_bytes = self.units.unit_bytes();
        for index in touched(range.clone(), unit_bytes) {
            if let Some((unit, delay)) = open(&mut self.open, self.first_open, index).zip(delay) {
                let carried = unit.by_subflow.entry(subflow).or_insert(Carried::new(at));
                carried.add(at, delay);
            }
        }
        let (units_open, first_open, sums) = (&self.open, self.first_open, &mut self.sums);
        self.units.fresh(at, range, |finished| {
            if let Some(unit) = finished.index.checked_sub(first_open).and_then(|place| units_open.get(place as usize))
            {
                let FinishedUnit { first_at, last_at, .. } = finished;
                sums[0].add(unit_bytes, Some(last_at.saturating_since(first_at)));
                sums[1].add(unit_bytes, unit.first_sent.map(|sent| last_at.saturating_since(sent)));
                sums[3].add(unit_bytes, unit.drawn_out());
                sums[4].add(unit_bytes, unit.levelled());
            }
        });
    }

    /// Records an arrival at `at`, after which everything below `in_order` has arrived.
    pub fn arrived(&mut self, at: Instant, in_order: u64) {
        let since = *self.complete_at.get_or_insert(at);
        let complete = in_order / self.units.unit_bytes();
        let new = complete.saturating_sub(self.first_open);
        if new == 0 {
            return;
        }
        // Units completed by the same packet share the time since the unit before them, like blocks of G2.
        let each = Duration::from_nanos(at.saturating_since(since).as_nanos() / new);
        for _ in 0..new {
            self.sums[2].add(self.units.unit_bytes(), Some(each));
            self.open.pop_front();
        }
        (self.first_open, self.complete_at) = (complete, Some(at));
    }

    /// The clocks of all units so far.
    pub fn values(&self) -> UnitClocks {
        let [first_arrival, first_sent, unit_before, source, levelled] = self.sums.map(Sum::clock);
        UnitClocks { first_arrival, first_sent, unit_before, source, levelled }
    }
}

/// The units that `range` touches.
fn touched(range: Range<u64>, unit_bytes: u64) -> Range<u64> {
    if range.is_empty() { 0..0 } else { range.start / unit_bytes..(range.end - 1) / unit_bytes + 1 }
}

/// Returns unit `index` of `units`, whose first entry is unit `first`; `None` if this unit and all before it are
/// complete, or if it is too far ahead: positions come from segments and may be arbitrary.
fn open(units: &mut VecDeque<OpenUnit>, first: u64, index: u64) -> Option<&mut OpenUnit> {
    /// No window contains more units; those farther ahead are ignored.
    const UNITS_MAX: u64 = 1 << 16;
    let place = index.checked_sub(first).filter(|place| *place < UNITS_MAX)? as usize;
    if units.len() <= place {
        units.resize(place + 1, OpenUnit::default());
    }
    units.get_mut(place)
}

impl OpenUnit {
    fn drawn_out(&self) -> Option<Duration> {
        Some(self.last_sent?.saturating_since(self.first_sent?))
    }

    /// Time from the first arrival to the last, each shifted by the mean delay of the unit less that of its subflow.
    fn levelled(&self) -> Option<Duration> {
        let packets: u64 = self.by_subflow.values().map(|carried| carried.packets).sum();
        let sum: u128 = self.by_subflow.values().map(|carried| carried.delay_nanos).sum();
        let mean = sum.checked_div(u128::from(packets))? as i128;
        let moved = |at: Instant, carried: &Carried| i128::from(at.as_nanos()) + mean - carried.mean_nanos();
        let first = self.by_subflow.values().map(|carried| moved(carried.first_at, carried)).min()?;
        let last = self.by_subflow.values().map(|carried| moved(carried.last_at, carried)).max()?;
        u64::try_from(last - first).ok().map(Duration::from_nanos)
    }
}

impl Carried {
    fn new(at: Instant) -> Self {
        Self { first_at: at, last_at: at, packets: 0, delay_nanos: 0 }
    }

    fn add(&mut self, at: Instant, delay: Duration) {
        self.last_at = at;
        self.packets += 1;
        self.delay_nanos += u128::from(delay.as_nanos());
    }

    fn mean_nanos(&self) -> i128 {
        (self.delay_nanos / u128::from(self.packets.max(1))) as i128
    }
}

impl Sum {
    fn add(&mut self, unit_bytes: u64, time: Option<Duration>) {
        let Some(time) = time else { return };
        (self.nanos, self.units) = (self.nanos + u128::from(time.as_nanos()), self.units + 1);
        if let Some(bps) = rate_bps(unit_bytes, time) {
            (self.bps, self.rates) = (self.bps + bps, self.rates + 1);
        }
    }

    fn clock(self) -> Clock {
        Clock {
            mean_s: (self.units > 0).then(|| self.nanos as f64 / self.units as f64 / 1e9),
            goodput_bps: (self.rates > 0).then(|| self.bps / self.rates as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(at: u64) -> Instant {
        Instant::from_millis(at)
    }

    /// Packet number `packet`, of 100 octets, arrives over `subflow` after `delay_ms`.
    fn arrive(clock: &mut UnitClock, at: u64, packet: u64, subflow: usize, delay_ms: u64) {
        clock.fresh(ms(at), packet * 100..(packet + 1) * 100, subflow, Some(Duration::from_millis(delay_ms)));
    }

    fn means_ms(clock: &UnitClock) -> Vec<Option<f64>> {
        let UnitClocks { first_arrival, first_sent, unit_before, source, levelled } = clock.values();
        let clocks = [first_arrival, first_sent, unit_before, source, levelled];
        clocks.map(|clock| clock.mean_s.map(|mean_s| (mean_s * 1e6).round() / 1e3)).to_vec()
    }

    /// Units of two packets. Packets 0 to 3 leave at 0, 10, 20 and 30 ms; the odd ones take a subflow with a delay of
    /// 100 ms instead of 50. Unit 0: arrivals at 50 and 110, sent from 0 to 10; levelled, 75 ms each, at 75 and 85.
    /// Unit 1: at 70 and 130, levelled at 95 and 105; 20 ms after unit 0 is complete, 60 ms after the first arrival.
    #[test]
    fn five_clocks() {
        let mut clock = UnitClock::new(200);
        for packet in 0..4 {
            clock.sent(ms(packet * 10), packet * 100..(packet + 1) * 100);
        }
        for (at, packet, in_order) in [(50, 0, 100), (70, 2, 100), (110, 1, 300), (130, 3, 400)] {
            let subflow = packet as usize % 2;
            arrive(&mut clock, at, packet, subflow, [50, 100][subflow]);
            clock.arrived(ms(at), in_order);
        }
        assert_eq!(means_ms(&clock), [60.0, 110.0, 40.0, 10.0, 10.0].map(Some));
        assert_eq!(clock.values().first_arrival.goodput_bps, Some(200.0 * 8.0 / 0.060));
        assert!(clock.open.is_empty());
    }

    /// A packet that is late on its own subflow stays late when levelled.
    #[test]
    fn what_is_late_on_its_own_subflow_stays_late() {
        let mut clock = UnitClock::new(200);
        clock.sent(ms(0), 0..100);
        clock.sent(ms(10), 100..200);
        arrive(&mut clock, 60, 1, 0, 50);
        arrive(&mut clock, 140, 0, 0, 140);
        clock.arrived(ms(140), 200);
        // The very first arrival begins the time of the first unit, like t_0 for G2.
        assert_eq!(means_ms(&clock), [80.0, 140.0, 0.0, 10.0, 80.0].map(Some));
    }

    #[test]
    fn positions_out_of_reach_hold_nothing() {
        let mut clock = UnitClock::new(100);
        clock.sent(ms(0), u64::MAX - 10..u64::MAX);
        clock.sent(ms(0), 50..50);
        assert!(clock.open.is_empty());
        assert_eq!(clock.values(), UnitClocks::default());
    }
}
