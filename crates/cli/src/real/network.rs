//! The scenario's relays as network namespaces between emulated links.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::thread::JoinHandle;

use lab::measure::PathCounters;
use lab::run::rate_trace;
use lab::scenario::{self, Hop, Loss, Scenario, TextOr, value_of};
use linux::emulator::{Emulation, Topology};
use linux::netns::Namespace;
use linux::stop::{Stop, StopHandle};

use crate::failure::Failure;

/// An emulated network that moves packets until it is finished or dropped.
pub struct RunningNetwork {
    /// Where the source runs.
    pub source: Arc<Namespace>,
    /// Where the destination's device is.
    pub destination: Arc<Namespace>,
    /// The source's address.
    pub source_address: IpAddr,
    /// The destination's addresses, one for each relay.
    pub paths: Vec<IpAddr>,
    stop: StopHandle,
    emulating: Option<JoinHandle<Result<Vec<PathCounters>, linux::Error>>>,
}

impl RunningNetwork {
    /// Creates it.
    pub fn start(scenario: &Scenario) -> Result<Self, Failure> {
        let (text, traces) = topology(scenario)?;
        let topology = Topology::parse(&text).map_err(Failure::Input)?;
        let mut emulation = Emulation::start(&topology, &format!("anabranch-{}-", std::process::id()))?;
        // The emulation has read them.
        drop(traces);
        let (source, destination) = (emulation.host(0), emulation.host(1));
        allow_subflows(&source)?;
        let links = scenario.relays.iter().flat_map(|relay| [&relay.cellular, &relay.wifi]).flatten();
        if links.filter_map(scenario::Link::narrow_down).any(|narrow| narrow.silent) {
            // Without it the kernel never finds out (RFC 4821): it is off by default.
            source.set("ipv4/tcp_mtu_probing", "1")?;
        }
        let stop = Stop::new()?;
        let handle = stop.handle()?;
        let relays = scenario.relays.len();
        let emulating = std::thread::spawn(move || {
            emulation.run(&stop)?;
            Ok((0..relays).map(|relay| path_counters(&emulation, relay, relays)).collect())
        });
        let source_address = Ipv4Addr::new(10, 1, 0, 1).into();
        // Behind the second host of Wi-Fi link n: its own address is 10.n.1.1, the others of that half are free.
        let paths = (0..relays).map(|relay| Ipv4Addr::new(10, (relays + relay + 1) as u8, 1, 2).into()).collect();
        Ok(Self { source, destination, source_address, paths, stop: handle, emulating: Some(emulating) })
    }

    /// Ends it; gives what each path did to packets towards the destination.
    pub fn finish(mut self) -> Result<Vec<PathCounters>, Failure> {
        self.stop.stop();
        match self.emulating.take().map(JoinHandle::join) {
            Some(Ok(counters)) => Ok(counters?),
            _ => Err(Failure::Failed("the emulation failed".into())),
        }
    }
}

impl Drop for RunningNetwork {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(emulating) = self.emulating.take() {
            let _ = emulating.join();
        }
    }
}

/// The kernel accepts two subflows by default.
fn allow_subflows(source: &Namespace) -> Result<(), Failure> {
    let limits =
        source.command("ip")?.args(["mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8"]).output()?;
    if limits.status.success() {
        return Ok(());
    }
    Err(Failure::Failed(format!("ip mptcp limits: {}", String::from_utf8_lossy(&limits.stderr).trim())))
}

fn path_counters(emulation: &Emulation, relay: usize, relays: usize) -> PathCounters {
    let [cellular, wifi] = [relay, relays + relay].map(|link| emulation.losses(link)[0]);
    PathCounters {
        entered: cellular.entered_packets,
        lost: cellular.lost_packets + wifi.lost_packets,
        queue_drops: cellular.queue_full_packets + wifi.queue_full_packets,
    }
}

/// The topology file of `scenario`, and the traces it names, which live as long as they are open.
fn topology(scenario: &Scenario) -> Result<(String, Vec<File>), Failure> {
    let mut text = format!("seed = {}\n", scenario.seed & i64::MAX as u64);
    let relays = 0..scenario.relays.len();
    let hosts = ["source".into(), "destination".into()].into_iter().chain(relays.clone().map(relay_name));
    hosts.for_each(|name| write_text(&mut text, format_args!("[[host]]\nname = '{name}'\n")));
    let mut traces = Vec::new();
    for (hop, ends) in [(Hop::Cellular, ["source", ""]), (Hop::Wifi, ["", "destination"])] {
        for (index, relay) in scenario.relays.iter().enumerate() {
            let link = relay.link(hop).ok_or_else(|| shared(hop))?;
            let name = relay_name(index);
            let [first, second] = ends.map(|end| if end.is_empty() { name.as_str() } else { end });
            let trace = rate_trace(scenario, index, hop)?.map(|trace| trace_file(&trace.to_string())).transpose()?;
            write_text(&mut text, format_args!("[[link]]\nbetween = ['{first}', '{second}']\n"));
            write_link(&mut text, link, trace.as_ref());
            traces.extend(trace);
        }
    }
    Ok((text, traces))
}

