//! Refuses what a scenario requires but Linux cannot do.

use lab::run::{RunError, Unsupported, source_settings};
use lab::scenario::{Binding, Era, RelayMode, RepairTimer, Scenario, WorkloadKind};

use crate::controllers::{kernel_name, lack};
use crate::{Ends, Stack, adapting, controllers};

/// Maximum number of subflows, besides the first, in the kernel's path manager.
pub const KERNEL_SUBFLOWS_MAX: usize = 8;
/// The setting that limits them.
const SUBFLOWS_MAX: &str = "connection.subflows_max";
/// Remedy for most things that a kernel cannot do as the source.
const OUR_SOURCE: &str = "use our engine: --source engine";
/// Remedy for everything that a kernel cannot do as the destination.
const OUR_DESTINATION: &str = "use our engine: --destination engine";
/// Remedy for a controller that the kernel lacks.
const OTHER_CONTROLLERS: &str = "cubic and newreno are always available (--set connection.congestion=cubic); our \
    engine has all of them: --source engine";

/// Checks what the kernel would have to do.
///
/// # Errors
/// Everything that it cannot do, by the names of the fields. If it can do all, what this machine or this build lacks for
/// it: another one could do it.
pub fn check(scenario: &Scenario, ends: Ends) -> Result<(), RunError> {
    let mut refused = Vec::new();
    if ends.source == Stack::Kernel {
        refused.extend(beyond_the_source(scenario));
    }
    if ends.destination == Stack::Kernel {
        refused.extend(beyond_the_destination(scenario));
    }
    merge_limits(&mut refused);
    if !refused.is_empty() {
        return Err(RunError::Unsupported(refused));
    }
    if ends.source == Stack::Kernel { loads(scenario) } else { Ok(()) }
}

/// Checks that the controller can be loaded here, if the kernel's source has to load one.
fn loads(scenario: &Scenario) -> Result<(), RunError> {
    let congestion = scenario.connection.congestion.0.to_string();
    let Some(lack) = lack(&congestion) else { return Ok(()) };
    let problem = format!("cannot load \"{congestion}\" into the kernel: {lack}");
    let lacking = Unsupported { field: "connection.congestion", problem, remedy: OTHER_CONTROLLERS };
    Err(RunError::Backend(Box::new(lacking)))
}

/// Returns what the kernel cannot do as the destination: everything that the destination's agent does, and the use of
/// the data.
fn beyond_the_destination(scenario: &Scenario) -> Vec<Unsupported> {
    let (connection, cooperation) = (&scenario.connection, &scenario.cooperation);
    let is_alone = ["manual", "signal-only"].contains(&connection.path_manager.as_str());
    let subflows = connection.subflows_max.unwrap_or(usize::MAX).min(scenario.active_relays().len());
    let is_used = matches!(scenario.workload.kind, WorkloadKind::Video | WorkloadKind::Requests);
    let asked = [
        ("connection.receiver_centric", connection.receiver_centric.is_some(), "rates set by the receiver"),
        ("connection.path_manager", is_alone && subflows > 1, "path managers that open only the first subflow"),
        ("cooperation.selection", cooperation.selection.method.steers(), "relay selection"),
        ("cooperation.relays", cooperation.relays == RelayMode::FastAck, "relays that splice subflows"),
        ("cooperation.forwarding", cooperation.forwarding.is_some(), "differentiated forwarding"),
        ("cooperation.watch", cooperation.watch.is_some(), "watching its relays"),
        ("cooperation.bandwidth_sharing", cooperation.bandwidth_sharing.is_some(), "reports of relays to the source"),
        ("workload.kind", is_used, "videos and requests"),
    ];
    let refuse = |(field, _, what)| Unsupported {
        field,
        problem: format!("the kernel as the destination does not support {what}"),
        remedy: OUR_DESTINATION,
    };
    let remedy = "set it to 9 or less (--set connection.subflows_max=9), or use our engine: --destination engine";
    asked.into_iter().filter(|(_, asked, _)| *asked).map(refuse).chain(too_many(subflows, remedy)).collect()
}

/// Returns that the kernel does not have as many subflows, if it does not.
fn too_many(subflows: usize, remedy: &'static str) -> Option<Unsupported> {
    let most = KERNEL_SUBFLOWS_MAX + 1;
    (subflows > most).then(|| Unsupported {
        field: SUBFLOWS_MAX,
        problem: format!("the kernel has at most {most} subflows"),
        remedy,
    })
}

/// With kernels at both ends, both limit the subflows, and another engine at one end is no remedy.
fn merge_limits(refused: &mut Vec<Unsupported>) {
    let mut limits = refused.iter_mut().filter(|lack| lack.field == SUBFLOWS_MAX);
    if let (Some(first), Some(_)) = (limits.next(), limits.next()) {
        first.remedy = "set it to 9 or less (--set connection.subflows_max=9)";
        let last = refused.iter().rposition(|lack| lack.field == SUBFLOWS_MAX);
        last.map(|index| refused.remove(index));
    }
}

