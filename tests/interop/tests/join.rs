//! `anabranch join` on a laptop with two identical-looking phones: ordinary programs use both through the proxy.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use daemon::control::{self, Place, Request};
use daemon::join::status::JoinStatus;
use daemon::join::{JoinOptions, Wanted, join, rehearse};
use daemon::proxy::ProxyConfig;
use daemon::proxy::choice::Tier;
use interop::{
    Daemon, Files, Running, Tethered, USB, ask, both_carried, break_the_watch, carried, in_three_tries, janitors_of,
    kill_at, output, wait_for, wait_until,
};
use linux::EngineOptions;
use linux::netns::Namespace;
use linux::stop::Stop;
use linux::tap::{Tap, Way};
use serde_json::Value;
use wire::{Segment, TcpChecksum};

mod engines_network;
mod families;
mod offers;
mod questions;
mod uploads;

const LINK: &str = "rate = '16 Mbit/s'\ndelay = '10 ms'";
const URL: &str = "http://10.9.9.9:8000/data.bin";
const DEVICE: &str = "anabranch0";
const BYTES: usize = 4_000_000;

fn options(tiers: &[Tier]) -> JoinOptions {
    let uplinks = USB.iter().zip(tiers).map(|(name, tier)| ((*name).to_owned(), *tier)).collect();
    JoinOptions {
        uplinks: Wanted::interfaces(uplinks),
        target: None,
        prices: Vec::new(),
        proxy: ProxyConfig::new("127.0.0.1:0".parse().unwrap()),
        names_over_uplinks: true,
        control_group: None,
        engine: EngineOptions::default(),
    }
}

/// A daemon, with the address of its proxy.
type Joined = Daemon<String>;

fn start(net: &Tethered, options: JoinOptions) -> Joined {
    Joined::start(&net.laptop, |stop, told| {
        let ready = |status: &JoinStatus| told.send(status.proxy.as_ref().unwrap().listen.to_string()).unwrap();
        join(options, stop, ready)
    })
}

/// Starts curl through the proxy.
fn curl(files: &Files, net: &Tethered, proxy: &str) -> Running {
    curl_from(files, net, proxy, URL)
}

fn curl_from(files: &Files, net: &Tethered, proxy: &str, url: &str) -> Running {
    let mut command = net.laptop.command("curl").unwrap();
    command.args(["--silent", "--show-error", "--fail", "--max-time", "120", "--output"]).arg(files.copy());
    Running(command.args(["--proxy", &format!("socks5h://{proxy}"), url]).spawn().unwrap())
}

fn status(net: &Tethered) -> Value {
    ask(net, DEVICE, &Request::Status).unwrap()
}

fn set(net: &Tethered, index: usize, tier: Tier) -> Result<Value, String> {
    ask(net, DEVICE, &Request::SetTier { uplink: USB[index].into(), tier })
}

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

#[test]
fn a_program_gets_what_both_phones_carry_and_nothing_is_left() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let before = net.state();
    let plan = net.laptop.run(|| rehearse(&options(&[Tier::Primary; 2]))).unwrap().unwrap().to_string();
    assert!(plan.contains("masquerade") && plan.contains("undo"), "{plan}");
    assert_eq!(net.state(), before, "a rehearsal changes nothing");
    let priced = JoinOptions { prices: vec![("foo".into(), 3)], ..options(&[Tier::Primary; 2]) };
    let refused = net.laptop.run(|| rehearse(&priced)).unwrap().err().unwrap().to_string();
    assert!(refused.contains("--price foo=3: there is no uplink foo"), "{refused}");
    in_three_tries(|| {
        let joined = start(&net, options(&[Tier::Primary; 2]));
        wait_for(curl(&files, &net, &joined.ready));
        assert!(files.arrived());
        let status = status(&net);
        assert_eq!(status["proxy"]["totals"]["mptcp"], 1);
        joined.end().unwrap();
        both_carried(&status, BYTES / 4)
    })
    .unwrap();
    assert!((0..2).all(|number| net.received_bytes(number) > BYTES as u64 / 4));
    assert_eq!(net.state(), before);
    assert!(net.laptop.run(control::running).unwrap().unwrap().is_empty());
}

