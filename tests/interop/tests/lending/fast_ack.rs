//! Relays that acknowledge at once (fast ACK).

use std::thread;
use std::time::Duration;

use daemon::control::Request;
use daemon::kernel_mode::{self, KernelOptions};
use daemon::relay::{Mode, RelayOptions};
use interop::{Daemon, Files, Running, ask, both_carried, carried, in_three_tries, output, wait_for, wait_until};
use linux::clock::Clock;
use linux::uplink::KERNEL;

use super::{BYTES, Bed, URL, lent_bytes, longest_pause, sleep, state_of, what_a_stream_leaves_is_known};

fn lend(bed: &Bed, number: usize, mode: Mode) -> Daemon<()> {
    bed.lend_with(number, RelayOptions { mode, ..bed.options(number) })
}

/// Returns the number of the laptop's subflows that end at a relay.
fn spliced(bed: &Bed, number: usize) -> u64 {
    let status = bed.relay_status(number);
    assert_eq!(status["relay"]["mode"], "fast-ack");
    status["relay"]["destinations"][0]["spliced_subflows"].as_u64().unwrap()
}

/// Returns the relay at which the second subflow ends. The first one carries the keys, and is routed.
fn where_one_ends(bed: &Bed) -> usize {
    let find = || (0..2).find(|number| spliced(bed, *number) == 1);
    wait_until("the second subflow ends at its relay", || find().is_some());
    find().expect("it lasts")
}

/// Loses one in `many` datagrams from a relay to the laptop, like a Wi-Fi at the edge of its range; `None` ends this.
fn lose_one_of(bed: &Bed, number: usize, many: Option<u32>) {
    let phone = bed.net.phone(number);
    output(phone, "sh", &["-c", "nft delete table inet loss 2>/dev/null; true"]);
    let Some(many) = many else { return };
    let table = format!(
        "table inet loss {{ chain out {{ type filter hook output priority 0; udp sport 8684 numgen random mod {many} < 1 drop; }}; }}"
    );
    output(phone, "nft", &[&table]);
}

