//! Packets that pass the agent of a relay, through the C interface.

use core::ptr;
use std::ffi::CStr;

use anabranch_c::{
    AnabranchAddress, AnabranchAgentEvent, AnabranchAgentEventKind as Kind, AnabranchFlowUse, AnabranchLinkUse,
    AnabranchStatus, AnabranchTransit, anabranch_accept, anabranch_address_parse, anabranch_connect,
    anabranch_forward_packet, anabranch_listen, anabranch_send, anabranch_stats_json, anabranch_string_free,
    anabranch_transit,
};
use serde_json::Value;

use crate::host::Host;

/// Addresses: of the source; of the destination by way of the relay, and on the local network; of the relay there.
const SOURCE: &str = "10.0.0.1";
const PATH: &str = "10.1.0.2";
const CALLER: &str = "192.168.0.2";
const RELAY: &str = "192.168.0.1";

const FAST_ACK: &str = r#"{"cooperation": {"relays": "fast-ack"}}"#;
/// Time between two turns.
const STEP_NS: u64 = 1_000_000;

fn place_of_relay(destination: &Host) -> String {
    let key = destination.public_key();
    format!(r#"{{"role": "relay", "control": "{RELAY}:40001", "serves": ["{key}"], "path": "{PATH}"}}"#)
}

fn transit(relay: &Host) -> Result<AnabranchTransit, AnabranchStatus> {
    let mut transit = AnabranchTransit::default();
    // SAFETY: an endpoint, and a variable of this function.
    match unsafe { anabranch_transit(relay.endpoint, &mut transit) } {
        AnabranchStatus::Ok => Ok(transit),
        status => Err(status),
    }
}

fn forward(relay: &Host, packet: &[u8], now_ns: u64) -> AnabranchStatus {
    // SAFETY: an endpoint, and octets of the caller.
    unsafe { anabranch_forward_packet(relay.endpoint, packet.as_ptr(), packet.len(), now_ns) }
}

fn address(text: &str) -> AnabranchAddress {
    let text = std::ffi::CString::new(text).expect("no zero");
    let mut address = AnabranchAddress::default();
    // SAFETY: a string, and a variable of this function.
    assert_eq!(unsafe { anabranch_address_parse(text.as_ptr(), &mut address) }, AnabranchStatus::Ok);
    address
}

/// Measures a link of 3 Mbit/s, of which a flow of the owner wants two thirds.
fn measure(relay: &Host, now_ns: u64) -> bool {
    let received_bytes = now_ns / 1_000_000 * 250;
    let flow = AnabranchFlowUse { received_bytes, demanded_bytes: received_bytes, has_demanded: true };
    let link = AnabranchLinkUse {
        delivered_bytes: received_bytes,
        local_bytes: received_bytes,
        granted_bps: 3_000_000,
        has_granted: true,
        flows: &flow,
        flows_len: 1,
        ..AnabranchLinkUse::default()
    };
    assert_eq!(relay.measure(&link, now_ns), AnabranchStatus::Ok);
    true
}

/// A source, a relay and a destination; every packet to the destination, but no message to the relay, can be lost.
struct World {
    source: Host,
    relay: Host,
    destination: Host,
    listener: u64,
    now_ns: u64,
    /// Whether nothing reaches the destination any more.
    cut: bool,
    /// What the source's agent has reported, and how much the relay held at most.
    reports: Vec<AnabranchAgentEvent>,
    held_max_bytes: u64,
}

impl World {
    fn new(settings: &str) -> Self {
        let (source, relay) = (Host::new(SOURCE, 1), Host::new(RELAY, 2));
        let destination = Host::new(PATH, 3);
        relay.start(&place_of_relay(&destination), settings).expect("a relay");
        let place = format!(
            r#"{{"role": "destination", "source": "{SOURCE}:80", "relays": [
                {{"path": "{PATH}", "control": "{RELAY}:40001", "key": "{}", "calls_from": "{CALLER}"}}],
                "source_agent": {{"control": "{SOURCE}:40001", "key": "{}"}}}}"#,
            relay.public_key(),
            source.public_key()
        );
        let of_source =
            format!(r#"{{"role": "source", "control": "{SOURCE}:40001", "serves": ["{}"]}}"#, destination.public_key());
        source.start(&of_source, settings).expect("a source");
        destination.start(&place, settings).expect("a destination");
        let (mut listener, mut connection) = (0, 0);
        let (any, at) = (address("0.0.0.0:0"), address(&format!("{SOURCE}:80")));
        // SAFETY: endpoints, and variables of this function.
        unsafe {
            assert_eq!(anabranch_listen(source.endpoint, &at, ptr::null(), &mut listener), AnabranchStatus::Ok);
            let connected = anabranch_connect(destination.endpoint, &any, &at, ptr::null(), 0, &mut connection);
            assert_eq!(connected, AnabranchStatus::Ok);
        }
        let (reports, held_max_bytes) = (Vec::new(), 0);
        Self { source, relay, destination, listener, now_ns: 0, cut: false, reports, held_max_bytes }
    }

    /// Lets some time pass.
    fn run(&mut self, milliseconds: u64) {
        let end_ns = self.now_ns + milliseconds * 1_000_000;
        while self.now_ns < end_ns {
            self.now_ns += STEP_NS;
            let now_ns = self.now_ns;
            let hosts = [&self.source, &self.relay, &self.destination];
            hosts.iter().for_each(|host| host.handle_timeout(now_ns));
            let mut busy = true;
            while busy {
                let packets: Vec<_> = hosts.iter().map(|host| (*host, host.transmit(now_ns))).collect();
                busy = packets.iter().any(|(_, packets)| !packets.is_empty());
                for (from, packet) in packets.iter().flat_map(|(from, all)| all.iter().map(move |one| (*from, one))) {
                    self.carry(from, packet);
                }
                hosts.iter().for_each(|host| while host.event().is_some() {});
                while self.destination.agent_event().is_some() {}
                self.reports.extend(core::iter::from_fn(|| self.source.agent_event()));
                while let Some(event) = self.relay.agent_event() {
                    busy |= event.kind == Kind::Measure && measure(&self.relay, now_ns);
                }
                self.held_max_bytes = self.held_max_bytes.max(transit(&self.relay).expect("a relay").held_bytes);
            }
        }
    }

    fn carry(&self, from: &Host, packet: &[u8]) {
        let to = core::net::Ipv4Addr::from([packet[16], packet[17], packet[18], packet[19]]).to_string();
        let is_relays = ptr::eq(from, &self.relay);
        match &*to {
            RELAY => self.relay.handle(packet, self.now_ns),
            _ if !is_relays => assert_eq!(forward(&self.relay, packet, self.now_ns), AnabranchStatus::Ok),
            SOURCE => self.source.handle(packet, self.now_ns),
            PATH | CALLER if self.cut => {}
            PATH | CALLER => self.destination.handle(packet, self.now_ns),
            _ => panic!("a packet to {to}"),
        }
    }

    /// The source accepts the connection and sends data; returns its number.
    fn send(&self, octets: usize) -> u64 {
        let (mut connection, mut taken) = (0, 0);
        let data = vec![7; octets];
        // SAFETY: endpoints, and variables of this function.
        unsafe {
            let accepted = anabranch_accept(self.source.endpoint, self.listener, &mut connection);
            assert_eq!(accepted, AnabranchStatus::Ok);
            let (from, now_ns) = (self.source.endpoint, self.now_ns);
            let sent = anabranch_send(from, connection, data.as_ptr(), data.len(), now_ns, &mut taken);
            assert_eq!((sent, taken), (AnabranchStatus::Ok, octets));
        }
        connection
    }

    /// The source's statistics.
    fn statistics(&self, connection: u64) -> Value {
        let mut json = ptr::null_mut();
        // SAFETY: an endpoint, and variables of this function; the string is freed once.
        unsafe {
            assert_eq!(anabranch_stats_json(self.source.endpoint, connection, &mut json), AnabranchStatus::Ok);
            let value = serde_json::from_slice(CStr::from_ptr(json).to_bytes()).expect("JSON");
            anabranch_string_free(json);
            value
        }
    }
}

