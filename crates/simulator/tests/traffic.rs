//! Local traffic over links, alone and with other flows.

use core::cell::RefCell;
use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::rc::Rc;

use network::{Link, LossModel, Path, Queue, TwoHosts, Wired};
use simulator::app::Transfer;
use simulator::traffic::{
    Change, DatagramSizes, Demand, Octets, OnOff, PacedSource, TcpFlow, TcpSink, UdpFlow, UdpSink, UdpSource,
};
use simulator::{CLIENT, Direction, EndpointHost, Interface, SERVER, Simulation, Source, Tap, two_hosts};
use transport::congestion::ControllerSpec;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::{Duration, Instant, Prng, Rate};
use wire::Segment;

const NEVER: Instant = Instant::FAR_FUTURE;

fn mbps(tenths: u64) -> Rate {
    Rate::from_bps(tenths * 100_000)
}

/// Two hosts on one link of 1.2 Mbit/s.
fn wired() -> Wired {
    let link = Link::new(mbps(12), Duration::from_millis(20)).queue(Queue::packets(40));
    TwoHosts::new(1).path(link).build()
}

fn plain(congestion: &str) -> ConnectionConfig {
    let congestion: ControllerSpec = congestion.parse().unwrap();
    ConnectionConfig { mptcp: false, congestion, ..ConnectionConfig::default() }
}

fn host(seed: u64) -> EndpointHost {
    EndpointHost::new(Endpoint::with_seed(EndpointConfig::default(), seed))
}

fn tcp_flow(ends: (SocketAddr, SocketAddr), demand: Option<Demand>, congestion: &str) -> TcpFlow {
    let (local, remote) = ends;
    let config = plain(congestion);
    TcpFlow { local, remote, config, demand, backlog_bytes: 64_000, start: Instant::ZERO, stop: NEVER }
}

/// Runs flows from client to server over the link for `seconds`; returns the octets demanded and received of each.
fn run_tcp(demands: &[(Option<Demand>, &str)], seconds: u64) -> Vec<(u64, u64)> {
    run_tcp_over(wired(), demands, seconds)
}

fn run_tcp_over(wired: Wired, demands: &[(Option<Demand>, &str)], seconds: u64) -> Vec<(u64, u64)> {
    let flow = |(demand, congestion): &(Option<Demand>, &str)| (demand.clone(), plain(congestion));
    run_flows(wired, &demands.iter().map(flow).collect::<Vec<_>>(), seconds)
}

fn run_flows(wired: Wired, flows: &[(Option<Demand>, ConnectionConfig)], seconds: u64) -> Vec<(u64, u64)> {
    let Wired { network, client, server, paths } = wired;
    let (mut sources, mut sinks) = (host(1), host(2));
    let mut counts: Vec<(Octets, Octets)> = Vec::new();
    for (number, (demand, config)) in flows.iter().enumerate() {
        let remote = SocketAddr::new(paths[0].server, 1000 + number as u16);
        let flow = tcp_flow((SocketAddr::new(paths[0].client, 0), remote), demand.clone(), "newreno");
        let flow = TcpFlow { config: config.clone(), ..flow };
        let (source, sink) = (PacedSource::new(flow), TcpSink::new(remote, config.clone()));
        counts.push((source.demanded(), sink.received()));
        (sources, sinks) = (sources.app(source), sinks.app(sink));
    }
    let mut simulation = Simulation::new(network);
    simulation.attach(client, sources);
    simulation.attach(server, sinks);
    simulation.check();
    simulation.run_until(Instant::from_secs(seconds));
    assert_eq!(simulation.faults(), [""; 0]);
    counts.iter().map(|(demanded, received)| (demanded.get(), received.get())).collect()
}

