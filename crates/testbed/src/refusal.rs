//! What a scenario asks that Linux cannot do.

use lab::run::RunError;
use lab::scenario::Scenario;

use crate::Source;

/// Subflows that the kernel's path manager allows besides the first.
pub const KERNEL_SUBFLOWS_MAX: usize = 8;
/// What helps against most that a kernel cannot do as the source.
const OUR_SOURCE: &str = "our engine can: --source engine";

/// The kernel's name of a congestion controller of ours.
pub fn kernel_controller(name: &str) -> Option<&'static str> {
    match name {
        "cubic" => Some("cubic"),
        "newreno" => Some("reno"),
        _ => None,
    }
}

/// Checks what the kernel would have to do.
///
/// # Errors
/// The first thing that it cannot do, by the name of its field.
pub fn check(scenario: &Scenario, source: Source) -> Result<(), RunError> {
    match source {
        Source::Engine => Ok(()),
        Source::Kernel => check_kernel(scenario),
    }
}

fn check_kernel(scenario: &Scenario) -> Result<(), RunError> {
    let (connection, cooperation) = (&scenario.connection, &scenario.cooperation);
    let congestion = connection.congestion.0.to_string();
    if kernel_controller(&congestion).is_none() {
        let problem = format!("the kernel's Multipath TCP has no congestion controller \"{congestion}\"");
        return refuse(
            "connection.congestion",
            problem,
            "it has cubic and newreno (--set connection.congestion=cubic); our engine has all: --source engine",
        );
    }
    if congestion == "cubic" && !connection.hystart {
        return refuse("connection.hystart", "the kernel's CUBIC always uses HyStart".into(), OUR_SOURCE);
    }
    if connection.scheduler != "lowest-rtt" {
        let problem = format!("the kernel's Multipath TCP has no scheduler \"{}\"", connection.scheduler);
        return refuse("connection.scheduler", problem, OUR_SOURCE);
    }
    for (field, asked, what) in [
        ("connection.receiver_centric", connection.receiver_centric.is_some(), "receiver-centric scheduling"),
        ("cooperation.adaptive_congestion", cooperation.adaptive_congestion.is_some(), "adaptive congestion control"),
        ("cooperation.bandwidth_sharing", cooperation.bandwidth_sharing.is_some(), "bandwidth sharing"),
    ] {
        if asked {
            return refuse(field, format!("the kernel as the source knows nothing of {what}"), OUR_SOURCE);
        }
    }
    let most = KERNEL_SUBFLOWS_MAX + 1;
    let paths = if cooperation.selection.method.steers() { 1 } else { scenario.active_relays().len() };
    if connection.subflows_max.unwrap_or(paths) > most {
        return refuse(
            "connection.subflows_max",
            format!("the kernel has at most {most} subflows"),
            "set it to 9 or less (--set connection.subflows_max=9), or let our engine send: --source engine",
        );
    }
    Ok(())
}

fn refuse(field: &'static str, problem: String, remedy: &'static str) -> Result<(), RunError> {
    Err(RunError::Unsupported { field, problem, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(changes: &[&str]) -> Option<&'static str> {
        let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
        let scenario =
            lab::scenario::load("demo.toml", include_str!("../../../scenarios/demo.toml"), &changes).unwrap();
        assert!(check(&scenario, Source::Engine).is_ok());
        match check(&scenario, Source::Kernel) {
            Ok(()) => None,
            Err(RunError::Unsupported { field, .. }) => Some(field),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn what_the_kernel_cannot_do_is_named() {
        let cubic = "connection.congestion=cubic";
        assert_eq!(refused(&[cubic]), None);
        assert_eq!(refused(&["connection.congestion=newreno"]), None);
        assert_eq!(refused(&[]), Some("connection.congestion"), "LIA");
        assert_eq!(refused(&[cubic, "connection.hystart=false"]), Some("connection.hystart"));
        assert_eq!(refused(&[cubic, "connection.scheduler=round-robin"]), Some("connection.scheduler"));
        assert_eq!(refused(&[cubic, "connection.receiver_centric={}"]), Some("connection.receiver_centric"));
        assert_eq!(refused(&[cubic, "connection.subflows_max=10"]), Some("connection.subflows_max"));
        let video = ["workload={ kind = 'video', rate = '2 Mbit/s' }", cubic];
        assert_eq!(refused(&video), None);
    }
}
