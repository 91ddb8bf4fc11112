//! The path MTU of a TCB: the largest packet size, and its discovery (RFC 1191, 8201, 4821, 8899).
//!
//! It starts with what the interface and the peer accept. It falls for two reasons: a router reports it (ICMP), or
//! packets of the size are lost again and again where smaller ones pass (a black hole). Probes raise it again.
//!
//! ```text
//!            ICMP: the size it names          no better known, or RAISE_INTERVAL over
//!   ┌───────────────────────────────┐      ┌────────────────────────────────────────┐
//!   │                               ▼      │                                        ▼
//! most ──── black hole: BASE ────▶ current ── probe delivered: its size ──▶ current ... most
//!                                   └──────── probe lost PROBES_MAX times: ceiling falls
//! ```
//!
//! Sizes are those of IP packets. The loss of a probe is no sign of congestion (RFC 4821 section 7.5).

use units::narrow::{u16_from, u32_from};
use units::{Duration, Instant, SeqNr};
use wire::{Options, TooBig};

/// BASE_PLPMTU (RFC 8899 section 5.1.2): nearly every path carries it, and every IPv6 path.
const BASE: u16 = 1280;
/// MIN_PLPMTU for IPv4: Linux's `min_pmtu`. Smaller ones are rare, and forged ones would do more harm.
const LEAST_V4: u16 = 552;
/// RFC 791: every IPv4 path carries this. Errors that name less are ignored.
const CREDIBLE_V4: u32 = 68;
/// RFC 1191 section 7.1: sizes of links, for routers that do not state theirs.
const PLATEAUS: [u16; 8] = [32000, 17914, 8166, 4352, 2002, 1492, 1006, 576];
/// MAX_PROBES (RFC 8899 section 5.1.2): lost probes of one size before it counts as too large.
const PROBES_MAX: u32 = 3;
/// Precision at which the search ends.
const SEARCH_STEP: u16 = 8;
/// PMTU_RAISE_TIMER (RFC 8899 section 5.1.1); RFC 1191 section 6.3 and RFC 8201 section 4 also say ten minutes.
const RAISE_INTERVAL: Duration = Duration::from_secs(600);
/// Time-outs in a row before a smaller packet is tried: if no packet of this size ever arrived, and if one did.
const TRIAL_AFTER_TIMEOUTS: [u32; 2] = [2, 3];
/// Further time-outs before an even smaller packet is tried.
const SECOND_TRIAL_AFTER_TIMEOUTS: u32 = 2;

/// A probe in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// Sequence number of its first octet.
    pub(super) seq: SeqNr,
    /// Octets of its payload.
    pub(super) payload_bytes: u32,
    size: u16,
}

/// A suspicion that packets of a size do not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt {
    /// The size to fall back to if they do not.
    step: u16,
    /// Octets of payload in the packet that timed out.
    payload_bytes: u16,
}

/// The suspicions of a trial.
#[derive(Clone, Copy, Debug)]
struct Doubts {
    last: Doubt,
    /// The suspicion of the larger trial that this one replaced, and with it a still larger packet.
    first: Option<Doubt>,
}

impl Doubts {
    /// Returns the suspicions that remain after a packet with at most `payload_max` octets of payload has passed.
    fn after(self, payload_max: u32) -> Option<Self> {
        let Self { last, first } = self;
        let excused = |doubt: Doubt| payload_max >= doubt.payload_bytes.into();
        if !excused(last) {
            return Some(self);
        }
        first.filter(|first| !excused(*first)).map(|first| Self { last: first, first: None })
    }
}

/// Knowledge about the path of one TCB.
#[derive(Debug)]
pub(super) struct PathMtu {
    is_v6: bool,
    /// MAX_PLPMTU: what the interface and the peer accept.
    most: u16,
    /// PLPMTU: limit on packets that are not probes.
    current: u16,
    /// Packets of this size are believed not to pass.
    ceiling: u16,
    /// Whether to probe the size just below the ceiling first, because it is likely.
    ceiling_first: bool,
    /// When the search resumes.
    raise_at: Option<Instant>,
    probe: Option<Probe>,
    probes_lost: u32,
    /// Whether a packet larger than the next step down has arrived.
    large_passed: bool,
    /// The trial that replaces a timed-out packet, until it arrives: its end, and the suspicions.
    trial: Option<(SeqNr, Doubts)>,
    /// The suspicions of a trial that arrived, until packets like the timed-out ones arrive.
    trial_passed: Option<Doubts>,
}

