//! `anabranch join --kernel` on a laptop with two phones: programs use the kernel's own Multipath TCP over both.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use daemon::control::{self, Place, Request};
use daemon::join::Wanted;
use daemon::kernel_mode::{KernelOptions, join, rehearse};
use daemon::proxy::choice::Tier;
use interop::{
    Daemon, Files, Running, Tethered, USB, ask, carried, kill_at, kill_with_janitors, output, wait_for, wait_until,
};
use linux::netns::Namespace;
use linux::stop::Stop;
use linux::uplink::{self, KERNEL};
use serde_json::Value;
use units::Rate;

const LINK: &str = "rate = '16 Mbit/s'\ndelay = '10 ms'";
const URL: &str = "http://10.9.9.9:8000/data.bin";
const BYTES: usize = 4_000_000;

fn options(tiers: &[Tier]) -> KernelOptions {
    let uplinks = USB.iter().zip(tiers).map(|(name, tier)| ((*name).to_owned(), *tier)).collect();
    options_of(uplinks)
}

fn options_of(uplinks: Vec<(String, Tier)>) -> KernelOptions {
    KernelOptions { uplinks: Wanted::interfaces(uplinks), target: None, prices: Vec::new(), control_group: None }
}

fn start(net: &Tethered, tiers: &[Tier]) -> Daemon<()> {
    start_with(net, options(tiers))
}

fn start_with(net: &Tethered, options: KernelOptions) -> Daemon<()> {
    Daemon::start(&net.laptop, |stop, told| join(options, stop, |_| told.send(()).unwrap()))
}

/// Starts curl over the kernel's MPTCP.
fn curl(files: &Files, net: &Tethered, url: &str) -> Running {
    let mut command = net.laptop.command("mptcpize").unwrap();
    command.args(["run", "curl", "--silent", "--show-error", "--fail", "--max-time", "120", "--output"]);
    command.arg(files.copy()).arg(url);
    Running(command.spawn().unwrap())
}

fn status(net: &Tethered) -> Value {
    ask(net, KERNEL, &Request::Status).unwrap()
}

fn set(net: &Tethered, index: usize, tier: Tier) -> Result<Value, String> {
    ask(net, KERNEL, &Request::SetTier { uplink: USB[index].into(), tier })
}

fn set_all(net: &Tethered, changes: &[Request]) -> Result<Value, String> {
    ask(net, KERNEL, &Request::SetAll { changes: changes.to_vec() })
}

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

#[test]
fn both_uplinks_carry_and_nothing_is_left() {
    for phones in [Tethered::distinct, Tethered::new] {
        let Some(net) = phones([LINK, LINK]) else { return };
        // Endpoints of others remain.
        net.laptop.ip(["mptcp endpoint add 192.168.42.10 dev usb0 id 7 subflow".into()]).unwrap();
        let files = Files::new(BYTES);
        let before = net.state();
        let plan = net.laptop.run(|| rehearse(&options(&[Tier::Primary; 2]))).unwrap().unwrap().to_string();
        assert!(plan.contains("path_manager=userspace") && plan.contains("undo"), "{plan}");
        assert_eq!(net.state(), before, "a rehearsal changes nothing");
        for (all, url) in [("0.0.0.0", URL), ("::", "http://[fd09::9]:8000/data.bin")] {
            let _server = net.web_server(files.path(), all);
            let joined = start(&net, &[Tier::Primary; 2]);
            wait_for(curl(&files, &net, url));
            assert!(files.arrived());
            let status = status(&net);
            assert!((0..2).all(|index| net.received_bytes(index) > BYTES as u64 / 4), "{url} {status:#}");
            assert_eq!(status["kernel"]["totals"]["connections"], 1, "{status:#}");
            assert!(status.get("proxy").is_none());
            // The download took only a second, and the kernel forgets subflows when they end.
            let passed = || (0..2).map(|index| carried(&self::status(&net), index)).sum::<u64>();
            wait_until("most of it is counted", || passed() > BYTES as u64 / 2);
            joined.end().unwrap();
            assert_eq!(net.state(), before);
        }
        assert!(net.laptop.run(control::running).unwrap().unwrap().is_empty());
    }
}

