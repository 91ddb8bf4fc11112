//! What the doctor learns about a machine, its uplinks and servers: data, without judgement.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use units::Duration;

use crate::proxy::resolver::is_silence;

/// All facts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Facts {
    /// The machine.
    pub machine: Machine,
    /// The uplinks that the user named, or all.
    pub uplinks: Vec<UplinkFacts>,
    /// Whether the user named them.
    pub uplinks_named: bool,
    /// Interfaces that are currently no uplinks, each with the reason as the continuation of a sentence. Empty if the
    /// user named uplinks.
    pub others: Vec<(String, String)>,
    /// The relays that this device is paired with. The doctor does not examine them.
    pub relays: Vec<String>,
    /// The servers that the user named.
    pub servers: Vec<ServerFacts>,
    /// The result of asking each server over each uplink.
    pub inquiries: Vec<Inquiry>,
    /// The results of adding subflows.
    pub joins: Vec<Join>,
    /// The results of asking with kernel sockets, over uplinks on which the engine heard nothing.
    pub direct: Vec<Inquiry>,
    /// Unanswered traffic that foreign rules ahead of the engine's lead astray: it does not leave by its uplink, or its
    /// answers do not return.
    pub detours: Vec<Detour>,
    /// Short transfers, if the user asked for them.
    pub rates: Vec<Rate>,
    /// Checks that were left out, with the reason.
    pub left_out: Vec<String>,
}

/// Facts about the machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// Whether the process has CAP_NET_ADMIN.
    pub may_administer: bool,
    /// Missing programs, each with the name of its Debian package.
    pub missing_programs: Vec<(String, String)>,
    /// Why no TUN device can be created, if the doctor tried.
    pub tun_refused: Option<String>,
    /// Why the engine could not be attached to the uplinks, if the doctor tried.
    pub plumbing_refused: Option<String>,
    /// Whether the engine was attached.
    pub is_plumbed: bool,
    /// The kernel's MPTCP.
    pub kernel_mptcp: KernelMptcp,
    /// Congestion controls available to the kernel's TCP.
    pub congestion_controls: Vec<String>,
    /// Interfaces for which the kernel can forward IPv6.
    pub forwards_ipv6: Ipv6Forwarding,
    /// Seconds since 1970, by this machine's clock.
    pub clock_unix_s: u64,
    /// Chains whose policy is to drop; `None` if they could not be read.
    pub dropping_chains: Option<Vec<Chain>>,
    /// Foreign chains of any policy with rules that drop or reject; `None` if they could not be read.
    pub dropping_rules: Option<Vec<Chain>>,
    /// Foreign routing rules that come before the engine's.
    pub rules_before: Vec<Rule>,
    /// A tunnel that takes this host's default route.
    pub vpn: Option<Vpn>,
    /// The name servers that this machine's programs ask.
    pub name_servers: Vec<NameServer>,
}

/// A routing rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The command that shows the rules of its family: `ip rule` or `ip -6 rule`.
    pub command: &'static str,
    /// The line that it shows.
    pub text: String,
}

/// A name server that `/etc/resolv.conf` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NameServer {
    /// Its address.
    pub ip: IpAddr,
    /// Whether it works: it answers, and does not fail to find what every name server knows.
    pub answers: bool,
    /// Whether it answers with SERVFAIL: it could not find the answer.
    pub fails: bool,
}

/// The state of the kernel's MPTCP.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelMptcp {
    /// Value of `net.mptcp.enabled`, if the kernel has this variable.
    pub enabled: Option<bool>,
    /// Whether `ip mptcp` works.
    pub has_command: bool,
    /// Addresses of the existing endpoints, with their interfaces.
    pub endpoints: Vec<String>,
}

/// Scope of IPv6 forwarding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ipv6Forwarding {
    /// It can be switched on for each interface separately (Linux 6.17).
    #[default]
    EachInterface,
    /// It is on, for all interfaces.
    All,
    /// It is off, and can only be switched on for all interfaces.
    Off,
}

/// A firewall chain that drops packets: by policy or by a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// Its name in nftables: family, table, chain.
    pub name: String,
    /// Its hook: `forward`, `output`, ...
    pub hook: String,
}

/// Engine packets that leave by another way than their uplink, or answers that leave by another device than the
/// engine's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Detour {
    /// The uplink.
    pub uplink: String,
    /// The peer: destination of the packets, or source of the answers.
    pub remote: IpAddr,
    /// Whether it is the answers that go astray.
    pub is_back: bool,
    /// The interface by which they leave; `None` if they do not leave.
    pub leaves_by: Option<String>,
}

/// A tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Vpn {
    /// Its interface.
    pub interface: String,
    /// The kernel's name for its kind: `wireguard`, `tun`, ...
    pub kind: String,
}

/// One uplink.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UplinkFacts {
    /// Its interface.
    pub interface: String,
    /// What is wrong with it, as the continuation of a sentence after its name; the remedy follows a colon.
    pub wrong: Option<String>,
    /// Largest packet, octets.
    pub mtu: u32,
    /// Its addresses with their gateways.
    pub ways: Vec<WayFacts>,
    /// The program that manages it.
    pub manager: Option<Manager>,
    /// Whether a name server asked over it knows the root servers, as every one with access to the Internet does;
    /// `None` if none was asked.
    pub finds_names: Option<bool>,
    /// Whether a strict reverse-path filter applies to it.
    pub has_strict_filter: bool,
}

