//! Converts a topology to a network of nodes.

use lab::run::{link_nodes, read_text};
use lab::scenario::{Deed, Impairments, Middlebox, NarrowOn, RateModel};
use network::middlebox::{NarrowEntry, NarrowHop, Nat, NatEntry};
use network::{Link, LossModel, Network, PortId, Trace, VertexId};
use units::text::Text;
use units::{Duration, Prng, Rate};

use super::plan::LinkPlan;
use super::switch::Switch;
use super::topology::{LinkSpec, RateSpec, Topology, Way};
use linux::{Error, Result};

/// Faster than any TUN device: the rate of links without a limit.
const UNLIMITED: Rate = Rate::from_mbps(1_000_000);

/// A link in the network.
#[derive(Debug)]
pub struct WiredLink {
    /// Where the two hosts are attached.
    pub ports: [PortId; 2],
    /// Vertices from the first host to the second.
    pub up: Vec<VertexId>,
    /// Vertices from the second host to the first.
    pub down: Vec<VertexId>,
    /// Vertices that drop packets besides the link itself, before the link on the way up and behind it on the way down:
    /// narrow hops, and NATs, which admit only packets of connections from inside.
    pub entries: [Vec<VertexId>; 2],
    /// Cuts and restores the link.
    pub switch: Switch,
    /// Whether packets must enter the network as segments, because a middlebox reads them.
    pub segments: bool,
}

/// Adds every link of `topology`.
///
/// # Errors
/// If a trace cannot be read.
pub fn wire_all(network: &mut Network, topology: &Topology, plans: &[LinkPlan]) -> Result<Vec<WiredLink>> {
    let links = &topology.links;
    let wired = plans.iter().enumerate().map(|(index, plan)| {
        let spec = &links[index];
        let parallel = links[..index].iter().filter(|earlier| earlier.between == spec.between).count();
        wire(network, spec, plan, topology.seed, parallel)
    });
    wired.collect()
}

/// Adds a link to `network`: from each port through middleboxes and the link of that direction to the other port. Its
/// traces are drawn from `seed`. There are `parallel` links between the same hosts before it.
fn wire(network: &mut Network, spec: &LinkSpec, plan: &LinkPlan, seed: u64, parallel: usize) -> Result<WiredLink> {
    let ports = [network.add_port(), network.add_port()];
    let switch = Switch::new();
    let label = |way| Label { seed, link: &spec.between, parallel, way };
    let up = add_way(network, &spec.way_up(), spec, &switch, label("up"))?;
    let down = add_way(network, &spec.way_down(), spec, &switch, label("down"))?;
    let down_link = down.len();
    let mut ways = Ways { up, down, down_link, shared: Vec::new(), entries: [Vec::new(), Vec::new()] };
    spec.middleboxes.iter().for_each(|middlebox| add_middlebox(network, middlebox, plan, &mut ways));
    connect(network, ports, &ways);
    let reads = |spec: &Middlebox| spec.narrow.is_none();
    let segments = spec.middleboxes.iter().any(reads);
    let Ways { up, down, entries, .. } = ways;
    Ok(WiredLink { ports, up, down, entries, switch, segments })
}

/// The vertices of a link.
struct Ways {
    up: Vec<VertexId>,
    down: Vec<VertexId>,
    /// How many of these are the link itself; middleboxes follow.
    down_link: usize,
    /// Next to the first host, passed in both directions.
    shared: Vec<Stop>,
    /// The ones that drop packets on the way up, and on the way down.
    entries: [Vec<VertexId>; 2],
}

/// Where packets enter from the side of the first host, and from that of the second: the gates of a middlebox, or the
/// same vertex twice.
#[derive(Clone, Copy)]
struct Stop {
    first: VertexId,
    second: VertexId,
}

impl From<VertexId> for Stop {
    /// The same vertex for both sides.
    fn from(vertex: VertexId) -> Self {
        Self { first: vertex, second: vertex }
    }
}

/// Puts the shared ones in a row next to the first host. Each passes packets on to its other side whatever their
/// addresses: the link may lead to hosts behind either end.
fn connect(network: &mut Network, ports: [PortId; 2], ways: &Ways) {
    let [first, second] = ports.map(PortId::vertex);
    let (last_up, last_down) = (ways.up[ways.up.len() - 1], ways.down[ways.down.len() - 1]);
    for way in [&ways.up, &ways.down] {
        way.windows(2).for_each(|pair| network.connect(pair[0], pair[1]));
    }
    let row: Vec<Stop> =
        [first.into()].into_iter().chain(ways.shared.iter().copied()).chain([ways.up[0].into()]).collect();
    for neighbours in row.windows(3) {
        let (before, stop, behind) = (neighbours[0].second, neighbours[1], neighbours[2].first);
        network.connect(stop.first, before);
        network.connect(stop.second, behind);
    }
    network.connect(first, row[1].first);
    network.connect(last_up, second);
    network.connect(second, ways.down[0]);
    network.connect(last_down, row[row.len() - 2].second);
}

