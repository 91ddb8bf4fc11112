//! Describes an emulation to the user: who has which address, and how much passed.

use std::fmt::Write as _;

use network::{Amount, DropCause, VertexId};
use units::ByteCount;

use super::Emulation;
use super::wiring::WiredLink;

impl Emulation {
    /// Lists the hosts with their devices and addresses, and what to try, as text for a terminal.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{:<16} {:<8} {:<14} {:<16} to", "namespace", "device", "IPv4", "IPv6");
        for (index, host) in self.hosts.iter().enumerate() {
            let mut name = host.name();
            for plan in &self.plans {
                let Some(side) = plan.ends.iter().position(|end| end.host == index) else { continue };
                let end = &plan.ends[side];
                let peer = self.hosts[plan.ends[1 - side].host].name();
                let v6 = if self.has_ipv6 { end.v6.to_string() } else { "none".into() };
                let v4 = end.v4.to_string();
                let _ = writeln!(text, "{name:<16} {:<8} {v4:<14} {v6:<16} {peer}", end.device);
                name = "";
            }
        }
        if let Some(plan) = self.plans.first() {
            let [first, second] = plan.ends.each_ref().map(|end| self.hosts[end.host].prefix());
            let target = plan.ends[1].v4;
            let _ = write!(text, "\ntry: {first} ping {target}\n     {second} bash\n");
        }
        text
    }

    /// Returns the traffic over each link in each direction, as text for a terminal.
    pub fn counters(&self) -> String {
        let mut text = String::new();
        let titles = ["link", "sent", "delivered", "queue full", "lost", "down", "other"];
        let _ = writeln!(
            text,
            "{:<34} {:>12} {:>12} {:>10} {:>10} {:>10} {:>10}",
            titles[0], titles[1], titles[2], titles[3], titles[4], titles[5], titles[6]
        );
        for (plan, link) in self.plans.iter().zip(&self.links) {
            let [first, second] = plan.ends.each_ref().map(|end| self.hosts[end.host].name());
            for (way, from, to) in [(0, &first, &second), (1, &second, &first)] {
                let name = format!("{} {from} -> {to}", plan.ends[0].device);
                let _ = writeln!(text, "{name:<34} {}", self.way_counters(&Passed::of(link, way)));
            }
        }
        text
    }

    fn way_counters(&self, passed: &Passed<'_>) -> String {
        let sent = self.between.network.counters(passed.first()).entered;
        let mut delivered = self.between.network.counters(passed.way[passed.way.len() - 1]).left;
        for dropped in passed.behind.iter().map(|vertex| self.between.network.counters(*vertex).dropped_total()) {
            delivered.packets = delivered.packets.saturating_sub(dropped.packets);
            delivered.bytes = delivered.bytes.saturating_sub(dropped.bytes);
        }
        let dropped = |causes: &[DropCause]| -> u64 {
            passed.all().flat_map(|vertex| causes.iter().map(move |cause| self.dropped(vertex, *cause))).sum()
        };
        let [full, lost, down] =
            [DropCause::QueueFull, DropCause::Loss, DropCause::Outage].map(|cause| dropped(&[cause]));
        let other = dropped(&[
            DropCause::Corruption,
            DropCause::Filtered,
            DropCause::NoRoute,
            DropCause::HopLimit,
            DropCause::TooBig,
        ]);
        format!("{:>12} {:>12} {full:>10} {lost:>10} {down:>10} {other:>10}", amount(sent), amount(delivered))
    }

    fn dropped(&self, vertex: VertexId, cause: DropCause) -> u64 {
        self.between.network.counters(vertex).dropped(cause).packets
    }
}

/// The places that packets of one direction of a link pass, in order: where narrow hops and NATs drop them, and the
/// link itself.
struct Passed<'a> {
    before: &'a [VertexId],
    way: &'a [VertexId],
    behind: &'a [VertexId],
}

impl<'a> Passed<'a> {
    /// From the first host to the second (0), or back (1).
    fn of(link: &'a WiredLink, way: usize) -> Self {
        match way {
            0 => Self { before: &link.entries[0], way: &link.up, behind: &[] },
            _ => Self { before: &[], way: &link.down, behind: &link.entries[1] },
        }
    }

    fn first(&self) -> VertexId {
        self.before.first().copied().unwrap_or(self.way[0])
    }

    fn all(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.before.iter().chain(self.way).chain(self.behind).copied()
    }
}

/// Formats octets with three digits, for readers.
fn amount(amount: Amount) -> String {
    let rounding = 10_u64.pow(amount.bytes.max(1).ilog10().saturating_sub(2));
    ByteCount(amount.bytes / rounding * rounding).to_string()
}