#[test]
fn a_tcp_flow_alone_gets_what_it_demands() {
    let demand = Demand::constant(mbps(10), Instant::ZERO);
    let counts = run_tcp(&[(Some(demand), "newreno")], 20);
    // 1 Mbit/s over 20 s; data in flight at the end and the handshake are less than 2 %. The demand is counted up to
    // the last write.
    assert!(counts[0].0 > 2_500_000 - 1400 && counts[0].0 <= 2_500_000, "{counts:?}");
    assert!(counts[0].1 > 2_450_000 && counts[0].1 <= 2_500_000, "{counts:?}");
}

#[test]
fn demand_beyond_the_link_is_given_up_and_not_sent_later() {
    // 2 Mbit/s for 10 s on 1.2 Mbit/s, then nothing.
    let changes = [(0, mbps(20)), (10, Rate::ZERO)].map(|(at, rate)| Change { at: Instant::from_secs(at), rate });
    let counts = run_tcp(&[(Some(Demand::steps(changes.to_vec())), "newreno")], 60);
    assert_eq!(counts[0].0, 2_500_000);
    // 10 s of the link are 1.5 MB, including headers; the backlog, the queue and the data in flight are less than 150
    // kB.
    assert!(counts[0].1 < 1_650_000 && counts[0].1 > 1_200_000, "{counts:?}");
}

#[test]
fn a_large_send_buffer_does_not_let_a_flow_fall_further_behind() {
    let arrived = [64_000, 8 << 20].map(|send_buffer_bytes| {
        let changes = [(0, mbps(20)), (30, Rate::ZERO)].map(|(at, rate)| Change { at: Instant::from_secs(at), rate });
        let config = ConnectionConfig { send_buffer_bytes, ..plain("newreno") };
        run_flows(wired(), &[(Some(Demand::steps(changes.to_vec())), config)], 60)[0].1
    });
    // 30 s of the link, including headers, and 150 kB.
    assert!(arrived.iter().all(|bytes| (4_000_000..4_650_000).contains(bytes)), "{arrived:?}");
}

#[test]
fn what_is_demanded_goes_on_while_nothing_can_be_sent() {
    let path = Path::from(Link::new(mbps(12), Duration::from_millis(20))).down(Instant::from_secs(5)..NEVER);
    let wired = TwoHosts::new(1).path(path).build();
    // The buffer is full before the backlog: there are no more events.
    let config = ConnectionConfig { send_buffer_bytes: 32_000, ..plain("newreno") };
    let counts = run_flows(wired, &[(Some(Demand::constant(mbps(10), Instant::ZERO)), config)], 30);
    assert!((3_750_000 - 13_000..=3_750_000).contains(&counts[0].0), "30 s of 1 Mbit/s: {counts:?}");
    assert!(counts[0].1 < 700_000, "{counts:?}");
}

#[test]
fn a_flow_without_a_demand_takes_what_there_is() {
    let counts = run_tcp(&[(None, "newreno")], 20);
    // 1.2 Mbit/s over 20 s are 3 MB, including headers.
    assert!(counts[0].1 > 2_700_000 && counts[0].1 < 3_000_000, "{counts:?}");
}

#[test]
fn two_equal_flows_share_the_link() {
    let counts = run_tcp(&[(None, "newreno"), (None, "newreno")], 120);
    let (first, second) = (counts[0].1 as f64, counts[1].1 as f64);
    assert!(first + second > 16e6, "{counts:?}");
    assert!(first / second > 0.6 && first / second < 1.7, "{counts:?}");
}

