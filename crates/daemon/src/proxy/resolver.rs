//! Resolves names to addresses, on separate threads because this device's resolver blocks.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use units::{Duration, Instant};

/// Maximum number of threads.
const THREADS_MAX: usize = 16;
const STACK_BYTES: usize = 256 << 10;
/// Maximum number of names that wait for a thread.
const QUEUE_MAX: usize = 1024;
/// How long an answer is reused, and how long a failure.
const KEEP_ANSWER: Duration = Duration::from_secs(10);
const KEEP_FAILURE: Duration = Duration::from_secs(2);
/// Maximum number of cached answers.
const CACHE_MAX: usize = 1024;
/// Maximum number of addresses of a name.
const ADDRESSES_MAX: usize = 16;

/// Looks up a name; several threads call it at once.
pub type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;
/// The addresses, or why there are none.
pub type Answer = Result<Vec<IpAddr>, String>;

/// A name, with its answer.
type Answered = (String, Answer);

/// Looks names up as the other programs of this device do.
pub fn system_lookup() -> Lookup {
    Arc::new(|name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip().to_canonical()).collect()))
}

/// Resolves names, and caches the answers for a while.
pub struct Resolver {
    shared: Arc<Shared>,
    lookup: Lookup,
    wake: Arc<dyn Fn() + Send + Sync>,
    answers: (Sender<Answered>, Receiver<Answered>),
    threads: usize,
    /// Size of a thread's stack.
    stack_bytes: usize,
    /// Names being resolved, with those that wait for them.
    asked: BTreeMap<String, Vec<u64>>,
    cache: BTreeMap<String, (Answer, Instant)>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<String>,
    /// Number of names being looked up in each zone.
    at_work: BTreeMap<String, usize>,
    idle: usize,
    ended: bool,
}

impl State {
    /// Takes the next name that may be looked up now. A zone gets a thread only if more are free than it has: the first
    /// zone whose name servers are silent holds half of the threads, the next one a quarter, and so on. So there is one
    /// for the names of others.
    fn take(&mut self) -> Option<String> {
        let free = THREADS_MAX.saturating_sub(self.at_work.values().sum());
        let may_start = |name: &String| self.at_work.get(zone(name)).copied().unwrap_or(0) < free;
        let name = self.queue.iter().position(may_start).and_then(|index| self.queue.remove(index))?;
        *self.at_work.entry(zone(&name).to_owned()).or_default() += 1;
        Some(name)
    }

    /// Notes that a name was looked up.
    fn finish(&mut self, name: &str) {
        if let Some(at_work) = self.at_work.get_mut(zone(name)) {
            *at_work -= 1;
            if *at_work == 0 {
                self.at_work.remove(zone(name));
            }
        }
    }
}

/// Returns the part of a name that has name servers of its own, as far as the name shows it: the last two labels, or
/// three where the second is one like `co` in `co.uk`.
fn zone(name: &str) -> &str {
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut labels = name.rsplit('.');
    let is_country = labels.next().is_some_and(|label| label.len() == 2);
    let is_kind = labels.next().is_some_and(|label| label.len() <= 3);
    let count = if is_country && is_kind { 3 } else { 2 };
    name.rmatch_indices('.').nth(count - 1).map_or(name, |(dot, _)| &name[dot + 1..])
}

/// Result of [`Resolver::ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The answer is in the cache.
    Known(Answer),
    /// [`Resolver::poll`] will return the answer.
    Waits,
    /// Too many names wait already.
    Full,
}