#[test]
fn names_are_found_over_the_phone_that_answers_where_the_devices_name_server_is_silent() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES / 4);
    let _server = net.web_server(files.path(), "0.0.0.0");
    net.name_server(1);
    let silent = |names_over_uplinks| {
        let mut options = JoinOptions { names_over_uplinks, ..options(&[Tier::Primary; 2]) };
        options.proxy.lookup = Arc::new(|_| {
            Err(io::Error::other("failed to lookup address information: Temporary failure in name resolution"))
        });
        options
    };
    let url = "http://files.test:8000/data.bin";
    let joined = start(&net, silent(true));
    wait_for(curl_from(&files, &net, &joined.ready, url));
    assert!(files.arrived());
    // An answer that a name has no address is passed on as it is.
    for (name, why) in
        [("none.test", "it does not exist"), ("empty.test", "it has none"), ("broken.test", "could not resolve it")]
    {
        let url = format!("http://{name}:8000/");
        let proxy = format!("http://{}", joined.ready);
        let said =
            output(&net.laptop, "curl", &["-sS", "--max-time", "30", "--proxy", &proxy, "-w", "%{http_code}", &url]);
        assert!(said.contains(why) && said.ends_with("502"), "{name}: {said}");
    }
    joined.end().unwrap();
    let joined = start(&net, silent(false));
    assert!(!curl_from(&files, &net, &joined.ready, url).0.wait().unwrap().success());
    joined.end().unwrap();
}

/// What `docs/join.md` promises for a device without an uplink for a while.
#[test]
fn without_any_uplink_new_connections_hear_so_and_old_ones_wait() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(4 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let joined = start(&net, options(&[Tier::Primary; 2]));
    let old = curl(&files, &net, &joined.ready);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 500_000));
    net.laptop.ip(USB.map(|usb| format!("link set {usb} down"))).unwrap();
    wait_until("both are lost", || (0..2).all(|index| status(&net)["uplinks"][index]["lost"].is_string()));
    for (url, expected) in [(URL, "503"), ("http://name.example/", "503")] {
        let mut curl = net.laptop.command("curl").unwrap();
        curl.args(["--silent", "--max-time", "10", "--proxy", &format!("http://{}", joined.ready)]);
        let ended = curl.args(["--output", "/dev/null", "--write-out", "%{http_code}", url]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stdout), expected, "{url}");
    }
    // Up again, but without its route: this is reported, and the uplink is not used.
    net.laptop.ip(["link set usb0 up".into()]).unwrap();
    let why = || status(&net)["uplinks"][0]["lost"].as_str().unwrap_or_default().to_owned();
    wait_until("the reason is told", || why().contains("no default route"));
    net.laptop.ip(["route add default via 192.168.42.129 dev usb0 metric 100".into()]).unwrap();
    wait_until("it is used again", || status(&net)["uplinks"][0]["lost"].is_null());
    wait_for(old);
    assert!(files.arrived());
}

#[test]
fn a_phone_gets_another_address_and_goes_on() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    // Long enough for everything that is awaited below, also on a busy machine.
    let files = Files::new(12 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let joined = start(&net, options(&[Tier::Primary; 2]));
    let curl = curl(&files, &net, &joined.ready);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 500_000));
    let change = [
        "address delete 192.168.42.10/24 dev usb0",
        "address add 192.168.42.77/24 dev usb0",
        "route replace default via 192.168.42.129 dev usb0 metric 100",
    ];
    net.laptop.ip(change.map(str::to_owned)).unwrap();
    wait_until("it is seen", || status(&net)["uplinks"][0]["ways"].to_string().contains("192.168.42.77"));
    let so_far = carried(&status(&net), 0);
    wait_until("it carries again", || carried(&status(&net), 0) > so_far + 500_000);
    wait_for(curl);
    assert!(files.arrived());
}

