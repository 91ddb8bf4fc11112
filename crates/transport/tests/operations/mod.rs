//! A whole endpoint driven by octets: arbitrary segments, time-outs, commands and clock steps, with invariants checked
//! after each of them. Random inputs come from `hostile_operations.rs`, better ones from the fuzzer.
//!
//! The segments start as an honest peer's and then lie about parts of it, because segments of random octets do not get
//! past the first check.

#![allow(dead_code, reason = "tests and the fuzzer use their own parts")]

mod check;
mod command;
mod lie;
mod source;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use transport::congestion::{self, CONTROLLERS, ControllerSpec};
use transport::era::{AckDelay, Binding, Era, PartialAcks, RecoveryEnd, RepairTimer, RtoFloor};
use transport::path_manager::{LocalAddress, PATH_MANAGERS};
use transport::receiver_centric::{Reading, ReceiverCentric, WindowRule};
use transport::scheduler::SCHEDULERS;
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, ListenerId};
use units::{Duration, Instant};
use wire::mptcp::{MpJoin, MptcpOption};
use wire::{Flags, Segment};

use crate::forger::{Flow, Forger, keys};
use check::Emitted;
use source::Source;

const PORT: u16 = 80;
/// Maximum number of forgers, and of flows of each.
const FORGERS_MAX: usize = 12;
const FLOWS_MAX: usize = 10;
/// Maximum number of segments from consecutive calls of `poll_transmit` before time must pass.
const BURST_MAX: usize = 4096;
/// Maximum number of time-outs at one instant.
const ROUNDS_MAX: usize = 64;
/// Longer than the longest user time-out (1000 s, after a change), any handshake attempt, any wait for a subflow, and
/// TIME-WAIT. The policies decide how many steps that takes.
const WIND_DOWN: Duration = Duration::from_secs(2000);
/// Maximum memory of the endpoint in any case: its connections are limited, and so are their buffers.
const LIVE_BYTES_MAX: isize = 48 << 20;

/// The application's knowledge of one connection.
struct App {
    id: ConnectionId,
    written: u64,
    read: u64,
    finished: bool,
}

/// The endpoint and its peers.
pub struct World {
    endpoint: Endpoint,
    config: ConnectionConfig,
    now: Instant,
    listener: Option<ListenerId>,
    forgers: Vec<Forger>,
    apps: Vec<App>,
    emitted: BTreeMap<(SocketAddr, SocketAddr), Emitted>,
    /// Whether payloads are memory instead of patterns.
    real_octets: bool,
    /// Whether no forger has lied about the content of its stream, so that the application's data can be checked.
    truthful: bool,
    live_bytes: fn() -> isize,
    live_at_start: isize,
    next_port: u16,
}

/// Executes `input`. Panics if an invariant does not hold.
pub fn run(input: &[u8], live_bytes: fn() -> isize) {
    let mut source = Source::new(input);
    let mut world = World::new(&mut source, live_bytes);
    world.settle();
    while !source.is_empty() {
        world.operate(&mut source);
        world.settle();
    }
    world.wind_down();
}

/// Meaningless settings, which the engine has to bound.
const RECEIVER_CENTRIC: ReceiverCentric = ReceiverCentric {
    reading: Reading::Paper,
    rtt_old_eighths: u64::MAX,
    lossy_share: f64::NAN,
    lossy_weight: -7.0,
    report_change: 0.0,
    clear_rounds: 0,
    window: WindowRule::Controller,
};

/// Draws sensible settings of every kind, and some meaningless ones.
fn receiver_centric(source: &mut Source) -> ReceiverCentric {
    ReceiverCentric {
        reading: source.pick(&[Reading::Build, Reading::Paper]),
        window: source.pick(&[WindowRule::Controller, WindowRule::Receiver]),
        ..source.pick(&[ReceiverCentric::DEFAULT, RECEIVER_CENTRIC])
    }
}

/// Draws any controller, with default parameters or, if it takes parameters, with extreme ones.
fn controller(source: &mut Source) -> ControllerSpec {
    let known = source.pick(CONTROLLERS);
    let mut spec = ControllerSpec::named(known.name);
    let factors = [1.0, 0.1, 10.0];
    spec.parameters =
        known.build.parameters().iter().map(|parameter| parameter.default * source.pick(&factors)).collect();
    if congestion::build(&spec).is_err() {
        spec.parameters.clear();
    }
    spec
}

fn local_ip(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 0))
}

