//! The command line of `anabranch`.

mod cc;
mod claims;
mod values;
mod world;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use cooperation::link::Name;
use cooperation::relay_selection::{Registration, SELECTORS, SHORT_NAMES};
use daemon::links::RelayChoice;
use daemon::proxy::choice::Tier;
use daemon::relay::Limit;
use daemon::store;
use lab::scenario::{Override, Seeds};
use tracing_subscriber::filter::Targets;
use transport::congestion::ControllerSpec;
use units::{Duration, Rate};

use crate::rate::target;

pub use cc::{Cc, CcAdapt, CcOrder, CcStatus, CcTell};
pub use claims::{ClaimMode, Claims};
pub use values::{Cap, Change, PairTarget};
pub use world::{Backend, StackKind, World};

use values::{
    address, cap, change, device_name, filter, interface, jobs, pair_target, patience, percent, place, priced, relay,
    reset_day, seed, tiered, untiered, uplink, volume,
};

/// Pools the links of nearby devices into one Multipath TCP connection.
#[derive(Debug, Parser)]
#[command(
    version,
    arg_required_else_help = true,
    propagate_version = true,
    after_help = "Exit codes:\n  \
    0  it worked, or the answer is yes\n  \
    1  what was asked for could work, but failed or is not there now; or the answer is no\n  \
    2  it cannot work as it is written: an argument is wrong, or a file or folder that it names"
)]
pub struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario in the simulator, or on real Linux
    Run(Run),
    /// Run every variant of a scenario with many seeds, on all cores; continues where it was stopped
    Sweep(Sweep),
    /// Compare two runs or two sweeps, seed by seed
    Compare(Compare),
    /// Check scenario files: reports what is wrong, where, and what to write instead
    Check(Check),
    /// List the scenarios that ship
    Scenarios(Scenarios),
    /// List the congestion controllers, schedulers and other policies that settings can name
    Policies(Policies),
    /// Choose relays whose offers add up to a target bit rate
    Select(Select),
    /// Write a trace of block fading in ns-3's .fad format
    Fading(Fading),
    /// Send a file over four relays, check it, and write a report
    Demo(Demo),
    /// Show the papers' claims beside measured results
    Claims(Claims),
    /// Create network namespaces whose links behave as described, until Ctrl-C (needs root)
    Emulate(Emulate),
    /// Serve a folder with HTTP over Multipath TCP, until Ctrl-C (needs root)
    Serve(Serve),
    /// Download a file with HTTP over Multipath TCP (needs root)
    Get(Get),
    /// Use several uplinks of this device as one, through a proxy for programs, until Ctrl-C (needs root)
    Join(Box<Join>),
    /// Lend this device's own link to paired devices, until Ctrl-C (needs root)
    Relay(Relay),
    /// List the devices paired with this one, or remove one (needs root)
    Peers(Peers),
    /// Show the state of `anabranch join` or `relay`: uplinks, rates, delays, clients, destinations
    Status(Status),
    /// Find out what prevents uplinks from being used as one, and what to change (finds more as root)
    Doctor(Doctor),
    /// Manage the engine's congestion controllers in the running kernel, for its own Multipath TCP (needs root)
    Cc(Cc),
    /// Undo the changes that a killed `anabranch join`, `relay` or `get` left in this network namespace (needs root)
    Clean,
    /// Write the manual: a page for every command into a folder, or the main page to standard output
    Manual(Manual),
    /// Write the shell's completion script to standard output
    Completions(Completions),
}

/// Arguments of `anabranch manual`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    anabranch manual | man -l -                          # the first page, now\n  \
    sudo anabranch manual /usr/local/share/man/man1      # all pages, for `man anabranch-join`")]
pub struct Manual {
    /// The folder; created if it does not exist
    pub folder: Option<PathBuf>,
}

/// Arguments of `anabranch completions`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    anabranch completions bash | sudo tee /usr/share/bash-completion/completions/anabranch > /dev/null\n  \
    anabranch completions fish > ~/.config/fish/completions/anabranch.fish")]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// What a daemon logs to standard error while it runs.
