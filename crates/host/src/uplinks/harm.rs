//! Finds subflows of a download that cost more than they bring, and subflows that have died silently. Pure: it takes
//! what subflows have brought, and says which one to do without.
//!
//! A peer's scheduler decides what the peer sends on which subflow, and the kernel's fills a slow one like a fast one.
//! What arrives on the fast one then waits for what is missing from the slow one, until the peer may send no more on
//! either. Only this side can tell which subflow is to blame: the one from which nothing waits.
//!
//! ```text
//! lag      waiting octets / highest recent rate: how far the stream is behind the arrivals
//! rate     over 300 ms, because octets that were held up arrive all at once
//! late     lag > 100 ms at two looks in a row, because of a subflow whose uplink brings less than an eighth, recently
//!          and usually; or less than half of what the others recently lost, if their loss since the stream began to wait
//!          for it exceeds what waits. When a hole is filled, this loss falls in proportion to the waiting octets
//! slow     late, but steadily so: it has brought equally much at each look for two round trips. It becomes a backup,
//!          and what the peer has given to it arrives soon, so nothing is sent twice. If that takes so long that the
//!          others lose more than what waits, it is late after all. One that brings less than a sixteenth is slow
//!          already at lag > 50 ms, at the first look. All this holds once for each uplink: when the subflow carries
//!          again, the peer gives it more at once, and withdrawing it is cheaper
//! lost     what idle subflows usually bring. A subflow is idle if it answered a probe and brought nothing since. A
//!          radio that fades still brings something, and one that pauses does not answer. While the stream is late, the
//!          other subflows are probed
//! fair     octets count from when a subflow was last new or made regular. No subflow is late until that one has had
//!          2 RTT + 100 ms, and until what waited then has moved on, for a second at most: a withdrawn subflow leaves
//!          a hole that is not the next one's fault
//! silent   nothing heard on a subflow that did bring something, for twice its longest pause of the last second or two,
//!          within [30, 60] ms; no answer to a probe for 1.5 RTT + 10 ms, during which other connections hear nothing
//!          on its uplink either; and another subflow was heard since, or could not have answered yet. If the uplink
//!          has paused before: nothing for twice as long as that ([`Pauses`])
//! RTT      including the time that the subflow's packets wait in queues, according to the timestamps that the peer
//!          echoes (`round_trips.rs`); 1.5 RTT counts as at most 4 s
//! costly   a silent subflow of an uplink that is known to pause, if it has brought less than what waits, which the
//!          peer sends again when the subflow is withdrawn: it counts as late
//! ```

use std::net::{IpAddr, SocketAddr};

use smallvec::SmallVec;
use transport::{ConnectionId, ConnectionStats, Echo, Endpoint, SubflowId};
use units::{Duration, Instant};

use super::Pauses;
use super::bulk::HEAVY_BYTES;
use round_trips::RoundTrips;

mod round_trips;

