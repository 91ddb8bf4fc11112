//! Sessions of answered calls in which the destination has not been heard yet. Any of the calls may be a replay, but only
//! the destination can send something in a session. So several wait side by side, and the one that counts is the one in
//! which the destination is heard.

use super::call_time::CallTime;
use super::datagram::SessionId;
use super::session::Session;

/// Number of sessions that stay because no call came after theirs.
const LATEST: usize = 4;
/// Number of further sessions that stay because the destination dated no call later.
const NEWEST: usize = 4;

/// The sessions of one destination that wait for its first word, in the order of their calls' arrival.
#[derive(Debug, Default)]
pub struct Unconfirmed(Vec<(CallTime, Session)>);

impl Unconfirmed {
    /// Adds the session of an answered call. If there are too many, one leaves: the one with the oldest call, but none
    /// of the latest. So old calls do not displace a newer one, however many there are. If the clock was set back, few
    /// do not.
    pub fn add(&mut self, call: CallTime, session: Session) {
        self.0.push((call, session));
        if self.0.len() > NEWEST + LATEST {
            let leaver = (0..=NEWEST).min_by_key(|index| self.0[*index].0);
            leaver.map(|index| self.0.remove(index));
        }
    }

    /// Returns the session with this number.
    pub fn find(&mut self, own: SessionId) -> Option<&mut Session> {
        self.0.iter_mut().map(|(_, session)| session).find(|session| session.own == own)
    }

    /// Takes the session with this number, in which the destination was heard, and the time of its call. Those that came
    /// before it are over.
    pub fn confirm(&mut self, own: SessionId) -> Option<(CallTime, Session)> {
        let index = self.0.iter().position(|(_, session)| session.own == own)?;
        self.0.drain(..=index).next_back()
    }

    /// Returns all sessions.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.0.iter().map(|(_, session)| session)
    }
}
