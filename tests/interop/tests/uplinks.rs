//! `get --interface`: a laptop with two phones that have the same subnet, the same gateway and give it the same address.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use interop::{
    Running, Tethered, USB, in_three_tries, janitors_of, kill_at, kill_with_janitors, output, pattern, wait_until,
};
use linux::get::{GetOptions, GetReport, Output, get};
use linux::netns::Namespace;
use linux::stop::Stop;
use linux::uplink::{self, Change, Families, GuardLoss, Plumbing, Surroundings, Watch};

mod restored;

const BYTES: usize = 4_000_000;
const LINK: &str = "rate = '20 Mbit/s'\ndelay = '10 ms'";
const URL: &str = "http://10.9.9.9:8000/data.bin";

/// A folder with a file to transfer; removed on drop.
struct Files(PathBuf);

impl Files {
    fn new(name: &str, bytes: usize) -> Self {
        let path = std::env::temp_dir().join(format!("interop-uplinks-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("data.bin"), pattern(bytes)).unwrap();
        Self(path)
    }

    fn copy(&self, number: usize) -> PathBuf {
        self.0.join(format!("copy{number}.bin"))
    }

    fn arrived(&self, number: usize) -> bool {
        fs::read(self.copy(number)).unwrap() == fs::read(self.0.join("data.bin")).unwrap()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(interfaces: &[&str]) -> Vec<String> {
    interfaces.iter().map(|name| (*name).to_owned()).collect()
}

fn get_over(laptop: &Namespace, url: &str, output: &Path, interfaces: &[&str]) -> Result<GetReport, String> {
    let options = GetOptions {
        url: url.parse().unwrap(),
        output: Output::File(output.into()),
        via: Vec::new(),
        interfaces: names(interfaces),
        resume: false,
        engine: linux::EngineOptions::default(),
    };
    let stop = Stop::new().unwrap();
    laptop.run(|| get(&options, &stop, &mut |_| {})).unwrap().map_err(|error| error.to_string())
}

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn sleep(span: Duration) {
    thread::sleep(span);
}

/// Checks that a download had two subflows, over each of which more than `bytes` octets arrived. For `in_three_tries`:
/// on a busy machine `get` withdraws an uplink that is late, and joins anew over it.
fn two_carried(report: &GetReport, bytes: u64) -> Result<(), String> {
    let connection = &report.connection;
    let subflows = &connection.subflows;
    assert!(connection.mptcp, "{connection:#?}");
    let is_right = subflows.len() == 2 && subflows.iter().all(|it| it.received_bytes > bytes);
    is_right.then_some(()).ok_or_else(|| format!("{subflows:#?}"))
}

/// Creates the plumbing of an engine on both uplinks, and the engine.
fn plumb(laptop: &Namespace) -> linux::Result<(linux::attachment::Attachment, Plumbing)> {
    plumb_over(laptop, &USB)
}

/// Does the same on these uplinks.
fn plumb_over(laptop: &Namespace, interfaces: &[&str]) -> linux::Result<(linux::attachment::Attachment, Plumbing)> {
    laptop.run(|| {
        let uplinks = uplink::discover(&names(interfaces))?;
        let (attachment, paths) = uplink::attach(&uplinks, Families::OfNow)?;
        let plan = uplink::plan(attachment.tun.name(), &paths, &Surroundings::look(&uplinks)?)?;
        Ok((attachment, Plumbing::lay(plan, &Stop::new()?)?))
    })?
}

#[test]
fn both_phones_carry_data_and_nothing_is_left() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new("both", BYTES);
    let _server = net.web_server(&files.0, "0.0.0.0");
    // Reverse-path filters as in some distributions: two interfaces with one subnet do not pass a strict one.
    for strictness in ["0", "1", "2"] {
        net.laptop.set("ipv4/conf/all/rp_filter", strictness).unwrap();
        let before = net.state();
        in_three_tries(|| {
            let report = thread::scope(|scope| {
                let download = scope.spawn(|| get_over(&net.laptop, URL, &files.copy(0), &USB).unwrap());
                // Phones forget the laptop's link address, and ask again.
                while !download.is_finished() {
                    sleep(Duration::from_millis(100));
                    (0..2).for_each(|number| net.phone(number).ip(["neigh flush dev lan".into()]).unwrap());
                }
                download.join().unwrap()
            });
            assert!(files.arrived(0));
            assert_eq!(net.state(), before);
            two_carried(&report, BYTES as u64 / 10)
        })
        .unwrap();
    }
    assert!((0..2).all(|number| net.received_bytes(number) > BYTES as u64 / 4));
}

/// More subflows over an uplink would share its rate, and take the places of others.
#[test]
fn addresses_that_the_server_announces_get_no_further_subflows() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new("announced", BYTES);
    let _server = net.web_server(&files.0, "0.0.0.0");
    let announced = ["10.9.8.1", "10.9.8.2", "10.9.8.3"];
    for address in announced {
        net.server().ip([format!("address add {address}/32 dev lo")]).unwrap();
        output(net.server(), "ip", &["mptcp", "endpoint", "add", address, "signal"]);
    }
    output(net.server(), "ip", &["mptcp", "limits", "set", "subflows", "8"]);
    in_three_tries(|| {
        let report = get_over(&net.laptop, URL, &files.copy(0), &USB).unwrap();
        assert!(files.arrived(0));
        two_carried(&report, BYTES as u64 / 4)
    })
    .unwrap();
}

#[test]
fn ipv6_is_translated_too() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new("ipv6", BYTES);
    let _server = net.web_server(&files.0, "::");
    let before = net.state();
    in_three_tries(|| {
        let report = get_over(&net.laptop, "http://[fd09::9]:8000/data.bin", &files.copy(0), &USB).unwrap();
        assert!(files.arrived(0));
        assert_eq!(net.state(), before);
        two_carried(&report, BYTES as u64 / 10)
    })
    .unwrap();
}

#[test]
fn what_a_narrow_hop_says_reaches_the_engine() {
    let narrow = "delay = '2 ms'\nmiddleboxes = [{ narrow = { size = '1400 B' } }]";
    let Some(net) = Tethered::new([narrow, narrow]) else { return };
    let (mut attachment, _plumbing) = plumb(&net.laptop).unwrap();
    // A packet of the engine that is too large for the hop behind the phone; the hop answers to the phone's address.
    let mut packet = vec![0_u8; 1500];
    packet[..20].copy_from_slice(&[0x45, 0, 5, 220, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 99, 0, 3, 10, 9, 9, 9]);
    let sum = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[20..28].copy_from_slice(&[0x30, 0x39, 0, 9, 5, 200, 0, 0]);
    let header = [0; linux::offload::Offload::LEN];
    let mut answer = None;
    wait_until("the word arrives", || {
        let parts = [std::io::IoSlice::new(&header), std::io::IoSlice::new(&packet)];
        attachment.tun.write(&parts).unwrap();
        while let Some(incoming) = attachment.tun.read().unwrap() {
            let octets = incoming.octets();
            // ICMP, destination unreachable, fragmentation needed.
            if octets[0] >> 4 == 4 && octets[9] == 1 && octets[20..22] == [3, 4] {
                answer = Some(octets.to_vec());
            }
        }
        answer.is_some()
    });
    let answer = answer.unwrap();
    assert_eq!(answer[16..20], [10, 99, 0, 3], "to the engine");
    assert_eq!(answer[40..44], [10, 99, 0, 3], "about what the engine sent");
    assert_eq!(answer[26..28], 1400_u16.to_be_bytes());
}

#[test]
fn strangers_get_nowhere_through_the_laptop() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    // A stranger on the LAN of phone 0 uses the laptop as a router: to the LAN of phone 1, to a third network, and to
    // the engine.
    let third = ["link add third type veth peer name far", "link set third up", "link set far up"];
    net.laptop.ip(third.map(str::to_owned)).unwrap();
    net.laptop.ip(["address add 10.77.0.1/24 dev third".into()]).unwrap();
    let stranger = net.phone(0);
    stranger
        .ip([
            "address add 192.168.42.66/24 dev lan",
            "route add 10.77.0.0/24 via 192.168.42.10",
            "route add 10.99.0.0/24 via 192.168.42.10",
            "route add 203.0.113.0/24 via 192.168.42.10",
        ]
        .map(str::to_owned))
        .unwrap();
    // Counts all packets of the stranger that the laptop passes on.
    let count = "add table inet watch; add chain inet watch pass { type filter hook postrouting priority 300; }; \
        add rule inet watch pass ip saddr 192.168.42.66 counter";
    output(&net.laptop, "nft", &[count]);
    let passed = || output(&net.laptop, "nft", &["list", "table", "inet", "watch"]);
    let (mut attachment, plumbing) = plumb(&net.laptop).unwrap();
    let knock = "import socket\nfor to in '10.77.0.2', '10.99.0.2', '10.99.0.3', '203.0.113.7':\n \
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('192.168.42.66', 0)); s.sendto(b'x' * 100, (to, 9))";
    for _ in 0..3 {
        output(stranger, "python3", &["-c", knock]);
        sleep(Duration::from_millis(100));
    }
    assert!(passed().contains("packets 0 "), "{}", passed());
    assert!(attachment.tun.read().unwrap().is_none(), "the engine has heard of a stranger");
    // The counter works: a host that is already a router remains one, except towards the engine.
    drop(plumbing);
    net.laptop.set("ipv4/ip_forward", "1").unwrap();
    output(stranger, "python3", &["-c", knock]);
    wait_until("a router forwards", || !passed().contains("packets 0 "));
    let (mut attachment, _plumbing) = {
        drop(attachment);
        plumb(&net.laptop).unwrap()
    };
    output(stranger, "python3", &["-c", knock]);
    sleep(Duration::from_millis(100));
    assert!(attachment.tun.read().unwrap().is_none(), "the engine has heard of a stranger");
}

