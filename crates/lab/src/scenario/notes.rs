//! Notes on parts of a scenario that have no effect in a run, or an unexpected one, and are not mistakes: they may be
//! meant for another scenario or a longer run.

mod first_path;
mod links;
mod local;
mod modules;
mod one_path;
mod plain_tcp;

use units::Duration;
use units::text::Text;

use super::{
    ActsOnKind, Binding, Change, Link, LocalKind, LocalTraffic, Relay, RelayMode, Scenario, Selection, WorkloadKind,
};

/// The scheduler that considers neither the amount of waiting data nor the order of previous service.
const MAXIMUM_THROUGHPUT: &str = "maximum-throughput";
/// Maximum octets of a packet in one Wi-Fi frame (IEEE 802.11, the largest MSDU).
const MSDU_MAX_BYTES: u64 = 2304;

impl Scenario {
    /// Describes settings without effect, in one sentence each that begins with the field.
    pub fn notes(&self) -> Vec<String> {
        let late = self.times().into_iter().filter(|(_, at)| *at >= self.duration);
        let never =
            late.map(|(field, at)| format!("{field}: {at} is never reached: the run ends at {}", self.duration));
        never.chain(self.endless()).chain(self.idle()).chain(self.of_links()).collect()
    }

    /// Times at which something begins or ends, with their fields.
    fn times(&self) -> Vec<(String, Duration)> {
        let mut times = Vec::new();
        let links = self.bottleneck.iter().flat_map(|link| outages("bottleneck", link));
        times.extend(links);
        for (index, relay) in self.relays.iter().enumerate() {
            times.extend(times_of(relay, &format!("relays[{index}]")));
        }
        let sharing = self.cooperation.bandwidth_sharing.as_ref().and_then(|sharing| sharing.start);
        times.extend(sharing.map(|Text(start)| ("cooperation.bandwidth_sharing.start".into(), start)));
        times
    }

    /// Modules with a period so long that it never ends within the run.
    fn endless(&self) -> Vec<String> {
        let mut endless = Vec::new();
        let mut note = |field: &str, period: Duration, what: &str| {
            if period > self.duration {
                endless.push(format!("{field}: {period} is longer than the run of {}: {what}", self.duration));
            }
        };
        let selection = &self.cooperation.selection;
        // Adverts between the ends of periods take effect at once.
        if selection.method.steers() && selection.advert_period.is_none() {
            let what = "relays are chosen at the start, and later only to replace lost ones";
            note("cooperation.selection.period", selection.period, what);
        }
        if let Some(acc) = &self.cooperation.adaptive_congestion {
            note("cooperation.adaptive_congestion.period", acc.period, "it never acts");
        }
        if let Some(watch) = &self.cooperation.watch {
            note("cooperation.watch.patience", watch.patience, "it never acts");
        }
        endless.extend(self.endless_sharing());
        endless
    }

    /// Relays measure their owners' traffic over a period before they report it; a given ratio they report when it
    /// begins.
    fn endless_sharing(&self) -> Option<String> {
        let sharing = self.cooperation.bandwidth_sharing.as_ref()?;
        let begins = sharing.start.map_or(Duration::ZERO, |Text(start)| start);
        // Another note covers a signal that begins too late.
        let left = self.duration.saturating_sub(begins);
        if left.is_zero() || sharing.period <= left {
            return None;
        }
        let (period, run) = (sharing.period, self.duration);
        let (span, when) = match begins.is_zero() {
            true => (format!("the run of {run}"), "at the start".into()),
            false => (format!("the {left} that remain of the run of {run} from {begins} on"), format!("at {begins}")),
        };
        let what = if sharing.fixed.is_empty() { "it never acts".into() } else { format!("it acts once, {when}") };
        Some(format!("cooperation.bandwidth_sharing.period: {period} is longer than {span}: {what}"))
    }

    /// Settings of links without effect, or with an unexpected one.
    fn of_links(&self) -> Vec<String> {
        let bottleneck = self.bottleneck.iter().map(|link| ("bottleneck".to_string(), link));
        let of_relays = self.relays.iter().enumerate().flat_map(|(index, relay)| {
            let links = links(relay).into_iter();
            links.map(move |(hop, link)| (format!("relays[{index}].{hop}"), link))
        });
        // A run that ends with its data is shorter than its limit as a rule.
        let lasts = if self.workload.ends() { Duration::ZERO } else { self.duration };
        bottleneck.chain(of_relays).flat_map(|(field, link)| links::notes(&field, link, lasts)).collect()
    }