/// Cells and channels are models in virtual time; real namespaces are joined by links.
fn shared(hop: Hop) -> Failure {
    let name = hop.name();
    Failure::Input(format!(
        "relays: the {name} hop is shared by all relays, and only links of their own can be emulated"
    ))
}

fn relay_name(index: usize) -> String {
    format!("relay{}", index + 1)
}

fn write_link(text: &mut String, link: &scenario::Link, trace: Option<&File>) {
    let rate = match (&link.rate, trace) {
        (_, Some(trace)) => format!("{{ trace = '/proc/self/fd/{}' }}", trace.as_raw_fd()),
        (TextOr::Text(rate), None) => format!("'{rate}'"),
        (TextOr::Table(_), None) => "'0 bit/s'".into(),
    };
    let loss = match &link.loss {
        Loss::Text(probability) => format!("'{probability}'"),
        Loss::Table(burst) => {
            let mean = value_of(&burst.mean);
            burst.burst_packets.map_or_else(
                || format!("'{mean}'"),
                |packets| format!("{{ mean = '{mean}', burst_packets = {packets:?} }}"),
            )
        }
    };
    let middleboxes = narrow(link.narrow_down(), "up") + &narrow(link.narrow_up(), "down");
    write_text(text, format_args!("middleboxes = [{middleboxes}]\n"));
    let (delay, queue, up) = (value_of(&link.delay), link.queue, &link.uplink);
    // The first host of every link is the one nearer to the source.
    write_text(text, format_args!("delay = '{delay}'\nup = {{ rate = {rate}, loss = {loss}, queue = '{queue}' }}\n"));
    let (rate, loss, queue) = (up.rate, up.loss, up.queue);
    write_text(text, format_args!("down = {{ rate = '{rate}', loss = '{loss}', queue = '{queue}' }}\n"));
}

/// The middlebox of a direction that is narrow.
fn narrow(narrow: Option<scenario::Narrow>, on: &str) -> String {
    narrow.map_or(String::new(), |narrow| {
        let (mtu, silent) = (narrow.mtu_bytes(), narrow.silent);
        format!("{{ kind = 'narrow', mtu = {mtu}, silent = {silent}, on = '{on}' }},")
    })
}

fn write_text(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes everything");
}

/// A file without a name: nothing has to be removed.
fn trace_file(text: &str) -> Result<File, Failure> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux::emulator::topology::{MiddleboxSpec, NarrowOn};

    fn demo(changes: &[&str]) -> (Topology, Vec<File>) {
        let demo = include_str!("../../../../scenarios/demo.toml");
        let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
        let scenario = lab::scenario::load("demo.toml", demo, &changes).unwrap();
        let (text, traces) = topology(&scenario).unwrap();
        (Topology::parse(&text).unwrap(), traces)
    }

    #[test]
    fn narrow_links_are_emulated_each_way() {
        let changes = [
            "relays[0].cellular.mtu={ size = \"1400 B\", silent = true }",
            "relays[0].cellular.uplink.mtu=1300 B",
            "relays[1].wifi.mtu=1492 B",
        ];
        let (topology, _) = demo(&changes);
        let narrow = |mtu, silent, on| MiddleboxSpec::Narrow { mtu, silent, on };
        let first = [narrow(1400, true, NarrowOn::Up), narrow(1300, false, NarrowOn::Down)];
        assert_eq!(topology.links[0].middleboxes, first);
        let second = [narrow(1492, false, NarrowOn::Up), narrow(1492, false, NarrowOn::Down)];
        assert_eq!(topology.links[5].middleboxes, second);
        assert!([1, 2, 3, 4, 6, 7].iter().all(|index: &usize| topology.links[*index].middleboxes.is_empty()));
    }

    #[test]
    fn the_demo_has_a_topology() {
        let (topology, traces) = demo(&[]);
        assert_eq!((topology.hosts.len(), topology.links.len(), traces.len()), (6, 8, 4));
        assert_eq!(topology.links[0].between, ["source", "relay1"]);
        assert_eq!(topology.links[7].between, ["relay4", "destination"]);
    }
}
