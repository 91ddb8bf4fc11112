//! `anabranch doctor` on a laptop with two phones: the right finding, its remedy, and no other finding.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use daemon::doctor::facts::{Facts, JoinOutcome, Spoken};
use daemon::doctor::report::Report;
use daemon::doctor::{DoctorOptions, examine};
use interop::{Protocol, Running, Tethered, USB, in_three_tries, listen, output, wait_until};
use linux::stop::Stop;

const LINK: &str = "rate = '20 Mbit/s'\ndelay = '10 ms'";
const SERVER: &str = "10.9.9.9:8000";
/// A server without MPTCP.
const PLAIN: &str = "10.9.9.9:8001";
/// Time limit of a whole examination, for two uplinks and one server.
const DEADLINE: Duration = Duration::from_secs(20);

/// The finding about name servers that do not answer.
const NAMES_SILENT: &str = "names-silent";

/// A folder for the web server; removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("interop-doctor-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Creates a laptop, its phones and a server with MPTCP.
fn network(name: &str, links: [&str; 2]) -> Option<(Tethered, Running, Folder)> {
    let net = Tethered::new(links)?;
    let folder = Folder::new(name);
    let server = net.web_server(&folder.0, "0.0.0.0");
    Some((net, server, folder))
}

/// Runs the doctor; checks its time and that it leaves nothing behind.
#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
fn doctor(net: &Tethered, interfaces: &[&str], servers: &[&str]) -> Report {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let options = DoctorOptions { interfaces: names(interfaces), servers: names(servers), measure: None };
    let (before, begun) = (net.state(), Instant::now());
    let report = net.laptop.run(|| examine(&options, &Stop::new().unwrap(), &|_| {})).unwrap().unwrap();
    assert!(begun.elapsed() < DEADLINE, "{:?}\n{}", begun.elapsed(), report.text());
    eprintln!("{:?}\n{}", begun.elapsed(), report.text());
    assert_eq!(net.state(), before, "something is left");
    report
}

/// Asserts that exactly these findings ask for a change, by code and place. Findings about name servers do not count:
/// those belong to the machine that runs the tests and are not on this network. Each remedy contains `remedy`.
fn expect(report: &Report, findings: &[(&str, &str, &str)]) {
    let text = report.text();
    let asked: BTreeSet<(&str, &str)> = report
        .findings
        .iter()
        .filter(|finding| finding.asks_for_change() && finding.code != NAMES_SILENT)
        .map(|finding| (finding.code, finding.place.as_str()))
        .collect();
    let wanted: BTreeSet<(&str, &str)> = findings.iter().map(|(code, place, _)| (*code, *place)).collect();
    assert_eq!(asked, wanted, "{text}");
    for (code, place, remedy) in findings {
        let found = report.findings.iter().find(|finding| finding.code == *code && finding.place == *place).unwrap();
        assert!(found.remedy.as_ref().is_some_and(|said| said.contains(remedy)), "{found:?}");
    }
    let names_are_silent = report.findings.iter().any(|finding| finding.code == NAMES_SILENT);
    assert_eq!(text.contains("Nothing to change"), findings.is_empty() && !names_are_silent, "{text}");
}

fn spoken(facts: &Facts) -> Vec<Spoken> {
    facts.inquiries.iter().map(|inquiry| inquiry.mptcp).collect()
}

/// Adds a rule about the packets that a phone forwards.
fn filter(net: &Tethered, phone: usize, rule: &str) {
    let chain = "add table inet box; add chain inet box pass { type filter hook forward priority 0; policy accept; }; add rule inet box pass";
    output(net.phone(phone), "nft", &[&format!("{chain} {rule}")]);
}

#[test]
fn a_good_network_has_nothing_to_change() {
    let Some((net, _server, _folder)) = network("good", [LINK, LINK]) else { return };
    let report = doctor(&net, &[], &[SERVER]);
    expect(&report, &[]);
    let facts = &report.facts;
    assert!(report.join_works && facts.machine.is_plumbed);
    assert_eq!(spoken(facts), [Spoken::Confirmed, Spoken::Confirmed]);
    assert_eq!(facts.joins.iter().map(|join| join.outcome).collect::<Vec<_>>(), [JoinOutcome::Established; 2]);
    for inquiry in &facts.inquiries {
        assert_eq!((inquiry.mtu.carries, inquiry.mtu.vanishes, inquiry.mtu.told), (1500, 0, 0), "{inquiry:?}");
        let least = inquiry.rtts.iter().min().unwrap().as_secs_f64();
        assert!((0.02..0.06).contains(&least) && inquiry.rtts.len() == 5, "{inquiry:?}");
    }
    // Both phones have the same network, which is harmless, and reported.
    let note = |code: &str| report.findings.iter().filter(|finding| finding.code == code).count();
    assert_eq!((note("same-network"), note("nat")), (1, 2), "{}", report.text());
}

