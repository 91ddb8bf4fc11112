//! Checks combinations that endpoints of earlier years do not support.

use units::ByteCount;
use units::text::Text;

use super::Complaint;
use super::link::DELAY_MAX;
use crate::scenario::{AckDelay, Binding, Connection, Era, Relay, RelayMode, Scenario};

pub(super) fn check_era(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let connection = &scenario.connection;
    check_sizes(connection, found);
    check_together(connection, found);
    for (index, relay) in scenario.relays.iter().enumerate() {
        check_wlan_delay(relay, index, scenario, found);
    }
}

fn check_sizes(connection: &Connection, found: &mut Vec<Complaint>) {
    let Era { subflow_send_buffer, subflow_window, initial_ssthresh, .. } = connection.era;
    let least = connection.mtu;
    let sizes = [
        ("subflow_send_buffer", subflow_send_buffer),
        ("subflow_window", subflow_window),
        ("initial_ssthresh", initial_ssthresh),
    ];
    for (field, size) in sizes {
        let Some(Text(size)) = size.filter(|Text(size)| *size < least || size.0 > 1 << 30) else { continue };
        let remedy = format!("write a size from one MTU (\"{}\") to \"{}\"", least, ByteCount(1 << 30));
        found.push(Complaint::new(format!("connection.era.{field}"), format!("{size} is out of range"), remedy));
    }
}

fn check_together(connection: &Connection, found: &mut Vec<Complaint>) {
    let era = &connection.era;
    let mut refuse = |field: &str, problem: &str, remedy: &str| {
        found.push(Complaint::new(format!("connection.era.{field}"), problem, remedy));
    };
    let sized_by = match era.binding {
        Binding::Early => None,
        Binding::Late => Some("with late binding, no data wait at a subflow"),
        Binding::Autotuned => Some("the size of an autotuned buffer follows from its window"),
    };
    if let Some(problem) = sized_by.filter(|_| era.subflow_send_buffer.is_some()) {
        refuse("subflow_send_buffer", problem, "add binding = \"early\", or remove it");
    }
    if era.binding != Binding::Late && connection.receiver_centric.is_some() {
        let remedy = "write \"late\", or remove connection.receiver_centric";
        refuse("binding", "MPTCP-rec says which subflow sends next", remedy);
    }
    if era.reinjection_timeouts == 0 {
        refuse("reinjection_timeouts", "data are reinjected only after a time-out", "write 1 or more");
    }
    if era.reinjection_timeouts > 1 && !era.reinjection {
        refuse("reinjection_timeouts", "has no effect without reinjection", "write reinjection = true, or remove it");
    }
    if era.idle_reinjection && !era.reinjection {
        refuse("idle_reinjection", "has no effect without reinjection", "write reinjection = true, or remove it");
    }
    if !era.reinjection && connection.scheduler_reinjects() {
        let problem = format!("the scheduler \"{}\" needs it", connection.scheduler);
        refuse("reinjection", &problem, "write true, or choose another connection.scheduler");
    }
    if era.ack_delay == AckDelay::Adaptive && connection.delayed_ack.is_zero() {
        let remedy = "set connection.delayed_ack, for example to 40 ms, or remove it";
        refuse("ack_delay", "ACKs are not delayed, so there is no delay to adapt", remedy);
    }
    if !era.limited_transmit && connection.sack {
        let remedy = "write connection.sack = false as well, or remove it";
        refuse("limited_transmit", "with SACK, the pipe of RFC 6675 allows these segments anyway", remedy);
    }
}

fn check_wlan_delay(relay: &Relay, index: usize, scenario: &Scenario, found: &mut Vec<Complaint>) {
    let Some(Text(delay)) = relay.wlan_delay else { return };
    let field = format!("relays[{index}].wlan_delay");
    if scenario.wlan.is_none() || scenario.cooperation.relays == RelayMode::MultiHomed {
        let remedy = "add a section [wlan], or set the delay in the relay's `wifi`";
        return found.push(Complaint::new(field, "has no effect without a shared Wi-Fi channel", remedy));
    }
    if delay > DELAY_MAX {
        let remedy = format!("write a time up to \"{}\"", DELAY_MAX);
        found.push(Complaint::new(field, format!("{delay} is too long for a hop"), remedy));
    }
}
