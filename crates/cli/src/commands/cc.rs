//! `anabranch cc`: the engine's congestion controllers in the running kernel.

use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use cooperation::adaptive_congestion::Settings;
use kernel_cc::{Adapting, CONTROLLERS, Competition, Connection, Controller, Counters, PathId, Subflow, Told};
use serde::Serialize;

use crate::arguments::{self, CcOrder};
use crate::console;
use crate::failure::Failure;

/// Carries out the order.
pub fn cc(arguments: &arguments::Cc) -> Result<(), Failure> {
    match &arguments.order {
        CcOrder::List => list(),
        CcOrder::Load(order) => each(&order.names, |controller| load(controller, order.connections_max)),
        CcOrder::Unload(order) => each(&order.names, unload),
        CcOrder::Status(order) => status(order),
        CcOrder::Tell(order) => tell(order),
        CcOrder::Adapt(order) => adapt(order),
        CcOrder::Set(order) => set(&order.name),
    }
}

impl From<kernel_cc::Error> for Failure {
    fn from(error: kernel_cc::Error) -> Self {
        match error {
            kernel_cc::Error::Unknown { .. } | kernel_cc::Error::Absurd { .. } | kernel_cc::Error::Adapting(_) => {
                Self::Input(error.to_string())
            }
            error => Self::Failed(error.to_string()),
        }
    }
}

/// Looks up all names before it acts on the first one.
fn each(names: &[String], act: impl Fn(&Controller) -> Result<(), Failure>) -> Result<(), Failure> {
    let controllers: Vec<_> = names.iter().map(|name| Controller::named(name)).collect::<Result<_, _>>()?;
    for (position, controller) in controllers.iter().enumerate() {
        if controllers[..position].iter().any(|other| other.name == controller.name) {
            return Err(Failure::Input(format!("`{}` is named twice: name it once", controller.name)));
        }
    }
    controllers.iter().try_for_each(act)
}

fn list() -> Result<(), Failure> {
    let default = kernel_cc::default().unwrap_or_default();
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["controller", "name in the kernel", "state", "description"]);
    for controller in CONTROLLERS {
        let state = match () {
            () if default == controller.kernel_name => "loaded, default here",
            () if kernel_cc::is_loaded(controller) => "loaded",
            () => "",
        };
        table.add_row([controller.name, controller.kernel_name, state, controller.summary]);
    }
    let mut text = format!("{table}\n");
    if let Err(error) = kernel_cc::check() {
        text += &format!("cannot load any of them now: {error}\n");
    }
    Ok(console::print(&text)?)
}

fn load(controller: &Controller, connections_max: u32) -> Result<(), Failure> {
    kernel_cc::load(controller, connections_max)?;
    let name = controller.kernel_name;
    Ok(console::print(&format!(
        "{name} is loaded; use it for all new connections with `anabranch cc set {name}`, or for a socket with \
         TCP_CONGESTION\n"
    ))?)
}

fn unload(controller: &Controller) -> Result<(), Failure> {
    kernel_cc::unload(controller)?;
    Ok(console::print(&format!("{} is unloaded; connections that use it continue to do so\n", controller.kernel_name))?)
}

/// Selects one of our controllers by either of its names, or one of the kernel's by its own.
fn set(name: &str) -> Result<(), Failure> {
    let name = Controller::named(name).map_or(name, |controller| controller.kernel_name);
    let available = kernel_cc::available()?;
    if !available.iter().any(|known| known == name) {
        let known = available.join(", ");
        let remedy = if Controller::named(name).is_ok() {
            format!("; run `anabranch cc load {name}` first")
        } else {
            String::new()
        };
        return Err(Failure::Failed(format!("the kernel has no controller `{name}` now, only {known}{remedy}")));
    }
    kernel_cc::set_default(name)?;
    Ok(console::print(&format!("new connections of this network namespace use {name}\n"))?)
}

/// Passes the report to the controller of the connection; tokens are unique on a machine.
fn tell(order: &arguments::CcTell) -> Result<(), Failure> {
    let arguments::CcTell { token, address_id, rho, alpha, beta, way_ms, holds_s } = *order;
    let competition = rho.map(|ratio| Competition { ratio, increase: alpha, decrease: beta });
    let told = Told { competition, way: way_ms.map(Duration::from_millis) };
    let (controller, connection) = owner(token)?;
    if !connection.subflows.iter().any(|subflow| subflow.address_id == address_id) {
        return Err(no_subflow(&connection, token, address_id));
    }
    kernel_cc::tell(&controller, PathId { token, address_id }, told, Duration::from_secs(holds_s))?;
    let what = if told == Told::default() { "no report".into() } else { format!("the report for {holds_s} s") };
    let counts = competition.map(counts_as).unwrap_or_default();
    Ok(console::print(&format!("{token:08x}, address {address_id}: {} uses {what}{counts}\n", controller.name))?)
}

