//! The stacks that send and receive.

/// Whose MPTCP a host uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// The kernel's.
    Kernel,
    /// The engine's, with the agent of the host.
    Engine,
}

/// The two ends of a scenario's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The sender's stack.
    pub source: Stack,
    /// The receiver's stack.
    pub destination: Stack,
}

impl Ends {
    /// The kernel sends, and the engine receives.
    pub const KERNEL_TO_ENGINE: Self = Self { source: Stack::Kernel, destination: Stack::Engine };
    /// The engine at both ends.
    pub const ENGINES: Self = Self { source: Stack::Engine, destination: Stack::Engine };
    /// The kernel at both ends.
    pub const KERNELS: Self = Self { source: Stack::Kernel, destination: Stack::Kernel };

    /// Returns whether the kernel is one of them.
    pub(crate) fn has_kernel(self) -> bool {
        self != Self::ENGINES
    }
}
