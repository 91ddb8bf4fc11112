//! What was found out about a machine, its uplinks and servers: data, without a judgement.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use units::Duration;

use crate::proxy::resolver::is_silence;

/// Everything.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Facts {
    /// The machine.
    pub machine: Machine,
    /// The uplinks that were named, or all there are.
    pub uplinks: Vec<UplinkFacts>,
    /// Whether they were named.
    pub uplinks_named: bool,
    /// Interfaces that are no uplinks at the moment, with the reason, to follow the name in a sentence; only if none was named.
    pub others: Vec<(String, String)>,
    /// The relays that this device is paired with, which are not looked at.
    pub relays: Vec<String>,
    /// The servers that were named.
    pub servers: Vec<ServerFacts>,
    /// What came of asking each server over each uplink.
    pub inquiries: Vec<Inquiry>,
    /// What came of adding subflows.
    pub joins: Vec<Join>,
    /// What came of asking with sockets of the kernel, over uplinks where the engine heard nothing.
    pub direct: Vec<Inquiry>,
    /// What was not answered and does not leave by its uplink, or whose answers do not find back, by rules of others that come before the engine's.
    pub detours: Vec<Detour>,
    /// Short transfers, if they were asked for.
    pub rates: Vec<Rate>,
    /// What was left out, with the reason.
    pub left_out: Vec<String>,
}

/// The machine as far as it matters.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// Whether the process has CAP_NET_ADMIN.
    pub may_administer: bool,
    /// Programs that are not there, each with Debian's name of its package.
    pub missing_programs: Vec<(String, String)>,
    /// Why there can be no TUN device, if it was tried.
    pub tun_refused: Option<String>,
    /// Why the engine could not be connected with the uplinks, if it was tried.
    pub plumbing_refused: Option<String>,
    /// Whether it was connected.
    pub is_plumbed: bool,
    /// The kernel's MPTCP.
    pub kernel_mptcp: KernelMptcp,
    /// Congestion controls of the kernel's TCP.
    pub congestion_controls: Vec<String>,
    /// Which interfaces IPv6 can be forwarded for.
    pub forwards_ipv6: Ipv6Forwarding,
    /// Seconds since 1970, by this machine's clock.
    pub clock_unix_s: u64,
    /// Chains that drop by policy; `None` if they could not be read.
    pub dropping_chains: Option<Vec<Chain>>,
    /// Chains of others, whatever their policy, with rules that drop or reject; `None` if they could not be read.
    pub dropping_rules: Option<Vec<Chain>>,
    /// Rules of others about routing that come before the engine's, as `ip rule` shows them.
    pub rules_before: Vec<String>,
    /// A tunnel that takes this host's default route.
    pub vpn: Option<Vpn>,
    /// The name servers that programs of this machine ask.
    pub name_servers: Vec<NameServer>,
}

/// A name server that `/etc/resolv.conf` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NameServer {
    /// Where it is.
    pub ip: IpAddr,
    /// Whether it can be asked: it answers, and not that it could not find out what everybody knows.
    pub answers: bool,
    /// It answers that it could not find it out (SERVFAIL).
    pub fails: bool,
}

/// What the kernel says of its MPTCP.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelMptcp {
    /// `net.mptcp.enabled`, if the kernel has it.
    pub enabled: Option<bool>,
    /// Whether `ip mptcp` works.
    pub has_command: bool,
    /// Addresses of the endpoints that there are, with their interfaces.
    pub endpoints: Vec<String>,
}

/// How far IPv6 can be forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ipv6Forwarding {
    /// For each interface by itself (Linux 6.17).
    #[default]
    EachInterface,
    /// For all, and it is on.
    All,
    /// For all or none, and it is off.
    Off,
}

/// A chain of a firewall that drops what no rule of it accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// As nftables names it: family, table, chain.
    pub name: String,
    /// Where it stands: `forward`, `output`, ...
    pub hook: String,
}

/// Packets of the engine that leave by another way than their uplink, or answers that leave by another than the engine's device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Detour {
    /// The uplink.
    pub uplink: String,
    /// For whom they are, or from whom.
    pub remote: IpAddr,
    /// Whether it is answers that do not find back to the engine.
    pub is_back: bool,
    /// The interface by which they leave; `None`: they do not.
    pub leaves_by: Option<String>,
}

/// A tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Vpn {
    /// Its interface.
    pub interface: String,
    /// What the kernel calls it: `wireguard`, `tun`, ...
    pub kind: String,
}

/// One uplink.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UplinkFacts {
    /// Its interface.
    pub interface: String,
    /// What is wrong with it, to follow the name in a sentence, the remedy behind a colon.
    pub wrong: Option<String>,
    /// Largest packet, octets.
    pub mtu: u32,
    /// Its addresses with their gateways.
    pub ways: Vec<WayFacts>,
    /// Who sets it up.
    pub manager: Option<Manager>,
    /// Whether a name server that is asked over it knows who serves the root, as all do that reach the Internet; `None`: nobody was asked.
    pub finds_names: Option<bool>,
    /// Whether a strict reverse-path filter stands at it.
    pub has_strict_filter: bool,
}

