//! The whole loop of bandwidth sharing: relays' flows, their demands, competition, and a controller that yields (thesis
//! section 7.3.1). Two links of 1.2 Mbit/s carry one subflow each and a TCP flow with a demand of 1.0 and 0.9 Mbit/s.

use core::net::SocketAddr;

use cooperation::bandwidth_sharing::{Definition, DemandEstimator, FlowId, LinkCount, RelayLoad, SharingState};
use cooperation::relay_selection::RelayId;
use network::{Link, Queue, TwoHosts};
use simulator::app::Transfer;
use simulator::traffic::{Demand, Octets, PacedSource, TcpFlow, TcpSink};
use simulator::{CLIENT, EndpointHost, SERVER, Simulation, Source, two_hosts};
use transport::{ConnectionConfig, SubflowId};
use units::{Duration, Instant, Rate};

const F: Duration = Duration::from_secs(2);
const LINK: Rate = Rate::from_bps(1_200_000);
const DEMANDS: [Rate; 2] = [Rate::from_bps(1_000_000), Rate::from_bps(900_000)];
/// Local flows have the links to themselves until then.
const SUBFLOWS_START_S: u64 = 20;

/// The origin of the demands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    Configured,
    Measured,
}

/// Octets of a full packet, and of its data. A paced source writes that much data at a time, so all segments are full,
/// and a demand is what it takes of the link.
const MTU: u16 = 1452;
const PAYLOAD: u64 = 1400;

/// Returns the octets of payload and headers.
fn with_headers(payload_bytes: u64) -> u64 {
    payload_bytes * u64::from(MTU) / PAYLOAD
}

struct World {
    simulation: Simulation<EndpointHost>,
    received: Vec<Octets>,
    estimators: Vec<DemandEstimator>,
    state: SharingState,
    known: Known,
}

impl World {
    fn new(controller: &str, known: Known, seed: u64) -> Self {
        let link = || Link::new(LINK, Duration::from_millis(20)).queue(Queue::packets(20));
        let topology = TwoHosts::new(seed).one_server_address().path(link()).path(link());
        let congestion = controller.parse().unwrap();
        let config = ConnectionConfig { congestion, mtu: MTU, ..ConnectionConfig::default() };
        let plain = ConnectionConfig { mptcp: false, congestion: "newreno".parse().unwrap(), ..config.clone() };
        let mut received = Vec::new();
        let (simulation, _) = two_hosts(topology, seed, |(id, paths), mut host| {
            let at = |port| SocketAddr::new(paths[0].server, port);
            for (number, (path, demand)) in (0_u16..).zip(paths.iter().zip(DEMANDS)) {
                host = if id == SERVER {
                    let sink = TcpSink::new(at(1000 + number), plain.clone());
                    received.push(sink.received());
                    host.app(sink)
                } else {
                    let (local, remote) = (SocketAddr::new(path.client, 0), at(1000 + number));
                    let (start, stop) =
                        (Instant::from_millis(u64::from(number) * 130 + seed * 37), Instant::FAR_FUTURE);
                    let demand = Some(Demand::constant(demand, start));
                    let config = plain.clone();
                    host.app(PacedSource::new(TcpFlow {
                        local,
                        remote,
                        config,
                        demand,
                        backlog_bytes: 64_000,
                        start,
                        stop,
                    }))
                };
            }
            if id == SERVER {
                return host.app(Transfer::listen(at(80), config.clone()));
            }
            let local = SocketAddr::new(paths[0].client, 0);
            let transfer = Transfer::connect(local, at(80), config.clone()).at(Instant::from_secs(SUBFLOWS_START_S));
            host.app(transfer.sending(Source::pattern(u64::MAX / 2)))
        });
        let estimators = vec![DemandEstimator::default(); DEMANDS.len()];
        Self { simulation, received, estimators, state: SharingState::new(F), known }
    }

    fn load(&self, relay: usize) -> RelayLoad {
        let demands = match self.known {
            Known::Configured => vec![Rate::from_bps(with_headers(DEMANDS[relay].as_bps()))],
            Known::Measured => self.estimators[relay].demands(),
        };
        RelayLoad { capacity: LINK, demands, increase: 1.0, decrease: 0.5 }
    }