    /// Settings that request nothing.
    fn idle(&self) -> Vec<String> {
        let mut idle = Vec::new();
        let acts_on = self.cooperation.adaptive_congestion.as_ref().map(|acc| acc.acts_on);
        if acts_on == Some(ActsOnKind::Waiting) && self.connection.era.binding == Binding::Late {
            idle.push(
                "cooperation.adaptive_congestion.acts_on: \"waiting\" does nothing: data are bound late, so none wait at \
                 subflows; write connection.era.binding = \"early\" to let them wait"
                    .into(),
            );
        }
        let steers = self.cooperation.selection.method.steers();
        for (index, _) in self.relays.iter().enumerate().filter(|(_, relay)| relay.exaggerates.is_some() && !steers) {
            idle.push(format!(
                "relays[{index}].exaggerates: does nothing: relays are not asked for offers; \
                 write cooperation.selection.method = \"ssrs\""
            ));
        }
        idle.extend(self.unasked());
        idle.extend(first_path::note(self));
        idle.extend(plain_tcp::note(self));
        idle.extend(one_path::note(self));
        idle.extend(modules::notes(self));
        idle.extend(self.absent());
        idle.extend(self.first_served());
        let is_priced = self.relays.iter().any(|relay| relay.energy_nj_per_bit.is_some());
        if steers && self.cooperation.selection.energy_weight.is_some() && !is_priced {
            idle.push("cooperation.selection.energy_weight: does nothing: no relay has an energy_nj_per_bit".into());
        }
        for (index, relay) in self.relays.iter().enumerate() {
            let unused = relay.local.iter().enumerate().filter(|(_, local)| has_no_use_for_datagram(local));
            idle.extend(unused.map(|(number, local)| {
                let kind = local.kind.name();
                format!("relays[{index}].local[{number}].datagram: does nothing here with kind = \"{kind}\"")
            }));
            idle.extend(local::notes(relay, &format!("relays[{index}]")));
        }
        idle
    }

    /// Settings for things that do not exist.
    fn absent(&self) -> Vec<String> {
        let mut absent = Vec::new();
        let connections = self.workload.connections;
        if self.workload.kind == WorkloadKind::None && connections > 1 && !self.varies("workload.kind") {
            absent.push(format!(
                "workload.connections: {connections} does nothing with kind = \"none\": there are no connections"
            ));
        }
        let marks = self.cell.as_ref().is_some_and(|cell| cell.early_drop_above.is_some());
        if self.connection.ecn && !marks && !self.varies("connection.ecn") && !self.varies("cell.early_drop_above") {
            absent.push(
                "connection.ecn: does nothing: no queue marks packets; a cell's queue does with early_drop_above"
                    .into(),
            );
        }
        let has_no_hop = self.cooperation.relays == RelayMode::MultiHomed && !self.varies("cooperation.relays");
        if self.wlan.is_some() && has_no_hop {
            absent.push(
                "wlan: does nothing with cooperation.relays = \"multi-homed\": the destination has the cellular interfaces itself".into(),
            );
        }
        if self.wlan.is_some()
            && !has_no_hop
            && self.connection.mtu.0 > MSDU_MAX_BYTES
            && !self.varies("connection.mtu")
        {
            absent.push(format!(
                "connection.mtu: {} is more than the {MSDU_MAX_BYTES} B of an 802.11 frame: larger packets make the channel seem \
                 faster than it is",
                self.connection.mtu
            ));
        }
        absent
    }

    /// A scheduler of the cell whose results for many receivers say little about the cell's capacity.
    fn first_served(&self) -> Option<String> {
        let cell = self.cell.as_ref()?;
        let is_meant = self.relays.len() > 1 && cell.scheduler == MAXIMUM_THROUGHPUT;
        (is_meant && !self.varies("cell.scheduler")).then(|| {
            "cell.scheduler: \"maximum-throughput\" serves the first of the best receivers, however little waits for it: \
             with many receivers of single packets, the cell carries far less than it could, and the later ones get nothing"
                .into()
        })
    }

