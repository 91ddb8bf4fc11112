//! A scenario on real Linux: the kernel's Multipath TCP as the source, emulated links between network namespaces, and
//! our engine as the destination on a TUN device.

mod destination;
mod kernel_view;
mod network;
mod source;

use std::net::SocketAddr;

use host::{Alone, EndpointHost};
use lab::measure::digest;
use lab::results::{Manifest, Results, Totals};
use lab::run::{Progress, Run, workload};
use lab::scenario::Scenario;
use linux::ability::{self, Needs};
use linux::driver::{Driver, OFFLOAD_PAYLOAD_MAX, random_seed};
use linux::stop::Stop;
use linux::tun::{Tun, TunConfig};
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};

use crate::failure::Failure;
use destination::Destination;
use kernel_view::Observer;
use network::RunningNetwork;

/// Where the source listens: a port that capture tools take for no protocol.
const SOURCE_PORT: u16 = 40000;
/// The device of the engine.
const DEVICE: &str = "engine";

/// Whether this machine can do it, found out by trying.
///
/// # Errors
/// What is lacking, in one line.
pub fn rehearse() -> linux::Result<()> {
    ability::rehearse(Needs { kernel_mptcp: true, programs: &[("ss", "iproute2")] })
}

/// Runs `scenario`; `progress` is called once a window. Nothing of it stays behind.
pub fn run(scenario: &Scenario, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Run, Failure> {
    let source = workload(scenario)?;
    let stop = Stop::on_signals()?;
    let network = RunningNetwork::start(scenario)?;
    let listen_at = SocketAddr::new(network.source_address, SOURCE_PORT);
    let sending = source::Sending::start(&network.source, listen_at, source.clone())?;
    let observer = Observer::start(network.source.clone(), SOURCE_PORT)?;
    let (endpoint, tun) = engine(scenario, &network)?;
    let ends = [SocketAddr::new(network.paths[0], 0), listen_at];
    let view = observer.view();
    let destination = Destination::new(scenario, &network, (ends, config(scenario)), view, source.len(), progress);
    let mut host = EndpointHost::with_app(endpoint, Alone, destination);
    let mut driver = Driver::new(tun, config(scenario).mtu)?;
    if !driver.run(&mut host, &stop)? {
        return Err(Failure::Failed("interrupted".into()));
    }
    let (endpoint, _, destination) = host.into_parts();
    let measured = destination.finish(&endpoint);
    let senders = observer.finish();
    let counters = network.finish()?;
    let mut faults: Vec<String> = sending.finish().into_iter().chain(measured.failure).collect();
    let sha256_source = digest::of_source(&source, &[source.len()]);
    let totals = Totals {
        completed: measured.finished,
        source_bytes: source.len(),
        delivered_bytes: measured.delivered_bytes,
        sha256_ok: sha256_source == measured.sha256,
        sha256_source,
        sha256_received: measured.sha256,
        duration_s: measured.duration_s,
        duplicate_bytes: measured.stats.duplicate_bytes,
        out_of_order_peak_bytes: measured.stats.out_of_order_peak_bytes,
        wall_s: Some(measured.duration_s),
        ..Totals::default()
    };
    let sender = |subflow: &transport::SubflowStats| senders.of(subflow);
    let (series, subflows) = measured.recorder.finish(&measured.stats, sender, &counters, measured.duration_s);
    faults.extend(totals.damage(|| digest::of_source(&source, &[totals.delivered_bytes])));
    if faults.is_empty() {
        faults.extend(totals.fault(scenario.duration));
    }
    let results = Results::new(Manifest::new(scenario, "linux"), totals, series, subflows);
    Ok(Run { results, faults, captures: Vec::new(), attacked: lab::run::Attacked::default() })
}

/// The engine, and a device for it behind the destination's namespace, which forwards to it.
fn engine(scenario: &Scenario, network: &RunningNetwork) -> Result<(Endpoint, Tun), Failure> {
    let mtu = config(scenario).mtu;
    let device = TunConfig { name: DEVICE.into(), mtu, offload: true, addresses: Vec::new() };
    let tun = network.destination.run(|| Tun::open(&device))??;
    let routes = network.paths.iter().map(|address| format!("route add {address} dev {DEVICE}"));
    network.destination.ip(routes.collect::<Vec<_>>())?;
    let local_addresses = network.paths.iter().map(|ip| LocalAddress { ip: *ip, backup: false }).collect();
    let config = EndpointConfig { local_addresses, ..EndpointConfig::default() };
    Ok((Endpoint::new(config, random_seed()?), tun))
}

fn config(scenario: &Scenario) -> ConnectionConfig {
    let config = scenario.connection.to_config(scenario.relays.len());
    ConnectionConfig { offload_max_bytes: OFFLOAD_PAYLOAD_MAX, ..config }
}
