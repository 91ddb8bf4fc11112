//! The channel with hidden stations: each station sends according to what it hears, and a frame arrives only if its
//! receiver hears nothing else meanwhile.
//!
//! Every frame of an exchange (RTS, CTS, data, ACK) is on the air separately. A station that hears a whole frame learns
//! how long the exchange continues (the network allocation vector, IEEE 802.11-2016 section 10.3.2.4). A station that
//! hears two frames at once understands neither, and waits for EIFS.

use units::{Duration, Instant};

use super::station::Station;
use super::timing::{DIFS, SIFS, answer_timeout, eifs};
use super::{StationId, Wlan, WlanConfig, draw};
use crate::{Gate, MediumOutput};

/// The frames on the air, and the stations that hear them.
pub(super) struct Ether {
    /// For each station, the other stations within hearing range.
    audible: Vec<Vec<u16>>,
    ears: Vec<Ear>,
    /// Pending events, in no order.
    due: Vec<Due>,
    /// End of the busy time counted so far.
    busy_until: Instant,
}

/// The reception state of one station.
#[derive(Clone, Default)]
struct Ear {
    /// Number of frames on the air that it hears.
    heard: u16,
    /// Whether it hears a single frame, and heard no other since that frame began.
    clean: bool,
    /// Whether any frame it hears began while it was not sending.
    noticed: bool,
    sending: bool,
    /// Whether it has begun an exchange that has not ended.
    engaged: bool,
    /// End of the reservation by an exchange that it overheard.
    reserved_until: Instant,
}

impl Ear {
    fn idle(&self) -> bool {
        self.heard == 0 && !self.sending
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Request,
    Clear,
    Data,
    Ack,
}

impl Kind {
    /// Whether the receiver of the data sends this frame.
    fn answers(self) -> bool {
        matches!(self, Self::Clear | Self::Ack)
    }

    /// The next frame of the exchange, from the other side.
    fn next(self) -> Option<Self> {
        match self {
            Self::Request => Some(Self::Clear),
            Self::Clear => Some(Self::Data),
            Self::Data => Some(Self::Ack),
            Self::Ack => None,
        }
    }
}

#[derive(Clone, Copy)]
struct Transmission {
    from: u16,
    to: u16,
    kind: Kind,
}

#[derive(Clone, Copy)]
struct Due {
    at: Instant,
    what: What,
}

/// Kinds of events, in the order in which simultaneous events are handled.
#[derive(Clone, Copy)]
enum What {
    Ends(Transmission),
    /// A station gives up waiting for an answer.
    Missed(u16),
    Begins(Transmission),
}

impl Due {
    fn order(&self) -> (Instant, u8) {
        let class = match self.what {
            What::Ends(_) => 0,
            What::Missed(_) => 1,
            What::Begins(_) => 2,
        };
        (self.at, class)
    }
}

impl Ether {
    /// Creates the state in which all stations hear each other except the configured pairs; `None` if there are no such
    /// pairs.
    pub(super) fn new(config: &WlanConfig) -> Option<Self> {
        if config.hidden.is_empty() {
            return None;
        }
        let deaf = |a: u16, b: u16| {
            let (a, b) = (StationId(a), StationId(b));
            a == b || config.hidden.contains(&(a, b)) || config.hidden.contains(&(b, a))
        };
        let audible = |a: u16| (0..config.stations).filter(|b| !deaf(a, *b)).collect();
        Some(Self {
            audible: (0..config.stations).map(audible).collect(),
            ears: vec![Ear::default(); usize::from(config.stations)],
            due: Vec::new(),
            busy_until: Instant::ZERO,
        })
    }

    /// Whether the station has begun an exchange that has not ended.
    pub(super) fn engaged(&self, station: u16) -> bool {
        self.ears[usize::from(station)].engaged
    }

    fn next_due(&self) -> Option<usize> {
        (0..self.due.len()).min_by_key(|index| self.due[*index].order())
    }

