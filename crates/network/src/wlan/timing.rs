//! Times of IEEE 802.11a (clause 17, OFDM with 20 MHz).

use units::{Duration, Rate};

/// Slot time (table 17-21).
pub(crate) const SLOT: Duration = Duration::from_micros(9);
/// Short interframe space (table 17-21).
pub(crate) const SIFS: Duration = Duration::from_micros(16);
/// DCF interframe space: SIFS and two slots (10.3.7).
pub(crate) const DIFS: Duration = Duration::from_micros(34);
/// PLCP preamble and SIGNAL field.
const PREAMBLE: Duration = Duration::from_micros(20);
const SYMBOL: Duration = Duration::from_micros(4);
/// SERVICE field and tail of a PPDU, bits.
const SERVICE_AND_TAIL_BITS: u64 = 22;
/// MAC header with three addresses, LLC and SNAP headers, frame check sequence, octets.
const DATA_OVERHEAD_BYTES: u64 = 24 + 8 + 4;
const ACK_BYTES: u64 = 14;
const CTS_BYTES: u64 = 14;
const RTS_BYTES: u64 = 20;
/// The mandatory rates, used for control frames (10.6.6.5), Mbit/s.
const MANDATORY_MBPS: [u64; 3] = [24, 12, 6];

/// A data rate of IEEE 802.11a.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataRate {
    mbps: u64,
}

impl DataRate {
    /// All rates, Mbit/s.
    pub const MBPS: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];

    /// The fastest rate.
    pub const FASTEST: Self = Self { mbps: 54 };

    /// Returns `rate` if IEEE 802.11a has it.
    pub fn new(rate: Rate) -> Option<Self> {
        let mbps = rate.as_bps() / 1_000_000;
        (Self::MBPS.contains(&mbps) && rate == Rate::from_mbps(mbps)).then_some(Self { mbps })
    }

    /// Returns the data rate as a [`Rate`].
    pub const fn rate(self) -> Rate {
        Rate::from_mbps(self.mbps)
    }

    /// The highest mandatory rate that is not above this one.
    fn control(self) -> Self {
        let mbps = MANDATORY_MBPS.into_iter().find(|mandatory| *mandatory <= self.mbps).unwrap_or(6);
        Self { mbps }
    }

    /// Duration of a PPDU that holds a frame of `bytes` octets (17.4.3, TXTIME).
    fn ppdu(self, bytes: u64) -> Duration {
        let bits_per_symbol = self.mbps * 4;
        let symbols = (SERVICE_AND_TAIL_BITS + 8 * bytes).div_ceil(bits_per_symbol);
        PREAMBLE + SYMBOL.saturating_mul(symbols)
    }

    /// Duration of a data frame with an IP packet of `packet_bytes` octets.
    pub(crate) fn data(self, packet_bytes: u32) -> Duration {
        self.ppdu(u64::from(packet_bytes) + DATA_OVERHEAD_BYTES)
    }

    /// Duration of the acknowledgement of a data frame.
    pub(crate) fn ack(self) -> Duration {
        self.control().ppdu(ACK_BYTES)
    }

    /// Duration of a request to send (RTS).
    pub(crate) fn rts(self) -> Duration {
        self.control().ppdu(RTS_BYTES)
    }

    /// Duration of a CTS, the answer to an RTS.
    pub(crate) fn cts(self) -> Duration {
        self.control().ppdu(CTS_BYTES)
    }
}

/// Octets of the frame around an IP packet of `packet_bytes` octets.
pub(crate) fn frame_bytes(packet_bytes: u32) -> u64 {
    u64::from(packet_bytes) + DATA_OVERHEAD_BYTES
}

/// Extended interframe space, after an unreadable frame: long enough for an ACK at the lowest rate (10.3.7).
pub(crate) fn eifs() -> Duration {
    SIFS + DIFS + DataRate { mbps: 6 }.ack()
}

/// How long a sender waits for the start of an answer (10.3.2.11): SIFS, a slot, and the preamble.
pub(crate) fn answer_timeout() -> Duration {
    SIFS + SLOT + PREAMBLE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(mbps: u64) -> DataRate {
        DataRate::new(Rate::from_mbps(mbps)).unwrap()
    }

    #[test]
    fn frames_take_as_long_as_worked_by_hand() {
        // 1428 + 36 octets and 22 bits are 11,734 bits: 55 symbols of 216 bits, or 489 of 24.
        assert_eq!(rate(54).data(1428).as_micros(), 20 + 55 * 4);
        assert_eq!(rate(6).data(1428).as_micros(), 20 + 489 * 4);
        // 134 bits: 2 symbols of 96 bits, 3 of 48, 6 of 24.
        assert_eq!([54, 24, 18, 12, 9, 6].map(|mbps| rate(mbps).ack().as_micros()), [28, 28, 32, 32, 44, 44]);
        // 182 bits: 2 symbols of 96 bits.
        assert_eq!((rate(54).rts().as_micros(), rate(54).cts().as_micros()), (28, 28));
        assert_eq!(eifs().as_micros(), 16 + 34 + 44);
    }

    #[test]
    fn only_the_standards_rates_exist() {
        assert_eq!(DataRate::new(Rate::from_mbps(11)), None);
        assert_eq!(DataRate::new(Rate::from_bps(6_500_000)), None);
        assert_eq!(rate(54), DataRate::FASTEST);
        assert_eq!(rate(48).rate(), Rate::from_mbps(48));
    }
}
