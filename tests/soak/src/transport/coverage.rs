//! The properties of a case, of all that can be drawn.

use super::case::{Case, Element, Loss, PathCase, Settings, Talk, Way};
use crate::coverage::{Values, word};

/// Returns the properties of a case, by dimension.
pub fn values(case: &Case) -> Values {
    let mut values = Values::new();
    values.insert(("paths", case.paths.len().to_string()));
    values.insert(("IP", if case.ipv6 { "6" } else { "4" }.into()));
    for settings in [&case.client, &case.server] {
        of_settings(settings, &mut values);
    }
    case.paths.iter().for_each(|path| of_path(path, &mut values));
    case.talks.iter().for_each(|talk| of_talk(talk, &mut values));
    values.extend(case.actions.iter().map(|action| ("action", word(&action.deed))));
    values
}

fn of_settings(settings: &Settings, values: &mut Values) {
    values.insert(("controller", settings.congestion.clone()));
    values.insert(("scheduler", settings.scheduler.clone()));
    values.insert(("path manager", settings.path_manager.clone()));
    values.insert(("MTU", settings.mtu.to_string()));
    values.insert(("send buffer", settings.send_buffer_bytes.to_string()));
    values.insert(("receive buffer", settings.receive_buffer_bytes.to_string()));
    let on = [
        (settings.mptcp, "mptcp"),
        (settings.checksum, "checksum"),
        (settings.receiver_centric, "receiver-centric"),
        (settings.timestamps, "timestamps"),
        (settings.sack, "sack"),
        (settings.ecn, "ecn"),
        (settings.nagle, "nagle"),
        (settings.hystart, "hystart"),
        (settings.era.subflow_send_buffer_bytes.is_none() && !settings.era.autotuned, "late binding"),
        (settings.era.autotuned, "autotuned binding"),
        (!settings.era.no_reinjection, "reinjection"),
        (settings.era.reinjection_timeouts.is_some(), "late reinjection"),
        (settings.era.idle_reinjection, "idle reinjection"),
        (!settings.era.no_limited_transmit, "limited transmit"),
        (!settings.era.no_rack, "RACK"),
        (!settings.era.no_tail_loss_probe, "TLP"),
        (settings.era.subflow_window_bytes.is_some(), "subflow window"),
        (settings.era.initial_ssthresh_bytes.is_some(), "initial ssthresh"),
        (settings.era.whole_rto_floor, "whole RTO floor"),
        (settings.era.every_partial_ack, "every partial ACK"),
        (settings.era.repair_timer_on_resend, "repair timer on resend"),
        (settings.era.repair_timer_on_sack, "repair timer on SACK"),
        (settings.era.recovery_end_at_threshold, "recovery end at the threshold"),
        (settings.era.adaptive_ack_delay, "adaptive ACK delay"),
        (settings.keep_alive_s.is_some(), "keep-alive"),
        (settings.unsent_max_bytes.is_some(), "limit of unsent octets"),
        (settings.offload_max_bytes > 0, "offload"),
    ];
    values.extend(on.map(|(on, name)| ("option", format!("{}{name}", if on { "" } else { "no " }))));
}

fn of_path(path: &PathCase, values: &mut Values) {
    for (there, name) in
        [(path.nat_idle_s.is_some(), "Nat"), (path.gateway.is_some(), "Gateway"), (path.relay.is_some(), "Relay")]
    {
        if there {
            values.insert(("middlebox", name.into()));
        }
    }
    [&path.up, &path.down].into_iter().for_each(|way| of_way(way, values));
}

fn of_way(way: &Way, values: &mut Values) {
    let loss = match way.loss {
        Loss::None => "none",
        Loss::Uniform { .. } => "uniform",
        Loss::Gilbert { .. } => "gilbert",
    };
    values.insert(("loss", loss.into()));
    let service = if way.trace_ms.is_empty() { format!("{} kbit/s", way.rate_kbps) } else { "trace".into() };
    values.insert(("link", service));
    values.extend(way.elements.iter().map(|element| ("element", element_word(element))));
}

fn element_word(element: &Element) -> String {
    match element {
        Element::StripMptcp(strip) => format!("StripMptcp {}", word(strip)),
        Element::Drop { what, .. } => format!("Drop {what:?}"),
        other => word(other),
    }
}

fn of_talk(talk: &Talk, values: &mut Values) {
    values.insert(("connections", if talk.connections > 1 { "many" } else { "one" }.into()));
    for speaker in [talk.client, talk.server] {
        values.insert(("ending", format!("{:?}", speaker.ending)));
        let traits = [
            (speaker.after_peer, "half-close"),
            (speaker.read_pause_ms > 0, "slow reader"),
            (speaker.read_after_ms > 0, "late reader"),
            (speaker.pause_ms > 0, "slow writer"),
            (speaker.idle_ms > 0, "idle"),
            (speaker.bytes == 0, "silent"),
        ];
        values.extend(traits.into_iter().filter(|(has, _)| *has).map(|(_, name)| ("application", name.into())));
    }
}