/// The way out in one family.
#[derive(Clone, Debug, Serialize)]
pub struct WayFacts {
    /// The interface's address.
    pub address: IpAddr,
    /// How many bits of it name the network.
    pub prefix_len: u8,
    /// The next hop, if the link needs one.
    pub gateway: Option<IpAddr>,
    /// Whether the next hop was heard of.
    pub gateway_state: GatewayState,
}

/// What the kernel knows of a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayState {
    /// It answered a moment ago.
    Answers,
    /// It was asked and did not answer.
    Silent,
    /// Nobody asked it lately.
    #[default]
    Unknown,
}

/// Programs that set up interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Manager {
    /// NetworkManager.
    NetworkManager,
    /// systemd-networkd.
    #[serde(rename = "systemd-networkd")]
    Networkd,
    /// ConnMan.
    ConnMan,
    /// dhcpcd.
    #[serde(rename = "dhcpcd")]
    Dhcpcd,
}

/// One server.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServerFacts {
    /// As it was named, with its port.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// Its addresses, the preferred one first.
    pub addresses: Vec<IpAddr>,
    /// Why there are none.
    pub lookup_failed: Option<String>,
    /// This machine's name servers did not find them, and name servers were asked over each uplink, as a join does.
    pub over_uplinks: bool,
}

impl ServerFacts {
    /// Whether its address is not known because no name server answers.
    pub fn names_are_silent(&self) -> bool {
        self.lookup_failed.as_deref().is_some_and(is_silence)
    }
}

/// A server asked over an uplink.
#[derive(Clone, Debug, Serialize)]
pub struct Inquiry {
    /// The uplink's interface.
    pub uplink: String,
    /// The server, as in [`ServerFacts::name`].
    pub server: String,
    /// Its address.
    pub remote: SocketAddr,
    /// What came of a connection without MPTCP.
    pub plain: Reached,
    /// What came of one with MPTCP.
    pub mptcp: Spoken,
    /// Round-trip times of packets without data, in order.
    pub rtts: Vec<Duration>,
    /// How many of these packets were not answered.
    pub unanswered: u32,
    /// What is known of the largest packet.
    pub mtu: PathMtu,
}

/// Whether a connection came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reached {
    /// It did.
    Yes,
    /// It was refused, so the way there is open.
    Refused,
    /// Nothing answered.
    #[default]
    Silent,
}

/// What became of MPTCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spoken {
    /// The SYN/ACK has MP_CAPABLE, and data with MPTCP's options were acknowledged likewise.
    Confirmed,
    /// The SYN/ACK has MP_CAPABLE; more was not found out in time.
    Offered,
    /// The SYN/ACK has MP_CAPABLE, and no later segment has an option of MPTCP.
    FellBack,
    /// The SYN/ACK has no MP_CAPABLE.
    Plain,
    /// The connection was refused.
    Refused,
    /// The SYN was not answered.
    #[default]
    Silent,
    /// It was not tried.
    Unknown,
}

impl Spoken {
    /// Whether MPTCP gets through.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Confirmed | Self::Offered)
    }
}

/// What is known of a path's largest packet, octets; zero: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathMtu {
    /// The largest that was answered.
    pub carries: u16,
    /// The smallest that vanished without a word.
    pub vanishes: u16,
    /// What a router said.
    pub told: u16,
}

/// A subflow added to a connection over another uplink. Those of one connection are in the order in which they were tried, one after
/// the other.
#[derive(Clone, Debug, Serialize)]
pub struct Join {
    /// The server.
    pub server: String,
    /// Its address.
    pub remote: SocketAddr,
    /// The uplink of the connection.
    pub base: String,
    /// The uplink of the subflow.
    pub uplink: String,
    /// What came of it.
    pub outcome: JoinOutcome,
    /// How often it was tried: once more where nothing answered.
    pub tries: u32,
}

/// What came of a join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JoinOutcome {
    /// The subflow can carry data.
    Established,
    /// The SYN/ACK has no MP_JOIN.
    Stripped,
    /// It was reset.
    Refused,
    /// Nothing answered.
    #[default]
    Silent,
}

/// Packets that get through nearly everywhere: what every link of IPv6 carries (RFC 8200 section 5).
pub const SMALL_MTU: u16 = 1280;

/// A short transfer.
#[derive(Clone, Debug, Serialize)]
pub struct Rate {
    /// The uplink.
    pub uplink: String,
    /// Octets that arrived.
    pub bytes: u64,
    /// In which time.
    pub duration: Duration,
    /// Why it ended before its time.
    pub failed: Option<String>,
    /// Where nothing arrived in time: octets that arrived in a second one, with packets of [`SMALL_MTU`] octets at most.
    pub bytes_small: u64,
}

/// Whether an address is one that others cannot reach it by: private (RFC 1918), shared (RFC 6598), unique local (RFC 4193) or of
/// the link.
pub fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            ip.is_private() || ip.is_link_local() || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}
