//! The destination's end of a link: it knows whom it wants, calls until the relay answers, and notices when it no longer does.

use std::collections::VecDeque;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use snow::HandshakeState;
use units::{Duration, Instant};

use super::admission;
use super::datagram::{Datagram, SessionId, first};
use super::session::Session;
use super::word::{Alive, Content, Renewal, Terms, Word as _, read};
use super::{DATAGRAM_BYTES_MAX, HEARTBEAT, LINK_VERSION, SILENCE_MAX};
use crate::channel::noise::{FIRST_MESSAGE_BYTES, initiator};
use crate::channel::{Identity, PublicKey};

/// Pause after the first call, and after many.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(4);
/// After so much silence the session may be the caller's alone: it calls anew, and keeps the session meanwhile. So it does
/// after so long without a word in the session that an answer has made.
const DOUBT: Duration = Duration::from_millis(2200);
/// Keys are renewed after so long.
const RENEWAL: Duration = Duration::from_secs(120);

/// What is bound into both handshake messages.
pub const PROLOGUE: [u8; 15] = *b"anabranch link\x02";
const _: () = assert!(PROLOGUE[14] == LINK_VERSION);

/// The destination's end.
#[derive(Debug)]
pub struct Caller {
    identity: Identity,
    relay: PublicKey,
    random: ChaCha12Rng,
    /// The last call, while there may be an answer to it.
    call: Option<(SessionId, Box<HandshakeState>)>,
    /// It wants a new session, and calls again and again until there is one.
    is_calling: bool,
    pause: Duration,
    /// While it is calling: when it does so next. Otherwise: when the session is to be renewed.
    call_at: Instant,
    alive_at: Instant,
    session: Option<Session>,
    /// What an answer has made. Nothing but words is sealed in it until the relay is heard in it: the relay may have lost it again to somebody
    /// who played an old call after this one, and still has the session that counts.
    next: Option<Session>,
    /// What the relay sent before it knew of the newer one.
    previous: Option<Session>,
    heard_at: Option<Instant>,
    terms: Option<Terms>,
    /// In which session that was said, and its number there.
    terms_number: Option<(SessionId, u64)>,
    renewal: Option<Renewal>,
    round_trip: Option<Duration>,
    out: VecDeque<Vec<u8>>,
}

/// What a datagram was.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// Nothing of the relay's.
    Nothing,
    /// The relay's, and no packet: where it came from is where the relay is.
    Word,
    /// An IP packet, as far as its first octet tells.
    Packet(&'a [u8]),
}

impl Caller {
    /// The end of the device `identity` that wants `relay`. A seed must never be used twice: draw it for each.
    pub fn new(identity: Identity, relay: PublicKey, seed: [u8; 32], now: Instant) -> Self {
        Self {
            identity,
            relay,
            random: ChaCha12Rng::from_seed(seed),
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

    /// Whether the relay is there.
    pub fn is_up(&self, now: Instant) -> bool {
        self.session.is_some() && self.silence(now).is_some_and(|span| span <= SILENCE_MAX)
    }

    /// When [`Self::is_up`] turns false if nothing more is heard.
    pub fn up_until(&self) -> Option<Instant> {
        self.session.as_ref().and(self.heard_at).map(|at| at + SILENCE_MAX + Duration::from_nanos(1))
    }

    /// For how long nothing was heard of the relay, if anything ever was.
    pub fn silence(&self, now: Instant) -> Option<Duration> {
        self.heard_at.map(|at| now.saturating_since(at))
    }

    /// What the relay said last, if it has said anything.
    pub const fn terms(&self) -> Option<Terms> {
        self.terms
    }

    /// When its volume begins anew, if it has ever said so.
    pub const fn renewal(&self) -> Option<Renewal> {
        self.renewal
    }

    /// From a word to its answer, the last time.
    pub const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Takes a datagram; `room` is for what it carries.
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
        // A message that is not the relay's spoils nothing: the handshake is as it was.
        if own != caller || handshake.read_message(message, &mut []).is_err() {
            self.call = Some((own, handshake));
            return Heard::Nothing;
        }
        let Some(session) = Session::of(*handshake, own, answerer, now) else { return Heard::Nothing };
        self.next = Some(session);
        // The relay uses the session once it hears something in it, and says so in it. Otherwise this was in vain.
        (self.pause, self.call_at) = (PAUSE_FIRST, now + DOUBT);
        self.say_alive(now);
        Heard::Word
    }

    /// The relay was heard in the session of its last answer.
    fn renewed(&mut self, now: Instant) {
        self.previous = core::mem::replace(&mut self.session, self.next.take());
        (self.call, self.is_calling, self.call_at) = (None, false, now + RENEWAL);
    }

    fn heard<'a>(&mut self, content: &'a [u8], number: (SessionId, u64), now: Instant) -> Heard<'a> {
        let heard = match read::<Terms>(content) {
            Some(Content::Packet) => Heard::Packet(content),
            Some(Content::Word(terms)) => {
                if self.is_newest(number) {
                    // Terms that have changed are said unasked, and answer nothing anew.
                    let answers = terms.echo != Instant::ZERO && self.terms.is_none_or(|last| last.echo != terms.echo);
                    if answers {
                        self.round_trip = Some(now.saturating_since(terms.echo));
                    }
                    (self.terms, self.terms_number) = (Some(terms), Some(number));
                }
                Heard::Word
            }
            None => {
                // Anything else is the relay's, but of no use.
                if let Some(Content::Word(renewal)) = read(content) {
                    self.renewal = Some(renewal);
                }
                Heard::Word
            }
        };
        self.heard_at = Some(now);
        heard
    }

    /// Whether a word with that number is newer than the one that counts: datagrams may overtake each other, or be held back by somebody.
    fn is_newest(&self, (session, counter): (SessionId, u64)) -> bool {
        match self.terms_number {
            Some((newest, before)) if newest == session => counter > before,
            Some(_) => self.session.as_ref().is_some_and(|current| current.own == session),
            None => true,
        }
    }

    /// Calls, if it is time, or says that it is there.
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
        // It fails over public keys of small order only, with which there can be no link.
        if handshake.write_message(&[], &mut message).is_ok() {
            let mut datagram = first(own, &message);
            datagram.extend(admission::proof(&self.relay, &datagram));
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

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Instant {
        self.call_due().min(self.alive_at)
    }

    fn call_due(&self) -> Instant {
        match self.heard_at {
            Some(at) if !self.is_calling => self.call_at.min(at + DOUBT),
            _ => self.call_at,
        }
    }

    /// The next datagram of its own.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// Writes a datagram with `packet` to the front of `room`; its length, or none if there is no session yet or it does not fit.
    pub fn seal(&mut self, packet: &[u8], room: &mut [u8]) -> Option<usize> {
        self.session.as_mut()?.seal(packet, room)
    }
}