#[derive(Args, Debug)]
pub struct Log {
    /// Log level: off, error, warn, info, debug or trace; also for a single part: info,daemon::pairing=debug
    #[arg(long = "log", value_name = "LEVEL", env = "ANABRANCH_LOG", default_value = "info", value_parser = filter)]
    pub level: Targets,
    /// Format of the log
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
}

/// Format of logged events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line per event, for people
    #[default]
    Text,
    /// One JSON object per event and line, with the time
    Json,
}

/// Arguments of `anabranch run`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    anabranch run scenarios/demo.toml --out out\n  \
    anabranch run scenarios/demo.toml --seed 7 --set connection.congestion=cubic\n  \
    anabranch run mveno-5 --variant OLIA --set 'workload.size=1 MB'\n  \
    anabranch run scenarios/demo.toml --set 'relays[*].cellular.loss=1 %' --json\n  \
    anabranch run scenarios/demo.toml --set connection.congestion=cubic --backend linux")]
pub struct Run {
    /// The scenario file, or the name of a scenario that ships
    pub scenario: PathBuf,
    /// Run this variant, by name; by default the scenario as written
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Seed of all randomness, instead of the scenario's
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub seed: Option<u64>,
    /// Change a field: relays[0].cellular.delay=10 ms; also chooses a point of the grid; repeatable
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub overrides: Vec<Override>,
    #[command(flatten)]
    pub world: World,
    /// Print the results as one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
    /// Show the throughput and each relay's share during the run
    #[arg(long)]
    pub live: bool,
    /// Write captures to DIR: source.pcapng and destination.pcapng
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Write logs of what the engine decides and why to DIR: source.sqlog and destination.sqlog (qlog)
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,
    /// Write results.json and report.html to DIR; in the simulator the same scenario and seed give the same bytes
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Arguments of `anabranch sweep`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    anabranch sweep thesis-3.7 --seeds 1..20\n  \
    anabranch sweep mveno-5 --set 'workload.size=1 MB' --out out/small --json")]
pub struct Sweep {
    /// The scenario file, or the name of a scenario that ships
    pub scenario: PathBuf,
    /// Seeds, first and last included: 1..30; by default the scenario's, or 1..10 if it has none
    #[arg(long, value_name = "FIRST..LAST", allow_hyphen_values = true)]
    pub seeds: Option<Seeds>,
    #[command(flatten)]
    pub world: World,
    /// Number of runs at the same time; by default one per core, on Linux one
    #[arg(long, value_name = "N", value_parser = jobs, allow_hyphen_values = true)]
    pub jobs: Option<usize>,
    /// Change a field in all runs; repeatable. For an axis of the grid, this value replaces all others. A field that
    /// variants set cannot be changed
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub overrides: Vec<Override>,
    /// Folder for the runs: runs.jsonl, runs.csv and summary.json; by default out/ and the scenario's name, for another
    /// backend a folder in it, such as out/demo/linux. Finished runs are repeated only if they had faults, on Linux or
    /// in another build of this program; more seeds, points and variants stand beside them
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Discard existing runs and start from the beginning
    #[arg(long)]
    pub restart: bool,
    /// Print the summary as one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `anabranch compare`.
#[derive(Args, Debug)]
#[command(
    after_help = "Runs with the same variant, point of the grid and seed are pairs. If each has a single case, such as one\n\
    run, its name does not matter. Differences are B less A, ratios B over A. If nothing can be compared, the exit code\n\
    is 1.\n\nExamples:\n  \
    anabranch compare out/lia out/olia                     # folders of two sweeps of one scenario\n  \
    anabranch compare out/a/results.json out/b/results.json --json"
)]
pub struct Compare {
    /// Results of a run (results.json) or of a sweep (runs.jsonl), or their folder
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The results to compare with them
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Print one JSON object with all values instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `anabranch check`.
#[derive(Args, Debug)]
pub struct Check {
    /// The scenario files, or names of scenarios that ship
    #[arg(required = true)]
    pub scenarios: Vec<PathBuf>,
}

/// Arguments of `anabranch scenarios`.
#[derive(Args, Debug)]
pub struct Scenarios {
    /// Print a JSON Schema of scenario files instead
    #[arg(long)]
    pub schema: bool,
}

/// Arguments of `anabranch policies`.
#[derive(Args, Debug)]
pub struct Policies {
    /// Print one JSON object instead of a list
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `anabranch select`.
#[derive(Args, Debug)]
#[command(
    after_help = "If no set in range is found, the nearest one is printed, and the exit code is 1.\n\nExamples:\n  \
    anabranch select --relays 0.5M,0.6M,0.7M,0.8M --target 1.5M\n  \
    anabranch select --relays '0.5 Mbit/s,800 kbit/s,1.1 Mbit/s' --target 1.5M --active 0,2 --json"
)]
pub struct Select {
    /// The relays' offers, in the order of their numbers from 0: 0.5M,600k
    #[arg(long, value_name = "RATE,...", allow_hyphen_values = true)]
    pub relays: String,
    /// The target bit rate: 3M
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub target: String,
    /// Permitted deviation of a sum from the target, as a fraction of it: 0.1 or 10 %
    #[arg(long, value_name = "PART", default_value = "0.1", allow_hyphen_values = true)]
    pub theta: String,
    /// Loss that the search may cause in a sum, as a fraction of it
    #[arg(long, value_name = "PART", default_value = "0.1", allow_hyphen_values = true)]
    pub epsilon: String,
    /// Numbers of the relays in use: 0,2
    #[arg(long, value_name = "NUMBER,...", allow_hyphen_values = true)]
    pub active: Option<String>,
    #[arg(long, value_name = "NAME", default_value = "ssrs", help = methods())]
    pub method: String,
    /// Seed of a method that draws at random
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// How literally to follow the papers: build, paper or paper-ssrs
    #[arg(long, value_name = "NAME", default_value = "build")]
    pub mode: String,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Lists all selection methods by name.
fn methods() -> String {
    let name = |known: &Registration| {
        let short = SHORT_NAMES.iter().find(|(_, full)| *full == known.name);
        short.map_or(known.name.into(), |(short, full)| format!("{full} (or {short})"))
    };
    let names = SELECTORS.iter().map(name).collect::<Vec<_>>().join(", ");
    format!("How they are chosen, with parameters if it has any, like random(1): {names}")
}

/// Arguments of `anabranch fading`.
#[derive(Args, Debug)]
#[command(
    after_help = "The trace lasts ten seconds; ns-3 then repeats it. Every UE starts at a different point.\n\nExample:\n  \
    anabranch fading --profile eva --speed '60 km/h' -o car.fad"
)]
pub struct Fading {
    /// Delays and powers of the taps (TS 36.104 annex B.2)
    #[arg(long, value_enum, default_value_t = Profile::Epa)]
    pub profile: Profile,
    /// Speed of the UE: 3 km/h, or 0.8 m/s
    #[arg(long, value_name = "SPEED", default_value = "3 km/h", allow_hyphen_values = true)]
    pub speed: String,
    /// Carrier frequency
    #[arg(long, value_name = "FREQUENCY", default_value = "2.12 GHz", allow_hyphen_values = true)]
    pub carrier: String,
    /// Seed of the fading
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// The file to write, - for standard output; about 7 MB
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
}