#[test]
fn datagrams_fill_what_tcp_leaves_and_lose_the_rest() {
    let Wired { network, client, server, paths } = wired();
    let at = SocketAddr::new(paths[0].server, 9);
    let flow = UdpFlow {
        local: SocketAddr::new(paths[0].client, 9),
        remote: at,
        demand: Demand::constant(mbps(6), Instant::ZERO),
        sizes: DatagramSizes::Constant(1400),
        stop: Instant::from_secs(50),
    };
    let (source, sink) = (UdpSource::new(flow), UdpSink::new(at));
    let (demanded, received) = (source.demanded(), sink.received());
    let tcp_at = SocketAddr::new(paths[0].server, 1000);
    let tcp = PacedSource::new(tcp_flow((SocketAddr::new(paths[0].client, 0), tcp_at), None, "newreno"));
    let tcp_sink = TcpSink::new(tcp_at, plain("newreno"));
    let tcp_received = tcp_sink.received();
    let mut simulation = Simulation::new(network);
    simulation.attach(client, host(1).app(source).app(tcp));
    simulation.attach(server, host(2).app(sink).app(tcp_sink));
    simulation.check();
    simulation.run_until(Instant::from_secs(50));
    assert_eq!(simulation.faults(), [""; 0]);
    assert_eq!(demanded.get(), 3_750_000);
    // The datagrams take half of the link; the few that find the queue full of TCP's segments are lost.
    assert!(received.get() > 3_500_000, "{}", received.get());
    let tcp_mbps = tcp_received.get() as f64 * 8.0 / 50e6;
    assert!(tcp_mbps > 0.4 && tcp_mbps < 0.6, "{tcp_mbps}");
}

/// Total throughputs under each of two controllers that share a link with random losses, four flows each, Mbit/s.
fn share_under_loss(congestion: [&str; 2], seed: u64) -> (f64, f64) {
    let link = Link::new(Rate::from_mbps(40), Duration::from_millis(50)).loss(LossModel::uniform(0.01));
    let demands: Vec<_> = (0..8).map(|number| (None, congestion[number % 2])).collect();
    let counts = run_tcp_over(TwoHosts::new(seed).path(link).build(), &demands, 300);
    let sum = |first: usize| counts.iter().skip(first).step_by(2).map(|(_, got)| *got as f64 * 8.0 / 300e6).sum();
    (sum(0), sum(1))
}

/// Yang and Lam (ICNP 2000): under random losses p the rate of AIMD(alpha, beta), where a loss multiplies the window by
/// beta, is sqrt(alpha (1 + beta) / (2 (1 - beta) p)) segments per round trip. That is sqrt(1.5 / p) for NewReno and
/// sqrt(1.517 / p) for AIMD(0.7, 0.625): a ratio of 1.006. AIMD(0.7, 0.5) would get 0.837.
#[test]
fn aimd_is_as_aggressive_as_its_formula_says() {
    let mean_ratio = |other: &str| {
        let ratios = (1..=4).map(|seed| share_under_loss(["newreno", other], seed)).map(|(newreno, other)| {
            assert!(newreno + other < 36.0, "the queue must not add losses of its own: {newreno} {other}");
            other / newreno
        });
        ratios.sum::<f64>() / 4.0
    };
    // About 5000 losses on each side: a standard error of the ratio near 1 %.
    let (adaptive, meek) = (mean_ratio("aimd(0.7,0.625)"), mean_ratio("aimd(0.7,0.5)"));
    assert!((adaptive - 1.006).abs() < 0.05, "{adaptive}");
    assert!((meek - 0.837).abs() < 0.05, "{meek}");
}

/// Runs an MPTCP transfer over two links of 2 Mbit/s, the second of which also carries an on-off flow of 1.5 Mbit/s,
/// half of the time on. Returns the octets of datagrams demanded and received, and those of the transfer.
fn transfer_beside_on_off(seed: u64, seconds: u64) -> (u64, u64, u64) {
    let link = || Link::new(mbps(20), Duration::from_millis(20)).queue(Queue::packets(40));
    let means = OnOff { on: Duration::from_secs(1), off: Duration::from_secs(1) };
    let demand = Demand::constant(mbps(15), Instant::ZERO).on_off(means, Prng::fork(seed, "on-off"));
    let config = ConnectionConfig::default();
    let (mut demanded, mut received) = (Octets::default(), Octets::default());
    let (mut simulation, _) = two_hosts(TwoHosts::new(seed).path(link()).path(link()), seed, |(id, paths), host| {
        let (at, from) = (SocketAddr::new(paths[1].server, 9), SocketAddr::new(paths[1].client, 9));
        let transfer_at = SocketAddr::new(paths[0].server, 5001);
        if id == SERVER {
            let sink = UdpSink::new(at);
            received = sink.received();
            return host.app(sink).app(Transfer::listen(transfer_at, config.clone()));
        }
        let sizes = DatagramSizes::Constant(1400);
        let source = UdpSource::new(UdpFlow { local: from, remote: at, demand: demand.clone(), sizes, stop: NEVER });
        demanded = source.demanded();
        let transfer = Transfer::connect(SocketAddr::new(paths[0].client, 0), transfer_at, config.clone());
        host.app(source).app(transfer.sending(Source::endless()))
    });
    simulation.run_until(Instant::from_secs(seconds));
    assert_eq!(simulation.faults(), [""; 0]);
    assert_eq!(simulation.host(CLIENT).reports()[1].connections.len(), 1);
    (demanded.get(), received.get(), simulation.host(SERVER).reports()[1].received_bytes)
}

