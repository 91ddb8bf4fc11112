//! Arguments of `anabranch cc`.

use clap::{ArgGroup, Args, Subcommand};
use cooperation::adaptive_congestion::Beyond;

/// Arguments of `anabranch cc`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    sudo anabranch cc load lia          # until it is unloaded or the machine restarts\n  \
    sudo anabranch cc set lia           # for all new connections of this network namespace\n  \
    sudo anabranch cc status --watch    # windows and round-trip times of every subflow\n  \
    sudo anabranch cc tell 1f2e3d4c 1 --rho 5  # competition on a path, for mcc-coop\n  \
    sudo anabranch cc adapt lia         # adaptive congestion control over it, as in the thesis")]
pub struct Cc {
    /// The subcommand.
    #[command(subcommand)]
    pub order: CcOrder,
}

/// Actions on the kernel's controllers.
#[derive(Debug, Subcommand)]
pub enum CcOrder {
    /// List controllers, their names in the kernel, and which are loaded
    List,
    /// Load controllers into the kernel
    Load(CcLoad),
    /// Unload controllers; connections that use them continue to do so
    Unload(CcUnload),
    /// Show the state of every subflow of their connections
    Status(CcStatus),
    /// Pass on a relay's report about a path: how strongly its own flows compete, and the delay to the destination
    Tell(CcTell),
    /// Cut the windows of the slowest paths: adaptive congestion control over a controller. Options that are not given
    /// have the thesis's values, whatever was set before
    Adapt(CcAdapt),
    /// Choose the controller of new connections in this network namespace; the kernel's own are available too
    Set(CcSet),
}

/// Arguments of `anabranch cc load`.
#[derive(Args, Debug)]
pub struct CcLoad {
    /// The controllers
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Maximum number of connections, including plain TCP; each takes 2.4 KiB while it exists
    #[arg(long, value_name = "N", default_value_t = 16384, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub connections_max: u32,
}

/// Arguments of `anabranch cc unload`.
#[derive(Args, Debug)]
pub struct CcUnload {
    /// The controllers
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
}

/// Arguments of `anabranch cc status`.
#[derive(Args, Debug)]
pub struct CcStatus {
    /// The controller; by default all that are loaded
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
    /// Update every second, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
}

fn token(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 16)
        .map_err(|_| "write up to eight hexadecimal digits, as `anabranch cc status` shows them".into())
}

fn whole_millis(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|millis| *millis > 0).ok_or_else(|| "write whole milliseconds, 1 or more".into())
}

/// Arguments of `anabranch cc tell`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("told").args(["rho", "way_ms"]).multiple(true))]
pub struct CcTell {
    /// Token of the connection, as in `cc status`
    #[arg(value_parser = token)]
    pub token: u32,
    /// Identifier of the other end's address, as in `cc status`; 0 is the address of the connection itself
    #[arg(value_name = "ADDRESS-ID")]
    pub address_id: u8,
    /// Competition with flows of the relay, for mcc-coop and gmcc-coop: there is some if above 1. Without this and
    /// `--way` the last report is withdrawn
    #[arg(long, value_name = "RATIO", allow_negative_numbers = true)]
    pub rho: Option<f64>,
    /// Segments that such a flow gains per round trip (alpha'), for gmcc-coop
    #[arg(long, value_name = "SEGMENTS", default_value_t = 1.0, requires = "rho", allow_negative_numbers = true)]
    pub alpha: f64,
    /// What a loss leaves of the window of such a flow (beta'), for gmcc-coop
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, requires = "rho", allow_negative_numbers = true)]
    pub beta: f64,
    /// Delay from the relay to the destination in milliseconds, for adaptive congestion control
    #[arg(long = "way", value_name = "MS", value_parser = whole_millis, allow_negative_numbers = true)]
    pub way_ms: Option<u64>,
    /// Lifetime of the report in seconds, if no other follows
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 6, requires = "told")]
    pub holds_s: u64,
}

/// Arguments of `anabranch cc adapt`. Options that are not given have the thesis's values, whatever was set before.
#[derive(Args, Debug)]
pub struct CcAdapt {
    /// The controller; applies to all its connections
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Switch it off; windows grow again
    #[arg(long, conflicts_with_all = ["period_s", "eta_min", "eta_max", "beyond", "cuts_max", "age_rtts"])]
    pub off: bool,
    /// Period in seconds (F)
    #[arg(long = "period", value_name = "SECONDS", default_value_t = 2.0)]
    pub period_s: f64,
    /// Ratio of the largest to the smallest delay above which windows are cut
    #[arg(long, value_name = "RATIO", default_value_t = 1.0)]
    pub eta_min: f64,
    /// Ratio up to which a window is divided by it
    #[arg(long, value_name = "RATIO", default_value_t = 3.0)]
    pub eta_max: f64,
    /// Beyond that: `ignore`, as in the thesis, `cap`, or `spread` with a limit for each path
    #[arg(long, value_name = "WHAT", default_value = "ignore")]
    pub beyond: Beyond,
    /// Maximum number of consecutive cuts of the same path, before one period without (m)
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub cuts_max: u32,
    /// Age in round-trip times before a subflow can be cut (Gamma)
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub age_rtts: u64,
}

/// Arguments of `anabranch cc set`.
#[derive(Args, Debug)]
pub struct CcSet {
    /// The controller
    #[arg(value_name = "NAME")]
    pub name: String,
}