/// Assumed round-trip time if none is known; most paths do not exceed it.
pub const RTT_UNKNOWN: Duration = Duration::from_millis(200);
/// Interval of looks. It is no multiple of the pauses of a stream with 50 or 60 pieces per second: otherwise only the
/// shortest part of each pause would be seen.
pub const PERIOD: Duration = Duration::from_millis(19);
/// The same while an answer is awaited.
const DOUBT_PERIOD: Duration = Duration::from_millis(5);
/// A look that is this late judges nobody: what has arrived meanwhile may still wait to be read.
const UNPUNCTUAL: Duration = Duration::from_millis(10);
/// Interval of looks for lateness.
const LATE_PERIOD: Duration = Duration::from_millis(95);
/// Lag from which a stream is late.
pub const LAG_MIN: Duration = Duration::from_millis(100);
/// Minimum of waiting octets: below it, a rate says nothing.
const HELD_MIN_BYTES: u64 = 32 << 10;
/// A subflow that brings less than one of this many parts of all octets is not worth any waiting.
pub(super) const WORTHLESS_PARTS: u64 = 8;
/// One that steadily brings less than one of this many parts is to blame at the first look, and from this lag on.
const NEGLIGIBLE_PARTS: u64 = 2 * WORTHLESS_PARTS;
const NEGLIGIBLE_LAG_MIN: Duration = Duration::from_millis(50);
/// What a subflow still brings after it was made a backup. Linux hands over 64 KiB at a time: one portion in the first
/// octets of a connection, two once its send buffer is large.
const LEFT_BYTES: [u64; 2] = [48 << 10, 112 << 10];
const FIRST_BYTES: u64 = 4 << 20;
/// What a peer has sent ahead on the other subflows while the stream waits, and sends again when a subflow is
/// withdrawn: Linux stops at 1.2 to 1.7 MB.
const AHEAD_BYTES: u64 = 1_200_000;
/// Looks over which a subflow's usual rate is averaged: a radio link may be slow for some seconds.
const USUAL_LOOKS: u64 = 40;
/// Consecutive looks at which a subflow must be to blame.
const STRIKES: u32 = 2;
/// Looks over which rates are measured.
const RATE_LOOKS: usize = 3;
/// A subflow that was silent for this long and two round trips is not late but dead; when it returns, its uplink need
/// not be held back.
const LATE_UNHEARD: Duration = Duration::from_millis(250);
/// Maximum time, after the set of carrying subflows has changed, in which no subflow is blamed because older octets
/// still wait.
const SETTLING_MAX: Duration = Duration::from_secs(1);
/// Limits of the silence after which a subflow is probed: twice its usual pause, within these. Each false alarm doubles
/// this part of the patience before a dismissal, at most as often as the third constant says.
const SILENCE_MIN: Duration = Duration::from_millis(30);
const SILENCE_MAX: Duration = Duration::from_millis(60);
const SILENCE_DOUBLINGS_MAX: u32 = 5;
/// A subflow's usual pause is the longest of this span and the one before.
const RHYTHM_SPAN: Duration = Duration::from_secs(1);
/// A subflow that returns this soon after its dismissal was not dead: the first attempt of its join was answered.
const FALSE_ALARM: Duration = Duration::from_secs(1);
/// Minimum time between two probes, and between two probes if the first was not answered.
const PROBES_APART: Duration = Duration::from_millis(100);
const UNANSWERED_APART: Duration = Duration::from_millis(600);
/// Tolerance for an answer beyond 1.5 RTT, and the maximum of 1.5 RTT.
const SLACK: Duration = Duration::from_millis(10);
const ANSWER_MAX: Duration = Duration::from_secs(4);
/// A subflow that recently brought less than this is not missed.
const MISSED_MIN_BYTES: u64 = 16 << 10;

/// The present state of a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Carrier {
    /// The subflow's identifier.
    pub id: SubflowId,
    /// Our address and port.
    pub local: SocketAddr,
    /// Octets that it has ever brought.
    pub received_bytes: u64,
    /// Those of them that wait for other subflows.
    pub held_bytes: u64,
    /// When the peer was last heard on it.
    pub heard_at: Instant,
    /// When anything was last heard on its uplink, by any connection, as far as known.
    pub uplink_heard_at: Instant,
    /// Round-trip time measured by this side's segments.
    pub rtt: Duration,
    /// The peer's last echo.
    pub echo: Option<Echo>,
    /// Whether it carries data only if no other can.
    pub backup: bool,
}

impl Carrier {
    /// Returns the established subflows of a connection with these statistics. A subflow whose handshake took several
    /// attempts has no round-trip time; then `rtt` gives that of the uplink. `heard` returns when an uplink was last
    /// heard.
    pub fn all(
        connection: ConnectionId,
        stats: &ConnectionStats,
        endpoint: &Endpoint,
        rtt: impl Fn(IpAddr) -> Option<Duration>,
        heard: impl Fn(IpAddr) -> Option<Instant>,
    ) -> SmallVec<[Self; 4]> {
        let established = stats.subflows.iter().filter(|it| it.established_at.is_some() && it.closed_at.is_none());
        let carriers = established.filter_map(|subflow| {
            let (hearing, local) = (endpoint.hearing(connection, subflow.id)?, subflow.local);
            let ip = local.ip();
            Some(Self {
                id: subflow.id,
                local,
                received_bytes: subflow.received_bytes,
                held_bytes: hearing.held_bytes,
                heard_at: hearing.heard_at,
                uplink_heard_at: heard(ip).map_or(hearing.heard_at, |at| at.max(hearing.heard_at)),
                rtt: subflow.srtt.or_else(|| rtt(ip)).unwrap_or(RTT_UNKNOWN),
                echo: hearing.echo,
                backup: subflow.backup,
            })
        });
        carriers.collect()
    }

    /// Returns the address of its uplink.
    pub fn ip(&self) -> IpAddr {
        self.local.ip()
    }
}

/// Returns whether a connection has brought enough to be judged. Octets that wait for others count, because they may
/// wait for long.
pub fn is_worth_a_look(stats: &ConnectionStats) -> bool {
    let arrived_bytes: u64 = stats.subflows.iter().map(|subflow| subflow.received_bytes).sum();
    arrived_bytes >= HEAVY_BYTES
}