/// Like a Wi-Fi without an address: its interface stays.
#[test]
fn an_uplink_that_is_replaced_forwards_nothing() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let third = ["link add third type veth peer name far", "link set third up", "link set far up"];
    net.laptop.ip(third.map(str::to_owned)).unwrap();
    net.laptop.ip(["address add 10.77.0.1/24 dev third".into()]).unwrap();
    let stranger = net.phone(0);
    let on_lan = ["address add 192.168.42.66/24 dev lan", "route add 10.77.0.0/24 via 192.168.42.10"];
    stranger.ip(on_lan.map(str::to_owned)).unwrap();
    let count = "add table inet watch; add chain inet watch pass { type filter hook postrouting priority 300; }; \
        add rule inet watch pass ip saddr 192.168.42.66 counter";
    output(&net.laptop, "nft", &[count]);
    let passed = || output(&net.laptop, "nft", &["list", "table", "inet", "watch"]);
    let knock = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        s.bind(('192.168.42.66', 0)); s.sendto(b'x' * 100, ('10.77.0.2', 9))";
    let forwarding = |name: &str| format!("ipv4/conf/{name}/forwarding");
    let is_on = |name: &str| output(&net.laptop, "cat", &[&format!("/proc/sys/net/{}", forwarding(name))]) == "1\n";
    net.unplug(1);
    let (attachment, mut plumbing) = plumb_over(&net.laptop, &["usb0"]).unwrap();
    net.plug_in(1);
    let newcomer = net.laptop.run(|| uplink::discover(&names(&["usb1"])).unwrap().remove(0)).unwrap();
    assert!(is_on("usb0") && !is_on("usb1"));
    let mut admit = |uplink, predecessor| net.laptop.run(|| plumbing.admit(uplink, predecessor)).unwrap();

    // The kernel refuses its route, after everything else was done.
    let mut odd = newcomer.clone();
    odd.v4.as_mut().unwrap().gateway = Some(std::net::Ipv4Addr::new(224, 0, 0, 1).into());
    assert!(admit(&odd, Some("usb0")).is_err());
    assert!(!is_on("usb0") && is_on("usb1"));
    net.laptop.run(|| plumbing.replace(&uplink::discover(&names(&["usb0"]))?[0])).unwrap().unwrap();
    let guards = |name: &str| {
        let rule = format!("meta nfproto ipv4 iifname \"{name}\" oifname != \"anabranch*\" drop");
        output(&net.laptop, "nft", &["list", "ruleset"]).contains(&rule)
    };
    assert!(is_on("usb0") && guards("usb0") && guards("usb1"));

    let mut admit = |uplink, predecessor| net.laptop.run(|| plumbing.admit(uplink, predecessor)).unwrap();
    assert_eq!(admit(&newcomer, Some("usb0")).unwrap(), 0);
    assert!(!is_on("usb0") && is_on("usb1") && guards("usb1"));
    for _ in 0..3 {
        output(stranger, "python3", &["-c", knock]);
        sleep(Duration::from_millis(100));
    }
    assert!(passed().contains("packets 0 "), "{}", passed());
    net.laptop.set(&forwarding("usb0"), "1").unwrap();
    output(stranger, "python3", &["-c", knock]);
    wait_until("the counter works", || !passed().contains("packets 0 "));
    drop((plumbing, attachment));
    assert!(is_on("usb0") && !is_on("usb1"), "another program's setting stays, and ours does not");
}

