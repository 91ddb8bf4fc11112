//! The kernel's state of its subflows, from repeated calls of `ss`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, Sender as Channel, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lab::measure::Sender;
use linux::netns::Namespace;
use linux::{Error, Result};
use transport::SubflowStats;

use crate::program::run;

/// Minimum interval between calls, each of which starts a program.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The latest state of every subflow.
#[derive(Clone, Debug)]
pub struct KernelView {
    /// By the destination's address and port.
    subflows: BTreeMap<SocketAddr, Sender>,
    /// The controller that they should have, by the kernel's name.
    controller: &'static str,
    /// The first subflow under another controller, in words.
    stranger: Option<String>,
    /// Why the latest call failed, if it did.
    failed: Option<String>,
    /// Whether a call has ever succeeded.
    has_answered: bool,
    /// Why two calls in a row failed, the first time that they did.
    fault: Option<String>,
}

impl KernelView {
    /// Creates a view of subflows that should be under `controller`.
    fn new(controller: &'static str) -> Self {
        let subflows = BTreeMap::new();
        Self { subflows, controller, stranger: None, failed: None, has_answered: false, fault: None }
    }

    /// Returns the kernel's view of one of the destination's subflows.
    pub fn of(&self, subflow: &SubflowStats) -> Option<Sender> {
        self.subflows.get(&subflow.local).copied()
    }

    /// Returns the first subflow that was seen under another controller, in words.
    pub fn stranger(&self) -> Option<&str> {
        self.stranger.as_deref()
    }

    /// Returns why calls failed: two in a row, or all. A single one may fail for want of processes, and the next one
    /// sees what it missed.
    pub fn fault(&self) -> Option<&str> {
        let never = self.failed.as_deref().filter(|_| !self.has_answered);
        self.fault.as_deref().or(never)
    }

    /// Takes the result of a call. A failed one leaves the subflows unchanged.
    fn note(&mut self, answer: Result<String>) {
        match answer {
            Ok(text) => {
                (self.failed, self.has_answered) = (None, true);
                self.update(&text);
            }
            Err(error) => {
                let again = self.failed.replace(error.to_string()).is_some();
                self.fault = self.fault.take().or_else(|| self.failed.clone().filter(|_| again));
            }
        }
    }

    /// Updates the view with the output of `ss -HtinoO`.
    fn update(&mut self, text: &str) {
        for (destination, mut sender) in text.lines().filter_map(subflow) {
            // The kernel's minimum covers only five minutes.
            let before = self.subflows.get(&destination).and_then(|known| known.min_rtt);
            sender.min_rtt = sender.min_rtt.into_iter().chain(before).min();
            self.subflows.insert(destination, sender);
        }
        let is_strange = |line: &&str| !is_controlled_by(line, self.controller);
        if let Some(line) = text.lines().find(is_strange).filter(|_| self.stranger.is_none()) {
            self.stranger = Some(format!("a subflow is not controlled by {}: {line}", self.controller));
        }
    }
}

/// Calls `ss` in a thread of its own.
pub struct Observer {
    view: Arc<Mutex<KernelView>>,
    end: Channel<()>,
    asking: Option<JoinHandle<()>>,
}

impl Observer {
    /// Watches the connections of `port` in `namespace`, which should be under `controller`, for a caller that looks
    /// every `window`.
    pub fn start(namespace: Arc<Namespace>, port: u16, controller: &'static str, window: Duration) -> Result<Self> {
        let interval = (window / 2).max(INTERVAL_MIN);
        let view = Arc::new(Mutex::new(KernelView::new(controller)));
        let (end, ended) = channel();
        let shared = Arc::clone(&view);
        let asking = std::thread::Builder::new().spawn(move || {
            let arguments = format!("-HtinoO sport = :{port}");
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let answer = run(&namespace, "ss", &arguments);
                lock(&shared).note(answer);
            }
        });
        let asking = asking.map_err(Error::system("start a thread"))?;
        Ok(Self { view, end, asking: Some(asking) })
    }

    /// Returns the view, which continues to change.
    pub fn view(&self) -> Arc<Mutex<KernelView>> {
        Arc::clone(&self.view)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _ = self.end.send(());
        if let Some(asking) = self.asking.take() {
            let _ = asking.join();
        }
    }
}

