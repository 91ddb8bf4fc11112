//! What other programs take away from under the plumbing comes back.

use linux::attachment::Attachment;
use linux::uplink::WaysLoss;

use super::*;

/// The plumbing of an engine on both uplinks, looked after as a download does.
struct Kept<'a> {
    laptop: &'a Namespace,
    _attachment: Attachment,
    plumbing: Plumbing,
    watch: Watch,
}

impl<'a> Kept<'a> {
    fn new(laptop: &'a Namespace) -> Self {
        let (attachment, plumbing) = plumb(laptop).unwrap();
        let watch = laptop.run(|| Watch::new(&uplink::discover(&names(&USB)).unwrap())).unwrap().unwrap();
        let mut kept = Self { laptop, _attachment: attachment, plumbing, watch };
        wait_until("the watch has looked", || kept.look().is_none() && !kept.watch.is_about_to_look());
        kept
    }

    /// Follows the uplinks, and then checks once.
    fn look(&mut self) -> Option<WaysLoss> {
        let Self { laptop, plumbing, watch, .. } = self;
        let look = || {
            while let Some(change) = watch.next().unwrap() {
                match change {
                    Change::Usable(uplink) => plumbing.replace(&uplink).unwrap(),
                    Change::Lost { interface, renamed: Some(name), .. } => {
                        plumbing.note_renamed(&interface, &name).unwrap();
                    }
                    Change::Lost { .. } | Change::Unlisted { .. } => {}
                }
            }
            plumbing.check_ways(watch)
        };
        laptop.run(look).unwrap()
    }

    /// Looks until something was restored, and returns what had happened to it.
    fn restored(&mut self) -> String {
        let mut what = None;
        wait_until("it is restored", || {
            what = what.take().or_else(|| self.look());
            what.is_some()
        });
        match what {
            Some(WaysLoss::Replaced(what)) => what,
            other => panic!("{other:?}"),
        }
    }
}

/// As with programs that make this host a router while they run.
#[test]
fn forwarding_that_is_switched_off_everywhere_is_on_again() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let forwarding = || {
        let show = "cd /proc/sys/net; grep . ipv4/conf/anabranch0/forwarding ipv4/conf/usb*/forwarding; \
            nft list ruleset";
        output(&net.laptop, "sh", &["-c", show])
    };
    let whole = {
        let _kept = Kept::new(&net.laptop);
        forwarding()
    };
    let before = net.state();
    for router_at_first in [false, true] {
        net.laptop.set("ipv4/ip_forward", if router_at_first { "1" } else { "0" }).unwrap();
        let mut kept = Kept::new(&net.laptop);
        net.laptop.set("ipv4/ip_forward", "1").unwrap();
        net.laptop.set("ipv4/ip_forward", "0").unwrap();
        assert!(kept.restored().starts_with("switched off forwarding"));
        assert_eq!(forwarding(), whole, "with the rules against strangers");
        drop(kept);
        wait_until("all is as it was", || net.state() == before);
    }
}

/// As with systemd-networkd, which removes addresses of links that its files match, and VPNs that set the main table
/// anew.
#[test]
fn the_addresses_and_routes_of_the_device_come_back() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let before = net.state();
    let mut kept = Kept::new(&net.laptop);
    let shell = |script: &str| output(&net.laptop, "sh", &["-c", script]);
    let addressing = || {
        let shown = shell(
            "ip -o address show dev anabranch0 | tr -s ' '; ip route show dev anabranch0; ip -6 route show dev anabranch0",
        );
        shown.lines().filter(|line| !line.contains("fe80:")).map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = addressing();
    assert!(whole.len() >= 4, "{whole:#?}");
    for removal in [
        "ip address flush dev anabranch0",
        "ip -4 address flush dev anabranch0",
        "ip -6 route flush dev anabranch0",
        "ip route flush dev anabranch0",
    ] {
        shell(removal);
        assert!(addressing().len() < whole.len(), "{removal}");
        // A report a minute is enough.
        wait_until(removal, || {
            let _ = kept.look();
            addressing() == whole
        });
    }
    drop(kept);
    wait_until("all is as it was", || net.state() == before);
}