/// A conclusion about a subflow, for the caller to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Probe it for a sign of life.
    Doubtful(SubflowId),
    /// It is dead, or as good as dead.
    Silent(SubflowId),
    /// The connection is faster without it.
    Late(SubflowId),
    /// The connection is faster if it is a backup; what it has been given is worth waiting for.
    Slow(SubflowId),
}

impl Finding {
    /// Returns the subflow.
    pub const fn subflow(self) -> SubflowId {
        match self {
            Self::Doubtful(id) | Self::Silent(id) | Self::Late(id) | Self::Slow(id) => id,
        }
    }
}

/// The conclusions of a look.
pub type Findings = SmallVec<[Finding; 2]>;

#[derive(Clone, Copy, Debug)]
struct Seen {
    id: SubflowId,
    received_bytes: u64,
    /// Octets brought recently; they count half after about a second.
    recent_bytes: u64,
    /// The same since the set of carrying subflows changed.
    fair_bytes: u64,
    /// Octets brought in `usual_looks` looks, at most [`USUAL_LOOKS`]. Looks at which it was idle do not count.
    usual_bytes: u64,
    usual_looks: u64,
    /// Octets brought at the latest looks for lateness.
    latest_bytes: [u64; RATE_LOOKS],
    /// Whether it was found slow, and has not carried as a regular subflow since.
    is_slow: bool,
    /// Whether it may carry data.
    regular: bool,
    /// When octets were last seen to arrive, and their total then.
    brought_at: (Instant, u64),
    /// Time up to which its idleness was counted.
    idle_until: Instant,
    probed_at: Option<Instant>,
    /// Present from a probe until the subflow is heard again.
    silence: Option<Silence>,
    round_trips: RoundTrips,
    /// The longest pauses of this span and of the one before.
    pauses: [Duration; 2],
    pauses_since: Instant,
    strikes: u32,
}

/// A probe without a sign of life so far.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// When the subflow was last heard before.
    heard_at: Instant,
    /// When it was probed, and when anything was last heard on its uplink.
    asked_at: Instant,
    uplink_heard_at: Instant,
    /// Whether all looks since then were in time: otherwise its length shows no pause of the uplink.
    is_certain: bool,
}

impl Seen {
    fn new(carrier: &Carrier, now: Instant) -> Self {
        Self {
            id: carrier.id,
            received_bytes: carrier.received_bytes,
            recent_bytes: 0,
            fair_bytes: 0,
            usual_bytes: 0,
            usual_looks: 0,
            latest_bytes: [0; RATE_LOOKS],
            is_slow: false,
            regular: false,
            brought_at: (now, carrier.received_bytes),
            idle_until: now,
            probed_at: None,
            silence: None,
            round_trips: RoundTrips::new(carrier.heard_at, now),
            pauses: [SILENCE_MAX / 2; 2],
            pauses_since: now,
            strikes: 0,
        }
    }

    /// Returns how long it may be silent before it is probed.
    fn patience(&self) -> Duration {
        self.pauses[0].max(self.pauses[1]).saturating_mul(2).clamp(SILENCE_MIN, SILENCE_MAX)
    }

    /// Returns how long its answer to a probe may take: the answer waits behind the subflow's data.
    fn answer_in(&self, rtt: Duration) -> Duration {
        let round_trip = rtt.max(self.round_trips.longest());
        (round_trip + round_trip / 2).min(ANSWER_MAX) + SLACK
    }

    /// Returns whether the last probe is long enough ago. An unanswered probe needs more time.
    fn may_be_asked(&self, heard_at: Instant, now: Instant) -> bool {
        self.probed_at.is_none_or(|at| {
            let apart = if heard_at > at { PROBES_APART } else { UNANSWERED_APART };
            now.saturating_since(at) >= apart
        })
    }

    /// Returns whether it has answered a probe and has brought nothing since the probe.
    fn is_idle(&self, heard_at: Instant) -> bool {
        self.probed_at.is_some_and(|at| heard_at > at && self.brought_at.0 <= at)
    }

    fn note_usual(&mut self, added_bytes: u64) {
        if self.usual_looks == USUAL_LOOKS {
            self.usual_bytes -= self.usual_bytes / USUAL_LOOKS;
        } else {
            self.usual_looks += 1;
        }
        self.usual_bytes += added_bytes;
    }