fn early(source: &mut Source) -> Binding {
    let early = |buffer_bytes| Binding::Early { buffer_bytes };
    source.pick(&[early(131_072), early(9000), early(1), Binding::Autotuned])
}

/// Draws the present-day era half of the time, else a mixture of eras.
fn era(source: &mut Source) -> Era {
    let bits = source.u8();
    let bit = |n: u8| bits >> n & 1 == 1;
    if !bit(0) {
        return Era::default();
    }
    Era {
        binding: if bit(1) { early(source) } else { Binding::Late },
        initial_ssthresh_bytes: if bit(2) { source.pick(&[65_535, 1]) } else { u64::MAX },
        subflow_window_bytes: if bit(3) { source.pick(&[65_535, 2000, 1]) } else { u32::MAX },
        reinjection: !bit(4),
        reinjection_timeouts: source.pick(&[1, 1, 3]),
        idle_reinjection: bit(2),
        limited_transmit: !bit(5),
        rack: !bit(6),
        tail_loss_probe: !bit(6),
        rto_floor: if bit(7) { RtoFloor::Whole } else { RtoFloor::Variance },
        partial_acks: if bit(5) { PartialAcks::Every } else { PartialAcks::First },
        repair_timer: source.pick(&[RepairTimer::OnResend, RepairTimer::OnAck, RepairTimer::OnSack]),
        recovery_end: if bit(7) { RecoveryEnd::Threshold } else { RecoveryEnd::Flight },
        ack_delay: if bit(4) { AckDelay::Adaptive } else { AckDelay::Fixed },
    }
}

fn config(source: &mut Source) -> ConnectionConfig {
    let bits = source.u16();
    let bit = |n: u16| bits >> n & 1 == 1;
    ConnectionConfig {
        mptcp: bits & 7 != 7,
        checksum: bit(3),
        scheduler: source.pick(SCHEDULERS).name.into(),
        path_manager: source.pick(PATH_MANAGERS).name.into(),
        congestion: controller(source),
        send_buffer_bytes: source.pick(&[65536, 3000, 1 << 18]),
        unsent_max_bytes: if bits & 3 == 1 { 2000 } else { 1 << 30 },
        receive_buffer_bytes: source.pick(&[65536, 3000, 1 << 18]),
        mtu: source.pick(&[1500, 1280, 576, 200]),
        offload_max_bytes: source.pick(&[0, 0, 65000, 4000]),
        timestamps: !bit(4),
        sack: !bit(5),
        ecn: bit(6),
        nagle: bit(7),
        delayed_ack: Duration::from_millis(if bit(8) { 0 } else { 40 }),
        receiver_centric: bit(10).then(|| receiver_centric(source)),
        keep_alive: bit(9).then(|| Duration::from_secs(30)),
        hystart: bit(11),
        initial_window_segments: if bit(12) { 1 } else { 10 },
        rto_min: Duration::from_millis(if bit(13) { 1 } else { 200 }),
        user_timeout: Duration::from_secs(if bit(14) { 10 } else { 300 }),
        time_wait: Duration::from_secs(if bit(15) { 0 } else { 60 }),
        suspension: source.pick(&[true, true, false]),
        subflows_max: 4,
        remote_addresses_max: 4,
        era: era(source),
    }
}

impl World {
    fn new(source: &mut Source, live_bytes: fn() -> isize) -> Self {
        let live_at_start = live_bytes();
        let local_addresses = (1..=2).map(|n| LocalAddress { ip: local_ip(n).ip(), backup: n == 2 }).collect();
        let limits = EndpointConfig { local_addresses, connections_max: 16, backlog: 8, ..EndpointConfig::default() };
        let config = config(source);
        let mut endpoint = Endpoint::with_seed(limits, 1);
        let listener = endpoint.listen(SocketAddr::from(([0, 0, 0, 0], PORT)), config.clone()).ok();
        assert!(listener.is_some(), "the policies are known");
        Self {
            endpoint,
            config,
            now: Instant::from_secs(1),
            listener,
            forgers: Vec::new(),
            apps: Vec::new(),
            emitted: BTreeMap::new(),
            real_octets: source.u8() & 1 == 1,
            truthful: true,
            live_bytes,
            live_at_start,
            next_port: 1024,
        }
    }

    fn operate(&mut self, source: &mut Source) {
        match source.u8() % 16 {
            0 => self.step_clock(source),
            1 => self.inject_syn(source),
            2 => self.establish(source),
            3 => self.join(source),
            4..=6 => self.behave(source),
            7..=11 => self.lie(source),
            _ => self.command(source),
        }
    }

