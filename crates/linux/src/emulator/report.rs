//! What a person sees of an emulation: who has which address, and what went through.

use std::fmt::Write as _;

use network::{Amount, DropCause, VertexId};
use units::ByteCount;

use super::Emulation;

/// What one direction of a link did to its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayLosses {
    /// Packets that entered.
    pub entered_packets: u64,
    /// Packets dropped, for any reason.
    pub lost_packets: u64,
    /// Of these, those that found the queue full.
    pub queue_full_packets: u64,
}

impl Emulation {
    /// Losses of a link, by its position in the topology: from the first host to the second, and back.
    pub fn losses(&self, link: usize) -> [WayLosses; 2] {
        let link = &self.links[link];
        [&link.up, &link.down].map(|way| WayLosses {
            entered_packets: self.network.counters(way[0]).entered.packets,
            lost_packets: way.iter().map(|vertex| self.network.counters(*vertex).dropped_total().packets).sum(),
            queue_full_packets: way.iter().map(|vertex| self.dropped(*vertex, DropCause::QueueFull)).sum(),
        })
    }

    /// The hosts with their devices and addresses, and what to try, as text for a terminal.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{:<16} {:<8} {:<14} {:<16} to", "namespace", "device", "IPv4", "IPv6");
        for (index, host) in self.hosts.iter().enumerate() {
            let mut name = host.name();
            for plan in &self.plans {
                let Some(side) = plan.ends.iter().position(|end| end.host == index) else { continue };
                let end = &plan.ends[side];
                let peer = self.hosts[plan.ends[1 - side].host].name();
                let (v4, v6) = (end.v4.to_string(), end.v6.to_string());
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

    /// What went through each link in each direction, as text for a terminal.
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
            for (from, to, way) in [(first, second, &link.up), (second, first, &link.down)] {
                let name = format!("{} {from} -> {to}", plan.ends[0].device);
                let _ = writeln!(text, "{name:<34} {}", self.way_counters(way));
            }
        }
        text
    }

    fn way_counters(&self, way: &[VertexId]) -> String {
        let sent = self.network.counters(way[0]).entered;
        let delivered = self.network.counters(way[way.len() - 1]).left;
        let dropped = |causes: &[DropCause]| -> u64 {
            let at = |vertex: &VertexId| causes.iter().map(|cause| self.dropped(*vertex, *cause)).sum::<u64>();
            way.iter().map(at).sum()
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
        self.network.counters(vertex).dropped(cause).packets
    }
}

/// Octets to three digits, which is what one reads.
fn amount(amount: Amount) -> String {
    let rounding = 10_u64.pow(amount.bytes.max(1).ilog10().saturating_sub(2));
    ByteCount(amount.bytes / rounding * rounding).to_string()
}