    /// Returns whether it has lately brought equally much at each look, for at least two round trips: a subflow that
    /// can bring more doubles in each of them (RFC 5681 section 3.1).
    fn is_steady(&self, rtt: Duration) -> bool {
        let least = self.latest_bytes.iter().min().copied().unwrap_or(0);
        let most = self.latest_bytes.iter().max().copied().unwrap_or(0);
        least > 0 && most * 2 <= least * 3 && rtt.saturating_mul(2) <= LATE_PERIOD.saturating_mul(RATE_LOOKS as u64)
    }

    /// Returns what it usually brings between two looks for lateness.
    fn usual(&self) -> u64 {
        self.usual_bytes / self.usual_looks.max(1)
    }

    /// Notes that it has been silent for `pause`.
    fn note_pause(&mut self, pause: Duration, now: Instant) {
        if now.saturating_since(self.pauses_since) >= RHYTHM_SPAN {
            (self.pauses, self.pauses_since) = ([Duration::ZERO, self.pauses[0]], now);
        }
        self.pauses[0] = self.pauses[0].max(pause.min(self.patience()));
    }
}

/// The subflow for which the stream waits.
#[derive(Clone, Copy, Debug)]
struct WaitedFor {
    id: SubflowId,
    /// Octets that others could have brought meanwhile, as far as the octets that waited then still wait.
    lost_bytes: u64,
    /// Waiting octets at the last look.
    held_bytes: u64,
}

impl WaitedFor {
    /// Notes the waiting octets. If they are fewer than before, a hole was filled, and the loss falls in proportion.
    fn note(&mut self, held_bytes: u64, lost_now_bytes: u64) {
        if held_bytes < self.held_bytes {
            let left = u128::from(self.lost_bytes) * u128::from(held_bytes) / u128::from(self.held_bytes);
            self.lost_bytes = u64::try_from(left).unwrap_or(u64::MAX);
        }
        self.lost_bytes += lost_now_bytes;
        self.held_bytes = held_bytes;
    }
}

/// The subflows of one connection.
#[derive(Debug, Default)]
pub struct Harm {
    seen: SmallVec<[Seen; 2]>,
    /// When the next look is due.
    next_at: Option<Instant>,
    /// Whether the last look was late and judged nobody.
    was_late: bool,
    looked_at: Option<Instant>,
    /// Octets of the latest looks, and the time of each.
    brought: [(u64, Duration); RATE_LOOKS],
    /// After a change of the carrying subflows: earliest and latest end of the time without blame.
    unfair_until: Option<[Instant; 2]>,
    /// Highest rate of all subflows together, octets per second; it falls slowly.
    peak_rate_bytes: u64,
    /// Octets that others could have brought while the stream was late; they count half after about a second.
    lost_bytes: u64,
    /// The subflow for which the stream has waited without a break.
    waited_for: Option<WaitedFor>,
    /// Addresses of uplinks whose subflow was found slow.
    slow: SmallVec<[IpAddr; 2]>,
    /// Addresses of subflows that were dismissed as silent, with the time of their dismissal.
    dismissed: SmallVec<[(IpAddr, Instant); 2]>,
    /// Number of dismissed subflows that returned at once.
    false_alarms: u32,
}

impl Harm {
    /// Looks at all established subflows. To be called when [`Self::next_at`] is due, while octets move.
    pub fn look(&mut self, carriers: &[Carrier], pauses: &mut Pauses, now: Instant) -> Findings {
        self.enter(carriers, now);
        let mut findings = Findings::new();
        let late_by = self.next_at.map_or(Duration::ZERO, |at| now.saturating_since(at));
        let is_late = late_by >= UNPUNCTUAL;
        if is_late {
            self.doubt_silences(late_by);
        }
        self.end_silences(carriers, pauses, now);
        self.was_late = is_late && !self.was_late;
        self.next_at = Some(now + if self.was_late { DOUBT_PERIOD } else { PERIOD });
        if carriers.len() >= 2 && !self.was_late {
            self.find_silent(carriers, pauses, &mut findings, now);
        }
        if self.looked_at.is_none_or(|at| now.saturating_since(at) >= LATE_PERIOD) {
            self.find_late(carriers, pauses, &mut findings, now);
        }
        findings
    }

    /// Returns when the next look is due, if there was one.
    pub fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Forgets an uplink that is gone: the next one may get its address.
    pub fn forget(&mut self, local: IpAddr) {
        self.slow.retain(|slow| *slow != local);
        self.dismissed.retain(|(dismissed, _)| *dismissed != local);
    }

