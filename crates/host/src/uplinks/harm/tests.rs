use super::*;

/// A download over two subflows, with looks whenever one is due.
struct Download {
    harm: Harm,
    pauses: Pauses,
    now: Instant,
    carriers: [Carrier; 2],
    /// When the answer to a probe arrives.
    answers: [Option<Instant>; 2],
    alive: [bool; 2],
    /// Whether other connections hear something on the uplink.
    filled: [bool; 2],
    /// Round-trip time including queues, if the peer echoes timestamps.
    round_trips: [Option<Duration>; 2],
}

impl Download {
    fn new(rtts_ms: [u64; 2]) -> Self {
        let carrier = |id: u16| Carrier {
            id: SubflowId(id),
            local: SocketAddr::from(([10, 0, 0, id as u8], 1000)),
            received_bytes: 0,
            held_bytes: 0,
            heard_at: Instant::ZERO,
            uplink_heard_at: Instant::ZERO,
            rtt: Duration::from_millis(rtts_ms[usize::from(id)]),
            echo: None,
            backup: false,
        };
        Self {
            harm: Harm::default(),
            pauses: Pauses::default(),
            now: Instant::ZERO,
            carriers: [carrier(0), carrier(1)],
            answers: [None; 2],
            alive: [true; 2],
            filled: [false; 2],
            round_trips: [None; 2],
        }
    }

    /// Takes the next look. `brought`: octets that each subflow brings per [`PERIOD`]; `held`: octets that wait.
    fn look(&mut self, brought: [u64; 2], held: [u64; 2]) -> Findings {
        let before = self.now;
        self.now = self.harm.next_at().unwrap_or(self.now + PERIOD);
        let span = self.now.saturating_since(before);
        for (index, carrier) in self.carriers.iter_mut().enumerate() {
            carrier.received_bytes += brought[index] * span.as_nanos() / PERIOD.as_nanos();
            carrier.held_bytes = held[index];
            if brought[index] > 0 || self.answers[index].take_if(|at| *at <= self.now).is_some() {
                carrier.heard_at = self.now;
            }
            if let Some(took) = self.round_trips[index].filter(|_| brought[index] > 0) {
                carrier.echo = Some(Echo { tick: self.now.as_millis() as u32, took });
            }
            carrier.uplink_heard_at =
                if self.filled[index] { self.now } else { carrier.uplink_heard_at.max(carrier.heard_at) };
        }
        let findings = self.harm.look(&self.carriers, &mut self.pauses, self.now);
        for finding in &findings {
            if let Finding::Doubtful(id) = finding {
                let index = self.carriers.iter().position(|carrier| carrier.id == *id).unwrap();
                self.answers[index] = self.alive[index].then(|| self.now + self.carriers[index].rtt);
            }
        }
        findings
    }

    /// Takes the same looks for this many times [`PERIOD`], up to a finding other than a probe. Returns it, and how
    /// long it took.
    fn until_found(&mut self, periods: u64, brought: [u64; 2], held: [u64; 2]) -> Option<(Finding, Duration)> {
        let since = self.now;
        while self.now < since + PERIOD.saturating_mul(periods) {
            let findings = self.look(brought, held);
            let found = findings.into_iter().find(|finding| !matches!(finding, Finding::Doubtful(_)));
            if let Some(found) = found {
                return Some((found, self.now.saturating_since(since)));
            }
        }
        None
    }
}

/// Octets per [`PERIOD`] at 40 Mbit/s.
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

/// Octets per [`PERIOD`] at 30 Mbit/s and at 1 Mbit/s.
const GOOD: u64 = 71_000;
const BAD: u64 = 2_400;

/// It brings a thirtieth, and always the same: at 50 ms of lag it becomes a backup, and is not withdrawn while the
/// other one still brings something.
#[test]
fn one_that_brings_little_over_an_uplink_that_brings_much_stays() {
    let mut download = Download::new([20, 600]);
    // Two subflows over one uplink, to two addresses of the server.
    download.carriers[1].local = SocketAddr::from((download.carriers[0].ip(), 2000));
    assert_eq!(download.until_found(100, [FAST, 1000], [0, 0]), None);
    assert_eq!(download.until_found(200, [FAST, 1000], [600_000, 0]), None);
}

