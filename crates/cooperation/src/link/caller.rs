//! The destination's end of a link: it calls its relay until the relay answers, and notices when the relay falls
//! silent.

use std::collections::VecDeque;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use snow::HandshakeState;
use units::{Duration, Instant};

use super::admission::Proofs;
use super::call_time::CallClock;
use super::datagram::{Datagram, SessionId, first};
use super::session::Session;
use super::word::{Alive, Content, Renewal, Terms, Word as _, read};
use super::{DATAGRAM_BYTES_MAX, HEARTBEAT, LINK_VERSION, SILENCE_MAX};
use crate::channel::noise::{FIRST_MESSAGE_BYTES, initiator};
use crate::channel::{Identity, PublicKey};

/// Pause after the first call, and its maximum after many.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(4);
/// After this much silence, the relay may have lost the session: the destination calls again and keeps the session
/// meanwhile. It also calls again if an answered session stays silent for this long.
const DOUBT: Duration = Duration::from_millis(2200);
/// Age at which a session is renewed with fresh keys.
const RENEWAL: Duration = Duration::from_secs(120);

/// The prologue, which both handshake messages authenticate.
pub const PROLOGUE: [u8; 15] = *b"anabranch link\x03";
const _: () = assert!(PROLOGUE[14] == LINK_VERSION);

/// The destination's end.
#[derive(Debug)]
pub struct Caller {
    identity: Identity,
    relay: PublicKey,
    /// `None` if no link is possible with the relay's key.
    proofs: Option<Proofs>,
    random: ChaCha12Rng,
    clock: CallClock,
    /// The last call, while an answer to it may still come.
    call: Option<(SessionId, Box<HandshakeState>)>,
    /// Whether this end wants a new session; it repeats its call until it has one.
    is_calling: bool,
    pause: Duration,
    /// While calling: time of the next call. Otherwise: time at which to renew the session.
    call_at: Instant,
    alive_at: Instant,
    session: Option<Session>,
    /// Session of an answered handshake. It carries only words until the relay is heard in it: a replay of an older
    /// call may have replaced it at the relay, which then still uses the current session.
    next: Option<Session>,
    /// Session before the current one, for datagrams that the relay sent before it switched.
    previous: Option<Session>,
    heard_at: Option<Instant>,
    terms: Option<Terms>,
    /// The session in which the terms arrived, and their counter.
    terms_number: Option<(SessionId, u64)>,
    renewal: Option<Renewal>,
    round_trip: Option<Duration>,
    out: VecDeque<Vec<u8>>,
}

/// The result of receiving a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// The datagram is not from the relay.
    Nothing,
    /// A datagram of the relay that is not a packet; the relay is at the address from which it came.
    Word,
    /// An IP packet, judging by its first octet only.
    Packet(&'a [u8]),
}

impl Caller {
    /// Creates the end of the device `identity` on a link to `relay`. Never use a seed twice: draw one for each link.
    /// `since_1970`: the time by the device's clock, by which the relay recognises old calls.
    pub fn new(identity: Identity, relay: PublicKey, seed: [u8; 32], since_1970: Duration, now: Instant) -> Self {
        Self {
            proofs: Proofs::between(&identity, relay),
            identity,
            relay,
            random: ChaCha12Rng::from_seed(seed),
            clock: CallClock::new(since_1970, now),
            call: None,
            is_calling: true,
            pause: PAUSE_FIRST,
            call_at: now,
            alive_at: Instant::FAR_FUTURE,
            session: None,
            next: None,
            previous: None,
            heard_at: None,
            terms: None,
            terms_number: None,
            renewal: None,
            round_trip: None,
            out: VecDeque::new(),
        }
    }

    /// Returns whether the link is up.
    pub fn is_up(&self, now: Instant) -> bool {
        self.session.is_some() && self.silence(now).is_some_and(|span| span <= SILENCE_MAX)
    }

    /// Returns when [`Self::is_up`] turns false if nothing more is heard.
    pub fn up_until(&self) -> Option<Instant> {
        self.session.as_ref().and(self.heard_at).map(|at| at + SILENCE_MAX + Duration::from_nanos(1))
    }

    /// Returns how long the relay has been silent; `None` if it was never heard.
    pub fn silence(&self, now: Instant) -> Option<Duration> {
        self.heard_at.map(|at| now.saturating_since(at))
    }

    /// Returns the relay's latest terms, if it has sent any.
    pub const fn terms(&self) -> Option<Terms> {
        self.terms
    }

    /// Returns when the relay's volume renews, if the relay has ever said so.
    pub const fn renewal(&self) -> Option<Renewal> {
        self.renewal
    }