    fn plan(&mut self, at: Instant, what: What) {
        self.due.push(Due { at, what });
    }

    /// Marks the air as busy, including the space before an answer. Returns by how much this extends the busy time.
    fn occupy(&mut self, from: Instant, until: Instant) -> Duration {
        let more = until.saturating_since(from.max(self.busy_until));
        self.busy_until = self.busy_until.max(until);
        more
    }
}

/// Contention among stations that do not all hear each other.
impl Wlan {
    /// Starts contention for a station whose queue was empty. It needs no backoff if the last one is over and it finds
    /// the channel idle.
    pub(super) fn contend(&mut self, ether: &Ether, number: u16, now: Instant) {
        let station = &mut self.stations[usize::from(number)];
        let idle = ether.ears[usize::from(number)].idle();
        let free = idle && now >= station.counts_from;
        if station.backoff_slots == 0 || free && station.backoff_ends() <= now {
            station.backoff_slots = if free { 0 } else { draw(&mut self.prng, station.contention_window) };
        }
    }

    fn may_send_at(&self, ether: &Ether, number: usize) -> Option<Instant> {
        let (station, ear) = (&self.stations[number], &ether.ears[number]);
        (!station.frames.is_empty() && ear.idle() && !ear.engaged).then(|| station.backoff_ends())
    }

    fn next_sender(&self, ether: &Ether) -> Option<Instant> {
        (0..self.stations.len()).filter_map(|number| self.may_send_at(ether, number)).min()
    }

    /// Returns when the next event is due.
    pub(super) fn next_in(&self, ether: &Ether) -> Option<Instant> {
        let due = ether.next_due().map(|index| ether.due[index].at);
        due.into_iter().chain(self.next_sender(ether)).min()
    }

    /// Handles all events that are due by `now`.
    pub(super) fn run_in(&mut self, ether: &mut Ether, now: Instant, out: &mut MediumOutput) {
        loop {
            let due = ether.next_due().filter(|index| ether.due[*index].at <= now);
            let start = self.next_sender(ether).filter(|at| *at <= now);
            match (due, start) {
                (Some(index), start) if start.is_none_or(|at| ether.due[index].at <= at) => {
                    let Due { at, what } = ether.due.remove(index);
                    match what {
                        What::Ends(frame) => self.end(ether, frame, at, out),
                        What::Missed(sender) => self.lose(ether, sender, at, out),
                        What::Begins(frame) => self.answer(ether, frame, at),
                    }
                }
                (_, Some(at)) => self.start_in(ether, at),
                (_, None) => return,
            }
        }
    }

    /// Lets stations send that may send at once.
    pub(super) fn start_in_if_due(&mut self, ether: &mut Ether, now: Instant) {
        if self.next_sender(ether).is_some_and(|at| at <= now) {
            self.start_in(ether, now);
        }
    }

    /// Lets all stations send whose backoff is over, even if they hear each other: they need a whole slot to notice.
    fn start_in(&mut self, ether: &mut Ether, now: Instant) {
        let mut senders = core::mem::take(&mut self.senders);
        let ready = |number: &u16| self.may_send_at(ether, usize::from(*number)).is_some_and(|at| at <= now);
        senders.extend((0..self.config.stations).filter(ready));
        for from in senders.drain(..) {
            let ear = &mut ether.ears[usize::from(from)];
            // It begins in the same instant as the others, and notices none of them.
            (ear.engaged, ear.noticed) = (true, false);
            let to = self.stations[usize::from(from)].frames[0].to.0;
            let kind = if self.uses_rts(from) { Kind::Request } else { Kind::Data };
            self.begin(ether, Transmission { from, to, kind }, now, Duration::ZERO);
        }
        self.senders = senders;
    }

    /// The station whose data frame the exchange carries.
    fn initiator(&mut self, frame: Transmission) -> &mut Station {
        let number = if frame.kind.answers() { frame.to } else { frame.from };
        &mut self.stations[usize::from(number)]
    }

