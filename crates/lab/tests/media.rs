//! Relays that move from one site of the cell to another, and relays that do not hear each other on the Wi-Fi channel.

use lab::measure::results::Results;
use lab::run::run;
use lab::scenario::{Override, Scenario, load};

const HANDOVER: &str = include_str!("../../../scenarios/handover.toml");

/// Two relays with 20 Mbit/s each before a channel of 6 Mbit/s.
const CHANNEL: &str = "name = \"x\"\nduration = \"20 s\"\nworkload = { kind = \"bulk\" }\n[wlan]\nrate = \"6 Mbit/s\"\n\
    [[relays]]\ncount = 2\ncellular = { rate = \"20 Mbit/s\", delay = \"10 ms\" }\n";

fn read(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    load("x.toml", text, &overrides).map_err(|error| error.to_string())
}

fn run_text(text: &str, overrides: &[&str]) -> Results {
    let run = run(&read(text, overrides).unwrap(), None, &mut |_| {}).unwrap();
    assert_eq!(run.faults, [""; 0]);
    assert!(run.results.totals.intact);
    run.results
}

/// Means for a relay between two times, bit/s: the rate it carried, and the rate that the cell would grant it.
fn means(results: &Results, relay: usize, from_s: f64, to_s: f64) -> [f64; 2] {
    let series = &results.series;
    let windows: Vec<usize> =
        (0..series.time_s.len()).filter(|window| (from_s..to_s).contains(&series.time_s[*window])).collect();
    let relay = &series.relays[relay];
    let mean =
        |value: &dyn Fn(usize) -> f64| windows.iter().map(|window| value(*window)).sum::<f64>() / windows.len() as f64;
    [mean(&|window| relay.carried_bps[window]), mean(&|window| relay.capacity_bps[window].unwrap())]
}

#[test]
fn a_relay_is_handed_over_and_goes_on() {
    // It passes the middle, 1500 m from either site, at 29.8 s, and stands 300 m from the second site from 58.6 s on.
    let results = run_text(HANDOVER, &["duration=70 s"]);
    let [begin, middle, end] = [(2.0, 8.0), (26.0, 34.0), (60.0, 70.0)].map(|(from, to)| means(&results, 0, from, to));
    assert!(end[1] > 0.9 * begin[1] && middle[1] < 0.5 * begin[1], "{begin:?} {middle:?} {end:?}");
    assert!(end[0] > 1e6, "{end:?}");
    // With only the first site, the same movement leads away from all sites.
    let alone = HANDOVER.replace("handover = { hysteresis_db = 3.0, interruption = \"50 ms\" }\n", "");
    let results = run_text(&alone, &["duration=70 s", "cell.sites_m=[[0.0, 0.0]]"]);
    let stranded = means(&results, 0, 60.0, 70.0);
    assert!(stranded[1] < 0.2 * end[1] && stranded[0] < 0.5 * end[0], "{stranded:?} {end:?}");
}

#[test]
fn a_hysteresis_that_is_never_reached_keeps_a_relay_where_it_was() {
    let never = run_text(HANDOVER, &["duration=70 s", "cell.handover.hysteresis_db=50"]);
    let at_once = run_text(HANDOVER, &["duration=70 s", "cell.handover.hysteresis_db=0"]);
    let [never, at_once] = [never, at_once].map(|results| means(&results, 0, 32.0, 40.0)[1]);
    assert!(never < 0.8 * at_once, "{never} {at_once}");
}

#[test]
fn of_relays_that_do_not_hear_each_other_one_starves() {
    let smaller_share =
        |results: &Results| results.subflows.iter().map(|subflow| subflow.share_ratio).fold(1.0, f64::min);
    for seed in 1..=4 {
        let seed = format!("seed={seed}");
        let [all_hear, some_do_not] = [&[&seed[..]][..], &[&seed, "wlan.hidden=[[\"relay-1\", \"relay-2\"]]"]]
            .map(|overrides| run_text(CHANNEL, overrides));
        assert_eq!(all_hear.totals.retransmitted_packets, 0, "{seed}");
        assert!(smaller_share(&all_hear) > 0.45, "{seed}: {:?}", all_hear.subflows);
        // Frames of 2 ms collide until one relay gives up a packet, and its subflow backs off in favour of the other:
        // usually permanently.
        assert!(some_do_not.totals.retransmitted_packets > 20, "{seed}: {:?}", some_do_not.totals);
        assert!(smaller_share(&some_do_not) < 0.05, "{seed}: {:?}", some_do_not.subflows);
    }
}

#[test]
fn nonsense_is_named() {
    let expect = |text: &str, change: &str, parts: &[&str]| {
        let mistake = read(text, &[change]).unwrap_err();
        assert!(parts.iter().all(|part| mistake.contains(part)), "{mistake}\n{parts:?}");
    };
    expect(HANDOVER, "cell.sites_m=[]", &["cell.sites_m", "write 1 to 1000"]);
    expect(HANDOVER, "cell.sites_m=[[0.0, 0.0]]", &["cell.handover", "has no effect with one site"]);
    expect(HANDOVER, "cell.sites_m=[[0.0, 0.0], [1e9, 0.0]]", &["cell.sites_m[1]", "is out of range"]);
    expect(HANDOVER, "cell.handover.hysteresis_db=-1", &["cell.handover.hysteresis_db", "0 to 50"]);
    expect(HANDOVER, "cell.handover.period=0 s", &["cell.handover.period", "1 ms"]);
    expect(HANDOVER, "cell.handover.interruption=1 h", &["cell.handover.interruption", "too long an interruption"]);
    expect(HANDOVER, "relays[0].place.walk.speed_kmh=0", &["relays[0].place.walk.speed_kmh", "not a valid speed"]);
    expect(HANDOVER, "relays[0].place.walk.to_m=[nan, 0.0]", &["relays[0].place.walk.to_m", "is out of range"]);
    expect(HANDOVER, "cell.speed_kmh=0", &["cell.speed_kmh", "fading = \"none\""]);
    expect(
        CHANNEL,
        "wlan.hidden=[[\"relay-1\", \"relay-9\"]]",
        &["wlan.hidden[0]", "no relay \"relay-9\"", "known: relay-1"],
    );
    expect(CHANNEL, "wlan.hidden=[[\"relay-1\", \"relay-1\"]]", &["wlan.hidden[0]", "two different relays"]);
}
