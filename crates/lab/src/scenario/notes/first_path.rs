//! The path on which a connection begins: where nothing passes there, no other path is ever used.

use core::fmt;

use units::{ByteCount, Duration, Rate};

use crate::scenario::check::lowest;
use crate::scenario::{Link, Loss, Outage, RelayMode, Scenario, TextOr, WorkloadKind};

/// Fewest octets of a packet that opens a connection: the headers, and the options of a SYN.
const SYN_BYTES: ByteCount = ByteCount(60);

/// Why no connection begins.
pub(crate) struct DeadBeginning {
    /// The first relay; `None` if the cause is the bottleneck before all relays.
    relay: Option<String>,
    field: String,
    why: String,
}

impl Scenario {
    /// Explains why no connection begins although its hosts try; `None` if one may begin.
    pub(crate) fn dead_beginning(&self) -> Option<DeadBeginning> {
        if self.workload.kind == WorkloadKind::None {
            return None;
        }
        let index = *self.active_relays().first()?;
        let relay = self.relays.get(index)?;
        let wifi = relay.wifi.as_ref().filter(|_| self.cooperation.relays != RelayMode::MultiHomed);
        let links = [
            (None, "bottleneck".to_owned(), self.bottleneck.as_ref()),
            (Some(relay), format!("relays[{index}].cellular"), relay.cellular.as_ref()),
            (Some(relay), format!("relays[{index}].wifi"), wifi),
        ];
        links.into_iter().find_map(|(relay, field, link)| {
            let (name, why) = obstacle(link?, self.duration)?;
            Some(DeadBeginning { relay: relay.map(|relay| relay.name.clone()), field: format!("{field}.{name}"), why })
        })
    }
}

impl fmt::Display for DeadBeginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.relay {
            Some(name) => write!(f, "a connection begins over the first relay, {name}, where nothing gets through"),
            None => write!(f, "nothing gets through the bottleneck"),
        }?;
        write!(f, " ({}: {})", self.field, self.why)
    }
}

/// Notes that no data will arrive, unless variants or the grid may change that.
pub(super) fn note(scenario: &Scenario) -> Option<String> {
    let DeadBeginning { relay, field, why } = scenario.dead_beginning()?;
    let what = match relay {
        Some(name) => {
            format!(
                "a connection begins over the first relay, {name}, so no data arrive over any; name another one first"
            )
        }
        None => "no data arrive".into(),
    };
    (!scenario.varies(&field)).then(|| format!("{field}: {why} lets nothing through: {what}"))
}

/// The field of `link` that lets no packet through in a run of this length, and its value.
fn obstacle(link: &Link, run: Duration) -> Option<(&'static str, String)> {
    let loss = match &link.loss {
        Loss::Text(loss) => *loss,
        Loss::Table(burst) => lowest(&burst.mean),
    };
    let is_slow = |rate: Rate| rate.bytes_in(run) < SYN_BYTES.0;
    let slow = link.rates().into_iter().find_map(|(name, rate)| match rate {
        TextOr::Text(rate) if is_slow(*rate) => Some((name, rate.to_string())),
        _ => None,
    });
    match () {
        () if loss.value() >= 1.0 => Some(("loss", "100 %".into())),
        () if link.uplink.loss.value() >= 1.0 => Some(("uplink.loss", "100 %".into())),
        () if is_cut(&link.outages, run) => Some(("outages", "an outage over the whole run".into())),
        () => slow,
    }
}

/// Returns whether outages cover the whole run.
fn is_cut(outages: &[Outage], run: Duration) -> bool {
    let mut outages: Vec<_> = outages.iter().map(|outage| (outage.from, outage.until)).collect();
    outages.sort_unstable();
    let covered = outages.into_iter().fold(
        Duration::ZERO,
        |until, (from, end)| {
            if from <= until { until.max(end) } else { until }
        },
    );
    covered >= run
}