#[test]
fn a_tap_sees_whole_packets_of_both_ways() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let (tell, seen) = channel();
    let tap = Tap::new(move |_, way, packet| {
        let checksum = if way == Way::Out { TcpChecksum::Verify } else { TcpChecksum::Trusted };
        let payload = Segment::parse_headers(packet, checksum).map(|(_, payload)| payload.len());
        tell.send((way, payload)).map_err(io::Error::other)
    });
    let engine = EngineOptions { tap: Some(tap), ..EngineOptions::default() };
    let joined = start(&net, JoinOptions { engine, ..options(&[Tier::Primary; 2]) });
    wait_for(curl(&files, &net, &joined.ready));
    joined.end().unwrap();
    let seen: Vec<_> = seen.iter().collect();
    let sum = |of: Way| seen.iter().filter(|(way, _)| *way == of).map(|(_, len)| (*len).unwrap()).sum::<usize>();
    assert!(sum(Way::In) >= BYTES && sum(Way::Out) > 50, "{} in, {} out", sum(Way::In), sum(Way::Out));
}

#[test]
fn this_device_itself_is_not_reached_through_the_proxy() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let joined = start(&net, options(&[Tier::Primary; 2]));
    for own in ["192.168.42.10", "10.99.0.1", "10.99.0.2", "127.0.0.1", "[fdc0:42::10]", "localhost"] {
        let mut curl = net.laptop.command("curl").unwrap();
        curl.args(["--silent", "--max-time", "10", "--proxytunnel", "--proxy", &format!("http://{}", joined.ready)]);
        let ended = curl.args(["--write-out", "%{http_connect}", &format!("http://{own}:8000/")]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "403", "{own}");
    }
    // An address that this device has got in the meantime.
    net.laptop.ip(["address add 192.0.2.7/32 dev lo".to_owned()]).unwrap();
    let listener = net.laptop.run(|| TcpListener::bind("0.0.0.0:8000")).unwrap().unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut curl = net.laptop.command("curl").unwrap();
    curl.args(["--silent", "--max-time", "2", "--proxytunnel", "--proxy", &format!("http://{}", joined.ready)]);
    curl.args(["--output", "/dev/null", "http://192.0.2.7:8000/"]).status().unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

/// As with `systemctl restart nftables`.
#[test]
fn a_transfer_outlasts_a_firewall_that_is_reloaded() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(3 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let before = net.state();
    let joined = start(&net, options(&[Tier::Primary; 2]));
    let transfer = curl(&files, &net, &joined.ready);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 200_000));
    let rules = || output(&net.laptop, "nft", &["list", "ruleset"]);
    let whole = rules();
    output(&net.laptop, "nft", &["flush", "ruleset"]);
    wait_until("the guard stands again", || rules() == whole);
    // The watch fails while it waits for further changes.
    output(&net.laptop, "ip", &["address", "add", "192.0.2.1/32", "dev", "lo"]);
    sleep(Duration::from_millis(50));
    break_the_watch(&net.laptop);
    sleep(Duration::from_millis(1500));
    output(&net.laptop, "nft", &["flush", "ruleset"]);
    wait_until("the guard stands again", || rules() == whole);
    output(&net.laptop, "ip", &["address", "del", "192.0.2.1/32", "dev", "lo"]);
    wait_for(transfer);
    assert!(files.arrived());
    joined.end().unwrap();
    assert_eq!(net.state(), before);
}

