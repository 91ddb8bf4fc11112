//! Bandwidth sharing: what relays tell of their own flows, and the source's controller hears.

use core::cell::RefCell;
use core::net::IpAddr;
use std::collections::BTreeMap;
use std::rc::Rc;

use cooperation::bandwidth_sharing::{Definition, DemandEstimator, FlowId, LinkCount, RelayLoad, SharingState, Signal};
use cooperation::relay_selection::RelayId;
use cooperation::relay_selection::monitor::LinkUse;
use simulator::{App, Report};
use transport::{ConnectionId, Endpoint, Event, SubflowId};
use units::{Duration, Instant, Rate};

use super::messages::Messages;
use super::offers::configured;
use crate::run::local::FlowCount;
use crate::scenario::{Addresses, DemandKind, LocalTraffic, RhoDefinition, Scenario};

/// What a relay sees of its link and of its own flows.
pub(in crate::run) struct LinkLoad {
    pub link: LinkUse,
    pub flows: Vec<FlowCount>,
}

/// What the relays measure, and what the source was told.
pub(in crate::run) struct Sharing {
    definition: Definition,
    demands: DemandKind,
    fixed: Vec<f64>,
    period: Duration,
    next_at: Instant,
    relays: Vec<Relay>,
    told: Rc<RefCell<Told>>,
}

struct Relay {
    configured: Rate,
    /// What its owner's flows gain per round trip, segments, and what a loss leaves of their windows.
    increase: f64,
    decrease: f64,
    estimator: DemandEstimator,
    /// Octets demanded by each flow until the latest period; of those that take what they get, nothing.
    demanded: Vec<Option<u64>>,
    measured_at: Option<Instant>,
}

impl Sharing {
    /// If the scenario asks for it.
    pub fn new(scenario: &Scenario, addresses: &Addresses) -> Option<Self> {
        let asked = scenario.cooperation.bandwidth_sharing.as_ref()?;
        let relay = |relay: &crate::scenario::Relay| {
            let (increase, decrease) = aimd(&relay.local);
            let (estimator, demanded) = (DemandEstimator::default(), Vec::new());
            Relay { configured: configured(relay), increase, decrease, estimator, demanded, measured_at: None }
        };
        let relay_at = addresses.paths.iter().copied().zip((0..).map(RelayId)).collect();
        let told = Told { state: SharingState::new(asked.period), relay_at };
        Some(Self {
            definition: match asked.rho {
                RhoDefinition::Protect => Definition::Protect,
                RhoDefinition::Eq73 => Definition::FairShare,
            },
            demands: asked.demands,
            fixed: asked.fixed.clone(),
            period: asked.period,
            next_at: Instant::ZERO + asked.start.map_or(Duration::ZERO, |start| start.0),
            relays: scenario.relays.iter().map(relay).collect(),
            told: Rc::new(RefCell::new(told)),
        })
    }

    /// When the period ends.
    pub fn next_at(&self) -> Instant {
        self.next_at
    }

    /// The source's ear.
    pub fn listener(&self) -> SharingListener {
        SharingListener(Rc::clone(&self.told))
    }

    /// A period has ended: the relays that are there tell what `granted` is of their links and what their flows did, and the
    /// source hears it.
    pub fn period(
        &mut self,
        loads: Vec<Option<LinkLoad>>,
        messages: &mut Messages,
        endpoint: &mut Endpoint,
        now: Instant,
    ) {
        self.next_at = now + self.period;
        for (index, load) in loads.into_iter().enumerate() {
            let Some(load) = load else { continue };
            if let Some(signal) = self.signal(index, &load, now).and_then(|signal| messages.signal(&signal)) {
                self.told.borrow_mut().state.on_signal(now, &signal);
            }
        }
        self.told.borrow().tell_all(endpoint, now);
    }

