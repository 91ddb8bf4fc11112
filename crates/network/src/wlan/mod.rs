//! A Wi-Fi channel: IEEE 802.11a in ad hoc mode, the distributed coordination function (IEEE 802.11-2016 section 10.3).
//!
//! Every gate is a station. If all stations hear each other, the channel shows one sequence of events: idle slots, then
//! a frame with its acknowledgement, or a collision. The model does not step through slots: the next event is the
//! earliest end of a backoff. With [`WlanConfig::hidden`] stations, each station has its own view of the channel; see
//! `hidden.rs`. The algorithms, with their sources, are in `docs/algorithms/wlan.md`.
//!
//! ```
//! use network::wlan::{StationId, Wlan, WlanConfig};
//! let mut wlan = Wlan::new(WlanConfig { stations: 3, ..WlanConfig::default() })?;
//! wlan.reach("10.1.0.2".parse().unwrap(), StationId(0));
//! assert_eq!(wlan.queued(StationId(1)).packets, 0);
//! # Ok::<(), network::wlan::WlanError>(())
//! ```

mod config;
mod hidden;
mod station;
mod timing;

use core::any::Any;
use core::net::IpAddr;

use units::{Duration, Instant, Prng};

pub use config::{WlanConfig, WlanError};
pub use station::{StationCounters, StationId};
pub use timing::DataRate;

use crate::{Amount, DropCause, Gate, Medium, MediumOutput, Neighbours, Packet};
use hidden::Ether;
use station::{Frame, Station};
use timing::{DIFS, SIFS, answer_timeout, eifs, frame_bytes};

/// A channel with its stations. See the module documentation.
pub struct Wlan {
    config: WlanConfig,
    stations: Vec<Station>,
    neighbours: Neighbours,
    prng: Prng,
    /// Stations with a frame to send or a backoff to finish, in order of arrival.
    contending: Vec<u16>,
    /// Stations that send now; empty while the channel is idle.
    senders: Vec<u16>,
    exchange: Exchange,
    /// When an idle channel may be used without a backoff.
    free_from: Instant,
    busy: Duration,
    /// State of a channel with hidden stations; `None` if all stations hear each other.
    ether: Option<Box<Ether>>,
    /// Packets of a station that left, to be dropped at the next call.
    lost: Vec<(Gate, Packet)>,
}

/// The exchange on the channel, while a station sends.
#[derive(Clone, Copy)]
struct Exchange {
    outcome: Outcome,
    began: Instant,
    /// When the frame has arrived, or the last sender stops.
    ends: Instant,
    /// When the channel is idle again, after any answers.
    idle_from: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Delivered,
    Destroyed,
    Collided,
}

/// Construction.
impl Wlan {
    /// Creates a channel on which all stations are present and no address is known.
    ///
    /// # Errors
    /// Returns the first invalid setting.
    pub fn new(config: WlanConfig) -> Result<Self, WlanError> {
        config.validate()?;
        let stations = (0..config.stations).map(|_| Station::new(config.contention_window_min)).collect();
        let zero = Instant::ZERO;
        Ok(Self {
            ether: Ether::new(&config).map(Box::new),
            config,
            stations,
            neighbours: Neighbours::new(),
            prng: Prng::new(0),
            contending: Vec::new(),
            senders: Vec::new(),
            exchange: Exchange { outcome: Outcome::Delivered, began: zero, ends: zero, idle_from: zero },
            free_from: zero,
            busy: Duration::ZERO,
            lost: Vec::new(),
        })
    }
}

/// Commands, also through [`crate::Network::with_medium`].
impl Wlan {
    /// Packets to `address` go to `station`, which replaces any earlier station.
    pub fn reach(&mut self, address: IpAddr, station: StationId) {
        self.neighbours.reach(address, station.gate());
    }

    /// Packets from `address` to an unknown destination go to `station`.
    pub fn leave_from(&mut self, address: IpAddr, station: StationId) {
        self.neighbours.leave_from(address, station.gate());
    }