/// Like containers that start after a join: their network's packets leave by an uplink, translated.
#[test]
fn a_network_behind_the_laptop_gets_answers_meanwhile_and_afterwards() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let (attachment, plumbing) = plumb(&net.laptop).unwrap();
    let inner = net.server();
    net.phone(0).ip(["address add 10.66.0.1/32 dev lo".into()]).unwrap();
    net.laptop
        .ip([
            format!("link add inner type veth peer name outer netns {}", inner.name()),
            "address add 10.55.0.1/24 dev inner".into(),
            "link set inner up".into(),
        ])
        .unwrap();
    inner.ip(["address add 10.55.0.2/24 dev outer", "link set outer up"].map(str::to_owned)).unwrap();
    inner.ip(["route add 10.66.0.1 via 10.55.0.1".into()]).unwrap();
    net.laptop.set("ipv4/ip_forward", "1").unwrap();
    let translate = "add table ip inner; add chain ip inner post { type nat hook postrouting priority srcnat; }; \
        add rule ip inner post ip saddr 10.55.0.0/24 masquerade";
    output(&net.laptop, "nft", &[translate]);
    // A refusal because nobody listens there is an answer.
    let knock =
        "import socket\ntry: socket.create_connection(('10.66.0.1', 9), 1)\nexcept ConnectionRefusedError: pass";
    let answers = || {
        let mut python = inner.command("python3").unwrap();
        python.args(["-c", knock]).stderr(std::process::Stdio::null()).status().unwrap().success()
    };
    wait_until("it gets answers", answers);
    drop((attachment, plumbing));
    wait_until("it gets answers afterwards", answers);
}

