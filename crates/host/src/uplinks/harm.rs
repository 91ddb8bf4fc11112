//! Subflows of a download that cost more than they bring, and subflows that have died without a word. Pure: told what subflows have
//! given, it says which one to do without.
//!
//! What a peer sends on which subflow is its scheduler's decision, and the kernel's fills a slow one as well as a fast one. What came
//! on the fast one then waits for what has not come on the slow one, until the peer may send no more on either. Who is to blame is
//! known here only: that from which nothing waits.
//!
//! ```text
//! lag      what waits / greatest rate of late: how far the stream is behind what has come
//! rate     over 300 ms, since what was held up comes all at once
//! late     lag > 100 ms, twice in a row, on account of a subflow that brings less than an eighth of late and usually,
//!          or that brings less than half of what the others did not bring of late, though they could, if that is more in all, since the
//!          stream waits for it, than what waits; of what was lost before a hole was filled, only the part of what waits still
//! could    who has brought nothing since it was asked for a sign of life, and gave one, is idle: it could have brought what it usually does.
//!          A radio that fades still brings something, and one that pauses gives no sign. While the stream is late, the others are asked
//! fair     octets are counted from when a subflow was last new, or made regular. Nobody is late before that one has had 2 RTT + 100 ms,
//!          and before what waited then has gone on, for a second at most: a withdrawn one leaves a hole that is not the next one's
//! silent   nothing heard of a subflow that did bring something, for twice its longest pause of the last second or two, within [30, 60] ms;
//!          no answer to a probe for 1.5 RTT + 10 ms, in which other connections do not hear its uplink either; and another one was heard
//!          since, or could not have answered yet. Of an uplink that has paused, nothing for twice as long ([`Pauses`])
//! RTT      with what the subflow's packets wait for in queues, as the peer's echoes of timestamps tell (`round_trips.rs`); 4 s at most for 1.5 RTT
//! costly   a silent one of an uplink that is known to pause, and that brought less than what waits, which is what the peer sends again
//!          when it is withdrawn: it counts as late
//! ```

use std::net::{IpAddr, SocketAddr};

use smallvec::SmallVec;
use transport::{ConnectionId, ConnectionStats, Echo, Endpoint, SubflowId};
use units::{Duration, Instant};

use super::Pauses;
use super::bulk::HEAVY_BYTES;
use round_trips::RoundTrips;

mod round_trips;

/// A round-trip time that most paths do not exceed.
pub const RTT_UNKNOWN: Duration = Duration::from_millis(200);
/// How often subflows are looked at: no multiple of the pauses of a stream that has 50 or 60 pieces in a second, of which only the
/// shortest part would be seen else.
pub const PERIOD: Duration = Duration::from_millis(19);
/// The same while an answer is waited for.
const DOUBT_PERIOD: Duration = Duration::from_millis(5);
/// A look that comes so much later than it was wanted judges nobody: what has come meanwhile may wait to be read.
const UNPUNCTUAL: Duration = Duration::from_millis(10);
/// Between two looks that are about lateness.
const LATE_PERIOD: Duration = Duration::from_millis(95);
/// A stream that is so far behind is late.
pub const LAG_MIN: Duration = Duration::from_millis(100);
/// Octets that wait at least: below, a rate says nothing.
const HELD_MIN_BYTES: u64 = 32 << 10;
/// What brings less than this part of all is not worth any waiting.
pub(super) const WORTHLESS_PARTS: u64 = 8;
/// Looks over which it is counted what a subflow usually brings: the rate of a radio link may be low for some seconds.
const USUAL_LOOKS: u64 = 40;
/// Looks in a row at which a subflow was to blame.
const STRIKES: u32 = 2;
/// Looks over which rates are taken.
const RATE_LOOKS: usize = 3;
/// One of which nothing was heard for so long and two round trips is not late, but dead: who comes back need not be held back.
const LATE_UNHEARD: Duration = Duration::from_millis(250);
/// After a change of who carries, what waited before it is waited for so long at most until somebody may be blamed.
const SETTLING_MAX: Duration = Duration::from_secs(1);
/// A subflow of which nothing was heard for twice its usual pause, within this, is asked for a sign of life; twice as long after each
/// false alarm.
const SILENCE_MIN: Duration = Duration::from_millis(30);
const SILENCE_MAX: Duration = Duration::from_millis(60);
const SILENCE_DOUBLINGS_MAX: u32 = 5;
/// Its usual pause is the longest of this span and the one before.
const RHYTHM_SPAN: Duration = Duration::from_secs(1);
/// Who is there again so soon after having been silent was not dead: the first attempt of a join was answered.
const FALSE_ALARM: Duration = Duration::from_secs(1);
/// Between two questions, and if the first one was not answered.
const PROBES_APART: Duration = Duration::from_millis(100);
const UNANSWERED_APART: Duration = Duration::from_millis(600);
/// What a sign of life may be late beside 1.5 RTT, and what that is at most.
const SLACK: Duration = Duration::from_millis(10);
const ANSWER_MAX: Duration = Duration::from_secs(4);
/// A subflow that brought so little of late is not missed.
const MISSED_MIN_BYTES: u64 = 16 << 10;