    /// Returns when a subflow was probed that has given no sign of life since it was last heard at `heard_at`. When
    /// looks end, the answer stays, and there are no further probes.
    pub fn unanswered_since(&self, id: SubflowId, heard_at: Instant) -> Option<Instant> {
        let silence = self.seen.iter().find(|seen| seen.id == id)?.silence?;
        (heard_at <= silence.heard_at).then_some(silence.asked_at)
    }

    /// Notes new subflows, and subflows that now carry data.
    fn enter(&mut self, carriers: &[Carrier], now: Instant) {
        self.seen.retain(|seen| carriers.iter().any(|carrier| carrier.id == seen.id));
        for carrier in carriers {
            if self.seen.iter().all(|seen| seen.id != carrier.id) {
                self.seen.push(Seen::new(carrier, now));
                self.welcome(carrier.ip(), now);
            }
            let seen = self.seen_mut(carrier.id);
            seen.round_trips.note(carrier.echo, carrier.heard_at, now);
            if carrier.received_bytes > seen.brought_at.1 {
                seen.brought_at = (now, carrier.received_bytes);
            }
            let regular = !carrier.backup;
            if regular && !core::mem::replace(&mut self.seen_mut(carrier.id).regular, regular) {
                self.seen_mut(carrier.id).is_slow = false;
                self.begin_anew(carrier.rtt, now);
            }
        }
    }

    /// While this device did not look, answers to probes may have come that are still to be read. After a long time
    /// they may be lost, so that the subflows are probed again.
    fn doubt_silences(&mut self, late_by: Duration) {
        for seen in &mut self.seen {
            if late_by >= UNANSWERED_APART {
                (seen.silence, seen.probed_at) = (None, None);
            }
            if let Some(silence) = &mut seen.silence {
                silence.is_certain = false;
            }
        }
    }

    /// Ends the silence of subflows that were heard again. One that answers later than expected has paused.
    fn end_silences(&mut self, carriers: &[Carrier], pauses: &mut Pauses, now: Instant) {
        for carrier in carriers {
            let seen = self.seen_mut(carrier.id);
            let answer_in = seen.answer_in(carrier.rtt);
            let Some(silence) = &mut seen.silence else { continue };
            if carrier.heard_at > silence.heard_at {
                let Silence { asked_at, uplink_heard_at, is_certain, .. } = *silence;
                if carrier.heard_at > asked_at.max(uplink_heard_at) + answer_in && is_certain {
                    pauses.note(carrier.ip(), carrier.heard_at.saturating_since(uplink_heard_at), now);
                }
                seen.silence = None;
            } else {
                silence.uplink_heard_at = carrier.uplink_heard_at;
            }
        }
    }

    /// Counts a false alarm if the subflow at this address was dismissed a moment ago.
    fn welcome(&mut self, ip: IpAddr, now: Instant) {
        let Some(place) = self.dismissed.iter().position(|(known, _)| *known == ip) else { return };
        let (_, since) = self.dismissed.swap_remove(place);
        self.false_alarms += u32::from(now.saturating_since(since) < FALSE_ALARM);
    }

    /// Resets the counts when another subflow carries data, with this round-trip time.
    fn begin_anew(&mut self, rtt: Duration, now: Instant) {
        let chance = now + rtt.saturating_mul(2) + LAG_MIN;
        self.unfair_until = Some([chance, chance + SETTLING_MAX]);
        self.lost_bytes = 0;
        self.waited_for = None;
        self.seen.iter_mut().for_each(|seen| (seen.fair_bytes, seen.strikes) = (0, 0));
    }

    /// Returns whether the carrying subflows have changed too recently for blame.
    fn is_unfair(&mut self, is_behind: bool, now: Instant) -> bool {
        let Some([chance, latest]) = &mut self.unfair_until else { return false };
        if !is_behind {
            // Octets that begin to wait from now on are the fault of the present subflows.
            *latest = *chance;
        }
        let is_unfair = now < *latest;
        if !is_unfair {
            self.unfair_until = None;
        }
        is_unfair
    }