/// As with systemd-networkd, which deletes what it does not know.
#[test]
fn a_transfer_outlasts_rules_and_routes_that_are_deleted() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(6 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let before = net.state();
    let joined = start(&net, options(&[Tier::Primary; 2]));
    let transfer = curl(&files, &net, &joined.ready);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 200_000));
    let own = || {
        let shown = output(
            &net.laptop,
            "sh",
            &["-c", "ip rule; ip -6 rule; ip route show table all; ip -6 route show table all"],
        );
        let mut own: Vec<String> = shown.lines().filter(|line| line.contains(" 99000")).map(str::to_owned).collect();
        own.sort();
        own
    };
    let whole = own();
    assert!(whole.len() >= 16, "{whole:#?}");
    let deletions = "ip rule del priority 100; ip rule del priority 100; ip -6 rule del priority 100; \
        ip route flush table 990000; ip -6 route flush table 990001";
    output(&net.laptop, "sh", &["-c", deletions]);
    assert!(own().len() < whole.len() - 5);
    wait_until("all are there again", || own() == whole);
    wait_for(transfer);
    assert!(files.arrived());
    joined.end().unwrap();
    assert_eq!(net.state(), before);
}

#[test]
fn a_phone_that_dies_without_a_word_is_told_of() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(20 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let joined = start(&net, options(&[Tier::Primary; 2]));
    let _transfer = curl(&files, &net, &joined.ready);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 200_000));
    let unheard = |index: usize| status(&net)["uplinks"][index]["unheard"].as_u64();
    assert_eq!((unheard(0), unheard(1)), (None, None));
    net.set_link(1, false);
    wait_until("it is told", || unheard(1).is_some_and(|nanos| nanos >= 5_000_000_000));
    assert_eq!(unheard(0), None, "the other one is heard all the time");
    assert!(status(&net)["uplinks"][1]["lost"].is_null());
    net.set_link(1, true);
    wait_until("it is heard again", || unheard(1).is_none());
}

/// Makes a phone answer for every plain HTTP server with a redirection to a login page, until the test ends.
fn portal(net: &Tethered, number: usize) {
    let listener = net.phone(number).run(|| TcpListener::bind("0.0.0.0:8080")).unwrap().unwrap();
    let rules = "add table inet portal; add chain inet portal pre { type nat hook prerouting priority dstnat; }; \
        add rule inet portal pre iifname lan tcp dport 8000 redirect to :8080";
    output(net.phone(number), "nft", &[rules]);
    let answer =
        b"HTTP/1.1 302 Found\r\nLocation: http://login.test/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            thread::spawn(move || {
                let _ = client.read(&mut [0; 4096]);
                let _ = client.write_all(answer);
            });
        }
    });
}

#[test]
fn a_phone_that_wants_a_login_does_not_answer_for_servers() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES / 4);
    let _server = net.web_server(files.path(), "0.0.0.0");
    portal(&net, 0);
    let joined = start(&net, options(&[Tier::Primary; 2]));
    for proxy in ["socks5h", "http", "http"] {
        let mut command = net.laptop.command("curl").unwrap();
        command.args(["--silent", "--show-error", "--max-time", "20", "--write-out", "%{http_code}", "--output"]);
        command.arg(files.copy()).args(["--proxy", &format!("{proxy}://{}", joined.ready), URL]);
        let said = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "200", "{}", String::from_utf8_lossy(&said.stderr));
        assert!(files.arrived());
    }
    let status = status(&net);
    assert_eq!((&status["uplinks"][0]["portal"], &status["uplinks"][1]["portal"]), (&true.into(), &false.into()));
    joined.end().unwrap();
}

#[test]
fn rules_of_others_do_not_lead_packets_astray() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    net.laptop.ip(["rule add priority 1000 lookup main".into()]).unwrap();
    in_three_tries(|| {
        let joined = start(&net, options(&[Tier::Primary; 2]));
        wait_for(curl(&files, &net, &joined.ready));
        assert!(files.arrived());
        let status = status(&net);
        joined.end().unwrap();
        both_carried(&status, BYTES / 4)
    })
    .unwrap();
    // Not only by the proxy's count, which goes by addresses.
    assert!((0..2).all(|number| net.received_bytes(number) > BYTES as u64 / 4));
}

