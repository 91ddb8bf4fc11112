//! The wire of a cell behaves like a link before it, whether packets or sources use it.

use core::net::SocketAddr;
use core::num::NonZeroU32;

use network::cell::{CORE, Cell, CellConfig, DatagramSource, EarlyDrop, RlcConfig, UeConfig, UeId, WireConfig};
use network::{DropCause, Link, Queue};
use units::{ByteCount, Duration, Instant, Prng, Probability, Rate};

use super::rig::{Rig, SERVER, address, at_m};

const UES: usize = 5;
const WIRE: WireConfig =
    WireConfig { rate: Rate::from_mbps(20), delay: Duration::from_micros(7_300), queue: Queue::packets(15) };

/// Sends datagrams at listed times, in order.
struct Listed {
    ue: usize,
    datagrams: Vec<(Instant, u16)>,
    next: usize,
}

impl DatagramSource for Listed {
    fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (SERVER, address(self.ue))
    }

    fn send(&mut self, now: Instant, payloads: &mut Vec<u16>) -> Option<Instant> {
        while let Some((_, payload)) = self.datagrams.get(self.next).filter(|(at, _)| *at <= now) {
            payloads.push(*payload);
            self.next += 1;
        }
        self.datagrams.get(self.next).map(|(at, _)| *at)
    }
}

/// Draws bursts to UEs; all datagrams have different times.
fn draw(prng: &mut Prng) -> Vec<(Instant, usize, u16)> {
    let mut drawn = Vec::new();
    let mut nanos = 0;
    for _ in 0..3000 {
        let pause_max = if prng.chance(0.1) { 4_000_000 } else { 300_000 };
        nanos += 1 + prng.below(pause_max);
        drawn.push((Instant::from_nanos(nanos), prng.below(UES as u64) as usize, 20 + prng.below(1400) as u16));
    }
    drawn
}

fn config(wire: Option<WireConfig>) -> CellConfig {
    let early = EarlyDrop {
        min: ByteCount(10_000),
        max: ByteCount(20_000),
        probability_max: Probability::new(0.3).unwrap(),
        averaging: NonZeroU32::new(8).unwrap(),
        ecn: false,
    };
    let rlc = RlcConfig { queue: Queue::packets(25), early: Some(early), ..RlcConfig::default() };
    let mut ues = at_m(&[600.0, 900.0, 1200.0, 4000.0, 9000.0]);
    ues[1] = UeConfig { max_bit_rate: Some(Rate::from_mbps(1)), ..ues[1].clone() };
    CellConfig { ues, rlc, wire, ..CellConfig::default() }
}

/// Observations of a run: drops before the full wire, arrivals, drops at each gate for lack of room, and queues in
/// between.
type Seen = (u64, Vec<(Instant, Option<usize>, u64)>, Vec<u64>, Vec<Vec<u64>>);

/// Sends the datagrams that sources do not send.
fn seen(mut rig: Rig, sent: &[(Instant, usize, u16)], is_fed: fn(usize) -> bool, drops: impl Fn(&Rig) -> u64) -> Seen {
    let mut queues = Vec::new();
    for (at, ue, payload_len) in sent {
        rig.run(*at, false);
        if !is_fed(*ue) {
            rig.send(*ue, *payload_len, *at);
        }
        rig.collect_now(*at);
        // Reading the state changes nothing.
        if at.as_nanos() % 3 == 0 {
            rig.with_cell(*at, |_| ());
            queues.push(rig.cell().ues().iter().map(|ue| ue.queue.bytes).collect::<Vec<_>>());
        }
    }
    rig.run(Instant::from_secs(60), false);
    rig.assert_balanced();
    let gates = (0..UES).map(|ue| rig.network.gate(rig.cell, UeId(ue as u16).gate()));
    let full: Vec<u64> = gates.map(|gate| rig.network.counters(gate).dropped(DropCause::QueueFull).packets).collect();
    assert!(full.iter().sum::<u64>() > 0 && drops(&rig) > 0 && !rig.arrived.is_empty());
    (drops(&rig), rig.arrived, full, queues)
}

fn nobody(_: usize) -> bool {
    false
}

fn wire_drops(rig: &Rig) -> u64 {
    let core = rig.network.gate(rig.cell, CORE);
    rig.network.counters(core).dropped(DropCause::QueueFull).packets
}

#[test]
fn a_wire_is_a_link_before_the_cell() {
    for seed in 0..5 {
        let sent = draw(&mut Prng::new(seed));
        let mut before = Rig::with_seed(config(None), seed);
        let link = before.network.add_link(Link::new(WIRE.rate, WIRE.delay).queue(WIRE.queue));
        before.network.connect(before.core.vertex(), link);
        before.network.connect(link, before.network.gate(before.cell, CORE));
        let expected =
            seen(before, &sent, nobody, |rig| rig.network.counters(link).dropped(DropCause::QueueFull).packets);
        assert_eq!(seen(Rig::with_seed(config(Some(WIRE)), seed), &sent, nobody, wire_drops), expected);
    }
}

#[test]
fn what_sources_send_is_as_if_hosts_sent_it() {
    for seed in 0..5 {
        let sent = draw(&mut Prng::new(seed));
        let expected = seen(Rig::with_seed(config(Some(WIRE)), seed), &sent, nobody, wire_drops);
        // Every other UE has its own source, which only the cell calls.
        let mut rig = Rig::with_seed(config(Some(WIRE)), seed);
        for ue in (0..UES).step_by(2) {
            let own = sent.iter().filter(|(_, to, _)| *to == ue).map(|(at, _, payload)| (*at, *payload));
            let source = Listed { ue, datagrams: own.collect(), next: 0 };
            let fed = rig.with_cell(Instant::ZERO, |cell| cell.feed(UeId(ue as u16), Box::new(source), Instant::ZERO));
            fed.unwrap();
        }
        assert_eq!(seen(rig, &sent, |ue| ue % 2 == 0, wire_drops), expected);
    }
}

#[test]
fn a_cell_without_a_wire_has_no_sources() {
    let mut cell = Cell::new(CellConfig::default()).unwrap();
    let source = Listed { ue: 0, datagrams: Vec::new(), next: 0 };
    let refused = cell.feed(UeId(0), Box::new(source), Instant::ZERO).unwrap_err();
    assert_eq!(refused.to_string(), "wire: none is not a wire that datagrams come over");
}
