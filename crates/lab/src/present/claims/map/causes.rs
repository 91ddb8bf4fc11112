//! Why claims hold under none of the conditions, where that was measured or follows from the papers' own equations.

/// The cause of the claim `id`; `None` if it is not known.
pub(super) fn of(id: &str) -> Option<&'static str> {
    CAUSES.iter().find(|(claim, _)| *claim == id).map(|(_, cause)| *cause)
}

const CAUSES: &[(&str, &str)] = &[
    (
        "C14",
        "round trips differ little (1.26 times in the median as shipped); ACC levels them (1.03), worth 3 % of G1 in units of 2 s and 14 % \
         in units of 0.4 s; data that are bound early wait at the subflow instead (docs/repairs.md)",
    ),
    (
        "C31",
        "AIMD(0.7, 0.625) is TCP-friendly by the thesis's own (7.2), so LIA cannot take more from it than from TCP",
    ),
    ("C35", "rho / K stays below one whenever the selected set is in range, so MCC-Coop grows as LIA does"),
    ("C36", "rho / K stays below one whenever the selected set is in range, so MCC-Coop grows as LIA does"),
    ("C37", "rho / K stays below one whenever the selected set is in range, so GMCC-Coop grows as MPAIMD does"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_of_claims_that_there_are() {
        for (id, cause) in CAUSES {
            assert!(super::super::super::claims().any(|claim| claim.id == *id) && !cause.is_empty(), "{id}");
        }
        assert_eq!((of("C99"), of("C35").is_some()), (None, true));
    }
}