#[test]
fn what_would_leave_by_another_uplink_is_dropped() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    // Before our rules: all packets of the engine take usb0.
    net.laptop.ip(["rule add priority 10 lookup main".into()]).unwrap();
    let watch = "add table inet watch; add chain inet watch pass { type filter hook postrouting priority 300; }; \
        add rule inet watch pass oifname usb0 ip saddr 10.99.0.0/24 counter";
    output(&net.laptop, "nft", &[watch]);
    let joined = start(&net, options(&[Tier::Primary; 2]));
    wait_for(curl(&files, &net, &joined.ready));
    assert!(files.arrived());
    let passed = output(&net.laptop, "nft", &["list", "table", "inet", "watch"]);
    assert!(passed.contains("packets 0 "), "{passed}");
}

/// Answers a request before it is complete, and closes with unread octets.
const HASTY_SERVER: &str = "
import os, socket, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
server = socket.create_server(('', 8413))
while True:
    client, _ = server.accept()
    try:
        client.recv(1000)
        client.sendall(b'HTTP/1.1 413 Content Too Large\\r\\nContent-Length: 9\\r\\nConnection: close\\r\\n\\r\\ntoo large')
    except OSError:
        pass # of two connections that race one is dead already
    client.close()
";

#[test]
fn whoever_uploads_hears_why_it_is_refused() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES);
    for program in ["mptcpize", "env"] {
        let mut command = net.server().command(program).unwrap();
        command.args(if program == "mptcpize" { &["run", "python3"][..] } else { &["python3"] });
        command.args(["-c", HASTY_SERVER]).stdin(Stdio::piped());
        let _server = Running(command.spawn().unwrap());
        let listens = || output(net.server(), "ss", &["-ltnH", "sport", "=", ":8413"]).contains("8413");
        wait_until("the server listens", listens);
        let joined = start(&net, options(&[Tier::Primary; 2]));
        for round in 0..3 {
            let mut curl = net.laptop.command("curl").unwrap();
            curl.args([
                "--silent",
                "--max-time",
                "20",
                "--header",
                "Expect:",
                "--proxy",
                &format!("http://{}", joined.ready),
            ]);
            curl.args(["--upload-file", &files.path().join("data.bin").display().to_string()]);
            let said = curl.arg("http://10.9.9.9:8413/x").output().unwrap().stdout;
            assert_eq!(String::from_utf8_lossy(&said), "too large", "{program}, round {round}");
        }
    }
}

#[test]
fn without_names_all_uplinks_are_used() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    // An interface without a way out is not an uplink.
    net.laptop.ip(["link add idle type veth peer name far", "link set idle up"].map(str::to_owned)).unwrap();
    let mut all = options(&[]);
    all.uplinks.interfaces.clear();
    // The peers of this machine are left out.
    all.uplinks.state = "/nonexistent".into();
    let _joined = start(&net, all);
    let status = status(&net);
    let names: Vec<&str> =
        status["uplinks"].as_array().unwrap().iter().map(|it| it["interface"].as_str().unwrap()).collect();
    assert_eq!(names, USB);
}

#[test]
fn a_phone_that_comes_back_under_another_name_is_used() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    // Long enough for everything that is awaited below, also on a busy machine.
    let (files, before) = (Files::new(14 * BYTES), net.state());
    let _server = net.web_server(files.path(), "0.0.0.0");
    let mut all = options(&[]);
    all.uplinks.interfaces.clear();
    all.uplinks.state = "/nonexistent".into();
    let joined = start(&net, all);
    let curl = curl(&files, &net, &joined.ready);
    wait_until("it carries", || carried(&status(&net), 1) > 500_000);
    net.unplug(1);
    wait_until("it is told", || status(&net)["uplinks"][1]["lost"].is_string());
    assert_eq!(status(&net)["uplinks"][1]["lost"], "does not exist", "what else there is changes");
    net.plug_in_called(1, 10, "enx0a5e");
    wait_until("the new one carries", || {
        let status = status(&net);
        status["uplinks"][2]["interface"] == "enx0a5e" && carried(&status, 2) > 500_000
    });
    let tier = Request::SetTier { uplink: "enx0a5e".into(), tier: Tier::Backup };
    ask(&net, DEVICE, &tier).unwrap();
    wait_for(curl);
    assert!(files.arrived());
    joined.end().unwrap();
    net.laptop.ip(["link delete enx0a5e".into()]).unwrap();
    net.plug_in(1);
    assert_eq!(net.state().lines().count(), before.lines().count());
}

