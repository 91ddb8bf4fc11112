//! All resource schedulers, by name.

use super::{
    BlindEqualThroughput, FrequencyDomainBet, MaximumThroughput, ProportionalFair, ReservedBet, ResourceScheduler,
    RoundRobin,
};

/// A resource scheduler that can be asked for by name.
#[derive(Clone, Copy, Debug)]
pub struct ResourceSchedulerRegistration {
    /// The name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Makes one.
    pub build: fn() -> Box<dyn ResourceScheduler>,
}

/// Every resource scheduler there is.
pub const RESOURCE_SCHEDULERS: &[ResourceSchedulerRegistration] = &[
    ResourceSchedulerRegistration {
        name: "blind-equal-throughput",
        summary: "each TTI to the UE with the lowest past throughput (TD-BET)",
        build: || Box::new(BlindEqualThroughput),
    },
    ResourceSchedulerRegistration {
        name: "blind-equal-throughput-reserved",
        summary: "the same, but UEs without data take their turns in vain (as ns-3's TD-BET does)",
        build: || Box::new(ReservedBet),
    },
    ResourceSchedulerRegistration {
        name: "blind-equal-throughput-fd",
        summary: "each resource block group to the UE with the lowest past throughput (FD-BET)",
        build: || Box::new(FrequencyDomainBet::default()),
    },
    ResourceSchedulerRegistration {
        name: "proportional-fair",
        summary: "each resource block group to the UE whose rate there is best against its past throughput",
        build: || Box::new(ProportionalFair),
    },
    ResourceSchedulerRegistration {
        name: "round-robin",
        summary: "resource block groups dealt out evenly, in turn",
        build: || Box::new(RoundRobin::default()),
    },
    ResourceSchedulerRegistration {
        name: "maximum-throughput",
        summary: "each resource block group to the UE with the best rate there",
        build: || Box::new(MaximumThroughput),
    },
];

/// Makes the resource scheduler called `name`, if there is one.
pub(crate) fn build(name: &str) -> Option<Box<dyn ResourceScheduler>> {
    RESOURCE_SCHEDULERS.iter().find(|known| known.name == name).map(|known| (known.build)())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheduler_goes_by_its_registered_name() {
        for registration in RESOURCE_SCHEDULERS {
            assert_eq!(build(registration.name).unwrap().name(), registration.name);
        }
        assert!(build("bet").is_none());
    }
}