/// The route to the Internet in one family.
#[derive(Clone, Debug, Serialize)]
pub struct WayFacts {
    /// The interface's address.
    pub address: IpAddr,
    /// Length of the network prefix, bits.
    pub prefix_len: u8,
    /// The next hop, if the link needs one.
    pub gateway: Option<IpAddr>,
    /// The state of the next hop.
    pub gateway_state: GatewayState,
}

/// The kernel's knowledge of a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayState {
    /// It answered recently.
    Answers,
    /// It was asked and did not answer.
    Silent,
    /// The kernel has not asked it recently.
    #[default]
    Unknown,
}

/// Programs that manage interfaces.
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
    /// As the user named it, with its port.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// Its addresses, the preferred one first.
    pub addresses: Vec<IpAddr>,
    /// Why it has no address.
    pub lookup_failed: Option<String>,
    /// Whether the doctor also asked name servers over each uplink, as a join does, because this machine's own found no
    /// address.
    pub over_uplinks: bool,
}

/// Why a server was not asked whose name stands for this device, as in `/etc/hosts`.
const OWN: &str = "it is this device itself";

impl ServerFacts {
    /// Notes the addresses of its name. No uplink leads to those of this device's loopback.
    pub fn note_addresses(&mut self, mut addresses: Vec<IpAddr>) {
        addresses.retain(|address| !address.to_canonical().is_loopback());
        self.lookup_failed = addresses.is_empty().then(|| OWN.into());
        self.addresses = addresses;
    }

    /// Returns whether its name stands for this device itself.
    pub fn is_own(&self) -> bool {
        self.lookup_failed.as_deref() == Some(OWN)
    }

    /// Returns whether its address is unknown because no name server answers.
    pub fn names_are_silent(&self) -> bool {
        self.lookup_failed.as_deref().is_some_and(is_silence)
    }
}

/// The result of asking a server over an uplink.
#[derive(Clone, Debug, Serialize)]
pub struct Inquiry {
    /// The uplink's interface.
    pub uplink: String,
    /// The server, as in [`ServerFacts::name`].
    pub server: String,
    /// Its address.
    pub remote: SocketAddr,
    /// The result of a connection without MPTCP.
    pub plain: Reached,
    /// The result of a connection with MPTCP.
    pub mptcp: Spoken,
    /// Round-trip times of packets without new data, in order.
    pub rtts: Vec<Duration>,
    /// Number of these packets without an answer.
    pub unanswered: u32,
    /// What is known about the largest packet.
    pub mtu: PathMtu,
}

/// Whether a connection was established.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reached {
    /// It was established.
    Yes,
    /// It was refused, so the path is open.
    Refused,
    /// Nothing answered.
    #[default]
    Silent,
}

/// The result of offering MPTCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spoken {
    /// The SYN/ACK has MP_CAPABLE, and data with MPTCP options were acknowledged with MPTCP options.
    Confirmed,
    /// The SYN/ACK has MP_CAPABLE; nothing more was found out in time.
    Offered,
    /// The SYN/ACK has MP_CAPABLE, but no later segment has an MPTCP option.
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
    /// Returns whether MPTCP gets through.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Confirmed | Self::Offered)
    }
}

/// The largest packet of a path, octets; zero where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathMtu {
    /// The largest size that was answered.
    pub carries: u16,
    /// The smallest size that vanished without an ICMP message.
    pub vanishes: u16,
    /// The size that a router announced.
    pub told: u16,
}

/// The result of adding a subflow to a connection over another uplink. The joins of one connection are listed in the
/// order in which they were tried, one after the other.
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
    /// The address that was joined, if it is another one: the server forbids joins to its address, and announced this.
    pub announced: Option<SocketAddr>,
    /// The outcome.
    pub outcome: JoinOutcome,
    /// Number of tries: two if the first was not answered.
    pub tries: u32,
}

/// The outcome of a join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JoinOutcome {
    /// The subflow can carry data.
    Established,
    /// The SYN/ACK has no MP_JOIN.
    Stripped,
    /// The subflow was reset.
    Refused,
    /// The server forbade joins to its address beforehand (RFC 8684 section 3.1, flag C) and announced no other one.
    /// Nothing was sent.
    Forbidden,
    /// Nothing answered.
    #[default]
    Silent,
}

/// A packet size that passes nearly everywhere: the minimum MTU of IPv6 links (RFC 8200 section 5).
pub const SMALL_MTU: u16 = 1280;

/// A short transfer.
#[derive(Clone, Debug, Serialize)]
pub struct Rate {
    /// The uplink.
    pub uplink: String,
    /// Octets that arrived.
    pub bytes: u64,
    /// Those of them that arrived after the first ones, with which the clock starts.
    pub timed_bytes: u64,
    /// Time in which these arrived.
    pub duration: Duration,
    /// Whether this suffices to tell a rate.
    pub suffices: bool,
    /// Why the transfer failed.
    pub failed: Option<String>,
    /// If nothing arrived in time: octets that arrived in a second transfer, with packets of at most [`SMALL_MTU`]
    /// octets.
    pub bytes_small: u64,
}