/// Runs as a child of the next test, which kills it.
#[test]
#[ignore = "the child of tests here, which kill it"]
fn get_until_killed() {
    let Ok(name) = std::env::var("INTEROP_NAMESPACE") else { return };
    let folder = PathBuf::from(std::env::var_os("INTEROP_FOLDER").unwrap());
    let laptop = Namespace::open(&name).unwrap();
    println!("begins");
    let _ = get_over(&laptop, URL, &folder.join("never.bin"), &USB);
}

/// Starts a download in a separate process.
fn start_child(net: &Tethered, files: &Files) -> Running {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "uplinks::get_until_killed", "--ignored", "--nocapture"]);
    command.env("INTEROP_NAMESPACE", net.laptop.name()).env("INTEROP_FOLDER", &files.0);
    Running(command.stdout(Stdio::null()).spawn().unwrap())
}

#[test]
fn a_killed_download_leaves_nothing() {
    let slow = "rate = '1 Mbit/s'";
    let Some(net) = Tethered::new([slow, slow]) else { return };
    let files = Files::new("killed", BYTES);
    let _server = net.web_server(&files.0, "0.0.0.0");
    // All moments of the set-up, and some of the download.
    let moments = (0..20).map(|round| Duration::from_millis(round * 13));
    let is_up = || net.state().contains("from 10.99.0.3");
    kill_at(moments, || start_child(&net, &files), is_up, || net.state());
}

