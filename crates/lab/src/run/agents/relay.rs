//! Settings of each relay's agent.

use cooperation::agent::Role;
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
use transport::ConnectionConfig;
use transport::relay::{NewsPace, RelayConfig, RelayError};
use units::text::{Text, TextOr};
use units::{Duration, Instant, Rate};

use super::Agents;
use crate::run::plan::{hold_limits, is_on_the_way, relays_converse, relays_report_delay, selects_relays};
use crate::run::{RunError, Unsupported};
use crate::scenario::{
    DemandKind, Estimator, LocalTraffic, NewsKind, Relay, RelayMode, RhoDefinition, Scenario, value_of,
};

/// Storage of a relay besides its hold queue: the data that its two links keep under way.
const UNDER_WAY_BYTES: u64 = 1 << 20;

pub(super) fn agent(agents: &Agents<'_>, index: usize) -> Result<Role, RunError> {
    let Agents { scenario, addresses, .. } = agents;
    if !relays_converse(scenario) && !is_on_the_way(scenario) {
        return Ok(Role::Alone);
    }
    let settings = RelaySettings {
        control: agents.answerer(
            &format!("relay {index}"),
            &format!("channels of relay {index}"),
            addresses.relays[index],
        ),
        offers: selects_relays(scenario).then(|| offers(scenario, index)),
        load: load(scenario, index),
        passage: passage(agents, index),
        lends: lends(&scenario.relays[index]),
        reports_delay_every: relays_report_delay(scenario),
    };
    let refused = |error: RelayError| Unsupported {
        field: "connection",
        problem: error.to_string(),
        remedy: "use settings that relays support",
    };
    let agent = RelayAgent::new(settings).map_err(refused)?;
    Ok(Role::Relay(Box::new(agent)))
}

fn offers(scenario: &Scenario, index: usize) -> OfferSettings {
    let (selection, relay) = (&scenario.cooperation.selection, &scenario.relays[index]);
    let period = selection.period;
    let every = selection.advert_period.map_or(period, |Text(every)| every);
    let per_period = (period.as_nanos() / every.as_nanos().max(1)) as usize;
    let configured = configured(relay);
    let estimator: Box<dyn CapacityEstimator> = match selection.estimator {
        Estimator::Configured => Box::new(Configured(configured)),
        Estimator::SchedulerShare => Box::new(SchedulerShare(configured)),
        Estimator::MeasuredDelivery => Box::new(MeasuredDelivery::new(configured)),
    };
    let energy = relay.energy_nj_per_bit().and_then(EnergyPrice::new).unwrap_or_default();
    let monitor = LinkMonitor::new(RelayId(index as u16), estimator, expected_local(scenario, relay)).paying(energy);
    let monitor = if every < period { monitor.prompt(per_period) } else { monitor };
    OfferSettings { monitor, every, exaggerates: relay.exaggerates.unwrap_or(1.0) }
}

fn load(scenario: &Scenario, index: usize) -> Option<LoadSettings> {
    let asked = scenario.cooperation.bandwidth_sharing.as_ref()?;
    let relay = &scenario.relays[index];
    let (increase, decrease) = aimd(&relay.local);
    Some(LoadSettings {
        every: asked.period,
        from: Instant::ZERO + asked.start.map_or(Duration::ZERO, |start| start.0),
        definition: match asked.rho {
            RhoDefinition::Protect => Definition::Protect,
            RhoDefinition::Eq73 => Definition::FairShare,
        },
        demands: match asked.demands {
            DemandKind::Known => Demands::Known,
            DemandKind::Estimated => Demands::Estimated,
        },
        fixed: asked.fixed.get(index).copied(),
        capacity: configured(relay),
        increase,
        decrease,
    })
}

/// Increase and decrease of the owner's flows: the first AIMD parameters that a flow names, otherwise NewReno's, which
/// are AIMD's defaults too.
fn aimd(local: &[LocalTraffic]) -> (f64, f64) {
    let specs = local.iter().filter_map(|local| local.congestion.as_ref());
    let given = specs.map(|Text(spec)| spec).find(|spec| spec.name == "aimd" && !spec.parameters.is_empty());
    let value = |at: usize, default: f64| given.and_then(|spec| spec.parameters.get(at)).copied().unwrap_or(default);
    (value(0, 1.0), value(1, 0.5))
}