#[test]
fn a_slow_and_lossy_uplink_has_no_other_fault() {
    let slow = "rate = '1 Mbit/s'\ndelay = '300 ms'\nloss = '3 %'";
    let Some((net, _server, _folder)) = network("slow", [LINK, slow]) else { return };
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[]);
    assert_eq!(spoken(&report.facts), [Spoken::Confirmed, Spoken::Confirmed], "{}", report.text());
}

/// Servers that speak first, hang up at once, or hang up after they have received something.
const MOODS: &str = "
import os, socket, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
def greet(s): s.sendall(b'SSH-2.0-test\\r\\n'); s.recv(100); s.close()
def hang_up(s): s.close()
def listen_first(s): s.recv(10); s.close()
def serve(port, mood):
    s = socket.create_server(('0.0.0.0', port))
    while True: threading.Thread(target=mood, args=(s.accept()[0],)).start()
for port, mood in ((9001, greet), (9002, hang_up), (9003, listen_first)):
    threading.Thread(target=serve, args=(port, mood)).start()
";

#[test]
fn servers_that_hang_up_speak_mptcp_all_the_same() {
    let Some((net, _server, _folder)) = network("moods", [LINK, LINK]) else { return };
    let mut command = net.server().command("mptcpize").unwrap();
    command.args(["run", "python3", "-c", MOODS]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let _moods = Running(command.spawn().unwrap());
    let servers = ["10.9.9.9:9001", "10.9.9.9:9002", "10.9.9.9:9003"];
    let connects = |port: u16| net.server().run(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).unwrap();
    wait_until("the servers answer", || (9001..=9003).all(connects));
    let report = doctor(&net, &USB, &servers);
    expect(&report, &[]);
    assert!(spoken(&report.facts).iter().all(|spoken| spoken.is_good()), "{}", report.text());
}

#[test]
fn a_phone_that_strips_mptcp_is_named() {
    let strips = format!("{LINK}\nmiddleboxes = [{{ strip = {{ options = ['mptcp'], on = 'syn' }} }}]");
    let Some((net, _server, _folder)) = network("strips", [LINK, &strips]) else { return };
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("mptcp-stripped", "usb1", "--interface usb0 --interface usb1=secondary")]);
    assert!(report.join_works);
    // With only that phone nobody can tell.
    let report = doctor(&net, &["usb1"], &[SERVER]);
    expect(&report, &[("mptcp-undecided", SERVER, "KNOWN:PORT")]);
}

#[test]
fn a_phone_that_strips_options_of_data_is_named() {
    let strips = format!("{LINK}\nmiddleboxes = [{{ strip = {{ options = ['mptcp'], after = 1 }} }}]");
    let Some((net, _server, _folder)) = network("data", [LINK, &strips]) else { return };
    let report = doctor(&net, &USB, &[SERVER]);
    assert_eq!(report.facts.inquiries[1].mptcp, Spoken::FellBack, "{}", report.text());
    expect(&report, &[("mptcp-stripped-from-data", "usb1", "usb1=secondary")]);
}

#[test]
fn a_phone_that_drops_mptcp_is_named() {
    let Some((net, _server, _folder)) = network("drops", [LINK, LINK]) else { return };
    filter(&net, 1, "tcp flags syn tcp option mptcp exists drop");
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("mptcp-dropped", "usb1", "usb1=secondary")]);
    let rule =
        "flush chain inet box pass; add rule inet box pass tcp flags syn tcp option mptcp exists reject with tcp reset";
    output(net.phone(1), "nft", &[rule]);
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("mptcp-refused", "usb1", "usb1=secondary")]);
}