    fn find_silent(&mut self, carriers: &[Carrier], pauses: &mut Pauses, findings: &mut Findings, now: Instant) {
        let doublings = 1 << self.false_alarms.min(SILENCE_DOUBLINGS_MAX);
        let quiet = |carrier: &Carrier| now.saturating_since(carrier.heard_at);
        let mut missed = SmallVec::<[Carrier; 2]>::new();
        for carrier in carriers {
            let seen = self.seen_mut(carrier.id);
            let brought_bytes = seen.recent_bytes + (carrier.received_bytes - seen.received_bytes);
            let ask_at = carrier.heard_at + seen.patience();
            if brought_bytes >= MISSED_MIN_BYTES && now >= ask_at {
                missed.push(*carrier);
            } else {
                seen.note_pause(quiet(carrier), now);
                self.want_look(ask_at, now);
            }
        }
        if missed.is_empty() {
            return;
        }
        carriers.iter().for_each(|carrier| self.ask(carrier, findings, now));
        for lost in &missed {
            let seen = self.seen_of(lost.id);
            // The first probe counts: later ones would postpone the deadline for ever if answers take longer.
            let Some(Silence { asked_at, .. }) = seen.silence else { continue };
            let answer_in = seen.answer_in(lost.rtt);
            let patience = seen.patience().saturating_mul(doublings) + answer_in;
            // While others are heard on the uplink, the answer may be waiting in the queue that they fill.
            let answer_due = asked_at.max(lost.uplink_heard_at) + answer_in;
            let patience_ends = lost.heard_at + patience.max(pauses.patience(lost.ip(), now));
            self.want_look(now + DOUBT_PERIOD, now);
            // A missed subflow's own silence shows nothing about the path of this one.
            let is_missed = |other: &Carrier| missed.iter().any(|one| one.id == other.id);
            let could_not_answer = |other: &Carrier| now < asked_at + other.rtt && !is_missed(other);
            let mut others = carriers.iter().filter(|other| other.id != lost.id);
            let is_other_there = others.any(|other| other.heard_at > asked_at || could_not_answer(other));
            if now >= answer_due.max(patience_ends) && is_other_there {
                self.dismiss(lost, carriers, pauses, findings, now);
            }
        }
    }

    /// Probes a subflow if it is quiet and was not probed a moment ago.
    fn ask(&mut self, carrier: &Carrier, findings: &mut Findings, now: Instant) {
        let Carrier { heard_at, uplink_heard_at, .. } = *carrier;
        let seen = self.seen_mut(carrier.id);
        if now.saturating_since(heard_at) >= SILENCE_MIN && seen.may_be_asked(heard_at, now) {
            seen.probed_at = Some(now);
            seen.silence.get_or_insert(Silence { heard_at, asked_at: now, uplink_heard_at, is_certain: true });
            findings.push(Finding::Doubtful(carrier.id));
        }
    }

    /// Gives up a dead subflow. If its end is costly, it counts as late, and its uplink is not tried again soon.
    fn dismiss(
        &mut self,
        lost: &Carrier,
        carriers: &[Carrier],
        pauses: &mut Pauses,
        findings: &mut Findings,
        now: Instant,
    ) {
        self.dismissed.push((lost.ip(), now));
        pauses.gave_up(lost.local, lost.uplink_heard_at, now);
        let held_bytes: u64 = carriers.iter().map(|carrier| carrier.held_bytes).sum();
        let has_paused = pauses.patience(lost.ip(), now) > Duration::ZERO;
        let is_costly = has_paused && lost.received_bytes < held_bytes;
        findings.push(if is_costly { Finding::Late(lost.id) } else { Finding::Silent(lost.id) });
    }

    /// Makes the next look earlier, if `at` is in the future and sooner.
    fn want_look(&mut self, at: Instant, now: Instant) {
        self.next_at = self.next_at.map(|next| if at > now { next.min(at) } else { next });
    }

