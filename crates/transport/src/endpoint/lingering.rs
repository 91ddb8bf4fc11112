//! TIME-WAIT is memory under the peer's control: a peer that opens and closes connections fast enough fills any limit
//! with it. Connections with nothing else left therefore make room for new ones, the oldest first.

use super::Endpoint;

impl Endpoint {
    /// Whether another connection is possible.
    pub(super) fn has_room(&mut self) -> bool {
        while self.lingering.front().is_some_and(|id| self.get(*id).is_none()) {
            self.lingering.pop_front();
        }
        self.open < self.host.config.connections_max || !self.lingering.is_empty()
    }

    /// Removes the oldest lingering connections if there is no other room; returns false if there are none.
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

    /// Records the connection if nothing is left of it but TIME-WAIT.
    pub(super) fn note_lingering(&mut self, slot: u32) {
        let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() else { return };
        if connection.lingers || !connection.is_lingering() {
            return;
        }
        connection.lingers = true;
        self.lingering.push_back(connection.id);
        // Most of them have ended by themselves.
        if self.lingering.len() > 2 * self.open + 16 {
            let mut lingering = core::mem::take(&mut self.lingering);
            lingering.retain(|id| self.get(*id).is_some());
            self.lingering = lingering;
        }
    }
}
