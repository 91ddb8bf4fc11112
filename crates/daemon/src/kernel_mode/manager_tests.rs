//! Subflows that connections get, lose and get again.

use std::io::ErrorKind;

use linux::mptcp::{Ends, Event, Origin, Socket, State, Traffic};
use units::{Duration, Instant};

use super::connection::Unanswered;
use super::manager::{Command, Manager, View};
use crate::proxy::choice::Tier;

const TOKEN: u32 = 7;

fn view(number: u32, tier: Tier) -> View {
    let address = format!("192.168.{number}.10").parse().unwrap();
    let (addresses, others) = (vec![address], Vec::new());
    View { interface: number, addresses, others, tier, is_usable: true, is_default: number == 1 }
}

fn views(second: Tier) -> Vec<View> {
    vec![view(1, Tier::Primary), view(2, second)]
}

fn ends(number: u32, port: u16) -> Ends {
    let local = format!("192.168.{number}.10:{port}").parse().unwrap();
    Ends { local, remote: "10.9.9.9:80".parse().unwrap() }
}

fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

/// Begins a connection over the first of two uplinks. Returns the resulting commands.
fn begun(second: Tier) -> (Manager, Vec<Command>) {
    let mut manager = Manager::default();
    manager.set_uplinks(views(second));
    manager.handle(Event::Established { token: TOKEN, ends: ends(1, 1000), is_server: false, no_join: false }, at(0));
    let commands = manager.commands(at(0));
    (manager, commands)
}

fn established(manager: &mut Manager, number: u32, port: u16, backup: bool, now: Instant) {
    let event = Event::SubflowEstablished { token: TOKEN, ends: ends(number, port), interface: Some(number), backup };
    manager.handle(event, now);
}

fn closed(manager: &mut Manager, number: u32, port: u16, now: Instant) {
    manager.handle(Event::SubflowClosed { token: TOKEN, ends: ends(number, port) }, now);
}

fn create(token: u32, uplink: usize) -> Command {
    let from = Origin { ip: "192.168.2.10".parse().unwrap(), id: 1, interface: 2, backup: false };
    Command::Create { token, uplink, from, to: "10.9.9.9:80".parse().unwrap() }
}

fn creates(commands: &[Command]) -> Vec<usize> {
    let uplink = |command: &Command| if let Command::Create { uplink, .. } = command { Some(*uplink) } else { None };
    commands.iter().filter_map(uplink).collect()
}

#[test]
fn a_connection_gets_a_subflow_over_every_other_uplink() {
    let (mut manager, commands) = begun(Tier::Backup);
    let from = Origin { ip: "192.168.2.10".parse().unwrap(), id: 1, interface: 2, backup: true };
    let to = "10.9.9.9:80".parse().unwrap();
    assert_eq!(commands, [Command::Create { token: TOKEN, uplink: 1, from, to }]);
    established(&mut manager, 2, 2000, true, at(1));
    assert_eq!(manager.commands(at(1)), []);
    assert_eq!(manager.deadline(), None);
}

#[test]
fn what_dies_is_made_again_after_a_pause_that_doubles() {
    let (mut manager, _) = begun(Tier::Primary);
    let mut now = at(1);
    for pause in [1, 2, 4, 8, 16, 30, 30] {
        established(&mut manager, 2, 2000, false, now);
        assert_eq!(manager.commands(now), []);
        now += Duration::from_secs(2);
        closed(&mut manager, 2, 2000, now);
        assert_eq!(manager.commands(now), [], "not at once");
        assert_eq!(manager.deadline(), Some(now + Duration::from_secs(pause)));
        now += Duration::from_secs(pause);
        assert_eq!(creates(&manager.commands(now)), [1]);
    }
    // A subflow with a long life starts again from a short pause.
    established(&mut manager, 2, 2000, false, now);
    now += Duration::from_secs(60);
    closed(&mut manager, 2, 2000, now);
    manager.commands(now);
    assert_eq!(manager.deadline(), Some(now + Duration::from_secs(1)));
    assert_eq!(manager.totals().remade, 7);
}

/// A server at its limit of subflows resets them after the handshake.
#[test]
fn what_ends_as_soon_as_it_is_there_did_not_come_about() {
    let (mut manager, _) = begun(Tier::Primary);
    established(&mut manager, 2, 2000, false, at(1));
    closed(&mut manager, 2, 2000, at(1));
    assert_eq!(creates(&manager.commands(at(2))), [1]);
    let totals = manager.totals();
    assert_eq!((totals.created, totals.remade, totals.failed), (2, 0, 1));
    // The connection ends before the second attempt is answered.
    manager.handle(Event::Closed { token: TOKEN }, at(3));
    assert_eq!(manager.totals().failed, 2);
}

#[test]
fn a_handshake_without_an_answer_is_a_failure() {
    let (mut manager, _) = begun(Tier::Primary);
    assert_eq!(manager.deadline(), Some(at(8)));
    assert_eq!(manager.commands(at(8)), []);
    assert_eq!(manager.deadline(), Some(at(9)));
    assert_eq!(creates(&manager.commands(at(9))), [1]);
    assert_eq!(manager.totals().failed, 1);
    // The server may be one that nobody reaches over this uplink.
    assert_eq!(manager.take_unanswered(), [Unanswered { uplink: 1, begun: at(0), had_subflow: false }]);
}

