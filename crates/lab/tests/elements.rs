//! Effects of links in scenarios on packets besides delay, queueing and loss.

use lab::measure::results::Results;
use lab::scenario::{Override, load};

use crate::support::captured::packets_from;

const TEXT: &str = "name = 'elements'\nduration = '30 s'\nworkload = { kind = 'generated', size = '500 kB' }\n\
    [metrics]\nwindow = '100 ms'\n\
    [[relays]]\ncellular = { rate = '4 Mbit/s', delay = '20 ms' }\n\
    [[relays]]\ncellular = { rate = '4 Mbit/s', delay = '20 ms' }\n";

fn run(changes: &[&str]) -> Results {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let scenario = load("test.toml", TEXT, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let run = lab::run::run(&scenario, None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0], "{changes:?}");
    run.results
}

fn refused(changes: &[&str]) -> String {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    load("test.toml", TEXT, &changes).unwrap_err().to_string()
}

/// 500 kB arrive completely although the elements affect packets.
#[test]
fn packets_are_reordered_duplicated_and_corrupted() {
    let plain = run(&[]);
    let lost = |results: &Results| results.subflows.iter().map(|subflow| subflow.lost_packets).sum::<u64>();
    assert_eq!((plain.totals.retransmitted_packets, lost(&plain)), (0, 0));
    let received = |results: &Results| results.subflows.iter().map(|subflow| subflow.received_bytes).sum::<u64>();
    assert_eq!(received(&plain), 500_000);
    // A packet that arrives late is taken for lost and sent again: both copies arrive.
    let reordered = run(&["relays[*].cellular.reorder={ probability = '5 %', delay = '30 ms' }"]);
    assert_eq!((reordered.totals.delivered_bytes, lost(&reordered)), (500_000, 0));
    assert!(reordered.totals.retransmitted_packets > 5 && received(&reordered) > 505_000, "{:?}", reordered.totals);
    // A packet that is duplicated on the link appears once in the stream: the subflow drops the copy and reports it.
    let duplicated = run(&["relays[*].cellular.duplicate=20 %"]);
    assert_eq!((duplicated.totals.delivered_bytes, lost(&duplicated)), (500_000, 0));
    assert_eq!(duplicated.totals.retransmitted_packets, 0);
    // One packet in five, of 351.
    assert!((550_000..650_000).contains(&received(&duplicated)), "{}", received(&duplicated));
    let corrupted = run(&["relays[*].cellular.corrupt=2 %"]);
    assert!(lost(&corrupted) > 2 && corrupted.totals.retransmitted_packets > 2, "{}", lost(&corrupted));
}

/// Copies queue for the link like all packets, and a dropped copy is no loss.
#[test]
fn copies_take_their_turn_on_the_link_and_are_no_losses() {
    let bulk = ["workload={ kind = 'bulk' }", "duration=10 s"];
    let results = run(&[&bulk[..], &["relays[*].cellular.duplicate=100 %"]].concat());
    assert!(results.totals.aggregate_throughput_bps < 8e6, "{} bit/s", results.totals.aggregate_throughput_bps);
    // Packets go one by one, and the second of each pair finds no room at the Wi-Fi.
    let one_by_one = [
        "connection.receive_buffer=1500 B",
        "relays[*].cellular.rate=100 Mbit/s",
        "relays[*].cellular.duplicate=100 %",
        "relays[*].wifi={ rate = '1 Mbit/s', queue = '1 packet' }",
    ];
    let results = run(&[&bulk[..], &one_by_one].concat());
    let lost: u64 = results.subflows.iter().map(|subflow| subflow.lost_packets).sum();
    assert!(lost * 20 < results.totals.data_packets, "{lost} of {}", results.totals.data_packets);
}

/// Loss ratios of the first path: over the run, and the smallest and largest of a window.
fn loss(results: &Results) -> (f64, [f64; 2]) {
    let windows = || results.series.subflows[0].loss_ratio.iter().flatten().copied();
    (results.subflows[0].loss_ratio, [windows().fold(1.0, f64::min), windows().fold(0.0, f64::max)])
}

const BULK: [&str; 3] = ["workload={ kind = 'bulk' }", "duration=10 s", "metrics.window=1 s"];

/// The path drops more pieces than packets entered its first hop.
#[test]
fn what_is_lost_of_pieces_is_a_share_of_the_pieces() {
    let split = "relays[0].cellular.middleboxes=[{ split = { payload = '10 B' } }]";
    let results = run(&[&BULK[..], &[split]].concat());
    let subflow = &results.subflows[0];
    assert!(subflow.queue_drop_packets > subflow.data_packets, "{subflow:?}");
    let (ratio, [least, most]) = loss(&results);
    assert!(least <= ratio && ratio <= most && most < 1.0, "{least} to {most}, in all {ratio}");
}

/// A relay that acknowledges at once keeps data that its Wi-Fi cannot take, and retransmits data lost there.
#[test]
fn a_hop_loses_of_what_enters_it() {
    let fast_ack = ["cooperation.relays=fast-ack", "relays[*].wifi={ rate = '54 Mbit/s', loss = '40 %' }"];
    let results = run(&[&BULK[..], &fast_ack].concat());
    let (ratio, _) = loss(&results);
    let draws = results.subflows[0].lost_packets as f64 / 0.4;
    assert!((ratio - 0.4).abs() < 4.0 * (0.4 * 0.6 / draws).sqrt(), "{ratio} of about {draws} packets");
}