#[test]
fn what_a_killed_janitor_leaves_is_cleaned_and_nothing_of_the_living() {
    let slow = "rate = '1 Mbit/s'";
    let Some(net) = Tethered::new([slow, slow]) else { return };
    let files = Files::new("clean", BYTES);
    let _server = net.web_server(&files.0, "0.0.0.0");
    let before = net.state();
    let child = start_child(&net, &files);
    wait_until("the child has laid all", || net.state().contains("from 10.99.0.3"));
    let (attachment, plumbing) = plumb(&net.laptop).unwrap();
    let both = net.state();
    assert!(both.contains("10.99.0.2") && both.contains("10.99.1.2"), "{both}");
    kill_with_janitors(child, &net.laptop, "anabranch0");
    assert!(net.state().contains("10.99.0.2"), "the janitor was to be killed");
    let cleaned = net.laptop.run(uplink::clean).unwrap().unwrap();
    assert_eq!(cleaned, ["anabranch0"]);
    let after = net.state();
    assert!(!after.contains("10.99.0.2") && after.contains("from 10.99.1.3"), "{after}");
    assert!(after.contains("ipv4/conf/usb0/forwarding 1"), "the other one needs it");
    // The last one restores the state.
    drop((attachment, plumbing));
    assert_eq!(net.state(), before);
}

#[test]
fn what_was_written_down_in_a_namespace_that_is_no_more_is_forgotten_and_nothing_of_others() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let namespace = net.phone(0).run(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
    let other = namespace.to_string_lossy().trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
    fs::create_dir_all("/run/anabranch").unwrap();
    // No namespace has the number 1.
    let file = |number: &str, kind: &str| PathBuf::from(format!("/run/anabranch/{number}-anabranch7.{kind}"));
    let [gone, alive, there] = [file("1", "undo"), file("1", "alive"), file(&other, "undo")];
    for path in [&gone, &alive, &there] {
        fs::write(path, "table 4 990700\n").unwrap();
    }
    let elsewhere = net.laptop.run(uplink::forget).unwrap().unwrap();
    // Tests that run beside this one leave some too.
    assert!(elsewhere.forgotten >= 1 && elsewhere.remaining >= 1, "{elsewhere:?}");
    assert!(!gone.exists() && !alive.exists() && there.exists());
    assert_eq!(net.phone(0).run(uplink::clean).unwrap().unwrap(), ["anabranch7"]);
}

/// A journal that a full disk or a crash has truncated: its complete lines are undone, an incomplete one is ignored.
#[test]
fn a_journal_that_was_cut_undoes_what_is_whole_and_nothing_else() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let before = net.state();
    net.laptop.ip(["route add 10.77.0.0/16 dev usb0 table 9900".to_owned()]).unwrap();
    let kept = net.state();
    let namespace = net.laptop.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
    let number = namespace.to_string_lossy().trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
    let journal = PathBuf::from(format!("/run/anabranch/{number}-anabranch7.undo"));
    let whole = "rule 4 10.99.7.2 990000 107\ntable 4 990000\nsysctl ipv4/conf/usb0/forwarding 1 0\n";
    // `table 4 9900` would be another program's table.
    let cuts = (0..=whole.len())
        .filter(|len| len % 3 == 0)
        .chain(["table 4 9900", "table 4 9"].map(|end| whole.find(end).unwrap() + end.len()));
    for len in cuts {
        net.laptop
            .ip(["route add 10.78.0.0/16 dev usb0 table 990000", "rule add from 10.99.7.2 lookup 990000 priority 107"]
                .map(str::to_owned))
            .unwrap();
        fs::create_dir_all("/run/anabranch").unwrap();
        fs::write(&journal, &whole[..len]).unwrap();
        assert_eq!(net.laptop.run(uplink::clean).unwrap().unwrap(), ["anabranch7"], "{len}");
        assert!(!journal.exists());
        let left = ["rule del from 10.99.7.2 lookup 990000", "route flush table 990000"];
        left.iter().for_each(|command| drop(output(&net.laptop, "sh", &["-c", &format!("ip {command} || true")])));
        assert_eq!(net.state(), kept, "{len}");
    }
    output(&net.laptop, "ip", &["route", "flush", "table", "9900"]);
    assert_eq!(net.state(), before);
}

#[test]
fn two_downloads_at_once_do_not_meet() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new("two", BYTES);
    let _server = net.web_server(&files.0, "0.0.0.0");
    let before = net.state();
    thread::scope(|scope| {
        let (net, files) = (&net, &files);
        for number in 0..3 {
            scope.spawn(move || get_over(&net.laptop, URL, &files.copy(number), &USB).unwrap());
        }
    });
    assert!((0..3).all(|number| files.arrived(number)));
    assert_eq!(net.state(), before);
}

