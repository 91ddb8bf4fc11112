//! What relay selectors can be set to.

use core::str::FromStr;

/// How literally the papers are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// With the corrections that make the papers' algorithms work.
    #[default]
    Build,
    /// The thesis as literally as it runs: one list for sets of all sizes, every relay that offers anything.
    PaperThesis,
    /// The SSRS paper as literally as it runs: as the thesis, and the backup chosen by the same two factors as the active set.
    PaperSsrs,
}

/// No mode has this name.
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

/// Settings of a relay selector; each uses those that it knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelectorSettings {
    /// How much a subset sum may lose by trimming, as a part of it (epsilon). The papers set it to theta.
    pub epsilon: f64,
    /// How literally the papers are taken.
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
