//! Detects a shared link that is silently dead: destinations' packets leave, and nothing comes back. Sans-IO.

use tracing::{info, warn};
use units::{Duration, Instant};
use wire::{Flags, Segment, TcpChecksum};

use super::counters::Counters;

/// Silence after which the relay reports it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Minimum time between the first and the last unanswered packet: nobody may answer the last FIN of a connection.
const INSISTENCE: Duration = Duration::from_secs(2);

/// Returns whether the receiver of this packet sends something back. Nobody answers an ACK or a RST, and a destination
/// may send only ACKs for seconds: that a subflow is a backup now, or has ended.
pub fn wants_answer(packet: &[u8]) -> bool {
    let Ok((segment, payload)) = Segment::parse_headers(packet, TcpChecksum::Trusted) else { return true };
    let begins_or_ends = segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::FIN);
    !segment.flags.contains(Flags::RST) && (begins_or_ends || !payload.is_empty())
}

/// What has come back since something was sent.
#[derive(Debug, Default)]
pub struct Unheard {
    /// The counters at the last look.
    counters: Option<Counters>,
    asking_bytes: u64,
    /// First and last time at which destinations sent something since anything arrived.
    asked: Option<(Instant, Instant)>,
    /// Whether the silence was reported.
    is_told: bool,
}

impl Unheard {
    /// Handles a second's look: the present counters of `share`, if it exists, and the total octets that destinations
    /// have sent over it and that want an answer ([`wants_answer`]).
    pub fn look(&mut self, share: &str, counters: Option<Counters>, asking_bytes: u64, now: Instant) {
        let (before, asking_before) = (self.counters, core::mem::replace(&mut self.asking_bytes, asking_bytes));
        self.counters = counters;
        let Some((counters, before)) = counters.zip(before) else {
            // The loss of an interface is reported elsewhere.
            (self.asked, self.is_told) = (None, false);
            return;
        };
        if counters.down_bytes != before.down_bytes {
            let asked = self.asked.take();
            if let Some((first, _)) = asked.filter(|_| core::mem::take(&mut self.is_told)) {
                let seconds = now.saturating_since(first).as_secs_f64();
                info!(share, "packets come back over {share} again, after {seconds:.0} s");
            }
        } else if asking_bytes > asking_before && counters.up_bytes > before.up_bytes {
            let first = self.asked.map_or(now, |(first, _)| first);
            self.asked = Some((first, now));
        }
        if let Some(span) = self.span(now).filter(|_| !self.is_told) {
            self.is_told = true;
            let seconds = span.as_secs_f64();
            warn!(
                share,
                "nothing has come back over {share} for {seconds:.0} s, although destinations have sent packets over it"
            );
        }
    }

    /// Returns the length of the silence, if answers should have come meanwhile.
    pub fn span(&self, now: Instant) -> Option<Duration> {
        let (first, last) = self.asked?;
        let insists = last.saturating_since(first) >= INSISTENCE;
        Some(now.saturating_since(first)).filter(|span| insists && *span >= PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heard::Heard;

    /// Runs looks a second apart, each with the octets received, sent, and sent by destinations. Returns the silence
    /// after each.
    fn spans(looks: &[[u64; 3]]) -> Vec<Option<u64>> {
        let mut unheard = Unheard::default();
        let look = |(second, [down_bytes, up_bytes, lent_bytes]): (u64, &[u64; 3])| {
            let now = Instant::from_secs(second);
            let counters = Counters { down_bytes: *down_bytes, up_bytes: *up_bytes };
            unheard.look("wwan0", Some(counters), *lent_bytes, now);
            unheard.span(now).map(|span| span.as_nanos() / 1_000_000_000)
        };
        (0..).zip(looks).map(look).collect()
    }

    #[test]
    fn a_link_from_which_nothing_comes_is_noticed_and_heard_again() {
        let heard = Heard::default();
        let _listening = heard.listen();
        // Sent at 1, 2 and 4 s; something arrives at 9 s.
        let looks = [
            [7, 0, 0],
            [7, 1, 1],
            [7, 2, 2],
            [7, 2, 2],
            [7, 4, 3],
            [7, 4, 3],
            [7, 4, 3],
            [7, 4, 3],
            [7, 4, 3],
            [8, 4, 3],
        ];
        let none = None;
        assert_eq!(spans(&looks), [none, none, none, none, none, none, Some(5), Some(6), Some(7), none]);
        let said = heard.take();
        assert_eq!(said.matches("nothing has come back over wwan0 for 5 s").count(), 1, "{said}");
        assert!(said.contains("packets come back over wwan0 again, after 8 s"), "{said}");
    }

    #[test]
    fn what_is_said_with_acks_and_resets_wants_no_answer() {
        let packet = |flags: Flags, payload_len: usize| {
            let mut segment = Segment::new(([10, 99, 98, 8], 40_000).into(), ([203, 0, 113, 5], 443).into());
            segment.flags = flags;
            segment.payload = bytes::Bytes::from(vec![1; payload_len]).into();
            let mut octets = Vec::new();
            segment.emit(&mut octets);
            octets
        };
        for (flags, payload_len, wants) in [
            (Flags::ACK, 0, false),
            (Flags::RST, 0, false),
            (Flags::RST | Flags::ACK, 0, false),
            (Flags::ACK, 1, true),
            (Flags::SYN, 0, true),
            (Flags::FIN | Flags::ACK, 0, true),
        ] {
            assert_eq!(wants_answer(&packet(flags, payload_len)), wants, "{flags:?} {payload_len}");
        }
        let mut datagram = packet(Flags::ACK, 0);
        datagram[9] = 17;
        assert!(wants_answer(&datagram) && wants_answer(&[]), "UDP may ask, and what nobody understands");
    }

    #[test]
    fn what_needs_no_answer_or_gets_one_is_no_silence() {
        let seconds = 0..60_u64;
        let answered: Vec<_> = seconds.clone().map(|second| [second, second, second]).collect();
        let owners: Vec<_> = seconds.clone().map(|second| [7, second, 0]).collect();
        let last_ack: Vec<_> = seconds.clone().map(|second| [7, second.min(1), second.min(1)]).collect();
        let kept_back: Vec<_> = seconds.map(|second| [7, 0, second]).collect();
        for looks in [answered, owners, last_ack, kept_back] {
            assert!(spans(&looks).iter().all(Option::is_none), "{looks:?}");
        }
    }
}
