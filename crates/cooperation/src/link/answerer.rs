//! The relay's end of all its links: it answers the destinations that it knows, and is silent to everybody else.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use units::{Duration, Instant};

use super::admission::{Call, Door};
use super::caller::PROLOGUE;
use super::datagram::{Datagram, SessionId, second};
use super::session::Session;
use super::unconfirmed::Unconfirmed;
use super::word::{Alive, Content, Lends, Renewal, Terms, Word as _, read};
use super::{DATAGRAM_BYTES_MAX, SILENCE_MAX};
use crate::channel::noise::{FIRST_MESSAGE_BYTES, SECOND_MESSAGE_BYTES, responder};
use crate::channel::{Identity, PublicKey};

/// Maximum age of a session; destinations renew their sessions much sooner.
const SESSION_MAX: Duration = Duration::from_secs(600);

/// The relay's end of all its links. The owner gives each destination a number.
#[derive(Debug)]
pub struct Answerer {
    identity: Identity,
    random: ChaCha12Rng,
    peers: BTreeMap<u8, Peer>,
    out: VecDeque<(SocketAddr, Vec<u8>)>,
}

#[derive(Debug)]
struct Peer {
    key: PublicKey,
    /// `None` if no link is possible with this key.
    door: Option<Door>,
    unconfirmed: Unconfirmed,
    session: Option<Session>,
    /// Session before the current one, for datagrams that the destination sent before it switched.
    previous: Option<Session>,
    place: Option<SocketAddr>,
    heard_at: Option<Instant>,
    terms: Option<Terms>,
    renewal: Option<Renewal>,
}

/// The result of receiving a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Caught<'a> {
    /// The datagram is not from a known destination.
    Nothing,
    /// A destination's call, which is answered; may be a replay.
    Call,
    /// A call that was received before: a destination calls every address at which this relay may be, and several of
    /// them may lead here. May also be a replay.
    Again,
    /// A call of no known destination: perhaps it was paired a moment ago.
    Unknown,
    /// A destination's datagram that is not a packet.
    Word(u8),
    /// An IP packet of a destination, judging by its first octet only.
    Packet(u8, &'a [u8]),
}

impl Answerer {
    /// Creates the relay's end for the device `identity`. Never use a seed twice.
    pub fn new(identity: Identity, seed: [u8; 32]) -> Self {
        let random = ChaCha12Rng::from_seed(seed);
        Self { identity, random, peers: BTreeMap::new(), out: VecDeque::new() }
    }

    /// Sets the destinations that may use this relay from now on. The links of destinations that stay are kept.
    pub fn set_peers(&mut self, peers: &[(u8, PublicKey)]) {
        self.peers.retain(|number, peer| peers.contains(&(*number, peer.key)));
        for (number, key) in peers {
            self.peers.entry(*number).or_insert_with(|| Peer::new(&self.identity, *key));
        }
    }