#[test]
fn a_phone_that_is_plugged_in_again_is_used_again() {
    let link = "rate = '8 Mbit/s'\ndelay = '10 ms'";
    let Some(net) = Tethered::new([link, link]) else { return };
    // Long enough for everything that is awaited below, also on a busy machine.
    let files = Files::new("plug", 40_000_000);
    let _server = net.web_server(&files.0, "0.0.0.0");
    let report = thread::scope(|scope| {
        let download = scope.spawn(|| get_over(&net.laptop, URL, &files.copy(0), &USB).unwrap());
        for number in [1, 0] {
            wait_until("the phone carries data", || net.received_bytes(number) > 300_000);
            net.unplug(number);
            sleep(Duration::from_millis(1_000));
            net.plug_in(number);
            wait_until("the phone carries data again", || net.received_bytes(number) > 300_000);
            assert!(!download.is_finished());
        }
        download.join().unwrap()
    });
    assert!(files.arrived(0));
    assert!(report.connection.mptcp);
    assert!(!net.state().contains("anabranch"), "{}", net.state());
}

#[test]
fn a_phone_with_a_loose_plug_does_no_harm() {
    let link = "rate = '8 Mbit/s'\ndelay = '10 ms'";
    let Some(net) = Tethered::new([link, link]) else { return };
    let files = Files::new("loose", 40_000_000);
    let _server = net.web_server(&files.0, "0.0.0.0");
    let before = net.state();
    thread::scope(|scope| {
        let download = scope.spawn(|| get_over(&net.laptop, URL, &files.copy(0), &USB).unwrap());
        wait_until("the phone carries data", || net.received_bytes(1) > 300_000);
        // Around the time that the watch waits before it looks.
        for round in 0..15 {
            sleep(Duration::from_millis(20 * round));
            net.unplug(1);
            sleep(Duration::from_millis(10 * round));
            net.plug_in(1);
        }
        wait_until("the phone carries data again", || net.received_bytes(1) > 300_000);
        assert!(!download.is_finished());
        download.join().unwrap();
    });
    assert!(files.arrived(0));
    assert_eq!(net.state(), before);
}

/// As with `systemctl restart nftables`.
#[test]
fn a_guard_that_somebody_removes_is_laid_again() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let before = net.state();
    let (attachment, mut plumbing) = plumb(&net.laptop).unwrap();
    let rules = || output(&net.laptop, "nft", &["list", "ruleset"]);
    let flush = || output(&net.laptop, "nft", &["flush", "ruleset"]);
    let (whole, check) = (rules(), |plumbing: &mut Plumbing| net.laptop.run(|| plumbing.check_guard()).unwrap());
    assert!(whole.contains("masquerade") && check(&mut plumbing).is_none());
    flush();
    assert!(matches!(check(&mut plumbing), Some(GuardLoss::Replaced)));
    assert_eq!(rules(), whole);
    assert!(check(&mut plumbing).is_none(), "it is told once");
    // Its chains stay, without rules.
    output(&net.laptop, "nft", &["flush", "table", "inet", "anabranch0"]);
    assert!(matches!(check(&mut plumbing), Some(GuardLoss::Replaced)));
    assert_eq!(rules(), whole);
    assert!(check(&mut plumbing).is_none());
    // An uplink returns before the watch has looked.
    flush();
    net.laptop.run(|| plumbing.replace(&uplink::discover(&names(&USB))?[0])).unwrap().unwrap();
    assert_eq!(rules(), whole);
    drop((plumbing, attachment));
    assert_eq!(net.state(), before);
}