    fn run_period(&mut self) {
        let now = self.simulation.now() + F;
        self.simulation.run_until(now);
        for relay in 0..DEMANDS.len() {
            let local_bytes = with_headers(self.received[relay].get());
            let forwarded_bytes = with_headers(self.subflow_bytes(relay));
            let link = LinkCount { capacity: LINK, carried_bytes: local_bytes + forwarded_bytes };
            self.estimators[relay].measure(now, link, [(FlowId(0), local_bytes)]);
            let signal = self.load(relay).signal(RelayId(relay as u16), Definition::Protect, now);
            assert!(self.state.on_signal(now, &signal));
        }
        let state = &self.state;
        self.simulation.with_host(CLIENT, |host, now| {
            let connections: Vec<_> = host.reports().iter().flat_map(|report| report.connections.clone()).collect();
            for connection in connections {
                let subflows = host.endpoint.stats(connection).map_or(0, |stats| stats.subflows.len());
                for subflow in 0..subflows.min(DEMANDS.len()) as u16 {
                    let competition = state.current(RelayId(subflow), now);
                    let _ = host.endpoint.set_competition(connection, SubflowId(subflow), competition, now);
                }
            }
        });
    }

    /// Returns the payload that the destination has received over a subflow.
    fn subflow_bytes(&self, subflow: usize) -> u64 {
        let host = self.simulation.host(SERVER);
        let connections = host.reports().into_iter().flat_map(|report| report.connections);
        let stats = connections.filter_map(|id| host.endpoint.stats(id)).find(|stats| stats.mptcp);
        stats.and_then(|stats| Some(stats.subflows.get(subflow)?.received_bytes)).unwrap_or(0)
    }

    /// Returns the payload that has arrived: of the two local flows, then over the two subflows.
    fn counts(&self) -> [u64; 4] {
        [self.received[0].get(), self.received[1].get(), self.subflow_bytes(0), self.subflow_bytes(1)]
    }
}

/// The results of a run, over three minutes in which all flows were active.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    /// Shares of their demands that the local flows got.
    local: [f64; 2],
    /// Rate of both subflows together, Mbit/s.
    subflows_mbps: f64,
}

fn share(controller: &str, known: Known, seed: u64) -> Shares {
    let mut world = World::new(controller, known, seed);
    (0..20).for_each(|_| world.run_period());
    let before = world.counts();
    (0..90).for_each(|_| world.run_period());
    let after = world.counts();
    assert_eq!(world.simulation.faults(), [""; 0]);
    let mbps = |count: usize| (after[count] - before[count]) as f64 * 8.0 / 180e6;
    Shares { local: [mbps(0) / 1.0, mbps(1) / 0.9], subflows_mbps: mbps(2) + mbps(3) }
}

/// Returns the mean of four runs whose flows start at different times.
fn mean_shares(controller: &str, known: Known) -> Shares {
    let mut mean = Shares::default();
    for shares in (1..=4).map(|seed| share(controller, known, seed)) {
        mean.local.iter_mut().zip(shares.local).for_each(|(sum, local)| *sum += local / 4.0);
        mean.subflows_mbps += shares.subflows_mbps / 4.0;
    }
    mean
}

/// Available are 1.2 - 1.036 and 1.2 - 0.932, headers included: 0.43 Mbit/s, or 0.42 of payload.
#[test]
fn local_flows_keep_what_lia_takes_from_them() {
    let lia = mean_shares("lia", Known::Configured);
    assert!(lia.local.iter().all(|local| *local < 0.86), "{lia:?}");
    for known in [Known::Configured, Known::Measured] {
        let coop = mean_shares("mcc-coop", known);
        assert!(coop.local.iter().all(|local| *local > 0.87), "{known:?} {coop:?}");
        assert!(coop.local.iter().sum::<f64>() > lia.local.iter().sum::<f64>() + 0.2, "{known:?} {coop:?} {lia:?}");
        assert!(coop.subflows_mbps > 0.4 && coop.subflows_mbps < 0.8 * lia.subflows_mbps, "{known:?} {coop:?} {lia:?}");
    }
}

/// At a drop-tail queue, flows lose packets by chance, not together, so growth by 1 / rho is not enough.
#[test]
fn yielding_as_printed_protects_less() {
    let printed = mean_shares("mcc-coop(1,0)", Known::Configured);
    let squared = mean_shares("mcc-coop", Known::Configured);
    assert!(printed.local.iter().sum::<f64>() + 0.1 < squared.local.iter().sum(), "{printed:?} {squared:?}");
}
