//! Counters of all traffic on an interface.

use std::fs;

/// The kernel's counters for the calling thread's network namespace; `/sys` may show those of another.
const FILE: &str = "/proc/thread-self/net/dev";

/// Octets since the interface was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Received.
    pub down_bytes: u64,
    /// Sent.
    pub up_bytes: u64,
}

impl Counters {
    /// Reads the counters of `interface`, if it exists.
    pub fn read(interface: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(FILE).ok()?, interface)
    }

    /// Returns the difference to `earlier`. If the interface was recreated since, its counters started again from zero,
    /// and the difference is zero until they pass the old values.
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            down_bytes: self.down_bytes.saturating_sub(earlier.down_bytes),
            up_bytes: self.up_bytes.saturating_sub(earlier.up_bytes),
        }
    }

    /// Returns the counters as seen from the other end of the link.
    pub const fn turned(self) -> Self {
        Self { down_bytes: self.up_bytes, up_bytes: self.down_bytes }
    }

    /// Parses `proc_net_dev(5)`: for each interface its name, eight numbers about reception, and eight about
    /// transmission.
    fn parse(text: &str, interface: &str) -> Option<Self> {
        let (_, numbers) =
            text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() == interface)?;
        let mut numbers = numbers.split_ascii_whitespace().map(str::parse);
        Some(Self { down_bytes: numbers.next()?.ok()?, up_bytes: numbers.nth(7)?.ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let text = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  111       1    0    0    0     0          0         0      112       1    0    0    0     0       0          0
 wwan0: 9876543210 22    0    0    0     0          0         0     4321      33    0    0    0     0       0          0
";
        let wwan0 = Counters { down_bytes: 9_876_543_210, up_bytes: 4321 };
        assert_eq!(Counters::parse(text, "wwan0"), Some(wwan0));
        assert_eq!(Counters::parse(text, "wwan"), None);
        assert!(Counters::read("lo").is_some());
    }
}
