//! All rounds of all cases, and their tables.

use std::fmt;

use crate::bare::Call;
use crate::environment::Way;
use crate::kernel::Protocol;
use crate::measured::Measured;
use crate::relay::Through;

/// Direction of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    EngineToKernel,
    KernelToEngine,
}

/// One row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Two kernels over veth.
    Kernels(Protocol),
    /// An engine and a kernel.
    Engine { direction: Direction, protocol: Protocol, way: Way },
    /// System calls alone.
    Bare { call: Call, queues: usize },
    /// Between two kernels, with something in the middle.
    Middle { through: Through, singles: bool },
}

/// The tables.
const SECTIONS: [(&str, Section); 3] = [
    ("Super-segments; ratio: to the kernel alone", Section::Whole),
    ("Packet by packet; ratio: to bare system calls of one queue", Section::Singles),
    ("Through the middle; ratio: to the kernel's forwarding", Section::Middle),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Whole,
    Singles,
    Middle,
}

impl Case {
    pub fn all() -> Vec<Self> {
        let directions = [Direction::EngineToKernel, Direction::KernelToEngine];
        let protocols = [Protocol::Tcp, Protocol::Mptcp];
        let engines = move |way, protocol| directions.map(|direction| Self::Engine { direction, protocol, way });
        let whole = protocols
            .into_iter()
            .flat_map(|protocol| core::iter::once(Self::Kernels(protocol)).chain(engines(Way::Whole, protocol)));
        let bare =
            [Call::Read, Call::Write].into_iter().flat_map(|call| [1, 2].map(|queues| Self::Bare { call, queues }));
        let singles = [Way::Line, Way::Plain]
            .into_iter()
            .flat_map(|way| protocols.into_iter().flat_map(move |protocol| engines(way, protocol)));
        let middle = [false, true]
            .into_iter()
            .flat_map(|singles| [Through::Kernel, Through::Relay].map(|through| Self::Middle { through, singles }));
        whole.chain(bare).chain(singles).chain(middle).collect()
    }

    fn section(self) -> Section {
        match self {
            Self::Kernels(_) | Self::Engine { way: Way::Whole, .. } => Section::Whole,
            Self::Engine { .. } | Self::Bare { .. } => Section::Singles,
            Self::Middle { .. } => Section::Middle,
        }
    }

    /// Returns the case with which this one is compared.
    pub fn reference(self) -> Self {
        match self {
            Self::Kernels(protocol) | Self::Engine { protocol, way: Way::Whole, .. } => Self::Kernels(protocol),
            Self::Engine { direction: Direction::EngineToKernel, .. } | Self::Bare { call: Call::Write, .. } => {
                Self::Bare { call: Call::Write, queues: 1 }
            }
            Self::Engine { direction: Direction::KernelToEngine, .. } | Self::Bare { call: Call::Read, .. } => {
                Self::Bare { call: Call::Read, queues: 1 }
            }
            Self::Middle { singles, .. } => Self::Middle { through: Through::Kernel, singles },
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = |protocol| if protocol == Protocol::Tcp { "TCP" } else { "MPTCP" };
        let name = match *self {
            Self::Kernels(speaks) => format!("{}, kernel to kernel, veth", protocol(speaks)),
            Self::Engine { direction, protocol: speaks, way } => {
                let direction = match direction {
                    Direction::EngineToKernel => "engine to kernel",
                    Direction::KernelToEngine => "kernel to engine",
                };
                let way = match way {
                    Way::Whole => "TUN",
                    Way::Line => "over a line",
                    Way::Plain => "plain TUN",
                };
                format!("{}, {direction}, {way}", protocol(speaks))
            }
            Self::Bare { call, queues } => {
                let call = if call == Call::Read { "reads" } else { "writes" };
                format!("bare {call}, {queues} queue(s)")
            }
            Self::Middle { through, singles } => {
                let through = if through == Through::Kernel { "kernel forwards" } else { "relay splices" };
                let packets = if singles { "single packets" } else { "super-segments" };
                format!("{through}, {packets}")
            }
        };
        f.pad(&name)
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

    fn rounds(&self, case: Case) -> Option<&[Measured]> {
        self.rows.iter().find(|(known, _)| *known == case).map(|(_, rounds)| rounds.as_slice())
    }

    fn write_row(&self, f: &mut fmt::Formatter<'_>, case: Case, rounds: &[Measured]) -> fmt::Result {
        let rates: Vec<f64> = rounds.iter().map(Measured::gbps).collect();
        let (low, high) = rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
        let reference = self.rounds(case.reference());
        let against = |value: fn(&Measured) -> f64| {
            reference.map_or(f64::NAN, |reference| {
                median(rounds.iter().zip(reference).map(|(ours, theirs)| value(ours) / value(theirs)))
            })
        };
        let per_cpu_ratio = against(|measured| measured.packets() / measured.cpu_s);
        let (gbps, spread) = (median(rates.into_iter()), format!("{low:.1}-{high:.1}"));
        let kpps = median(rounds.iter().map(Measured::packets_per_s)) / 1e3;
        let cpu_ns = median(rounds.iter().map(Measured::cpu_ns_per_packet));
        let per_cpu = median(rounds.iter().map(Measured::gbit_per_cpu_s));
        let ratio = against(Measured::packets_per_s);
        writeln!(
            f,
            "{case:<34} {gbps:>7.2} {spread:>12} {kpps:>9.0} {ratio:>6.2} {cpu_ns:>10.0} {per_cpu_ratio:>6.2} {per_cpu:>7.1}"
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, section) in SECTIONS {
            let mut rows = self.rows.iter().filter(|(case, _)| case.section() == section).peekable();
            if rows.peek().is_none() {
                continue;
            }
            writeln!(f, "\n{title}")?;
            writeln!(
                f,
                "{:<34} {:>7} {:>12} {:>9} {:>6} {:>10} {:>6} {:>7}",
                "", "Gbit/s", "low-high", "k pkt/s", "ratio", "CPU ns/pkt", "ratio", "Gbit/CPU s"
            )?;
            rows.try_for_each(|(case, rounds)| self.write_row(f, *case, rounds))?;
        }
        write!(
            f,
            "\nratios: round by round, of packets a second and of packets a CPU second. CPU: of the engine's thread, or the sending one \
             between kernels, or those that read or write."
        )
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