/// Fading profiles.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Profile {
    /// Extended pedestrian A
    Epa,
    /// Extended vehicular A
    Eva,
    /// Extended typical urban
    Etu,
}

/// Arguments of `anabranch demo`.
#[derive(Args, Debug)]
pub struct Demo {
    /// The file to send; by default 8 MB of generated data
    #[arg(long, value_name = "PATH")]
    pub file: Option<PathBuf>,
    /// Folder for results, report and captures
    #[arg(long, value_name = "DIR", default_value = "out/demo")]
    pub out: PathBuf,
    /// Seed of all randomness
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub seed: Option<u64>,
}

/// Arguments of `anabranch emulate`.
#[derive(Args, Debug)]
#[command(after_help = "A topology:\n  \
    [[host]]\n  name = \"server\"\n  \
    [[host]]\n  name = \"phone\"\n  \
    [[link]]\n  between = [\"server\", \"phone\"]\n  rate = \"10 Mbit/s\"\n  delay = \"20 ms\"\n  loss = \"1 %\"")]
pub struct Emulate {
    /// The topology file
    pub topology: PathBuf,
    /// Write a capture of every packet at every end of a link to FILE (pcapng)
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
}

/// Arguments of `anabranch serve`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    anabranch serve /srv/files\n  \
    ip netns exec server anabranch serve . --port 8080 --via 10.1.0.3 --via 10.2.0.3\n\n\
    For each request, a line on standard error says how it was answered, as soon as the client has acknowledged the\n\
    answer or the connection has ended: how many octets of the file the client has acknowledged and, if not all, why.\n\
    More may have been sent, and the client may have read more than it has acknowledged.")]