    fn find_late(&mut self, carriers: &[Carrier], pauses: &mut Pauses, findings: &mut Findings, now: Instant) {
        let span = self.looked_at.map(|at| now.saturating_since(at));
        self.looked_at = Some(now);
        let mut brought_bytes = 0;
        for carrier in carriers {
            let seen = self.seen_mut(carrier.id);
            let added = carrier.received_bytes - seen.received_bytes;
            seen.received_bytes = carrier.received_bytes;
            seen.recent_bytes = seen.recent_bytes - seen.recent_bytes / 16 + added;
            if added > 0 || !seen.is_idle(carrier.heard_at) {
                seen.note_usual(added);
            }
            seen.fair_bytes = seen.fair_bytes - seen.fair_bytes / 16 + added;
            seen.latest_bytes.rotate_right(1);
            seen.latest_bytes[0] = added;
            seen.regular = !carrier.backup;
            brought_bytes += added;
        }
        let Some(span) = span.filter(|span| !span.is_zero()) else { return };
        self.note_rate(brought_bytes, span);
        self.lost_bytes -= self.lost_bytes / 16;
        let blamed = self.blame(carriers, LAG_MIN);
        let is_unfair = self.is_unfair(blamed.is_some(), now);
        let soon =
            self.blame(carriers, NEGLIGIBLE_LAG_MIN).filter(|blamed| !is_unfair && !self.seen_of(blamed.id).is_slow);
        if let Some(slow) =
            soon.filter(|blamed| self.is_negligible(blamed, carriers) && self.drains_soon(blamed, carriers))
        {
            return self.act_on_slow(&slow, findings);
        }
        let Some(blamed) = blamed.filter(|_| !is_unfair) else {
            self.seen.iter_mut().for_each(|seen| seen.strikes = 0);
            self.waited_for = None;
            return;
        };
        let lost_now_bytes = self.lost_by_others(&blamed, carriers, now);
        // Only probes show whether subflows that bring nothing could bring something.
        let others = carriers.iter().filter(|other| other.id != blamed.id && !other.backup);
        for other in others.filter(|other| now.saturating_since(other.heard_at) >= SILENCE_MAX) {
            self.ask(other, findings, now);
        }
        let held_bytes: u64 = carriers.iter().map(|carrier| carrier.held_bytes).sum();
        let before = self.waited_for.filter(|it| it.id == blamed.id);
        let waited_for =
            self.waited_for.insert(before.unwrap_or(WaitedFor { id: blamed.id, lost_bytes: 0, held_bytes }));
        waited_for.note(held_bytes, lost_now_bytes);
        let lost_in_all_bytes = waited_for.lost_bytes;
        self.lost_bytes += lost_now_bytes;
        let all_bytes: u64 = self.seen.iter().map(|seen| seen.fair_bytes).sum::<u64>() + self.lost_bytes;
        let all_usual_bytes: u64 = self.seen.iter().map(Seen::usual).sum();
        let lost_bytes = self.lost_bytes;
        let (fair_bytes, usual_bytes) = self.brought_over_uplink(&blamed, carriers);
        let is_worthless = fair_bytes < all_bytes / WORTHLESS_PARTS && usual_bytes < all_usual_bytes / WORTHLESS_PARTS;
        // Doing without the subflow has a price too: the peer sends again what waits.
        let is_harmful = fair_bytes < lost_bytes / 2 && held_bytes < lost_in_all_bytes;
        let seen = self.seen_mut(blamed.id);
        let is_slow = seen.is_slow;
        seen.strikes = if is_worthless && !is_slow || is_harmful { seen.strikes + 1 } else { 0 };
        if seen.strikes >= STRIKES {
            if !is_harmful && self.drains_soon(&blamed, carriers) {
                return self.act_on_slow(&blamed, findings);
            }
            self.seen_mut(blamed.id).strikes = 0;
            self.lost_bytes = 0;
            self.waited_for = None;
            self.act_on_late(&blamed, is_worthless, carriers, pauses, findings, now);
        }
    }

    /// Returns whether a subflow for which the stream waits brings next to nothing, recently and usually.
    fn is_negligible(&self, blamed: &Carrier, carriers: &[Carrier]) -> bool {
        let (fair_bytes, usual_bytes) = self.brought_over_uplink(blamed, carriers);
        let all_bytes: u64 = self.seen.iter().map(|seen| seen.fair_bytes).sum();
        let all_usual_bytes: u64 = self.seen.iter().map(Seen::usual).sum();
        fair_bytes < all_bytes / NEGLIGIBLE_PARTS && usual_bytes < all_usual_bytes / NEGLIGIBLE_PARTS
    }

    /// Returns the octets that the subflows over a subflow's uplink have brought recently, and usually. All of them end
    /// with its address, and the peer may divide among them what it sends there.
    fn brought_over_uplink(&self, one: &Carrier, carriers: &[Carrier]) -> (u64, u64) {
        let over_it = carriers.iter().filter(|other| other.ip() == one.ip()).map(|other| self.seen_of(other.id));
        over_it.fold((0, 0), |(fair, usual), seen| (fair + seen.fair_bytes, usual + seen.usual()))
    }

