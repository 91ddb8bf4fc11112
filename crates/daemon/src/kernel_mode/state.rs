//! The manager with what it acts through, and the traffic of each uplink.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linux::Result;
use linux::mptcp::{self, Ended, Event, PathManager, Socket};
use linux::uplink::{self, Uplink};
use tracing::{debug, info, warn};
use units::{Instant, Rate};

use super::KernelStatus;
use super::manager::{Command, Manager, View};
use super::meters::{Look, Meters};
use super::silence::{News, Silence};
use crate::control::message::Request;
use crate::doctor::POINTER;
use crate::join::rates::Rates;
use crate::join::roster::{Entry, Roster};
use crate::join::status::{JoinStatus, UplinkStatus, describe};
use crate::links::LinkStatus;

/// State that the daemon's threads share.
pub struct State {
    roster: Roster,
    manager: Manager,
    paths: PathManager,
    meters: Meters,
    /// Rates of the uplinks, for the selection.
    rates: Rates,
    silence: Silence,
    /// Uplinks whose silence was logged, by interface, with its beginning.
    told: BTreeMap<String, Instant>,
    /// Connections that existed when the daemon began.
    earlier: BTreeSet<u32>,
    /// Number of subflows, at the last look, of those connections that are not managed.
    unmanaged: usize,
    /// Addresses of subflows for which the addresses of the uplinks were listed.
    strange: BTreeSet<IpAddr>,
}

impl State {
    /// Creates a state with the uplinks of `roster` and no connections.
    pub fn new(roster: Roster, paths: PathManager) -> Self {
        let (manager, meters, rates) = (Manager::default(), Meters::default(), Rates::default());
        let mut state = Self {
            roster,
            manager,
            paths,
            meters,
            rates,
            silence: Silence::default(),
            told: BTreeMap::new(),
            earlier: BTreeSet::new(),
            unmanaged: 0,
            strange: BTreeSet::new(),
        };
        state.tell_uplinks();
        state
    }