/// As with `systemctl restart nftables` and systemd-networkd.
#[test]
fn what_is_removed_during_a_download_is_laid_again() {
    let link = "rate = '8 Mbit/s'\ndelay = '10 ms'";
    let Some(net) = Tethered::new([link, link]) else { return };
    let files = Files::new("removed", 48_000_000);
    let _server = net.web_server(&files.0, "0.0.0.0");
    let before = net.state();
    let shell = |script: &str| output(&net.laptop, "sh", &["-c", script]);
    let rules = || shell("ip rule | grep -c '10[.]99[.]' || true");
    thread::scope(|scope| {
        let download = scope.spawn(|| get_over(&net.laptop, URL, &files.copy(0), &USB).unwrap());
        wait_until("both phones carry data", || (0..2).all(|number| net.received_bytes(number) > 300_000));
        let whole = rules();
        shell("nft flush ruleset; ip rule del priority 100; ip rule del priority 100");
        wait_until("the guard is there again", || shell("nft list ruleset").contains("masquerade"));
        wait_until("the rules are there again", || rules() == whole);
        let so_far = [0, 1].map(|number| net.received_bytes(number));
        wait_until("both carry on", || (0..2).all(|number| net.received_bytes(number) > so_far[number] + 300_000));
        // The next janitor undoes everything.
        let janitors = || janitors_of(&net.laptop, "anabranch0");
        let first = janitors();
        first.iter().for_each(|pid| drop(Command::new("kill").args(["-KILL", pid]).status()));
        wait_until("another janitor is there", || janitors().iter().any(|pid| !first.contains(pid)));
        assert!(!download.is_finished());
        download.join().unwrap();
    });
    assert!(files.arrived(0));
    assert_eq!(net.state(), before);
}

#[test]
fn a_firewall_that_drops_is_told() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let docker =
        "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }";
    output(&net.laptop, "nft", &[docker]);
    let plan = net.laptop.run(|| uplink::rehearse(&uplink::discover(&names(&USB))?, Families::OfNow)).unwrap().unwrap();
    assert!(plan.to_string().contains("note: the firewall's chain `ip filter FORWARD`"), "{plan}");
}

#[test]
fn what_is_no_uplink_is_told_in_one_line() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let before = net.state();
    let expect = |interface: &str, why: &str| {
        let error = get_over(&net.laptop, URL, Path::new("/nowhere"), &[interface]).unwrap_err();
        assert!(error.contains(why) && !error.contains('\n'), "{error}");
    };
    expect("usb7", "does not exist: there are usb0, usb1");
    expect("lo", "loopback");
    net.laptop.ip(["address flush dev usb1".into()]).unwrap();
    expect("usb1", "has no address: switch on the phone's tethering");
    net.laptop.ip(["link set usb1 down".into()]).unwrap();
    expect("usb1", "ip link set usb1 up");
    net.laptop.ip(["link set usb1 up".into(), "address add 192.168.42.10/24 dev usb1".into()]).unwrap();
    expect("usb1", "ip route add default via GATEWAY dev usb1");
    net.laptop.ip(["route add default via 192.168.42.129 dev usb1 metric 101".into()]).unwrap();
    net.laptop
        .ip([
            "address add fdc0:42::10/64 dev usb1 nodad".into(),
            "address add fe80::10/64 dev usb1 nodad".into(),
            "route add default via fdc0:42::129 dev usb1 metric 101".into(),
        ])
        .unwrap();
    wait_until("all is as it was", || net.state() == before);
}

