//! The properties of a scenario, of all that can be drawn.

use lab::scenario::{
    AckDelay, Connection, Cooperation, Link, LocalTraffic, Loss, PartialAcks, RecoveryEnd, Relay, RepairTimer,
    RtoFloor, Scenario, TextOr,
};

use super::goals;
use crate::coverage::{Values, word};

/// Returns the properties of a case, by dimension.
pub fn values(case: &Scenario) -> Values {
    let mut values = Values::new();
    values.insert(("relays", case.relays.len().to_string()));
    values.insert(("IP", if case.source.address.is_some() { "6" } else { "4" }.into()));
    values.insert(("workload", case.workload.kind.name().into()));
    values.insert(("connections", if case.workload.connections > 1 { "many" } else { "one" }.into()));
    values.insert(("goal", goal(case).into()));
    of_world(case, &mut values);
    of_connection(&case.connection, &mut values);
    of_cooperation(&case.cooperation, &mut values);
    case.relays.iter().for_each(|relay| of_relay(relay, &mut values));
    let more = [("attack", case.attack.is_some()), ("target", case.target.is_some())];
    values.extend(more.into_iter().filter(|(_, there)| *there).map(|(name, _)| ("module", name.into())));
    values
}

fn goal(case: &Scenario) -> &'static str {
    match (goals::must_complete(case), goals::must_begin(case), goals::must_last(case)) {
        (true, ..) => "completes",
        (_, true, _) => "begins",
        (_, _, true) => "lasts",
        _ => "holds",
    }
}

fn of_world(case: &Scenario, values: &mut Values) {
    for (hop, shared, medium) in [("cellular", case.cell.is_some(), "cell"), ("Wi-Fi", case.wlan.is_some(), "channel")]
    {
        values.insert((hop, if shared { medium } else { "links" }.into()));
    }
    if let Some(cell) = &case.cell {
        values.insert(("cell scheduler", cell.scheduler.clone()));
        values.insert(("fading", word(&cell.fading)));
        values.insert(("path loss", word(&cell.path_loss)));
        values.insert(("sites", cell.sites_m.len().to_string()));
        values.insert(("handover", cell.handover.is_some().to_string()));
    }
    if let Some(wlan) = &case.wlan {
        values.insert(("802.11a", wlan.rate.to_string()));
        values.insert(("hidden", (!wlan.hidden.is_empty()).to_string()));
    }
    if let Some(bottleneck) = &case.bottleneck {
        values.insert(("cellular", "bottleneck".into()));
        of_link(bottleneck, values);
    }
}

fn of_connection(connection: &Connection, values: &mut Values) {
    values.insert(("controller", connection.congestion.0.name.clone()));
    values.insert(("scheduler", connection.scheduler.clone()));
    values.insert(("path manager", connection.path_manager.clone()));
    values.insert(("binding", word(&connection.era.binding)));
    values.insert(("MTU", connection.mtu.to_string()));
    values.insert(("send buffer", connection.send_buffer.to_string()));
    values.insert(("receive buffer", connection.receive_buffer.to_string()));
    let rec = connection.receiver_centric.map_or("none".into(), |rec| format!("{:?} {:?}", rec.mode, rec.window));
    values.insert(("MPTCP-rec", rec));
    let on = [
        (connection.mptcp, "mptcp"),
        (connection.checksum, "checksum"),
        (connection.timestamps, "timestamps"),
        (connection.sack, "sack"),
        (connection.ecn, "ecn"),
        (connection.nagle, "nagle"),
        (connection.keep_alive.is_some(), "keep-alive"),
        (connection.era.reinjection, "reinjection"),
        (connection.era.reinjection_timeouts > 1, "late reinjection"),
        (connection.era.idle_reinjection, "idle reinjection"),
        (connection.era.limited_transmit, "limited transmit"),
        (connection.era.rack, "RACK"),
        (connection.era.tail_loss_probe, "TLP"),
        (connection.era.subflow_window.is_some(), "subflow window"),
        (connection.era.initial_ssthresh.is_some(), "initial ssthresh"),
        (connection.era.rto_floor == RtoFloor::Whole, "whole RTO floor"),
        (connection.era.partial_acks == PartialAcks::Every, "every partial ACK"),
        (connection.era.repair_timer == RepairTimer::OnResend, "repair timer on resend"),
        (connection.era.repair_timer == RepairTimer::OnSack, "repair timer on SACK"),
        (connection.era.recovery_end == RecoveryEnd::Threshold, "recovery end at the threshold"),
        (connection.era.ack_delay == AckDelay::Adaptive, "adaptive ACK delay"),
    ];
    values.extend(on.map(|(on, name)| ("option", format!("{}{name}", if on { "" } else { "no " }))));
}