    /// Returns whether waiting for what the subflow was given costs less than withdrawing it. While the others have
    /// something to send, waiting costs nothing.
    fn drains_soon(&self, blamed: &Carrier, carriers: &[Carrier]) -> bool {
        let seen = self.seen_of(blamed.id);
        let span = LATE_PERIOD.saturating_mul(RATE_LOOKS as u64);
        let rate_bytes = per_second(seen.latest_bytes.iter().sum(), span);
        let held_bytes: u64 = carriers.iter().map(|carrier| carrier.held_bytes).sum();
        let arrived_bytes: u64 = carriers.iter().map(|carrier| carrier.received_bytes).sum();
        let left_bytes = LEFT_BYTES[usize::from(arrived_bytes >= FIRST_BYTES)];
        let worth_bytes = (2 * AHEAD_BYTES).saturating_sub(held_bytes);
        // LEFT / rate <= worth / peak rate
        let (left, right) = (u128::from(left_bytes) * u128::from(self.peak_rate_bytes), u128::from(worth_bytes));
        !self.slow.contains(&blamed.ip()) && seen.is_steady(blamed.rtt) && left <= right * u128::from(rate_bytes)
    }

    /// Makes a subflow a backup. From now on it counts as late only if the others lose more than what waits.
    fn act_on_slow(&mut self, slow: &Carrier, findings: &mut Findings) {
        let seen = self.seen_mut(slow.id);
        (seen.is_slow, seen.strikes) = (true, 0);
        self.slow.push(slow.ip());
        findings.push(Finding::Slow(slow.id));
    }

    /// Acts on a subflow that is to blame. One with a long silence is dead, not late. If its uplink is known to pause,
    /// it gets its time, unless it brings too little for that.
    fn act_on_late(
        &mut self,
        blamed: &Carrier,
        is_worthless: bool,
        carriers: &[Carrier],
        pauses: &mut Pauses,
        findings: &mut Findings,
        now: Instant,
    ) {
        let unheard = now.saturating_since(blamed.heard_at);
        let patience = pauses.patience(blamed.ip(), now);
        let is_heard = unheard < LATE_UNHEARD + blamed.rtt.saturating_mul(2);
        if is_heard || is_worthless && !patience.is_zero() {
            findings.push(Finding::Late(blamed.id));
        } else if unheard >= patience {
            self.dismiss(blamed, carriers, pauses, findings, now);
        }
    }

    fn note_rate(&mut self, brought_bytes: u64, span: Duration) {
        self.brought.rotate_right(1);
        self.brought[0] = (brought_bytes, span);
        let (bytes, time) = self.brought.iter().fold((0, Duration::ZERO), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        self.peak_rate_bytes = per_second(bytes, time).max(self.peak_rate_bytes - self.peak_rate_bytes / 64);
    }

    /// Returns the octets that others than the blamed subflow could have brought since the last look, if the peer could
    /// have sent.
    fn lost_by_others(&mut self, blamed: &Carrier, carriers: &[Carrier], now: Instant) -> u64 {
        let mut lost_bytes = 0;
        for other in carriers.iter().filter(|other| other.id != blamed.id && !other.backup) {
            let seen = self.seen_mut(other.id);
            if seen.is_idle(other.heard_at) {
                let idle = now.saturating_since(seen.brought_at.0.max(seen.idle_until));
                seen.idle_until = now;
                lost_bytes += seen.usual() * idle.as_millis() / LATE_PERIOD.as_millis();
            }
        }
        lost_bytes
    }

    /// Returns the subflow for which the stream waits, if it lags by `lag_min` and the subflow can be told.
    fn blame(&self, carriers: &[Carrier], lag_min: Duration) -> Option<Carrier> {
        let held_bytes: u64 = carriers.iter().map(|carrier| carrier.held_bytes).sum();
        let lag_bytes = self.peak_rate_bytes / 1000 * lag_min.as_millis();
        if held_bytes < lag_bytes.max(HELD_MIN_BYTES) {
            return None;
        }
        let regular = || carriers.iter().filter(|carrier| !carrier.backup || self.seen_of(carrier.id).is_slow);
        // A few octets may wait for another subflow that is late too.
        let waits = |carrier: &&Carrier| carrier.held_bytes > held_bytes / 8;
        if !regular().any(|carrier| waits(&carrier)) {
            return None;
        }
        let blamed = regular().filter(|carrier| !waits(carrier));
        blamed.min_by_key(|carrier| self.seen_of(carrier.id).fair_bytes).copied()
    }

    fn seen_of(&self, id: SubflowId) -> &Seen {
        self.seen.iter().find(|seen| seen.id == id).expect("every carrier was entered")
    }

    fn seen_mut(&mut self, id: SubflowId) -> &mut Seen {
        self.seen.iter_mut().find(|seen| seen.id == id).expect("every carrier was entered")
    }
}

fn per_second(bytes: u64, span: Duration) -> u64 {
    u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(span.as_nanos())).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