#[test]
fn copies_do_not_hide_what_is_lost() {
    let twice = ["relays[*].cellular.duplicate=100 %", "relays[*].wifi={ rate = '54 Mbit/s', loss = '20 %' }"];
    let results = run(&[&BULK[..], &twice].concat());
    let (ratio, _) = loss(&results);
    let draws = results.subflows[0].lost_packets as f64 / 0.2;
    assert!((ratio - 0.2).abs() < 4.0 * (0.2 * 0.8 / draws).sqrt(), "{ratio} of about {draws} packets");
}

#[test]
fn the_way_back_has_its_own() {
    let corrupted = run(&["relays[*].cellular.uplink.corrupt=10 %"]);
    let plain = run(&[]);
    assert_ne!(corrupted.series, plain.series);
    assert!(corrupted.subflows.iter().all(|subflow| subflow.lost_packets == 0), "towards the destination nothing is");
}

#[test]
fn nothing_passes_in_an_outage() {
    let outages = "relays[*].cellular.outages=[{ from = '300 ms', until = '1200 ms' }]";
    let results = run(&[outages]);
    let windows = results.series.time_s.iter().zip(&results.series.aggregate_throughput_bps);
    let within: Vec<f64> = windows.filter(|(at, _)| (0.5..=1.2).contains(*at)).map(|(_, bps)| *bps).collect();
    assert!(within.len() >= 7 && within.iter().all(|bps| *bps == 0.0), "{within:?}");
    assert!(results.totals.duration_s > 1.2);
}

/// Data packets that the source sent and that arrived.
fn sent_and_arrived(changes: &[&str]) -> [usize; 2] {
    let changes: Vec<Override> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let scenario = load("test.toml", TEXT, &changes).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = lab::run::run(&scenario, Some(folder.path()), &mut |_| {}).unwrap();
    assert_eq!((run.faults, run.results.totals.delivered_bytes), (vec![], 500_000), "{changes:?}");
    let source = scenario.addresses().source;
    ["source.pcapng", "destination.pcapng"].map(|name| {
        let packets = packets_from(source, &std::fs::read(folder.path().join(name)).unwrap());
        // Others are handshakes and acknowledgements.
        packets.iter().filter(|octets| **octets > 200).count()
    })
}

#[test]
fn middleboxes_cut_join_and_strip() {
    let plain = run(&[]);
    let [sent, arrived] = sent_and_arrived(&[]);
    assert_eq!(sent, arrived);
    // The middlebox is after the link, so pieces arrive: four of a packet with 1428 octets.
    let [sent, arrived] = sent_and_arrived(&["relays[*].cellular.middleboxes=[{ split = { payload = '400 B' } }]"]);
    assert!(arrived <= 4 * sent && arrived > 4 * sent - 8, "{sent} sent, {arrived} arrived");
    // At most two packets fit.
    let merge = "relays[*].cellular.middleboxes=[{ merge = { payload = '2900 B', hold = '5 ms' } }]";
    let [sent, arrived] = sent_and_arrived(&[merge]);
    assert!(2 * arrived >= sent && 10 * arrived < 8 * sent, "{sent} sent, {arrived} arrived");
    let stripped = run(&["relays[*].cellular.middleboxes=[{ strip = { options = ['mptcp'], on = 'syn-ack' } }]"]);
    assert_eq!((plain.subflows.len(), stripped.subflows.len()), (2, 1), "plain TCP has one");
    let later = "relays[*].cellular.middleboxes=[{ strip = { options = ['mptcp'], on = 'syn-ack', after = 1 } }]";
    assert_eq!(run(&[later]).subflows.len(), 2, "the first segment of each path passes, its SYN/ACK");
}

/// DSS checksums detect what TCP's checksums do not: with them, the stream stays intact.
#[test]
fn octets_that_a_gateway_overwrites_are_noticed() {
    let overwrite = "relays[0].cellular.middleboxes=[{ overwrite = { at = 100000, text = 'gateway' } }]";
    let results = run(&[overwrite, "connection.checksum=true"]);
    assert!(results.totals.intact);
    assert!(results.totals.duplicate_bytes + results.totals.reinjected_bytes.unwrap_or(0) > 0, "sent again elsewhere");
}

#[test]
fn what_makes_no_sense_is_refused_by_its_name() {
    let cases = [
        ("relays[0].cellular.outages=[{ from = '2 s', until = '1 s' }]", ["outages[0]", "no duration"]),
        ("relays[0].cellular.middleboxes=[{}]", ["middleboxes[0]", "exactly one action"]),
        ("relays[0].cellular.middleboxes=[{ nat = { idle_timeout = '1 s' } }]", ["middleboxes[0]", "emulate"]),
        ("relays[0].cellular.middleboxes=[{ narrow = { size = '1400 B' } }]", ["middleboxes[0]", "`mtu`"]),
        ("relays[0].cellular.middleboxes=[{ strip = { options = ['mptpc'] } }]", ["options[0]", "mptcp"]),
        ("relays[0].cellular.middleboxes=[{ toaster = {} }]", ["middleboxes[0]", "toaster"]),
    ];
    for (change, expected) in cases {
        let message = refused(&[change]);
        assert!(expected.iter().all(|part| message.contains(part)), "{change}: {message}");
    }
}