pub struct Serve {
    /// The folder; nothing outside it is reachable
    pub folder: PathBuf,
    /// Port to listen on
    #[arg(long, value_name = "PORT", default_value_t = 80, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// An address of the engine, routed to it; repeatable, one per path; by default a private network
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub via: Vec<IpAddr>,
    /// End a connection that is idle for this long: nothing is acknowledged and nothing requested
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = patience, allow_hyphen_values = true)]
    pub idle: Duration,
    /// Print a JSON object on its own line with the statistics of each finished connection; times are in nanoseconds
    #[arg(long)]
    pub json: bool,
    /// Settings of the engine.
    #[command(flatten)]
    pub engine: Engine,
}

/// Options that exclude `join --pair` and all options that require it: clap misses no option that another one excludes.
const BESIDE_PAIR: [&str; 4] = ["interfaces", "relays", "kernel", "dry_run"];

/// Arguments of `anabranch join`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    anabranch join                                              # all interfaces that reach the Internet now\n  \
    anabranch join --interface usb0 --interface usb1 --interface wlan0=backup\n  \
    anabranch join --interface usb0 --dry-run                   # what that would change on this host\n  \
    anabranch join set usb1=never target=4M                     # while it runs, from another terminal\n  \
    curl --proxy socks5h://127.0.0.1:1080 http://example.org/   # how programs use it; it is an HTTP proxy, too\n  \
    anabranch join --kernel --interface usb0 --interface usb1=backup\n  \
    mptcpize run curl http://example.org/                       # how programs use that\n  \
    anabranch join --pair                                       # pair with a relay; asks for its code\n  \
    anabranch join --pair 'anabranch:pair?address=...'          # the same, with the URI in its QR code\n  \
    anabranch join --relay anna --interface wlan0=backup        # over the relay called anna\n\n\
    Tiers: primary is always used; secondary if no primary can connect; backup carries data only when no other\n\
    uplink can; never is not used until it gets another tier. With --kernel and without --target, secondary is used\n\
    as primary. All changes are undone at the end, even if the program is killed; docs/uplinks.md lists them."
)]
pub struct Join {
    /// An interface that reaches the Internet directly, such as a tethered phone, and its tier: usb0, or wlan0=backup;
    /// repeatable; by default all such interfaces and all relays
    #[arg(long = "interface", value_name = "NAME[=TIER]", value_parser = tiered)]
    pub interfaces: Vec<(String, Tier)>,
    /// A paired device that runs `anabranch relay`, its address if that has changed, and its tier: anna, or
    /// anna@192.168.43.1=backup, or anna@fe80::1%wlan0; repeatable
    #[arg(long = "relay", value_name = "NAME[@ADDR][=TIER]", value_parser = relay)]
    pub relays: Vec<RelayChoice>,
    /// Pair with a device on which `anabranch relay --pair` shows a code, and exit; searches all networks of this
    /// device unless given the address or the URI in the QR code: 192.168.43.1, fe80::1%wlan0, 'anabranch:pair?...'
    #[arg(long, value_name = "ADDR|URI", value_parser = pair_target, num_args = 0..=1, conflicts_with_all = BESIDE_PAIR)]
    pub pair: Option<Option<PairTarget>>,
    /// With --pair: the code, with or without its space, instead of asking for it
    #[arg(long, value_name = "CODE", requires = "pair", conflicts_with_all = BESIDE_PAIR, num_args = 1..=2)]
    pub code: Vec<String>,
    /// With --pair: the name that the relay uses for this device, kept for later; by default the host name
    #[arg(long, value_name = "NAME", requires = "pair", conflicts_with_all = BESIDE_PAIR, value_parser = device_name)]
    pub name: Option<Name>,
    /// Folder for the keys of this device and its paired devices
    #[arg(long, value_name = "DIR", default_value = store::FOLDER)]
    pub state: PathBuf,
    /// A sufficient bit rate: only as many uplinks carry data as are needed to deliver it, the others wait as backups;
    /// by default all carry data
    #[arg(long, value_name = "RATE", value_parser = target, allow_hyphen_values = true)]
    pub target: Option<Rate>,
    /// Price of an octet over an uplink, a whole number in any unit: with --target the cheapest sufficient uplinks
    /// carry data; usb1=3, or via-anna=3 for the relay called anna; repeatable; by default 0
    #[arg(long = "price", value_name = "NAME=PRICE", value_parser = priced, allow_hyphen_values = true)]
    pub prices: Vec<(String, u32)>,
    /// Leave data to the kernel's own Multipath TCP, and manage its paths, instead of running the proxy: for programs
    /// under `mptcpize run` or with sockets of IPPROTO_MPTCP (Linux 5.19 or newer)
    #[arg(long, conflicts_with_all = ["listen", "open", "system_names", "congestion", "scheduler", "path_manager", "checksum", "pcap", "qlog"])]
    pub kernel: bool,
    /// Address on which the proxy listens for programs, SOCKS5 and HTTP on the same port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:1080", value_parser = place)]
    pub listen: SocketAddr,
    /// Allow `--listen` on an address that others can reach: everyone who can reach it may use the proxy
    #[arg(long)]
    pub open: bool,
    /// Look names up only at this device's name servers. By default, if none of them answers, the proxy asks them and
    /// the uplinks' gateways over each uplink
    #[arg(long)]
    pub system_names: bool,
    /// Print the status as a JSON object on its own line when everything is set up, and one with the statistics of each
    /// finished connection; times are in nanoseconds
    #[arg(long)]
    pub json: bool,
    /// Settings of the engine.
    #[command(flatten)]
    pub engine: Engine,
    /// Settings of the log.
    #[command(flatten)]
    pub log: Log,
    /// A group whose members may query the status and change tiers without being root
    #[arg(long, value_name = "GROUP")]
    pub control_group: Option<String>,
    /// Print what would change on this host, each step with its undo, and change nothing
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
    /// An order to a running daemon.
    #[command(subcommand)]
    pub order: Option<JoinOrder>,
}

