//! Devices of links that another program removes.

use std::fs;
use std::process::Command;

use interop::{Files, carried, output, wait_for, wait_until};

use super::{BYTES, Bed, state_of};

/// Returns the numbers of the existing link devices.
fn numbers(bed: &Bed) -> [String; 2] {
    ["via-anna", "via-bert"].map(|name| {
        output(&bed.net.laptop, "sh", &["-c", &format!("ip -o link show {name} 2>/dev/null | cut -d: -f1")])
            .trim()
            .to_owned()
    })
}

#[test]
fn a_device_that_is_deleted_is_made_again_and_the_other_link_goes_on() {
    let Some(bed) = Bed::new() else { return };
    // Long enough for everything that is awaited below, also on a busy machine.
    let files = Files::new(12 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    (0..2).for_each(|number| bed.pair(number));
    let before = (bed.net.state(), state_of(&bed.net.laptop));
    let _relays = [0, 1].map(|number| bed.lend(number));
    let joined = bed.join();
    let transfer = bed.curl(&files, &joined.ready);
    wait_until("both carry", || (0..2).all(|index| carried(&bed.status(), index) > 200_000));
    let first = numbers(&bed);
    output(&bed.net.laptop, "ip", &["link", "delete", "via-anna"]);
    wait_until("it is lost, and it is said why", || {
        let lost = bed.status()["uplinks"][0]["lost"].to_string();
        lost.contains("deleted") && lost.contains("created again")
    });
    let (had, other) = (carried(&bed.status(), 0), carried(&bed.status(), 1));
    wait_until("the other goes on", || carried(&bed.status(), 1) > other + 100_000);
    wait_until("it is used again", || carried(&bed.status(), 0) > had + 100_000);
    let second = numbers(&bed);
    assert!(second[0] != first[0] && second[1] == first[1], "{first:?}, {second:?}");
    wait_for(transfer);
    assert!(files.arrived());
    joined.end().unwrap();
    assert_eq!((bed.net.state(), state_of(&bed.net.laptop)), before);
}

#[test]
fn a_name_that_somebody_else_has_taken_is_left_to_them_and_said() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    bed.pair(0);
    let _relay = bed.lend(0);
    let _joined = bed.join();
    let laptop = &bed.net.laptop;
    laptop.ip(["link delete via-anna".to_owned(), "link add via-anna type veth peer name other".to_owned()]).unwrap();
    let lost = || bed.status()["uplinks"][1]["lost"].to_string();
    wait_until("it is said what to do", || lost().contains("already") && lost().contains("ip link delete via-anna"));
    assert!(output(laptop, "ip", &["-d", "link", "show", "via-anna"]).contains("veth"), "it is not ours");
    laptop.ip(["link delete via-anna".to_owned()]).unwrap();
    wait_until("the device is made again", || bed.status()["uplinks"][1]["lost"].is_null());
}

#[test]
fn a_device_that_was_down_is_used_again_when_it_is_up() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    let files = Files::new(1000);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let _relay = bed.lend(0);
    let _joined = bed.join();
    bed.net.laptop.ip(["link set via-anna down".to_owned()]).unwrap();
    let lost = || bed.status()["uplinks"][1]["lost"].to_string();
    wait_until("it is said that it is down", || lost().contains("is down"));
    bed.net.laptop.ip(["link set via-anna up".to_owned()]).unwrap();
    wait_until("it is used again", || bed.status()["uplinks"][1]["lost"].is_null());
    assert!(bed.reaches("via-anna", super::URL));
}

/// As by the kernel for want of memory. Nobody with the rights is left who could start another one.
#[test]
fn a_device_whose_helper_was_killed_stays_as_it_is() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    let files = Files::new(1000);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let phone = bed.net.phone(0);
    let (relay, _joined) = (bed.lend(0), bed.join());
    assert!(bed.reaches("via-anna", super::URL));
    let (first, [helper]) = (numbers(&bed), helpers(&bed).try_into().unwrap());
    assert!(Command::new("kill").args(["-KILL", &helper]).status().unwrap().success());
    phone.ip(["address delete fd00:1:1::1/47 dev path0".to_owned()]).unwrap();
    wait_until("the relay lends IPv4 only", || bed.relay_status(0)["relay"]["ipv6"] == false);
    for _ in 0..20 {
        assert_eq!(numbers(&bed), first);
        assert!(bed.reaches("via-anna", super::URL) && bed.status()["uplinks"][1]["lost"].is_null());
        super::sleep(std::time::Duration::from_millis(100));
    }
    relay.end().unwrap();
    wait_until("the end of the relay still counts", || !bed.status()["uplinks"][1]["lost"].is_null());
    assert!(!bed.status()["uplinks"][1]["lost"].to_string().contains("deleted"));
}

/// Returns the process numbers of the shells on the laptop that change addresses.
fn helpers(bed: &Bed) -> Vec<String> {
    let namespace = bed.net.laptop.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_one = |pid: &String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_there = fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|its| its == namespace);
        is_there && String::from_utf8_lossy(&line).contains("anabranch-ways")
    };
    all.filter(is_one).collect()
}