/// The kernel repeats a SYN for longer than the manager waits, so all attempts over a path that heals succeed at once.
#[test]
fn of_attempts_that_succeed_together_one_stays() {
    let (mut manager, _) = begun(Tier::Primary);
    manager.commands(at(8));
    assert_eq!(creates(&manager.commands(at(9))), [1]);
    manager.commands(at(17));
    assert_eq!(creates(&manager.commands(at(19))), [1]);
    for port in [2000, 2001, 2002] {
        established(&mut manager, 2, port, false, at(20));
    }
    let destroy = |port| Command::Destroy { token: TOKEN, ends: ends(2, port) };
    assert_eq!(manager.commands(at(20)), [destroy(2001), destroy(2002)]);
    [2001, 2002].into_iter().for_each(|port| closed(&mut manager, 2, port, at(20)));
    assert_eq!((manager.commands(at(20)), manager.deadline()), (Vec::new(), None));
    // One that comes even later goes, too, and its end is no failure.
    established(&mut manager, 2, 2003, false, at(30));
    assert_eq!(manager.commands(at(30)), [destroy(2003)]);
    closed(&mut manager, 2, 2003, at(30));
    assert_eq!((manager.commands(at(30)), manager.deadline()), (Vec::new(), None));
    assert_eq!(manager.totals().failed, 2);
}

#[test]
fn the_late_end_of_an_attempt_is_no_failure_of_the_present_one() {
    let (mut manager, _) = begun(Tier::Primary);
    manager.commands(at(8));
    assert_eq!(creates(&manager.commands(at(9))), [1]);
    closed(&mut manager, 2, 2000, at(10));
    assert_eq!((manager.commands(at(10)), manager.deadline()), (Vec::new(), Some(at(17))), "it is still awaited");
    assert_eq!(manager.totals().failed, 1, "it counts once");
    closed(&mut manager, 2, 2001, at(11));
    assert_eq!((manager.commands(at(11)), manager.deadline()), (Vec::new(), Some(at(13))), "it was refused");
    // The first attempt succeeds while the second is open, which then fails without a word.
    let (mut manager, _) = begun(Tier::Primary);
    manager.commands(at(8));
    manager.commands(at(9));
    established(&mut manager, 2, 2000, false, at(10));
    closed(&mut manager, 2, 2001, at(11));
    assert_eq!((manager.commands(at(11)), manager.deadline(), manager.totals().failed), (Vec::new(), None, 1));
}

#[test]
fn each_address_of_the_peer_is_tried_in_its_turn() {
    let (mut manager, _) = begun(Tier::Primary);
    for (id, ip) in [(3, "10.9.9.8"), (4, "2001:db8::1"), (5, "10.9.9.7")] {
        manager.handle(Event::Announced { token: TOKEN, id, ip: ip.parse().unwrap(), port: None }, at(0));
    }
    let mut now = at(0);
    for tried in ["10.9.9.8:80", "10.9.9.7:80", "10.9.9.9:80", "10.9.9.8:80"] {
        closed(&mut manager, 2, 2000, now);
        manager.commands(now);
        now = manager.deadline().unwrap();
        let commands = manager.commands(now);
        let Command::Create { to, .. } = commands[0] else { panic!("{commands:?}") };
        assert_eq!(to, tried.parse().unwrap());
    }
}

#[test]
fn an_address_that_has_worked_is_tried_first() {
    let (mut manager, _) = begun(Tier::Primary);
    let announced = Event::Announced { token: TOKEN, id: 3, ip: "10.9.9.8".parse().unwrap(), port: None };
    manager.handle(announced, at(0));
    established(&mut manager, 2, 2000, false, at(0));
    closed(&mut manager, 2, 2000, at(60));
    manager.commands(at(60));
    let commands = manager.commands(at(61));
    assert!(
        matches!(commands[..], [Command::Create { to, .. }] if to == "10.9.9.9:80".parse().unwrap()),
        "{commands:?}"
    );
}

#[test]
fn a_client_of_ours_may_have_several_subflows_from_one_address() {
    let mut manager = Manager::default();
    manager.set_uplinks(views(Tier::Primary));
    manager.handle(Event::Established { token: TOKEN, ends: ends(1, 80), is_server: true, no_join: false }, at(0));
    manager.commands(at(0));
    for remote in ["10.9.9.9:5001", "10.9.9.9:5002"] {
        let ends = Ends { remote: remote.parse().unwrap(), ..ends(1, 80) };
        let event = Event::SubflowEstablished { token: TOKEN, ends, interface: None, backup: false };
        manager.handle(event, at(1));
    }
    assert_eq!(manager.commands(at(1)), []);
}

#[test]
fn the_first_subflow_is_made_again_too() {
    let (mut manager, _) = begun(Tier::Primary);
    established(&mut manager, 2, 2000, false, at(0));
    closed(&mut manager, 1, 1000, at(20));
    manager.commands(at(20));
    assert_eq!(creates(&manager.commands(at(21))), [0]);
}