impl Resolver {
    /// Creates a resolver. Its threads call `wake` when [`Self::poll`] has something to return.
    pub fn new(lookup: Lookup, wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::default(),
            lookup,
            wake: Arc::new(wake),
            answers: channel(),
            threads: 0,
            stack_bytes: STACK_BYTES,
            asked: BTreeMap::new(),
            cache: BTreeMap::new(),
        }
    }

    /// Asks for the addresses of a name, for `waiter`.
    pub fn ask(&mut self, name: &str, waiter: u64, now: Instant) -> Asked {
        if let Some((answer, _)) = self.cache.get(name).filter(|(_, until)| *until > now) {
            return Asked::Known(answer.clone());
        }
        if let Some(waiters) = self.asked.get_mut(name) {
            waiters.push(waiter);
            return Asked::Waits;
        }
        let (idle, waiting) = {
            let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.idle, state.queue.len())
        };
        if waiting >= QUEUE_MAX {
            return Asked::Full;
        }
        // First, so that nothing waits for a thread that there is not.
        if idle <= waiting && self.threads < THREADS_MAX && !self.hire() && self.threads == 0 {
            return Asked::Full;
        }
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).queue.push_back(name.to_owned());
        self.shared.changed.notify_one();
        self.asked.insert(name.to_owned(), vec![waiter]);
        Asked::Waits
    }

    /// Starts a thread. Returns false if that fails.
    fn hire(&mut self) -> bool {
        let (shared, lookup, wake) = (Arc::clone(&self.shared), Arc::clone(&self.lookup), Arc::clone(&self.wake));
        let answers = self.answers.0.clone();
        let thread = thread::Builder::new().name("resolver".into()).stack_size(self.stack_bytes);
        let hired = thread.spawn(move || work(&shared, &lookup, &answers, wake.as_ref())).is_ok();
        self.threads += usize::from(hired);
        hired
    }

    /// Returns the answers that have arrived, each with those that wait for it.
    pub fn poll(&mut self, now: Instant) -> Vec<(Vec<u64>, Answer)> {
        let mut told = Vec::new();
        while let Ok((name, answer)) = self.answers.1.try_recv() {
            told.push((self.asked.remove(&name).unwrap_or_default(), answer.clone()));
            let keep = if answer.is_ok() { KEEP_ANSWER } else { KEEP_FAILURE };
            if self.cache.len() >= CACHE_MAX {
                self.cache.retain(|_, (_, until)| *until > now);
            }
            if self.cache.len() < CACHE_MAX {
                self.cache.insert(name, (answer, now + keep));
            }
        }
        told
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        // A thread that waits for a name server ends after its answer; there is no need to wait for the thread.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.shared.changed.notify_all();
    }
}

fn work(shared: &Shared, lookup: &Lookup, answers: &Sender<Answered>, wake: &(dyn Fn() + Send + Sync)) {
    loop {
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let name = loop {
            if state.ended {
                return;
            }
            if let Some(name) = state.take() {
                break name;
            }
            state.idle += 1;
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        };
        drop(state);
        let answer = match lookup(&name) {
            Ok(addresses) if addresses.is_empty() => Err("it has none".into()),
            Ok(addresses) => Ok(without_repetitions(addresses)),
            Err(error) => Err(explain(&error)),
        };
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.finish(&name);
        drop(state);
        // Besides the name that this thread takes next, another one may have become possible.
        shared.changed.notify_one();
        if answers.send((name, answer)).is_err() {
            return;
        }
        wake();
    }
}

fn without_repetitions(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let mut seen = Vec::new();
    for ip in addresses {
        if !seen.contains(&ip) && seen.len() < ADDRESSES_MAX {
            seen.push(ip);
        }
    }
    seen
}

/// Whether a look-up failed because no name server answered, and not because of its name: the system's resolver reports
/// EAI_AGAIN, and this program says that an answer took too long.
pub(crate) fn is_silence(why: &str) -> bool {
    why == TOO_LATE || why.starts_with("Temporary failure")
}

/// The reason for a look-up whose answer was no longer waited for.
pub(crate) const TOO_LATE: &str = "the name servers did not answer in time";

