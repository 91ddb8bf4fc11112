//! The destination's hand on its subflows: what relay selection wants, its engine does.

use core::cell::RefCell;
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use cooperation::relay_selection::energy::EnergyAware;
use cooperation::relay_selection::manager::{Cause, ManagerSettings, RelayManager, Report as Told};
use cooperation::relay_selection::migration::{Command, PathState};
use cooperation::relay_selection::monitor::Advert;
use cooperation::relay_selection::play_out::{BufferedTolerance, PlayOut};
use cooperation::relay_selection::trigger::{Outage, Trigger};
use cooperation::relay_selection::{self, Goal, RelayId, SelectorSettings};
use simulator::{App, Report};
use transport::{ConnectionId, ConnectionStats, Endpoint, Event, SubflowId, SubflowStats};
use units::text::Text;
use units::{Duration, Instant, Rate};

use super::first_path::{FIRST, retire_first};
use crate::metrics::{ActiveSet, Shared};
use crate::results::{Migration, SelectionPoint, SelectionResults, Series};
use crate::run::RunError;
use crate::run::observed::payload_bytes;
use crate::scenario::{self, Addresses, Mode, RelayMode, Scenario, TriggerKind};

/// What an application that plays at the target bit rate waits for before it begins.
const STARTUP: Duration = Duration::from_secs(2);

/// Relay selection for the destination's one connection.
pub(in crate::run) struct Steering {
    manager: RelayManager,
    /// The destination's address on each relay's path, and the source.
    paths: Vec<IpAddr>,
    source: SocketAddr,
    names: Vec<String>,
    connection: Option<ConnectionId>,
    /// Whether subflows can be added.
    ready: bool,
    /// The relay of the first subflow, which the connection itself opens.
    first: RelayId,
    /// Relays splice the subflows that join them; the first they only route.
    spliced: bool,
    subflows: BTreeMap<RelayId, SubflowId>,
    /// Octets that had arrived over each subflow at the latest look.
    arrived: BTreeMap<SubflowId, u64>,
    /// Octets that had arrived over each relay's subflow when the latest period ended.
    carried: BTreeMap<RelayId, (SubflowId, u64)>,
    /// What the application has left to play.
    play: PlayOut,
    /// What waits until subflows can be added.
    waiting: VecDeque<Command>,
    /// When the latest period ended, and what had arrived until then.
    period: (Instant, u64),
    collector: Option<Shared>,
    told: SelectionResults,
}

impl Steering {
    /// Chooses the first relays by what they advertise.
    pub fn begin(
        scenario: &Scenario,
        addresses: &Addresses,
        source: SocketAddr,
        adverts: Vec<Advert>,
    ) -> Result<Self, RunError> {
        let mut manager = manager(scenario)?;
        for advert in adverts {
            manager.handle_advert(advert, Instant::ZERO);
        }
        manager.start(Instant::ZERO);
        let chosen = manager.target();
        let mut steering = Self {
            manager,
            paths: addresses.paths.clone(),
            source,
            names: scenario.relays.iter().map(|relay| relay.name.clone()).collect(),
            connection: None,
            ready: false,
            // With nothing to choose from the connection begins somewhere, and selection goes on from there.
            first: chosen.first().copied().unwrap_or(RelayId(0)),
            spliced: scenario.cooperation.relays == RelayMode::FastAck,
            subflows: BTreeMap::new(),
            arrived: BTreeMap::new(),
            carried: BTreeMap::new(),
            play: play_out(scenario),
            waiting: VecDeque::new(),
            period: (Instant::ZERO, 0),
            collector: None,
            told: SelectionResults::default(),
        };
        // Its first subflow is the connection's own.
        let begins = Command::Add(steering.first);
        let commands = core::iter::from_fn(|| steering.manager.poll_command());
        let spliced = steering.spliced;
        let others: Vec<Command> = commands.filter(|command| spliced || *command != begins).collect();
        steering.waiting.extend(others);
        Ok(steering)
    }

    /// The relay over which the connection begins.
    pub fn first(&self) -> usize {
        usize::from(self.first.0)
    }

    /// `collector` hears of the size of the active set.
    pub fn tell(&mut self, collector: Shared) {
        let count = self.manager.target().len() as u64;
        collector.borrow_mut().active_set(&ActiveSet { at: Instant::ZERO, count });
        self.collector = Some(collector);
    }

    /// What relay selection did.
    pub fn results(&self) -> SelectionResults {
        self.told.clone()
    }

    /// A period has ended, and the relays advertised.
    pub fn period(&mut self, adverts: Vec<Advert>, endpoint: &mut Endpoint, now: Instant) {
        for advert in adverts {
            self.manager.handle_advert(advert, now);
        }
        let stats = self.observe(endpoint);
        let arrived: u64 = stats.subflows.iter().map(|subflow| subflow.received_bytes).sum();
        let (since, before) = self.period;
        let throughput = Rate::from_bytes_per(arrived.saturating_sub(before), now.saturating_since(since));
        self.period = (now, arrived);
        self.tell_carried(&stats, now.saturating_since(since), now);
        self.play.advance(stats.received_bytes, now);
        self.manager.set_level(self.play.level());
        self.manager.handle_period(throughput, now);
        self.follow(endpoint, now);
    }