#[test]
fn a_lost_uplink_is_left_at_once_and_used_again_when_it_is_back() {
    let (mut manager, _) = begun(Tier::Primary);
    established(&mut manager, 2, 2000, false, at(0));
    let mut uplinks = views(Tier::Primary);
    uplinks[0].is_usable = false;
    manager.set_uplinks(uplinks.clone());
    assert_eq!(manager.commands(at(1)), [Command::Destroy { token: TOKEN, ends: ends(1, 1000) }]);
    closed(&mut manager, 1, 1000, at(1));
    assert_eq!(manager.commands(at(1)), []);
    // The uplink returns with another interface and address.
    uplinks[0] = View { interface: 9, ..view(3, Tier::Primary) };
    manager.set_uplinks(uplinks);
    let commands = manager.commands(at(2));
    let Command::Create { from, .. } = commands[0] else { panic!("{commands:?}") };
    assert_eq!((from.interface, from.ip.to_string(), from.id), (9, "192.168.3.10".into(), 2));
}

#[test]
fn the_only_subflow_stays_until_there_is_another() {
    let (mut manager, _) = begun(Tier::Primary);
    let mut uplinks = views(Tier::Primary);
    uplinks.iter_mut().for_each(|uplink| uplink.is_usable = false);
    manager.set_uplinks(uplinks);
    assert_eq!(manager.commands(at(1)), [], "nothing is better than a dead one");
    manager.set_uplinks(views(Tier::Primary));
    assert_eq!(creates(&manager.commands(at(2))), [0, 1], "the first may be dead although its uplink is back");
    established(&mut manager, 2, 2000, false, at(3));
    let commands = manager.commands(at(3));
    assert!(commands.contains(&Command::Destroy { token: TOKEN, ends: ends(1, 1000) }), "{commands:?}");
}

#[test]
fn tiers_change_what_is_there() {
    let (mut manager, _) = begun(Tier::Primary);
    established(&mut manager, 2, 2000, false, at(0));
    manager.set_uplinks(views(Tier::Backup));
    let ends = ends(2, 2000);
    assert_eq!(manager.commands(at(1)), [Command::SetBackup { token: TOKEN, ends, backup: true }]);
    manager.set_uplinks(views(Tier::Secondary));
    assert_eq!(manager.commands(at(2)), [Command::SetBackup { token: TOKEN, ends, backup: false }]);
    manager.set_uplinks(views(Tier::Never));
    assert_eq!(manager.commands(at(3)), [Command::Destroy { token: TOKEN, ends }]);
    closed(&mut manager, 2, 2000, at(3));
    assert_eq!(manager.commands(at(60)), [], "and nothing comes instead");
}

#[test]
fn another_tier_is_no_reason_to_repeat_an_attempt() {
    let (mut manager, _) = begun(Tier::Primary);
    manager.set_uplinks(views(Tier::Backup));
    assert_eq!(manager.commands(at(0)), []);
    established(&mut manager, 2, 2000, false, at(1));
    assert_eq!(manager.commands(at(1)), [set_backup(2, 2000, true)]);
    assert_eq!((manager.totals().created, manager.totals().failed), (1, 0));
}

/// Returns when the subflow over the first uplink ends, which is not to be used any more.
fn left_at(manager: &mut Manager, now: Instant) -> Option<Instant> {
    let mut uplinks = views(Tier::Primary);
    uplinks[0].tier = Tier::Never;
    manager.set_uplinks(uplinks);
    let ended = Command::Destroy { token: TOKEN, ends: ends(1, 1000) };
    let due = if manager.commands(now).contains(&ended) { Some(now) } else { manager.deadline() };
    due.filter(|due| *due == now || manager.commands(*due).contains(&ended))
}

#[test]
fn what_works_ends_only_if_what_stays_is_not_about_to_be_reset_or_in_doubt() {
    let (mut manager, _) = begun(Tier::Primary);
    established(&mut manager, 2, 2000, false, at(9));
    assert_eq!(left_at(&mut manager, at(9)), Some(at(11)), "the server may have no room for the other one");
    let (mut manager, _) = doubted();
    assert_eq!(left_at(&mut manager, at(61)), None);
    established(&mut manager, 2, 2001, false, at(62));
    assert_eq!(left_at(&mut manager, at(62)), Some(at(64)));
}

#[test]
fn a_priority_that_the_kernel_refuses_is_not_taken_for_set() {
    let (mut manager, _) = begun(Tier::Primary);
    established(&mut manager, 2, 2000, false, at(0));
    manager.set_uplinks(views(Tier::Backup));
    let order = Command::SetBackup { token: TOKEN, ends: ends(2, 2000), backup: true };
    let mut now = at(1);
    for pause in [1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(manager.commands(now), [order]);
        manager.refused(order, ErrorKind::InvalidInput, now);
        assert_eq!(manager.deadline(), Some(now + Duration::from_secs(pause)));
        now += Duration::from_secs(pause);
    }
    assert_eq!((manager.commands(now), manager.deadline()), (vec![order], None));
    // The next refusal is a first one again.
    manager.set_uplinks(views(Tier::Backup));
    assert_eq!(manager.commands(now), []);
    manager.set_uplinks(views(Tier::Primary));
    let order = Command::SetBackup { token: TOKEN, ends: ends(2, 2000), backup: false };
    assert_eq!(manager.commands(now), [order]);
    manager.refused(order, ErrorKind::InvalidInput, now);
    assert_eq!(manager.deadline(), Some(now + Duration::from_secs(1)));
    // Nobody knows what the kernel made of it, so whatever is wanted now is said.
    manager.set_uplinks(views(Tier::Backup));
    let order = Command::SetBackup { token: TOKEN, ends: ends(2, 2000), backup: true };
    assert_eq!(manager.commands(now), [order]);
    assert_eq!((manager.commands(now + Duration::from_secs(1)), manager.deadline()), (Vec::new(), None));
}

