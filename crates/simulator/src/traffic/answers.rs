//! Requests and their answers: a user who requests an answer, waits for it, pauses, and requests the next.

use core::cell::RefCell;
use std::rc::Rc;

use units::{Duration, Instant, Prng};

use super::Draw;

/// Octets of a request, whatever the answer.
pub const REQUEST_BYTES: u64 = 100;

/// The sizes of successive answers. Equal generators give equal sizes, so the reader knows where an answer ends.
#[derive(Clone, Debug)]
pub struct Answers {
    sizes_bytes: Draw,
    prng: Prng,
}

impl Answers {
    /// Draws sizes from `sizes_bytes`, rounded and at least one octet.
    pub fn new(sizes_bytes: Draw, prng: Prng) -> Self {
        Self { sizes_bytes, prng }
    }

    /// Returns the octets of the next answer.
    pub fn next_bytes(&mut self) -> u64 {
        (self.sizes_bytes.draw(&mut self.prng).round() as u64).max(1)
    }
}

/// Durations of requests or flows, shared with the reader of measurements. An answer lasts from the request to the last
/// octet, a flow from the first SYN to the last acknowledgement.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Rc<RefCell<Waits>>);

#[derive(Clone, Debug, Default)]
struct Waits {
    /// Durations of completed waits.
    took: Vec<Duration>,
    /// Start of the present wait.
    since: Option<Instant>,
    /// Durations of waits that broke off.
    in_vain: Vec<Duration>,
}

impl Latencies {
    /// Returns the durations of completed waits, in the order of their ends.
    pub fn to_vec(&self) -> Vec<Duration> {
        self.0.borrow().took.clone()
    }

    /// Returns the durations of incomplete waits: up to `now`, or until they broke off.
    pub fn awaited(&self, now: Instant) -> Vec<Duration> {
        let waits = self.0.borrow();
        let still = waits.since.map(|since| now.saturating_since(since));
        waits.in_vain.iter().copied().chain(still).collect()
    }

    /// Ends the present wait without success.
    pub(super) fn break_off(&self, now: Instant) {
        let mut waits = self.0.borrow_mut();
        let waited = waits.since.take().map(|since| now.saturating_since(since));
        waits.in_vain.extend(waited);
    }

    /// Starts a wait at `now`.
    pub(super) fn begin(&self, now: Instant) {
        self.0.borrow_mut().since = Some(now);
    }

    /// Ends the present wait, which took `latency`.
    pub(super) fn push(&self, latency: Duration) {
        let mut waits = self.0.borrow_mut();
        waits.took.push(latency);
        waits.since = None;
    }
}

/// The user who sends requests, separate from the connection that carries them.
#[derive(Clone, Debug)]
pub struct Reader {
    answers: Answers,
    pauses_s: Draw,
    prng: Prng,
    /// Time of the next request; `None` while waiting for an answer.
    next_at: Option<Instant>,
    asked_at: Instant,
    /// Octets of all answers up to the end of the present one.
    end_bytes: u64,
    latencies: Latencies,
}

impl Reader {
    /// Creates a reader of `answers` who sends the first request at `start` and pauses for a random time after each
    /// answer.
    pub fn new(answers: Answers, pauses_s: Draw, prng: Prng, start: Instant) -> Self {
        let next_at = Some(start);
        Self { answers, pauses_s, prng, next_at, asked_at: start, end_bytes: 0, latencies: Latencies::default() }
    }

    /// Returns how long each answer took, shared with the reader.
    pub fn latencies(&self) -> Latencies {
        self.latencies.clone()
    }

    /// Returns the time of the next request; `None` while waiting for an answer.
    pub fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Returns whether a request is due at `now`. If so, the caller must send [`REQUEST_BYTES`] octets.
    pub fn asks(&mut self, now: Instant) -> bool {
        let due = self.next_at.take_if(|at| *at <= now).is_some();
        if due {
            self.asked_at = now;
            self.latencies.begin(now);
            self.end_bytes += self.answers.next_bytes();
        }
        due
    }

    /// Tells the reader that `total_bytes` octets of all answers have arrived.
    pub fn received(&mut self, total_bytes: u64, now: Instant) {
        if self.next_at.is_none() && total_bytes >= self.end_bytes {
            self.latencies.push(now.saturating_since(self.asked_at));
            self.next_at = Some(now + Duration::from_secs_f64(self.pauses_s.draw(&mut self.prng)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_asks_again_after_a_pause() {
        let ms = Instant::from_millis;
        let answers = Answers::new(Draw::Constant(1000.4), Prng::new(1));
        let mut reader = Reader::new(answers, Draw::Constant(2.0), Prng::new(2), ms(10));
        assert_eq!((reader.asks(ms(9)), reader.asks(ms(10)), reader.asks(ms(11))), (false, true, false));
        reader.received(999, ms(40));
        assert_eq!((reader.next_at(), reader.latencies().awaited(ms(40))), (None, vec![Duration::from_millis(30)]));
        reader.received(1000, ms(60));
        assert_eq!(reader.latencies().awaited(ms(70)), []);
        assert_eq!((reader.next_at(), reader.latencies().to_vec()), (Some(ms(2060)), vec![Duration::from_millis(50)]));
        assert!(reader.asks(ms(2060)));
        reader.received(2000, ms(2090));
        assert_eq!(reader.latencies().to_vec().last(), Some(&Duration::from_millis(30)));
    }

    #[test]
    fn what_breaks_off_is_remembered() {
        let (latencies, second) = (Latencies::default(), Instant::from_secs);
        latencies.begin(second(0));
        latencies.break_off(second(3));
        latencies.break_off(second(4));
        latencies.begin(second(5));
        assert_eq!(latencies.awaited(second(6)), [Duration::from_secs(3), Duration::from_secs(1)]);
        latencies.push(Duration::from_secs(2));
        assert_eq!(latencies.awaited(second(9)), [Duration::from_secs(3)]);
    }

    #[test]
    fn an_answer_has_an_octet_at_least() {
        assert_eq!(Answers::new(Draw::Constant(0.0), Prng::new(1)).next_bytes(), 1);
    }
}
