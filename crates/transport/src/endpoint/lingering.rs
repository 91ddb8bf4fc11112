//! TIME-WAIT is memory that a peer decides over: whoever opens and closes connections fast enough fills any limit with it. So
//! connections of which nothing else is left give way to new ones, the oldest first.

use super::Endpoint;

impl Endpoint {
    /// Another connection is possible.
    pub(super) fn has_room(&mut self) -> bool {
        while self.lingering.front().is_some_and(|id| self.get(*id).is_none()) {
            self.lingering.pop_front();
        }
        self.open < self.host.config.connections_max || !self.lingering.is_empty()
    }

    /// Lets the oldest lingering connection go if there is no other room; false if there is none.
    pub(super) fn make_room(&mut self) -> bool {
        while self.open >= self.host.config.connections_max {
            let Some(oldest) = self.lingering.pop_front() else { return false };
            let Self { host, slots, now, .. } = self;
            let connection = slots[oldest.slot as usize].connection.as_deref_mut();
            if let Some(connection) = connection.filter(|connection| connection.id == oldest) {
                connection.end_time_wait(host, *now);
                self.free_if_spent(oldest.slot);
            }
        }
        true
    }

    /// Takes note if nothing but TIME-WAIT is left of the connection.
    pub(super) fn note_lingering(&mut self, slot: u32) {
        let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() else { return };
        if connection.lingers || !connection.is_lingering() {
            return;
        }
        connection.lingers = true;
        self.lingering.push_back(connection.id);
        // Most have ended by themselves.
        if self.lingering.len() > 2 * self.open + 16 {
            let mut lingering = core::mem::take(&mut self.lingering);
            lingering.retain(|id| self.get(*id).is_some());
            self.lingering = lingering;
        }
    }
}
