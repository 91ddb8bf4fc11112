//! The agent of a relay.

use core::net::IpAddr;

use cooperation::agent::Role;
use cooperation::agent::control::AnswererSettings;
use cooperation::agent::relay::{
    Demands, LendingLimits, LoadSettings, OfferSettings, PassageSettings, RelayAgent, RelaySettings,
};
use cooperation::bandwidth_sharing::Definition;
use cooperation::forwarding::hold_queue::HoldLimits;
use cooperation::relay_selection::RelayId;
use cooperation::relay_selection::energy::EnergyPrice;
use cooperation::relay_selection::monitor::{
    CapacityEstimator, Configured, LinkMonitor, MeasuredDelivery, SchedulerShare,
};
use transport::relay::RelayConfig;
use units::text::Text;
use units::{Duration, Instant, Rate};

use super::{Built, Needs};
use crate::agent::settings::{
    Cooperation, DemandKind, Estimator, Relay, RelayMode, RhoDefinition, Selection, Settings, refused,
};
use crate::status::Failure;

/// Storage of a relay besides what it holds: the data that its two links keep under way.
const UNDER_WAY_BYTES: u64 = 1 << 20;

pub(super) fn agent(control: AnswererSettings, path: Option<IpAddr>, settings: &Settings) -> Result<Built, Failure> {
    let Settings { cooperation, relay, .. } = settings;
    let settings = RelaySettings {
        control,
        offers: Some(offers(&cooperation.selection, relay)?),
        load: load(cooperation, relay),
        passage: passage(path, settings)?,
        lends: LendingLimits::default(),
        reports_delay_every: cooperation.relays_report_delay(),
    };
    let agent = RelayAgent::new(settings).map_err(|error| refused("cooperation", error))?;
    Ok(Built { role: Role::Relay(Box::new(agent)), needs: Needs::default() })
}

fn passage(path: Option<IpAddr>, settings: &Settings) -> Result<PassageSettings, Failure> {
    let Settings { cooperation, .. } = settings;
    let holds = settings.hold_limits();
    let splices = cooperation.relays == RelayMode::FastAck;
    if !splices && holds.is_none() {
        return Ok(PassageSettings::Beside);
    }
    let path = path.ok_or_else(|| {
        Failure::argument(
            "peers_json: path is missing: relays that acknowledge at once, or hold data, must know the destination's \
             address, like \"path\": \"10.1.0.2\"",
        )
    })?;
    let destination = vec![path];
    // Without ranges, the relay never holds any data.
    let limits = holds.unwrap_or(HoldLimits::of(0, cooperation.selection.period));
    if !splices {
        return Ok(PassageSettings::Routed { destination, limits });
    }
    let relay = RelayConfig {
        buffer_bytes: limits.size_bytes.saturating_add(UNDER_WAY_BYTES),
        news_pace: cooperation.news.into(),
        ..RelayConfig::default()
    };
    Ok(PassageSettings::Spliced { destination, limits, relay: Box::new(relay) })
}

fn load(cooperation: &Cooperation, relay: &Relay) -> Option<LoadSettings> {
    let asked = cooperation.bandwidth_sharing?;
    Some(LoadSettings {
        every: asked.period,
        from: Instant::ZERO + asked.start.map_or(Duration::ZERO, |Text(start)| start),
        definition: match asked.rho {
            RhoDefinition::Protect => Definition::Protect,
            RhoDefinition::Eq73 => Definition::FairShare,
        },
        demands: match asked.demands {
            DemandKind::Known => Demands::Known,
            DemandKind::Estimated => Demands::Estimated,
        },
        fixed: relay.rho,
        capacity: relay.bit_rate_max.map_or(Rate::ZERO, |Text(rate)| rate),
        // Of NewReno, which the owner's flows are taken for.
        increase: 1.0,
        decrease: 0.5,
    })
}

fn offers(selection: &Selection, relay: &Relay) -> Result<OfferSettings, Failure> {
    let link = relay.bit_rate_max.map_or(Rate::ZERO, |Text(rate)| rate);
    let estimator: Box<dyn CapacityEstimator> = match selection.estimator {
        Estimator::Configured => Box::new(Configured(link)),
        Estimator::SchedulerShare => Box::new(SchedulerShare(link)),
        Estimator::MeasuredDelivery => Box::new(MeasuredDelivery::new(link)),
    };
    let price = EnergyPrice::new(relay.energy_nj_per_bit.unwrap_or_default())
        .ok_or_else(|| refused("relay.energy_nj_per_bit", "is no price: write a number from 0 to 1e9"))?;
    let local = relay.local_rate.map_or(Rate::ZERO, |Text(rate)| rate);
    // The channel tells who the relay is.
    let monitor = LinkMonitor::new(RelayId(0), estimator, local).paying(price);
    let every = selection.adverts_every();
    let per_period = (selection.period.as_nanos() / every.as_nanos().max(1)) as usize;
    let monitor = if selection.is_prompt() { monitor.prompt(per_period) } else { monitor };
    Ok(OfferSettings { monitor, every, exaggerates: relay.exaggerates.unwrap_or(1.0) })
}
