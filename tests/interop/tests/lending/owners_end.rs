//! The lent rate after a download of the owner has ended.

use std::fs;

use daemon::join::Wanted;
use daemon::links::RelayChoice;
use daemon::proxy::choice::Tier;
use interop::{Files, Running, in_three_tries, output, wait_for, wait_until};
use linux::clock::Clock;
use units::{Duration, Instant};

use super::{BYTES, Bed, lent_bytes, sleep};

const NEAR: &str = super::LINK;
const LINK_BPS: u64 = 16_000_000;
const OWN_URL: &str = "http://10.9.9.9:8000/own.bin";
/// Duration and interval of the samples.
const WATCHED_MS: usize = 12_000;
const LOOK_MS: usize = 100;
/// The part of the samples that counts.
const COUNTED_MS: usize = 8000;

/// The uplinks of the download over the relay.
#[derive(Clone, Copy, Debug)]
enum Over {
    TheRelay,
    /// Also a tethered phone.
    BothPhones,
}

/// Returns the octets lent by each sample after the owner's end.
fn watch(bed: &Bed) -> Vec<u64> {
    let (clock, first) = (Clock::start(), lent_bytes(bed, 0));
    let look = |number: usize| {
        let due = Instant::from_millis((number * LOOK_MS) as u64);
        sleep(due.saturating_since(clock.now()).into());
        lent_bytes(bed, 0) - first
    };
    (1..=WATCHED_MS / LOOK_MS).map(look).collect()
}

/// Returns when a tenth of the link was first lent, for half a second; `None` if not within the samples.
fn back_after(lent: &[u64]) -> Option<Duration> {
    let first = lent.windows(6).position(|looks| looks[5] - looks[0] >= LINK_BPS / 8 / 20)?;
    Some(Duration::from_millis((first * LOOK_MS) as u64))
}

/// Returns the octets lent by each sample after the owner's download of `own_bytes` octets, and that download's
/// duration.
fn lend_after(link: &str, over: Over, controller: &str, own_bytes: usize) -> Option<(Vec<u64>, Duration)> {
    let bed = Bed::over([link, link], &[0])?;
    let files = Files::new(50 * BYTES);
    fs::write(files.path().join("own.bin"), vec![1; own_bytes]).unwrap();
    let set = format!("sysctl -qw net.ipv4.tcp_congestion_control={controller}");
    output(bed.net.server(), "sh", &["-c", &set]);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let _relay = bed.lend(0);
    let relays = vec![RelayChoice { name: "anna".into(), address: None, tier: Tier::Primary }];
    let joined = match over {
        Over::TheRelay => bed.join_with(Wanted { relays, ..bed.wanted() }),
        Over::BothPhones => bed.join(),
    };
    let _transfer = bed.curl_for(&files, &joined.ready, 300);
    wait_until("all of the link is lent", || lent_bytes(&bed, 0) > 6_000_000);
    let clock = Clock::start();
    let mut command = bed.net.phone(0).command("curl").unwrap();
    command.args(["--silent", "--max-time", "60", "--output", "/dev/null", OWN_URL]);
    wait_for(Running(command.spawn().unwrap()));
    let took = clock.now().saturating_since(Instant::ZERO);
    Some((watch(&bed), took))
}

/// Beside another uplink: a relay that gave way to its owner was late. It is held back for that no longer than
/// necessary.
#[test]
fn a_link_is_lent_again_soon_after_its_owners_download() {
    in_three_tries(|| {
        let Some((lent, _)) = lend_after(NEAR, Over::BothPhones, "reno", 2_000_000) else { return Ok(()) };
        back_after(&lent).map(drop).ok_or_else(|| format!("octets lent by each tenth of a second: {lent:?}"))
    })
    .unwrap();
}

#[test]
#[ignore = "the figures of the owner's end in docs/relay.md"]
fn figures_of_the_owners_end() {
    let cases = [
        (NEAR, Over::TheRelay),
        ("rate = '16 Mbit/s'\ndelay = '30 ms'\nqueue = '300 packets'", Over::TheRelay),
        (NEAR, Over::BothPhones),
    ];
    for (link, over) in cases {
        println!("{}, {over:?}", link.replace('\n', ", "));
        for controller in ["bbr", "reno"] {
            for own_bytes in [2_000_000, 6_000_000, 12_000_000] {
                for _ in 0..2 {
                    let Some((lent, took)) = lend_after(link, over, controller, own_bytes) else { return };
                    let own = own_bytes as f64 * 8.0 / took.as_secs_f64() / LINK_BPS as f64;
                    let back =
                        back_after(&lent).map_or("not".into(), |span| format!("after {:.1} s", span.as_secs_f64()));
                    let part = lent[COUNTED_MS / LOOK_MS - 1] as f64 * 8e3 / COUNTED_MS as f64 / LINK_BPS as f64;
                    println!(
                        "{controller} {own_bytes}: the owner's has {own:.2} of the link, lent again {back}, {part:.2} of 8 s"
                    );
                }
            }
        }
    }
}