#[test]
fn addresses_that_the_kernel_does_not_tell_are_told_again() {
    let mut manager = Manager::default();
    manager.set_uplinks(views(Tier::Primary));
    manager.handle(Event::Established { token: TOKEN, ends: ends(1, 80), is_server: true, no_join: false }, at(0));
    let ip = "192.168.2.10".parse().unwrap();
    let announce = Command::Announce { token: TOKEN, ip, id: 1 };
    let withdraw = Command::Withdraw { token: TOKEN, ip, id: 1 };
    for (tier, order, began) in [(Tier::Primary, announce, at(1)), (Tier::Never, withdraw, at(10))] {
        manager.set_uplinks(views(tier));
        assert_eq!(manager.commands(began), [order]);
        manager.refused(order, ErrorKind::OutOfMemory, began);
        let again_at = began + Duration::from_secs(1);
        assert_eq!(manager.deadline(), Some(again_at));
        assert_eq!((manager.commands(again_at), manager.deadline()), (vec![order], None));
        manager.set_uplinks(views(tier));
        assert_eq!(manager.commands(again_at), []);
    }
}

#[test]
fn joins_that_the_peer_does_not_want_are_not_tried() {
    let mut manager = Manager::default();
    manager.set_uplinks(views(Tier::Primary));
    manager.handle(Event::Established { token: TOKEN, ends: ends(1, 1000), is_server: false, no_join: true }, at(0));
    assert_eq!(manager.commands(at(0)), []);
    let ip = "10.9.9.8".parse().unwrap();
    manager.handle(Event::Announced { token: TOKEN, id: 3, ip, port: None }, at(1));
    let commands = manager.commands(at(1));
    let Command::Create { to, .. } = commands[0] else { panic!("{commands:?}") };
    assert_eq!(to, "10.9.9.8:80".parse().unwrap());
}

#[test]
fn a_server_opens_nothing_and_tells_its_addresses_to_who_may_reach_them() {
    let began = |peer: &str| {
        let mut manager = Manager::default();
        manager.set_uplinks(views(Tier::Primary));
        let ends = Ends { local: "192.168.1.10:80".parse().unwrap(), remote: peer.parse().unwrap() };
        manager.handle(Event::Established { token: TOKEN, ends, is_server: true, no_join: false }, at(0));
        manager
    };
    assert_eq!(began("192.0.2.1:5000").commands(at(0)), [], "private addresses are nothing to the Internet");
    let mut manager = began("10.9.9.9:5000");
    let ip = "192.168.2.10".parse().unwrap();
    assert_eq!(manager.commands(at(0)), [Command::Announce { token: TOKEN, ip, id: 1 }]);
    manager.handle(Event::Removed { token: TOKEN, id: 5 }, at(1));
    assert_eq!(manager.commands(at(1)), [], "once");
    manager.set_uplinks(views(Tier::Never));
    assert_eq!(manager.commands(at(2)), [Command::Withdraw { token: TOKEN, ip, id: 1 }]);
    manager.set_uplinks(views(Tier::Primary));
    assert_eq!(manager.commands(at(3)), [Command::Announce { token: TOKEN, ip, id: 1 }]);
}

#[test]
fn connections_within_this_host_are_left_alone() {
    for (local, remote) in [
        ("127.0.0.1:5000", "127.0.0.1:80"),
        ("[::1]:5000", "[::1]:80"),
        ("172.17.0.1:5000", "172.17.0.1:80"),
        ("192.168.2.10:5000", "192.168.1.10:80"),
    ] {
        let ends = Ends { local: local.parse().unwrap(), remote: remote.parse().unwrap() };
        for is_server in [false, true] {
            let mut manager = Manager::default();
            manager.set_uplinks(views(Tier::Primary));
            manager.handle(Event::Established { token: TOKEN, ends, is_server, no_join: false }, at(0));
            let ip = "192.168.1.10".parse().unwrap();
            manager.handle(Event::Announced { token: TOKEN, id: 3, ip, port: None }, at(0));
            manager.adopt(&[Socket { ends, ..found(1, 1000) }], at(0));
            assert_eq!((manager.commands(at(0)), manager.deadline()), (Vec::new(), None), "{local}");
            assert_eq!((manager.totals().connections, manager.uplink_of(ends, None)), (0, None), "{local}");
        }
    }
}

#[test]
fn further_subflows_lead_to_no_address_of_this_host_or_of_a_link() {
    let mut manager = Manager::default();
    let mut uplinks = views(Tier::Primary);
    uplinks[1].addresses.push("2001:db8::2".parse().unwrap());
    manager.set_uplinks(uplinks);
    let ends = Ends { local: "[fe80::1]:1000".parse().unwrap(), remote: "[fe80::9]:80".parse().unwrap() };
    manager.handle(Event::Established { token: TOKEN, ends, is_server: false, no_join: false }, at(0));
    for (id, ip) in [(3, "127.0.0.1"), (4, "::1"), (5, "192.168.1.10"), (6, "169.254.7.7"), (7, "0.0.0.0")] {
        manager.handle(Event::Announced { token: TOKEN, id, ip: ip.parse().unwrap(), port: None }, at(0));
    }
    assert_eq!(manager.commands(at(0)), []);
    let ip = "2001:db8::9".parse().unwrap();
    manager.handle(Event::Announced { token: TOKEN, id: 3, ip, port: None }, at(1));
    let commands = manager.commands(at(1));
    let [Command::Create { to, .. }] = commands[..] else { panic!("{commands:?}") };
    assert_eq!(to, "[2001:db8::9]:80".parse().unwrap());
}