    fn duration_of(&mut self, frame: Transmission) -> Duration {
        let (rate, propagation) = (self.config.data_rate, self.config.propagation);
        let data = rate.data(self.initiator(frame).frames[0].wire_len);
        let lasts = match frame.kind {
            Kind::Request => rate.rts(),
            Kind::Clear => rate.cts(),
            Kind::Data => data,
            Kind::Ack => rate.ack(),
        };
        lasts + propagation
    }

    /// How long the exchange continues after `frame`.
    fn rest_after(&mut self, frame: Transmission) -> Duration {
        let mut rest = Duration::ZERO;
        let mut next = frame.kind.next();
        while let Some(kind) = next {
            let (from, to) =
                if kind.answers() == frame.kind.answers() { (frame.from, frame.to) } else { (frame.to, frame.from) };
            rest = rest + SIFS + self.duration_of(Transmission { from, to, kind });
            next = kind.next();
        }
        rest
    }

    /// Puts a frame on the air, after a space that belongs to the exchange.
    fn begin(&mut self, ether: &mut Ether, frame: Transmission, now: Instant, space: Duration) {
        let lasts = self.duration_of(frame);
        self.busy += ether.occupy(now - space, now + lasts);
        self.initiator(frame).counters.airtime += space + lasts;
        let ear = &mut ether.ears[usize::from(frame.from)];
        if ear.idle() {
            self.stations[usize::from(frame.from)].freeze(now, now);
        }
        (ear.sending, ear.clean) = (true, false);
        for listener in &ether.audible[usize::from(frame.from)] {
            let ear = &mut ether.ears[usize::from(*listener)];
            if ear.idle() {
                self.stations[usize::from(*listener)].freeze(now, now);
            }
            ear.clean = ear.idle();
            ear.noticed |= !ear.sending;
            ear.heard += 1;
        }
        ether.plan(now + lasts, What::Ends(frame));
    }

    /// Sends an answer, or the data that a CTS allows. A station that left does not answer.
    fn answer(&mut self, ether: &mut Ether, frame: Transmission, now: Instant) {
        if frame.kind.answers() && !self.stations[usize::from(frame.from)].present {
            return ether.plan(now - SIFS + answer_timeout(), What::Missed(frame.to));
        }
        self.begin(ether, frame, now, SIFS);
    }

    /// Ends a frame. Stations that heard all of it learn what follows, and the exchange continues or has failed.
    fn end(&mut self, ether: &mut Ether, frame: Transmission, now: Instant, out: &mut MediumOutput) {
        let follows_until = now + self.rest_after(frame);
        ether.ears[usize::from(frame.from)].sending = false;
        self.rest_from(ether, frame.from, now, DIFS);
        let mut arrived = false;
        let listeners = core::mem::take(&mut ether.audible[usize::from(frame.from)]);
        for listener in &listeners {
            let ear = &mut ether.ears[usize::from(*listener)];
            ear.heard -= 1;
            let understood = ear.clean;
            ear.clean = false;
            // A station that was sending when the frame began noticed no frame, only a busy channel.
            let noticed = ear.noticed;
            ear.noticed &= ear.heard > 0;
            if *listener == frame.to {
                arrived = understood && self.takes(ether, frame, now);
                self.initiator(frame).counters.collisions += u64::from(!understood);
            } else if understood {
                ear.reserved_until = ear.reserved_until.max(follows_until);
            }
            let intact = understood && (*listener != frame.to || arrived || frame.kind != Kind::Data);
            self.rest_from(ether, *listener, now, if noticed && !intact { eifs() } else { DIFS });
        }
        ether.audible[usize::from(frame.from)] = listeners;
        self.go_on(ether, frame, arrived, now, out);
    }

