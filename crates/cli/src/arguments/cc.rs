//! Arguments of `anabranch cc`.

use clap::{Args, Subcommand};

/// Arguments of `anabranch cc`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    sudo anabranch cc load lia          # until unload, or the next start of the machine\n  \
    sudo anabranch cc set lia           # for all new connections of this network namespace\n  \
    sudo anabranch cc status --watch    # windows and round-trip times of every subflow\n  \
    sudo anabranch cc tell 1f2e3d4c 1 --rho 5  # what the subflows of a path compete with, for mcc-coop")]
pub struct Cc {
    /// What to do.
    #[command(subcommand)]
    pub order: CcOrder,
}

/// What becomes of a controller of the kernel.
#[derive(Debug, Subcommand)]
pub enum CcOrder {
    /// List controllers, what the kernel calls them, and which are loaded
    List,
    /// Give the kernel controllers
    Load(CcLoad),
    /// Take controllers back; connections that use them go on with them
    Unload(CcUnload),
    /// Show what every subflow of their connections does
    Status(CcStatus),
    /// Tell what the subflows of a path compete with at its relay, for those that yield: mcc-coop and gmcc-coop
    Tell(CcTell),
    /// Choose what new connections of this network namespace use; of the kernel's own too
    Set(CcSet),
}

/// Arguments of `anabranch cc load`.
#[derive(Args, Debug)]
pub struct CcLoad {
    /// Which controllers
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// For how many connections, plain ones included, there is room: 2.3 KiB for each while it is there
    #[arg(long, value_name = "N", default_value_t = 16384, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub connections_max: u32,
}

/// Arguments of `anabranch cc unload`.
#[derive(Args, Debug)]
pub struct CcUnload {
    /// Which controllers
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
}

/// Arguments of `anabranch cc status`.
#[derive(Args, Debug)]
pub struct CcStatus {
    /// Which controller; without it, all that are loaded
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
    /// Show it again every second, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
}

/// Arguments of `anabranch cc tell`.
#[derive(Args, Debug)]
pub struct CcTell {
    /// Token of the connection, as `cc status` shows it
    #[arg(value_parser = |text: &str| u32::from_str_radix(text, 16))]
    pub token: u32,
    /// Identifier of the other end's address, as `cc status` shows it; 0 is that of the connection itself
    #[arg(value_name = "ADDRESS-ID")]
    pub address_id: u8,
    /// Competition with flows of the relay: above 1 there is some; without it, what was told is taken back
    #[arg(long, value_name = "RATIO")]
    pub rho: Option<f64>,
    /// Segments that such a flow gains per round trip (alpha'), for gmcc-coop
    #[arg(long, value_name = "SEGMENTS", default_value_t = 1.0, requires = "rho")]
    pub alpha: f64,
    /// What a loss leaves of the window of such a flow (beta'), for gmcc-coop
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, requires = "rho")]
    pub beta: f64,
    /// How long it holds, seconds: as long as the subflow should yield if it is not told again
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 6, requires = "rho")]
    pub holds_s: u64,
}

/// Arguments of `anabranch cc set`.
#[derive(Args, Debug)]
pub struct CcSet {
    /// Which controller
    #[arg(value_name = "NAME")]
    pub name: String,
}
