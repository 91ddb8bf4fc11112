//! What the relay does while firewall rules are missing, when its link is replaced, and while a battery is slow.

use std::fs;
use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use linux::ability::{Needs, rehearse};
use linux::netns::{Keeper as Namespaces, Namespace};
use units::Instant;

use super::*;
use crate::heard::Heard;

const SHARE: &str = "up0";
/// The other end of its cable.
const FAR: &str = "far0";

/// Runs `test` in a namespace with an interface that a keeper lends.
fn with_a_keeper(name: &str, test: impl FnOnce(&Namespace, Keeper<'_>) + Send) {
    if let Err(lacking) = rehearse(Needs { kernel_mptcp: false, programs: &[("nft", "nftables")] }) {
        return left_out::leave_out(name, lacking);
    }
    let mut namespaces = Namespaces::start().unwrap();
    let host = namespaces.create(&format!("relay-{}-{name}", std::process::id())).unwrap();
    let commands = [
        format!("link add {SHARE} type veth peer name {FAR}"),
        format!("link set {FAR} up"),
        format!("address add 192.0.2.2/24 dev {SHARE}"),
        format!("link set {SHARE} up"),
        format!("route add default via 192.0.2.1 dev {SHARE}"),
    ];
    host.ip(commands).unwrap();
    let lend = || {
        let uplink = find(SHARE).unwrap();
        let uplinks = core::slice::from_ref(&uplink);
        let _tun = open_device().unwrap();
        let plan = uplink::lending_plan(&uplink, INNER_MTU, PORT, &Surroundings::look(uplinks).unwrap()).unwrap();
        let plumbing = Plumbing::lay(plan, &Stop::new().unwrap()).unwrap();
        let status =
            RelayStatus { relay: Lent { interface: SHARE.into(), ..Lent::default() }, ..RelayStatus::default() };
        let shared = Mutex::new(Shared {
            lending: Lending::new(None, None, None),
            status,
            header_bytes: 0,
            vacated: Slots::default(),
            replacements: 0,
        });
        let keeper = Keeper::new(plumbing, Watch::new(uplinks).unwrap(), &shared);
        test(&host, keeper);
    };
    host.run(lend).unwrap();
}

fn nft(host: &Namespace, arguments: &[&str]) -> String {
    let done = host.command("nft").unwrap().args(arguments).output().unwrap();
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[expect(clippy::disallowed_methods, reason = "the kernel works in real time")]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::start();
    while !is_so() {
        assert!(clock.now() < Instant::from_secs(20), "waited in vain until {what}");
        thread::sleep(core::time::Duration::from_millis(20));
    }
}

/// Removes the firewall rules, and keeps them from being restored until the returned process has ended: a table that
/// belongs to another program cannot be replaced. It ends with its orders.
fn occupy(host: &Namespace) -> (Child, ChildStdin) {
    nft(host, &["flush", "ruleset"]);
    let mut owner: Command = host.command("nft").unwrap();
    let mut owner = owner.arg("-i").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut orders = owner.stdin.take().unwrap();
    writeln!(orders, "add table inet {LENDER} {{ flags owner; }}").unwrap();
    wait_until("it has the table", || nft(host, &["list", "ruleset"]).contains("owner"));
    (owner, orders)
}

#[test]
fn a_link_that_cannot_be_set_up_is_told_once() {
    with_a_keeper("told", |host, mut keeper| {
        let heard = Heard::default();
        let _listening = heard.listen();
        let uplink = lent_by(&keeper.plumbing).clone();
        let (mut owner, orders) = occupy(host);
        (0..3).for_each(|_| keeper.usable(&uplink));
        let said = heard.take();
        assert_eq!(said.matches("nothing is lent for now: up0 cannot be set up").count(), 1, "{said}");
        drop(orders);
        owner.wait().unwrap();
        keeper.usable(&uplink);
        assert!(heard.take().contains("is lent again"));
    });
}

#[test]
fn what_was_measured_on_a_link_is_forgotten_with_it() {
    with_a_keeper("replaced", |host, mut keeper| {
        let (uplink, shared) = (lent_by(&keeper.plumbing).clone(), keeper.shared);
        let seen = || {
            let shared = lock(shared);
            (shared.replacements, shared.lending.instance)
        };
        keeper.usable(&uplink);
        assert_eq!(seen(), (0, 0), "it is as before");
        keeper.lost("is down".into());
        keeper.usable(&uplink);
        assert_eq!(seen(), (1, 0));
        host.ip([format!("route replace default via 192.0.2.254 dev {SHARE}")]).unwrap();
        keeper.usable(&find(SHARE).unwrap());
        assert_eq!(seen(), (2, 1), "behind another router, no connection goes on");
    });
}

#[test]
fn a_network_with_the_destinations_addresses_that_comes_later_does_not_end_lending() {
    with_a_keeper("network", |host, mut keeper| {
        let (uplink, shared) = (lent_by(&keeper.plumbing).clone(), keeper.shared);
        let commands = [
            "link add up1 type veth peer name far1",
            "link set far1 up",
            "address add 10.99.98.7/24 dev up1",
            "link set up1 up",
            "address add 192.0.2.3/24 dev up0",
        ];
        host.ip(commands.map(str::to_owned)).unwrap();
        keeper.usable(&uplink);
        assert_eq!(lock(shared).lending.lost, None);
        host.ip(["address add 10.99.98.9/24 dev up0".to_owned()]).unwrap();
        keeper.usable(&uplink);
        assert!(lock(shared).lending.lost.as_ref().is_some_and(|why| why.contains("10.99.98.0/24")), "its own");
    });
}

#[test]
fn a_battery_that_answers_late_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let battery = folder.path().join("BAT0");
    fs::create_dir(&battery).unwrap();
    for (name, text) in [("type", "Battery"), ("capacity", "42")] {
        fs::write(battery.join(name), text).unwrap();
    }
    let status = battery.join("status");
    rustix::fs::mknodat(rustix::fs::CWD, &status, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let shared = Mutex::new(Shared {
        lending: Lending::new(None, None, None),
        status: RelayStatus::default(),
        header_bytes: 0,
        vacated: Slots::default(),
        replacements: 0,
    });
    thread::scope(|scope| {
        scope.spawn(|| look_at_battery(folder.path(), &shared));
        // This waits until the other side reads.
        let mut slow = fs::File::options().write(true).open(&status).unwrap();
        assert!(shared.try_lock().is_ok());
        slow.write_all(b"Discharging\n").unwrap();
    });
    assert_eq!(lock(&shared).lending.battery_percent, Some(42));
}

#[test]
fn an_interface_that_was_lost_meanwhile_is_not_lent_when_the_rules_are_back() {
    with_a_keeper("unguarded", |host, mut keeper| {
        let shared = keeper.shared;
        let lost = || lock(shared).lending.lost.clone().unwrap_or_default();
        keeper.handle_guard();
        assert_eq!(lost(), "");
        let (mut owner, orders) = occupy(host);
        keeper.handle_guard();
        assert!(lost().contains("firewall rules are missing"), "{}", lost());
        host.ip([format!("link set {FAR} down")]).unwrap();
        wait_until("the interface is lost", || {
            keeper.follow().unwrap();
            !lost().contains("firewall")
        });
        let why = lost();
        drop(orders);
        owner.wait().unwrap();
        wait_until("the rules are back", || {
            keeper.handle_guard();
            !keeper.is_unguarded
        });
        assert_eq!(lost(), why);
        host.ip([format!("link set {FAR} up")]).unwrap();
        wait_until("it is lent again", || {
            keeper.follow().unwrap();
            lost().is_empty()
        });
    });
}
