//! What uplinks have brought recently, over all connections. Pure.
//!
//! Connections that download at the same time compete for each uplink, and one that gets little of an uplink sees it as
//! late. That is no fault of the uplink while it brings its share of all octets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::harm::WORTHLESS_PARTS;

/// The counts fall by one of this many parts with each note.
const FALL: u64 = 4;

/// Recent octets by uplink.
#[derive(Debug, Default)]
pub struct Shares(BTreeMap<IpAddr, u64>);

impl Shares {
    /// Notes what uplinks brought since the last note. To be called about twice a second while octets move.
    pub fn note(&mut self, brought_bytes: &BTreeMap<IpAddr, u64>) {
        self.0.values_mut().for_each(|bytes| *bytes -= bytes.div_ceil(FALL));
        for (ip, bytes) in brought_bytes {
            *self.0.entry(*ip).or_default() += bytes;
        }
        self.0.retain(|_, bytes| *bytes > 0);
    }

    /// Returns whether an uplink brings at least an eighth of all octets.
    pub fn is_worth(&self, ip: IpAddr) -> bool {
        let all_bytes: u64 = self.0.values().sum();
        let own_bytes = self.0.get(&ip).copied().unwrap_or(0);
        own_bytes > 0 && own_bytes >= all_bytes / WORTHLESS_PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_brought_long_ago_counts_no_more() {
        let [fast, slow] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let mut shares = Shares::default();
        assert!(!shares.is_worth(fast));
        shares.note(&[(fast, 700_000), (slow, 100_000)].into());
        assert!(shares.is_worth(fast) && shares.is_worth(slow));
        shares.note(&[(fast, 700_000)].into());
        assert!(shares.is_worth(fast) && !shares.is_worth(slow));
        (0..100).for_each(|_| shares.note(&BTreeMap::new()));
        assert!(!shares.is_worth(fast));
    }
}
