//! The manager with what it acts through, and the traffic of each uplink.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linux::Result;
use linux::mptcp::{self, Ended, Event, PathManager, Socket};
use linux::uplink::{self, Uplink};
use tracing::debug;
use units::Instant;

use super::KernelStatus;
use super::manager::{Command, Manager, View};
use super::meters::{Look, Meters};
use crate::control::message::Request;
use crate::join::roster::{Entry, Roster};
use crate::join::status::{JoinStatus, UplinkStatus, describe};
use crate::links::LinkStatus;
use crate::proxy::choice::Tier;

/// State that the daemon's threads share.
pub struct State {
    roster: Roster,
    manager: Manager,
    paths: PathManager,
    meters: Meters,
    /// Connections that existed when the daemon began.
    earlier: BTreeSet<u32>,
    /// Number of subflows, at the last look, of those connections that are not managed.
    unmanaged: usize,
}

impl State {
    /// Creates a state with the uplinks of `roster` and no connections.
    pub fn new(roster: Roster, paths: PathManager) -> Self {
        let (manager, meters, earlier) = (Manager::default(), Meters::default(), BTreeSet::new());
        let mut state = Self { roster, manager, paths, meters, earlier, unmanaged: 0 };
        state.tell_uplinks();
        state
    }

    /// Takes over the existing connections, including those of an earlier run. Their traffic so far does not count.
    pub fn begin(&mut self, now: Instant) -> Result<()> {
        let there = self.looks()?;
        self.earlier = there.iter().map(|(token, _)| *token).collect();
        self.meters.begin(there.into_iter().map(|(_, look)| look));
        self.adopt(now)
    }

    /// Takes over all connections as they are, regardless of earlier events.
    pub fn adopt(&mut self, now: Instant) -> Result<()> {
        self.manager.adopt(&mptcp::sockets()?, now);
        self.act(now);
        Ok(())
    }

    /// Handles the kernel's events. Returns whether there are new subflows.
    pub fn handle(&mut self, events: &[Event], now: Instant) -> Result<bool> {
        let mut has_new = false;
        for event in events {
            self.manager.handle(*event, now);
            if let Event::Established { ends, .. } | Event::SubflowEstablished { ends, .. } = event {
                self.meters.expect(*ends);
                has_new = true;
            }
        }
        if events.contains(&Event::Lost) {
            self.adopt(now)?;
        }
        Ok(has_new)
    }

    /// Counts the traffic of ended sockets.
    pub fn count(&mut self, ended: &[Ended]) {
        for ended in ended {
            self.meters.handle(ended, self.manager.uplink_of(ended.ends.local.ip(), ended.interface));
        }
    }

    /// Sends the manager's commands to the kernel.
    pub fn act(&mut self, now: Instant) {
        for command in self.manager.commands(now) {
            let done = match command {
                Command::Create { token, from, to, .. } => self.paths.create(token, from, to),
                Command::Destroy { token, ends } => self.paths.destroy(token, ends),
                Command::Announce { token, ip, id } => self.paths.announce(token, ip, id),
                Command::Withdraw { token, id, .. } => self.paths.withdraw(token, id),
                Command::SetBackup { token, ends, backup } => self.paths.set_backup(token, ends, backup),
            };
            if let Err(error) = done {
                debug!("the kernel refuses {command:?}: {error}");
                self.manager.refused(command, error.kind(), now);
            }
        }
    }

