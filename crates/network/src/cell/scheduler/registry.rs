//! All resource schedulers, by name.

use policy::UnknownName;

use super::{
    BlindEqualThroughput, FrequencyDomainBet, MaximumThroughput, ProportionalFair, ReservedBet, ResourceScheduler,
    RoundRobin,
};

/// A resource scheduler with its name.
pub type Registration = policy::Registration<fn() -> Box<dyn ResourceScheduler>>;

/// All resource schedulers.
pub const RESOURCE_SCHEDULERS: &[Registration] = &[
    Registration {
        name: "blind-equal-throughput",
        summary: "each TTI to the UE with the lowest past throughput (TD-BET)",
        build: || Box::new(BlindEqualThroughput),
    },
    Registration {
        name: "blind-equal-throughput-reserved",
        summary: "the same, but UEs without data take their turns in vain (as ns-3's TD-BET does)",
        build: || Box::new(ReservedBet),
    },
    Registration {
        name: "blind-equal-throughput-fd",
        summary: "each resource block group to the UE with the lowest past throughput (FD-BET)",
        build: || Box::new(FrequencyDomainBet::default()),
    },
    Registration {
        name: "proportional-fair",
        summary: "each resource block group to the UE whose rate there is best against its past throughput",
        build: || Box::new(ProportionalFair),
    },
    Registration {
        name: "round-robin",
        summary: "resource block groups dealt out evenly, in turn",
        build: || Box::new(RoundRobin::default()),
    },
    Registration {
        name: "maximum-throughput",
        summary: "each resource block group to the UE with the best rate there",
        build: || Box::new(MaximumThroughput),
    },
];

/// Makes the resource scheduler called `name`.
pub(crate) fn build(name: &str) -> Result<Box<dyn ResourceScheduler>, UnknownName> {
    policy::find("resource scheduler", RESOURCE_SCHEDULERS, name).map(|found| (found.build)())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheduler_goes_by_its_registered_name() {
        for registration in RESOURCE_SCHEDULERS {
            assert_eq!(build(registration.name).unwrap().name(), registration.name);
        }
        assert!(build("bet").is_err());
    }
}