/// The source's subflows are acknowledged by the relay, although the destination hears nothing.
#[test]
fn a_relay_acknowledges_at_once() {
    let mut world = World::new(FAST_ACK);
    world.run(100);
    assert_eq!(transit(&world.relay).map(|transit| (transit.takes_packets, transit.splices)), Ok((true, 1)));
    world.cut = true;
    let connection = world.send(10_000);
    world.run(100);
    let stats = world.statistics(connection);
    assert_eq!(stats["acked_bytes"], 0, "the destination has nothing: {stats}");
    assert_eq!((&stats["subflows"][0]["sent_bytes"], &stats["subflows"][0]["backup"]), (&0.into(), &true.into()));
    let spliced = &stats["subflows"][1];
    assert_eq!((&spliced["acked_bytes"], &spliced["in_flight_bytes"]), (&10_000.into(), &0.into()), "{stats}");
    world.cut = false;
    world.run(1000);
    assert_eq!(world.statistics(connection)["acked_bytes"], 10_000, "then the relay delivers");
}

/// What the owner's flow wants, 2 Mbit/s, is twice what is left of the link.
#[test]
fn a_source_hears_what_relays_report() {
    let mut world = World::new(
        r#"{"cooperation": {"bandwidth_sharing": {"demands": "known"}, "relays": "fast-ack",
        "adaptive_congestion": {"relay_delays": true}}}"#,
    );
    world.run(100);
    let connection = world.send(10_000);
    world.run(6500);
    let of = |kind: Kind| world.reports.iter().filter(move |report| report.kind == kind);
    assert_eq!((of(Kind::Called).count(), of(Kind::Deserted).count()), (1, 0));
    let load = of(Kind::Load).next_back().expect("a report");
    assert!((load.ratio - 2.0).abs() < 0.01, "{load:?}");
    let delay = of(Kind::Delay).next_back().expect("a report");
    assert!(delay.delay_ns < 10_000_000, "nothing takes time here: {delay:?}");
    assert_eq!((load.connection, delay.connection), (connection, connection));
}