/// A subflow, as seen now.
#[derive(Clone, Copy, Debug)]
pub struct Carrier {
    /// Which.
    pub id: SubflowId,
    /// Our address and port.
    pub local: SocketAddr,
    /// Octets that it ever brought.
    pub received_bytes: u64,
    /// Of these, octets that wait for others.
    pub held_bytes: u64,
    /// When the peer was last heard on it.
    pub heard_at: Instant,
    /// When anybody was last heard on its uplink, by whatever connection, as far as that is known.
    pub uplink_heard_at: Instant,
    /// Round-trip time, as what this side has sent measured it.
    pub rtt: Duration,
    /// What the peer echoed last.
    pub echo: Option<Echo>,
    /// It carries data only if no other can.
    pub backup: bool,
}

impl Carrier {
    /// Those of a connection, which has these statistics. One whose handshake took several attempts has no round-trip time: `rtt` is asked then.
    /// `heard` tells when an uplink was last heard.
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

    /// The address of its uplink.
    pub fn ip(&self) -> IpAddr {
        self.local.ip()
    }
}

/// Whether a connection has brought enough to be judged: octets that wait for others count, since they may wait for long.
pub fn is_worth_a_look(stats: &ConnectionStats) -> bool {
    let arrived_bytes: u64 = stats.subflows.iter().map(|subflow| subflow.received_bytes).sum();
    arrived_bytes >= HEAVY_BYTES
}

/// What is to be done about a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It is to be asked for a sign of life.
    Doubtful(SubflowId),
    /// It is dead, or as good as dead.
    Silent(SubflowId),
    /// The connection is faster without it.
    Late(SubflowId),
}

/// What is to be done.
pub type Findings = SmallVec<[Finding; 2]>;

#[derive(Clone, Copy, Debug)]
struct Seen {
    id: SubflowId,
    received_bytes: u64,
    /// Octets brought of late: what was brought counts half after a second or so.
    recent_bytes: u64,
    /// The same, since who carries has changed.
    fair_bytes: u64,
    /// Octets that it brought in so many looks, at most [`USUAL_LOOKS`]; those at which it was idle do not count.
    usual_bytes: u64,
    usual_looks: u64,
    /// It may carry data.
    regular: bool,
    /// When octets were last seen to have come, and how many there were then.
    brought_at: (Instant, u64),
    /// Until when its idleness is counted.
    idle_until: Instant,
    probed_at: Option<Instant>,
    /// It was asked, and is not heard again yet.
    silence: Option<Silence>,
    round_trips: RoundTrips,
    /// The longest pauses, of this span and of the one before.
    pauses: [Duration; 2],
    pauses_since: Instant,
    strikes: u32,
}

/// A subflow that was asked for a sign of life.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// When it was last heard before.
    heard_at: Instant,
    /// When it was asked, and when its uplink was last heard by anybody.
    asked_at: Instant,
    uplink_heard_at: Instant,
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

    /// How long it may be silent before it is asked.
    fn patience(&self) -> Duration {
        self.pauses[0].max(self.pauses[1]).saturating_mul(2).clamp(SILENCE_MIN, SILENCE_MAX)
    }

    /// How late its answer to a question may be: it waits behind what the subflow is sent.
    fn answer_in(&self, rtt: Duration) -> Duration {
        let round_trip = rtt.max(self.round_trips.longest());
        (round_trip + round_trip / 2).min(ANSWER_MAX) + SLACK
    }

    /// Whether the last question is long enough ago. One that is not answered goes on being one.
    fn may_be_asked(&self, heard_at: Instant, now: Instant) -> bool {
        self.probed_at.is_none_or(|at| {
            let apart = if heard_at > at { PROBES_APART } else { UNANSWERED_APART };
            now.saturating_since(at) >= apart
        })
    }

    /// Nothing has come since it was asked for a sign of life, and gave one.
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

    /// What it usually brings between two looks about lateness.
    fn usual(&self) -> u64 {
        self.usual_bytes / self.usual_looks.max(1)
    }

    /// Nothing was heard of it for so long now.
    fn note_pause(&mut self, pause: Duration, now: Instant) {
        if now.saturating_since(self.pauses_since) >= RHYTHM_SPAN {
            (self.pauses, self.pauses_since) = ([Duration::ZERO, self.pauses[0]], now);
        }
        self.pauses[0] = self.pauses[0].max(pause.min(self.patience()));
    }
}