fn of_cooperation(cooperation: &Cooperation, values: &mut Values) {
    let selection = &cooperation.selection;
    values.insert(("relays do", word(&cooperation.relays)));
    values.insert(("news", word(&cooperation.news)));
    values.insert(("selection", selection.method.name().into()));
    if selection.method.steers() {
        values.insert(("trigger", word(&selection.trigger)));
        values.insert(("estimator", word(&selection.estimator)));
        values.insert(("selection mode", word(&selection.mode)));
    }
    let modules = [
        ("adaptive congestion", cooperation.adaptive_congestion.is_some()),
        ("forwarding", cooperation.forwarding.is_some()),
        ("watch", cooperation.watch.is_some()),
        ("bandwidth sharing", cooperation.bandwidth_sharing.is_some()),
    ];
    values.extend(modules.into_iter().filter(|(_, on)| *on).map(|(name, _)| ("module", name.into())));
    if let Some(acc) = &cooperation.adaptive_congestion {
        values.insert(("beyond", word(&acc.beyond)));
        values.insert(("acts on", word(&acc.acts_on)));
    }
    if let Some(forwarding) = &cooperation.forwarding {
        values.insert(("ranges", format!("{:?} {:?}", forwarding.shares, forwarding.count)));
    }
    if let Some(sharing) = &cooperation.bandwidth_sharing {
        values.insert(("rho", format!("{:?} {:?}", sharing.rho, sharing.demands)));
    }
}

fn of_relay(relay: &Relay, values: &mut Values) {
    let traits = [
        (relay.leaves.is_some(), "leaves"),
        (relay.swallows.is_some(), "swallows"),
        (relay.lends.is_some(), "lends so much"),
        (relay.exaggerates.is_some(), "exaggerates"),
        (relay.energy_nj_per_bit.is_some(), "pays energy"),
        (relay.bit_rate_max.is_some(), "ceiling"),
        (relay.place.is_some_and(|place| place.walk.is_some()), "walks"),
        (!relay.local.is_empty(), "own traffic"),
    ];
    values.extend(traits.into_iter().filter(|(has, _)| *has).map(|(_, name)| ("relay", name.into())));
    relay.cellular.iter().chain(&relay.wifi).for_each(|link| of_link(link, values));
    relay.local.iter().for_each(|local| of_local(local, values));
}

fn of_link(link: &Link, values: &mut Values) {
    let loss = match &link.loss {
        Loss::Text(share) if share.value() == 0.0 => "none",
        Loss::Table(table) if table.burst_packets.is_some() => "bursts",
        _ => "random",
    };
    values.insert(("loss", loss.into()));
    values.insert(("rate", if matches!(link.rate, TextOr::Text(_)) { "fixed" } else { "varies" }.into()));
}

fn of_local(local: &LocalTraffic, values: &mut Values) {
    values.insert(("own traffic", local.kind.name().into()));
    let traits = [
        (!local.changes.is_empty(), "changes"),
        (local.on_off.is_some(), "on and off"),
        (local.redrawn.is_some(), "redrawn"),
        (local.start.is_some(), "begins later"),
        (local.stop.is_some(), "ends early"),
        (local.rate.is_none(), "no rate"),
    ];
    values.extend(traits.into_iter().filter(|(has, _)| *has).map(|(_, name)| ("own traffic", name.into())));
}