    /// Returns whether the link to a destination is up.
    pub fn is_up(&self, peer: u8, now: Instant) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.is_up(now))
    }

    /// Returns the address from which a destination was last heard.
    pub fn place(&self, peer: u8) -> Option<SocketAddr> {
        self.peers.get(&peer)?.place
    }

    /// Sets the terms for a destination; it hears them in the answer to its next word.
    pub fn set_terms(&mut self, peer: u8, terms: Terms) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            let echo = peer.terms.map_or(terms.echo, |before| before.echo);
            peer.terms = Some(Terms { echo, ..terms });
        }
    }

    /// Sets when the volume lent to a destination renews; the destination hears it with terms that say that the volume
    /// is spent.
    pub fn set_renewal(&mut self, peer: u8, renewal: Option<Renewal>) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.renewal = renewal;
        }
    }

    /// Sends the terms now, because something that matters has changed.
    pub fn say_terms(&mut self, peer: u8) {
        let Some((peer, terms)) = self.peers.get_mut(&peer).and_then(|peer| peer.terms.map(|terms| (peer, terms)))
        else {
            return;
        };
        let renewal = peer.renewal.filter(|_| terms.lends == Lends::NoVolume);
        // The renewal goes first, so the destination knows it when it learns that no volume is left.
        for word in [renewal.map(|renewal| renewal.octets()), Some(terms.octets())].into_iter().flatten() {
            let mut room = [0; DATAGRAM_BYTES_MAX];
            let sealed = peer.session.as_mut().and_then(|session| session.seal(&word, &mut room));
            if let (Some(place), Some(len)) = (peer.place, sealed) {
                self.out.push_back((place, room[..len].to_vec()));
            }
        }
    }

    /// Handles a datagram that came from `place`; `room` receives the decrypted content.
    pub fn handle_datagram<'a>(
        &mut self,
        place: SocketAddr,
        octets: &[u8],
        room: &'a mut [u8],
        now: Instant,
    ) -> Caught<'a> {
        match Datagram::read(octets) {
            Some(Datagram::First { caller, message, .. }) => {
                let made = |(number, peer): (&u8, &Peer)| Some((*number, peer.door.as_ref()?.read(octets)?));
                let Some((number, call)) = self.peers.iter().find_map(made) else { return Caught::Unknown };
                self.called(number, &call, place, (caller, message), now)
            }
            Some(Datagram::Sealed { receiver, counter, ciphertext }) => {
                let opened = self.peers.iter_mut().find_map(|(number, peer)| {
                    peer.open(receiver, counter, ciphertext, room, now).map(|len| (*number, peer, len))
                });
                let Some((number, peer, len)) = opened else { return Caught::Nothing };
                (peer.place, peer.heard_at) = (Some(place), Some(now));
                self.heard(number, &room[..len])
            }
            _ => Caught::Nothing,
        }
    }

    /// Handles a call. An old one is refused while the destination is heard: if its clock was set back, it is not.
    fn called(
        &mut self,
        number: u8,
        call: &Call,
        place: SocketAddr,
        handshake: (SessionId, &[u8; FIRST_MESSAGE_BYTES]),
        now: Instant,
    ) -> Caught<'static> {
        let Some(peer) = self.peers.get_mut(&number) else { return Caught::Nothing };
        let is_up = peer.is_up(now);
        let Some(door) = &mut peer.door else { return Caught::Nothing };
        if door.has_admitted(call) {
            return Caught::Again;
        }
        if is_up && door.is_old(call) || !door.admits(call, now) {
            return Caught::Nothing;
        }
        self.answer(number, call, place, handshake, now).map_or(Caught::Nothing, |()| Caught::Call)
    }

    /// Answers a call; returns `None` if the message is not a valid handshake message.
    fn answer(
        &mut self,
        number: u8,
        call: &Call,
        place: SocketAddr,
        (caller, message): (SessionId, &[u8; FIRST_MESSAGE_BYTES]),
        now: Instant,
    ) -> Option<()> {
        let mut seed = [0; 32];
        self.random.fill_bytes(&mut seed);
        let mut handshake = responder(&self.identity, &PROLOGUE, seed);
        handshake.read_message(message, &mut []).ok()?;
        let own = self.free_session();
        let peer = self.peers.get_mut(&number)?;
        if handshake.get_remote_static() != Some(peer.key.octets().as_slice()) {
            return None;
        }
        let mut answer = [0; SECOND_MESSAGE_BYTES];
        handshake.write_message(&[], &mut answer).ok()?;
        peer.unconfirmed.add(call.time, Session::of(handshake, own, caller, now)?);
        self.out.push_back((place, second(caller, own, &answer)));
        Some(())
    }

    /// Returns a number that no session at this relay uses.
    fn free_session(&mut self) -> SessionId {
        loop {
            let id = SessionId(self.random.next_u32());
            if self.peers.values().flat_map(Peer::sessions).all(|session| session.own != id) {
                return id;
            }
        }
    }

    fn heard<'a>(&mut self, number: u8, content: &'a [u8]) -> Caught<'a> {
        match read::<Alive>(content) {
            Some(Content::Packet) => Caught::Packet(number, content),
            Some(Content::Word(alive)) => {
                if let Some(terms) = self.peers.get_mut(&number).and_then(|peer| peer.terms.as_mut()) {
                    terms.echo = alive.at;
                }
                self.say_terms(number);
                Caught::Word(number)
            }
            // Authentic, but not a word that this version knows.
            None => Caught::Word(number),
        }
    }

    /// Returns the relay's next own datagram and its destination address.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.out.pop_front()
    }

    /// Writes a datagram with `packet` for a destination to the front of `room`. Returns its length and destination
    /// address, or `None` if the link is down or the packet does not fit.
    pub fn seal(&mut self, peer: u8, packet: &[u8], room: &mut [u8], now: Instant) -> Option<(SocketAddr, usize)> {
        let peer = self.peers.get_mut(&peer).filter(|peer| peer.is_up(now))?;
        let len = peer.session.as_mut()?.seal(packet, room)?;
        Some((peer.place?, len))
    }
}

impl Peer {
    fn new(own: &Identity, key: PublicKey) -> Self {
        let (unconfirmed, session, previous) = (Unconfirmed::default(), None, None);
        let door = Door::between(own, key);
        Self { key, door, unconfirmed, session, previous, place: None, heard_at: None, terms: None, renewal: None }
    }

    fn is_up(&self, now: Instant) -> bool {
        self.session.is_some() && self.heard_at.is_some_and(|at| now.saturating_since(at) <= SILENCE_MAX)
    }

    fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.unconfirmed.sessions().chain(&self.session).chain(&self.previous)
    }

    fn open(
        &mut self,
        receiver: SessionId,
        counter: u64,
        ciphertext: &[u8],
        room: &mut [u8],
        now: Instant,
    ) -> Option<usize> {
        let own =
            |session: &&mut Session| session.own == receiver && now.saturating_since(session.since) <= SESSION_MAX;
        if let Some(session) = self.unconfirmed.find(receiver).filter(own) {
            let len = session.open(counter, ciphertext, room)?;
            let (call, confirmed) = self.unconfirmed.confirm(receiver)?;
            self.previous = self.session.replace(confirmed);
            if let Some(door) = &mut self.door {
                door.confirm(call);
            }
            return Some(len);
        }
        let session = [&mut self.session, &mut self.previous].into_iter().flatten().find(own)?;
        session.open(counter, ciphertext, room)
    }
}
