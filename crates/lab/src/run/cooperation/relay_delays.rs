//! How long data take from relays that acknowledge at once to the destination, as the relays report it to the source.
//!
//! ```text
//! d = stored / rate at which the relay sends on + srtt of that leg / 2
//! ```

use core::net::IpAddr;
use std::collections::BTreeMap;

use transport::relay::{SpliceId, SpliceStats};
use transport::{SubflowId, SubflowStats};
use units::{Duration, Instant, Rate};

/// What the source knows of its relays.
#[derive(Default)]
pub(in crate::run) struct RelayDelays {
    /// By the destination's address on the path.
    delays: BTreeMap<IpAddr, Duration>,
    /// When each splice was last looked at, and what it had sent on until then.
    before: BTreeMap<(usize, SpliceId), (Instant, u64)>,
}

impl RelayDelays {
    /// A splice of relay `relay` reports.
    pub fn report(&mut self, relay: usize, splice: SpliceId, stats: &SpliceStats, now: Instant) {
        let leg = stats.towards_destination;
        let before = self.before.insert((relay, splice), (now, leg.sent_bytes));
        let Some((since, sent_bytes)) = before else { return };
        let rate = Rate::from_bytes_per(leg.sent_bytes.saturating_sub(sent_bytes), now.saturating_since(since));
        let waits = if rate == Rate::ZERO { Duration::ZERO } else { rate.time_to_send(stats.stored_bytes) };
        let travels = leg.srtt.unwrap_or_default().mul_div(1, 2);
        self.delays.insert(stats.destination.ip(), waits + travels);
    }

    /// What is to be added to the delay of `path`.
    pub fn of(&self, path: SubflowId, subflows: &[SubflowStats]) -> Duration {
        let subflow = subflows.iter().find(|subflow| subflow.id == path);
        subflow.and_then(|subflow| self.delays.get(&subflow.remote.ip())).copied().unwrap_or_default()
    }
}