    /// Returns when [`Self::act`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.manager.deadline()
    }

    /// Returns whether there is anything to measure.
    pub fn has_connections(&self) -> bool {
        self.manager.connections() > 0 || self.meters.expects()
    }

    /// Measures the traffic of all subflows.
    pub fn measure(&mut self) -> Result<()> {
        let there = self.looks()?;
        if !self.earlier.is_empty() {
            let tokens: BTreeSet<u32> = there.iter().map(|(token, _)| *token).collect();
            self.earlier.retain(|token| tokens.contains(token));
        }
        let is_unmanaged = |token: &u32| self.earlier.contains(token) && !self.manager.manages(*token);
        self.unmanaged = there.iter().filter(|(token, _)| is_unmanaged(token)).count();
        self.meters.look(there.into_iter().map(|(_, look)| look));
        Ok(())
    }

    /// Returns all subflows over present uplinks, with their connections' tokens.
    fn looks(&self) -> Result<Vec<(u32, Look)>> {
        let manager = &self.manager;
        let subflow = |socket: Socket| match socket.state {
            mptcp::State::Subflow { token, cookie, traffic } => {
                let uplink = manager.uplink_of(socket.ends.local.ip(), socket.interface)?;
                Some((token, Look { cookie, ends: socket.ends, uplink, traffic }))
            }
            mptcp::State::Listens => None,
        };
        Ok(mptcp::sockets()?.into_iter().filter_map(subflow).collect())
    }

    /// Handles the loss of an uplink. Returns the reason, and whether this is news.
    pub fn lost(&mut self, interface: &str, why: String, now: Instant) -> (String, bool) {
        let told = self.roster.lose(interface, why);
        self.tell_uplinks();
        self.act(now);
        told
    }

    /// Handles an uplink that is usable now or has changed. Returns whether it was lost.
    pub fn usable(&mut self, uplink: Uplink, now: Instant) -> bool {
        let was_lost = self.roster.entry(&uplink.interface.clone()).is_some_and(|entry| {
            entry.addresses = uplink.ways().map(|way| way.address).collect();
            entry.uplink = uplink;
            entry.lost.take().is_some()
        });
        self.tell_uplinks();
        self.act(now);
        was_lost
    }

    /// Changes the tier of an uplink.
    pub fn set_tier(&mut self, interface: &str, tier: Tier, now: Instant) -> Result<(), String> {
        self.roster.set_tier(interface, tier)?;
        self.tell_uplinks();
        self.act(now);
        Ok(())
    }

    /// Makes several changes, or none.
    pub fn set_all(&mut self, changes: &[Request], now: Instant) -> Result<(), String> {
        self.roster.set_all(changes)?;
        self.tell_uplinks();
        self.act(now);
        Ok(())
    }

    /// Handles the status of a link to a relay. Returns a line for the user if there is news.
    pub fn handle_link(&mut self, status: &LinkStatus) -> Option<String> {
        let line = self.roster.handle_link(status)?;
        self.tell_uplinks();
        Some(line)
    }

    fn tell_uplinks(&mut self) {
        let default = self.default_interface();
        let view = |(index, entry): (usize, &Entry)| View {
            interface: entry.uplink.index,
            addresses: entry.addresses.clone(),
            tier: self.roster.tier_of(index),
            is_usable: entry.lost.is_none(),
            is_default: default.as_ref() == Some(&entry.uplink.interface),
        };
        self.manager.set_uplinks(self.roster.entries.iter().enumerate().map(view).collect());
    }

    /// Returns the interface where connections without a bound interface begin, if uplinks share an address.
    fn default_interface(&self) -> Option<String> {
        let addresses = || self.roster.entries.iter().flat_map(|entry| &entry.addresses);
        let shared = addresses().find(|address| addresses().filter(|other| other == address).count() > 1)?;
        // Documentation addresses (RFC 5737, RFC 3849): their route is that of the Internet.
        uplink::unbound_interface(match shared {
            IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        })
    }

    /// Returns the current status.
    pub fn status(&mut self, now: Instant) -> Result<JoinStatus> {
        self.measure()?;
        let uplink = |(index, entry): (usize, &Entry)| {
            let reading = self.meters.read(index);
            UplinkStatus {
                interface: entry.uplink.interface.clone(),
                tier: entry.tier,
                price: entry.price,
                carries: true,
                held_back: false,
                portal: false,
                estimate_bps: None,
                lost: entry.lost.clone(),
                unheard: None,
                unheard_family: None,
                ways: entry.uplink.ways().map(describe).collect(),
                base_rtt: reading.base_rtt,
                queue: reading.queue,
                meter: reading.meter,
                link: entry.link.clone(),
                // Subflows over a lost uplink carry nothing, however long the kernel keeps them.
                subflows: Some(if entry.lost.is_none() { reading.subflows } else { 0 }),
            }
        };
        let uplinks = self.roster.entries.iter().enumerate().map(uplink).collect();
        let kernel = KernelStatus {
            connections: self.manager.connections(),
            unmanaged_subflows: self.unmanaged,
            totals: self.manager.totals(),
        };
        Ok(JoinStatus {
            version: env!("CARGO_PKG_VERSION"),
            device: self.roster.device.clone(),
            state: self.roster.state.clone(),
            at: now,
            target_bps: None,
            uplinks,
            proxy: None,
            kernel: Some(kernel),
        })
    }
}