fn beyond_the_source(scenario: &Scenario) -> Vec<Unsupported> {
    let (connection, cooperation) = (&scenario.connection, &scenario.cooperation);
    let mut refused: Vec<Unsupported> = controller(scenario).into_iter().chain(layer(scenario)).collect();
    let mut refuse = |field, problem| refused.push(Unsupported { field, problem, remedy: OUR_SOURCE });
    if !["linux", "lowest-rtt"].contains(&connection.scheduler.as_str()) {
        let problem = format!("the kernel's Multipath TCP has no scheduler \"{}\"", connection.scheduler);
        refuse("connection.scheduler", problem);
    }
    for (field, asked, what) in [
        ("connection.receiver_centric", connection.receiver_centric.is_some(), "receiver-centric scheduling"),
        ("connection.era", !is_kernels(&connection.era), "endpoints of other eras"),
    ] {
        if asked {
            refuse(field, format!("the kernel as the source does not support {what}"));
        }
    }
    let paths = if cooperation.selection.method.steers() { 1 } else { scenario.active_relays().len() };
    let remedy = "set it to 9 or less (--set connection.subflows_max=9), or let our engine send: --source engine";
    refused.extend(too_many(connection.subflows_max.unwrap_or(paths), remedy));
    refused
}

/// Returns whether an era is today's. Its binding, timers, repairs, partial ACKs and ACK delay may be the scenario's
/// defaults or the kernel's.
fn is_kernels(era: &Era) -> bool {
    let today = Era::default();
    let Era { binding, reinjection_timeouts, idle_reinjection, repair_timer, recovery_end, .. } = today;
    let Era { partial_acks, ack_delay, .. } = today;
    let sender = Era { binding, reinjection_timeouts, idle_reinjection, repair_timer, recovery_end, ..*era };
    let rest = Era { partial_acks, ack_delay, ..sender };
    era.binding != Binding::Early && era.repair_timer != RepairTimer::OnAck && rest == today
}

/// Returns what the kernel lacks for the requested congestion control.
fn controller(scenario: &Scenario) -> Option<Unsupported> {
    let congestion = scenario.connection.congestion.0.to_string();
    if kernel_name(&congestion).is_none() {
        let problem = format!("the kernel's Multipath TCP has no congestion controller \"{congestion}\"");
        return Some(Unsupported { field: "connection.congestion", problem, remedy: OTHER_CONTROLLERS });
    }
    (congestion == "cubic" && !scenario.connection.hystart).then(|| Unsupported {
        field: "connection.hystart",
        problem: "the kernel's CUBIC always uses HyStart".into(),
        remedy: "use HyStart in the scenario, too (--set connection.hystart=true), or let our engine send (--source \
            engine)",
    })
}