#[test]
fn a_backup_carries_when_no_other_can_and_tiers_change_meanwhile() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(4 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let joined = start(&net, options(&[Tier::Primary, Tier::Backup]));
    let curl = curl(&files, &net, &joined.ready);
    wait_until("the primary carries", || carried(&status(&net), 0) > 1_000_000);
    assert!(carried(&status(&net), 1) < 100_000, "{:#}", status(&net));
    // The uplink becomes regular, and carries its share of the same connection.
    set(&net, 1, Tier::Primary).unwrap();
    wait_until("both carry", || carried(&status(&net), 1) > 500_000);
    // The other uplink goes away, and nothing is missing.
    net.unplug(0);
    wait_until("it is told", || status(&net)["uplinks"][0]["lost"].is_string());
    wait_for(curl);
    assert!(files.arrived());
    assert!(set(&net, 1, Tier::Never).is_ok(), "the other one is wanted, although it is not there");
    assert!(set(&net, 0, Tier::Never).unwrap_err().contains("last uplink"));
    assert!(
        ask(&net, DEVICE, &Request::SetTier { uplink: "usb7".into(), tier: Tier::Backup })
            .unwrap_err()
            .contains("usb0, usb1")
    );
}

#[test]
fn as_few_phones_as_deliver_the_target_carry() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(12 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let target = Some(units::Rate::from_mbps(10));
    let joined = start(&net, JoinOptions { target, ..options(&[Tier::Primary; 2]) });
    let _curl = curl(&files, &net, &joined.ready);
    let carrying = || {
        let status = status(&net);
        status["uplinks"].as_array().unwrap().iter().filter(|uplink| uplink["carries"] == true).count()
    };
    wait_until("one of 16 Mbit/s is known to be enough for 10", || carrying() == 1);
    let idle = (0..2).find(|index| status(&net)["uplinks"][*index]["carries"] == false).unwrap();
    sleep(Duration::from_secs(1));
    let so_far = carried(&status(&net), idle);
    sleep(Duration::from_secs(1));
    assert!(carried(&status(&net), idle) < so_far + 300_000, "a backup waits");
    // A higher target.
    ask(&net, DEVICE, &Request::SetTarget { bps: Some(25_000_000) }).unwrap();
    wait_until("both carry", || carrying() == 2 && carried(&status(&net), idle) > so_far + 800_000);
    ask(&net, DEVICE, &Request::SetTarget { bps: None }).unwrap();
    assert!(status(&net)["target_bps"].is_null() && carrying() == 2);
}

#[test]
fn a_phone_may_come_later_and_again() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    // Long enough for everything that is awaited below, also on a busy machine.
    let files = Files::new(14 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let before = net.state();
    net.unplug(1);
    let joined = start(&net, options(&[Tier::Primary; 2]));
    assert!(status(&net)["uplinks"][1]["lost"].is_string());
    let curl = curl(&files, &net, &joined.ready);
    wait_until("one carries", || carried(&status(&net), 0) > 500_000);
    net.plug_in(1);
    wait_until("the new one carries", || carried(&status(&net), 1) > 500_000);
    net.unplug(0);
    sleep(Duration::from_millis(300));
    net.plug_in(0);
    let so_far = carried(&status(&net), 0);
    wait_until("it carries again", || carried(&status(&net), 0) > so_far + 500_000);
    wait_for(curl);
    assert!(files.arrived());
    joined.end().unwrap();
    assert_eq!(net.state().lines().count(), before.lines().count());
}