    /// Whether the receiver accepts a frame that it understood: the receiver is present, noise did not destroy the
    /// data, and it may answer a request (10.3.2.7).
    fn takes(&mut self, ether: &Ether, frame: Transmission, now: Instant) -> bool {
        let present = self.stations[usize::from(frame.to)].present;
        match frame.kind {
            Kind::Data => {
                let noise = self.prng.chance(self.config.frame_error.value());
                self.initiator(frame).counters.errors += u64::from(noise);
                present && !noise
            }
            Kind::Request => present && ether.ears[usize::from(frame.to)].reserved_until <= now,
            Kind::Clear | Kind::Ack => true,
        }
    }

    /// Counts idle slots from here if the station hears nothing any more.
    fn rest_from(&mut self, ether: &Ether, number: u16, now: Instant, space: Duration) {
        let ear = &ether.ears[usize::from(number)];
        if ear.idle() {
            self.stations[usize::from(number)].counts_from = (now + space).max(ear.reserved_until + DIFS);
        }
    }

    fn go_on(&mut self, ether: &mut Ether, frame: Transmission, arrived: bool, now: Instant, out: &mut MediumOutput) {
        let back = |kind| What::Begins(Transmission { from: frame.to, to: frame.from, kind });
        match (frame.kind, arrived) {
            (Kind::Request, true) => ether.plan(now + SIFS, back(Kind::Clear)),
            (Kind::Clear, true) => {
                self.stations[usize::from(frame.to)].cleared = true;
                ether.plan(now + SIFS, back(Kind::Data));
            }
            (Kind::Data, true) => {
                self.hand_over(frame, out);
                ether.plan(now + SIFS, back(Kind::Ack));
            }
            (Kind::Request | Kind::Data, false) => ether.plan(now + answer_timeout(), What::Missed(frame.from)),
            (Kind::Ack, true) => {
                ether.ears[usize::from(frame.to)].engaged = false;
                self.stations[usize::from(frame.to)].counters.attempts += 1;
                self.stations[usize::from(frame.to)].pop();
                self.next_frame(frame.to);
            }
            (Kind::Clear | Kind::Ack, false) => self.lose(ether, frame.to, now, out),
        }
    }

    /// Delivers data, unless they have been delivered already and only their acknowledgement was lost (10.3.2.11).
    fn hand_over(&mut self, frame: Transmission, out: &mut MediumOutput) {
        let station = &mut self.stations[usize::from(frame.from)];
        if let Some(packet) = station.take_packet() {
            station.counters.delivered.add(&packet);
            out.forward(Gate(frame.to), packet);
        }
    }

    /// Handles a failed attempt.
    fn lose(&mut self, ether: &mut Ether, sender: u16, now: Instant, out: &mut MediumOutput) {
        ether.ears[usize::from(sender)].engaged = false;
        self.retry(sender, out);
        let station = &mut self.stations[usize::from(sender)];
        station.counts_from = station.counts_from.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::station::Frame;
    use super::*;

    /// How long after the longer of two frames that begin together the sender of the shorter one counts slots.
    fn space_after_collision(short: u16, long: u16) -> Duration {
        let hidden = vec![(StationId(3), StationId(4))];
        let mut wlan = Wlan::new(WlanConfig { stations: 5, hidden, ..WlanConfig::default() }).unwrap();
        let mut ether = wlan.ether.take().unwrap();
        for (station, wire_len) in [(short, 100), (long, 1000)] {
            wlan.stations[usize::from(station)].push(Frame { packet: None, wire_len, to: Gate(0) });
        }
        wlan.start_in(&mut ether, Instant::ZERO);
        let ends = Instant::ZERO + wlan.duration_of(Transmission { from: long, to: 0, kind: Kind::Data });
        wlan.run_in(&mut ether, ends, &mut MediumOutput::new());
        wlan.stations[usize::from(short)].counts_from - ends
    }

    #[test]
    fn whoever_sends_notices_no_frame_that_begins_together_with_its_own() {
        assert_eq!([space_after_collision(1, 2), space_after_collision(2, 1)], [DIFS; 2]);
    }
}
