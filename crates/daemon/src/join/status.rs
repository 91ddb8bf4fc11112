//! What a daemon does, for people and programs.

use linux::uplink::Way;
use serde::Serialize;
use transport::Endpoint;
use units::Instant;

use super::roster::{Entry, Roster};
use crate::proxy::Proxy;
use crate::proxy::choice::Tier;
use crate::proxy::status::{ProxyStatus, UplinkMeter};

/// Everything at one time.
#[derive(Clone, Debug, Serialize)]
pub struct JoinStatus {
    /// Of the program.
    pub version: &'static str,
    /// The engine's device.
    pub device: String,
    /// In the order in which they were named.
    pub uplinks: Vec<UplinkStatus>,
    /// What programs do with them.
    pub proxy: ProxyStatus,
}

/// One uplink.
#[derive(Clone, Debug, Serialize)]
pub struct UplinkStatus {
    /// Its interface.
    pub interface: String,
    /// When it is used.
    pub tier: Tier,
    /// Why it cannot be used now, to follow its name in a sentence.
    pub lost: Option<String>,
    /// Its own addresses and gateways, as `192.168.42.10 via 192.168.42.129`.
    pub ways: Vec<String>,
    /// What passed, of all connections that ever were.
    pub meter: UplinkMeter,
}

impl JoinStatus {
    /// What `roster` and `proxy` know together.
    pub fn new(roster: &Roster, proxy: &Proxy, endpoint: &Endpoint, now: Instant) -> Self {
        let meter = |entry: &Entry| {
            let meters = entry.addresses.iter().map(|ip| proxy.meter(*ip));
            meters.fold(UplinkMeter::default(), UplinkMeter::plus)
        };
        let uplink = |entry: &Entry| UplinkStatus {
            interface: entry.uplink.interface.clone(),
            tier: entry.tier,
            lost: entry.lost.clone(),
            ways: entry.uplink.ways().map(describe).collect(),
            meter: meter(entry),
        };
        let uplinks = roster.entries.iter().map(uplink).collect();
        Self { version: env!("CARGO_PKG_VERSION"), device: roster.device.clone(), uplinks, proxy: proxy.status(endpoint, now) }
    }
}

fn describe(way: &Way) -> String {
    match way.gateway {
        Some(gateway) => format!("{} via {gateway}", way.address),
        None => way.address.to_string(),
    }
}