fn owner(token: u32) -> Result<(Controller, Connection), Failure> {
    let mut unread = None;
    for known in CONTROLLERS.iter().filter(|known| kernel_cc::is_loaded(known)) {
        match kernel_cc::connections(known) {
            Ok(connections) => {
                if let Some(found) = connections.into_iter().find(|connection| connection.token == Some(token)) {
                    return Ok((*known, found));
                }
            }
            // It may be this one's; if it is not another's, that is the reason.
            Err(error) => unread = unread.or(Some(error)),
        }
    }
    Err(unread.map_or_else(
        || Failure::Failed(format!("no loaded controller has a connection {token:08x}: see `anabranch cc status`")),
        Failure::from,
    ))
}

fn no_subflow(connection: &Connection, token: u32, address_id: u8) -> Failure {
    let mut known: Vec<_> = connection.subflows.iter().map(|subflow| subflow.address_id).collect();
    known.sort_unstable();
    known.dedup();
    let known: Vec<_> = known.iter().map(u8::to_string).collect();
    let known = known.join(", ");
    Failure::Failed(format!(
        "{token:08x} has no subflow to address {address_id}, only to {known}: see `anabranch cc status`"
    ))
}

/// Reports values outside the range that controllers accept.
fn counts_as(competition: Competition) -> String {
    let believed = competition.believed();
    if believed == competition {
        return String::new();
    }
    let Competition { ratio, increase, decrease } = believed;
    format!("; used as rho {ratio}, alpha' {increase}, beta' {decrease}")
}

fn adapt(order: &arguments::CcAdapt) -> Result<(), Failure> {
    let controller = Controller::named(&order.name)?;
    if order.off {
        kernel_cc::adapt(&controller, None)?;
        return Ok(console::print(&format!("{} no longer cuts windows of slow paths\n", controller.name))?);
    }
    let arguments::CcAdapt { period_s, eta_min, eta_max, beyond, cuts_max, age_rtts, .. } = *order;
    let acc = Settings { eta_min, eta_max, beyond, cuts_max, age_rtts, ..Settings::default() };
    // An invalid time is refused like one that is too short.
    let period = Duration::try_from_secs_f64(period_s).unwrap_or_default();
    kernel_cc::adapt(&controller, Some(&Adapting { acc, period }))?;
    let name = controller.name;
    Ok(console::print(&format!("{name} cuts windows of the slowest paths, at most every {period_s} s\n"))?)
}

/// Output of `--json` for a controller.
#[derive(Serialize)]
struct Status {
    controller: &'static str,
    subflows_added: u64,
    subflows_removed: u64,
    without_place: u64,
    adapting: Option<AdaptingStatus>,
    connections: Vec<ConnectionStatus>,
}

#[derive(Serialize)]
struct AdaptingStatus {
    period_s: f64,
    eta_min: f64,
    eta_max: f64,
    beyond: &'static str,
    cuts_max: u32,
    age_rtts: u64,
}

#[derive(Serialize)]
struct ConnectionStatus {
    /// In the form that `cc tell` takes.
    token: Option<String>,
    subflows: Vec<SubflowStatus>,
}

#[derive(Serialize)]
struct SubflowStatus {
    local: String,
    remote: String,
    address_id: u8,
    cwnd_bytes: u64,
    ssthresh_bytes: Option<u64>,
    mss_bytes: u32,
    srtt_s: Option<f64>,
    base_rtt_s: Option<f64>,
    in_recovery: bool,
    delta: Option<f64>,
    q: Option<f64>,
    rho: Option<f64>,
    alpha: Option<f64>,
    beta: Option<f64>,
    way_s: Option<f64>,
    cuts: u64,
}

fn status(order: &arguments::CcStatus) -> Result<(), Failure> {
    let chosen = match &order.name {
        Some(name) => vec![Controller::named(name)?],
        None => CONTROLLERS.iter().copied().filter(kernel_cc::is_loaded).collect(),
    };
    loop {
        let all = chosen.iter().map(look).collect::<Result<Vec<_>, _>>()?;
        let text = if order.json {
            serde_json::to_string(&all).map_err(|error| Failure::Failed(error.to_string()))? + "\n"
        } else {
            describe(&all)
        };
        if !order.watch {
            return Ok(console::print(&text)?);
        }
        // Moves the cursor to the upper left corner, and clears the screen.
        console::print(&format!("\u{1b}[H\u{1b}[J{text}"))?;
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "a live view, in real time")]
fn pause() {
    std::thread::sleep(Duration::from_secs(1));
}