/// The range has ten packets, and the relay gets more.
#[test]
fn a_relay_holds_what_the_destination_does_not_want_yet() {
    for mode in ["ip", "fast-ack"] {
        let settings = format!(r#"{{"cooperation": {{"relays": "{mode}", "forwarding": {{"range_packets": 10}}}}}}"#);
        let mut world = World::new(&settings);
        world.run(100);
        let connection = world.send(200_000);
        world.run(3000);
        assert!(world.held_max_bytes > 0, "{mode}");
        assert_eq!(world.statistics(connection)["acked_bytes"], 200_000, "{mode}");
        // Nothing is held for longer than two periods.
        world.run(4500);
        assert_eq!(transit(&world.relay).map(|transit| transit.held_bytes), Ok(0), "{mode}");
    }
}

#[test]
fn a_relay_that_routes_takes_no_packets_in_transit() {
    let (relay, destination) = (Host::new(RELAY, 2), Host::new(PATH, 3));
    assert_eq!(transit(&relay), Err(AnabranchStatus::WrongState));
    assert_eq!(forward(&relay, &[], 0), AnabranchStatus::WrongState);
    relay.start(&place_of_relay(&destination), "{}").expect("a relay");
    assert_eq!(transit(&relay), Ok(AnabranchTransit::default()));
    assert_eq!(forward(&relay, &[], 0), AnabranchStatus::WrongState);
}

#[test]
fn a_relay_that_acknowledges_at_once_must_know_the_path_and_reads_packets() {
    let (relay, destination) = (Host::new(RELAY, 2), Host::new(PATH, 3));
    let place = place_of_relay(&destination);
    let without = place.replace(&format!(r#", "path": "{PATH}""#), "");
    assert!(relay.start(&without, FAST_ACK).unwrap_err().contains("path is missing"));
    assert!(relay.start(&place, r#"{"cooperation": {"relays": "multi-homed"}}"#).unwrap_err().contains("multi-homed"));
    relay.start(&place, FAST_ACK).expect("a relay");
    assert_eq!(forward(&relay, &[0; 40], 0), AnabranchStatus::MalformedPacket);
}