impl PathMtu {
    /// Starts with packets of at most `most` octets, which are assumed to pass.
    pub(super) fn new(most: u16, is_v6: bool) -> Self {
        Self {
            is_v6,
            most,
            current: most,
            ceiling: most.saturating_add(1),
            ceiling_first: false,
            raise_at: None,
            probe: None,
            probes_lost: 0,
            large_passed: false,
            trial: None,
            trial_passed: None,
        }
    }

    /// Returns the octets of the largest packet.
    pub(super) fn current(&self) -> u16 {
        self.current
    }

    /// Handles a router's report that a packet was too big; the caller has checked its plausibility. Returns whether
    /// packets must be smaller from now on.
    pub(super) fn on_too_big(&mut self, too_big: &TooBig, now: Instant) -> bool {
        let Some(mtu) = self.credible(too_big) else { return false };
        if mtu >= self.current {
            // The answer to a probe: the size that fits is known now.
            if mtu + 1 < self.ceiling {
                (self.ceiling, self.ceiling_first, self.probes_lost) = (mtu + 1, true, 0);
            }
            return false;
        }
        (self.current, self.ceiling, self.ceiling_first) = (mtu, mtu + 1, false);
        self.probe = None;
        self.raise_at = Some(now + RAISE_INTERVAL);
        self.forget_trial();
        true
    }

    /// Returns the MTU that an error names, raised to the smallest accepted size; `None` if it is implausible.
    fn credible(&self, too_big: &TooBig) -> Option<u16> {
        let named = match too_big.next_hop_mtu {
            0 if !self.is_v6 => {
                // Not the current size: errors about earlier packets of one size would each cause a step.
                let sent = too_big.packet_bytes.min(self.most.into());
                let plateau = PLATEAUS.into_iter().map(u32::from).find(|plateau| *plateau < sent)?;
                // One about a probe says nothing against what passes.
                if sent > self.current.into() { plateau.max(self.current.into()) } else { plateau }
            }
            named => named,
        };
        // RFC 8201 section 4: discard sizes below what every IPv6 path carries.
        let least_credible = if self.is_v6 { u32::from(BASE) } else { CREDIBLE_V4 };
        let is_credible = named >= least_credible && named < too_big.packet_bytes && named < u32::from(self.most);
        is_credible.then(|| u16_from(named.into()).max(if self.is_v6 { BASE } else { LEAST_V4 }))
    }

    /// Returns the size above which packets count as large: the next step down in a black hole. A size no larger than
    /// the base that was configured, or set by the peer, is not doubted.
    pub(super) fn step_down(&self) -> Option<u16> {
        self.black_hole().or(if self.current > BASE { Some(BASE) } else { self.least_step() })
    }

    /// Returns the last step down.
    fn least_step(&self) -> Option<u16> {
        (self.current > LEAST_V4 && self.most > BASE && !self.is_v6).then_some(LEAST_V4)
    }

    /// Returns the size to fall to after a large packet timed out: if a smaller one has arrived in its place, and none
    /// of its size has since.
    pub(super) fn black_hole(&self) -> Option<u16> {
        self.trial_passed.map(|doubts| doubts.last.step)
    }

    /// Returns the step down to try after `timeouts` time-outs of a packet in a row.
    pub(super) fn trial_step(&self, timeouts: u32) -> Option<u16> {
        let patience = TRIAL_AFTER_TIMEOUTS[usize::from(self.large_passed)];
        match timeouts.checked_sub(patience)? {
            SECOND_TRIAL_AFTER_TIMEOUTS.. => self.least_step().or(self.step_down()),
            _ => self.step_down(),
        }
    }

    /// Records a trial: a packet that fits `step` and ends at `end` replaces one with `payload_bytes` that timed out.
    /// That one may be an earlier trial: an outage may have lost it, so the packet that it replaced stays suspect.
    pub(super) fn begin_trial(&mut self, end: SeqNr, step: u16, payload_bytes: u32) {
        let last = Doubt { step, payload_bytes: u16_from(payload_bytes.into()) };
        let replaced = self.trial.map(|(_, doubts)| doubts.first.unwrap_or(doubts.last));
        let first = replaced.filter(|replaced| replaced.step > step && replaced.payload_bytes > last.payload_bytes);
        self.trial = Some((end, Doubts { last, first }));
    }