#[test]
fn a_transfer_over_two_paths_takes_what_an_on_off_flow_leaves() {
    let (demanded, received, transferred) = transfer_beside_on_off(1, 120);
    let mbps = |octets: u64| octets as f64 * 8.0 / 120e6;
    // 0.75 Mbit/s on average; 60 cycles of 2 s leave a standard error of about 10 % of it.
    assert!((mbps(demanded) - 0.75).abs() < 0.2, "{}", mbps(demanded));
    assert!(received <= demanded && received as f64 > 0.9 * demanded as f64, "{received} of {demanded}");
    // Two links of 2 Mbit/s carry at most 3.8 Mbit/s of payload. The first alone carries 1.9.
    let together = mbps(received) + mbps(transferred);
    assert!(together > 3.2 && together < 3.85, "{together}");
    assert!(mbps(transferred) > 2.3, "{}", mbps(transferred));
    assert_eq!(transfer_beside_on_off(1, 120), (demanded, received, transferred));
}

/// Counts data segments by payload size.
struct Sizes(Rc<RefCell<BTreeMap<usize, u32>>>);

impl Tap for Sizes {
    fn segment(&mut self, _: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        if interface.host == CLIENT && direction == Direction::Sent && !segment.payload.is_empty() {
            *self.0.borrow_mut().entry(segment.payload.len()).or_default() += 1;
        }
    }
}

#[test]
fn mixed_tcp_packets_have_the_papers_sizes() {
    let Wired { network, client, server, paths } =
        TwoHosts::new(1).path(Link::new(mbps(100), Duration::from_millis(20))).build();
    let remote = SocketAddr::new(paths[0].server, 1000);
    let demand = Demand::constant(mbps(10), Instant::ZERO);
    let config = ConnectionConfig { timestamps: false, nagle: false, ..plain("newreno") };
    let flow = tcp_flow((SocketAddr::new(paths[0].client, 0), remote), Some(demand), "newreno");
    let source = PacedSource::new(TcpFlow { config: config.clone(), ..flow }).mixed(Prng::new(5));
    let sizes = Rc::default();
    let mut simulation = Simulation::new(network);
    simulation.attach(client, host(1).app(source));
    simulation.attach(server, host(2).app(TcpSink::new(remote, config)));
    simulation.add_tap(Box::new(Sizes(Rc::clone(&sizes))));
    simulation.run_until(Instant::from_secs(100));
    let sizes = sizes.borrow();
    // 12.5 MB in packets of 501 octets on average are 24,950 packets; all except those that the handshake delayed are
    // sent separately.
    let all: u32 = sizes.values().sum();
    assert!((24_000..26_000).contains(&all), "{all}");
    let share = |len: usize| f64::from(sizes[&len]) / f64::from(all);
    // Minus 40 octets of headers; a standard error of 0.3 %.
    let shares = [share(4), share(536), share(1460)];
    assert!(shares.iter().zip([0.5, 0.25, 0.25]).all(|(share, wanted)| (share - wanted).abs() < 0.012), "{shares:?}");
    assert!(all - sizes[&4] - sizes[&536] - sizes[&1460] <= 5, "{sizes:?}");
}