#[test]
fn a_former_address_that_stays_keeps_its_subflows_and_what_begins_has_the_new_one() {
    let (mut manager, _) = begun(Tier::Primary);
    established(&mut manager, 2, 2000, false, at(0));
    let [first, former] = ["192.168.2.77", "192.168.2.10"].map(|ip| ip.parse().unwrap());
    let mut uplinks = views(Tier::Primary);
    uplinks[1].addresses = vec![first, former];
    manager.set_uplinks(uplinks.clone());
    assert_eq!(manager.commands(at(1)), []);
    let ends = Ends { local: "192.168.1.10:80".parse().unwrap(), remote: "10.9.9.9:5000".parse().unwrap() };
    manager.handle(Event::Established { token: TOKEN + 1, ends, is_server: true, no_join: false }, at(1));
    let told = manager.commands(at(1));
    assert!(matches!(told[..], [Command::Announce { ip, .. }] if ip == first), "{told:?}");
    // A connection that this host serves from the former address needs no other subflow there.
    let ends = Ends { local: std::net::SocketAddr::new(former, 80), remote: "10.9.9.9:5001".parse().unwrap() };
    manager.handle(Event::Established { token: TOKEN + 2, ends, is_server: true, no_join: false }, at(1));
    let told = manager.commands(at(1));
    assert!(told.iter().all(|it| !matches!(it, Command::Announce { ip, .. } if *ip == first)), "{told:?}");
    uplinks[1].addresses = vec![first];
    manager.set_uplinks(uplinks);
    let commands = manager.commands(at(2));
    let begins = |command: &Command| matches!(command, Command::Create { from, .. } if from.ip == first);
    assert!(
        commands.iter().any(|it| matches!(it, Command::Destroy { .. })) && commands.iter().any(begins),
        "{commands:?}"
    );
}

/// The kernel may begin from another one than the uplink is known by.
#[test]
fn a_connection_may_begin_from_any_address_of_an_uplink() {
    let ends = Ends { local: "10.50.0.7:1000".parse().unwrap(), ..ends(1, 1000) };
    let begun = || {
        let mut uplinks = views(Tier::Primary);
        uplinks[0].others = vec!["10.50.0.7".parse().unwrap()];
        let mut manager = Manager::default();
        manager.set_uplinks(uplinks.clone());
        manager.handle(Event::Established { token: TOKEN, ends, is_server: false, no_join: false }, at(0));
        assert_eq!(creates(&manager.commands(at(0))), [1], "the first one has one");
        established(&mut manager, 2, 2000, false, at(1));
        assert_eq!(manager.commands(at(1)), []);
        (manager, uplinks)
    };
    let (mut manager, mut uplinks) = begun();
    uplinks[0].tier = Tier::Backup;
    manager.set_uplinks(uplinks.clone());
    assert_eq!(manager.commands(at(2)), [Command::SetBackup { token: TOKEN, ends, backup: true }]);
    uplinks[0].tier = Tier::Never;
    manager.set_uplinks(uplinks);
    assert_eq!(manager.commands(at(3)), [Command::Destroy { token: TOKEN, ends }]);
    // It goes on until the address goes, or the uplink.
    let (mut manager, mut uplinks) = begun();
    uplinks[0].addresses = vec!["192.168.1.77".parse().unwrap()];
    manager.set_uplinks(uplinks.clone());
    assert_eq!(manager.commands(at(2)), []);
    uplinks[0].others.clear();
    manager.set_uplinks(uplinks);
    assert!(manager.commands(at(3)).contains(&Command::Destroy { token: TOKEN, ends }));
    let (mut manager, mut uplinks) = begun();
    uplinks[0].is_usable = false;
    manager.set_uplinks(uplinks);
    assert_eq!(manager.commands(at(2)), [Command::Destroy { token: TOKEN, ends }]);
}

/// An uplink gets further addresses without another change.
#[test]
fn addresses_that_no_uplink_is_known_to_have_are_told() {
    let mut manager = Manager::default();
    let mut uplinks = views(Tier::Primary);
    manager.set_uplinks(uplinks.clone());
    let strange = "192.168.1.77".parse().unwrap();
    let ends = Ends { local: "192.168.1.77:1000".parse().unwrap(), ..ends(1, 1000) };
    manager.handle(Event::Established { token: TOKEN, ends, is_server: false, no_join: false }, at(0));
    assert_eq!(manager.strange_addresses().into_iter().collect::<Vec<_>>(), [strange]);
    assert_eq!(creates(&manager.commands(at(0))), [0, 1]);
    uplinks[0].addresses.push(strange);
    manager.set_uplinks(uplinks);
    assert!(manager.strange_addresses().is_empty());
    let later: Vec<_> = (1..=9).flat_map(|second| creates(&manager.commands(at(second)))).collect();
    assert_eq!(later, [1], "the first one has one");
    // The other one, which was under way, takes a place at the server.
    established(&mut manager, 1, 3000, false, at(9));
    let commands = manager.commands(at(9));
    assert_eq!(commands, [Command::Destroy { token: TOKEN, ends: self::ends(1, 3000) }]);
    closed(&mut manager, 1, 3000, at(9));
    assert_eq!((creates(&manager.commands(at(9))), manager.totals().failed), (vec![], 1), "the one over the second");
}

