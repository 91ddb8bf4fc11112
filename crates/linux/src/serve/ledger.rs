//! The lines that the user sees on answers: one for each, once the peer has all of it or never will.

use std::collections::VecDeque;

/// Answers that have not been reported yet, the oldest first. Positions count the octets of all answers of a
/// connection.
#[derive(Default)]
pub struct Ledger {
    entries: VecDeque<Entry>,
}

struct Entry {
    /// Status and request.
    what: String,
    /// Position of the body.
    body_at: u64,
    /// Position after the body; `None` while a page is being made.
    end: Option<u64>,
}

impl Ledger {
    /// Notes that an answer to `what` has begun, whose body lies between these positions.
    pub fn begin(&mut self, what: String, body_at: u64, end: Option<u64>) {
        self.entries.push_back(Entry { what, body_at, end });
    }

    /// Sets the end of the last answer, if it was not known.
    pub fn end(&mut self, at: u64) {
        if let Some(last) = self.entries.back_mut() {
            last.end.get_or_insert(at);
        }
    }

    /// Returns whether any answer has not been reported.
    pub fn is_open(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Reports the answers that the peer has acknowledged completely.
    pub fn settle(&mut self, acked_bytes: u64, say: &mut dyn FnMut(&str)) {
        loop {
            match self.entries.front() {
                Some(Entry { what, body_at, end: Some(end) }) if *end <= acked_bytes => {
                    say(&format!("{what} ({} B)", end - body_at));
                }
                _ => return,
            }
            self.entries.pop_front();
        }
    }

    /// Reports the remaining answers when the connection is over: how far each came, and `why` no further.
    pub fn close(&mut self, acked_bytes: u64, why: &str, say: &mut dyn FnMut(&str)) {
        self.settle(acked_bytes, say);
        for Entry { what, body_at, end } in self.entries.drain(..) {
            let sent = acked_bytes.saturating_sub(body_at);
            let of = end.map_or(String::new(), |end| format!(" of {}", end - body_at));
            say(&format!("{what} ({sent}{of} B: {why})"));
        }
    }
}