/// Adds the link of one direction and its impairments, in order. `label` determines the randomness of a varying rate.
fn add_way(
    network: &mut Network,
    way: &Way,
    spec: &LinkSpec,
    switch: &Switch,
    label: Label<'_>,
) -> Result<Vec<VertexId>> {
    let impairments = Impairments { reorder: way.reorder, duplicate: way.duplicate, corrupt: way.corrupt };
    let mut chain: Vec<VertexId> = link_nodes::duplicate(network, &impairments).into_iter().collect();
    chain.push(network.add_link(link(way, label)?));
    chain.extend(link_nodes::impair(network, &impairments, &spec.outages));
    chain.push(network.add_node(Box::new(switch.clone())));
    Ok(chain)
}

/// Identifies the randomness of a link.
#[derive(Clone, Copy)]
struct Label<'a> {
    seed: u64,
    link: &'a [String],
    /// Number of earlier links between the same hosts.
    parallel: usize,
    way: &'a str,
}

impl Label<'_> {
    /// The generator of what is named `what`. Only the second link between two hosts and later ones have a number: it
    /// tells parallel links apart, and the first draws the same with and without others.
    fn prng(self, what: &str) -> Prng {
        let number = if self.parallel == 0 { String::new() } else { format!(" ({})", self.parallel + 1) };
        Prng::fork(self.seed, &format!("{what} of {} - {}{number}", self.link[0], self.link[1]))
    }
}

fn link(way: &Way, label: Label<'_>) -> Result<Link> {
    let delay = way.delay.map_or(Duration::ZERO, |Text(delay)| delay);
    let link = match &way.rate {
        None => Link::new(UNLIMITED, delay),
        Some(RateSpec::Text(rate)) => Link::new(*rate, delay),
        Some(RateSpec::Table(model)) => Link::traced(trace(model, label)?, delay),
    };
    let loss = way.loss.as_ref().map_or(LossModel::None, link_nodes::loss);
    Ok(link.queue(link_nodes::queue(way.queue.unwrap_or_default())).loss(loss))
}

fn trace(model: &RateModel, label: Label<'_>) -> Result<Trace> {
    let (first, second) = (&label.link[0], &label.link[1]);
    if let Some(file) = &model.trace {
        let named = format!(
            "`rate.trace` of the link between {first} and {second} names it, relative to the topology's folder"
        );
        let text = read_text(file).map_err(|error| Error::file(file)(format!("{error}: {named}")))?;
        let trace = Trace::parse(&text).map_err(|error| Error::file(file)(format!("{error}: {named}")))?;
        return Ok(begun(trace, model, label));
    }
    let seed = label.prng(&format!("rate {}", label.way)).below(u64::MAX);
    let generator = model.generator().expect("checked when the file was read");
    Ok(generator.generate(seed))
}

/// A recorded `trace` from where it begins. Its label has no direction: both were recorded together.
fn begun(trace: Trace, model: &RateModel, label: Label<'_>) -> Trace {
    let Some(Text(offset)) = model.offset else { return trace };
    offset.apply(trace, label.prng("trace offset"))
}

/// Adds the nodes of a middlebox: behind the link of one direction or of each, or next to the first host.
fn add_middlebox(network: &mut Network, spec: &Middlebox, plan: &LinkPlan, ways: &mut Ways) {
    let deed = spec.deed().expect("checked when the file was read");
    let mut one_way = || link_nodes::of_one_way(deed).map(|node| network.add_node(node));
    ways.up.extend(one_way());
    // Packets in the other direction pass them in the reverse order.
    ways.down.splice(ways.down_link..ways.down_link, one_way());
    match deed {
        Deed::Overwrite(overwrite) => {
            ways.up.push(network.add_node(Box::new(link_nodes::overwrite(overwrite, None))));
        }
        Deed::Narrow(narrow) => {
            let hop = link_nodes::narrow(narrow.narrow());
            if narrow.on != NarrowOn::Down {
                ways.add_narrow(network, hop.clone(), NarrowOn::Up);
            }
            if narrow.on != NarrowOn::Up {
                ways.add_narrow(network, hop, NarrowOn::Down);
            }
        }
        Deed::Nat(nat) => ways.add_nat(network, Nat::new(plan.external(), nat.idle_timeout)),
        Deed::Strip(_) | Deed::Split(_) | Deed::Merge(_) | Deed::ShiftDsn(_) => {}
    }
}