#[test]
fn a_phone_that_strips_joins_is_named() {
    let Some((net, _server, _folder)) = network("joins", [LINK, LINK]) else { return };
    filter(&net, 1, "tcp option mptcp subtype 1 reset tcp option mptcp");
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("join-fails", "usb1", "usb1=secondary")]);
    let of_usb1: Vec<_> =
        report.facts.joins.iter().filter(|join| join.uplink == "usb1").map(|join| join.outcome).collect();
    assert_eq!(of_usb1, [JoinOutcome::Stripped]);
    let rule = "flush chain inet box pass; add rule inet box pass tcp option mptcp subtype 1 drop";
    output(net.phone(1), "nft", &[rule]);
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("join-fails", "usb1", "usb1=secondary")]);
    assert!(report.text().contains("it drops packets that add it"), "{}", report.text());
    // An unanswered join may have been lost.
    assert!(report.facts.joins.iter().any(|join| join.outcome == JoinOutcome::Silent && join.tries == 2));
}

#[test]
fn a_server_that_refuses_joins_is_named() {
    let Some((net, _server, _folder)) = network("limits", [LINK, LINK]) else { return };
    output(net.server(), "ip", &["mptcp", "limits", "set", "subflows", "0"]);
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("server-refuses-joins", SERVER, "ip mptcp limits set subflows 8")]);
}

#[test]
fn a_server_without_mptcp_is_known_by_another_one() {
    let Some((net, _server, _folder)) = network("plain", [LINK, LINK]) else { return };
    let _plain = listen(net.server(), Protocol::Tcp, "0.0.0.0:8001".parse().unwrap()).unwrap();
    let report = doctor(&net, &USB, &[PLAIN, SERVER]);
    expect(&report, &[("server-without-mptcp", PLAIN, "mptcpize")]);
    let report = doctor(&net, &USB, &[PLAIN]);
    expect(&report, &[("mptcp-undecided", PLAIN, "10.9.9.9:8001 KNOWN:PORT")]);
}

#[test]
fn a_black_hole_is_found_and_what_a_router_says_is_none() {
    let narrow =
        |silent: bool| format!("{LINK}\nmiddleboxes = [{{ narrow = {{ size = '1400 B', silent = {silent} }} }}]");
    let (silent, telling) = (narrow(true), narrow(false));
    let Some((net, _server, _folder)) = network("hole", [&telling, &silent]) else { return };
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("mtu-black-hole", "usb1", "ip link set usb1 mtu 1400")]);
    let [told, vanished] = [0, 1].map(|index| report.facts.inquiries[index].mtu);
    assert_eq!((told.carries, told.told, told.vanishes), (1400, 1400, 0));
    assert_eq!((vanished.carries, vanished.told, vanished.vanishes), (1400, 0, 1420));
    // The remedy helps: the kernel tells the engine at once.
    net.laptop.ip(["link set usb1 mtu 1400".into()]).unwrap();
    expect(&doctor(&net, &USB, &[SERVER]), &[]);
}

#[test]
fn a_black_hole_on_the_way_back_is_found_by_a_transfer() {
    let Some((net, _server, folder)) = network("back", [LINK, LINK]) else { return };
    fs::write(folder.0.join("data.bin"), vec![7; 1_000_000]).unwrap();
    filter(&net, 1, "oifname lan meta length > 1300 drop");
    let measured = || {
        let url = format!("http://{SERVER}/data.bin").parse().unwrap();
        let options = DoctorOptions { interfaces: vec![], servers: vec![SERVER.into()], measure: Some(url) };
        net.laptop.run(|| examine(&options, &Stop::new().unwrap(), &|_| {})).unwrap().unwrap()
    };
    let report = measured();
    expect(&report, &[("mtu-black-hole-back", "usb1", "ip link set usb1 mtu 1280")]);
    // The remedy helps: the server receives packets that fit.
    net.laptop.ip(["link set usb1 mtu 1280".into()]).unwrap();
    let report = measured();
    expect(&report, &[]);
    assert_eq!(report.facts.rates[1].bytes, 1_000_000, "{}", report.text());
}