    /// What each relay carried in the period that ends now.
    fn tell_carried(&mut self, stats: &ConnectionStats, span: Duration, now: Instant) {
        for (relay, id) in &self.subflows {
            let Some(subflow) = stats.subflows.iter().find(|stats| stats.id == *id) else { continue };
            let before = self.carried.insert(*relay, (*id, subflow.received_bytes));
            if let Some((_, before)) = before.filter(|(known, _)| known == id) {
                let delivered = Rate::from_bytes_per(subflow.received_bytes - before, span);
                self.manager.handle_carried(*relay, delivered, now);
            }
        }
    }

    /// The relays advertised between two ends of periods.
    pub fn advertised(&mut self, adverts: Vec<Advert>, endpoint: &mut Endpoint, now: Instant) {
        for advert in adverts {
            self.manager.handle_advert(advert, now);
        }
        self.observe(endpoint);
        self.manager.review(now);
        self.follow(endpoint, now);
    }

    /// The relays that are wanted, with what they offer.
    pub fn offers_in_use(&self, now: Instant) -> Vec<(RelayId, Rate)> {
        self.manager.offers_in_use(now)
    }

    /// Looks at the paths.
    fn observe(&mut self, endpoint: &Endpoint) -> ConnectionStats {
        let stats = self.connection.and_then(|connection| endpoint.stats(connection)).unwrap_or_default();
        for (relay, id) in &self.subflows {
            let Some(SubflowStats { srtt, received_bytes, .. }) = stats.subflows.iter().find(|stats| stats.id == *id)
            else {
                continue;
            };
            let before = self.arrived.insert(*id, *received_bytes).unwrap_or(0);
            self.manager.observe(*relay, PathState { srtt: *srtt, under_way_bytes: received_bytes - before });
        }
        stats
    }

    /// Does what the manager wants and notes what it tells.
    fn follow(&mut self, endpoint: &mut Endpoint, now: Instant) {
        while let Some(command) = self.manager.poll_command() {
            match self.ready {
                true => self.carry_out(command, endpoint, now),
                false => self.waiting.push_back(command),
            }
        }
        while let Some(told) = self.manager.poll_report() {
            self.note(told);
        }
        if let Some(collector) = &self.collector {
            let count = self.manager.carrying() as u64;
            collector.borrow_mut().active_set(&ActiveSet { at: now, count });
        }
    }

    fn carry_out(&mut self, command: Command, endpoint: &mut Endpoint, now: Instant) {
        let Some(connection) = self.connection else { return };
        match command {
            Command::Add(relay) => {
                let local = SocketAddr::new(self.paths[usize::from(relay.0)], 0);
                match endpoint.add_subflow(connection, local, self.source, false, now) {
                    Ok(subflow) => {
                        self.subflows.insert(relay, subflow);
                    }
                    Err(_) => self.manager.handle_closed(relay, now),
                }
            }
            // What cannot be done any more need not be: the connection or the subflow is gone, and an event tells.
            Command::SetBackup { relay, backup } => {
                if let Some(subflow) = self.subflows.get(&relay) {
                    let _ = endpoint.set_priority(connection, *subflow, backup, now);
                }
            }
            Command::Remove { relay, reachable } => {
                let Some(subflow) = self.subflows.remove(&relay) else { return };
                let path = self.paths[usize::from(relay.0)];
                let stats = endpoint.stats(connection).unwrap_or_default();
                let is_up = |other: &&SubflowStats| other.established_at.is_some() && other.closed_at.is_none();
                let mut others = stats.subflows.iter().filter(is_up).filter(|other| other.id != subflow);
                if !reachable && others.clone().any(|other| other.local.ip() != path) {
                    // A FIN would get nowhere; REMOVE_ADDR goes over another subflow.
                    let _ = endpoint.withdraw_address(connection, path, now);
                } else if reachable || others.next().is_some() {
                    let _ = endpoint.remove_subflow(connection, subflow, now);
                }
                // Without another subflow an unreachable relay is still better than none.
            }
        }
    }

    fn note(&mut self, told: Told) {
        let names = |relays: &[RelayId]| -> Vec<String> {
            relays.iter().map(|relay| self.names[usize::from(relay.0)].clone()).collect()
        };
        match told {
            Told::Migration { at, cause, from, to, feasible } => self.told.migrations.push(Migration {
                at_s: at.as_secs_f64(),
                settled_s: None,
                cause: words(cause).into(),
                from: names(&from),
                to: names(&to.relays),
                offered_bps: to.sum_bps as f64,
                feasible,
            }),
            Told::Settled { at } => {
                if let Some(latest) = self.told.migrations.last_mut() {
                    latest.settled_s = Some(at.as_secs_f64());
                }
            }
            Told::Monitored { at, offered, backup } => self.told.points.push(SelectionPoint {
                time_s: at.as_secs_f64(),
                offered_bps: offered.as_bps() as f64,
                backup_bps: backup.map(|rate| rate.as_bps() as f64),
            }),
        }
    }

