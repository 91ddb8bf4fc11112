//! The agent of a source.

use cooperation::agent::Role;
use cooperation::agent::control::AnswererSettings;
use cooperation::agent::source::{AdaptingSettings, SourceAgent, SourceSettings};

use super::{Built, Needs};
use crate::agent::settings::Cooperation;

pub(super) fn agent(control: AnswererSettings, cooperation: &Cooperation) -> Built {
    let adapting =
        cooperation.adaptive_congestion.map(|asked| AdaptingSettings { acc: asked.module(), period: asked.period });
    let sharing_period = cooperation.bandwidth_sharing.map(|asked| asked.period);
    let agent = SourceAgent::new(SourceSettings { control, adapting, sharing_period });
    Built { role: Role::Source(Box::new(agent)), needs: Needs::default() }
}