#[test]
fn a_strict_reverse_path_filter_lets_answers_in() {
    for phones in [Tethered::distinct, Tethered::new] {
        let Some(net) = phones([LINK, LINK]) else { return };
        net.laptop.set("ipv4/conf/all/rp_filter", "1").unwrap();
        let files = Files::new(BYTES);
        let _server = net.web_server(files.path(), "0.0.0.0");
        let before = net.state();
        let joined = start(&net, &[Tier::Primary; 2]);
        wait_for(curl(&files, &net, URL));
        assert!((0..2).all(|index| net.received_bytes(index) > BYTES as u64 / 4));
        joined.end().unwrap();
        assert_eq!(net.state(), before);
    }
}

#[test]
fn a_backup_carries_when_no_other_can_and_tiers_change_meanwhile() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let files = Files::new(4 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let _joined = start(&net, &[Tier::Primary, Tier::Backup]);
    let curl = curl(&files, &net, URL);
    wait_until("the primary carries", || carried(&status(&net), 0) > 1_000_000);
    let now = status(&net);
    assert_eq!(now["uplinks"][1]["subflows"], 1, "{now:#}");
    assert!(carried(&now, 1) < 100_000, "{now:#}");
    // The uplink becomes regular, and carries its share of the same connection.
    set(&net, 1, Tier::Primary).unwrap();
    wait_until("both carry", || carried(&status(&net), 1) > 500_000);
    // It becomes a backup again while data in flight arrive.
    set(&net, 1, Tier::Backup).unwrap();
    sleep(Duration::from_millis(700));
    let (so_far, begun) = (carried(&status(&net), 1), carried(&status(&net), 0));
    wait_until("the primary carries on", || carried(&status(&net), 0) > begun + 800_000);
    assert!(carried(&status(&net), 1) < so_far + 100_000, "{:#}", status(&net));
    // The other uplink goes away, and nothing is missing.
    net.unplug(0);
    wait_until("the backup carries", || carried(&status(&net), 1) > so_far + 500_000);
    wait_for(curl);
    assert!(files.arrived());
    assert!(set(&net, 1, Tier::Never).is_ok(), "the other one is wanted, although it is not there");
    assert!(set(&net, 0, Tier::Never).unwrap_err().contains("last uplink"));
}

