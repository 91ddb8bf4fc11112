//! The state of a daemon, for people and programs.

use std::path::PathBuf;

use linux::uplink::Way;
use serde::Serialize;
use transport::Endpoint;
use units::{Duration, Instant, Rate};

use super::roster::{Entry, Roster};
use crate::kernel_mode::KernelStatus;
use crate::links::LinkStatus;
use crate::proxy::Proxy;
use crate::proxy::choice::Tier;
pub use crate::proxy::silence::UnheardFamily;
use crate::proxy::status::{ProxyStatus, UplinkMeter};

/// State of a daemon at one time.
#[derive(Clone, Debug, Serialize)]
pub struct JoinStatus {
    /// Version of the program.
    pub version: &'static str,
    /// The engine's device.
    pub device: String,
    /// Folder for keys.
    pub state: PathBuf,
    /// Time of this status, nanoseconds since the start, as are all times here.
    pub at: Instant,
    /// Target bit rate, bit/s; `None` if all uplinks carry data.
    pub target_bps: Option<u64>,
    /// In the order in which the user named them.
    pub uplinks: Vec<UplinkStatus>,
    /// What the proxy does, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyStatus>,
    /// What the kernel's own connections do, if the daemon manages them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelStatus>,
}

/// One uplink.
#[derive(Clone, Debug, Serialize)]
pub struct UplinkStatus {
    /// Interface.
    pub interface: String,
    /// Tier that the user has set.
    pub tier: Tier,
    /// Price of an octet, in the user's unit.
    pub price: u32,
    /// Whether it carries data for the target bit rate, if there is one.
    pub carries: bool,
    /// Whether it is a backup for a while, because it made transfers slower than without it.
    pub held_back: bool,
    /// Whether it is behind a captive portal, which answers in place of servers; it is used last then.
    pub portal: bool,
    /// Estimated rate, bit/s, if there is a target and the uplink has carried data.
    pub estimate_bps: Option<u64>,
    /// Reason why it cannot be used now; follows the name in a sentence.
    pub lost: Option<String>,
    /// For how long nothing has been heard although something is unanswered, if that is longer than answers take.
    pub unheard: Option<Duration>,
    /// The silent family, if the uplink has both families and only one of them is silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unheard_family: Option<UnheardFamily>,
    /// Addresses and gateways of the interface, such as `192.168.42.10 via 192.168.42.129`.
    pub ways: Vec<String>,
    /// Minimum round-trip time of the last minutes, if it carried anything.
    pub base_rtt: Option<Duration>,
    /// Time that packets wait in the uplink's queues.
    pub queue: Duration,
    /// Totals over all past and present connections.
    pub meter: UplinkMeter,
    /// Link to the relay, for an uplink over a relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkStatus>,
    /// Number of the kernel's subflows over it, if the daemon manages them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflows: Option<usize>,
}

impl JoinStatus {
    /// Combines the state of `roster` and `proxy`.
    pub fn new(roster: &Roster, proxy: &mut Proxy, endpoint: &mut Endpoint, now: Instant) -> Self {
        proxy.measure(endpoint);
        let addresses: Vec<_> = roster.entries.iter().map(|entry| entry.addresses.clone()).collect();
        let silences = proxy.silences(&addresses, endpoint, now);
        let proxy_status = proxy.status(endpoint, now);
        let views = |entry: &Entry| {
            let all = proxy_status.addresses.iter().map(|address| address.view);
            all.filter(|view| entry.addresses.contains(&view.uplink.ip)).collect::<Vec<_>>()
        };
        let meter = |entry: &Entry| {
            let meters = entry.addresses.iter().map(|ip| proxy.meter(*ip));
            meters.fold(UplinkMeter::default(), UplinkMeter::plus)
        };
        let selection = roster.selection.as_ref();
        let uplink = |(index, entry): (usize, &Entry)| UplinkStatus {
            carries: !roster.is_left_out(index),
            held_back: proxy_status
                .addresses
                .iter()
                .any(|it| it.held_back && entry.addresses.contains(&it.view.uplink.ip)),
            portal: views(entry).iter().any(|view| view.portal),
            estimate_bps: selection.and_then(|selection| selection.estimate(index)).map(Rate::as_bps),
            interface: entry.uplink.interface.clone(),
            tier: entry.tier,
            price: entry.price,
            lost: entry.lost.clone(),
            unheard: silences[index].uplink.filter(|_| entry.lost.is_none()),
            unheard_family: silences[index].family.filter(|_| entry.lost.is_none()),
            ways: entry.uplink.ways().map(describe).collect(),
            base_rtt: views(entry).iter().filter_map(|view| view.base_rtt).min(),
            queue: views(entry).iter().map(|view| view.queue).max().unwrap_or(Duration::ZERO),
            meter: meter(entry),
            link: entry.link.clone(),
            subflows: None,
        };
        let uplinks = roster.entries.iter().enumerate().map(uplink).collect();
        let (device, state) = (roster.device.clone(), roster.state.clone());
        let target_bps = selection.map(|selection| selection.target().as_bps());
        let (version, proxy) = (env!("CARGO_PKG_VERSION"), Some(proxy_status));
        Self { version, device, state, at: now, target_bps, uplinks, proxy, kernel: None }
    }
}

/// Describes a way out for people.
pub(crate) fn describe(way: &Way) -> String {
    match way.gateway {
        Some(gateway) => format!("{} via {gateway}", way.address),
        None => way.address.to_string(),
    }
}