/// Returns the message of the system's resolver, without its redundant prefix.
pub(crate) fn explain(error: &io::Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to lookup address information: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    fn ip() -> IpAddr {
        "192.0.2.1".parse().unwrap()
    }

    #[test]
    fn a_time_without_threads_is_over_when_there_are_some_again() {
        let (mut resolver, go, wakes) = resolver();
        // No address space has room for such a stack.
        resolver.stack_bytes = 1 << 60;
        for number in 0..=QUEUE_MAX {
            assert_eq!(resolver.ask(&format!("{number}.test"), 0, Instant::ZERO), Asked::Full);
        }
        resolver.stack_bytes = STACK_BYTES;
        assert_eq!(resolver.ask("a.test", 1, Instant::ZERO), Asked::Waits);
        go.send(Ok(vec![ip()])).unwrap();
        wakes.recv().unwrap();
        assert_eq!(resolver.poll(Instant::ZERO), [(vec![1], Ok(vec![ip()]))]);
    }

    /// A resolver whose look-ups return what is sent to `go`, and a channel that receives its wake-ups.
    fn resolver() -> (Resolver, Sender<io::Result<Vec<IpAddr>>>, Receiver<()>) {
        let (go, may_go) = channel();
        let may_go = Mutex::new(may_go);
        let lookup: Lookup = Arc::new(move |_| {
            let result: io::Result<Vec<IpAddr>> =
                may_go.lock().unwrap().recv().unwrap_or_else(|_| Err(io::Error::other("the test is over")));
            result
        });
        let (woken, wakes) = channel();
        let woken = Mutex::new(woken);
        let wake = move || woken.lock().unwrap().send(()).unwrap_or_default();
        (Resolver::new(lookup, wake), go, wakes)
    }

    #[test]
    fn a_name_is_asked_for_once_and_kept() {
        let (mut resolver, go, wakes) = resolver();
        let now = Instant::from_secs(1);
        assert_eq!(resolver.ask("a.example", 1, now), Asked::Waits);
        assert_eq!(resolver.ask("a.example", 2, now), Asked::Waits);
        go.send(Ok(vec![ip(), ip()])).unwrap();
        wakes.recv().unwrap();
        assert_eq!(resolver.poll(now), [(vec![1, 2], Ok(vec![ip()]))]);
        assert_eq!(resolver.ask("a.example", 3, now + Duration::from_secs(9)), Asked::Known(Ok(vec![ip()])));
        assert_eq!(resolver.ask("a.example", 4, now + Duration::from_secs(10)), Asked::Waits);
        go.send(Err(io::Error::other("no"))).unwrap();
        wakes.recv().unwrap();
        assert_eq!(resolver.poll(now), [(vec![4], Err("no".to_owned()))]);
        assert_eq!(resolver.ask("a.example", 5, now + Duration::from_secs(1)), Asked::Known(Err("no".into())));
    }

    #[test]
    fn a_zone_whose_name_servers_are_silent_holds_up_no_other() {
        let (_silence, never) = channel::<()>();
        let never = Mutex::new(never);
        let lookup: Lookup = Arc::new(move |name| {
            if zone(name).starts_with("silent") {
                let _ = never.lock().unwrap().recv();
            }
            Ok(vec![ip()])
        });
        let (woken, wakes) = channel();
        let woken = Mutex::new(woken);
        let mut resolver = Resolver::new(lookup, move || woken.lock().unwrap().send(()).unwrap_or_default());
        let now = Instant::ZERO;
        for number in 0..100 {
            for zone in ["silent.example", "silent.co.uk", "silent2.example"] {
                assert_eq!(resolver.ask(&format!("www{number}.{zone}"), 0, now), Asked::Waits);
            }
        }
        for waiter in 1..=50 {
            assert_eq!(resolver.ask(&format!("www{waiter}.good.co.uk"), waiter, now), Asked::Waits);
        }
        let mut served = Vec::new();
        while served.len() < 50 {
            wakes.recv_timeout(std::time::Duration::from_secs(10)).expect("an answer");
            served.extend(resolver.poll(now).into_iter().flat_map(|(waiters, _)| waiters));
        }
        served.sort_unstable();
        assert!(served.into_iter().eq(1..=50));
    }

    #[test]
    fn zones_are_what_names_end_with() {
        for (name, expected) in [
            ("localhost", "localhost"),
            ("example.org", "example.org"),
            ("a.b.example.org.", "example.org"),
            ("a.example.co.uk", "example.co.uk"),
            ("co.uk", "co.uk"),
            ("a.example.de", "example.de"),
            ("..", "."),
            ("", ""),
        ] {
            assert_eq!(zone(name), expected, "{name}");
        }
    }

    #[test]
    fn silent_name_servers_hold_up_a_bounded_number() {
        let (mut resolver, go, _wakes) = resolver();
        let mut waits = 0;
        for number in 0..2 * QUEUE_MAX {
            match resolver.ask(&format!("{number}.example"), 0, Instant::ZERO) {
                Asked::Waits => waits += 1,
                Asked::Full => break,
                Asked::Known(answer) => panic!("{answer:?}"),
            }
        }
        assert!((QUEUE_MAX..=QUEUE_MAX + THREADS_MAX).contains(&waits), "{waits}");
        assert_eq!(resolver.threads, THREADS_MAX);
        drop(go);
    }
}