    /// The fields that variants and the grid set.
    fn varied(&self) -> impl Iterator<Item = &str> {
        let others = self.variants.iter().flat_map(|variant| variant.set.keys());
        others.chain(self.sweep.iter().flat_map(|sweep| sweep.grid.keys())).map(String::as_str)
    }

    /// Returns whether a variant or the grid sets `field` or a table around it.
    fn varies(&self, field: &str) -> bool {
        self.varied().any(|key| field.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    }

    /// Settings of relay selection in a file without any case that selects relays.
    fn unasked(&self) -> Option<String> {
        let selection = &self.cooperation.selection;
        let is_chosen_elsewhere =
            self.varied().any(|field| field == "cooperation" || field.starts_with("cooperation.selection"));
        let changed = if selection.method.steers() || is_chosen_elsewhere { Vec::new() } else { changed(selection) };
        let (verb, them) = if changed.len() == 1 { ("does", "it") } else { ("do", "them") };
        (!changed.is_empty()).then(|| {
            format!(
                "cooperation.selection: {} {verb} nothing with method = \"{}\"; method = \"ssrs\" uses {them}",
                changed.join(", "),
                selection.method.name()
            )
        })
    }
}

/// The fields that affect a choice of relays and are set.
fn changed(selection: &Selection) -> Vec<&'static str> {
    let default = Selection::default();
    let fields = [
        ("period", selection.period != default.period),
        ("advert_period", selection.advert_period.is_some()),
        ("estimator", selection.estimator != default.estimator),
        ("trigger", selection.trigger != default.trigger),
        ("hold_down_periods", selection.hold_down_periods.is_some()),
        ("headroom", selection.headroom.is_some()),
        ("discount", selection.discount),
        ("energy_weight", selection.energy_weight.is_some()),
        ("buffered_tolerance", selection.buffered_tolerance.is_some()),
        ("epsilon", selection.epsilon != default.epsilon),
        ("mode", selection.mode != default.mode),
    ];
    fields.into_iter().filter_map(|(name, is_set)| is_set.then_some(name)).collect()
}

fn times_of(relay: &Relay, field: &str) -> Vec<(String, Duration)> {
    let walk = relay.place.and_then(|place| place.walk?.start);
    let one = [
        ("leaves", relay.leaves.map(|Text(at)| at)),
        ("swallows.from", relay.swallows.map(|swallows| swallows.from)),
        ("place.walk.start", walk.map(|Text(at)| at)),
    ];
    let one = one.into_iter().filter_map(|(name, at)| Some((format!("{field}.{name}"), at?)));
    let outages =
        links(relay).into_iter().flat_map(|(hop, link)| outages(&format!("{field}.{hop}"), link).collect::<Vec<_>>());
    let starts = relay.local.iter().enumerate().filter_map(|(number, local)| {
        let Text(start) = local.start?;
        Some((format!("{field}.local[{number}].start"), start))
    });
    let changes = relay.local.iter().enumerate().flat_map(|(number, local)| {
        let changes = local.changes.iter().enumerate();
        changes.map(move |(change, Change { at, .. })| (format!("{field}.local[{number}].changes[{change}].at"), *at))
    });
    one.chain(outages).chain(starts).chain(changes).collect()
}

/// A relay's own links.
fn links(relay: &Relay) -> Vec<(&'static str, &Link)> {
    let links = [("cellular", &relay.cellular), ("wifi", &relay.wifi)];
    links.into_iter().filter_map(|(hop, link)| Some((hop, link.as_ref()?))).collect()
}

fn outages<'a>(field: &'a str, link: &'a super::Link) -> impl Iterator<Item = (String, Duration)> + 'a {
    let outages = link.outages.iter().enumerate();
    outages.map(move |(index, outage)| (format!("{field}.outages[{index}].from"), outage.from))
}

/// Returns whether the datagram size is set although it determines neither packets nor times.
fn has_no_use_for_datagram(local: &LocalTraffic) -> bool {
    let is_used = match local.kind {
        LocalKind::Udp | LocalKind::Poisson | LocalKind::Vbr => true,
        LocalKind::Tcp => local.rate.is_some(),
        LocalKind::ShortFlows | LocalKind::Video => false,
    };
    !is_used && local.datagram != LocalTraffic::default_datagram()
}