    /// Takes note that everything before `una` has arrived.
    pub(super) fn on_advance(&mut self, una: SeqNr) {
        if let Some((_, doubts)) = self.trial.take_if(|(end, _)| una.at_or_after(*end)) {
            self.trial_passed = Some(doubts);
        }
    }

    /// Takes note that a packet larger than the next step down arrived, with `payload_bytes` of payload. The rest that
    /// a trial leaves of a packet may also be that large, but says nothing about the whole.
    pub(super) fn on_large_passed(&mut self, payload_bytes: u32) {
        // Packets of one size differ in payload by their options.
        let payload_max = payload_bytes + u32_from(Options::MAX_BYTES as u64);
        self.trial_passed = self.trial_passed.and_then(|doubts| doubts.after(payload_max));
        // What remains suspect is larger than what has arrived.
        self.large_passed |= self.trial_passed.is_none();
    }

    /// Falls one step because packets of the current size vanish. The search then starts with the size that failed,
    /// because an outage looks the same.
    pub(super) fn fall_back(&mut self, step: u16) {
        (self.ceiling, self.ceiling_first) = (self.current.saturating_add(1), true);
        self.current = step;
        (self.raise_at, self.probe, self.probes_lost) = (None, None, 0);
        self.forget_trial();
    }

    fn forget_trial(&mut self) {
        (self.trial, self.trial_passed, self.large_passed) = (None, None, false);
    }

    /// Whether larger packets may pass, and no probe is in flight to find out.
    #[inline]
    pub(super) fn is_searching(&self) -> bool {
        self.current < self.most && self.probe.is_none()
    }

    /// Returns the size to probe next, if it is time.
    pub(super) fn next_probe(&mut self, now: Instant) -> Option<u16> {
        if !self.is_searching() {
            return None;
        }
        if let Some(at) = self.raise_at {
            if now < at {
                return None;
            }
            (self.raise_at, self.ceiling, self.ceiling_first) = (None, self.most.saturating_add(1), true);
        }
        debug_assert!(self.current < self.ceiling && self.ceiling <= self.most.saturating_add(1), "{self:?}");
        let exactness = if self.ceiling_first { 1 } else { SEARCH_STEP };
        if self.ceiling - self.current <= exactness {
            self.raise_at = Some(now + RAISE_INTERVAL);
            return None;
        }
        let middle = self.current + (self.ceiling - self.current) / 2;
        Some(if self.ceiling_first { self.ceiling - 1 } else { middle })
    }

    /// Records a departed probe of `size`.
    pub(super) fn begin_probe(&mut self, seq: SeqNr, payload_bytes: u32, size: u16) {
        self.probe = Some(Probe { seq, payload_bytes, size });
    }

    pub(super) fn probe(&self) -> Option<Probe> {
        self.probe
    }

    /// Handles the arrival of the probe: packets of its size pass. Returns whether packets may be larger from now on.
    pub(super) fn on_probe_delivered(&mut self) -> bool {
        let Some(probe) = self.probe.take().filter(|probe| probe.size > self.current) else { return false };
        self.current = probe.size;
        // A router may have named less while the probe was under way.
        self.ceiling = self.ceiling.max(probe.size.saturating_add(1));
        (self.probes_lost, self.ceiling_first) = (0, false);
        self.forget_trial();
        true
    }