#[test]
fn one_that_is_steadily_slow_brings_what_it_was_given() {
    let mut download = Download::new([20, 100]);
    assert_eq!(download.until_found(40, [GOOD, BAD], [0, 0]), None);
    let (found, took) = download.until_found(100, [GOOD, BAD], [200_000, 0]).unwrap();
    assert_eq!(found, Finding::Slow(SubflowId(1)));
    assert!(took <= Duration::from_millis(100), "{took:?}");
    download.carriers[1].backup = true;
    assert_eq!(download.until_found(20, [GOOD, BAD], [900_000, 0]), None);
    // The peer may send no more on the other one: 1.2 MB at 30 Mbit/s take 0.32 s.
    let (found, took) = download.until_found(100, [0, BAD], [1_200_000, 0]).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(1)));
    assert!((300..1000).contains(&took.as_millis()), "{took:?}");
}

/// A path that can bring more grows from round trip to round trip, and one of 600 ms shows nothing in three looks.
#[test]
fn one_that_may_still_grow_is_not_judged_at_first_sight() {
    let mut download = Download::new([20, 100]);
    assert_eq!(download.until_found(40, [GOOD, 0], [0, 0]), None);
    for brought in [1200, 2400, 4800] {
        assert_eq!(download.until_found(5, [GOOD, brought], [200_000, 0]), None, "{brought}");
    }
    let mut far = Download::new([20, 600]);
    assert_eq!(far.until_found(80, [GOOD, BAD], [0, 0]), None);
    assert_eq!(far.until_found(20, [GOOD, BAD], [200_000, 0]), None);
}

/// What the peer has given to it would take longer than sending all of it again.
#[test]
fn one_that_is_slower_still_is_withdrawn() {
    let mut download = Download::new([20, 100]);
    assert_eq!(download.until_found(40, [GOOD, BAD / 5], [0, 0]), None);
    let (found, _) = download.until_found(100, [GOOD, BAD / 5], [400_000, 0]).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(1)));
}

/// A download over a subflow that was found slow, as a backup, and then regular again.
fn with_a_slow_one_that_is_regular_again() -> Download {
    let mut download = Download::new([20, 100]);
    assert_eq!(download.until_found(25, [GOOD, BAD], [0, 0]), None);
    assert!(download.until_found(100, [GOOD, BAD], [200_000, 0]).is_some());
    for backup in [true, false] {
        download.carriers[1].backup = backup;
        assert_eq!(download.until_found(10, [GOOD, BAD], [0, 0]), None);
    }
    download
}

/// Once it is regular again the peer gives it more than the first time.
#[test]
fn one_that_is_slow_again_is_withdrawn() {
    let mut download = with_a_slow_one_that_is_regular_again();
    let (found, _) = download.until_found(100, [GOOD, BAD], [400_000, 0]).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(1)));
}

#[test]
fn one_over_the_next_uplink_with_that_address_is_slow_for_the_first_time() {
    let mut download = with_a_slow_one_that_is_regular_again();
    download.harm.forget(download.carriers[1].ip());
    let (found, _) = download.until_found(100, [GOOD, BAD], [400_000, 0]).unwrap();
    assert_eq!(found, Finding::Slow(SubflowId(1)));
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
    // The peer may send no more, except on the late subflow.
    let (found, _) = download.until_found(100, [0, FAST / 4], [700_000, 0]).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(1)));
}

#[test]
fn one_that_has_just_come_is_not_to_blame_for_what_waited_before() {
    let mut download = Download::new([20, 130]);
    assert_eq!(download.until_found(100, [FAST, FAST], [0, 0]), None);
    // The second subflow was withdrawn and returns. Its octets are sent again on the first one, for 0.8 s.
    (download.carriers[1].id, download.carriers[1].received_bytes) = (SubflowId(2), 0);
    assert_eq!(download.until_found(40, [FAST, 1000], [1_500_000, 0]), None);
    assert_eq!(download.until_found(10, [FAST, FAST / 2], [0, 0]), None);
    // After that it can be blamed like any other.
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
    // After this many false alarms, silence alone does not yet show anything.
    download.harm.false_alarms = 9;
    download.alive[1] = false;
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
fn one_with_a_queue_is_given_the_time_that_its_answer_takes() {
    let took = |queue_ms: u64| {
        let mut download = Download::new([40, 40]);
        download.round_trips = [Some(Duration::from_millis(40)), Some(Duration::from_millis(queue_ms))];
        assert_eq!(download.until_found(50, [10_000, 10_000], [0, 0]), None);
        download.alive[1] = false;
        let (found, took) = download.until_found(300, [10_000, 0], [0, 0]).unwrap();
        assert_eq!(found, Finding::Silent(SubflowId(1)));
        took.as_millis()
    };
    assert!(took(40) <= 160, "{}", took(40));
    assert!((1250..1400).contains(&took(800)), "{}", took(800));
    assert!((4000..4200).contains(&took(60_000)), "{}: whatever a peer echoes", took(60_000));
}

/// Both subflows carry; then the first has nothing to do, because `held_bytes` octets wait for the second, which brings
/// `second` per look.
fn stuck(second: u64, held_bytes: u64) -> (Finding, Duration) {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(300, [3600, 3000], [0, 0]), None);
    download.until_found(1500, [0, second], [held_bytes, 0]).unwrap()
}

