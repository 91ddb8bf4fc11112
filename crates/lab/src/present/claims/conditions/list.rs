//! The conditions, in the order of the map's columns.

use super::Setting::{
    Always, EachOnWlan, InCell, OnLinks, OnWlan, WithForwarding, WithScheduler, WithTarget, WithoutRemedy,
};
use super::{Condition, Kind, Setting};

const fn switch(name: &'static str, why: &'static str, settings: &'static [Setting]) -> Condition {
    Condition { name, kind: Kind::Switch, why, settings }
}

const fn world(name: &'static str, why: &'static str, settings: &'static [Setting]) -> Condition {
    Condition { name, kind: Kind::World, why, settings }
}

const SHORT_UNIT: Setting = WithTarget("metrics.unit_packets=100");
const SHORT_RANGE: Setting = WithForwarding("cooperation.forwarding.range_packets=100");
const EARLY: Setting = WithScheduler("connection.era.binding=early");
const EARLY_BUFFER: Setting = WithScheduler("connection.era.subflow_send_buffer=128 KiB");
const WINDOW_64K: Setting = Always("connection.era.subflow_window=65535 B");
const THRESHOLD_64K: Setting = Always("connection.era.initial_ssthresh=65535 B");
const NO_SACK: Setting = Always("connection.sack=false");
// Repairs without SACK at the time worked like this; with SACK the setting has no effect.
const PARTIAL_ACKS: Setting = Always("connection.era.partial_acks=every");
const NO_LIMITED_TRANSMIT: Setting = Always("connection.era.limited_transmit=false");
const NO_REINJECTION: Setting = WithoutRemedy("connection.era.reinjection=false");
const ON_SACK: Setting = Always("connection.era.repair_timer=on-sack");
const AT_THRESHOLD: Setting = Always("connection.era.recovery_end=threshold");
const NO_RACK: Setting = Always("connection.era.rack=false");
const NO_TAIL_PROBE: Setting = Always("connection.era.tail_loss_probe=false");
const UNEQUAL_WIFI: Setting = EachOnWlan { field: "wlan_delay", values: &["1 ms", "30 ms", "100 ms", "300 ms"] };

/// The condition of all runs with the radio of ns-3, which is no column of the map.
pub const WITH_NS3: Condition = switch(
    "ns3",
    "the time-domain scheduler of ns-3 gives turns to UEs without data; this one does not",
    &[InCell("cell.scheduler=blind-equal-throughput-fd")],
);

