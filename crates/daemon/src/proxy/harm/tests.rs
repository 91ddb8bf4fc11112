use super::*;

/// A download over two subflows, looked at when that is wanted.
struct Download {
    harm: Harm,
    now: Instant,
    carriers: [Carrier; 2],
    /// When an answer to a probe arrives.
    answers: [Option<Instant>; 2],
    alive: [bool; 2],
}

impl Download {
    fn new(rtts_ms: [u64; 2]) -> Self {
        let carrier = |id: u16| Carrier {
            id: SubflowId(id),
            ip: IpAddr::from([10, 0, 0, id as u8]),
            received_bytes: 0,
            held_bytes: 0,
            heard_at: Instant::ZERO,
            rtt: Duration::from_millis(rtts_ms[usize::from(id)]),
            backup: false,
        };
        Self {
            harm: Harm::default(),
            now: Instant::ZERO,
            carriers: [carrier(0), carrier(1)],
            answers: [None; 2],
            alive: [true; 2],
        }
    }

    /// The next look, before which each brings so many octets in a [`PERIOD`], and at which so many wait.
    fn look(&mut self, brought: [u64; 2], held: [u64; 2]) -> Findings {
        let at = self.harm.next_at().unwrap_or(self.now + PERIOD);
        let elapsed = at.saturating_since(self.now);
        self.now = at;
        for (index, carrier) in self.carriers.iter_mut().enumerate() {
            carrier.received_bytes += brought[index] * elapsed.as_micros() / PERIOD.as_micros();
            carrier.held_bytes = held[index];
            if brought[index] > 0 || self.answers[index].take_if(|at| *at <= self.now).is_some() {
                carrier.heard_at = self.now;
            }
        }
        let findings = self.harm.look(&self.carriers, self.now);
        for finding in &findings {
            if let Finding::Doubtful(id) = finding {
                let index = usize::from(id.0);
                self.answers[index] = self.alive[index].then(|| self.now + self.carriers[index].rtt);
            }
        }
        findings
    }

    /// Looks alike, up to a finding that is no probe; how long it took.
    fn until_found(&mut self, looks: usize, brought: [u64; 2], held: [u64; 2]) -> Option<(Finding, Duration)> {
        let since = self.now;
        for _ in 0..looks {
            let findings = self.look(brought, held);
            let found = findings.into_iter().find(|finding| !matches!(finding, Finding::Doubtful(_)));
            if let Some(found) = found {
                return Some((found, self.now.saturating_since(since)));
            }
        }
        None
    }
}

/// Octets in a [`PERIOD`] at about 40 Mbit/s.
const FAST: u64 = 100_000;

#[test]
fn who_brings_little_and_is_waited_for_goes_soon() {
    let mut download = Download::new([20, 600]);
    assert_eq!(download.until_found(100, [FAST, 1000], [0, 0]), None);
    // 600 kB wait at 5 MB/s: 120 ms.
    let (found, took) = download.until_found(100, [FAST, 1000], [600_000, 0]).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(1)));
    assert!(took <= Duration::from_millis(200), "{took:?}");
}

#[test]
fn one_that_brings_its_share_stays_although_it_is_waited_for() {
    let mut download = Download::new([20, 60]);
    assert_eq!(download.until_found(100, [FAST, FAST / 4], [0, 0]), None);
    assert_eq!(download.until_found(200, [FAST, FAST / 4], [700_000, 0]), None);
}

#[test]
fn one_that_blocks_more_than_it_brings_goes() {
    let mut download = Download::new([20, 60]);
    assert_eq!(download.until_found(100, [FAST, FAST / 4], [0, 0]), None);
    // The peer may send no more, but on the late one.
    let (found, _) = download.until_found(100, [0, FAST / 4], [700_000, 0]).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(1)));
}

#[test]
fn one_that_has_just_come_is_not_to_blame_for_what_waited_before() {
    let mut download = Download::new([20, 130]);
    assert_eq!(download.until_found(100, [FAST, FAST], [0, 0]), None);
    // The second one was withdrawn, and comes again: what it had is sent once more on the first one, for 0.8 s.
    (download.carriers[1].id, download.carriers[1].received_bytes) = (SubflowId(2), 0);
    assert_eq!(download.until_found(40, [FAST, 1000], [1_500_000, 0]), None);
    assert_eq!(download.until_found(10, [FAST, FAST / 2], [0, 0]), None);
    // After that it is to blame as anybody.
    let (found, _) = download.until_found(100, [0, 1000], [1_500_000, 0]).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(2)));
}

#[test]
fn one_that_blocks_from_the_start_goes_all_the_same() {
    let mut download = Download::new([20, 100]);
    download.carriers[1].backup = true;
    assert_eq!(download.until_found(100, [FAST, 0], [0, 0]), None);
    download.carriers[1].backup = false;
    assert_eq!(download.until_found(5, [FAST, 0], [0, 0]), None);
    let (found, took) = download.until_found(100, [FAST, 1000], [1_000_000, 0]).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(1)));
    assert!(took <= Duration::from_millis(500), "{took:?}");
}

#[test]
fn one_that_is_dead_is_not_held_back_for_being_late() {
    let mut download = Download::new([20, 60]);
    assert_eq!(download.until_found(100, [FAST, FAST / 4], [0, 0]), None);
    // So many alarms were false that silence alone tells nothing yet.
    download.harm.false_alarms = 9;
    assert_eq!(download.until_found(15, [FAST, 0], [0, 0]), None);
    let (found, _) = download.until_found(100, [0, 0], [1_500_000, 0]).unwrap();
    assert_eq!(found, Finding::Silent(SubflowId(1)));
}

#[test]
fn nobody_is_blamed_where_it_cannot_be_told() {
    let mut download = Download::new([20, 20]);
    assert_eq!(download.until_found(100, [FAST, FAST], [400_000, 400_000]), None);
    download.carriers[1].backup = true;
    assert_eq!(download.until_found(100, [FAST, 100], [800_000, 0]), None, "it is a backup already");
}

#[test]
fn a_dead_one_is_asked_and_goes_while_another_one_answers() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(50, [10_000, 10_000], [0, 0]), None);
    download.alive[1] = false;
    let (found, took) = download.until_found(50, [10_000, 0], [0, 0]).unwrap();
    assert_eq!(found, Finding::Silent(SubflowId(1)));
    assert!(took <= Duration::from_millis(160), "{took:?}");
}

#[test]
fn a_pause_of_all_is_no_death_and_an_answer_is_a_sign_of_life() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(50, [10_000, 10_000], [0, 0]), None);
    assert_eq!(download.until_found(50, [0, 0], [0, 0]), None);
    assert_eq!(download.until_found(50, [10_000, 0], [0, 0]), None);
}

#[test]
fn one_that_carries_nothing_is_not_missed() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(200, [10_000, 0], [0, 0]), None);
}