#[test]
fn only_the_owner_may_ask_and_nonsense_is_answered() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let _joined = start(&net, options(&[Tier::Primary; 2]));
    let socket = net.laptop.run(Place::here).unwrap().unwrap().socket(DEVICE);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    for nonsense in ["\n", "{}\n", "{\"request\":\"x\"}\n", &format!("{}\n", "x".repeat(100_000))] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        // The daemon does not read a line that is too long to its end.
        let _ = stream.write_all(nonsense.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.is_empty() && nonsense.len() > 1000 || answer.contains("cannot parse"), "{answer:?}");
    }
    // A silent client delays nobody for long.
    let _silent = UnixStream::connect(&socket).unwrap();
    assert_eq!(status(&net)["device"], DEVICE);
}

#[test]
fn two_daemons_on_one_host_do_not_meet() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let before = net.state();
    let [one, other] = [(); 2].map(|()| start(&net, options(&[Tier::Primary; 2])));
    assert_eq!(net.laptop.run(control::running).unwrap().unwrap(), ["anabranch0", "anabranch1"]);
    one.end().unwrap();
    assert_eq!(net.laptop.run(control::running).unwrap().unwrap(), ["anabranch1"]);
    other.end().unwrap();
    assert_eq!(net.state(), before);
}

/// An uplink renamed while in use is lost, and none of our changes remain on it.
#[test]
fn a_phone_that_is_called_otherwise_is_told_of_and_left_as_it_was() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(2 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let forwarding = || output(&net.laptop, "sh", &["-c", "cat /proc/sys/net/ipv[46]/conf/phone/*forwarding"]);
    net.laptop.ip(["link set usb1 down", "link set usb1 name phone"].map(str::to_owned)).unwrap();
    let before = forwarding();
    net.laptop.ip(["link set phone name usb1".to_owned()]).unwrap();
    net.unplug(1);
    net.plug_in(1);
    let joined = start(&net, options(&[Tier::Primary; 2]));
    let curl = curl(&files, &net, &joined.ready);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 100_000));
    // Older kernels only rename interfaces that are down.
    net.laptop.run(|| Command::new("ip").args(["link", "set", "usb1", "down"]).status()).unwrap().unwrap();
    let lost = || status(&net)["uplinks"][1]["lost"].as_str().unwrap_or_default().to_owned();
    wait_until("it is lost", || lost().contains("is down"));
    net.laptop.ip(["link set usb1 name phone".to_owned()]).unwrap();
    wait_until("its new name is told", || lost().contains("is now called phone"));
    // The guard against strangers on its network uses its old name.
    assert_eq!(forwarding(), before);
    wait_for(curl);
    assert!(files.arrived());
    joined.end().unwrap();
    assert_eq!(forwarding(), before);
}

/// The message that it is lost names no remedy if its new name is that of an uplink too.
#[test]
fn a_phone_that_gets_the_name_of_another_uplink_needs_no_remedy() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let mut three = options(&[Tier::Primary; 2]);
    three.uplinks.interfaces.push(("phone".into(), Tier::Primary));
    let joined = start(&net, three);
    net.laptop.ip(["link set usb1 down", "link set usb1 name phone"].map(str::to_owned)).unwrap();
    wait_until("its new name is told, and no more", || status(&net)["uplinks"][1]["lost"] == "is now called phone");
    joined.end().unwrap();
}

/// Like a machine that was asleep: time jumps, and the phones' translations are gone.
#[test]
fn a_daemon_that_stood_still_goes_on() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(4 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let child = child(&net);
    wait_until("it runs", || !net.laptop.run(control::running).unwrap().unwrap().is_empty());
    let proxy = status(&net)["proxy"]["listen"].as_str().unwrap().to_owned();
    let curl = curl(&files, &net, &proxy);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 300_000));
    let signal =
        |name: &str| assert!(Command::new("kill").args([name, &child.0.id().to_string()]).status().unwrap().success());
    signal("-STOP");
    sleep(Duration::from_secs(4));
    signal("-CONT");
    wait_for(curl);
    assert!(files.arrived());
}