/// As `wg-quick` does with AllowedIPs 0.0.0.0/0: the main table keeps the phones' default routes.
#[test]
fn a_vpn_with_routing_rules_of_its_own_is_noticed() {
    let Some((net, _server, _folder)) = network("vpn", [LINK, LINK]) else { return };
    let commands = [
        "tuntap add wg0 mode tun",
        "address add 10.8.0.2/32 dev wg0",
        "link set wg0 up",
        "route add default dev wg0 table 51820",
        "rule add not fwmark 51820 table 51820 priority 32764",
        "rule add table main suppress_prefixlength 0 priority 32763",
    ];
    net.laptop.ip(commands.map(String::from)).unwrap();
    let report = doctor(&net, &["usb0", "usb1"], &[SERVER]);
    expect(&report, &[("vpn", "machine", "anabranch join --interface usb0 --interface usb1")]);
}

#[test]
fn phones_that_refuse_mptcp_both_let_plain_tcp_pass() {
    let Some((net, _server, _folder)) = network("refuse-both", [LINK, LINK]) else { return };
    for phone in 0..2 {
        filter(&net, phone, "tcp flags syn tcp option mptcp exists reject with tcp reset");
    }
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("mptcp-refused-undecided", SERVER, "is known to speak MPTCP, usb0 and usb1 refuse it")]);
    assert!(report.join_works, "as plain TCP");
    assert_eq!(report.text().matches("connections that offer MPTCP are refused").count(), 2, "{}", report.text());
}

#[test]
fn a_gateway_that_does_not_answer_is_named() {
    let Some((net, _server, _folder)) = network("gateway", [LINK, LINK]) else { return };
    net.phone(1).ip(["link set lan arp off".into(), "address del 192.168.42.129/24 dev lan".into()]).unwrap();
    net.laptop.ip(["neigh flush dev usb1".into()]).unwrap();
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("gateway-silent", "usb1", "tethering")]);
    assert!(report.join_works, "usb0 is there");
}

#[test]
fn an_uplink_without_a_route_is_named() {
    let Some((net, _server, _folder)) = network("route", [LINK, LINK]) else { return };
    net.laptop.ip(["route del default dev usb1".into()]).unwrap();
    net.laptop.ip(["-6 route del default dev usb1".into()]).unwrap_or_default();
    output(&net.laptop, "ip", &["-6", "route", "flush", "dev", "usb1"]);
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("unusable", "usb1", "ip route add default via GATEWAY dev usb1")]);
    assert!(report.join_works);
    // If the user does not name the interface, it may be meant for something else.
    let without = ("no-default-route", "usb1", "if it leads to the Internet, add one (ip route add default via");
    let report = doctor(&net, &[], &[SERVER]);
    expect(&report, &[without]);
    assert!(report.text().contains("usb1  is not an uplink now"), "{}", report.text());
    net.laptop.ip(["link set usb0 down".into()]).unwrap();
    let report = doctor(&net, &[], &[SERVER]);
    expect(&report, &[("no-uplinks", "machine", "add the default route of usb1 (below)"), without]);
    assert!(!report.join_works);
}

#[test]
fn a_tunnel_with_the_default_route_is_told() {
    let Some((net, _server, _folder)) = network("vpn", [LINK, LINK]) else { return };
    output(&net.laptop, "ip", &["tuntap", "add", "vpn0", "mode", "tun"]);
    net.laptop
        .ip(["address add 10.66.0.2/24 dev vpn0", "link set vpn0 up", "route add default dev vpn0"].map(str::to_owned))
        .unwrap();
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("vpn", "machine", "anabranch join --interface usb0 --interface usb1")]);
}

#[test]
fn a_firewall_that_drops_what_is_forwarded_is_named() {
    let Some((net, _server, _folder)) = network("firewall", [LINK, LINK]) else { return };
    let docker =
        "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }";
    output(&net.laptop, "nft", &[docker]);
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("forward-drop", "machine", "nft insert rule ip filter FORWARD iifname")]);
    assert!(!report.join_works);
    // The remedy helps.
    let remedy = report.findings[0].remedy.clone().unwrap();
    output(&net.laptop, "sh", &["-c", &remedy]);
    expect(&doctor(&net, &USB, &[SERVER]), &[]);
}