    /// Handles the loss of the probe, which says something about its size only if nothing else was lost (`alone`; RFC
    /// 4821 section 7.6.2).
    pub(super) fn on_probe_lost(&mut self, alone: bool) {
        let Some(probe) = self.probe.take().filter(|_| alone) else { return };
        self.probes_lost += 1;
        if self.probes_lost >= PROBES_MAX {
            self.ceiling = self.ceiling.min(probe.size).max(self.current + 1);
            (self.probes_lost, self.ceiling_first) = (0, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(packet_bytes: u32, next_hop_mtu: u32) -> TooBig {
        let [src, dst] = ["10.0.0.1:1", "10.0.0.2:2"].map(|address| address.parse().unwrap());
        TooBig { src, dst, seq: SeqNr(0), packet_bytes, next_hop_mtu }
    }

    /// Probes until the search ends on a path that carries `path` octets. Returns the number of probes sent.
    fn search(mtu: &mut PathMtu, path: u16, now: Instant) -> u32 {
        let mut probes = 0;
        while let Some(size) = mtu.next_probe(now) {
            mtu.begin_probe(SeqNr(1), 1, size);
            probes += 1;
            if size > path {
                mtu.on_probe_lost(true);
            } else {
                assert!(mtu.on_probe_delivered());
            }
        }
        probes
    }

    #[test]
    fn a_router_is_believed_within_reason() {
        for (is_v6, packet_bytes, named, expected) in [
            (false, 1500, 1400, Some(1400)),
            (false, 1500, 300, Some(552)),
            (false, 1500, 67, None),
            (false, 1400, 1400, None),
            (false, 1500, 1500, None),
            (false, 1500, 0, Some(1492)),
            (false, 1400, 0, Some(1006)),
            (false, 60_000, 0, Some(1492)),
            (true, 1500, 1400, Some(1400)),
            (true, 1500, 1279, None),
            (true, 1500, 0, None),
            (true, 1500, 70_000, None),
        ] {
            let mut mtu = PathMtu::new(1500, is_v6);
            let lowered = mtu.on_too_big(&error(packet_bytes, named), Instant::ZERO);
            assert_eq!(
                (lowered, mtu.current()),
                (expected.is_some(), expected.unwrap_or(1500)),
                "{packet_bytes} {named}"
            );
            assert_eq!(mtu.next_probe(Instant::from_secs(599)), None, "ten minutes first");
        }
    }

    #[test]
    fn an_error_about_a_probe_lowers_nothing_that_passes() {
        let mut mtu = PathMtu::new(1500, false);
        mtu.fall_back(BASE);
        mtu.begin_probe(SeqNr(1), 1460, 1500);
        assert!(!mtu.on_too_big(&error(1500, 0), Instant::ZERO));
        assert_eq!(mtu.current(), BASE);
        mtu.on_probe_lost(true);
        assert_eq!(mtu.next_probe(Instant::ZERO), Some(1492), "what the error means");
    }

    #[test]
    fn the_search_ends_just_below_what_passes() {
        for path in [1280, 1281, 1400, 1492, 1499, 1500] {
            let mut mtu = PathMtu::new(1500, true);
            mtu.fall_back(mtu.step_down().unwrap());
            let probes = search(&mut mtu, path, Instant::ZERO);
            assert!(mtu.current() <= path && path - mtu.current() < SEARCH_STEP, "{path}: {}", mtu.current());
            assert!(probes <= 18, "{path}: {probes} probes");
        }
    }

    #[test]
    fn a_path_that_grows_is_found_after_ten_minutes() {
        let mut mtu = PathMtu::new(1500, false);
        assert!(mtu.on_too_big(&error(1500, 1400), Instant::ZERO));
        assert_eq!(search(&mut mtu, 1500, Instant::from_secs(599)), 0);
        assert_eq!(search(&mut mtu, 1500, Instant::from_secs(600)), 1);
        assert_eq!(mtu.current(), 1500);
    }

    #[test]
    fn a_router_that_answers_a_probe_ends_the_search() {
        let mut mtu = PathMtu::new(1500, false);
        mtu.fall_back(BASE);
        let size = mtu.next_probe(Instant::ZERO).unwrap();
        assert_eq!(size, 1500);
        mtu.begin_probe(SeqNr(1), 1, size);
        assert!(!mtu.on_too_big(&error(1500, 1400), Instant::ZERO));
        mtu.on_probe_lost(true);
        assert_eq!(mtu.next_probe(Instant::ZERO), Some(1400));
        mtu.begin_probe(SeqNr(1), 1, 1400);
        assert!(mtu.on_probe_delivered());
        assert_eq!((mtu.next_probe(Instant::ZERO), mtu.current()), (None, 1400));
    }

    /// A router reports a size while a probe of more than that is under way, and the probe arrives: another path.
    #[test]
    fn a_probe_may_arrive_in_spite_of_what_a_router_says() {
        for named in [1350, 1399] {
            let mut mtu = PathMtu::new(1500, false);
            mtu.fall_back(BASE);
            mtu.begin_probe(SeqNr(1), 1, 1500);
            assert!(!mtu.on_too_big(&error(1500, 1400), Instant::ZERO));
            mtu.on_probe_lost(true);
            mtu.begin_probe(SeqNr(1), 1, 1400);
            assert!(!mtu.on_too_big(&error(1400, named), Instant::ZERO));
            assert!(mtu.on_probe_delivered());
            assert_eq!((mtu.current(), mtu.next_probe(Instant::ZERO)), (1400, None));
            assert_eq!(mtu.next_probe(Instant::from_secs(600)), Some(1500), "ten minutes later it begins anew");
        }
    }

    proptest::proptest! {
        /// Whatever routers say and whatever becomes of probes, what is probed lies between what passes and what the
        /// interface accepts.
        #[test]
        fn every_probe_is_within_bounds(
            most in 600..=u16::MAX,
            is_v6: bool,
            steps in proptest::collection::vec((0..6_u8, 0..=u16::MAX, 0..700_u64), 1..60),
        ) {
            let most = if is_v6 { most.max(BASE) } else { most };
            let (mut mtu, mut now) = (PathMtu::new(most, is_v6), Instant::ZERO);
            for (step, named, wait_s) in steps {
                now += Duration::from_secs(wait_s);
                match step {
                    0 => _ = mtu.on_too_big(&error(u32::from(mtu.current()), u32::from(named)), now),
                    1 => _ = mtu.on_too_big(&error(u32::from(most), u32::from(named % most)), now),
                    2 => _ = mtu.on_probe_delivered(),
                    3 => mtu.on_probe_lost(named % 2 == 0),
                    4 => {
                        if let Some(step) = mtu.step_down() {
                            mtu.fall_back(step);
                        }
                    }
                    _ => {}
                }
                if let Some(size) = mtu.next_probe(now) {
                    proptest::prop_assert!(size > mtu.current() && size <= most, "{size} for {mtu:?}");
                    mtu.begin_probe(SeqNr(1), 1, size);
                }
            }
        }
    }

    #[test]
    fn only_what_began_above_the_base_falls() {
        assert_eq!(PathMtu::new(1280, false).step_down(), None);
        assert_eq!(PathMtu::new(1040, false).step_down(), None);
        let mut mtu = PathMtu::new(1500, false);
        mtu.fall_back(mtu.step_down().unwrap());
        assert_eq!((mtu.current(), mtu.step_down()), (1280, Some(552)));
        mtu.fall_back(552);
        assert_eq!(mtu.step_down(), None);
        assert_eq!(PathMtu { current: 1280, ..PathMtu::new(1500, true) }.step_down(), None);
    }

    /// An outage loses the first trial. Both halves of what replaces it arrive: packets of its size pass, but this says
    /// nothing about the larger packet that it replaced.
    #[test]
    fn a_lost_trial_does_not_excuse_what_it_replaced() {
        let mut mtu = PathMtu::new(1500, false);
        assert_eq!(mtu.trial_step(2), Some(BASE));
        mtu.begin_trial(SeqNr(730), BASE, 1460);
        assert_eq!(mtu.trial_step(4), Some(LEAST_V4));
        mtu.begin_trial(SeqNr(365), LEAST_V4, 730);
        mtu.on_advance(SeqNr(1460));
        assert_eq!(mtu.black_hole(), Some(LEAST_V4));
        mtu.on_large_passed(730);
        assert_eq!((mtu.black_hole(), mtu.step_down()), (Some(BASE), Some(BASE)));
        mtu.on_large_passed(1460);
        assert_eq!(mtu.black_hole(), None);
        assert_eq!(mtu.trial_step(2), None, "a large packet has arrived: more patience");
    }

    /// A packet of 1228 octets is tried as one of 500; the remaining 728 are more than the next step down.
    #[test]
    fn what_a_trial_leaves_over_does_not_excuse_the_whole() {
        let mut mtu = PathMtu::new(1500, false);
        mtu.fall_back(BASE);
        mtu.begin_trial(SeqNr(500), LEAST_V4, 1228);
        mtu.on_advance(SeqNr(500));
        mtu.on_large_passed(728);
        assert_eq!(mtu.black_hole(), Some(LEAST_V4));
        mtu.on_large_passed(1216);
        assert_eq!(mtu.black_hole(), None, "as large, with more options");
    }
}