/// Returns what the kernel lacks for adaptive congestion control, if requested.
fn layer(scenario: &Scenario) -> Option<Unsupported> {
    // Invalid settings are refused when they are read.
    let wanted = adapting::of(source_settings(scenario).ok()?.as_ref())?;
    // An unknown controller is refused elsewhere.
    let name = kernel_name(&scenario.connection.congestion.0.to_string())?;
    let problem = match (controllers::of(scenario), wanted.check()) {
        (Some(_), Ok(())) => return None,
        (Some(_), Err(error)) => format!("the kernel as the source does not support these settings: {error}"),
        (None, _) => format!(
            "the kernel has it only over our controllers, not over its own `{name}` (--set connection.congestion=lia)"
        ),
    };
    Some(Unsupported { field: adapting::FIELD, problem, remedy: OUR_SOURCE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(changes: &[&str]) -> Vec<&'static str> {
        let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
        let scenario =
            lab::scenario::load("demo.toml", include_str!("../../../scenarios/demo.toml"), &changes).unwrap();
        assert!(check(&scenario, Ends::ENGINES).is_ok());
        fields(check(&scenario, Ends::KERNEL_TO_ENGINE))
    }

    /// Not the scenario, but the machine or the build.
    const MACHINE: &str = "machine";

    fn fields(checked: Result<(), RunError>) -> Vec<&'static str> {
        match checked {
            Ok(()) => Vec::new(),
            Err(RunError::Unsupported(all)) => all.into_iter().map(|one| one.field).collect(),
            Err(RunError::Backend(_)) => vec![MACHINE],
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_the_kernel_cannot_do_is_named() {
        let cubic = "connection.congestion=cubic";
        assert!(refused(&[cubic]).is_empty());
        assert!(refused(&["connection.congestion=newreno"]).is_empty());
        assert_eq!(refused(&["connection.congestion=coupled"]), ["connection.congestion"]);
        // What the machine lacks is no fault of the scenario, and does not hide one.
        let lacks = if kernel_cc::check().is_ok() { vec![] } else { vec![MACHINE] };
        assert_eq!(refused(&[]), lacks, "LIA");
        assert_eq!(refused(&["connection.scheduler=round-robin"]), ["connection.scheduler"]);
        assert_eq!(refused(&[cubic, "connection.hystart=false"]), ["connection.hystart"]);
        assert_eq!(refused(&[cubic, "connection.scheduler=round-robin"]), ["connection.scheduler"]);
        let linux =
            ["connection.scheduler=linux", "connection.era.binding=autotuned", "connection.era.reinjection_timeouts=5"];
        assert_eq!(refused(&[&[cubic], &linux[..]].concat()), [""; 0]);
        let repairs = ["connection.era.repair_timer=on-sack", "connection.era.recovery_end=threshold"];
        assert_eq!(refused(&[&[cubic], &repairs[..]].concat()), [""; 0]);
        assert_eq!(refused(&[cubic, "connection.era.binding=early"]), ["connection.era"]);
        assert_eq!(refused(&[cubic, "connection.era.rack=false"]), ["connection.era"]);
        assert_eq!(refused(&[cubic, "connection.era.repair_timer=on-ack"]), ["connection.era"]);
        assert_eq!(refused(&[cubic, "connection.receiver_centric={}"]), ["connection.receiver_centric"]);
        assert!(refused(&[cubic, "cooperation.bandwidth_sharing={}"]).is_empty());
        assert_eq!(refused(&[cubic, "cooperation.adaptive_congestion={}"]), ["cooperation.adaptive_congestion"]);
        assert_eq!(refused(&["cooperation.adaptive_congestion={}"]), lacks, "over LIA");
        let unknown = ["connection.congestion=mcc-coop(1)", "cooperation.adaptive_congestion={}"];
        assert_eq!(refused(&unknown), ["connection.congestion"]);
        for setting in ["mode = 'paper'", "acts_on = 'waiting'"] {
            let changes = format!("cooperation.adaptive_congestion={{ {setting} }}");
            assert!(refused(&[&changes]).contains(&"cooperation.adaptive_congestion"), "{setting}");
        }
        assert_eq!(refused(&[cubic, "connection.subflows_max=10"]), ["connection.subflows_max"]);
        let several =
            ["connection.congestion=coupled", "connection.scheduler=round-robin", "connection.receiver_centric={}"];
        assert_eq!(
            refused(&several),
            ["connection.congestion", "connection.scheduler", "connection.receiver_centric"],
            "all at once"
        );
        let destination = Ends { source: Stack::Engine, destination: Stack::Kernel };
        let refused_there = |changes: &[&str]| {
            let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
            let text = include_str!("../../../scenarios/demo.toml");
            fields(check(&lab::scenario::load("demo.toml", text, &changes).unwrap(), destination))
        };
        assert_eq!(
            refused_there(&["cooperation.watch={}", "cooperation.relays=fast-ack", "cooperation.bandwidth_sharing={}"]),
            ["cooperation.relays", "cooperation.watch", "cooperation.bandwidth_sharing"]
        );
        for (manager, refused) in [("manual", true), ("signal-only", true), ("one-per-address", false)] {
            let manager = format!("connection.path_manager={manager}");
            let expected = if refused { vec!["connection.path_manager"] } else { vec![] };
            assert_eq!(refused_there(&[&manager]), expected, "{manager}");
            assert_eq!(refused_there(&[&manager, "connection.subflows_max=1"]), [""; 0], "there is one path");
        }
        let cell = |changes: &[&str]| {
            let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
            let text = include_str!("../../../scenarios/cell.toml");
            fields(check(&lab::scenario::load("cell.toml", text, &changes).unwrap(), destination))
        };
        assert_eq!(cell(&[]), ["connection.subflows_max"], "ten relays");
        assert_eq!(cell(&["connection.subflows_max=9"]), [""; 0]);
        let kernels = Ends { source: Stack::Kernel, destination: Stack::Kernel };
        let text = include_str!("../../../scenarios/cell.toml");
        let said = check(&lab::scenario::load("cell.toml", text, &[]).unwrap(), kernels).unwrap_err().to_string();
        let of_both = said.lines().filter(|line| line.contains("at most 9 subflows")).count();
        assert!(of_both == 1 && !said.contains("let our engine send"), "{said}");
        assert_eq!(refused_there(&["connection.subflows_max=10"]), [""; 0], "there are four paths");
        let video = ["workload={ kind = 'video', rate = '2 Mbit/s' }", cubic];
        assert!(refused(&video).is_empty());
    }
}