    fn step_clock(&mut self, source: &mut Source) {
        let next = self.endpoint.poll_timeout().unwrap_or(self.now);
        let step = source.pick(&[0, 1, 1_000, 40_000, 200_000, 1_000_000, 61_000_000, 3_600_000_000]);
        self.now = match source.u8() % 3 {
            0 => self.now + Duration::from_micros(step),
            _ => self.now.max(next),
        };
    }

    fn new_forger(&mut self, source: &mut Source) -> Option<usize> {
        if self.forgers.len() >= FORGERS_MAX {
            return None;
        }
        let bits = source.u8();
        let mut forger = Forger::new(bits & 3 != 3, u64::from(source.u16()) << 8 | self.forgers.len() as u64);
        forger.checksum = bits & 4 != 0;
        forger.timestamps = bits & 8 == 0;
        forger.sack = bits & 16 == 0;
        forger.receiver_centric = bits & 32 != 0;
        forger.mss = source.pick(&[Some(1460), Some(0), Some(1), Some(536), Some(65535), None]);
        forger.window_scale = source.pick(&[Some(7), Some(0), Some(14), Some(255), None]);
        let flow = self.new_flow(source);
        forger.flows.push(flow);
        self.forgers.push(forger);
        Some(self.forgers.len() - 1)
    }

    fn new_flow(&mut self, source: &mut Source) -> Flow {
        self.next_port = self.next_port.checked_add(1).unwrap_or(1024);
        let local = SocketAddr::from(([10, 9, 0, source.u8() % 4], self.next_port));
        let remote = SocketAddr::from(([10, 0, 0, 1 + source.u8() % 2], PORT));
        Flow::new(local, remote, source.pick(&[1, u32::MAX - 100, 1 << 31]))
    }

    fn inject_syn(&mut self, source: &mut Source) {
        let Some(p) = self.new_forger(source) else { return };
        let mut syn = self.forgers[p].syn(0, self.now);
        if source.u8() & 1 == 1 {
            self.distort(p, 0, &mut syn, source);
        }
        self.inject(syn);
    }

    /// Performs a whole handshake, up to the peer's first data.
    fn establish(&mut self, source: &mut Source) {
        let Some(p) = self.new_forger(source) else { return };
        self.inject(self.forgers[p].syn(0, self.now));
        self.settle();
        self.inject(self.forgers[p].third_ack(0, self.now));
        self.settle();
        self.inject_data(p, 0, 100);
        self.accept();
    }

    /// Opens another flow of a forger.
    fn join(&mut self, source: &mut Source) {
        let Some(p) = self.pick_forger(source) else { return };
        if self.forgers[p].flows.len() >= FLOWS_MAX {
            return;
        }
        let flow = self.new_flow(source);
        self.forgers[p].flows.push(flow);
        let f = self.forgers[p].flows.len() - 1;
        self.inject(self.forgers[p].join_syn(f, self.now));
        self.settle();
        if source.u8() & 7 != 7 {
            self.inject(self.forgers[p].join_ack(f, self.now));
        }
    }

    fn pick_forger(&self, source: &mut Source) -> Option<usize> {
        let pick = usize::from(source.u8());
        (!self.forgers.is_empty()).then(|| pick % self.forgers.len())
    }

    fn pick_flow(&self, source: &mut Source) -> Option<(usize, usize)> {
        let p = self.pick_forger(source)?;
        let f = usize::from(source.u8()) % self.forgers[p].flows.len();
        Some((p, f))
    }

    /// Acts as an honest peer.
    fn behave(&mut self, source: &mut Source) {
        let Some((p, f)) = self.pick_flow(source) else { return };
        let forger = &self.forgers[p];
        match source.u8() % 6 {
            0 | 1 => self.inject(forger.ack(f, self.now)),
            2 => self.inject_data(p, f, source.pick(&[1, 100, 1000, 1400])),
            3 => self.inject(forger.syn_ack(f, self.now)),
            4 => self.inject(if f == 0 { forger.third_ack(f, self.now) } else { forger.join_ack(f, self.now) }),
            _ => {
                let mut fin = forger.ack(f, self.now);
                fin.flags |= Flags::FIN;
                self.forgers[p].flows[f].nxt += 1;
                self.truthful &= self.speaks_mptcp(p);
                self.inject(fin);
            }
        }
    }