    fn relay_at(&self, address: IpAddr) -> Option<RelayId> {
        self.paths.iter().position(|path| *path == address).map(|index| RelayId(index as u16))
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        match event {
            Event::SubflowEstablished { connection, subflow, local, .. } => {
                self.connection.get_or_insert(*connection);
                if self.spliced && *subflow == FIRST {
                    return;
                }
                if self.spliced {
                    retire_first(endpoint, *connection, now);
                }
                let Some(relay) = self.relay_at(local.ip()) else { return };
                if *self.subflows.entry(relay).or_insert(*subflow) == *subflow {
                    self.observe(endpoint);
                    self.manager.handle_established(relay, now);
                }
            }
            Event::FullyEstablished(_) => {
                self.ready = true;
                for command in core::mem::take(&mut self.waiting) {
                    self.carry_out(command, endpoint, now);
                }
            }
            Event::SubflowClosed { subflow, .. } => {
                let relay = self.subflows.iter().find(|(_, known)| *known == subflow).map(|(relay, _)| *relay);
                if let Some(relay) = relay {
                    self.subflows.remove(&relay);
                    self.manager.handle_closed(relay, now);
                }
            }
            _ => return,
        }
        self.follow(endpoint, now);
    }
}

fn manager(scenario: &Scenario) -> Result<RelayManager, RunError> {
    let selection = &scenario.cooperation.selection;
    let refused = |problem: String, remedy| RunError::Unsupported { field: "cooperation.selection", problem, remedy };
    let target = scenario.target.ok_or_else(|| refused("needs a target".into(), "add `target`"))?;
    let (mode, settings) = match selection.mode {
        Mode::Build => (relay_selection::Mode::Build, ManagerSettings::build(selection.period)),
        Mode::Paper => (relay_selection::Mode::PaperThesis, ManagerSettings::paper(selection.period)),
    };
    let hold_down_periods = selection.hold_down_periods.unwrap_or(settings.hold_down_periods);
    let trigger = match selection.trigger {
        TriggerKind::Either => Trigger::Either,
        TriggerKind::Throughput => Trigger::Throughput,
        TriggerKind::Advert => Trigger::Advert,
    };
    let mtu_bytes = scenario.connection.mtu.0.max(1) as f64;
    let payload_ratio = payload_bytes(scenario) as f64 / mtu_bytes;
    let headroom = selection.headroom.map_or(0.0, |Text(part)| part.value());
    let (discount, buffered) = (selection.discount, selection.buffered_tolerance.map(buffered));
    let settings =
        ManagerSettings { hold_down_periods, trigger, headroom, discount, buffered, payload_ratio, ..settings };
    let goal = Goal { target: target.bit_rate, tolerance: target.tolerance.value() };
    let selector = SelectorSettings { epsilon: selection.epsilon.value(), mode };
    let selector = relay_selection::build(selection.method.name(), selector)
        .map_err(|error| refused(error.to_string(), "write another value"))?;
    let selector = match selection.energy_weight {
        Some(weight) => Box::new(EnergyAware::new(selector, weight)),
        None => selector,
    };
    Ok(RelayManager::new(settings, goal, selector))
}

fn buffered(asked: scenario::BufferedTolerance) -> BufferedTolerance {
    BufferedTolerance { full: asked.full, widest: asked.widest.value() }
}

/// The application plays at the target bit rate.
pub(in crate::run) fn play_out(scenario: &Scenario) -> PlayOut {
    PlayOut::new(scenario.target.map_or(Rate::ZERO, |target| target.bit_rate), STARTUP)
}

/// How long an application stood still that plays at the target bit rate what arrived in order.
pub(in crate::run) fn play_stalled_s(scenario: &Scenario, series: &Series) -> f64 {
    let (mut play, mut bytes, mut from_s) = (play_out(scenario), 0.0, 0.0);
    for (to_s, bps) in series.time_s.iter().zip(&series.goodput_in_order_bps) {
        bytes += bps * (to_s - from_s) / 8.0;
        from_s = *to_s;
        play.advance(bytes as u64, Instant::from_nanos((to_s * 1e9) as u64));
    }
    play.stalled().as_secs_f64()
}

fn words(cause: Cause) -> &'static str {
    match cause {
        Cause::Start => "start",
        Cause::Outage(Outage::Throughput) => "throughput out of range",
        Cause::Outage(Outage::Advert) => "offers out of range",
        Cause::Loss(_) => "relay lost",
        Cause::Goal => "new target",
    }
}

/// The steering as an application of the destination.
pub(in crate::run) struct Steersman(pub Rc<RefCell<Steering>>);

impl App for Steersman {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.0.borrow_mut().follow(endpoint, now);
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        self.0.borrow_mut().handle_event(event, endpoint, now);
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        let mut steering = self.0.borrow_mut();
        steering.observe(endpoint);
        steering.manager.handle_timeout(now);
        steering.follow(endpoint, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.borrow().manager.poll_timeout()
    }

    fn report(&self) -> Report {
        Report::default()
    }
}
