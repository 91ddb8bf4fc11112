//! Settings of the source's agent.

use cooperation::adaptive_congestion::{ActsOn, Beyond, Mode, Settings};
use cooperation::agent::Role;
use cooperation::agent::source::{AdaptingSettings, SourceAgent, SourceSettings};

use super::Agents;
use crate::run::plan::source_listens;
use crate::run::{RunError, Unsupported};
use crate::scenario::{self, ActsOnKind, BeyondKind, Scenario};

pub(super) fn agent(agents: &Agents<'_>) -> Result<Role, RunError> {
    Ok(settings(agents)?.map_or(Role::Alone, |settings| Role::Source(Box::new(SourceAgent::new(settings)))))
}

/// Returns `None` if the agent has nothing to do.
pub(super) fn settings(agents: &Agents<'_>) -> Result<Option<SourceSettings>, RunError> {
    let Agents { scenario, addresses, .. } = agents;
    let adapting = adapting(scenario)?;
    if adapting.is_none() && !source_listens(scenario) {
        return Ok(None);
    }
    Ok(Some(SourceSettings {
        control: agents.answerer("source", "channels of the source", addresses.source),
        adapting,
        sharing_period: scenario.cooperation.bandwidth_sharing.as_ref().map(|asked| asked.period),
    }))
}

fn adapting(scenario: &Scenario) -> Result<Option<AdaptingSettings>, RunError> {
    let Some(asked) = &scenario.cooperation.adaptive_congestion else { return Ok(None) };
    let acc = Settings {
        eta_min: asked.eta_min,
        eta_max: asked.eta_max,
        cuts_max: asked.reductions_max,
        beyond: match asked.beyond {
            BeyondKind::Ignore => Beyond::Ignore,
            BeyondKind::Cap => Beyond::Cap,
            BeyondKind::Spread => Beyond::Spread,
        },
        mode: match asked.mode {
            scenario::Mode::Build => Mode::Build,
            scenario::Mode::Paper => Mode::Paper,
        },
        acts_on: match asked.acts_on {
            ActsOnKind::Window => ActsOn::Window,
            ActsOnKind::Waiting => ActsOn::Waiting,
        },
        ..Settings::default()
    };
    acc.check().map_err(|error| Unsupported {
        field: "cooperation.adaptive_congestion",
        problem: error.to_string(),
        remedy: "write other values, or leave them out",
    })?;
    Ok(Some(AdaptingSettings { acc, period: asked.period }))
}