impl Ways {
    /// Adds a hop that is narrow up or down.
    fn add_narrow(&mut self, network: &mut Network, hop: NarrowHop, on: NarrowOn) {
        let entry = network.add_medium(Box::new(NarrowEntry::new(hop)));
        let [outside, link] = [NarrowEntry::OUTSIDE, NarrowEntry::LINK].map(|gate| network.gate(entry, gate));
        let down = on == NarrowOn::Down;
        let (first, second) = if down { (link, outside) } else { (outside, link) };
        self.shared.push(Stop { first, second });
        self.entries[usize::from(down)].push(outside);
    }

    /// Adds the NAT of the first host.
    fn add_nat(&mut self, network: &mut Network, nat: Nat) {
        let entry = network.add_medium(Box::new(NatEntry::new(nat)));
        let [first, second] = [NatEntry::INSIDE, NatEntry::OUTSIDE].map(|gate| network.gate(entry, gate));
        self.shared.push(Stop { first, second });
        self.entries[0].push(first);
        self.entries[1].push(second);
    }
}

#[cfg(test)]
mod tests {
    use network::Packet;
    use units::Instant;

    use super::*;
    use crate::emulator::plan;

    /// When packets sent together arrive at the second host of every link between `pairs`, all of which vary.
    fn arrivals(pairs: &[[&str; 2]]) -> Vec<Vec<Instant>> {
        let hosts = ["a", "b"].map(|name| format!("[[host]]\nname = '{name}'\n")).concat();
        let link = |[x, y]: &[&str; 2]| format!("[[link]]\nbetween = ['{x}', '{y}']\nrate = {{ mean = '3 Mbit/s' }}\n");
        let topology = Topology::parse(&(hosts + &pairs.iter().map(link).collect::<String>())).unwrap();
        let mut network = Network::new(topology.seed);
        let links = wire_all(&mut network, &topology, &plan::links(&topology)).unwrap();
        let mut arrivals = vec![Vec::new(); links.len()];
        for _ in 0..50 {
            links
                .iter()
                .for_each(|link| network.send(link.ports[0], Packet::from_raw(vec![0; 1000].into()), Instant::ZERO));
        }
        while let Some(at) = network.next_wakeup() {
            network.advance(at);
            while let Some((port, _)) = network.poll_delivery() {
                let link = links.iter().position(|link| link.ports[1] == port).unwrap();
                arrivals[link].push(at);
            }
        }
        arrivals
    }

    #[test]
    fn parallel_links_vary_each_for_itself() {
        let alone = arrivals(&[["a", "b"]]);
        let [first, second, third] = arrivals(&[["a", "b"]; 3]).try_into().unwrap();
        assert_eq!((first.len(), &first), (50, &alone[0]), "more links beside it change nothing");
        assert!(first != second && second != third && first != third);
        let back = arrivals(&[["a", "b"], ["b", "a"]]);
        assert_eq!(back, [alone, arrivals(&[["b", "a"]])].concat(), "named the other way round, a link is another one");
    }

    #[test]
    fn a_recording_begins_where_the_file_says() {
        let whole = Trace::parse("1\n4\n1000\n").unwrap();
        let between = ["a".to_owned(), "b".to_owned()];
        let of_link = |offset: Option<&str>, seed, way, parallel| {
            let offset = offset.map(|offset| Text(offset.parse().unwrap()));
            let model = RateModel { offset, ..RateModel::default() };
            begun(whole.clone(), &model, Label { seed, link: &between, parallel, way })
        };
        let of = |offset, seed, way| of_link(offset, seed, way, 0);
        assert_eq!(of(None, 1, "up"), whole);
        assert_eq!(of(Some("1004 ms"), 1, "up"), whole.clone().starting_at(Duration::from_millis(4)));
        let random = |seed, way| of(Some("random"), seed, way);
        assert!(random(1, "up") != random(2, "up") && random(1, "up") != whole);
        assert_eq!(random(1, "up"), random(1, "down"));
        assert_ne!(random(1, "up"), of_link(Some("random"), 1, "up", 1));
    }
}