/// Settings of the engine, whichever command uses it.
#[derive(Args, Debug)]
pub struct Engine {
    /// Congestion control: cubic, aimd(0.7,0.625), ...; `anabranch policies` lists all
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<ControllerSpec>,
    /// Scheduler: which subflow carries the next data; `anabranch policies` lists all
    #[arg(long, value_name = "NAME")]
    pub scheduler: Option<String>,
    /// Path manager: which subflows to open, by default one-per-address; `anabranch policies` lists all
    #[arg(long, value_name = "NAME")]
    pub path_manager: Option<String>,
    /// Ask for checksums over the data and their place in the stream: where a middlebox changes either, the connection
    /// notices
    #[arg(long)]
    pub checksum: bool,
    /// Write a capture of every packet between the engine and the kernel to FILE (pcapng)
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Write a log of what the engine decides and why to FILE (qlog)
    #[arg(long, value_name = "FILE")]
    pub qlog: Option<PathBuf>,
}

/// Orders to a running `anabranch join`.
#[derive(Debug, Subcommand)]
pub enum JoinOrder {
    /// Change a running `anabranch join`: usb1=backup, price.usb1=3, target=4M
    Set(Set),
}

/// Arguments of `anabranch join set`.
#[derive(Args, Debug)]
pub struct Set {
    /// Tiers and prices of interfaces, and the target as a bit rate or all: usb1=backup price.usb1=3 target=4M. The
    /// interface of the relay called anna is via-anna, as in `anabranch status`
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = change)]
    pub changes: Vec<Change>,
    /// The device of the daemon, if several run on this host: anabranch0
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
}