#[test]
fn attempts_under_way_go_on_when_their_uplink_gets_further_addresses() {
    let (mut manager, _) = begun(Tier::Primary);
    let mut uplinks = views(Tier::Primary);
    uplinks[1].addresses.push("192.168.2.77".parse().unwrap());
    uplinks[1].others.push("10.50.0.7".parse().unwrap());
    manager.set_uplinks(uplinks.clone());
    assert_eq!((manager.commands(at(1)), manager.deadline(), manager.totals().failed), (vec![], Some(at(8)), 0));
    // What begins now has another address.
    uplinks[1].addresses.swap(0, 1);
    manager.set_uplinks(uplinks);
    assert_eq!((creates(&manager.commands(at(1))), manager.totals().failed), (vec![1], 1));
}

/// A program has bound it to the interface and to an address that is not listed yet.
#[test]
fn a_bound_subflow_from_an_address_that_is_not_listed_stays_until_the_address_goes() {
    let mut manager = Manager::default();
    let mut uplinks = views(Tier::Primary);
    manager.set_uplinks(uplinks.clone());
    let strange = "192.168.1.77".parse().unwrap();
    let ends = Ends { local: "192.168.1.77:1000".parse().unwrap(), ..ends(1, 1000) };
    manager.handle(Event::Established { token: TOKEN, ends, is_server: false, no_join: false }, at(0));
    manager.note_interfaces(&[Socket { ends, ..found(1, 1000) }]);
    established(&mut manager, 2, 2000, false, at(0));
    assert_eq!(manager.commands(at(0)), []);
    assert_eq!(manager.strange_addresses().into_iter().collect::<Vec<_>>(), [strange]);
    uplinks[1].tier = Tier::Backup;
    manager.set_uplinks(uplinks.clone());
    assert_eq!(manager.commands(at(1)), [set_backup(2, 2000, true)]);
    uplinks[0].addresses.push(strange);
    manager.set_uplinks(uplinks.clone());
    assert!(manager.commands(at(2)).is_empty() && manager.strange_addresses().is_empty());
    uplinks[0].addresses.pop();
    manager.set_uplinks(uplinks);
    assert!(manager.commands(at(3)).contains(&Command::Destroy { token: TOKEN, ends }));
}

#[test]
fn two_uplinks_with_one_address_are_told_by_their_interfaces() {
    let mut uplinks = views(Tier::Primary);
    uplinks[1].addresses = uplinks[0].addresses.clone();
    let mut manager = Manager::default();
    manager.set_uplinks(uplinks);
    manager.handle(Event::Established { token: TOKEN, ends: ends(1, 1000), is_server: false, no_join: false }, at(0));
    assert_eq!(creates(&manager.commands(at(0))), [1]);
    let event = Event::SubflowEstablished { token: TOKEN, ends: ends(1, 2000), interface: Some(2), backup: false };
    manager.handle(event, at(0));
    assert_eq!((manager.commands(at(1)), manager.deadline()), (Vec::new(), None));
}

/// The event of a first subflow does not tell that its program has bound it.
#[test]
fn a_first_subflow_is_over_the_interface_that_a_look_shows() {
    let mut uplinks = views(Tier::Primary);
    uplinks[1].addresses = uplinks[0].addresses.clone();
    let mut manager = Manager::default();
    manager.set_uplinks(uplinks.clone());
    manager.handle(Event::Established { token: TOKEN, ends: ends(1, 1000), is_server: false, no_join: false }, at(0));
    assert_eq!(creates(&manager.commands(at(0))), [1]);
    let event = Event::SubflowEstablished { token: TOKEN, ends: ends(1, 2000), interface: Some(2), backup: false };
    manager.handle(event, at(0));
    let bound = |port| Socket { interface: Some(2), ..found(1, port) };
    manager.note_interfaces(&[bound(1000), bound(2000)]);
    let destroy = |port| Command::Destroy { token: TOKEN, ends: ends(1, port) };
    let commands = manager.commands(at(1));
    assert_eq!((commands[0], creates(&commands)), (destroy(2000), vec![0]));
    closed(&mut manager, 1, 2000, at(1));
    let event = Event::SubflowEstablished { token: TOKEN, ends: ends(1, 3000), interface: Some(1), backup: false };
    manager.handle(event, at(1));
    manager.note_interfaces(&[bound(1000)]);
    assert_eq!((manager.commands(at(2)), manager.deadline()), (Vec::new(), None));
    uplinks[1].is_usable = false;
    manager.set_uplinks(uplinks);
    assert_eq!(manager.commands(at(3)), [destroy(1000)]);
}

#[test]
fn events_of_unknown_connections_do_nothing() {
    let mut manager = Manager::default();
    manager.set_uplinks(views(Tier::Primary));
    established(&mut manager, 2, 2000, false, at(0));
    closed(&mut manager, 2, 2000, at(0));
    manager.handle(Event::Removed { token: 1, id: 1 }, at(0));
    manager.handle(Event::Lost, at(0));
    manager.refused(create(1, 40), ErrorKind::InvalidInput, at(0));
    manager.refused(Command::SetBackup { token: 1, ends: ends(2, 2000), backup: true }, ErrorKind::InvalidInput, at(0));
    assert_eq!((manager.commands(at(1)), manager.connections()), (Vec::new(), 0));
}