    fn signal(&mut self, index: usize, load: &LinkLoad, now: Instant) -> Option<Signal> {
        let (demands, definition) = (self.demands, self.definition);
        let relay = self.relays.get_mut(index)?;
        let (id, increase, decrease) = (RelayId(index as u16), relay.increase, relay.decrease);
        if let Some(ratio) = self.fixed.get(index) {
            return Some(Signal { relay: id, ratio: *ratio, increase, decrease, at: now });
        }
        let LinkLoad { link, flows } = load;
        let capacity = link.granted.unwrap_or(relay.configured);
        let demands = match demands {
            DemandKind::Known => relay.known_demands(flows, capacity, now)?,
            DemandKind::Estimated => {
                relay.estimated_demands(flows, LinkCount { capacity, carried_bytes: link.delivered_bytes }, now)
            }
        };
        Some(RelayLoad { capacity, demands, increase, decrease }.signal(id, definition, now))
    }
}

impl Relay {
    /// What each flow asked for in the period; one that takes all it can get would take the link. Nothing before the first
    /// period has passed.
    fn known_demands(&mut self, flows: &[FlowCount], capacity: Rate, now: Instant) -> Option<Vec<Rate>> {
        let demanded: Vec<_> = flows.iter().map(|flow| flow.demanded_bytes).collect();
        let before = core::mem::replace(&mut self.demanded, demanded);
        let since = self.measured_at.replace(now)?;
        let rate = |(now_bytes, before_bytes): (&Option<u64>, Option<u64>)| match (now_bytes, before_bytes) {
            (Some(bytes), Some(before)) => {
                Rate::from_bytes_per(bytes.saturating_sub(before), now.saturating_since(since))
            }
            _ => capacity,
        };
        Some(self.demanded.iter().zip(before).map(rate).filter(|rate| *rate > Rate::ZERO).collect())
    }

    fn estimated_demands(&mut self, flows: &[FlowCount], link: LinkCount, now: Instant) -> Vec<Rate> {
        let counts = flows.iter().zip((0..).map(FlowId)).map(|(flow, id)| (id, flow.received_bytes));
        self.estimator.measure(now, link, counts);
        self.estimator.demands()
    }
}

/// The law of the owner's flows: that of the first that names AIMD's parameters, otherwise NewReno's.
fn aimd(local: &[LocalTraffic]) -> (f64, f64) {
    let specs = local.iter().filter_map(|local| local.congestion.as_ref());
    let aimd = specs.map(|spec| &spec.0).find(|spec| spec.name == "aimd" && spec.parameters.len() == 2);
    aimd.map_or((1.0, 0.5), |spec| (spec.parameters[0], spec.parameters[1]))
}

/// What the source knows.
struct Told {
    state: SharingState,
    relay_at: BTreeMap<IpAddr, RelayId>,
}

impl Told {
    fn tell_all(&self, endpoint: &mut Endpoint, now: Instant) {
        let connections: Vec<ConnectionId> = endpoint.connections().collect();
        for connection in connections {
            for subflow in endpoint.stats(connection).map(|stats| stats.subflows).unwrap_or_default() {
                if subflow.closed_at.is_none() {
                    self.tell(connection, subflow.id, subflow.remote.ip(), endpoint, now);
                }
            }
        }
    }

    fn tell(&self, connection: ConnectionId, subflow: SubflowId, at: IpAddr, endpoint: &mut Endpoint, now: Instant) {
        let Some(relay) = self.relay_at.get(&at) else { return };
        // One that has just ended needs to know nothing.
        let _ = endpoint.set_competition(connection, subflow, self.state.current(*relay, now), now);
    }
}

/// An application of the source: new subflows begin with what is known of their relays.
pub(in crate::run) struct SharingListener(Rc<RefCell<Told>>);

impl App for SharingListener {
    fn start(&mut self, _endpoint: &mut Endpoint, _now: Instant) {}

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        if let Event::SubflowEstablished { connection, subflow, remote, .. } = event {
            self.0.borrow().tell(*connection, *subflow, remote.ip(), endpoint, now);
        }
    }

    fn report(&self) -> Report {
        Report::default()
    }
}