fn look(controller: &Controller) -> Result<Status, Failure> {
    let Counters { added, removed, without_place } = kernel_cc::counters(controller)?;
    let connections = kernel_cc::connections(controller)?.iter().map(ConnectionStatus::from).collect();
    Ok(Status {
        controller: controller.name,
        subflows_added: added,
        subflows_removed: removed,
        without_place,
        adapting: kernel_cc::adapting(controller)?.as_ref().map(AdaptingStatus::from),
        connections,
    })
}

impl From<&Adapting> for AdaptingStatus {
    fn from(adapting: &Adapting) -> Self {
        let Adapting { acc: Settings { eta_min, eta_max, beyond, cuts_max, age_rtts, .. }, period } = *adapting;
        Self { period_s: period.as_secs_f64(), eta_min, eta_max, beyond: beyond.name(), cuts_max, age_rtts }
    }
}

impl From<&Connection> for ConnectionStatus {
    fn from(connection: &Connection) -> Self {
        let token = connection.token.map(|token| format!("{token:08x}"));
        Self { token, subflows: connection.subflows.iter().map(SubflowStatus::from).collect() }
    }
}

impl From<&Subflow> for SubflowStatus {
    fn from(subflow: &Subflow) -> Self {
        let believed = subflow.told.competition.map(Competition::believed);
        Self {
            local: subflow.local.to_string(),
            remote: subflow.remote.to_string(),
            address_id: subflow.address_id,
            cwnd_bytes: subflow.cwnd_bytes,
            ssthresh_bytes: subflow.ssthresh_bytes,
            mss_bytes: subflow.mss_bytes,
            srtt_s: subflow.srtt.map(|rtt| rtt.as_secs_f64()),
            base_rtt_s: subflow.base_rtt.map(|rtt| rtt.as_secs_f64()),
            in_recovery: subflow.in_recovery,
            delta: subflow.delta,
            q: subflow.q,
            rho: believed.map(|told| told.ratio),
            alpha: believed.map(|told| told.increase),
            beta: believed.map(|told| told.decrease),
            way_s: subflow.told.way.map(|way| way.as_secs_f64()),
            cuts: subflow.cuts,
        }
    }
}

fn describe(all: &[Status]) -> String {
    if all.is_empty() {
        return "no controller is loaded: run `anabranch cc load lia`\n".into();
    }
    all.iter().map(describe_one).collect()
}

fn describe_one(status: &Status) -> String {
    let (name, count) = (status.controller, status.connections.len());
    let mut text = format!("{name}: {count} connection{}\n", if count == 1 { "" } else { "s" });
    if status.without_place > 0 {
        text += &format!(
            "  no room for a subflow {} times; such subflows are controlled like single paths: \
             raise `cc load --connections-max`\n",
            status.without_place
        );
    }
    if let Some(AdaptingStatus { period_s, eta_min, eta_max, beyond, cuts_max, age_rtts }) = status.adapting {
        text += &format!(
            "  cuts the slowest paths every {period_s} s, for delay ratios of {eta_min:.2} to {eta_max:.2} \
             (beyond: {beyond}), at most {cuts_max} times in a row, after {age_rtts} round trips\n"
        );
    }
    if count == 0 {
        return text;
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header([
        "token", "local", "remote", "id", "cwnd", "ssthresh", "RTT", "base RTT", "delta", "Q", "rho", "alpha'",
        "beta'", "way", "cuts", "",
    ]);
    for connection in &status.connections {
        let token = connection.token.as_deref().unwrap_or("plain TCP");
        for subflow in &connection.subflows {
            table.add_row(row(token, subflow));
        }
    }
    format!("{text}{table}\n")
}

fn row(token: &str, subflow: &SubflowStatus) -> Vec<String> {
    let segments = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(subflow.mss_bytes.max(1)));
    let millis = |rtt: Option<f64>| rtt.map_or("–".into(), |rtt| format!("{:.1} ms", rtt * 1e3));
    let fraction = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.2}"));
    vec![
        token.into(),
        subflow.local.clone(),
        subflow.remote.clone(),
        subflow.address_id.to_string(),
        segments(subflow.cwnd_bytes),
        subflow.ssthresh_bytes.map_or("–".into(), segments),
        millis(subflow.srtt_s),
        millis(subflow.base_rtt_s),
        fraction(subflow.delta),
        fraction(subflow.q),
        fraction(subflow.rho),
        fraction(subflow.alpha),
        fraction(subflow.beta),
        millis(subflow.way_s),
        subflow.cuts.to_string(),
        if subflow.in_recovery { "in recovery" } else { "" }.into(),
    ]
}