/// All conditions; the first changes nothing.
pub const CONDITIONS: &[Condition] = &[
    Condition { name: "shipped", kind: Kind::Shipped, why: "the scenarios as they ship", settings: &[] },
    switch(
        "short-units",
        "the thesis prints neither M nor H; with 100 packets a unit lasts 0.4 s at 3 Mbit/s instead of 2 s",
        &[SHORT_UNIT, SHORT_RANGE],
    ),
    switch(
        "early-binding",
        "thesis 3.2.1 gives data to subflows with room in their send buffers, which have 128 KiB each in ns-3",
        &[EARLY, EARLY_BUFFER],
    ),
    switch("no-sack", "ns-3 had no selective acknowledgements before version 3.28", &[NO_SACK, PARTIAL_ACKS]),
    switch(
        "no-sack-no-limited-transmit",
        "as no-sack; ns-3's NewReno also did not send beyond the window on the first duplicate ACKs",
        &[NO_SACK, PARTIAL_ACKS, NO_LIMITED_TRANSMIT],
    ),
    switch("no-rack", "RFC 8985 dates from 2021; before, losses were detected by SACKs above them", &[NO_RACK]),
    switch(
        "no-tail-loss-probe",
        "RFC 8985 dates from 2021; before, a loss at the end of a flight waited for the time-out",
        &[NO_TAIL_PROBE],
    ),
    switch(
        "timer-on-ack",
        "RFC 6298 (5.3) read literally: only ACKs restart the timer, so a long repair ends in a time-out",
        &[Always("connection.era.repair_timer=on-ack")],
    ),
    switch(
        "repairs-as-linux",
        "SACKs restart the timer too, and a recovery ends at the threshold (RFC 9937), which helps small windows",
        &[ON_SACK, AT_THRESHOLD],
    ),
    switch("no-reinjection", "after a time-out, data stay on their subflow, as in ns-3's MPTCP", &[NO_REINJECTION]),
    switch("window-64k", "no window scaling: at most 64 KiB in flight on a subflow", &[WINDOW_64K]),
    switch("threshold-64k", "ns-3's first slow start ends at 64 KiB", &[THRESHOLD_64K]),
    switch("no-timestamps", "ns-3 had no TCP timestamps before version 3.20", &[Always("connection.timestamps=false")]),
    switch("initial-window-1", "ns-3's default at the time", &[Always("connection.initial_window_segments=1")]),
    switch(
        "rto-1s",
        "RFC 6298 (2.4): a time-out below one second is rounded up; still ns-3's minimum",
        &[Always("connection.rto_min=1 s"), Always("connection.era.rto_floor=whole")],
    ),
    switch("delayed-ack-200ms", "a common value of ns-3 and RFC 1122", &[Always("connection.delayed_ack=200 ms")]),
    switch(
        "no-hystart",
        "RFC 9406 dates from 2023; before, slow start ended at the first loss",
        &[Always("connection.hystart=false")],
    ),
    switch(
        "queue-50kB",
        "0.2 s at 2 Mbit/s: a small RLC buffer",
        &[InCell("cell.queue=50 kB"), OnLinks("relays[*].cellular.queue=50 kB")],
    ),
    switch(
        "queue-1MB",
        "4 s at 2 Mbit/s, as measured in mobile networks",
        &[InCell("cell.queue=1 MB"), OnLinks("relays[*].cellular.queue=1 MB")],
    ),
    switch(
        "queue-10MB",
        "so large that windows, not losses, limit growth, as in ns-3's LTE module",
        &[InCell("cell.queue=10 MB"), OnLinks("relays[*].cellular.queue=10 MB")],
    ),
    switch("unequal-wifi", "Wi-Fi hops of 1 to 300 ms: relays that differ in age, load and distance", &[UNEQUAL_WIFI]),
    switch(
        "segments-1500",
        "full packets instead of the 536 octets of ns-3's default",
        &[Always("connection.mtu=1500 B")],
    ),
    switch("lossy-wifi", "noise destroys one frame in ten; 802.11 retransmits", &[OnWlan("wlan.frame_loss=10 %")]),
    world(
        "home-wifi",
        "a home network on a mediocre channel: 24 Mbit/s, one frame in twenty lost, hops of 2 to 20 ms",
        &[
            OnWlan("wlan.rate=24 Mbit/s"),
            OnWlan("wlan.frame_loss=5 %"),
            EachOnWlan { field: "wlan_delay", values: &["2 ms", "5 ms", "20 ms"] },
        ],
    ),
    world(
        "bufferbloated-lte",
        "LTE as measured in the field: 1 MB for each device, 40 ms to the server",
        &[InCell("cell.queue=1 MB"), InCell("cell.core_delay=40 ms"), OnLinks("relays[*].cellular.queue=1 MB")],
    ),
    world(
        "5g",
        "a mid-band cell: twice the carrier, short delays, 1 MB of queue",
        &[
            InCell("cell.resource_blocks=100"),
            InCell("cell.core_delay=5 ms"),
            InCell("cell.uplink_delay=3 ms"),
            InCell("cell.uplink_rate=20 Mbit/s"),
            InCell("cell.queue=1 MB"),
            OnLinks("relays[*].cellular.queue=1 MB"),
            OnWlan("wlan.rate=54 Mbit/s"),
        ],
    ),
    world(
        "train",
        "devices in a carriage at 120 km/h: fast fading over many echoes, shadowing, and a channel shared with others",
        &[
            InCell("cell.fading=etu"),
            InCell("cell.speed_kmh=120.0"),
            InCell("cell.shadowing_db=6.0"),
            OnWlan("wlan.frame_loss=5 %"),
        ],
    ),
    world(
        "linux-sender",
        "a common source: Linux's scheduler, buffers, repairs and reinjection, as base/linux.toml models them",
        &[
            WithScheduler("connection.scheduler=linux"),
            WithScheduler("connection.era.binding=autotuned"),
            WithoutRemedy("connection.era.reinjection_timeouts=5"),
            WithoutRemedy("connection.era.idle_reinjection=true"),
            ON_SACK,
            AT_THRESHOLD,
            Always("connection.hystart=false"),
        ],
    ),
    world(
        "thesis-ns3",
        "the setup of the thesis as far as it is known: endpoints of ns-3 from 2012 to 2014, its queues, short units",
        &[
            SHORT_UNIT,
            SHORT_RANGE,
            EARLY,
            EARLY_BUFFER,
            WINDOW_64K,
            THRESHOLD_64K,
            NO_REINJECTION,
            NO_LIMITED_TRANSMIT,
            NO_RACK,
            NO_TAIL_PROBE,
            NO_SACK,
            PARTIAL_ACKS,
            Always("connection.timestamps=false"),
            Always("connection.initial_window_segments=1"),
            Always("connection.rto_min=1 s"),
            Always("connection.era.rto_floor=whole"),
            Always("connection.delayed_ack=200 ms"),
            Always("connection.nagle=false"),
            Always("connection.hystart=false"),
            InCell("cell.queue=10 MB"),
            OnLinks("relays[*].cellular.queue=10 MB"),
        ],
    ),
];
