//! Capacity of a queue as topology files write it.

use core::str::FromStr;

use network::Queue;
use units::ByteCount;

/// `"100 packets"` or `"64 kB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimit(pub Queue);

impl Default for QueueLimit {
    fn default() -> Self {
        Self(Queue::packets(100))
    }
}

impl FromStr for QueueLimit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("{text:?} is not a queue: write it like \"100 packets\" or \"64 kB\"");
        let packets = text.trim().strip_suffix("packets").or_else(|| text.trim().strip_suffix("packet"));
        let queue = match packets {
            Some(number) => Queue::packets(number.trim_end().parse().ok().filter(|n| *n > 0).ok_or_else(refuse)?),
            None => {
                let ByteCount(bytes) = text.parse().map_err(|_| refuse())?;
                Queue::bytes(bytes)
            }
        };
        Ok(Self(queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_or_octets() {
        assert_eq!("100 packets".parse(), Ok(QueueLimit::default()));
        assert_eq!("1 packet".parse(), Ok(QueueLimit(Queue::packets(1))));
        assert_eq!("64 kB".parse(), Ok(QueueLimit(Queue::bytes(64_000))));
        for text in ["", "100", "0 packets", "many packets", "1.5 packets"] {
            assert!(text.parse::<QueueLimit>().is_err(), "{text:?}");
        }
    }
}