#[test]
fn what_others_could_have_brought_since_the_stream_waits_is_compared_with_what_waits() {
    // A sixth: not worthless. 800 kB at 3600 octets in 19 ms take 4.2 s.
    let (found, took) = stuck(600, 800_000);
    assert_eq!(found, Finding::Late(SubflowId(1)));
    assert!((4_200..5_000).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn what_was_lost_for_a_hole_that_is_filled_is_past() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(300, [3600, 3000], [0, 0]), None);
    assert_eq!(download.until_found(180, [0, 600], [800_000, 0]), None, "3.4 s: more than half of what waits");
    // Most of it moves on; 200 kB at 3600 octets in 19 ms take 1.1 s.
    assert_eq!(download.until_found(10, [0, 600], [200_000, 0]), None);
    assert_eq!(download.until_found(10, [3600, 600], [0, 0]), None);
    assert_eq!(download.until_found(50, [0, 600], [200_000, 0]), None, "it begins anew");
}

#[test]
fn what_others_could_have_brought_counts_where_one_is_worth_no_waiting() {
    // A twelfth; 3.5 MB would take 18 s.
    let (found, took) = stuck(300, 3_500_000);
    assert_eq!(found, Finding::Late(SubflowId(1)));
    assert!(took < Duration::from_secs(14), "{took:?}");
}

/// A subflow that has brought little recently is not missed, and not probed on its own account.
#[test]
fn others_are_asked_whether_they_could_bring_something() {
    let late_after = |alive: bool| {
        let mut download = Download::new([40, 40]);
        assert_eq!(download.until_found(300, [3600, 3000], [0, 0]), None);
        assert_eq!(download.until_found(250, [0, 600], [1_600_000, 0]), None);
        // It had nothing to do until now, brings a little, and then its state is unknown.
        download.look([100, 600], [1_600_000, 0]);
        download.alive[0] = alive;
        download.until_found(800, [0, 600], [1_600_000, 0])
    };
    let (found, took) = late_after(true).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(1)));
    assert!((3_000..5_000).contains(&took.as_millis()), "{took:?}");
    assert_eq!(late_after(false), None, "it could not have brought anything");
}

#[test]
fn a_pause_of_all_is_no_death_and_an_answer_is_a_sign_of_life() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(50, [10_000, 10_000], [0, 0]), None);
    assert_eq!(download.until_found(50, [0, 0], [0, 0]), None);
    assert_eq!(download.until_found(50, [10_000, 0], [0, 0]), None);
}

/// The answer waits in the queue that other connections fill. When these hear nothing more, the path is dead.
#[test]
fn one_whose_uplink_others_fill_is_not_dead() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(50, [10_000, 10_000], [0, 0]), None);
    (download.alive[1], download.filled[1]) = (false, true);
    assert_eq!(download.until_found(25, [10_000, 0], [0, 0]), None);
    download.filled[1] = false;
    let (found, took) = download.until_found(50, [10_000, 0], [0, 0]).unwrap();
    assert_eq!(found, Finding::Silent(SubflowId(1)));
    assert!(took <= Duration::from_millis(90), "{took:?}");
}

#[test]
fn one_that_carries_nothing_is_not_missed() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(200, [10_000, 0], [0, 0]), None);
}

/// The far subflow carries nothing. Its answer takes longer than the time in which the dead one's is overdue.
#[test]
fn a_dead_one_is_not_waited_for_until_a_far_one_answers() {
    let mut download = Download::new([30, 200]);
    assert_eq!(download.until_found(100, [10_000, 0], [0, 0]), None);
    download.alive[0] = false;
    let (found, took) = download.until_found(50, [0, 0], [0, 0]).unwrap();
    assert_eq!(found, Finding::Silent(SubflowId(0)));
    assert!(took <= Duration::from_millis(120), "{took:?}");
}

#[test]
fn silence_of_all_that_carried_is_nobodys_until_one_is_heard() {
    let mut download = Download::new([30, 200]);
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    download.alive = [false; 2];
    assert_eq!(download.until_found(100, [0, 0], [0, 0]), None);
}

