//! Lowest round-trip time first, with a remedy when a slow subflow blocks the window.
//!
//! ```text
//! the window is full, though F has room:
//!     retransmit    F sends the window's first segment again, if a slower subflow S holds it
//!     penalize      S falls to CWND_S / 2, and its threshold with it, at most once per RTT_S
//!
//! F       the fastest subflow with room
//! S       the subflow that carries the first octet that the peer lacks
//! ```
//!
//! Source: Raiciu, Paasch, Barre, Ford, Honda, Duchene, Bonaventure, Handley, "How Hard Can It Be? Designing and
//! Implementing a Deployable Multipath TCP" (NSDI 2012), section 4.2, mechanisms 1 and 2: the default of the first
//! Multipath TCP in Linux. Present-day Linux does neither. The engine carries both out in
//! `connection/blocked_window.rs`.

use units::Prng;

use super::{LowestRtt, Marks, Remedy, ScheduleContext, Scheduler};

/// Decides as [`LowestRtt`], and retransmits when the window blocks.
#[derive(Debug, Default)]
pub struct Opportunistic;

impl Scheduler for Opportunistic {
    fn name(&self) -> &'static str {
        "opportunistic"
    }

    fn schedule(&mut self, context: &ScheduleContext<'_>, prng: &mut Prng) -> Marks {
        LowestRtt.schedule(context, prng)
    }

    fn wants_full(&self) -> bool {
        false
    }

    fn takes_the_only_one(&self) -> bool {
        true
    }

    fn when_window_blocks(&self) -> Remedy {
        Remedy::Retransmit
    }
}

/// As [`Opportunistic`], and penalises the subflow that it helps.
#[derive(Debug, Default)]
pub struct Penalizing;

impl Scheduler for Penalizing {
    fn name(&self) -> &'static str {
        "penalizing"
    }

    fn schedule(&mut self, context: &ScheduleContext<'_>, prng: &mut Prng) -> Marks {
        LowestRtt.schedule(context, prng)
    }

    fn wants_full(&self) -> bool {
        false
    }

    fn takes_the_only_one(&self) -> bool {
        true
    }

    fn when_window_blocks(&self) -> Remedy {
        Remedy::RetransmitAndPenalize
    }
}
