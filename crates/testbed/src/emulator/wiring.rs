//! From a topology to a network of nodes.

use std::fs;

use network::impairment::{Corrupt, Detection, Duplicate, Outage, Reorder};
use network::middlebox::{
    Edit, EditStream, Merge, NarrowEntry, NarrowHop, Nat, OptionKinds, ShiftDsn, Split, StripOn, StripOptions,
};
use network::{Link, LossModel, Network, Node, PortId, Route, Trace, VertexId};
use units::text::{Text, TextOr};
use units::{Duration, Instant, Rate};

use super::plan::LinkPlan;
use super::switch::Switch;
use super::topology::{LinkSpec, LossSpec, MiddleboxSpec, NarrowOn, OptionKind, RateSpec, StripFrom, Way};
use linux::{Error, Result};

/// Faster than any TUN device: the rate of links that name none.
const UNLIMITED: Rate = Rate::from_mbps(1_000_000);

/// A link in the network.
#[derive(Debug)]
pub struct WiredLink {
    /// Where the two hosts are attached.
    pub ports: [PortId; 2],
    /// What leads from the first host to the second.
    pub up: Vec<VertexId>,
    /// What leads from the second host to the first.
    pub down: Vec<VertexId>,
    /// What drops packets that are too large: of those up before they come to the link, of those down behind it.
    pub entries: [Vec<VertexId>; 2],
    /// Cuts it and heals it.
    pub switch: Switch,
    /// Whether its packets must be given to the network as segments, because a middlebox reads them.
    pub segments: bool,
}

/// Adds a link to `network`: from each port through middleboxes and the link of that direction to the other port.
///
/// # Errors
/// If a trace cannot be read.
pub fn wire(network: &mut Network, spec: &LinkSpec, plan: &LinkPlan) -> Result<WiredLink> {
    let ports = [network.add_port(), network.add_port()];
    let switch = Switch::new();
    let mut ways = Ways {
        up: add_way(network, &spec.way_up(), spec, &switch)?,
        down: add_way(network, &spec.way_down(), spec, &switch)?,
        shared: Vec::new(),
        entries: [Vec::new(), Vec::new()],
    };
    spec.middleboxes.iter().for_each(|middlebox| add_middlebox(network, middlebox, plan, &mut ways));
    connect(network, plan, ports, &ways);
    let reads = |spec: &MiddleboxSpec| !matches!(spec, MiddleboxSpec::Narrow { .. });
    let segments = spec.middleboxes.iter().any(reads);
    let Ways { up, down, entries, .. } = ways;
    Ok(WiredLink { ports, up, down, entries, switch, segments })
}

/// The vertices of a link.
struct Ways {
    up: Vec<VertexId>,
    down: Vec<VertexId>,
    /// Next to the first host, seen by both directions.
    shared: Vec<Stop>,
    /// Those of them that are narrow up, and down.
    entries: [Vec<VertexId>; 2],
}

/// Where a middlebox is met from the side of the first host, and from that of the second.
#[derive(Clone, Copy)]
struct Stop {
    first: VertexId,
    second: VertexId,
}

impl From<VertexId> for Stop {
    /// At one vertex from both sides.
    fn from(vertex: VertexId) -> Self {
        Self { first: vertex, second: vertex }
    }
}

/// The shared ones stand in a row next to the first host. Those that are met at one vertex send packets to its half of the
/// addresses back along the row, all others onwards.
fn connect(network: &mut Network, plan: &LinkPlan, ports: [PortId; 2], ways: &Ways) {
    let [first, second] = ports.map(PortId::vertex);
    let (last_up, last_down) = (ways.up[ways.up.len() - 1], ways.down[ways.down.len() - 1]);
    for way in [&ways.up, &ways.down] {
        way.windows(2).for_each(|pair| network.connect(pair[0], pair[1]));
    }
    let row: Vec<Stop> =
        [first.into()].into_iter().chain(ways.shared.iter().copied()).chain([ways.up[0].into()]).collect();
    for neighbours in row.windows(3) {
        let (before, stop, behind) = (neighbours[0].second, neighbours[1], neighbours[2].first);
        if stop.first != stop.second {
            network.connect(stop.first, before);
            network.connect(stop.second, behind);
            continue;
        }
        for inwards in plan.first_side() {
            network.add_route(stop.first, Route { from: None, to: Some(inwards), via: before });
        }
        network.add_route(stop.first, Route { from: None, to: None, via: behind });
    }
    network.connect(first, row[1].first);
    network.connect(last_up, second);
    network.connect(second, ways.down[0]);
    network.connect(last_down, row[row.len() - 2].second);
}

