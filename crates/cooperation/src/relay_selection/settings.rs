//! The settings of relay selectors.

use core::str::FromStr;

/// How literally a selector follows the papers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// With the corrections that make the papers' algorithms work.
    #[default]
    Build,
    /// The thesis as literally as possible: one list for sets of all sizes, every relay that offers anything.
    PaperThesis,
    /// The SSRS paper as literally as possible: as the thesis, but the backup is chosen by the same two factors as the
    /// active set.
    PaperSsrs,
}

/// The error for a name that no mode has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode {0:?} (there are: build, paper, paper-ssrs)")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;
    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        match name {
            "build" => Ok(Self::Build),
            "paper" => Ok(Self::PaperThesis),
            "paper-ssrs" => Ok(Self::PaperSsrs),
            _ => Err(UnknownMode(name.into())),
        }
    }
}

/// Settings of a relay selector; each selector uses those that it knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelectorSettings {
    /// Part of a subset sum that trimming may lose (epsilon). The papers set it to theta.
    pub epsilon: f64,
    /// How literally the selector follows the papers.
    pub mode: Mode,
}

impl Default for SelectorSettings {
    fn default() -> Self {
        Self { epsilon: 0.1, mode: Mode::Build }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_go_by_their_names() {
        let parsed = ["build", "paper", "paper-ssrs"].map(|name| name.parse::<Mode>().unwrap());
        assert_eq!(parsed, [Mode::Build, Mode::PaperThesis, Mode::PaperSsrs]);
        assert_eq!(
            "papers".parse::<Mode>().unwrap_err().to_string(),
            "unknown mode \"papers\" (there are: build, paper, paper-ssrs)"
        );
    }
}
