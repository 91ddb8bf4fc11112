//! Refuses what a scenario requires but ns-3's models cannot do.

use lab::run::{RunError, Unsupported};
use lab::scenario::{Cell, PathLoss, RelayMode, Scenario, Wlan};

/// Remedy for most refusals.
const OUR_RADIO: &str = "use the built-in radio: --backend simulator";

/// The resource schedulers that ns-3 has, by our names for them.
const SCHEDULERS: &[(&str, &str)] = &[
    ("blind-equal-throughput-reserved", "ns3::TdBetFfMacScheduler"),
    ("blind-equal-throughput-fd", "ns3::FdBetFfMacScheduler"),
    ("proportional-fair", "ns3::PfFfMacScheduler"),
    ("round-robin", "ns3::RrFfMacScheduler"),
];

/// Returns ns-3's name of a resource scheduler.
pub fn scheduler(name: &str) -> Option<&'static str> {
    SCHEDULERS.iter().find(|(ours, _)| *ours == name).map(|(_, theirs)| *theirs)
}

/// Checks what ns-3 would have to do.
///
/// # Errors
/// Everything that it cannot do, by the names of the fields.
pub fn check(scenario: &Scenario) -> Result<(), RunError> {
    let mut refused = Vec::new();
    let wlan = scenario.wlan.as_ref().filter(|_| scenario.cooperation.relays != RelayMode::MultiHomed);
    if scenario.cell.is_none() && wlan.is_none() {
        refused.push(Unsupported {
            field: "cell",
            problem: "there is neither a cell nor a shared Wi-Fi channel, so ns-3 would have nothing to simulate"
                .into(),
            remedy: "use --backend simulator, or add [cell] or [wlan]",
        });
    }
    scenario.cell.iter().for_each(|cell| refused.extend(beyond_the_cell(scenario, cell)));
    wlan.into_iter().for_each(|wlan| refused.extend(beyond_the_channel(wlan)));
    if refused.is_empty() { Ok(()) } else { Err(RunError::Unsupported(refused)) }
}

fn refuse(field: &'static str, problem: impl Into<String>) -> Unsupported {
    Unsupported { field, problem: problem.into(), remedy: OUR_RADIO }
}

fn beyond_the_cell(scenario: &Scenario, cell: &Cell) -> Vec<Unsupported> {
    let walks = scenario.relays.iter().any(|relay| relay.place.is_some_and(|place| place.walk.is_some()));
    let mut refused = Vec::new();
    if scheduler(&cell.scheduler).is_none() {
        refused.push(Unsupported {
            field: "cell.scheduler",
            problem: format!("ns-3 has no scheduler that works as \"{}\"", cell.scheduler),
            remedy: "choose one that it has: --set cell.scheduler=blind-equal-throughput-fd (or \
                blind-equal-throughput-reserved, proportional-fair, round-robin)",
        });
    }
    for (field, asked, problem) in [
        ("cell.shadowing_db", cell.shadowing_db > 0.0, "the cell of ns-3 has no shadowing here"),
        ("cell.sites_m", cell.sites_m.len() > 1, "the cell of ns-3 has one site here"),
        ("cell.handover", cell.handover.is_some(), "the cell of ns-3 has no handover here"),
        ("cell.early_drop_above", cell.early_drop_above.is_some(), "RLC queues of ns-3 drop packets only when full"),
        ("cell.path_loss", cell.path_loss == PathLoss::Macro, "the cell of ns-3 has no macro path loss here"),
        ("relays.place.walk", walks, "relays stand still in the cell of ns-3"),
    ] {
        if asked {
            refused.push(refuse(field, problem));
        }
    }
    refused
}

fn beyond_the_channel(wlan: &Wlan) -> Vec<Unsupported> {
    let noisy = wlan.frame_loss.value() > 0.0;
    let asked = [
        ("wlan.frame_loss", noisy, "the channel of ns-3 has no noise here besides collisions"),
        ("wlan.hidden", !wlan.hidden.is_empty(), "all stations hear each other in the channel of ns-3"),
    ];
    asked.into_iter().filter(|(_, asked, _)| *asked).map(|(field, _, problem)| refuse(field, problem)).collect()
}