    /// Whether MPTCP was agreed on, so that mappings place a forger's data. In plain TCP the sequence number does, and
    /// after a FIN, or with two flows, forgers lose count.
    fn speaks_mptcp(&self, p: usize) -> bool {
        self.forgers[p].mptcp && self.forgers[p].peer_key.is_some()
    }

    fn inject_data(&mut self, p: usize, f: usize, len: u16) {
        self.truthful &= f == 0 || self.speaks_mptcp(p);
        let mut segment = self.forgers[p].data(f, len, self.now);
        self.forgers[p].sent(f, len);
        if self.real_octets {
            segment.payload = segment.payload.to_bytes().into();
        }
        self.inject(segment);
    }

    fn inject(&mut self, segment: Segment) {
        if std::env::var_os("OPERATIONS_TRACE").is_some() {
            println!("{:?} -> {segment:?}", self.now);
        }
        let sent_end = segment.end();
        let emitted = self.emitted.entry((segment.dst, segment.src)).or_default();
        emitted.note_received(&segment, sent_end);
        self.endpoint.handle_segment(segment, self.now);
    }

    /// Polls until the endpoint has nothing to send at this instant.
    fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            self.transmit();
            self.listen_to_events();
            match self.endpoint.poll_timeout() {
                Some(at) if at <= self.now => self.endpoint.handle_timeout(self.now),
                _ => return self.check_memory(),
            }
        }
        panic!("handle_timeout makes no progress at {:?}", self.now);
    }

    fn transmit(&mut self) {
        let mut count = 0;
        while let Some(segment) = self.endpoint.poll_transmit(self.now) {
            count += 1;
            assert!(count <= BURST_MAX, "poll_transmit does not end: {segment:?}");
            self.receive(&segment);
        }
    }

    /// Delivers a segment of the endpoint to the forgers.
    fn receive(&mut self, segment: &Segment) {
        if std::env::var_os("OPERATIONS_TRACE").is_some() {
            println!("{:?} <- {segment:?}", self.now);
        }
        let emitted = self.emitted.entry((segment.src, segment.dst)).or_default();
        emitted.check(segment, &self.config);
        if self.forgers.iter_mut().any(|forger| forger.learn(segment).is_some()) {
            return;
        }
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::ACK) {
            return;
        }
        let flow = Flow::new(segment.dst, segment.src, 77);
        let join = segment.options.mptcp.iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
            _ => None,
        });
        let joined = self.forgers.iter().position(|forger| Some(keys::token(forger.key)) == join);
        match joined {
            Some(p) if self.forgers[p].flows.len() < FLOWS_MAX => self.forgers[p].flows.push(flow),
            None if join.is_none() && self.forgers.len() < FORGERS_MAX => {
                let mut forger = Forger::new(!segment.options.mptcp.is_empty(), 99 + self.forgers.len() as u64);
                forger.flows.push(flow);
                self.forgers.push(forger);
            }
            _ => return,
        }
        for forger in &mut self.forgers {
            forger.learn(segment);
        }
    }

    fn listen_to_events(&mut self) {
        let mut count = 0;
        while let Some(event) = self.endpoint.poll_event() {
            count += 1;
            assert!(count <= BURST_MAX, "an operation makes no more events than segments");
            match event {
                Event::Incoming(_) => self.accept(),
                Event::FellBack(_) => self.truthful = false,
                _ => {}
            }
        }
    }

    fn accept(&mut self) {
        let Some(listener) = self.listener else { return };
        while let Some(id) = self.endpoint.accept(listener) {
            self.apps.push(App { id, written: 0, read: 0, finished: false });
        }
    }

    fn check_memory(&self) {
        let live = (self.live_bytes)() - self.live_at_start;
        assert!(live <= LIVE_BYTES_MAX, "{live} octets live");
    }

    /// Lets everything time out. Afterwards the endpoint holds only what it keeps for reuse.
    fn wind_down(&mut self) {
        for app in &self.apps {
            let _ = self.endpoint.abort(app.id, self.now);
            self.endpoint.release(app.id);
        }
        self.settle();
        if let Some(listener) = self.listener.take() {
            self.endpoint.close_listener(listener, self.now);
        }
        let end = self.now + WIND_DOWN;
        while self.now <= end {
            self.settle();
            let Some(next) = self.endpoint.poll_timeout() else { break };
            self.now = self.now.max(next);
        }
        let left: Vec<_> = self.endpoint.connections().map(|id| self.endpoint.stats(id)).collect();
        assert!(left.is_empty(), "all connections were released: {left:?}");
        assert_eq!(self.endpoint.poll_timeout(), None, "nobody is left to wait for anything");
    }
}