#[test]
fn a_port_that_refuses_and_a_server_that_is_not_there() {
    let Some((net, _server, _folder)) = network("refuses", [LINK, LINK]) else { return };
    let report = doctor(&net, &USB, &["10.9.9.9:81"]);
    expect(&report, &[("refused", "10.9.9.9:81", "SERVER:PORT")]);
    assert!(report.join_works);
    output(
        net.server(),
        "nft",
        &[
            "add table inet no; add chain inet no in { type filter hook input priority 0; }; add rule inet no in tcp dport 82 drop",
        ],
    );
    let report = doctor(&net, &USB, &["10.9.9.9:82", SERVER]);
    expect(&report, &[("server-silent", "10.9.9.9:82", "name and port")]);
    let report = doctor(&net, &USB, &["10.9.9.9:82"]);
    expect(
        &report,
        &[("servers-silent", "machine", "name another server as well: anabranch doctor 10.9.9.9:82 OTHER:443")],
    );
    assert!(report.join_works, "the server may be down");
    let report = doctor(&net, &USB, &["10.9.9.9:82", "10.9.9.8:82"]);
    expect(&report, &[("nothing-answers", "machine", "mobile data")]);
    assert!(!report.join_works);
    // A name server on a phone answers, so that uplink works.
    net.name_server(1);
    let report = doctor(&net, &USB, &["10.9.9.9:82", "10.9.9.8:82"]);
    expect(&report, &[("servers-silent", "machine", "name another server")]);
    let finds: Vec<_> = report.facts.uplinks.iter().map(|uplink| uplink.finds_names).collect();
    assert_eq!(finds, [Some(false), Some(true)], "{}", report.text());
    assert!(report.join_works);
}

#[test]
fn rules_of_this_device_are_told_from_phones_without_data() {
    let Some((net, _server, _folder)) = network("rules", [LINK, LINK]) else { return };
    let rule = "add table inet mine; add chain inet mine forw { type filter hook forward priority 0; policy accept; }; \
        add rule inet mine forw meta l4proto tcp drop";
    output(&net.laptop, "nft", &[rule]);
    let report = doctor(&net, &USB, &[SERVER]);
    expect(
        &report,
        &[("forwarding-drops", "machine", "nft insert rule inet mine forw iifname '\"anabranch*\"' accept")],
    );
    assert!(!report.join_works);
    output(
        &net.laptop,
        "nft",
        &[
            "insert rule inet mine forw iifname \"anabranch*\" accept; insert rule inet mine forw oifname \"anabranch*\" accept",
        ],
    );
    expect(&doctor(&net, &USB, &[SERVER]), &[]);
    // Routing rules before the engine's: to nowhere, and over the other phone, as a VPN has them.
    net.laptop
        .ip(["rule add pref 50 to 10.9.9.0/24 lookup 777", "route add unreachable default table 777"]
            .map(str::to_owned))
        .unwrap();
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("rules-before", "machine", "ip rule del pref 50")]);
    assert!(!report.join_works && report.facts.detours.len() == 2, "{}", report.text());
    let via_usb1 = [
        "rule del pref 50",
        "rule add pref 60 not fwmark 0x1234 lookup 778",
        "route add default via 192.168.42.129 dev usb1 table 778",
    ];
    net.laptop.ip(via_usb1.map(str::to_owned)).unwrap();
    let report = doctor(&net, &USB, &[SERVER]);
    expect(&report, &[("rules-before", "machine", "ip rule del pref 60")]);
    // Packets for usb0 leave over the other phone, and the answers that arrive on usb1 do so again.
    let detours: Vec<_> = report.facts.detours.iter().map(|it| (it.is_back, it.leaves_by.as_deref())).collect();
    assert_eq!(detours, [(false, Some("usb1")), (true, Some("usb1"))], "{}", report.text());
    assert!(!report.join_works);
}

