//! TCP through the cell, compared with ns-3 3.37, whose numbers `ns3/agreement/lte.cc` measured: docs/agreement.md.

use lab::run::run;
use lab::scenario::load;

/// NewReno to UEs at 900 m without fading, packets of 1400 octets, a wire delay of 20 ms in each direction.
const TEXT: &str = "name = \"tcp\"\nduration = \"21 s\"\nworkload = { kind = \"none\" }\n\
    [connection]\nmtu = \"1400 B\"\n[metrics]\nwindow = \"1 s\"\n\
    [cell]\nfading = \"none\"\nqueue = \"125 kB\"\ncore_delay = \"20 ms\"\nuplink_rate = \"10 Mbit/s\"\nuplink_delay = \"8 ms\"\n\
    [[relays]]\ncount = COUNT\nplace = { distance_m = 900.0 }\n[[relays.local]]\nkind = \"tcp\"\ndatagram = \"1000 B\"\n";

/// Mean Mbit/s per UE, counted from the IP header, after a second to settle.
fn mbps_per_ue(ues: usize) -> f64 {
    let scenario = load("tcp.toml", &TEXT.replace("COUNT", &ues.to_string()), &[]).unwrap();
    let run = run(&scenario, None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    let relays = &run.results.series.relays;
    assert_eq!((relays.len(), run.results.series.time_s.len()), (ues, 21));
    let sum_bps: f64 = relays.iter().flat_map(|relay| &relay.local_goodput_bps[1..]).sum();
    // 1348 of 1400 octets are payload.
    sum_bps / 20.0 / ues as f64 * 1400.0 / 1348.0 / 1e6
}

#[test]
fn tcp_gets_what_ns3_s_tcp_gets_in_rlc_um() {
    for (ues, ns3_mbps) in [(1, 33.4), (3, 11.68), (10, 3.51)] {
        let ours = mbps_per_ue(ues);
        println!("{ues} UEs: {ours:.3} Mbit/s each, ns-3 {ns3_mbps}");
        assert!((ours / ns3_mbps - 1.0).abs() < 0.1, "{ues} UEs: {ours} Mbit/s each, ns-3 {ns3_mbps}");
    }
}