#[test]
fn as_few_uplinks_as_deliver_the_target_carry() {
    let Some(net) = Tethered::distinct([LINK, "rate = '9 Mbit/s'\ndelay = '10 ms'"]) else { return };
    let files = Files::new(16 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let (target, tiers) = (Some(Rate::from_bps(8_000_000)), [Tier::Primary; 2]);
    let _joined = start_with(&net, KernelOptions { target, ..options(&tiers) });
    let curl = curl(&files, &net, URL);
    let waits = |index: usize| status(&net)["uplinks"][index]["carries"] == false;
    wait_until("one of them waits", || (0..2).any(waits));
    let now = status(&net);
    assert_eq!(now["target_bps"], 8_000_000, "{now:#}");
    assert!((0..2).any(|index| now["uplinks"][index]["estimate_bps"].as_u64() > Some(5_000_000)), "{now:#}");
    let idle = usize::from(waits(1));
    // What is in flight arrives.
    sleep(Duration::from_millis(700));
    let (so_far, begun) = (carried(&status(&net), idle), carried(&status(&net), 1 - idle));
    wait_until("the other one carries on", || carried(&status(&net), 1 - idle) > begun + 1_500_000);
    assert!(carried(&status(&net), idle) < so_far + 200_000, "{:#}", status(&net));
    assert_eq!(status(&net)["uplinks"][idle]["subflows"], 1);
    // More is wanted than one delivers, and then all there is.
    set_all(&net, &[Request::SetTarget { bps: Some(20_000_000) }]).unwrap();
    wait_until("it helps again", || carried(&status(&net), idle) > so_far + 800_000);
    assert!((0..2).all(|index| !waits(index)));
    set_all(&net, &[Request::SetTarget { bps: None }]).unwrap();
    assert!(status(&net)["target_bps"].is_null());
    drop(curl);
}

#[test]
fn an_expensive_uplink_waits_until_the_others_have_shown_that_they_bring_too_little() {
    let Some(net) = Tethered::distinct(["rate = '6 Mbit/s'\ndelay = '10 ms'", LINK]) else { return };
    let files = Files::new(8 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let target = Some(Rate::from_bps(4_000_000));
    let refused = KernelOptions { target, prices: vec![("usb9".into(), 1)], ..options(&[Tier::Primary; 2]) };
    let why = net.laptop.run(|| rehearse(&refused)).unwrap().unwrap_err().to_string();
    assert!(why.contains("there is no uplink usb9"), "{why}");
    let _joined =
        start_with(&net, KernelOptions { target, prices: vec![("usb1".into(), 3)], ..options(&[Tier::Primary; 2]) });
    let waits = |index: usize| status(&net)["uplinks"][index]["carries"] == false;
    assert!(waits(1) && !waits(0), "before any traffic");
    let curl = curl(&files, &net, URL);
    wait_until("the cheap one carries", || carried(&status(&net), 0) > 2_000_000);
    assert!(carried(&status(&net), 1) < 100_000, "{:#}", status(&net));
    set_all(&net, &[Request::SetTarget { bps: Some(12_000_000) }]).unwrap();
    wait_until("the expensive one helps", || carried(&status(&net), 1) > 1_000_000);
    // The other one becomes as expensive. The faster one suffices alone.
    set_all(&net, &[Request::SetPrice { uplink: USB[0].into(), price: 3 }]).unwrap();
    let why = set_all(&net, &[Request::SetPrice { uplink: "usb9".into(), price: 3 }]).unwrap_err();
    assert!(why.contains("there is no uplink usb9"), "{why}");
    wait_until("the slow one waits", || waits(0) && !waits(1));
    drop(curl);
}

#[test]
fn an_uplink_that_falls_silent_is_told_of_and_carries_again_with_one_subflow() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let files = Files::new(60 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let _joined = start(&net, &[Tier::Primary; 2]);
    let curl = curl(&files, &net, URL);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 300_000));
    net.set_link(1, false);
    wait_until("the silence is seen", || status(&net)["uplinks"][1]["unheard"].is_u64());
    let now = status(&net);
    assert!(now["uplinks"][0]["unheard"].is_null(), "{now:#}");
    assert!(now["uplinks"][1]["lost"].is_null(), "{now:#}");
    // Several attempts to make another one wait for an answer.
    sleep(Duration::from_secs(8));
    let (quiet, begun) = (carried(&status(&net), 1), carried(&status(&net), 0));
    net.set_link(1, true);
    wait_until("it carries again", || carried(&status(&net), 1) > quiet + 1_000_000);
    assert!(status(&net)["uplinks"][1]["unheard"].is_null());
    // The kernel's attempts may be answered together, and the end of the dead subflow may reach the server late.
    let counts = |now: &Value| (0..2).all(|index| now["uplinks"][index]["subflows"] == 1);
    wait_until("one subflow over each is left", || counts(&status(&net)));
    assert!(carried(&status(&net), 0) > begun + 1_000_000, "the other one has not waited for it");
    drop(curl);
}

#[test]
fn an_uplink_that_is_to_be_used_never_is_left() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    // What ends with the transfer was not left.
    let files = Files::new(60 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let _joined = start(&net, &[Tier::Primary; 2]);
    let curl = curl(&files, &net, URL);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 300_000));
    // The uplink on which the connection started.
    set(&net, 0, Tier::Never).unwrap();
    wait_until("it is left", || status(&net)["uplinks"][0]["subflows"] == 0);
    let begun = carried(&status(&net), 1);
    wait_until("the other one carries on", || carried(&status(&net), 1) > begun + 300_000);
    drop(curl);
}