/// Runs as a child of the next tests, which kill or stop it.
#[test]
#[ignore = "the child of a test here, which kills it"]
fn join_until_killed() {
    let Ok(name) = std::env::var("INTEROP_NAMESPACE") else { return };
    Namespace::open(&name).unwrap().enter().unwrap();
    let _ = join(options(&[Tier::Primary; 2]), &Stop::new().unwrap(), |_| {});
}

/// Starts a daemon that may be killed.
fn child(net: &Tethered) -> Running {
    run_child(net, Command::new(std::env::current_exe().unwrap()))
}

fn run_child(net: &Tethered, mut command: Command) -> Running {
    command.args(["--exact", "join::join_until_killed", "--ignored"]).env("INTEROP_NAMESPACE", net.laptop.name());
    Running(command.stdout(Stdio::null()).spawn().unwrap())
}

/// Like a systemd service with `NoNewPrivileges=yes`: a process that has given up its rights cannot run a program with
/// rights.
#[test]
fn a_phone_comes_again_where_rights_are_given_up_for_good() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let mut command = Command::new("setpriv");
    command.arg("--no-new-privs").arg(std::env::current_exe().unwrap());
    let _child = run_child(&net, command);
    wait_until("it runs", || ask(&net, DEVICE, &Request::Status).is_ok());
    let lost = || status(&net)["uplinks"][1]["lost"].clone();
    assert!(lost().is_null());
    net.unplug(1);
    wait_until("it is lost", || lost().is_string());
    net.plug_in(1);
    wait_until("it is used again", || lost().is_null());
}

#[test]
fn a_killed_daemon_leaves_nothing_and_the_next_one_starts() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let moments = (0..15).map(|round| Duration::from_millis(round * 23));
    kill_at(moments, || child(&net), || ask(&net, DEVICE, &Request::Status).is_ok(), || net.state());
    start(&net, options(&[Tier::Primary; 2])).end().unwrap();
    net.laptop.run(control::clean).unwrap().unwrap();
    let place = net.laptop.run(Place::here).unwrap().unwrap();
    assert_eq!(place.sockets(), [] as [(String, PathBuf); 0]);
}

#[test]
fn a_killed_janitor_is_replaced_and_a_killed_daemon_leaves_nothing_then_either() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let before = net.state();
    let child = child(&net);
    wait_until("it runs", || ask(&net, DEVICE, &Request::Status).is_ok());
    let first = janitors_of(&net.laptop, DEVICE);
    assert!(Command::new("kill").arg("-KILL").args(&first).status().unwrap().success());
    // By then the daemon has given up its rights.
    wait_until("there is another one", || janitors_of(&net.laptop, DEVICE).iter().any(|pid| !first.contains(pid)));
    drop(child);
    wait_until(&format!("all is as it was, {before}"), || net.state() == before);
}

#[test]
fn what_cannot_work_is_told_in_a_line() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let refusal = |options: JoinOptions| {
        net.laptop.run(|| join(options, &Stop::new().unwrap(), |_| {})).unwrap().unwrap_err().to_string()
    };
    let mut unknown = options(&[Tier::Primary; 2]);
    unknown.uplinks = Wanted::interfaces(vec![("usb9".into(), Tier::Primary)]);
    assert!(refusal(unknown).contains("usb9 does not exist"));
    assert!(refusal(options(&[Tier::Never; 2])).contains("never"));
    let mut open = options(&[Tier::Primary; 2]);
    open.proxy.listen = "0.0.0.0:0".parse().unwrap();
    assert!(refusal(open).contains("anyone who reaches the proxy"));
    let before = net.state();
    let taken = output(&net.laptop, "ip", &["-o", "link"]);
    assert_eq!(before.matches("anabranch").count(), 0, "{taken}");
}