#[test]
fn the_watch_tells_what_becomes_of_an_uplink() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let laptop = &net.laptop;
    let uplinks = laptop.run(|| uplink::discover(&names(&USB))).unwrap().unwrap();
    let mut watch = laptop.run(|| Watch::new(&uplinks)).unwrap().unwrap();
    let mut next = || {
        let mut change = None;
        wait_until("a change is told", || {
            change = laptop.run(|| watch.next()).unwrap().unwrap();
            change.is_some()
        });
        change.unwrap()
    };
    let lost = |change: Change, said: &str| match change {
        Change::Lost { interface, why, .. } => assert!(interface == "usb1" && why.contains(said), "{why}"),
        other => panic!("{other:?}"),
    };
    let usable = |change: Change| match change {
        Change::Usable(uplink) => uplink,
        other => panic!("{other:?}"),
    };
    net.unplug(1);
    lost(next(), "does not exist");
    net.plug_in(1);
    let mut back = usable(next());
    while back.ways().count() < 2 {
        back = usable(next());
    }
    assert!(back.index != uplinks[1].index && back.v4 == uplinks[1].v4, "{back:?}");
    net.phone(1).ip(["link set lan down".into()]).unwrap();
    lost(next(), "no carrier");
    net.phone(1).ip(["link set lan up".into()]).unwrap();
    assert!(usable(next()).v4.is_some());
    laptop
        .ip([
            "address flush dev usb1 to 192.168.42.0/24".into(),
            "address add 192.168.42.77/24 dev usb1".into(),
            "route replace default via 192.168.42.129 dev usb1 metric 101".into(),
        ])
        .unwrap();
    let other = "192.168.42.77".parse().ok();
    while usable(next()).v4.map(|way| way.address) != other {}
    // Its routes vanished when it was down, and nothing has restored them.
    laptop.ip(["link set usb1 down".into()]).unwrap();
    lost(next(), "is down");
    laptop.ip(["link set usb1 up".into()]).unwrap();
    lost(next(), "no default route");
    laptop.ip(["route add default via 192.168.42.129 dev usb1 metric 101".into()]).unwrap();
    assert!(usable(next()).v4.is_some());
    // A change that does not affect the uplinks is ignored.
    laptop.ip(["link add other type veth peer name far".into()]).unwrap();
    sleep(Duration::from_millis(500));
    let rest: Vec<_> = core::iter::from_fn(|| laptop.run(|| watch.next()).unwrap().unwrap()).collect();
    assert!(
        rest.iter().all(|change| matches!(change, Change::Usable(uplink) if uplink.interface == "usb1")),
        "{rest:?}"
    );
}

/// Everything looks as before, but its routes are gone, including ours.
#[test]
fn an_uplink_that_was_down_for_a_moment_is_told_of() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let laptop = &net.laptop;
    // With IPv6 the address would vanish too, which is noticed.
    let route = "route add default via 192.168.77.1 dev ext0 metric 900";
    laptop.ip(["link add ext0 type veth peer name far".into()]).unwrap();
    laptop.ip(["link set far up", "link set ext0 addrgenmode none up"].map(str::to_owned)).unwrap();
    laptop.ip(["address add 192.168.77.2/24 dev ext0", route].map(str::to_owned)).unwrap();
    let uplinks = laptop.run(|| uplink::discover(&names(&["ext0"]))).unwrap().unwrap();
    let mut watch = laptop.run(|| Watch::new(&uplinks)).unwrap().unwrap();
    let mut next = || laptop.run(|| watch.next()).unwrap().unwrap();
    sleep(Duration::from_millis(500));
    while next().is_some() {}
    laptop.ip(["link set ext0 down", "link set ext0 up", route].map(str::to_owned)).unwrap();
    wait_until("it is told", || next() == Some(Change::Usable(uplinks[0].clone())));
}

#[test]
fn a_phone_may_come_later() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    net.unplug(1);
    net.laptop.set("ipv4/conf/all/rp_filter", "1").unwrap();
    let before = net.state();
    let laptop = &net.laptop;
    let (attachment, mut plumbing) = laptop
        .run(|| {
            let mut uplinks = uplink::discover(&names(&["usb0"])).unwrap();
            uplinks.push(uplink::Uplink::absent("usb1").unwrap());
            let (attachment, paths) = uplink::attach(&uplinks, Families::OfNow).unwrap();
            let plan = uplink::plan(attachment.tun.name(), &paths, &Surroundings::look(&uplinks).unwrap()).unwrap();
            (attachment, Plumbing::lay(plan, &Stop::new().unwrap()).unwrap())
        })
        .unwrap();
    net.plug_in(1);
    laptop.run(|| plumbing.replace(&uplink::discover(&names(&["usb1"])).unwrap()[0])).unwrap().unwrap();
    let shown = net.state();
    for part in [
        "default via 192.168.42.129 dev usb1 table 990001",
        "default via fdc0:42::129 dev usb1 table 990001",
        "ipv4/conf/usb1/forwarding 1",
        "ipv4/conf/usb1/rp_filter 2",
        // The network of usb0 now exists on another uplink, too.
        "ipv4/conf/usb0/rp_filter 2",
        "nfproto ipv4 iifname \"usb1\" oifname != \"anabranch*\" drop",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    drop((attachment, plumbing));
    net.unplug(1);
    assert_eq!(net.state(), before);
}
