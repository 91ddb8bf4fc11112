//! `anabranch join`: several uplinks of this device as one.

use std::net::SocketAddr;

use daemon::control::{self, Request};
use daemon::join::status::{JoinStatus, UplinkStatus};
use daemon::join::{JoinOptions, join as join_uplinks, rehearse};
use daemon::kernel_mode::{self, KernelOptions};
use daemon::proxy::ProxyConfig;
use lab::present::quantity;
use linux::EngineOptions;
use linux::stop::Stop;

use crate::arguments::{self, Change, JoinOrder};
use crate::commands::engine;
use crate::commands::status::chosen;
use crate::console;
use crate::failure::Failure;

/// Joins uplinks until Ctrl-C, or tells a running daemon something.
pub fn join(arguments: &arguments::Join) -> Result<(), Failure> {
    if let Some(JoinOrder::Set(set)) = &arguments.order {
        return tell(set);
    }
    if arguments.kernel {
        return join_kernel(arguments);
    }
    if arguments.dry_run {
        let options = options(arguments, engine::policies(&arguments.engine))?;
        return Ok(console::print(&rehearse(&options)?.to_string())?);
    }
    let (engine, tape) = engine::options(&arguments.engine)?;
    let options = options(arguments, engine)?;
    let stop = Stop::on_signals()?;
    // What is said is for people, and a log that nobody reads any more must not end the service.
    let say = |line: &str| drop(console::complain(&format!("{line}\n")));
    let ready = |status: &JoinStatus| drop(console::print(&describe(status)));
    let ended = join_uplinks(options, &stop, ready, say);
    let captured = tape.finish();
    ended?;
    captured
}

/// As [`join`], for the kernel's own Multipath TCP.
fn join_kernel(arguments: &arguments::Join) -> Result<(), Failure> {
    let control_group = arguments.control_group.as_deref().map(group).transpose()?;
    let options = KernelOptions { uplinks: arguments.interfaces.clone(), control_group };
    if arguments.dry_run {
        return Ok(console::print(&kernel_mode::rehearse(&options)?.to_string())?);
    }
    let stop = Stop::on_signals()?;
    let say = |line: &str| drop(console::complain(&format!("{line}\n")));
    let ready = |status: &JoinStatus| drop(console::print(&describe(status)));
    Ok(kernel_mode::join(options, &stop, ready, say)?)
}

fn options(arguments: &arguments::Join, engine: EngineOptions) -> Result<JoinOptions, Failure> {
    let mut proxy = ProxyConfig::new(arguments.listen);
    proxy.open = arguments.open;
    let control_group = arguments.control_group.as_deref().map(group).transpose()?;
    let (uplinks, target) = (arguments.interfaces.clone(), arguments.target);
    Ok(JoinOptions { uplinks, target, proxy, control_group, engine })
}

/// The number of a group of this host.
fn group(name: &str) -> Result<u32, Failure> {
    let groups = std::fs::read_to_string("/etc/group")
        .map_err(|error| Failure::Failed(format!("cannot read /etc/group: {error}")))?;
    let mut fields = groups.lines().map(|line| line.split(':'));
    let found = fields.find_map(|mut fields| (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?);
    found.ok_or_else(|| {
        Failure::Input(format!("--control-group {name}: /etc/group has no such group; make it with groupadd {name}"))
    })
}

/// What is there now, and how to use it.
fn describe(status: &JoinStatus) -> String {
    let uplink = |uplink: &UplinkStatus| {
        let state = uplink.lost.clone().unwrap_or_else(|| uplink.ways.join(", "));
        format!("  {:<12} {:<10} {state}\n", uplink.interface, uplink.tier.name())
    };
    let uplinks: String = status.uplinks.iter().map(uplink).collect();
    let count = status.uplinks.len();
    let plural = if count == 1 { "" } else { "s" };
    let (title, uses) = match &status.proxy {
        Some(proxy) => (
            format!("{count} uplink{plural} behind {}:", status.device),
            format!("proxy on {}, SOCKS5 and HTTP:\n{}", proxy.listen, uses(proxy.listen)),
        ),
        None => (format!("{count} uplink{plural} for the kernel's Multipath TCP:"), KERNEL_USES.to_owned()),
    };
    format!(
        "{title}\n{uplinks}{uses}Ctrl-C ends it and takes everything back; `anabranch status --watch` in another terminal shows what it \
         does\n"
    )
}

/// How programs use the kernel's connections.
const KERNEL_USES: &str = "programs use them with sockets of IPPROTO_MPTCP, or so:
  mptcpize run curl URL
  mptcpize run ssh HOST
";

fn uses(proxy: SocketAddr) -> String {
    let proxy = match proxy.ip().is_unspecified() {
        true => format!("ADDRESS:{}", proxy.port()),
        false => proxy.to_string(),
    };
    let which = if proxy.starts_with("ADDRESS") {
        "  (ADDRESS: one of this device's; whoever reaches it may use the proxy)\n"
    } else {
        ""
    };
    format!(
        "{which}  curl --proxy socks5h://{proxy} URL\n  https_proxy=http://{proxy} http_proxy=http://{proxy} git clone URL\n  chromium \
         --proxy-server=socks5://{proxy}\n"
    )
}

fn tell(set: &arguments::Set) -> Result<(), Failure> {
    let device = chosen(set.device.as_deref())?;
    for change in &set.changes {
        let (request, done) = match change {
            Change::Tier(uplink, tier) => {
                let request = Request::SetTier { uplink: uplink.clone(), tier: *tier };
                (request, format!("{uplink} is {} now\n", tier.name()))
            }
            Change::Target(Some(rate)) => {
                let done =
                    format!("as few uplinks as deliver {} carry data now\n", quantity(rate.as_bps() as f64, "bit/s"));
                (Request::SetTarget { bps: Some(rate.as_bps()) }, done)
            }
            Change::Target(None) => (Request::SetTarget { bps: None }, "all uplinks carry data now\n".into()),
        };
        control::ask(&device, &request)?;
        console::print(&done)?;
    }
    Ok(())
}
