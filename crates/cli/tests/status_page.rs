//! docs/status.md describes every field of `status --json`, and no others.

use std::collections::BTreeSet;

use daemon::join::status::{JoinStatus, UnheardFamily, UplinkStatus};
use daemon::kernel_mode::{KernelStatus, Totals};
use daemon::links::LinkStatus;
use daemon::proxy::choice::{Tier, Uplink, UplinkView};
use daemon::proxy::status::{AddressStatus, ClientStatus, ProxyStatus, UplinkMeter};
use daemon::relay::Mode;
use daemon::relay::status::{Lent, LentTo, RelayStatus};
use serde_json::Value;
use units::{Duration, Instant};

use crate::statistics_page::described_in;

const PAGE: &str = include_str!("../../../docs/status.md");

fn place() -> std::net::IpAddr {
    "10.99.0.2".parse().unwrap()
}

fn link() -> LinkStatus {
    LinkStatus {
        interface: "via-anna".into(),
        relay: "anna".into(),
        key: "07".into(),
        slot: 1,
        place: place(),
        is_up: true,
        is_paired: true,
        is_renumbered: false,
        no_device: None,
        silent: None,
        round_trip: None,
        lends: None,
        lends_in_words: None,
        is_backup: false,
        spare_bps: None,
        owner_bps: None,
        left_bytes: None,
        volume_renews: None,
    }
}

/// Every part that may be absent is there.
fn uplink() -> UplinkStatus {
    UplinkStatus {
        interface: "usb0".into(),
        tier: Tier::Primary,
        price: 0,
        carries: true,
        held_back: false,
        portal: false,
        estimate_bps: None,
        lost: None,
        unheard: None,
        unheard_family: Some(UnheardFamily { family: "IPv6", span: Duration::ZERO }),
        ways: Vec::new(),
        base_rtt: None,
        queue: Duration::ZERO,
        meter: UplinkMeter::default(),
        link: Some(link()),
        subflows: Some(1),
    }
}

fn proxy() -> ProxyStatus {
    let view = UplinkView {
        uplink: Uplink { ip: place(), tier: Tier::Primary, link: 0, near: None },
        base_rtt: None,
        queue: Duration::ZERO,
        rate_bytes: 0,
        busy: 0,
        failures: 0,
        portal: false,
    };
    let client = ClientStatus {
        protocol: "none",
        target: None,
        stage: "opening",
        age: Duration::ZERO,
        up_bytes: 0,
        down_bytes: 0,
        connection: None,
    };
    ProxyStatus {
        listen: (place(), 1080).into(),
        totals: Default::default(),
        addresses: vec![AddressStatus { view, held_back: false, meter: UplinkMeter::default() }],
        clients: vec![client],
    }
}

fn join() -> JoinStatus {
    let kernel = KernelStatus { connections: 0, unmanaged_subflows: 0, totals: Totals::default() };
    JoinStatus {
        version: "0",
        device: "anabranch0".into(),
        state: "/".into(),
        at: Instant::ZERO,
        target_bps: None,
        uplinks: vec![uplink()],
        proxy: Some(proxy()),
        kernel: Some(kernel),
    }
}

fn relay() -> RelayStatus {
    let to = LentTo {
        name: "laptop".into(),
        slot: 1,
        is_up: true,
        place: None,
        down_bytes: 0,
        up_bytes: 0,
        lost_packets: 0,
        spliced_subflows: 0,
    };
    RelayStatus {
        relay: Lent { mode: Mode::Route, destinations: vec![to], ..Lent::default() },
        ..RelayStatus::default()
    }
}

/// Asserts that the page describes the fields of the value at `pointer`, below `heading`.
fn is_described(status: &Value, pointer: &str, heading: &str) {
    let object = status.pointer(pointer).and_then(Value::as_object).expect(pointer);
    let fields: BTreeSet<String> = object.keys().cloned().collect();
    assert_eq!(fields, described_in(PAGE, heading), "{heading}");
}

#[test]
fn every_field_of_a_daemon_is_described() {
    let status = serde_json::to_value(join()).unwrap();
    for (pointer, heading) in [
        ("", "## A join"),
        ("/uplinks/0", "### Uplinks"),
        ("/uplinks/0/unheard_family", "### Silent families"),
        ("/uplinks/0/meter", "### Meters"),
        ("/uplinks/0/link", "### Links to relays"),
        ("/proxy", "### The proxy"),
        ("/proxy/totals", "### Totals of the proxy"),
        ("/proxy/addresses/0", "### Addresses of the engine"),
        ("/proxy/clients/0", "### Clients"),
        ("/kernel", "### The kernel's connections"),
        ("/kernel/totals", "### Totals of the kernel"),
    ] {
        is_described(&status, pointer, heading);
    }
    let status = serde_json::to_value(relay()).unwrap();
    for (pointer, heading) in
        [("", "## A relay"), ("/relay", "### What is lent"), ("/relay/destinations/0", "### Destinations")]
    {
        is_described(&status, pointer, heading);
    }
}