#[test]
fn subflows_that_end_at_relays_carry_a_stream_over_a_network_that_loses() {
    let Some(bed) = Bed::new() else { return };
    let files = Files::new(2 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    (0..2).for_each(|number| bed.pair(number));
    let before = (bed.net.state(), [0, 1].map(|number| state_of(bed.net.phone(number))));
    let relays = [0, 1].map(|number| lend(&bed, number, Mode::FastAck));
    in_three_tries(|| {
        let joined = bed.join();
        (0..2).for_each(|number| lose_one_of(&bed, number, Some(50)));
        let transfer = bed.curl(&files, &joined.ready);
        where_one_ends(&bed);
        wait_for(transfer);
        assert!(files.arrived());
        let status = bed.status();
        wait_until("it is forgotten", || (0..2).all(|number| spliced(&bed, number) == 0));
        (0..2).for_each(|number| lose_one_of(&bed, number, None));
        joined.end().unwrap();
        both_carried(&status, BYTES / 4)
    })
    .unwrap();
    relays.into_iter().for_each(|relay| relay.end().unwrap());
    assert_eq!((bed.net.state(), [0, 1].map(|number| state_of(bed.net.phone(number)))), before);
}

#[test]
fn the_kernels_own_mptcp_joins_through_a_relay_that_acknowledges() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    let files = Files::new(3 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let _relay = lend(&bed, 0, Mode::FastAck);
    let options = KernelOptions { uplinks: bed.wanted(), target: None, prices: Vec::new(), control_group: None };
    let _joined =
        Daemon::start(&bed.net.laptop, |stop, told| kernel_mode::join(options, stop, |_| told.send(()).unwrap()));
    let mut command = bed.net.laptop.command("mptcpize").unwrap();
    command.args(["run", "curl", "--silent", "--fail", "--max-time", "60", "--output"]).arg(files.copy()).arg(URL);
    let transfer = Running(command.spawn().unwrap());
    wait_until("the second subflow ends at the relay", || spliced(&bed, 0) == 1);
    wait_for(transfer);
    assert!(files.arrived());
    let status = ask(&bed.net, KERNEL, &Request::Status).unwrap();
    assert!((0..2).all(|index| carried(&status, index) > BYTES as u64 / 5), "{status:#}");
}

/// A relay that acknowledges does not answer probes in the place of an unreachable server.
#[test]
fn a_dead_way_behind_a_relay_is_found_out() {
    in_three_tries(|| {
        let Some(bed) = Bed::new() else { return Ok(()) };
        let files = Files::new(6 * BYTES);
        let _server = bed.net.web_server(files.path(), "0.0.0.0");
        (0..2).for_each(|number| bed.pair(number));
        let _relays = [0, 1].map(|number| lend(&bed, number, Mode::FastAck));
        let joined = bed.join();
        let transfer = bed.curl(&files, &joined.ready);
        wait_until("both carry", || (0..2).all(|index| carried(&bed.status(), index) > 200_000));
        let dies = where_one_ends(&bed);
        bed.net.set_link(dies, false);
        let clock = Clock::start();
        let pause = longest_pause(&files, clock, clock.now() + units::Duration::from_secs(4));
        wait_for(transfer);
        assert!(files.arrived());
        let is_short = pause < units::Duration::from_secs(2);
        is_short.then_some(()).ok_or_else(|| format!("nothing arrived for {pause:?}"))
    })
    .unwrap();
}

/// Runs a download over both relays, one of which its owner uses too. In its pauses nothing arrives, so its subflow is
/// given up and joins again.
fn the_owner_goes_first_and_what_is_left_is_used(mode: Mode) {
    let Some(bed) = Bed::new() else { return };
    let files = Files::new(150_000_000);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    (0..2).for_each(|number| bed.pair(number));
    let _relays = [0, 1].map(|number| lend(&bed, number, mode));
    let joined = bed.join();
    let _transfer = bed.curl(&files, &joined.ready);
    let is_lent = |number| lent_bytes(&bed, number) > 2_000_000;
    // An uplink that was late on a busy machine is held back for 15 s at first, and a single wait is longer.
    wait_until("one of both is lent", || (0..2).any(is_lent));
    wait_until("all of both is lent", || (0..2).all(is_lent));
    let shared = if mode == Mode::FastAck { where_one_ends(&bed) } else { 1 };
    let before = lent_bytes(&bed, shared);
    // The uplink may be held back for longer than the figures take. While it is, nothing is lent.
    let is_lent_too = || wait_until("it is lent beside the owner's", || lent_bytes(&bed, shared) > before + 2_000_000);
    what_a_stream_leaves_is_known(&bed, shared, is_lent_too).unwrap();
}

#[test]
fn the_owners_traffic_goes_first_where_subflows_end() {
    the_owner_goes_first_and_what_is_left_is_used(Mode::FastAck);
}

#[test]
fn what_an_owner_leaves_is_used_beside_another_relay() {
    the_owner_goes_first_and_what_is_left_is_used(Mode::Route);
}

#[test]
fn a_limit_holds_where_subflows_end() {
    in_three_tries(|| {
        let Some(bed) = Bed::new() else { return Ok(()) };
        let files = Files::new(BYTES);
        let _server = bed.net.web_server(files.path(), "0.0.0.0");
        (0..2).for_each(|number| bed.pair(number));
        let rate = Some(units::Rate::from_mbps(2));
        let _relays = [0, 1]
            .map(|number| bed.lend_with(number, RelayOptions { rate, mode: Mode::FastAck, ..bed.options(number) }));
        let joined = bed.join();
        let transfer = bed.curl(&files, &joined.ready);
        let ends = where_one_ends(&bed);
        wait_until("it carries", || lent_bytes(&bed, ends) > 200_000);
        let (before, span) = (lent_bytes(&bed, ends), Duration::from_secs(3));
        sleep(span);
        let lent_bps = (lent_bytes(&bed, ends) - before) * 8 / span.as_secs();
        wait_for(transfer);
        assert!(files.arrived());
        (1_400_000..2_200_000).contains(&lent_bps).then_some(()).ok_or_else(|| format!("{lent_bps} bit/s"))
    })
    .unwrap();
}

#[test]
fn a_relay_that_ends_leaves_nothing_undelivered() {
    let Some(bed) = Bed::new() else { return };
    // Long enough for everything that is awaited below, also on a busy machine.
    let files = Files::new(12 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    (0..2).for_each(|number| bed.pair(number));
    let mut relays = [0, 1].map(|number| Some(lend(&bed, number, Mode::FastAck)));
    let joined = bed.join();
    let transfer = bed.curl(&files, &joined.ready);
    wait_until("both carry", || (0..2).all(|index| carried(&bed.status(), index) > 200_000));
    let ends = where_one_ends(&bed);
    relays[ends].take().unwrap().end().unwrap();
    wait_until("it is lost", || bed.status()["uplinks"][ends]["lost"].is_string());
    // A restarted relay knows nothing about earlier subflows.
    relays[ends] = Some(lend(&bed, ends, Mode::FastAck));
    wait_until("a new subflow ends at it", || spliced(&bed, ends) == 1);
    wait_for(transfer);
    assert!(files.arrived());
}

#[test]
#[ignore = "the figures of modes in docs/relay.md"]
fn figures_of_modes() {
    let Some(bed) = Bed::new() else { return };
    let files = Files::new(5 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    (0..2).for_each(|number| bed.pair(number));
    // A server that treats losses as congestion, as most do; this machine's own controller may differ.
    output(bed.net.server(), "sh", &["-c", "echo reno > /proc/sys/net/ipv4/tcp_congestion_control"]);
    let clock = Clock::start();
    for many in [Some(1000), Some(100), Some(33)] {
        (0..2).for_each(|number| lose_one_of(&bed, number, many));
        let loss = many.map_or(0.0, |many| 100.0 / f64::from(many));
        for round in 0..3 {
            for mode in [Mode::Route, Mode::FastAck] {
                let relays = [0, 1].map(|number| lend(&bed, number, mode));
                let joined = bed.join();
                let begin = clock.now();
                wait_for(bed.curl_for(&files, &joined.ready, 300));
                let span = clock.now().saturating_since(begin).as_secs_f64();
                println!("{loss:.1} % lost, {mode:?}, round {round}: {:.1} Mbit/s", (5 * BYTES) as f64 * 8e-6 / span);
                joined.end().unwrap();
                relays.into_iter().for_each(|relay| relay.end().unwrap());
            }
        }
    }
    (0..2).for_each(|number| lose_one_of(&bed, number, None));
    figures_of_a_death(&bed, &files);
}

fn figures_of_a_death(bed: &Bed, files: &Files) {
    for mode in [Mode::Route, Mode::FastAck].repeat(3) {
        let relays = [0, 1].map(|number| lend(bed, number, mode));
        let joined = bed.join();
        let clock = Clock::start();
        let transfer = bed.curl_for(files, &joined.ready, 300);
        wait_until("both carry", || (0..2).all(|index| carried(&bed.status(), index) > 1_000_000));
        let pause = thread::scope(|scope| {
            let watch = scope.spawn(|| longest_pause(files, clock, clock.now() + units::Duration::from_secs(4)));
            sleep(Duration::from_millis(500));
            bed.net.set_link(1, false);
            watch.join().unwrap()
        });
        println!("{mode:?}, one cellular link dies silently: nothing arrives for {:.0} ms", pause.as_secs_f64() * 1e3);
        drop(transfer);
        bed.net.set_link(1, true);
        joined.end().unwrap();
        relays.into_iter().for_each(|relay| relay.end().unwrap());
    }
}