/// The link of one direction and its impairments, in order.
fn add_way(network: &mut Network, way: &Way, spec: &LinkSpec, switch: &Switch) -> Result<Vec<VertexId>> {
    let mut chain = vec![network.add_link(link(way)?)];
    let mut add = |node: Box<dyn Node>| chain.push(network.add_node(node));
    if let Some(reorder) = way.reorder {
        add(Box::new(Reorder::new(reorder.probability.value(), reorder.delay)));
    }
    if let Some(Text(probability)) = way.duplicate {
        add(Box::new(Duplicate::new(probability.value())));
    }
    if let Some(Text(probability)) = way.corrupt {
        add(Box::new(Corrupt::new(probability.value(), Detection::Detected)));
    }
    if !spec.outages.is_empty() {
        let instant = |offset: Duration| Instant::ZERO + offset;
        add(Box::new(Outage::new(spec.outages.iter().map(|outage| instant(outage.from)..instant(outage.until)))));
    }
    add(Box::new(switch.clone()));
    Ok(chain)
}

fn link(way: &Way) -> Result<Link> {
    let delay = way.delay.map_or(Duration::ZERO, |Text(delay)| delay);
    let link = match &way.rate {
        None => Link::new(UNLIMITED, delay),
        Some(RateSpec::Text(rate)) => Link::new(*rate, delay),
        Some(RateSpec::Table(file)) => {
            let text = fs::read_to_string(&file.trace).map_err(Error::file(&file.trace))?;
            Link::traced(Trace::parse(&text).map_err(Error::file(&file.trace))?, delay)
        }
    };
    let loss = way.loss.as_ref().map_or(LossModel::None, loss_model);
    Ok(link.queue(way.queue.unwrap_or_default().0.0).loss(loss))
}

fn loss_model(loss: &LossSpec) -> LossModel {
    match loss {
        TextOr::Text(probability) => LossModel::uniform(probability.value()),
        TextOr::Table(burst) => LossModel::gilbert(burst.mean.value(), burst.burst_packets),
    }
}

/// Adds the nodes of a middlebox: one behind each link, or one through which both directions pass.
fn add_middlebox(network: &mut Network, spec: &MiddleboxSpec, plan: &LinkPlan, ways: &mut Ways) {
    match *spec {
        MiddleboxSpec::Strip { ref options, on, after } => {
            let kinds = options.iter().copied().map(kind).reduce(OptionKinds::and);
            let kinds = kinds.expect("checked when the file was read");
            let on = match on {
                StripFrom::All if after > 0 => StripOn::AfterPackets(after),
                StripFrom::All => StripOn::All,
                StripFrom::Syn => StripOn::Syn,
                StripFrom::SynAck => StripOn::SynAck,
            };
            ways.each(network, || StripOptions::new(kinds, on));
        }
        MiddleboxSpec::Split { payload } => ways.each(network, || Split::new(payload.0 as usize)),
        MiddleboxSpec::Merge { payload, hold } => ways.each(network, || Merge::new(payload.0 as usize, hold)),
        MiddleboxSpec::ShiftDsn { by, after } => ways.each(network, || ShiftDsn::new(by).after(after)),
        MiddleboxSpec::Overwrite { at, ref text } => {
            let edit = Edit::Overwrite { at, octets: text.clone().into() };
            ways.shared.push(network.add_node(Box::new(EditStream::new(plan.ends[0].v4.into(), edit))).into());
        }
        MiddleboxSpec::Narrow { mtu, silent, on } => {
            let hop = if silent { NarrowHop::new(mtu).silent() } else { NarrowHop::new(mtu) };
            if on != NarrowOn::Down {
                ways.add_entry(network, hop.clone(), NarrowOn::Up);
            }
            if on != NarrowOn::Up {
                ways.add_entry(network, hop, NarrowOn::Down);
            }
        }
        MiddleboxSpec::Nat { idle_timeout } => {
            ways.shared.push(network.add_node(Box::new(Nat::new(plan.external(), idle_timeout))).into());
        }
    }
}

impl Ways {
    fn each<N: Node + 'static>(&mut self, network: &mut Network, make: impl Fn() -> N) {
        self.up.push(network.add_node(Box::new(make())));
        self.down.push(network.add_node(Box::new(make())));
    }

    /// A hop that is narrow up or down. It goes by no address: the link may lead to hosts behind either.
    fn add_entry(&mut self, network: &mut Network, hop: NarrowHop, on: NarrowOn) {
        let entry = network.add_medium(Box::new(NarrowEntry::new(hop)));
        let [outside, link] = [NarrowEntry::OUTSIDE, NarrowEntry::LINK].map(|gate| network.gate(entry, gate));
        let down = on == NarrowOn::Down;
        let (first, second) = if down { (link, outside) } else { (outside, link) };
        self.shared.push(Stop { first, second });
        self.entries[usize::from(down)].push(outside);
    }
}

fn kind(option: OptionKind) -> OptionKinds {
    match option {
        OptionKind::Mptcp => OptionKinds::MPTCP,
        OptionKind::Mss => OptionKinds::MSS,
        OptionKind::WindowScale => OptionKinds::WINDOW_SCALE,
        OptionKind::Sack => OptionKinds::SACK,
        OptionKind::Timestamps => OptionKinds::TIMESTAMPS,
    }
}