    /// Returns the latest round-trip time from a word to its answer.
    pub const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Handles a datagram; `room` receives the decrypted content.
    pub fn handle_datagram<'a>(&mut self, octets: &[u8], room: &'a mut [u8], now: Instant) -> Heard<'a> {
        match Datagram::read(octets) {
            Some(Datagram::Second { caller, answerer, message }) => self.answered(caller, answerer, message, now),
            Some(Datagram::Sealed { receiver, counter, ciphertext }) => {
                let sessions = [&mut self.next, &mut self.session, &mut self.previous];
                let found = sessions.into_iter().flatten().find(|session| session.own == receiver);
                let Some(len) = found.and_then(|session| session.open(counter, ciphertext, room)) else {
                    return Heard::Nothing;
                };
                if self.next.as_ref().is_some_and(|next| next.own == receiver) {
                    self.renewed(now);
                }
                self.heard(&room[..len], (receiver, counter), now)
            }
            Some(Datagram::First { .. }) | None => Heard::Nothing,
        }
    }

    fn answered<'a>(&mut self, caller: SessionId, answerer: SessionId, message: &[u8], now: Instant) -> Heard<'a> {
        let Some((own, mut handshake)) = self.call.take() else { return Heard::Nothing };
        // A message from anybody but the relay does no harm: a failed read leaves the handshake unchanged.
        if own != caller || handshake.read_message(message, &mut []).is_err() {
            self.call = Some((own, handshake));
            return Heard::Nothing;
        }
        let Some(session) = Session::of(*handshake, own, answerer, now) else { return Heard::Nothing };
        self.next = Some(session);
        // The relay uses the session after it receives something in it, and answers in it. If it does not, call again.
        (self.pause, self.call_at) = (PAUSE_FIRST, now + DOUBT);
        self.say_alive(now);
        Heard::Word
    }

    /// Switches to the session of the last answer, because the relay was heard in it.
    fn renewed(&mut self, now: Instant) {
        self.previous = core::mem::replace(&mut self.session, self.next.take());
        (self.call, self.is_calling, self.call_at) = (None, false, now + RENEWAL);
    }

    fn heard<'a>(&mut self, content: &'a [u8], number: (SessionId, u64), now: Instant) -> Heard<'a> {
        let heard = match read::<Terms>(content) {
            Some(Content::Packet) => Heard::Packet(content),
            Some(Content::Word(terms)) => {
                if self.is_newest(number) {
                    // Changed terms also come unasked; they repeat the last echo and measure no round trip.
                    let answers = terms.echo != Instant::ZERO && self.terms.is_none_or(|last| last.echo != terms.echo);
                    if answers {
                        self.round_trip = Some(now.saturating_since(terms.echo));
                    }
                    (self.terms, self.terms_number) = (Some(terms), Some(number));
                }
                Heard::Word
            }
            None => {
                // Anything else is authentic, but not a word that this version knows.
                if let Some(Content::Word(renewal)) = read(content) {
                    self.renewal = Some(renewal);
                }
                Heard::Word
            }
        };
        self.heard_at = Some(now);
        heard
    }

    /// Returns whether a word with this counter is newer than the current terms: datagrams may overtake each other, or
    /// an attacker may hold them back.
    fn is_newest(&self, (session, counter): (SessionId, u64)) -> bool {
        match self.terms_number {
            Some((newest, before)) if newest == session => counter > before,
            Some(_) => self.session.as_ref().is_some_and(|current| current.own == session),
            None => true,
        }
    }

    /// Calls, or sends `Alive`, whichever is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if !self.is_calling && self.call_due() <= now {
            (self.is_calling, self.pause, self.call_at) = (true, PAUSE_FIRST, now);
        }
        if self.is_calling && self.call_at <= now {
            self.call(now);
        }
        if self.alive_at <= now {
            self.say_alive(now);
        }
    }

    fn call(&mut self, now: Instant) {
        let mut seed = [0; 32];
        self.random.fill_bytes(&mut seed);
        let own = SessionId(self.random.next_u32());
        self.call_at = now + self.pause;
        self.pause = self.pause.saturating_mul(2).min(PAUSE_MAX);
        let mut handshake = initiator(&self.identity, self.relay, &PROLOGUE, seed);
        let mut message = [0; FIRST_MESSAGE_BYTES];
        let Some(proofs) = &self.proofs else { return };
        if handshake.write_message(&[], &mut message).is_ok() {
            let time = proofs.mask(self.clock.next(now).octets(), &message);
            let mut datagram = first(own, &message, time);
            datagram.extend(proofs.of(&datagram));
            self.out.push_back(datagram);
            self.call = Some((own, Box::new(handshake)));
        }
    }

    fn say_alive(&mut self, now: Instant) {
        self.alive_at = now + HEARTBEAT;
        let mut room = [0; DATAGRAM_BYTES_MAX];
        for session in [&mut self.session, &mut self.next].into_iter().flatten() {
            if let Some(len) = session.seal(&Alive { at: now }.octets(), &mut room) {
                self.out.push_back(room[..len].to_vec());
            }
        }
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Instant {
        self.call_due().min(self.alive_at)
    }

    fn call_due(&self) -> Instant {
        match self.heard_at {
            Some(at) if !self.is_calling => self.call_at.min(at + DOUBT),
            _ => self.call_at,
        }
    }

    /// Returns the next own datagram.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// Writes a datagram with `packet` to the front of `room`. Returns its length, or `None` if there is no session yet
    /// or the packet does not fit.
    pub fn seal(&mut self, packet: &[u8], room: &mut [u8]) -> Option<usize> {
        self.session.as_mut()?.seal(packet, room)
    }
}