#[test]
fn an_uplink_is_left_also_from_an_address_that_it_got_meanwhile() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let files = Files::new(60 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let _joined = start(&net, &[Tier::Primary; 2]);
    // This changes neither the address nor the gateway of the uplink.
    net.laptop.ip(["address add 192.168.42.78/24 dev usb0".into()]).unwrap();
    net.laptop.ip(["route add 10.9.9.9 via 192.168.42.129 dev usb0 src 192.168.42.78".into()]).unwrap();
    let curl = curl(&files, &net, URL);
    let from = || output(&net.laptop, "ss", &["-tnH", "src", "192.168.42.78"]);
    wait_until("it begins there", || !from().is_empty());
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 300_000));
    set(&net, 0, Tier::Never).unwrap();
    wait_until("it is left", || from().is_empty() && status(&net)["uplinks"][0]["subflows"] == 0);
    let begun = carried(&status(&net), 1);
    wait_until("the other one carries on", || carried(&status(&net), 1) > begun + 300_000);
    drop(curl);
}

#[test]
fn rules_that_are_removed_are_restored_also_for_a_former_address() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let _joined = start(&net, &[Tier::Primary; 2]);
    let rules = || {
        let shown = output(&net.laptop, "sh", &["-c", "ip rule; ip -6 rule"]);
        let mut own: Vec<String> = shown.lines().filter(|line| line.starts_with("199:")).map(str::to_owned).collect();
        own.sort();
        own
    };
    net.laptop.ip(["address add 192.168.42.77/24 dev usb0".into()]).unwrap();
    net.laptop.ip(["route add default via 192.168.42.129 dev usb0 metric 50 src 192.168.42.77".into()]).unwrap();
    let has = |ip: &str| rules().iter().filter(|rule| rule.contains(&format!("from {ip} "))).count() == 2;
    wait_until("it is used", || has("192.168.42.77"));
    assert!(has("192.168.42.10"), "{:#?}", rules());
    let whole = rules();
    output(
        &net.laptop,
        "sh",
        &["-c", "while ip rule del priority 199 2>/dev/null; do :; done; ip -6 rule del priority 199"],
    );
    wait_until("all are there again", || rules() == whole);
}

#[test]
fn a_phone_may_come_later_and_again_with_another_address() {
    for phones in [Tethered::distinct, Tethered::new] {
        let Some(net) = phones([LINK, LINK]) else { return };
        // Long enough for everything that is awaited below, also on a busy machine.
        let files = Files::new(14 * BYTES);
        let _server = net.web_server(files.path(), "0.0.0.0");
        net.unplug(1);
        let joined = start(&net, &[Tier::Primary; 2]);
        assert!(status(&net)["uplinks"][1]["lost"].is_string());
        let curl = curl(&files, &net, URL);
        wait_until("one carries", || carried(&status(&net), 0) > 500_000);
        net.plug_in(1);
        wait_until("the new one carries", || carried(&status(&net), 1) > 500_000);
        net.unplug(0);
        sleep(Duration::from_millis(300));
        net.plug_in_as(0, 77);
        let so_far = carried(&status(&net), 0);
        wait_until("it carries again", || carried(&status(&net), 0) > so_far + 500_000);
        wait_for(curl);
        assert!(files.arrived());
        joined.end().unwrap();
        let left = net.state();
        assert!(
            !left.contains("lookup 9999") && !left.contains("table 9999") && left.contains("path_manager:kernel"),
            "{left}"
        );
    }
}

