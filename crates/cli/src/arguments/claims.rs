//! Arguments of `anabranch claims`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{Backend, jobs};

/// Default folder for finished runs.
const OUT: &str = "out/claims";
/// Default number of seeds that confirm.
const CONFIRM: u64 = 40;

/// Arguments of `anabranch claims`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    anabranch claims --ids C05,C06 --seeds 20\n  \
    anabranch claims --json > claims.json\n  \
    anabranch claims --backend linux --ids C50,C51 --seeds 2   # as root, in real time: 9 h for all")]
pub struct Claims {
    /// Only these claims, by number; with --map also "users", the effect of modules that people notice
    #[arg(long, value_name = "ID,ID...", value_delimiter = ',')]
    pub ids: Vec<String>,
    /// Number of seeds for every comparison; by default 20, with ns-3 5, on Linux 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000), allow_hyphen_values = true)]
    pub seeds: Option<u64>,
    /// Where to run; on Linux the kernel is at both ends, in real time; with ns-3, cells have its FD-BET scheduler
    #[arg(long, value_enum, default_value_t, conflicts_with = "map")]
    pub backend: Backend,
    /// Algorithms as corrected, or as printed in the papers
    #[arg(long, value_enum, default_value_t = ClaimMode::Build)]
    pub mode: ClaimMode,
    /// Show under which conditions each claim holds; a page and JSON are written beside the runs
    #[arg(long)]
    pub map: bool,
    /// With --map, only these conditions, besides the scenarios as they ship
    #[arg(long, value_name = "NAME,NAME...", value_delimiter = ',', requires = "map")]
    pub conditions: Vec<String>,
    /// With --map, number of further seeds to confirm the results; 0 for none
    #[arg(long, value_name = "N", default_value_t = CONFIRM, value_parser = clap::value_parser!(u64).range(0..=10_000), requires = "map", allow_hyphen_values = true)]
    pub confirm: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Folder for finished runs, which are not repeated
    #[arg(long, value_name = "DIR", default_value = OUT)]
    pub out: PathBuf,
    /// Number of runs at the same time; by default one per core, on Linux one
    #[arg(long, value_name = "N", value_parser = jobs, allow_hyphen_values = true)]
    pub jobs: Option<usize>,
}

impl Claims {
    /// Returns the folder for finished runs, if it is not the default.
    pub fn chosen_out(&self) -> Option<&Path> {
        (self.out != Path::new(OUT)).then_some(&self.out)
    }

    /// Returns the number of seeds to confirm the results, if it is not the default.
    pub fn chosen_confirm(&self) -> Option<u64> {
        (self.confirm != CONFIRM).then_some(self.confirm)
    }

    /// Returns the number of seeds for every comparison.
    pub fn seeds(&self) -> u64 {
        let usual = match self.backend {
            Backend::Simulator => 20,
            Backend::Ns3 => 5,
            Backend::Linux => 3,
        };
        self.seeds.unwrap_or(usual)
    }
}

/// How literally to follow the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClaimMode {
    /// As corrected
    Build,
    /// As printed
    Paper,
}