    /// Removes a station: its queue is lost, and frames to it get no answer until it comes back.
    pub fn leave(&mut self, station: StationId) {
        let engaged = self.ether.as_ref().is_some_and(|ether| ether.engaged(station.0));
        let sending = self.senders.contains(&station.0) || engaged;
        let left = &mut self.stations[station.index()];
        left.present = false;
        // A frame on the air stays until its end.
        let on_air = if sending { left.pop() } else { None };
        while let Some(frame) = left.pop() {
            self.lost.extend(frame.packet.map(|packet| (station.gate(), packet)));
        }
        match on_air {
            Some(frame) => left.push(frame),
            None => {
                left.begin_anew(self.config.contention_window_min);
                self.contending.retain(|other| *other != station.0);
            }
        }
    }

    /// Lets a station come back.
    pub fn join(&mut self, station: StationId) {
        self.stations[station.index()].present = true;
    }
}

/// Measurements.
impl Wlan {
    /// Returns the settings of the channel.
    pub fn config(&self) -> &WlanConfig {
        &self.config
    }

    /// Returns the packets that wait at a station, including the one in transmission.
    pub fn queued(&self, station: StationId) -> Amount {
        self.stations[station.index()].queued
    }

    /// Returns the counters of a station.
    pub fn counters(&self, station: StationId) -> StationCounters {
        self.stations[station.index()].counters
    }

    /// Returns for how long the channel has been in use, including the spaces within an exchange.
    pub fn busy(&self) -> Duration {
        self.busy
    }
}

/// Contention (10.3.4).
impl Wlan {
    /// Puts a packet into a station's queue. Returns whether the queue was empty before.
    fn enter(&mut self, gate: Gate, packet: Packet, out: &mut MediumOutput) -> bool {
        let known = self.neighbours.gate_of(&packet).filter(|to| *to != gate && to.0 < self.config.stations);
        let station = &mut self.stations[gate.index()];
        let wire_len = packet.wire_len();
        let refused = match known {
            None => DropCause::NoRoute,
            Some(_) if !station.present => DropCause::Outage,
            Some(to) if self.config.is_free(&packet) => {
                out.forward(to, packet);
                return false;
            }
            Some(_) if !self.config.queue.admits(station.queued, wire_len) => DropCause::QueueFull,
            Some(to) => {
                let had_nothing = station.frames.is_empty();
                station.push(Frame { packet: Some(packet), wire_len, to });
                return had_nothing;
            }
        };
        out.discard(gate, packet, refused);
        false
    }

    /// Starts contention for a station whose queue was empty. It needs no backoff if the last one is over and the
    /// channel is idle.
    fn begin_contention(&mut self, number: u16, now: Instant) {
        let idle = self.senders.is_empty();
        let station = &mut self.stations[usize::from(number)];
        if self.contending.contains(&number) {
            // The backoff after its last frame continues, unless it was over when the channel became busy.
            let used_up = !idle && station.backoff_ends() <= self.exchange.began;
            if used_up {
                station.counts_from = self.exchange.began;
                station.backoff_slots = draw(&mut self.prng, station.contention_window);
            }
            return;
        }
        self.contending.push(number);
        // No slot is idle during an exchange: the count restarts at its end.
        station.counts_from = if idle { self.free_from } else { self.exchange.began };
        let free = idle && now >= self.free_from;
        station.backoff_slots = if free { 0 } else { draw(&mut self.prng, station.contention_window) };
    }

    /// Returns when the next station sends if the channel stays idle.
    #[inline]
    fn next_start(&self) -> Option<Instant> {
        let stations = self.contending.iter().map(|number| &self.stations[usize::from(*number)]);
        stations.filter(|station| !station.frames.is_empty()).map(Station::backoff_ends).min()
    }

    /// Lets the stations send whose backoff is over by `now`.
    fn start(&mut self, now: Instant) {
        let (stations, contending) = (&self.stations, &self.contending);
        let sends = |number: &&u16| {
            let station = &stations[usize::from(**number)];
            !station.frames.is_empty() && station.backoff_ends() <= now
        };
        self.senders.extend(contending.iter().filter(sends));
        self.exchange = match self.senders[..] {
            [alone] => self.exchange_of(alone, now),
            _ => self.collision(now),
        };
        self.busy += self.exchange.idle_from.saturating_since(now);
    }