/// As with VPNs that keep IPv6 off while they run. The kernel removes the device's address without giving it back, and
/// reports nothing that is deleted when IPv6 is on again.
#[test]
fn the_ipv6_address_of_the_device_comes_back_after_ipv6_was_off() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    net.laptop.ip(USB.map(|usb| format!("address flush dev {usb} to 192.168.42.0/24"))).unwrap();
    let mut kept = Kept::new(&net.laptop);
    let addressing = || {
        let show = "ip -o -6 address show dev anabranch0 scope global; ip -6 route show dev anabranch0";
        let shown = output(&net.laptop, "sh", &["-c", show]);
        shown.lines().filter(|line| !line.contains("fe80:")).map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = addressing();
    assert_eq!(whole.len(), 2, "{whole:#?}");
    net.laptop.set("ipv6/conf/all/disable_ipv6", "1").unwrap();
    wait_until("the uplinks are gone", || {
        let _ = kept.look();
        USB.iter().all(|usb| !kept.watch.has(usb))
    });
    // What was deleted has been looked at.
    for _ in 0..3 {
        let _ = kept.look();
    }
    net.laptop.set("ipv6/conf/all/disable_ipv6", "0").unwrap();
    let way = ["address add fdc0:42::10/64 dev usb0 nodad", "route add default via fdc0:42::129 dev usb0 metric 100"];
    net.laptop.ip(way.map(str::to_owned)).unwrap();
    wait_until("it is there again", || {
        let _ = kept.look();
        addressing() == whole
    });
}

/// As with the scripts of some DHCP clients when a lease begins. The kernel then drops all routes of the interface, and
/// does not report those of our tables.
#[test]
fn routes_that_vanish_with_an_address_come_back_with_it() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let before = net.state();
    let mut kept = Kept::new(&net.laptop);
    let routes = || output(&net.laptop, "ip", &["route", "show", "table", "990000"]);
    let whole = routes();
    let renewal = [
        "address flush dev usb0 to 192.168.42.0/24",
        "address add 192.168.42.10/24 dev usb0",
        "route add default via 192.168.42.129 dev usb0 metric 100",
    ];
    net.laptop.ip(renewal.map(str::to_owned)).unwrap();
    assert!(routes().len() < whole.len());
    wait_until("they are there again", || {
        let told = kept.look();
        assert!(told.is_none(), "nobody removed them: {told:?}");
        routes() == whole
    });
    drop(kept);
    wait_until("all is as it was", || net.state() == before);
}

#[test]
fn an_uplink_whose_name_another_one_takes_at_once_forwards_nothing_more() {
    let Some(net) = Tethered::distinct([LINK, LINK]) else { return };
    let mut kept = Kept::new(&net.laptop);
    let is_on =
        |name: &str| output(&net.laptop, "cat", &[&format!("/proc/sys/net/ipv4/conf/{name}/forwarding")]) == "1\n";
    let renaming = [
        "link set usb0 down",
        "link set usb0 name old",
        "link set usb1 down",
        "link set usb1 name usb0",
        "link set usb0 up",
        "route add default via 192.168.43.129 dev usb0 metric 100",
    ];
    net.laptop.ip(renaming.map(str::to_owned)).unwrap();
    assert!(is_on("old") && is_on("usb0"));
    wait_until("it is restored", || {
        let _ = kept.look();
        !is_on("old")
    });
    wait_until("its successor forwards", || {
        let _ = kept.look();
        is_on("usb0") && output(&net.laptop, "ip", &["route", "show", "table", "990000"]).contains("192.168.43.129")
    });
    drop(kept);
    wait_until("all is restored", || !is_on("old") && !is_on("usb0"));
}
