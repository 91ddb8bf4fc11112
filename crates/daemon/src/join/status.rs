//! What a daemon does, for people and programs.

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
use crate::proxy::silence::UnheardFamily;
use crate::proxy::status::{ProxyStatus, UplinkMeter};

/// Everything at one time.
#[derive(Clone, Debug, Serialize)]
pub struct JoinStatus {
    /// Of the program.
    pub version: &'static str,
    /// The engine's device.
    pub device: String,
    /// Where keys are kept.
    pub state: PathBuf,
    /// When this was so, nanoseconds since the start, as are all times here.
    pub at: Instant,
    /// What is asked for, bit/s, if not all that there is.
    pub target_bps: Option<u64>,
    /// In the order in which they were named.
    pub uplinks: Vec<UplinkStatus>,
    /// What programs do with them, if they use the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyStatus>,
    /// What the kernel's own connections do with them, if those are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelStatus>,
}

/// One uplink.
#[derive(Clone, Debug, Serialize)]
pub struct UplinkStatus {
    /// Its interface.
    pub interface: String,
    /// When it is used, as it was told.
    pub tier: Tier,
    /// What an octet over it costs, in the unit of who has said so.
    pub price: u32,
    /// Whether it carries for the target bit rate, if there is one.
    pub carries: bool,
    /// Whether it is a backup for some time, because connections waited for it more than it brought.
    pub held_back: bool,
    /// Whether it answers in the place of servers, as a network does that wants a login, and is used last.
    pub portal: bool,
    /// What it is believed to deliver, bit/s, where there is a target and it has carried.
    pub estimate_bps: Option<u64>,
    /// Why it cannot be used now, to follow its name in a sentence.
    pub lost: Option<String>,
    /// For how long nothing is heard there, although something was asked, if that is longer than answers take.
    pub unheard: Option<Duration>,
    /// Of an uplink with both families the one of which alone that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unheard_family: Option<UnheardFamily>,
    /// Its own addresses and gateways, as `192.168.42.10 via 192.168.42.129`.
    pub ways: Vec<String>,
    /// Least round-trip time of the last minutes, if it carried anything.
    pub base_rtt: Option<Duration>,
    /// Time that packets wait in its queues.
    pub queue: Duration,
    /// What passed, of all connections that ever were.
    pub meter: UplinkMeter,
    /// The link to the relay, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkStatus>,
    /// Subflows of the kernel over it, where those are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflows: Option<usize>,
}

impl JoinStatus {
    /// What `roster` and `proxy` know together.
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
            carries: roster.tier_of(index) == entry.tier,
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

/// A way out, for people.
pub(crate) fn describe(way: &Way) -> String {
    match way.gateway {
        Some(gateway) => format!("{} via {gateway}", way.address),
        None => way.address.to_string(),
    }
}