fn passage(agents: &Agents<'_>, index: usize) -> PassageSettings {
    let scenario = agents.scenario;
    let destination = vec![agents.addresses.paths[index]];
    // Without ranges, the relay never holds any data.
    let limits = hold_limits(scenario).unwrap_or(HoldLimits::of(0, scenario.metrics.period));
    match scenario.cooperation.relays {
        RelayMode::FastAck => PassageSettings::Spliced { destination, limits, relay: Box::new(legs(scenario, limits)) },
        RelayMode::Ip if is_on_the_way(scenario) => PassageSettings::Routed { destination, limits },
        RelayMode::Ip | RelayMode::MultiHomed => PassageSettings::Beside,
    }
}

fn lends(relay: &Relay) -> LendingLimits {
    let lends = relay.lends.unwrap_or_default();
    LendingLimits { rate: lends.rate.map(|Text(rate)| rate), volume_bytes: lends.volume.map(|Text(volume)| volume.0) }
}

fn legs(scenario: &Scenario, limits: HoldLimits) -> RelayConfig {
    let own = RelayConfig::default().tcp;
    let hosts = scenario.connection.to_config(1);
    let keep_alive = hosts.keep_alive.or(own.keep_alive);
    let tcp = ConnectionConfig { congestion: own.congestion, nagle: own.nagle, keep_alive, ..hosts };
    let news_pace = match scenario.cooperation.news {
        NewsKind::AtOnce => NewsPace::AtOnce,
        NewsKind::Sparing => NewsPace::Sparing,
    };
    let buffer_bytes = limits.size_bytes.saturating_add(UNDER_WAY_BYTES);
    RelayConfig { tcp, buffer_bytes, news_pace, ..RelayConfig::default() }
}

/// Rate of a relay's link as the scenario states it; zero if the rate follows a file.
fn configured(relay: &Relay) -> Rate {
    let link = relay.cellular.as_ref().and_then(|link| match &link.rate {
        TextOr::Text(rate) => Some(*rate),
        TextOr::Table(model) => model.mean.map(|mean| mean.0),
    });
    let ceiling = relay.bit_rate_max.map(|rate| rate.0);
    link.into_iter().chain(ceiling).min().unwrap_or(Rate::ZERO)
}

/// Rate that a relay expects its owner's traffic to take from the start.
fn expected_local(scenario: &Scenario, relay: &Relay) -> Rate {
    let begins_at_once = |local: &&LocalTraffic| local.start.is_none_or(|start| start.0.is_zero());
    let rate = |local: &LocalTraffic| {
        let bps = local.rate.as_ref().map_or(0.0, |rate| value_of(rate).as_bps() as f64);
        let on = local.on_off.map_or(1.0, |times| times.on.as_secs_f64() / (times.on + times.off).as_secs_f64());
        bps * on * f64::from(local.count) * (1.0 + scenario.header_ratio(local))
    };
    Rate::from_bps(relay.local.iter().filter(begins_at_once).map(rate).sum::<f64>() as u64)
}

#[cfg(test)]
mod tests {
    use transport::congestion::CONTROLLERS;

    use super::*;
    use crate::scenario::load;

    #[test]
    fn owners_flows_have_the_parameters_that_are_given_and_the_defaults_of_others() {
        let of = |flows: &[&str]| {
            let flow = |congestion: &&str| format!("{{ kind = \"tcp\", congestion = \"{congestion}\" }}");
            let flows: Vec<_> = flows.iter().map(flow).collect();
            let text = format!(
                "name = \"x\"\nduration = \"5 s\"\nworkload = {{ kind = \"bulk\" }}\n[[relays]]\n\
                 cellular = {{ rate = \"3 Mbit/s\", delay = \"40 ms\" }}\nlocal = [{}]\n",
                flows.join(", ")
            );
            aimd(&load("x.toml", &text, &[]).unwrap().relays[0].local)
        };
        assert_eq!(of(&["aimd(0.7,0.625)"]), (0.7, 0.625));
        assert_eq!(of(&["aimd(0.7)"]), (0.7, 0.5));
        let aimd = CONTROLLERS.iter().find(|controller| controller.name == "aimd").unwrap();
        let defaults: Vec<_> = aimd.build.parameters().iter().map(|parameter| parameter.default).collect();
        for newreno in [&["aimd"][..], &["newreno"], &[]] {
            assert_eq!(of(newreno), (defaults[0], defaults[1]));
        }
        assert_eq!(of(&["cubic", "aimd", "aimd(0.7)", "aimd(0.2,0.3)"]), (0.7, 0.5));
    }
}