/// A subflow that the stream waits for.
#[derive(Clone, Copy, Debug)]
struct WaitedFor {
    id: SubflowId,
    /// Octets that others could have brought meanwhile, while what still waits did so.
    lost_bytes: u64,
    /// Octets that waited at the last look.
    held_bytes: u64,
}

impl WaitedFor {
    /// So many octets wait now: where these are fewer, a hole was filled, and what was lost for that is past.
    fn note(&mut self, held_bytes: u64, lost_now_bytes: u64) {
        if held_bytes < self.held_bytes {
            let left = u128::from(self.lost_bytes) * u128::from(held_bytes) / u128::from(self.held_bytes);
            self.lost_bytes = u64::try_from(left).unwrap_or(u64::MAX);
        }
        self.lost_bytes += lost_now_bytes;
        self.held_bytes = held_bytes;
    }
}

/// One connection's subflows.
#[derive(Debug, Default)]
pub struct Harm {
    seen: SmallVec<[Seen; 2]>,
    /// When the next look is wanted.
    next_at: Option<Instant>,
    /// The last look came late, and judged nobody.
    was_late: bool,
    looked_at: Option<Instant>,
    /// What the latest looks found: octets, and within what time.
    brought: [(u64, Duration); RATE_LOOKS],
    /// Until when nobody is to blame, and at the latest, since who carries has changed.
    unfair_until: Option<[Instant; 2]>,
    /// Octets in a second that all brought at best; it falls slowly.
    peak_rate_bytes: u64,
    /// Octets that others could have brought while the stream was late; what was lost counts half after a second or so.
    lost_bytes: u64,
    /// For whom the stream has waited without a break.
    waited_for: Option<WaitedFor>,
    /// Addresses whose subflows were silent, and since when they are gone.
    dismissed: SmallVec<[(IpAddr, Instant); 2]>,
    /// Of these, those that were there again at once.
    false_alarms: u32,
}