#[test]
fn over_ipv6_and_with_a_transfer() {
    let Some(net) = Tethered::new([LINK, "rate = '5 Mbit/s'\ndelay = '10 ms'"]) else { return };
    let folder = Folder::new("ipv6");
    fs::write(folder.0.join("data.bin"), vec![7; 8_000_000]).unwrap();
    let _server = net.web_server(&folder.0, "::");
    let server = "[fd09::9]:8000";
    let url = format!("http://{server}/data.bin").parse().unwrap();
    let options = DoctorOptions { interfaces: vec![], servers: vec![server.into()], measure: Some(url) };
    let before = net.state();
    let report = net.laptop.run(|| examine(&options, &Stop::new().unwrap(), &|_| {})).unwrap().unwrap();
    assert_eq!(net.state(), before);
    expect(&report, &[]);
    assert_eq!(spoken(&report.facts), [Spoken::Confirmed, Spoken::Confirmed]);
    assert!(report.facts.inquiries.iter().all(|inquiry| inquiry.mtu.carries == 1500), "{}", report.text());
    assert!(report.text().contains("about "), "{}", report.text());
    let mut report = report;
    in_three_tries(|| {
        let rate = |index: usize| {
            let rate = &report.facts.rates[index];
            rate.timed_bytes as f64 * 8e-6 / rate.duration.as_secs_f64()
        };
        if (14.0..21.0).contains(&rate(0)) && (3.5..5.5).contains(&rate(1)) {
            return Ok(());
        }
        let again = net.laptop.run(|| examine(&options, &Stop::new().unwrap(), &|_| {})).unwrap().unwrap();
        Err(std::mem::replace(&mut report, again).text())
    })
    .unwrap();
}

fn examined_without_root(net: &Tethered, server: &str) -> Report {
    let options = DoctorOptions { interfaces: vec![], servers: vec![server.into()], measure: None };
    let examined = net.laptop.run(|| {
        // Drops the capabilities of this thread only.
        let none = rustix::thread::CapabilitySet::empty();
        let sets = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, sets).unwrap();
        examine(&options, &Stop::new().unwrap(), &|_| {})
    });
    examined.unwrap().unwrap()
}

/// As with NetworkManager's `ipv4.route-table` and `ipv6.route-table`.
#[test]
fn uplinks_whose_default_routes_are_in_tables_of_their_own_are_asked_over() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let folder = Folder::new("table");
    let _server = net.web_server(&folder.0, "::");
    for (usb, number) in [("usb0", 42), ("usb1", 43)] {
        for (family, network) in [("-4", format!("192.168.{number}.")), ("-6", format!("fdc0:{number}::"))] {
            let moved = format!(
                "ip {family} route delete default dev {usb}; ip {family} rule add from {network}10 lookup {number}; \
                 ip {family} route add default via {network}129 dev {usb} table {number}"
            );
            output(&net.laptop, "sh", &["-ec", &moved]);
        }
    }
    for (server, family) in [(SERVER, "IPv4"), ("[fd09::9]:8000", "IPv6")] {
        let text = examined_without_root(&net, server).text();
        assert!(["usb0", "usb1"].iter().all(|usb| text.contains(&format!("{usb} {family}: can connect"))), "{text}");
    }
}

#[test]
fn without_root_what_can_be_told_is_told() {
    let Some((net, _server, _folder)) = network("nobody", [LINK, LINK]) else { return };
    let report = examined_without_root(&net, SERVER);
    expect(&report, &[("no-rights", "machine", "sudo anabranch")]);
    assert!(!report.join_works);
    let text = report.text();
    assert!(
        text.contains("left out: MPTCP") && text.contains("needs root") && text.contains("192.168.42.10"),
        "{text}"
    );
    let round_trip_ms = |usb: &str| {
        let (_, after) = text.split_once(&format!("{usb} IPv4: can connect, round trip "))?;
        after.split(' ').next()?.parse::<f64>().ok()
    };
    // The links alone take 20 ms; a busy machine adds delay.
    assert!(["usb0", "usb1"].map(round_trip_ms).iter().all(|ms| ms.is_some_and(|ms| ms >= 20.0)), "{text}");
}

/// The test's own resolver asks the name servers of this host, which are not on this network.
#[test]
fn a_name_is_found_as_a_join_finds_it() {
    let Some((net, _server, _folder)) = network("names", [LINK, LINK]) else { return };
    net.name_server(1);
    let report = doctor(&net, &[], &["files.test:8000"]);
    expect(&report, &[]);
    let [server] = report.facts.servers.as_slice() else { panic!("{}", report.text()) };
    assert!(report.join_works && server.over_uplinks && server.lookup_failed.is_none(), "{}", report.text());
    assert!(report.findings.iter().any(|finding| finding.code == NAMES_SILENT), "{}", report.text());
    let report = doctor(&net, &[], &["none.test:8000"]);
    expect(&report, &[("no-address", "none.test:8000", "check the name")]);
    assert!(report.join_works && report.text().contains("it does not exist"), "{}", report.text());
}