#[test]
fn an_attempt_that_the_kernel_refuses_is_repeated_after_the_pause() {
    let (mut manager, _) = begun(Tier::Primary);
    manager.refused(create(TOKEN, 1), ErrorKind::InvalidInput, at(0));
    assert_eq!(manager.deadline(), Some(at(0)), "to be looked at");
    assert_eq!((manager.commands(at(0)), manager.deadline()), (Vec::new(), Some(at(1))));
    assert_eq!(creates(&manager.commands(at(1))), [1]);
}

/// The daemon found it at its start: it belongs to the kernel's own path manager, or an earlier daemon left it.
#[test]
fn a_connection_that_was_found_is_left_alone_only_if_the_kernel_says_that_it_is_not_ours() {
    let state = State::Subflow { token: TOKEN, cookie: 1, traffic: Traffic::default() };
    let found = Socket { ends: ends(1, 1000), interface: None, state };
    for (why, stays) in [
        (ErrorKind::InvalidInput, false),
        (ErrorKind::NotConnected, true),
        (ErrorKind::NetworkUnreachable, true),
        (ErrorKind::Other, true),
    ] {
        let mut manager = Manager::default();
        manager.set_uplinks(views(Tier::Primary));
        manager.adopt(&[found], at(0));
        assert_eq!(creates(&manager.commands(at(0))), [1]);
        manager.refused(create(TOKEN, 1), why, at(0));
        assert_eq!(manager.connections(), usize::from(stays), "{why}");
        manager.commands(at(0));
        assert_eq!(creates(&manager.commands(at(1))), if stays { vec![1] } else { vec![] }, "{why}");
    }
}

fn found(number: u32, port: u16) -> Socket {
    let state = State::Subflow { token: TOKEN, cookie: u64::from(port), traffic: Traffic::default() };
    Socket { ends: ends(number, port), interface: Some(number), state }
}

fn set_backup(number: u32, port: u16, backup: bool) -> Command {
    Command::SetBackup { token: TOKEN, ends: ends(number, port), backup }
}

/// An earlier daemon has left them, and nobody knows as what.
#[test]
fn subflows_that_were_found_are_told_what_they_are() {
    for (tier, backup) in [(Tier::Primary, false), (Tier::Backup, true)] {
        let mut manager = Manager::default();
        manager.set_uplinks(views(tier));
        manager.adopt(&[found(1, 1000), found(2, 2000)], at(0));
        let orders = [set_backup(1, 1000, false), set_backup(2, 2000, backup)];
        assert_eq!((manager.commands(at(0)), manager.deadline()), (orders.to_vec(), None));
        // Events were lost, and all are found again.
        manager.adopt(&[found(1, 1000), found(2, 2000)], at(1));
        assert_eq!(manager.commands(at(1)), [], "what is known stays known");
    }
}

#[test]
fn a_found_connection_is_left_if_its_priority_is_refused_twice_while_the_subflow_is_there() {
    for (why, stays) in [(ErrorKind::InvalidInput, false), (ErrorKind::OutOfMemory, true)] {
        let mut manager = Manager::default();
        manager.set_uplinks(views(Tier::Primary));
        manager.adopt(&[found(1, 1000), found(2, 2000)], at(0));
        for (now, count) in [(at(0), 1), (at(1), usize::from(stays))] {
            let orders = manager.commands(now);
            assert_eq!(orders, [set_backup(1, 1000, false), set_backup(2, 2000, false)]);
            orders.into_iter().for_each(|order| manager.refused(order, why, now));
            assert_eq!(manager.connections(), count, "{why}");
        }
    }
    // One that has ended is refused in the same way.
    let mut manager = Manager::default();
    manager.set_uplinks(views(Tier::Primary));
    manager.adopt(&[found(1, 1000), found(2, 2000)], at(0));
    manager.commands(at(0));
    manager.refused(set_backup(2, 2000, false), ErrorKind::InvalidInput, at(0));
    closed(&mut manager, 2, 2000, at(0));
    assert!(!manager.commands(at(1)).iter().any(|order| matches!(order, Command::SetBackup { .. })));
    assert_eq!(manager.connections(), 1);
}

#[test]
fn an_attempt_whose_answer_was_lost_is_over_once_its_subflow_is_found() {
    let (mut manager, commands) = begun(Tier::Primary);
    assert_eq!(creates(&commands), [1]);
    manager.adopt(&[found(1, 1000)], at(1));
    assert_eq!((manager.commands(at(1)), manager.deadline()), (Vec::new(), Some(at(8))), "it may be on its way");
    manager.adopt(&[found(1, 1000), found(2, 2000)], at(2));
    assert_eq!((manager.commands(at(2)), manager.deadline()), (vec![set_backup(2, 2000, false)], None));
    assert_eq!(manager.doubt(&[(TOKEN, ends(2, 2000))], at(60)).len(), 1);
    assert_eq!(creates(&manager.commands(at(60))), [1]);
    // The answer to the replacement is lost, too.
    manager.adopt(&[found(1, 1000), found(2, 2000), found(2, 2001)], at(61));
    manager.handle(Event::Closed { token: TOKEN }, at(62));
    assert_eq!(manager.totals().failed, 0);
}

