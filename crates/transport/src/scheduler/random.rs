//! Random best effort: the scheduler of the thesis (section 3.2.1).

use units::Prng;
use units::narrow::usize_from;

use super::{Marks, ScheduleContext, Scheduler};

/// Marks one of the subflows with room, each with the same probability.
#[derive(Debug, Default)]
pub struct Random;

impl Scheduler for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn schedule(&mut self, context: &ScheduleContext<'_>, prng: &mut Prng) -> Marks {
        let count = context.with_room().count() as u64;
        let drawn = usize_from(prng.below(count));
        context.with_room().nth(drawn).map_or(Marks::NONE, |(position, _)| Marks::one(position))
    }

    fn wants_full(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{full, positions_with, subflow};
    use super::*;

    #[test]
    fn each_with_room_gets_its_share() {
        let subflows = [subflow(0, None), full(1, None), subflow(2, None), subflow(3, None)];
        let mut prng = Prng::new(5);
        let mut counts = [0; 4];
        for _ in 0..3000 {
            counts[positions_with(&mut Random, &subflows, &mut prng)[0]] += 1;
        }
        assert_eq!(counts[1], 0);
        // Binomial(3000, 1/3) has a standard deviation of 26; the test allows five of them on either side.
        assert!([counts[0], counts[2], counts[3]].iter().all(|count| (870..=1130).contains(count)), "{counts:?}");
    }

    #[test]
    fn without_room_it_waits() {
        assert_eq!(positions_with(&mut Random, &[full(0, None)], &mut Prng::new(1)), []);
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let subflows = [subflow(0, None), subflow(1, None)];
        let draw = |seed| {
            let mut prng = Prng::new(seed);
            (0..64).map(|_| positions_with(&mut Random, &subflows, &mut prng)[0]).collect::<Vec<_>>()
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