    /// The exchange if one station sends.
    fn exchange_of(&mut self, sender: u16, began: Instant) -> Exchange {
        let rate = self.config.data_rate;
        let frame = &self.stations[usize::from(sender)].frames[0];
        let (to, data) = (frame.to, rate.data(frame.wire_len) + self.config.propagation);
        let present = self.stations[to.index()].present;
        let uses_rts = self.uses_rts(sender);
        if uses_rts && !present {
            let ends = began + rate.rts() + self.config.propagation;
            return Exchange { outcome: Outcome::Destroyed, began, ends, idle_from: ends };
        }
        self.stations[usize::from(sender)].cleared = uses_rts;
        let reserve = if uses_rts { rate.rts() + SIFS + rate.cts() + SIFS } else { Duration::ZERO };
        let ends = began + reserve + data;
        let heard = present && !self.prng.chance(self.config.frame_error.value());
        match heard {
            true => {
                let idle_from = ends + SIFS + rate.ack() + self.config.propagation;
                Exchange { outcome: Outcome::Delivered, began, ends, idle_from }
            }
            false => Exchange { outcome: Outcome::Destroyed, began, ends, idle_from: ends },
        }
    }

    /// The exchange if several stations send: no frame is understood.
    fn collision(&self, began: Instant) -> Exchange {
        let ends = self.senders.iter().map(|sender| began + self.unanswered(*sender)).max().unwrap_or(began);
        Exchange { outcome: Outcome::Collided, began, ends, idle_from: ends }
    }

    fn uses_rts(&self, sender: u16) -> bool {
        let frame = &self.stations[usize::from(sender)].frames[0];
        frame_bytes(frame.wire_len) > self.config.rts_threshold_bytes
    }

    /// How long a station sends before it notices that there is no answer.
    fn unanswered(&self, sender: u16) -> Duration {
        let frame = &self.stations[usize::from(sender)].frames[0];
        let rate = self.config.data_rate;
        if self.uses_rts(sender) { rate.rts() } else { rate.data(frame.wire_len) }
    }

    /// Ends the exchange: waiting stations resume their count, and each sender draws a new backoff.
    fn finish(&mut self, out: &mut MediumOutput) {
        let Exchange { outcome, began, idle_from, .. } = self.exchange;
        // Stations that could not read the frame wait for the answer it may have asked for (10.3.2.3.7).
        self.free_from = idle_from + if outcome == Outcome::Delivered { DIFS } else { eifs() };
        for number in &self.contending {
            self.stations[usize::from(*number)].freeze(began, self.free_from);
        }
        let senders = core::mem::take(&mut self.senders);
        for sender in &senders {
            match outcome {
                Outcome::Delivered => self.succeed(*sender, out),
                Outcome::Destroyed | Outcome::Collided => self.fail(*sender, out),
            }
        }
        self.senders = senders;
        self.senders.clear();
        let stations = &self.stations;
        self.contending.retain(|number| {
            let station = &stations[usize::from(*number)];
            !station.frames.is_empty() || station.backoff_slots > 0
        });
    }

    fn succeed(&mut self, sender: u16, out: &mut MediumOutput) {
        let Exchange { began, idle_from, .. } = self.exchange;
        let station = &mut self.stations[usize::from(sender)];
        station.counters.attempts += 1;
        station.counters.airtime += idle_from.saturating_since(began);
        if let Some(Frame { packet: Some(packet), to, .. }) = station.pop() {
            station.counters.delivered.add(&packet);
            out.forward(to, packet);
        }
        self.next_frame(sender);
    }