#[test]
fn a_look_that_comes_late_judges_nobody() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    // This device was busy: what arrived meanwhile waits to be read.
    let late = download.now + Duration::from_millis(500);
    assert!(download.harm.look(&download.carriers, &mut download.pauses, late).is_empty());
    let again = download.harm.next_at().unwrap();
    assert!(again < late + PERIOD && !download.harm.look(&download.carriers, &mut download.pauses, again).is_empty());
}

/// Looks that come a little late judge nobody at first, but do not begin a silence anew.
#[test]
fn a_busy_device_still_finds_a_dead_subflow_soon() {
    let took = |late_by: Duration| {
        let mut download = Download::new([40, 40]);
        assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
        download.alive[1] = false;
        let since = download.now;
        loop {
            download.now = download.harm.next_at().unwrap() + late_by;
            let now = download.now;
            (download.carriers[0].heard_at, download.carriers[0].uplink_heard_at) = (now, now);
            let findings = download.harm.look(&download.carriers, &mut download.pauses, now);
            if findings.contains(&Finding::Silent(SubflowId(1))) {
                return now.saturating_since(since);
            }
            assert!(now < since + Duration::from_secs(5), "never");
        }
    };
    let in_time = took(Duration::ZERO);
    for late_by in [UNPUNCTUAL, UNPUNCTUAL.saturating_mul(2), UNPUNCTUAL.saturating_mul(5)] {
        assert!(
            took(late_by) <= in_time + late_by.saturating_mul(5),
            "{:?} instead of {in_time:?}, late by {late_by:?}",
            took(late_by)
        );
    }
}

/// While this device slept, answers may have been lost: the subflow is probed again at once.
#[test]
fn a_device_that_slept_probes_again() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    download.alive[1] = false;
    assert_eq!(download.until_found(6, [10_000, 0], [0, 0]), None);
    download.alive[1] = true;
    let late = download.now + Duration::from_secs(5);
    download.carriers[0].heard_at = late;
    assert!(download.harm.look(&download.carriers, &mut download.pauses, late).is_empty());
    download.now = late;
    assert_eq!(download.until_found(60, [10_000, 0], [0, 0]), None);
}

#[test]
fn only_false_alarms_make_it_more_patient() {
    let mut download = Download::new([40, 40]);
    let mut death = |back_after_ms: u64| {
        assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
        download.alive[1] = false;
        let (found, took) = download.until_found(60, [10_000, 0], [0, 0]).unwrap();
        let Finding::Silent(SubflowId(id)) = found else { panic!("{found:?}") };
        // The subflow is withdrawn and joins again.
        let [first, second] = download.carriers;
        let until = download.now + Duration::from_millis(back_after_ms);
        while download.now < until {
            download.now += PERIOD;
            download.carriers[0].heard_at = download.now;
            download.harm.look(&[download.carriers[0]], &mut download.pauses, download.now);
        }
        let heard_at = download.now;
        download.carriers = [
            Carrier { heard_at, uplink_heard_at: heard_at, ..first },
            Carrier { id: SubflowId(id + 2), heard_at, uplink_heard_at: heard_at, received_bytes: 0, ..second },
        ];
        download.alive[1] = true;
        took
    };
    let took = [death(3000), death(3000), death(200), death(200)];
    assert!(took[1] <= took[0] + Duration::from_millis(20), "the deaths were real: {took:?}");
    assert!(took[3] >= took[1] + Duration::from_millis(20), "one alarm was false: {took:?}");
}

#[test]
fn one_that_has_answered_is_asked_again_soon() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    // The second subflow brings nothing for a while, but answers; then it dies.
    assert_eq!(download.until_found(8, [10_000, 0], [0, 0]), None);
    download.alive[1] = false;
    let (found, took) = download.until_found(60, [10_000, 0], [0, 0]).unwrap();
    assert_eq!(found, Finding::Silent(SubflowId(1)));
    assert!(took <= Duration::from_millis(250), "{took:?}");
}

#[test]
fn one_whose_rate_falls_is_given_some_seconds() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(200, [FAST, FAST], [0, 0]), None);
    // The subflow fades for some seconds, as radio links do.
    assert_eq!(download.until_found(200, [FAST / 50, FAST], [0, 1_500_000]), None);
    // What is left of its rate is worth no waiting.
    let (found, _) = download.until_found(1000, [FAST / 50, FAST], [0, 1_500_000]).unwrap();
    assert_eq!(found, Finding::Late(SubflowId(0)));
}

