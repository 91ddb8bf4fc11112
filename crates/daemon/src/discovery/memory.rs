//! How much multicast DNS remembers of what others announce.
//!
//! mdns-sd keeps the records of every answer that names no service, with or without a search, for as long as each
//! record says. Anybody on the network can send such answers. It forgets them only at its end, so it has to be replaced.

use linux::clock::Clock;
use mdns_sd::{Metrics, Receiver, ServiceDaemon};
use units::{Duration, Instant};

/// Interval of looks.
pub const LOOK: Duration = Duration::from_secs(1);
/// Maximum number of records. A network of hundreds of hosts has fewer. A record has at most 9000 octets.
const RECORDS_MAX: i64 = 2_000;
/// Maximum number of the times that it remembers for records: each message about a known one adds some.
const TIMES_MAX: i64 = 50_000;

/// Looks at what a daemon remembers.
#[derive(Debug)]
pub struct Memory {
    clock: Clock,
    look_at: Instant,
    asked: Option<Receiver<Metrics>>,
}

impl Memory {
    /// Begins to look at a daemon that starts now.
    pub fn new(clock: Clock) -> Self {
        Self { clock, look_at: clock.now() + LOOK, asked: None }
    }

    /// Returns whether the daemon has to be replaced. Never waits: the answer to a question comes with a later call.
    pub fn is_full(&mut self, daemon: &ServiceDaemon) -> bool {
        if let Some(metrics) = self.asked.as_ref().and_then(|asked| asked.try_recv().ok()) {
            self.asked = None;
            return is_too_much(&metrics);
        }
        let now = self.clock.now();
        if self.look_at <= now && self.asked.as_ref().is_none_or(Receiver::is_disconnected) {
            self.look_at = now + LOOK;
            self.asked = daemon.get_metrics().ok();
        }
        false
    }
}

fn is_too_much(metrics: &Metrics) -> bool {
    let records = metrics.iter().filter(|(name, _)| name.starts_with("cached-")).map(|(_, count)| count);
    let times = metrics.get("timer").copied().unwrap_or(0);
    records.sum::<i64>() > RECORDS_MAX || times > TIMES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_all_kinds_count_and_nothing_else() {
        let judge = |counts: &[(&str, i64)]| {
            is_too_much(&counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
        };
        assert!(!judge(&[]));
        assert!(!judge(&[("cached-txt", 1_000), ("cached-addr", 1_000), ("respond", 1_000_000), ("timer", 50_000)]));
        assert!(judge(&[("cached-txt", 1_000), ("cached-addr", 1_000), ("cached-nsec", 1)]));
        assert!(judge(&[("timer", 50_001)]));
    }
}
