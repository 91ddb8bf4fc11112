//! What is told people of answers: a line for each, once the peer has all of it or never will.

use std::collections::VecDeque;

/// Answers of which nothing was told yet, the oldest first. Positions count the octets of all answers of a connection.
#[derive(Default)]
pub struct Ledger {
    entries: VecDeque<Entry>,
}

struct Entry {
    /// The status and what was asked for.
    what: String,
    /// Where the body begins.
    body_at: u64,
    /// Where it ends; not known of a page that is still made.
    end: Option<u64>,
}

impl Ledger {
    /// An answer to `what` has begun, whose body lies between these positions.
    pub fn begin(&mut self, what: String, body_at: u64, end: Option<u64>) {
        self.entries.push_back(Entry { what, body_at, end });
    }

    /// The last answer ends here, if that was not known.
    pub fn end(&mut self, at: u64) {
        if let Some(last) = self.entries.back_mut() {
            last.end.get_or_insert(at);
        }
    }

    /// Whether something is still to be told.
    pub fn is_open(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Tells of the answers that the peer has acknowledged as a whole.
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

    /// The connection is over: tells of the others how far they came, and `why` no further.
    pub fn close(&mut self, acked_bytes: u64, why: &str, say: &mut dyn FnMut(&str)) {
        self.settle(acked_bytes, say);
        for Entry { what, body_at, end } in self.entries.drain(..) {
            let sent = acked_bytes.saturating_sub(body_at);
            let of = end.map_or(String::new(), |end| format!(" of {}", end - body_at));
            say(&format!("{what} ({sent}{of} B: {why})"));
        }
    }
}