#[test]
fn nobody_is_to_blame_for_what_fades_by_itself() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(200, [FAST, FAST], [0, 0]), None);
    assert_eq!(download.until_found(200, [FAST / 10, FAST / 10], [0, 1_500_000]), None);
}

#[test]
fn one_is_not_to_blame_while_the_other_one_pauses() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(200, [FAST, FAST], [0, 0]), None);
    download.pauses.note(download.carriers[1].ip(), Duration::from_secs(2), download.now);
    download.alive[1] = false;
    assert_eq!(download.until_found(150, [FAST / 10, 0], [0, 1_500_000]), None);
}

#[test]
fn one_that_pauses_is_given_twice_as_long_the_next_time() {
    let mut download = Download::new([40, 40]);
    let second = download.carriers[1];
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    download.alive[1] = false;
    let (found, took) = download.until_found(60, [10_000, 0], [0, 0]).unwrap();
    assert_eq!(found, Finding::Silent(SubflowId(1)));
    assert!(took < Duration::from_millis(200), "{took:?}");
    // Half a second later, the waiting octets arrive for the withdrawn subflow; another has joined meanwhile.
    download.pauses.arrived(second.local, download.now + Duration::from_millis(500), 10_000);
    (download.carriers[1].id, download.carriers[1].received_bytes) = (SubflowId(2), 0);
    download.alive[1] = true;
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    // It pauses for as long again, and is not given up; then it dies.
    download.alive[1] = false;
    assert_eq!(download.until_found(50, [10_000, 0], [0, 0]), None);
    download.alive[1] = true;
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    let patience = download.pauses.patience(second.ip(), download.now);
    assert!(patience >= Duration::from_millis(1800), "the second pause counts as well: {patience:?}");
    download.alive[1] = false;
    let (found, took) = download.until_found(300, [10_000, 0], [0, 0]).unwrap();
    assert_eq!(found, Finding::Silent(SubflowId(2)));
    assert!(took >= patience - SILENCE_MAX, "{took:?} of {patience:?}");
}

#[test]
fn an_answer_in_time_is_no_pause() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    assert_eq!(download.until_found(20, [10_000, 0], [0, 0]), None);
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    assert_eq!(download.pauses.patience(download.carriers[1].ip(), download.now), Duration::ZERO);
}

#[test]
fn a_pause_of_this_device_is_none_of_an_uplink() {
    let mut download = Download::new([40, 40]);
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    // Both are probed, and their answers are read late.
    assert_eq!(download.until_found(4, [0, 0], [0, 0]), None);
    assert!(download.answers[1].is_some());
    download.now += Duration::from_secs(1);
    download.carriers.iter_mut().for_each(|carrier| carrier.heard_at = download.now);
    assert!(download.harm.look(&download.carriers, &mut download.pauses, download.now).is_empty());
    assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
    assert_eq!(download.pauses.patience(download.carriers[1].ip(), download.now), Duration::ZERO);
}

#[test]
fn an_answer_behind_what_others_are_sent_is_no_pause() {
    let patience = |filled: bool| {
        let mut download = Download::new([40, 40]);
        assert_eq!(download.until_found(100, [10_000, 10_000], [0, 0]), None);
        let second = download.carriers[1].ip();
        download.pauses.note(second, Duration::from_secs(1), download.now);
        (download.filled[1], download.alive[1]) = (filled, false);
        assert_eq!(download.until_found(63, [10_000, 0], [0, 0]), None);
        (download.filled[1], download.alive[1]) = (false, true);
        assert_eq!(download.until_found(10, [10_000, 10_000], [0, 0]), None);
        download.pauses.patience(second, download.now)
    };
    assert_eq!(patience(true), Duration::from_secs(2));
    assert!(patience(false) > Duration::from_secs(2));
}

/// The peer sends all waiting octets again when it is told to do without a subflow.
#[test]
fn one_that_pauses_and_brings_less_than_its_end_costs_is_held_back() {
    let finding = |pause_ms: u64| {
        let mut download = Download::new([40, 40]);
        assert_eq!(download.until_found(100, [10_000, 3000], [0, 0]), None);
        let pause = Duration::from_millis(pause_ms);
        download.pauses.note(download.carriers[1].ip(), pause, download.now);
        download.alive[1] = false;
        download.until_found(60, [10_000, 0], [400_000, 0]).unwrap().0
    };
    assert_eq!(finding(200), Finding::Late(SubflowId(1)));
    assert_eq!(finding(0), Finding::Silent(SubflowId(1)));
}