impl Harm {
    /// Looks at all subflows that are established; to be called when [`Self::next_at`] says so, while octets move.
    pub fn look(&mut self, carriers: &[Carrier], pauses: &mut Pauses, now: Instant) -> Findings {
        self.enter(carriers, now);
        let mut findings = Findings::new();
        let is_late = self.next_at.is_some_and(|at| now.saturating_since(at) >= UNPUNCTUAL);
        self.end_silences(carriers, is_late, pauses, now);
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

    /// When it wants to look again, if it has looked.
    pub fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// When a subflow on which the peer was last heard then was asked for a sign of life since, if it gave none. Once nobody looks any more
    /// it stays so, and nobody asks again.
    pub fn unanswered_since(&self, id: SubflowId, heard_at: Instant) -> Option<Instant> {
        let silence = self.seen.iter().find(|seen| seen.id == id)?.silence?;
        (heard_at <= silence.heard_at).then_some(silence.asked_at)
    }

    /// Notes who is there, and who carries.
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
                self.begin_anew(carrier.rtt, now);
            }
        }
    }

    /// Who is heard again, later than an answer takes, has paused. After a look that came late that cannot be told.
    fn end_silences(&mut self, carriers: &[Carrier], is_late: bool, pauses: &mut Pauses, now: Instant) {
        for carrier in carriers {
            let seen = self.seen_mut(carrier.id);
            let answer_in = seen.answer_in(carrier.rtt);
            let Some(silence) = &mut seen.silence else { continue };
            if carrier.heard_at > silence.heard_at {
                let uplink_heard_at = silence.uplink_heard_at;
                let due_at = silence.asked_at.max(uplink_heard_at) + answer_in;
                if carrier.heard_at > due_at && !is_late {
                    pauses.note(carrier.ip(), carrier.heard_at.saturating_since(uplink_heard_at), now);
                }
                seen.silence = None;
            } else if is_late {
                seen.silence = None;
            } else {
                silence.uplink_heard_at = carrier.uplink_heard_at;
            }
        }
    }

    /// Somebody is there who may have been dismissed.
    fn welcome(&mut self, ip: IpAddr, now: Instant) {
        let Some(place) = self.dismissed.iter().position(|(known, _)| *known == ip) else { return };
        let (_, since) = self.dismissed.swap_remove(place);
        self.false_alarms += u32::from(now.saturating_since(since) < FALSE_ALARM);
    }

    /// One more carries, whose round-trip time this is.
    fn begin_anew(&mut self, rtt: Duration, now: Instant) {
        let chance = now + rtt.saturating_mul(2) + LAG_MIN;
        self.unfair_until = Some([chance, chance + SETTLING_MAX]);
        self.lost_bytes = 0;
        self.waited_for = None;
        self.seen.iter_mut().for_each(|seen| (seen.fair_bytes, seen.strikes) = (0, 0));
    }

    /// Whether who carries has changed too short a time ago.
    fn is_unfair(&mut self, is_behind: bool, now: Instant) -> bool {
        let Some([chance, latest]) = &mut self.unfair_until else { return false };
        if !is_behind {
            // What comes to wait from now on is of those that carry now.
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
            // The first question counts: those that follow would put the answer off for ever where it takes longer than the next one.
            let Some(Silence { asked_at, .. }) = seen.silence else { continue };
            let answer_in = seen.answer_in(lost.rtt);
            let patience = seen.patience().saturating_mul(doublings) + answer_in;
            // While others are heard on the uplink the answer may wait in its queue, which they fill.
            let answer_due = asked_at.max(lost.uplink_heard_at) + answer_in;
            let patience_ends = lost.heard_at + patience.max(pauses.patience(lost.ip(), now));
            self.want_look(now + DOUBT_PERIOD, now);
            // Of one that brought something too, silence says that it is not the path.
            let is_missed = |other: &Carrier| missed.iter().any(|one| one.id == other.id);
            let could_not_answer = |other: &Carrier| now < asked_at + other.rtt && !is_missed(other);
            let mut others = carriers.iter().filter(|other| other.id != lost.id);
            let is_other_there = others.any(|other| other.heard_at > asked_at || could_not_answer(other));
            if now >= answer_due.max(patience_ends) && is_other_there {
                self.dismiss(lost, carriers, pauses, findings, now);
            }
        }
    }

    /// Asks a subflow for a sign of life, if it is quiet and was not asked just now.
    fn ask(&mut self, carrier: &Carrier, findings: &mut Findings, now: Instant) {
        let Carrier { heard_at, uplink_heard_at, .. } = *carrier;
        let seen = self.seen_mut(carrier.id);
        if now.saturating_since(heard_at) >= SILENCE_MIN && seen.may_be_asked(heard_at, now) {
            seen.probed_at = Some(now);
            seen.silence.get_or_insert(Silence { heard_at, asked_at: now, uplink_heard_at });
            findings.push(Finding::Doubtful(carrier.id));
        }
    }

    /// A subflow is dead. If its end is costly, its uplink is not tried again soon.
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

    /// Another look is wanted then, if that is to come and sooner than the next.
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
            seen.regular = !carrier.backup;
            brought_bytes += added;
        }
        let Some(span) = span.filter(|span| !span.is_zero()) else { return };
        self.note_rate(brought_bytes, span);
        self.lost_bytes -= self.lost_bytes / 16;
        let blamed = self.blame(carriers);
        let is_unfair = self.is_unfair(blamed.is_some(), now);
        let Some(blamed) = blamed.filter(|_| !is_unfair) else {
            self.seen.iter_mut().for_each(|seen| seen.strikes = 0);
            self.waited_for = None;
            return;
        };
        let lost_now_bytes = self.lost_by_others(&blamed, carriers, now);
        // Whether those that bring nothing could, is known once they have been asked.
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
        let seen = self.seen_mut(blamed.id);
        let is_worthless =
            seen.fair_bytes < all_bytes / WORTHLESS_PARTS && seen.usual() < all_usual_bytes / WORTHLESS_PARTS;
        // To do without it has its price as well: what waits is sent again.
        let is_harmful = seen.fair_bytes < lost_bytes / 2 && held_bytes < lost_in_all_bytes;
        seen.strikes = if is_worthless || is_harmful { seen.strikes + 1 } else { 0 };
        if seen.strikes >= STRIKES {
            seen.strikes = 0;
            self.lost_bytes = 0;
            self.waited_for = None;
            self.act_on_late(&blamed, is_worthless, carriers, pauses, findings, now);
        }
    }

    /// One of which nothing was heard for long is dead, not late. One that is known to pause is given its time, unless it brings too little for that.
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

    /// Octets that others than the blamed one would have brought since the last look, had the peer been allowed to send.
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

    /// Whom the stream waits for, if it is late and that can be told.
    fn blame(&self, carriers: &[Carrier]) -> Option<Carrier> {
        let held_bytes: u64 = carriers.iter().map(|carrier| carrier.held_bytes).sum();
        let lag_bytes = self.peak_rate_bytes / 1000 * LAG_MIN.as_millis();
        if held_bytes < lag_bytes.max(HELD_MIN_BYTES) {
            return None;
        }
        let regular = || carriers.iter().filter(|carrier| !carrier.backup);
        // A little may wait for another subflow that is late as well.
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