/// An uplink of two families may have a subflow of each.
#[test]
fn a_quiet_subflow_beside_another_one_over_its_uplink_is_not_doubted() {
    let mut manager = Manager::default();
    let mut both = views(Tier::Primary);
    both[1].addresses.push("fd00::10".parse().unwrap());
    manager.set_uplinks(both);
    manager.handle(Event::Established { token: TOKEN, ends: ends(1, 1000), is_server: false, no_join: false }, at(0));
    established(&mut manager, 2, 2000, false, at(0));
    let six = Ends { local: "[fd00::10]:2001".parse().unwrap(), remote: "[fd09::9]:80".parse().unwrap() };
    manager.handle(Event::SubflowEstablished { token: TOKEN, ends: six, interface: Some(2), backup: false }, at(0));
    manager.commands(at(1));
    assert!(manager.doubt(&[(TOKEN, six)], at(60)).is_empty());
    assert!(manager.commands(at(60)).is_empty() && manager.deadline().is_none());
    assert!(!manager.lacks_any(1));
    // Both are quiet: their uplink is.
    assert_eq!(manager.doubt(&[(TOKEN, six), (TOKEN, ends(2, 2000))], at(60)).len(), 2);
    assert_eq!(creates(&manager.commands(at(60))), [1]);
    assert!(manager.lacks_any(1));
    let destroyed = [ends(2, 2000), six].map(|ends| Command::Destroy { token: TOKEN, ends });
    assert_eq!(manager.commands(at(68)), destroyed);
}

/// Begins a connection with a subflow over both uplinks, and doubts the second one. Returns the resulting commands.
fn doubted() -> (Manager, Vec<Command>) {
    let (mut manager, _) = begun(Tier::Primary);
    established(&mut manager, 2, 2000, false, at(0));
    manager.commands(at(1));
    manager.doubt(&[(TOKEN, ends(2, 2000))], at(60));
    let commands = manager.commands(at(60));
    (manager, commands)
}

#[test]
fn a_subflow_in_doubt_is_replaced_once_another_one_lives() {
    let (mut manager, commands) = doubted();
    assert_eq!(commands, [create(TOKEN, 1)]);
    established(&mut manager, 2, 2001, false, at(61));
    assert!(manager.commands(at(61)).is_empty(), "the server may have no room for it");
    assert_eq!(manager.deadline(), Some(at(63)));
    assert_eq!(manager.commands(at(63)), [Command::Destroy { token: TOKEN, ends: ends(2, 2000) }]);
    closed(&mut manager, 2, 2000, at(63));
    assert!(manager.commands(at(90)).is_empty());
    assert!(manager.take_unanswered().is_empty());
}

#[test]
fn a_subflow_in_doubt_ends_if_its_uplink_does_not_answer() {
    let (mut manager, _) = doubted();
    let due = manager.deadline().unwrap();
    assert_eq!(due, at(68));
    assert_eq!(manager.commands(due), [Command::Destroy { token: TOKEN, ends: ends(2, 2000) }]);
    assert_eq!(manager.take_unanswered(), [Unanswered { uplink: 1, begun: at(60), had_subflow: true }]);
    closed(&mut manager, 2, 2000, due);
    assert!(manager.commands(due).is_empty());
    let again = manager.deadline().unwrap();
    assert_eq!(creates(&manager.commands(again)), [1], "the uplink may be heard again");
    // The only subflow that is left is not ended, whatever comes of it.
    manager.doubt(&[(TOKEN, ends(1, 1000))], at(100));
    let mut commands = manager.commands(at(100));
    (101..200).for_each(|second| commands.extend(manager.commands(at(second))));
    assert!(!commands.iter().any(|command| matches!(command, Command::Destroy { .. })), "{commands:?}");
}

#[test]
fn a_subflow_that_is_heard_again_stays_whatever_comes_of_the_attempt() {
    let (mut manager, _) = doubted();
    manager.believe(TOKEN, ends(2, 2000));
    for second in 60..200 {
        assert!(manager.commands(at(second)).is_empty());
    }
    // The kernel gives up the attempt after two minutes. The next doubt leads to another one.
    closed(&mut manager, 2, 2001, at(200));
    assert!(manager.commands(at(200)).is_empty());
    manager.doubt(&[(TOKEN, ends(2, 2000))], at(260));
    assert_eq!(manager.commands(at(260)), [create(TOKEN, 1)]);
    // This one is answered, but the old one is heard first.
    manager.believe(TOKEN, ends(2, 2000));
    established(&mut manager, 2, 2002, false, at(261));
    assert_eq!(manager.commands(at(261)), [Command::Destroy { token: TOKEN, ends: ends(2, 2002) }]);
}

#[test]
fn a_subflow_in_doubt_stays_if_its_server_answers_but_has_no_room_for_another() {
    let (mut manager, _) = doubted();
    established(&mut manager, 2, 2001, false, at(61));
    manager.commands(at(61));
    closed(&mut manager, 2, 2001, at(61));
    for second in 61..120 {
        assert!(manager.commands(at(second)).is_empty());
    }
    assert!(manager.take_unanswered().is_empty());
}

#[test]
fn subflows_of_servers_are_not_replaced() {
    let mut manager = Manager::default();
    manager.set_uplinks(views(Tier::Primary));
    manager.handle(Event::Established { token: TOKEN, ends: ends(1, 80), is_server: true, no_join: false }, at(0));
    established(&mut manager, 2, 80, false, at(0));
    manager.commands(at(1));
    manager.doubt(&[(TOKEN, ends(2, 80))], at(60));
    assert!(creates(&manager.commands(at(60))).is_empty());
}
