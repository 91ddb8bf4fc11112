//! Arguments of `anabranch cc`.

use clap::{Args, Subcommand};

/// Arguments of `anabranch cc`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    sudo anabranch cc load lia          # until unload, or the next start of the machine\n  \
    sudo anabranch cc set lia           # for all new connections of this network namespace\n  \
    sudo anabranch cc status --watch    # windows and round-trip times of every subflow")]
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

/// Arguments of `anabranch cc set`.
#[derive(Args, Debug)]
pub struct CcSet {
    /// Which controller
    #[arg(value_name = "NAME")]
    pub name: String,
}
