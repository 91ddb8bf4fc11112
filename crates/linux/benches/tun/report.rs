//! All rounds of all cases, and the table of them.

use std::fmt;

use crate::kernel::Protocol;
use crate::measured::Measured;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    KernelToKernel,
    EngineToKernel,
    KernelToEngine,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub direction: Direction,
    pub protocol: Protocol,
}

impl Case {
    pub fn all() -> Vec<Self> {
        let directions = [Direction::KernelToKernel, Direction::EngineToKernel, Direction::KernelToEngine];
        let both = |protocol| directions.map(|direction| Self { direction, protocol });
        [both(Protocol::Tcp), both(Protocol::Mptcp)].concat()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = if self.protocol == Protocol::Tcp { "TCP" } else { "MPTCP" };
        let (direction, device) = match self.direction {
            Direction::KernelToKernel => ("kernel to kernel", "veth"),
            Direction::EngineToKernel => ("engine to kernel", "TUN"),
            Direction::KernelToEngine => ("kernel to engine", "TUN"),
        };
        f.pad(&format!("{protocol}, {direction}, {device}"))
    }
}

/// All rounds.
pub struct Report {
    rows: Vec<(Case, Vec<Measured>)>,
}

impl Report {
    pub fn new(cases: Vec<Case>) -> Self {
        Self { rows: cases.into_iter().map(|case| (case, Vec::new())).collect() }
    }

    pub fn add(&mut self, case: Case, measured: Measured) {
        let row = self.rows.iter_mut().find(|(known, _)| *known == case).expect("the case has a row");
        row.1.push(measured);
    }

    /// The kernel alone, in the same protocol.
    fn reference(&self, case: &Case) -> Option<&[Measured]> {
        let reference = Case { direction: Direction::KernelToKernel, ..*case };
        self.rows.iter().find(|(known, _)| *known == reference).map(|(_, rounds)| rounds.as_slice())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<32} {:>8} {:>15} {:>8} {:>16}", "", "Gbit/s", "lowest-highest", "ratio", "Gbit per CPU s")?;
        for (case, rounds) in &self.rows {
            let rates: Vec<f64> = rounds.iter().map(Measured::gbps).collect();
            let (low, high) =
                rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
            let ratio = self.reference(case).map_or(f64::NAN, |reference| {
                median(rounds.iter().zip(reference).map(|(ours, theirs)| ours.gbps() / theirs.gbps()))
            });
            let per_cpu = median(rounds.iter().map(Measured::gbit_per_cpu_s));
            let spread = format!("{low:.1}-{high:.1}");
            let gbps = median(rates.into_iter());
            writeln!(f, "{case:<32} {gbps:>8.2} {spread:>15} {ratio:>8.2} {per_cpu:>16.2}")?;
        }
        write!(
            f,
            "ratio: to the kernel alone, round by round. CPU: the engine's thread, or the sending one between kernels."
        )
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