/// Arguments of `anabranch relay`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    anabranch relay --share wwan0 --pair                  # lend wwan0, and show a code for one more device\n  \
    anabranch relay --share wwan0 --rate 4M --volume 5GB/month --reset-day 15 --battery 30\n  \
    anabranch relay --share wwan0 --dry-run               # what that would change on this host\n  \
    anabranch relay --pair                                # while it runs, from another terminal: a code for one more device\n\n\
    Only paired devices can use it, over UDP port 8684, from all networks except that of the shared interface. They\n\
    reach the Internet and the interface's own network (such as the page of a modem or router), but neither programs\n\
    of this device nor its other networks. All changes are undone at the end, even if the program is killed; see\n\
    docs/relay.md.")]
pub struct Relay {
    /// The interface that reaches the Internet: wwan0
    #[arg(long, value_name = "NAME", value_parser = uplink)]
    pub share: Option<String>,
    /// Show a code with which one more device can pair, within 5 minutes
    #[arg(long, conflicts_with = "dry_run")]
    pub pair: bool,
    /// With --pair: show a QR code beside the digits even if standard output is not a terminal
    #[arg(long, requires = "pair", conflicts_with = "dry_run")]
    pub qr: bool,
    /// The name that other devices see, kept for later; by default the host name
    #[arg(long, value_name = "NAME", value_parser = device_name)]
    pub name: Option<Name>,
    /// What to do with subflows that pass through; by default route
    #[arg(long, value_enum)]
    pub mode: Option<RelayMode>,
    /// The highest rate to lend, each way: at least 16k, by default 10M; all: no limit
    #[arg(long, value_name = "RATE", value_parser = cap, allow_hyphen_values = true)]
    pub rate: Option<Cap>,
    /// Volume to lend, both ways together, per day or month: 500MB/day, 5GB/month. From 80 % on this relay is only a
    /// backup for the others; at 100 % it lends nothing. By default there is no limit
    #[arg(long, value_name = "SIZE/PERIOD", value_parser = volume, allow_hyphen_values = true)]
    pub volume: Option<Limit>,
    /// The day on which a month begins; in shorter months, the last day
    #[arg(long, value_name = "DAY", requires = "volume", value_parser = reset_day, allow_hyphen_values = true)]
    pub reset_day: Option<i8>,
    /// Lend nothing below this battery charge, in percent, unless charging; by default 20; 0: ignore the battery
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    pub battery: Option<u8>,
    /// Folder for the keys of this device and its paired devices, and for the lent volume
    #[arg(long, value_name = "DIR", default_value = store::FOLDER)]
    pub state: PathBuf,
    /// A group whose members may query the status without being root
    #[arg(long, value_name = "GROUP")]
    pub control_group: Option<String>,
    /// Settings of the log.
    #[command(flatten)]
    pub log: Log,
    /// Print what would change on this host, each step with its undo, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What a relay does with subflows that pass through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RelayMode {
    /// Forward them as packets
    #[default]
    Route,
    /// Terminate subflows that join a connection, acknowledge at once and carry the data on: for lossy Wi-Fi
    FastAck,
}

/// Arguments of `anabranch peers`.
#[derive(Args, Debug)]
pub struct Peers {
    /// Print one JSON object, including the keys
    #[arg(long)]
    pub json: bool,
    /// Folder for the keys
    #[arg(long, value_name = "DIR", default_value = store::FOLDER, global = true)]
    pub state: PathBuf,
    /// The change, if any.
    #[command(subcommand)]
    pub order: Option<PeersOrder>,
}

/// Changes to a paired device.
#[derive(Debug, Subcommand)]
pub enum PeersOrder {
    /// Forget a device: the two devices cannot use each other until they are paired again
    Remove(Remove),
}

/// Arguments of `anabranch peers remove`.
#[derive(Args, Debug)]
pub struct Remove {
    /// Name of the device on this host
    pub name: String,
}