/// Locks a value shared with a thread, even if that thread has panicked.
pub fn lock<T>(view: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a line of `ss` is about a socket under `controller`, as far as the line says.
fn is_controlled_by(line: &str, controller: &str) -> bool {
    // A connection that is beginning or has ended has no window.
    let says = line.starts_with("ESTAB") && line.contains(" cwnd:");
    !says || line.split_whitespace().any(|word| word == controller)
}

/// Parses one line: `ESTAB 0 0 10.1.0.1:40000 10.5.1.2:49152 cubic rtt:50.1/2 cwnd:10 ... retrans:0/3`.
fn subflow(line: &str) -> Option<(SocketAddr, Sender)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let destination = words.get(4)?.parse().ok()?;
    // A socket that is ending is listed without its numbers: the latest ones remain.
    if !line.contains(" cwnd:") {
        return None;
    }
    let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
    let number = |name: &str| value(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let span = |text: &str| text.parse::<f64>().ok().map(|ms| units::Duration::from_secs_f64(ms / 1000.0));
    let sender = Sender {
        cwnd_bytes: number("cwnd") * number("mss"),
        srtt: value("rtt").and_then(|text| span(text.split('/').next()?)),
        min_rtt: value("minrtt").and_then(span),
        data_packets: number("data_segs_out"),
        retransmitted_packets: value("retrans").and_then(|text| text.split('/').nth(1)?.parse().ok()).unwrap_or(0),
        retransmitted_bytes: number("bytes_retrans"),
        timeouts: None,
        congestion_events: None,
        path_mtu_bytes: value("pmtu")
            .and_then(|text| text.parse().ok())
            .map(|pmtu: u16| pmtu.min(packet_max(&words, destination))),
    };
    Some((destination, sender))
}

/// Returns the octets of the largest IP packet that the socket sends. After the discovery of a silent black hole,
/// `pmtu` is still what routers have reported, while `mss`, which excludes timestamps, is what gets through.
fn packet_max(words: &[&str], destination: SocketAddr) -> u16 {
    const TCP_BYTES: u16 = 20;
    const TIMESTAMPS_BYTES: u16 = 12;
    let ip_bytes = if destination.is_ipv6() { 40 } else { 20 };
    let options_bytes = if words.contains(&"ts") { TIMESTAMPS_BYTES } else { 0 };
    let mss = words.iter().find_map(|word| word.strip_prefix("mss:")?.parse().ok());
    mss.map_or(u16::MAX, |mss: u16| mss.saturating_add(ip_bytes + TCP_BYTES + options_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_ss_is_understood() {
        let line = "ESTAB 0 123 10.1.0.1:40000 10.5.1.2:49152 ts sack cubic wscale:7,7 rto:252 rtt:51.25/1.5 mss:1348 pmtu:1400 \
            cwnd:20 ssthresh:14 bytes_sent:99 bytes_retrans:4200 data_segs_out:88 retrans:1/3 minrtt:50.5 tcp-ulp-mptcp";
        let (destination, sender) = subflow(line).unwrap();
        assert_eq!(destination, "10.5.1.2:49152".parse().unwrap());
        assert_eq!((sender.cwnd_bytes, sender.path_mtu_bytes), (26_960, Some(1400)));
        assert_eq!(sender.srtt, Some(units::Duration::from_micros(51_250)));
        assert_eq!(sender.min_rtt, Some(units::Duration::from_micros(50_500)));
        assert_eq!((sender.data_packets, sender.retransmitted_packets, sender.retransmitted_bytes), (88, 3, 4200));
        let black_hole = line.replace("mss:1348 pmtu:1400", "mss:1320 pmtu:1500");
        assert_eq!(subflow(&black_hole).unwrap().1.path_mtu_bytes, Some(1372));
        assert!(subflow("LISTEN 0 1 10.1.0.1:40000 0.0.0.0:*").is_none());
        assert!(subflow("").is_none());
        assert!(subflow("FIN-WAIT-2 0 0 10.1.0.1:40000 10.5.1.2:49152").is_none(), "without numbers");
    }

    #[test]
    fn the_least_round_trip_time_stays_when_the_kernel_forgets_it() {
        let mut view = KernelView::new("cubic");
        for (minrtt, least_us) in [("50.5", 50_500), ("80", 50_500), ("40", 40_000)] {
            view.update(&format!("ESTAB 0 0 10.1.0.1:40000 10.5.1.2:1 cubic rtt:90/1 cwnd:20 minrtt:{minrtt}"));
            let sender = view.subflows.values().next().unwrap();
            assert_eq!(sender.min_rtt, Some(units::Duration::from_micros(least_us)), "{minrtt}");
        }
    }

    #[test]
    fn failures_in_a_row_are_a_fault_that_stays_and_what_was_seen_too() {
        let broken = |program: &str| Err(Error::Command { command: program.into(), message: "broken".into() });
        let mut view = KernelView::new("cubic");
        view.note(broken("ss"));
        assert_eq!(view.fault(), Some("ss: broken"), "none has succeeded");
        view.note(Ok("ESTAB 0 0 10.1.0.1:40000 10.5.1.2:1 cubic rtt:90/1 cwnd:20".into()));
        view.note(broken("ss"));
        assert_eq!(view.fault(), None, "a single one");
        view.note(broken("ss again"));
        view.note(broken("others"));
        view.note(Ok(String::new()));
        assert_eq!((view.fault(), view.subflows.len()), (Some("ss again: broken"), 1));
    }

    #[test]
    fn who_controls_a_subflow_is_noticed() {
        let mut view = KernelView::new("mveno");
        view.update(
            "ESTAB 0 0 10.1.0.1:40000 10.5.1.2:1 ts sack mveno rto:252 cwnd:20\nSYN-RECV 0 0 10.1.0.1:40000 10.5.1.2:2",
        );
        assert_eq!(view.stranger(), None);
        view.update("ESTAB 0 0 10.1.0.1:40000 10.5.1.2:1 ts sack reno rto:252 cwnd:20");
        assert!(view.stranger().unwrap().starts_with("a subflow is not controlled by mveno: ESTAB"));
    }
}