#[test]
fn a_subflow_that_died_is_made_again_and_no_other_is_touched() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let files = Files::new(8 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let _joined = start(&net, &[Tier::Primary; 2]);
    let curl = curl(&files, &net, URL);
    let subflows = |index: usize| status(&net)["uplinks"][index]["subflows"].clone();
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 1_000_000));
    for index in [1, 0] {
        let own = format!("192.168.{}.10", 42 + index);
        let other = output(&net.laptop, "ss", &["-tnH", "src", &format!("192.168.{}.10", 43 - index)]);
        output(&net.laptop, "ss", &["-K", "-tn", "src", &own, "dport", "=", "8000"]);
        wait_until("it is dead", || subflows(index) == 0);
        wait_until("it is there again", || subflows(index) == 1);
        let column = |text: &str| text.split_whitespace().nth(3).unwrap_or_default().to_owned();
        let later = output(&net.laptop, "ss", &["-tnH", "src", &format!("192.168.{}.10", 43 - index)]);
        assert_eq!(column(&other), column(&later), "the other one is the same");
    }
    assert_eq!(status(&net)["kernel"]["totals"]["remade"], 2, "{:#}", status(&net));
    wait_for(curl);
    assert!(files.arrived());
}

#[test]
fn whoever_loads_from_a_server_here_gets_it_over_both() {
    load_from_a_server_at("0.0.0.0", |_| {});
}

#[test]
fn an_uplink_is_left_also_by_ipv4_within_sockets_of_ipv6() {
    load_from_a_server_at("::", |net| {
        ask(net, KERNEL, &Request::SetTier { uplink: "lan1".into(), tier: Tier::Never }).unwrap();
        wait_until("it is left", || status(net)["uplinks"][1]["subflows"] == 0);
    });
}

/// An outside client downloads from a server of the laptop that listens at `all`; `meanwhile` runs while both uplinks
/// carry data.
fn load_from_a_server_at(all: &str, meanwhile: impl FnOnce(&Tethered)) {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    // Two more interfaces, over which other hosts reach the laptop.
    for number in 0..2 {
        let (near, far, subnet) = (format!("lan{number}"), format!("far{number}"), 50 + number);
        net.laptop.ip([format!("link add {near} type veth peer name {far} netns {}", net.server().name())]).unwrap();
        net.laptop.ip([format!("address add 10.{subnet}.0.2/24 dev {near}"), format!("link set {near} up")]).unwrap();
        net.server().ip([format!("address add 10.{subnet}.0.1/24 dev {far}"), format!("link set {far} up")]).unwrap();
        net.laptop.ip([format!("route add default via 10.{subnet}.0.1 dev {near} metric 30{number}")]).unwrap();
    }
    net.server().ip(["mptcp limits set subflows 4 add_addr_accepted 4".into()]).unwrap();
    let uplinks = ["lan0", "lan1"].map(|name| (name.to_owned(), Tier::Primary)).to_vec();
    let _joined = start_with(&net, options_of(uplinks));
    // At this rate it lasts until everything has been seen, even on a busy machine.
    let files = Files::new(8 * BYTES);
    let mut server = net.laptop.command("mptcpize").unwrap();
    server.args(["run", "python3", "-m", "http.server", "--bind", all, "8000"]).current_dir(files.path());
    let _server = Running(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("the server listens", || output(&net.laptop, "ss", &["-Hltn"]).contains(":8000"));
    let mut curl = net.server().command("mptcpize").unwrap();
    curl.args(["run", "curl", "--silent", "--fail", "--limit-rate", "1M", "--output"]).arg(files.copy());
    let _curl = Running(curl.arg("http://10.50.0.2:8000/data.bin").spawn().unwrap());
    let sent = |status: &Value, index: usize| status["uplinks"][index]["meter"]["up_bytes"].as_u64().unwrap();
    wait_until("both carry", || (0..2).all(|index| sent(&status(&net), index) > 200_000));
    meanwhile(&net);
}

#[test]
fn connections_outlive_the_daemon() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let files = Files::new(20 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let joined = start(&net, &[Tier::Primary; 2]);
    let curl = curl(&files, &net, URL);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 300_000));
    joined.end().unwrap();
    let so_far = net.received_bytes(1);
    wait_until("both carry on", || net.received_bytes(1) > so_far + 300_000);
    // The next daemon finds it, and wants its second subflow to be a backup.
    let joined = start(&net, &[Tier::Primary, Tier::Backup]);
    assert_eq!(status(&net)["kernel"]["connections"], 1);
    wait_until("it carries no more", || {
        let so_far = net.received_bytes(1);
        sleep(Duration::from_millis(500));
        net.received_bytes(1) < so_far + 100_000
    });
    joined.end().unwrap();
    // The one after that wants the opposite.
    let _joined = start(&net, &[Tier::Primary; 2]);
    let so_far = net.received_bytes(1);
    wait_until("both carry again", || net.received_bytes(1) > so_far + 300_000);
    net.unplug(1);
    sleep(Duration::from_millis(300));
    net.plug_in(1);
    wait_until("it is used again", || net.received_bytes(1) > 300_000);
    wait_for(curl);
    assert!(files.arrived());
}