/// Arguments of `anabranch status`.
#[derive(Args, Debug)]
pub struct Status {
    /// Only the daemon with this device: anabranch0
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Print one JSON object with everything known, including clients and their subflows
    #[arg(long, conflicts_with = "watch")]
    pub json: bool,
    /// Update every second, until q or Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

/// Arguments of `anabranch doctor`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    anabranch doctor                                        # this machine and its uplinks\n  \
    anabranch doctor example.org:443 10.1.0.1:8000          # and whether MPTCP gets through to servers\n  \
    anabranch doctor --interface usb0 --interface usb1 example.org --json\n\n\
    Two or more servers, one of them known to speak MPTCP, and two uplinks show where MPTCP is removed, if anywhere.\n\
    Each server gets a few connections and the beginning of a request. The test takes at most 20 seconds. As root,\n\
    it connects an engine with the uplinks, as `anabranch join` does, and undoes all changes at the end. The exit\n\
    code is 0 if `anabranch join` would work with at least one uplink.")]
pub struct Doctor {
    /// Servers to test, with port 443 by default: example.org, 10.1.0.1:8000, [2001:db8::1]:80
    #[arg(value_name = "SERVER[:PORT]")]
    pub servers: Vec<String>,
    /// An interface to examine; repeatable; by default all that reach the Internet
    #[arg(long = "interface", value_name = "NAME", value_parser = interface)]
    pub interfaces: Vec<String>,
    /// To estimate rates, fetch 5 MB of URL, for at most 5 s, over one uplink after the other
    #[arg(long, value_name = "URL")]
    pub measure: Option<String>,
    /// Print one JSON object with all facts and findings
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `anabranch get`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    anabranch get http://10.1.0.1/big.iso -o big.iso\n  \
    anabranch get http://10.1.0.1/big.iso -C\n  \
    anabranch get http://10.1.0.1/all.tar -o - | tar x\n  \
    anabranch get http://example.org/big.iso --interface usb0 --interface usb1   # over two tethered phones\n  \
    anabranch get http://example.org/big.iso --interface usb0 --dry-run          # what that would change on this host\n  \
    ip netns exec laptop anabranch get http://10.1.0.1/big.iso --via 10.1.0.3 --via 10.2.0.3\n\n\
    With --interface, routing tables, rules, translation (nftables) and forwarding of the named interfaces are set\n\
    up for the download and undone when it ends, however it ends. The phones need nothing but tethering.")]
pub struct Get {
    /// URL of the file: http://HOST[:PORT]/PATH, where HOST is an IP address or a name that this host can resolve; a
    /// redirection is reported, not followed
    pub url: String,
    /// Output file, - for standard output, which must be read to its end; by default the URL's file name. A file of
    /// that name is replaced once the download is complete
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// If the download breaks off, keep the data in FILE.part, and continue next time if the file is unchanged: the
    /// server must send parts of files (ranges), and identify versions by a strong ETag or the time of the last change.
    /// Otherwise the download begins anew, and says so. A FILE.part from elsewhere is not touched. A file that -C has
    /// completed is downloaded again only if it has changed, here or on the server
    #[arg(short = 'C', long = "continue")]
    pub resume: bool,
    /// An address of the engine, routed to it; repeatable, one per path; without it and --interface, a private one that
    /// only this host reaches, for example to download from `anabranch serve` here
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub via: Vec<IpAddr>,
    /// An interface of this host that reaches the Internet directly, such as a tethered phone; repeatable, one per path
    #[arg(long = "interface", value_name = "NAME", conflicts_with = "via", value_parser = untiered)]
    pub interfaces: Vec<String>,
    /// With --interface: print what would change on this host, each step with its undo, and change nothing
    #[arg(long, requires = "interfaces", conflicts_with_all = ["json", "via"])]
    pub dry_run: bool,
    /// Print one JSON object with the statistics of the connection and its subflows instead of a line, on standard
    /// error if the file goes to standard output; times are in nanoseconds. If the download fails, its only field is
    /// error, with the reason
    #[arg(long)]
    pub json: bool,
    /// Settings of the engine.
    #[command(flatten)]
    pub engine: Engine,
}