    /// Takes over the existing connections, including those of an earlier run. Their traffic so far does not count.
    pub fn begin(&mut self, now: Instant) -> Result<()> {
        let there = self.looks(&mptcp::sockets()?);
        self.earlier = there.iter().map(|(token, _)| *token).collect();
        self.meters.begin(there.into_iter().map(|(_, look)| look));
        self.adopt(now)?;
        // Prices decide before any traffic.
        self.select(now);
        Ok(())
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
            if let Event::SubflowEstablished { ends, interface, .. } = event {
                let uplink = self.manager.uplink_of(*ends, *interface);
                uplink.into_iter().for_each(|uplink| self.silence.heard(uplink, now));
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
            self.meters.handle(ended, self.manager.uplink_of(ended.ends, ended.interface));
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

    /// Measures the traffic of all subflows, and asks about those over which nothing is heard.
    pub fn listen(&mut self, now: Instant) -> Result<()> {
        let there = self.measure()?;
        let News { quiet, heard } = self.silence.look(&there, now);
        heard.into_iter().for_each(|(token, ends)| self.manager.believe(token, ends));
        let asked = self.manager.doubt(&quiet, now);
        for (token, ends) in &asked {
            debug!(token, ?ends, "nothing is heard over a subflow: it is to be replaced");
        }
        self.silence.note_asked(&asked, now);
        self.act(now);
        self.tell_silences(now);
        Ok(())
    }

    /// Reports once that nothing is heard over an uplink, and once that it is heard again.
    fn tell_silences(&mut self, now: Instant) {
        for attempt in self.manager.take_unanswered().into_iter().filter(|attempt| attempt.had_subflow) {
            self.silence.unanswered(attempt.uplink, attempt.begun);
        }
        for (index, entry) in self.roster.entries.iter().enumerate() {
            // Nobody would notice that packets come back.
            if self.silence.silent_since(index).is_some() && !self.manager.lacks_any(index) {
                self.silence.forget(index);
                self.told.remove(&entry.uplink.interface);
            }
        }
        for (index, entry) in self.roster.entries.iter().enumerate() {
            let name = &entry.uplink.interface;
            match (self.silence.silent_since(index), self.told.get(name).copied()) {
                (Some(since), None) => {
                    let seconds = now.saturating_since(since).as_secs_f64();
                    warn!(
                        uplink = name,
                        "nothing received over {name} for {seconds:.0} s, although answers are due: connections use the \
                         other uplinks{POINTER}"
                    );
                    self.told.insert(name.clone(), since);
                }
                (None, Some(since)) => {
                    let seconds = now.saturating_since(since).as_secs_f64();
                    info!(uplink = name, "packets come back over {name} again, after {seconds:.0} s");
                    self.told.remove(name);
                }
                _ => {}
            }
        }
    }

    /// Measures the traffic of all subflows. Returns what the kernel says of them.
    fn measure(&mut self) -> Result<Vec<(u32, Look)>> {
        let sockets = mptcp::sockets()?;
        self.manager.note_interfaces(&sockets);
        let there = self.looks(&sockets);
        if !self.earlier.is_empty() {
            let tokens: BTreeSet<u32> = there.iter().map(|(token, _)| *token).collect();
            self.earlier.retain(|token| tokens.contains(token));
        }
        let is_unmanaged = |token: &u32| self.earlier.contains(token) && !self.manager.manages(*token);
        let over_uplinks = there.iter().filter(|(_, look)| look.uplink.is_some());
        self.unmanaged = over_uplinks.filter(|(token, _)| is_unmanaged(token)).count();
        self.meters.look(there.iter().map(|(_, look)| *look));
        Ok(there)
    }

    /// Returns all subflows, with their connections' tokens.
    fn looks(&self, sockets: &[Socket]) -> Vec<(u32, Look)> {
        let subflow = |socket: &Socket| match socket.state {
            mptcp::State::Subflow { token, cookie, traffic } => {
                let uplink = self.manager.uplink_of(socket.ends, socket.interface);
                Some((token, Look { cookie, ends: socket.ends, uplink, traffic }))
            }
            mptcp::State::Listens => None,
        };
        sockets.iter().filter_map(subflow).collect()
    }

    /// Handles the loss of an uplink. Returns the reason, and whether this is news.
    pub fn lost(&mut self, interface: &str, why: String, now: Instant) -> (String, bool) {
        let told = self.roster.lose(interface, why);
        self.forget_silence(interface);
        self.tell_uplinks();
        self.act(now);
        told
    }

    /// Handles an uplink that is usable now or has changed, with the addresses `there`. Returns what to say of it, to
    /// follow its name.
    pub fn usable(&mut self, uplink: Uplink, there: &[IpAddr], now: Instant) -> Option<String> {
        self.forget_silence(&uplink.interface);
        self.strange.clear();
        self.roster.note_name(&uplink);
        let index = self.roster.position(&uplink.interface)?;
        let was_lost = self.roster.entries[index].replace_for_kernel(uplink, there);
        self.tell_uplinks();
        self.act(now);
        Some(self.roster.news_of(index, was_lost))
    }

    /// Returns the uplinks whose addresses are to be listed anew, if subflows have addresses that no uplink is known to
    /// have: an uplink may have got further ones since, which are no change of it.
    pub fn uplinks_to_list(&mut self) -> Vec<String> {
        let strange = self.manager.strange_addresses();
        let has_new = !strange.is_subset(&self.strange);
        self.strange.extend(strange);
        let there = self.roster.entries.iter().filter(|entry| has_new && entry.lost.is_none());
        there.map(|entry| entry.uplink.interface.clone()).collect()
    }

    /// Notes all addresses `there` of an uplink. If they could not be listed, they are listed again with the next look.
    pub fn note_addresses(&mut self, interface: &str, there: &[IpAddr], now: Instant) {
        let Some(index) = self.roster.position(interface) else { return };
        if !self.roster.entries[index].note_addresses(there) {
            return self.strange.clear();
        }
        self.tell_uplinks();
        self.act(now);
    }

    fn forget_silence(&mut self, interface: &str) {
        if let Some(index) = self.roster.position(interface) {
            self.silence.forget(index);
            self.told.remove(interface);
        }
    }

    /// Makes a change that the user asks for, or several, or none of them.
    pub fn set(&mut self, change: Request, now: Instant) -> Result<(), String> {
        match change {
            Request::SetTier { uplink, tier } => self.roster.set_tier(&uplink, tier)?,
            Request::SetPrice { uplink, price } => self.roster.set_price(&uplink, price)?,
            Request::SetTarget { bps } => self.roster.set_target(bps.map(Rate::from_bps))?,
            Request::SetAll { changes } => self.roster.set_all(&changes)?,
            Request::Status => {}
        }
        self.tell_uplinks();
        self.act(now);
        Ok(())
    }

    /// Returns whether only as few uplinks as deliver a target bit rate carry data.
    pub fn has_target(&self) -> bool {
        self.roster.selection.is_some()
    }

    /// Decides which uplinks carry data for the target bit rate, if there is one; once a second, after
    /// [`Self::listen`].
    pub fn select(&mut self, now: Instant) {
        if !self.has_target() {
            self.rates = Rates::default();
            return;
        }
        let sums: Vec<u64> =
            (0..self.roster.entries.len()).map(|index| self.meters.read(index).meter.bytes()).collect();
        // The daemon does not know what programs wait for: they count as busy while something moves.
        let is_busy = self.rates.have_moved(&sums);
        if self.rates.look(&mut self.roster, sums, is_busy, now) {
            debug!("other uplinks now carry data for the target bit rate");
            self.tell_uplinks();
            self.act(now);
        }
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
            others: entry.others.clone(),
            tier: self.roster.tier_of(index),
            is_usable: entry.lost.is_none(),
            is_default: default.as_ref() == Some(&entry.uplink.interface),
        };
        self.manager.set_uplinks(self.roster.entries.iter().enumerate().map(view).collect());
    }

    /// Returns the interface where connections without a bound interface begin, if uplinks share an address.
    fn default_interface(&self) -> Option<String> {
        let addresses = || self.roster.entries.iter().flat_map(|entry| entry.addresses.iter().chain(&entry.others));
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
        let selection = self.roster.selection.as_ref();
        let uplink = |(index, entry): (usize, &Entry)| {
            let reading = self.meters.read(index);
            UplinkStatus {
                interface: entry.uplink.interface.clone(),
                tier: entry.tier,
                price: entry.price,
                carries: !self.roster.is_left_out(index),
                held_back: false,
                portal: false,
                estimate_bps: selection.and_then(|selection| selection.estimate(index)).map(Rate::as_bps),
                lost: entry.lost.clone(),
                unheard: self.silence.silent_since(index).map(|since| now.saturating_since(since)),
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
            target_bps: selection.map(|selection| selection.target().as_bps()),
            uplinks,
            proxy: None,
            kernel: Some(kernel),
        })
    }
}