/// Runs as a child of the next test, which kills it.
#[test]
#[ignore = "the child of a test here, which kills it"]
fn join_until_killed() {
    let Ok(name) = std::env::var("INTEROP_NAMESPACE") else { return };
    Namespace::open(&name).unwrap().enter().unwrap();
    let _ = join(options(&[Tier::Primary; 2]), &Stop::new().unwrap(), |_| {});
}

fn child(net: &Tethered) -> Running {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kernel_mode::join_until_killed", "--ignored"]);
    command.env("INTEROP_NAMESPACE", net.laptop.name()).stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

#[test]
fn what_a_killed_janitor_leaves_is_cleaned() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let before = net.state();
    let child = child(&net);
    wait_until("all is laid", || net.state().contains("path_manager:userspace"));
    kill_with_janitors(child, &net.laptop, KERNEL);
    assert_ne!(net.state(), before, "the janitor was to be killed");
    assert_eq!(net.laptop.run(uplink::clean).unwrap().unwrap(), [KERNEL]);
    assert_eq!(net.state(), before);
}

#[test]
fn a_killed_daemon_leaves_nothing_and_the_next_one_starts() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    net.laptop.ip(["mptcp endpoint add 192.168.42.10 dev usb0 id 7 subflow".into()]).unwrap();
    net.laptop.ip(["mptcp limits set subflows 3 add_addr_accepted 1".into()]).unwrap();
    // All moments of the set-up, and some later ones.
    let moments = (0..15).map(|round| Duration::from_millis(round * 31));
    kill_at(moments, || child(&net), || net.state().contains("path_manager:userspace"), || net.state());
    start(&net, &[Tier::Primary; 2]).end().unwrap();
    net.laptop.run(control::clean).unwrap().unwrap();
    assert!(net.laptop.run(uplink::clean).unwrap().unwrap().is_empty());
    assert_eq!(net.laptop.run(Place::here).unwrap().unwrap().sockets(), [] as [(String, PathBuf); 0]);
}

#[test]
fn what_cannot_work_is_told_in_a_line() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let refusal = |options: KernelOptions| {
        net.laptop.run(|| join(options, &Stop::new().unwrap(), |_| {})).unwrap().unwrap_err().to_string()
    };
    let unknown = options_of(vec![("usb9".into(), Tier::Primary)]);
    assert!(refusal(unknown).contains("usb9 does not exist"));
    net.laptop.set("mptcp/enabled", "0").unwrap();
    let off = refusal(options(&[Tier::Primary; 2]));
    assert!(off.contains("sysctl -w net.mptcp.enabled=1") && !off.contains('\n'), "{off}");
    net.laptop.set("mptcp/enabled", "1").unwrap();
    let _joined = start(&net, &[Tier::Primary; 2]);
    assert!(refusal(options(&[Tier::Primary; 2])).contains("is already running here"));
}
