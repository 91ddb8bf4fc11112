//! Where scenarios run, and which stacks are at their ends.

use clap::{Args, ValueEnum};

/// Where a scenario runs, and which stacks send and receive there.
#[derive(Args, Clone, Copy, Debug)]
pub struct World {
    /// Where to run
    #[arg(long, value_enum, default_value_t)]
    pub backend: Backend,
    /// With --backend linux: the stack that sends; by default the kernel
    #[arg(long, value_enum)]
    pub source: Option<StackKind>,
    /// With --backend linux: the stack that receives; by default the engine
    #[arg(long, value_enum)]
    pub destination: Option<StackKind>,
}

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// In the simulator, as fast as possible
    #[default]
    Simulator,
    /// On real Linux, in real time: hosts in network namespaces, links and radio as in the simulator (needs root)
    Linux,
    /// In the simulator, but with the cell and the Wi-Fi channel of ns-3
    Ns3,
}

/// The Multipath TCP stack of a host on real Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackKind {
    /// The kernel's
    Kernel,
    /// The engine's, with all that the scenario specifies for the host
    Engine,
}

impl World {
    /// Checks the choice of stacks, which exists only on Linux.
    ///
    /// # Errors
    /// If a stack is chosen in the simulator.
    pub fn check(&self) -> Result<(), String> {
        let chosen = [("--source", self.source, "sends"), ("--destination", self.destination, "receives")];
        let is_simulated = self.backend != Backend::Linux;
        let refused = chosen.into_iter().find(|(_, chosen, _)| chosen.is_some() && is_simulated);
        refused.map_or(Ok(()), |(option, _, does)| {
            Err(format!("{option}: in the simulator the engine always {does}\n  help: add --backend linux"))
        })
    }

    /// Returns the sending and the receiving stack on Linux.
    pub fn ends(&self) -> testbed::Ends {
        let stack = |kind| match kind {
            StackKind::Kernel => testbed::Stack::Kernel,
            StackKind::Engine => testbed::Stack::Engine,
        };
        testbed::Ends {
            source: stack(self.source.unwrap_or(StackKind::Kernel)),
            destination: stack(self.destination.unwrap_or(StackKind::Engine)),
        }
    }

    /// Returns the options as on the command line, with a space before each word.
    pub fn words(&self) -> String {
        let mut words = String::new();
        words.push_str(match self.backend {
            Backend::Simulator => "",
            Backend::Linux => " --backend linux",
            Backend::Ns3 => " --backend ns3",
        });
        if self.source == Some(StackKind::Engine) {
            words.push_str(" --source engine");
        }
        if self.destination == Some(StackKind::Kernel) {
            words.push_str(" --destination kernel");
        }
        words
    }
}