    /// Handles a missing answer. The sender read no damaged frame: it waits for
    /// the later of the answer's time-out and DIFS after the channel became idle.
    fn fail(&mut self, sender: u16, out: &mut MediumOutput) {
        let Exchange { outcome, began, idle_from, ends } = self.exchange;
        // A collision lasts as long as the longest of its frames.
        let sent = match outcome {
            Outcome::Collided => began + self.unanswered(sender),
            Outcome::Delivered | Outcome::Destroyed => ends,
        };
        let station = &mut self.stations[usize::from(sender)];
        station.counters.collisions += u64::from(outcome == Outcome::Collided);
        station.counters.errors += u64::from(outcome == Outcome::Destroyed);
        station.counters.airtime += sent.saturating_since(began);
        self.retry(sender, out);
        self.stations[usize::from(sender)].counts_from = (sent + answer_timeout()).max(idle_from + DIFS);
    }

    /// After a failed attempt, schedules another one or drops the frame (10.3.3).
    fn retry(&mut self, sender: u16, out: &mut MediumOutput) {
        let station = &mut self.stations[usize::from(sender)];
        station.counters.attempts += 1;
        let tries_again = match core::mem::take(&mut station.cleared) {
            true => {
                (station.retries, station.long_retries) = (0, station.long_retries + 1);
                station.long_retries < self.config.long_retry_limit
            }
            false => {
                station.retries += 1;
                station.retries < self.config.short_retry_limit
            }
        };
        if tries_again && station.present {
            let doubled = 2 * station.contention_window + 1;
            station.contention_window = doubled.min(self.config.contention_window_max);
            station.backoff_slots = draw(&mut self.prng, station.contention_window);
        } else {
            let cause = if station.present { DropCause::Loss } else { DropCause::Outage };
            if let Some(Frame { packet: Some(packet), .. }) = station.pop() {
                station.counters.given_up += 1;
                out.discard(Gate(sender), packet, cause);
            }
            self.next_frame(sender);
        }
    }

    /// Starts the next frame. A backoff follows every frame, whether or not there is another (10.3.4.3).
    fn next_frame(&mut self, sender: u16) {
        let station = &mut self.stations[usize::from(sender)];
        station.begin_anew(self.config.contention_window_min);
        station.backoff_slots = draw(&mut self.prng, station.contention_window);
    }

    /// Returns when the next event is due.
    #[inline]
    fn next_event(&self) -> Option<Instant> {
        if self.senders.is_empty() { self.next_start() } else { Some(self.exchange.ends) }
    }

    /// Uses an idle channel at once.
    fn start_if_due(&mut self, now: Instant) {
        if self.senders.is_empty() && self.next_start().is_some_and(|at| at <= now) {
            self.start(now);
        }
    }

    /// Handles all events that are due by `now`.
    fn run(&mut self, now: Instant, out: &mut MediumOutput) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            if self.senders.is_empty() { self.start(at) } else { self.finish(out) }
        }
    }
}

fn draw(prng: &mut Prng, contention_window: u32) -> u32 {
    prng.below(u64::from(contention_window) + 1) as u32
}

impl Medium for Wlan {
    fn gates(&self) -> u16 {
        self.config.stations
    }

    fn process(&mut self, packet: Option<(Gate, Packet)>, now: Instant, out: &mut MediumOutput) {
        self.lost.drain(..).for_each(|(gate, packet)| out.discard(gate, packet, DropCause::Outage));
        // Taken out and put back below: handlers change `ether` and `self` together.
        if let Some(mut ether) = self.ether.take() {
            self.run_in(&mut ether, now, out);
            if let Some((gate, packet)) = packet {
                if self.enter(gate, packet, out) {
                    self.contend(&ether, gate.0, now);
                }
                self.start_in_if_due(&mut ether, now);
            }
            self.ether = Some(ether);
            return;
        }
        self.run(now, out);
        if let Some((gate, packet)) = packet {
            if self.enter(gate, packet, out) {
                self.begin_contention(gate.0, now);
            }
            self.start_if_due(now);
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        match &self.ether {
            Some(ether) => self.next_in(ether),
            None => self.next_event(),
        }
    }

    fn held(&self) -> Amount {
        let mut held = self.stations.iter().fold(Amount::default(), |sum, station| sum + station.queued);
        self.lost.iter().for_each(|(_, packet)| held.add(packet));
        held
    }

    fn seed(&mut self, prng: Prng) {
        self.prng = prng;
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
