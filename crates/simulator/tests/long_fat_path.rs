//! One path that holds tens of thousands of segments, and a sender that overruns its queue: as many octets as the
//! announced window wait for a hole to fill, and no limit of the receiver ends the subflow.

use core::net::SocketAddr;

use network::{Link, Path, Queue, TwoHosts};
use simulator::app::Transfer;
use simulator::{CLIENT, SERVER, Source, two_hosts};
use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;
use units::{Duration, Instant, Rate};

const LIMIT: Instant = Instant::from_secs(60);
const OCTETS: u64 = 30_000_000;

/// The window holds as many segments as one at 1.5 Gbit/s and 200 ms with buffers of 128 MiB; the segments have an
/// eighth of the octets.
#[test]
fn a_loss_in_front_of_a_window_of_tens_of_thousands_of_segments_ends_no_subflow() {
    let config = ConnectionConfig {
        congestion: ControllerSpec::named("cubic"),
        hystart: false,
        mtu: 256,
        send_buffer_bytes: 16 << 20,
        receive_buffer_bytes: 16 << 20,
        ..ConnectionConfig::default()
    };
    let rate = Rate::from_mbps(380);
    let queue = Queue::bytes(2_500_000);
    let link = || Link::new(rate, Duration::from_millis(100));
    let path = Path::new(link(), link().queue(queue));
    let source = Source::pattern(OCTETS);
    let (mut simulation, _) = two_hosts(TwoHosts::new(1).path(path), 3, |(id, paths), host| {
        let remote = SocketAddr::new(paths[0].server, 80);
        if id == SERVER {
            host.app(Transfer::listen(remote, config.clone()).sending(source.clone()))
        } else {
            let local = SocketAddr::new(paths[0].client, 0);
            host.app(Transfer::connect(local, remote, config.clone()).expecting(source.clone()))
        }
    });
    simulation.run_while(LIMIT, |simulation| simulation.host(CLIENT).reports()[0].completed == 0);
    assert_eq!(simulation.faults(), Vec::<String>::new());
    let report = simulation.host(CLIENT).reports().remove(0);
    let stats = simulation.host(CLIENT).endpoint.stats(report.connections[0]).expect("the connection is known");
    assert_eq!(report.received_bytes, OCTETS, "{stats:?}");
    assert_eq!(stats.subflows.len(), 1, "no subflow was lost: {stats:?}");
    let server = simulation.host(SERVER).reports().remove(0);
    let sent = simulation.host(SERVER).endpoint.stats(server.connections[0]).expect("the connection is known");
    let repeated = sent.subflows[0].retransmitted_segments;
    assert!(repeated > 8192, "slow start overran the queue by far: {repeated} segments were lost");
}
