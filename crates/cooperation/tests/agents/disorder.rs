//! The Wi-Fi delays packets, so others overtake them, and duplicates packets: adverts and ranges still count in order.

use network::impairment::{Duplicate, Reorder};
use network::{Node, Output, Packet};
use units::{Duration, Instant, Prng, Rate};

use super::world::{Wish, World};

/// Delays half of the packets and duplicates half of them.
struct Disorder {
    reorder: Reorder,
    duplicate: Duplicate,
    between: Output,
}

impl Node for Disorder {
    fn process(&mut self, packet: Option<Packet>, now: Instant, out: &mut Output) {
        self.reorder.process(packet, now, &mut self.between);
        for packet in self.between.take_forwarded() {
            self.duplicate.process(Some(packet), now, out);
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.reorder.next_wakeup()
    }

    fn conserves(&self) -> bool {
        false
    }

    fn seed(&mut self, mut prng: Prng) {
        self.duplicate.seed(Prng::new(prng.below(u64::MAX)));
        self.reorder.seed(prng);
    }
}

fn disorder(_relay: usize) -> Option<Box<dyn Node>> {
    let reorder = Reorder::new(0.5, Duration::from_millis(30));
    Some(Box::new(Disorder { reorder, duplicate: Duplicate::new(0.5), between: Output::new() }))
}

#[test]
fn adverts_and_ranges_that_come_twice_and_late_leave_channels_open_and_data_whole() {
    for splices in [false, true] {
        let target = Some(Rate::from_bps(3_700_000));
        let mut world = World::new(Wish { splices, target, wifi: disorder, ..Wish::default() });
        world.finish(Instant::from_secs(120));
        for relay in 0..3 {
            assert_eq!(world.opened_and_refused(relay), [(3, 0), (1, 0)], "splices: {splices}");
        }
    }
}
