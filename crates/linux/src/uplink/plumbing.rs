//! Carries out plans, and undoes them.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::deletions::{Deleted, Deletions};
use super::firewalls;
use super::janitor::Janitor;
use super::kernel_plan;
use super::lending_plan::{all_slots, lending_plan_unchecked, slot_addresses};
use super::plan::{
    EnginePath, Families, Plan, Purpose, Step, UPLINKS_MAX, check_networks_of, device_number, forwarding_variables,
    number_of, plan_unchecked, routes, settings, table_of,
};
use super::state::{self, Claim, Elsewhere, Turn};
use super::watch::Watch;
use super::{Setting, Surroundings, Uplink, addresses_of, engine_paths, staying};
use crate::attachment::{has_ipv6, private_network};
use crate::ip_command::explain;
use crate::stop::Stop;
use crate::{Error, Result, tun};

/// Variable that makes this host an IPv4 router.
const ROUTER: &str = "ipv4/ip_forward";
/// Variable that makes this host an IPv6 router.
const ROUTER_V6: &str = "ipv6/conf/all/forwarding";

/// A plan in force. Dropping it undoes everything, and so does any end of the process.
#[derive(Debug)]
pub struct Plumbing {
    // Fields are dropped in this order: the claim must be held until the janitor is done, which holds it as well.
    janitor: Janitor,
    claim: Claim,
    purpose: Purpose,
    device: String,
    paths: Vec<EnginePath>,
    /// How everything is undone, first line first.
    undo: Vec<String>,
    /// The janitor was killed, and cannot be replaced.
    lacks_janitor: bool,
    /// The kernel's reports of firewall changes; `None` if it makes none.
    firewalls: Option<OwnedFd>,
    /// Another program has removed the guard, and it could not be restored.
    lacks_guard: bool,
    /// Number of the guard's rules, as they were last laid.
    guard_rules: usize,
    /// The kernel's reports of deleted rules, routes and addresses; `None` if it makes none.
    deletions: Option<Deletions>,
    /// Some were deleted, or may have been before the reports began, and the missing ones have to be restored.
    may_lack_ways: bool,
    /// Rules or routes of this program were among them, so that another one has removed them. Routes also go with the
    /// address of their interface, which a DHCP client may set anew.
    were_removed: bool,
    /// Number of looks during which further deletions are not reported.
    quiet_looks: u32,
    /// Why the kernel does not forget connections, if so.
    cannot_forget: Option<String>,
}

/// Looks, a second apart, after a report of removed rules or routes without another one: a program may remove them all
/// the time, or switch forwarding off.
const QUIET_LOOKS: u32 = 60;

/// What happened after another program removed or changed what leads packets to their uplinks and back.
#[derive(Debug)]
pub enum WaysLoss {
    /// It was restored. The text says what the other program did, to follow its name in a sentence.
    Replaced(String),
    /// It cannot be restored; each look tries again.
    Lasting(Error),
}

/// What other programs do, as [`WaysLoss::Replaced`] says it: systemd-networkd removes what it does not know.
const REMOVED_WAYS: &str = "removed rules or routes of this program (if it was systemd-networkd, set \
    ManageForeignRoutingPolicyRules=no and ManageForeignRoutes=no)";
const REMOVED_HINT: &str = "(if it was systemd-networkd, a .network file with `Name=anabranch*` and `Unmanaged=yes` \
    keeps it away)";
/// A program that makes this host a router, and later ends that, switches forwarding off everywhere.
const SWITCHED_OFF: &str = "switched off forwarding that this program needs";

/// What happened after another program removed the guard, as a reload of firewall rules does.
#[derive(Debug)]
pub enum GuardLoss {
    /// It was restored.
    Replaced,
    /// It cannot be restored: reported once, and each look tries again.
    Lasting(Error),
}

/// What happened after the janitor was killed.
#[derive(Debug)]
pub enum JanitorLoss {
    /// Another one has taken over.
    Replaced,
    /// There can be no other: at the end only [`clean`] undoes the changes.
    Final(Error),
}

impl Plumbing {
    /// Carries out a plan, after undoing what dead processes have left. Records beforehand how to undo its changes.
    ///
    /// # Errors
    /// In one line: the step that failed, and why; [`Error::Interrupted`] if `stop` is triggered while other processes
    /// keep it waiting. Everything is then as before.
    pub fn lay(plan: Plan, stop: &Stop) -> Result<Self> {
        let claim = Claim::take(&plan.device, stop)?;
        state::clean()?;
        // Remains in other namespaces must not prevent the start.
        let _ = state::forget();
        let janitor = Janitor::start(&claim)?;
        let turn = Turn::take_before(stop)?;
        let (purpose, device, paths) = (plan.purpose, plan.device, plan.paths);
        let deletions = Deletions::listen(&device);
        let mut plumbing = Self {
            janitor,
            claim,
            purpose,
            device,
            paths,
            undo: Vec::new(),
            lacks_janitor: false,
            firewalls: firewalls::listen(),
            lacks_guard: false,
            guard_rules: 0,
            deletions,
            may_lack_ways: true,
            were_removed: false,
            quiet_looks: 0,
            cannot_forget: None,
        };
        let done = plumbing.change(&plan.steps, Standing::IsForeign);
        // The janitor needs the turn to undo what a failure has left.
        drop(turn);
        done?;
        Ok(plumbing)
    }

    /// Renews the part of an uplink that has come (back) or changed: its device and its gateway may be different. The
    /// engine's addresses stay. Must be called in the network namespace of [`Self::lay`].
    ///
    /// # Errors
    /// As [`Self::lay`], but existing parts stay; [`Error::Usage`] if the uplink does not belong to the plan.
    pub fn replace(&mut self, uplink: &Uplink) -> Result<()> {
        let index = self.paths.iter().position(|path| path.uplink.interface == uplink.interface);
        let Some(index) = index else {
            return Err(Error::Usage(format!("{} is not an uplink of {}", uplink.interface, self.device)));
        };
        self.lay_anew(index, uplink)
    }

    /// Adds an uplink that was unknown when the plan was made: behind the others, or instead of `predecessor`, which is
    /// gone, with its position and engine addresses. Returns the position. Must be called in the network namespace of
    /// [`Self::lay`].
    ///
    /// # Errors
    /// As [`Self::replace`]; [`Error::Usage`] if there are too many uplinks. Existing parts stay.
    pub fn admit(&mut self, uplink: &Uplink, predecessor: Option<&str>) -> Result<usize> {
        let place = |name| self.paths.iter().position(|path| path.uplink.interface == name);
        let before = predecessor.and_then(place).map(|index| (index, self.paths[index].clone()));
        let index = before.as_ref().map_or(self.paths.len(), |(index, _)| *index);
        if index >= UPLINKS_MAX {
            return Err(Error::Usage(format!("there are {UPLINKS_MAX} uplinks already, which is the maximum")));
        }
        if before.is_none() {
            self.paths.push(self.path_of_next(uplink)?);
        }
        let laid = match &before {
            Some((_, path)) => self.release(&path.uplink.interface).and_then(|()| self.lay_anew(index, uplink)),
            None => self.lay_anew(index, uplink),
        };
        if laid.is_err() {
            // What was switched on for it stays guarded, because the record names it. Positions are those of the
            // caller's uplinks, to which this one does not belong.
            match before {
                Some((_, path)) => self.paths[index] = path,
                None => self.paths.truncate(index),
            }
        }
        laid.map(|()| index)
    }

    /// Returns the engine's addresses for an uplink behind all others.
    fn path_of_next(&self, uplink: &Uplink) -> Result<EnginePath> {
        let mut uplinks: Vec<Uplink> = self.paths.iter().map(|path| path.uplink.clone()).collect();
        uplinks.push(uplink.clone());
        let paths = engine_paths(device_number(&self.device)?, &uplinks, Families::Both);
        let mut path = paths.into_iter().last().expect("one for each uplink");
        path.addresses.retain(|address| address.is_ipv4() || has_ipv6());
        Ok(path)
    }

    fn lay_anew(&mut self, index: usize, uplink: &Uplink) -> Result<()> {
        self.paths[index].uplink = uplink.clone();
        let _turn = Turn::take()?;
        if self.purpose == Purpose::Kernel {
            return self.replace_for_kernel(index);
        }
        let (plan, surroundings) = self.plan_anew()?;
        let slots = [all_slots(uplink)];
        let paths = if self.purpose == Purpose::Engine { &self.paths[..] } else { &slots };
        check_networks_of(&uplink.interface, &self.device, paths, &surroundings)?;
        let path = &plan.paths[index];
        // Without the families that the kernel cannot forward.
        self.paths[index].uplink.clone_from(&path.uplink);
        if path.uplink.ways().next().is_none() {
            let of_it = |note: &&String| note.split(' ').next() == Some(uplink.interface.as_str());
            let why = plan.notes.iter().find(of_it).map_or("the kernel cannot forward its packets", String::as_str);
            return Err(Error::Usage(why.into()));
        }
        let table = table_of(self.purpose, &self.device, index)?;
        for family in ["-4", "-6"] {
            // The unreachable route stays all the time. If the device was gone, nothing else is left to remove.
            let _ = self.janitor.request(&format!("ip {family} route flush table {table} type unicast"))?;
        }
        let mut steps = guard_anew(&plan);
        steps.extend(settings(&path.uplink, &surroundings));
        steps.extend(routes(path, table));
        let is_rule = |step: &&Step| match step {
            Step::Rule { table: of, .. } => *of == table,
            Step::Lookup { .. } => true,
            _ => false,
        };
        steps.extend(plan.steps.iter().filter(is_rule).cloned());
        self.change(&steps, Standing::Stays)?;
        // Settings of other uplinks that the new one requires, such as a looser filter for the same network. One of the
        // uplinks may be vanishing at this moment.
        for step in plan.steps.iter().filter(|step| matches!(step, Step::Set { .. }) && !steps.contains(step)) {
            let _ = self.change(core::slice::from_ref(step), Standing::Stays);
        }
        // If IPv6 was off for a while, the device has lost its address too.
        self.may_lack_ways |= self.restore_device().is_err();
        Ok(())
    }

    /// Checks the janitor: if it was killed, starts another one, so even a sudden end of the process undoes everything.
    /// Must be called now and then, in the network namespace of [`Self::lay`]; reports each event once.
    pub fn check_janitor(&mut self) -> Option<JanitorLoss> {
        if self.lacks_janitor {
            return None;
        }
        self.janitor.ended()?;
        let loss = self.janitor.replace(&self.claim);
        self.lacks_janitor = loss.is_err();
        Some(loss.map_or_else(JanitorLoss::Final, |()| JanitorLoss::Replaced))
    }

    /// Checks the guard, and restores it if another program has removed any of it. Must be called now and then, in the
    /// network namespace of [`Self::lay`]; reports each event once.
    pub fn check_guard(&mut self) -> Option<GuardLoss> {
        let is_unchanged = self.firewalls.as_ref().is_some_and(|heard| !firewalls::has_changed(heard));
        if self.purpose == Purpose::Kernel || is_unchanged && !self.lacks_guard {
            return None;
        }
        // Its table also stands empty, after `nft flush table`.
        let stands = self.janitor.request(&format!("guard {} {}", self.device, self.guard_rules));
        if stands.is_ok_and(|stands| stands.is_ok()) {
            return core::mem::take(&mut self.lacks_guard).then_some(GuardLoss::Replaced);
        }
        let laid = Turn::take().and_then(|_turn| {
            let (plan, _) = self.plan_anew()?;
            self.change(&guard_anew(&plan), Standing::Stays)
        });
        let was_told = core::mem::replace(&mut self.lacks_guard, laid.is_err());
        match laid {
            Ok(()) => Some(GuardLoss::Replaced),
            Err(_) if was_told => None,
            Err(why) => Some(GuardLoss::Lasting(why)),
        }
    }

    /// Checks the rules and routes, those of the device and its addresses too, and whether the kernel still forwards, and
    /// restores what another program has removed or switched off. Must be called every second or two, in the network namespace of [`Self::lay`]; reports events at
    /// most once a minute. Routes also vanish with their interface, without having been removed: `watch` knows which
    /// uplinks exist.
    pub fn check_ways(&mut self, watch: &mut Watch) -> Option<WaysLoss> {
        self.quiet_looks = self.quiet_looks.saturating_sub(1);
        // The time between two looks is enough for a report that an interface is gone, or is back.
        let is_due = self.may_lack_ways;
        let deleted = self.deletions.as_ref().map_or(Deleted::Nothing, Deletions::since);
        self.were_removed |= deleted == Deleted::Way;
        self.may_lack_ways = deleted != Deleted::Nothing || !self.switched_off(watch).is_empty();
        if !is_due {
            return None;
        }
        if watch.is_about_to_look() {
            self.may_lack_ways = true;
            return None;
        }
        let loss = match Turn::take().and_then(|_turn| self.restore_ways(watch)) {
            Ok(lost) if lost.is_empty() => return None,
            Ok(lost) => WaysLoss::Replaced(lost.join(", and ")),
            Err(why) => {
                self.may_lack_ways = true;
                WaysLoss::Lasting(why)
            }
        };
        let is_told = self.quiet_looks == 0;
        if is_told {
            self.quiet_looks = QUIET_LOOKS;
        }
        is_told.then_some(loss)
    }

    /// Restores what is missing or switched off, and returns what had happened to it.
    fn restore_ways(&mut self, watch: &Watch) -> Result<Vec<String>> {
        let (plan, _) = self.plan_anew()?;
        let off = self.switched_off(watch);
        let is_off = |step: &&Step| matches!(step, Step::Set { path, .. } if off.contains(path));
        let sets: Vec<Step> = plan.steps.iter().filter(is_off).cloned().collect();
        let mut lost = Vec::new();
        if !sets.is_empty() {
            // Where another program had switched it on first, nothing keeps strangers out yet.
            let steps: Vec<Step> = guard_anew(&plan).into_iter().chain(sets).collect();
            self.change(&steps, Standing::Stays)?;
            lost.push(SWITCHED_OFF.to_owned());
        }
        if self.lay_missing_ways(&plan, watch)? > 0 && self.were_removed {
            lost.push(REMOVED_WAYS.to_owned());
        }
        self.were_removed = false;
        if self.restore_device()? > 0 {
            lost.push(format!("removed addresses or routes of {0} {REMOVED_HINT}", self.device));
        }
        Ok(lost)
    }

    /// Restores the kernel's addresses on the device, and the routes that come with them: without them, answers to the
    /// engine would leave by another interface. Returns how many were missing.
    fn restore_device(&mut self) -> Result<usize> {
        let Some(number) = number_of(self.purpose, &self.device)? else { return Ok(0) };
        let is_used = |(own, _): &(IpAddr, u8)| {
            self.paths.iter().flat_map(|path| &path.addresses).any(|engines| engines.is_ipv4() == own.is_ipv4())
        };
        let networks: Vec<_> = private_network(number).into_iter().filter(is_used).collect();
        let mut count = 0;
        for command in tun::addressing(&self.device, &networks) {
            match self.janitor.request(&format!("ip {command}"))? {
                Ok(()) => count += 1,
                Err(why) if exists_already(&why) => {}
                Err(why) => return Err(Error::Command { command: format!("ip {command}"), message: explain(&why) }),
            }
        }
        Ok(count)
    }

    /// Returns the variables of forwarding that are off although packets of uplinks that are there depend on them.
    fn switched_off(&self, watch: &Watch) -> Vec<String> {
        if self.purpose == Purpose::Kernel {
            return Vec::new();
        }
        let there = self.paths.iter().map(|path| &path.uplink).filter(|uplink| watch.has(&uplink.interface));
        let mut off = forwarding_variables(&self.device, &there.collect::<Vec<_>>());
        let is = |path: &str, value: &str| Setting::value(path).is_some_and(|now| now == value);
        off.retain(|path| is(path, "0") && !(path.starts_with("ipv6/") && is(ROUTER_V6, "1")));
        off
    }

    /// Restores the missing rules and routes, and returns their number. Those of an uplink that is gone are made when
    /// it is back.
    fn lay_missing_ways(&mut self, plan: &Plan, watch: &Watch) -> Result<usize> {
        let gone = self.paths.iter().enumerate().filter(|(_, path)| !watch.has(&path.uplink.interface));
        let gone: Vec<u32> =
            gone.map(|(index, _)| table_of(self.purpose, &self.device, index)).collect::<Result<_>>()?;
        let is_there = |step: &&Step| match step {
            Step::Route { table, .. } | Step::Rule { table, .. } => !gone.contains(table),
            Step::Lookup { table, .. } => gone.iter().all(|gone| gone.to_string() != *table),
            Step::Filter { .. } | Step::Set { .. } | Step::Forget { .. } => false,
        };
        let mut count = 0;
        for step in plan.steps.iter().filter(is_there) {
            match self.janitor.request(&step.request())? {
                Ok(()) => count += 1,
                Err(why) if exists_already(&why) => {}
                // The interface may be vanishing at this moment.
                Err(_) if matches!(step, Step::Route { .. }) => {}
                Err(why) => return Err(failed(step, &why)),
            }
        }
        Ok(count)
    }

    /// Makes the plan for the current state.
    fn plan_anew(&self) -> Result<(Plan, Surroundings)> {
        let uplinks: Vec<Uplink> = self.paths.iter().map(|path| path.uplink.clone()).collect();
        // Firewalls only lead to notes, which were reported at the start; reading them takes privileges that have been
        // dropped.
        let surroundings = Surroundings::look_without_firewalls(&uplinks)?;
        let mut plan = match self.purpose {
            Purpose::Lending { mtu, port } => lending_plan_unchecked(&uplinks[0], mtu, port, &surroundings)?,
            Purpose::Kernel => kernel_plan::plan_of(self.paths.clone(), &surroundings)?,
            Purpose::Engine => plan_unchecked(&self.device, &self.paths, &surroundings)?,
        };
        let switched_on = self.undo.iter().filter_map(|line| forwarding_of(line));
        plan.guard_former(switched_on, &surroundings);
        Ok((plan, surroundings))
    }

    /// Notes that an uplink has a new name. Its variables have moved to the new name, with the values that were set; no
    /// rule of ours guards that name, so they are restored at once.
    ///
    /// # Errors
    /// If this cannot be recorded, or a variable cannot be restored; it is then restored at the end.
    pub fn note_renamed(&mut self, from: &str, to: &str) -> Result<()> {
        if self.paths.iter().any(|path| path.uplink.interface == to) {
            // It has replaced another one of our uplinks, and is used as that.
            return Ok(());
        }
        let moved: Vec<String> = self.undo.iter().filter_map(|line| moved(line, from, to)).collect();
        let new: Vec<String> = moved.iter().filter(|line| !self.undo.contains(line)).cloned().collect();
        let _turn = Turn::take()?;
        // Before the guard is removed.
        self.undo.splice(0..0, new);
        self.claim.write(&self.undo)?;
        self.restore_all(&moved)
    }

    /// Restores the variables of an interface that is no uplink any more: no rule of ours is needed there then.
    ///
    /// # Errors
    /// As [`Self::note_renamed`]. The guard then keeps its rules for the interface.
    fn release(&mut self, interface: &str) -> Result<()> {
        let of_it = |line: &&String| moved(line, interface, interface).is_some();
        let lines: Vec<String> = self.undo.iter().filter(of_it).cloned().collect();
        let _turn = Turn::take()?;
        self.restore_all(&lines)
    }

    /// Undoes these recorded lines of variables, and forgets them.
    fn restore_all(&mut self, lines: &[String]) -> Result<()> {
        lines.iter().try_for_each(|line| self.restore(line))?;
        // From now on, another program that sets them does so intentionally.
        self.undo.retain(|line| !lines.contains(line));
        self.claim.write(&self.undo)
    }

    /// Undoes the line of a variable as the janitor does at the end: if its value is still ours, and no other engine
    /// needs it.
    fn restore(&mut self, line: &str) -> Result<()> {
        let mut words = line.split(' ').skip(1);
        let (Some(path), Some(value), Some(original)) = (words.next(), words.next(), words.next()) else {
            return Ok(());
        };
        let is = |path: &str, value: &str| Setting::read(path).is_some_and(|setting| setting.now == value);
        let is_needed = words.next().is_some_and(|router| is(router, "1"));
        if !is(path, value) || is_needed || state::others_change(path, &self.device) {
            return Ok(());
        }
        let request = format!("sysctl {path} {original}");
        self.janitor.request(&request)?.map_err(|message| Error::Command { command: request, message })
    }

    /// Like [`Self::replace`], for the kernel's own MPTCP. First removes the rules of addresses that no uplink has any
    /// more; a former address may stay for days.
    fn replace_for_kernel(&mut self, index: usize) -> Result<()> {
        let there = addresses_of(&self.paths[index].uplink.interface);
        // Otherwise they could not be listed, and those of before may still be there.
        let are_listed = self.paths[index].uplink.ways().all(|way| there.contains(&way.address));
        let path = |(at, path): (usize, &EnginePath)| {
            let there = if at == index && are_listed { &there } else { &path.addresses };
            kernel_plan::path(&path.uplink, &staying(&path.uplink, &path.addresses, there))
        };
        self.paths = self.paths.iter().enumerate().map(path).collect();
        let (plan, _) = self.plan_anew()?;
        let wanted: Vec<String> = plan.steps.iter().filter_map(undo_of).collect();
        let is_stale = |line: &&String| line.starts_with("lookup ") && !wanted.contains(line);
        let stale: Vec<String> = self.undo.iter().filter(is_stale).cloned().collect();
        for line in stale {
            if let Some(request) = kernel_plan::rule_del(&line) {
                let _ = self.janitor.request(&request)?;
            }
            self.undo.retain(|known| *known != line);
        }
        let table = table_of(self.purpose, &self.device, index)?;
        for family in ["-4", "-6"] {
            let _ = self.janitor.request(&format!("ip {family} route flush table {table}"))?;
        }
        let is_of = |step: &&Step| !matches!(step, Step::Route { table: of, .. } if *of != table);
        let steps: Vec<Step> = plan.steps.iter().filter(is_of).cloned().collect();
        self.change(&steps, Standing::Stays)
    }

    /// Returns why the kernel does not forget connections, if so.
    pub fn cannot_forget(&self) -> Option<&str> {
        self.cannot_forget.as_deref()
    }

    /// Makes the kernel forget the connections of the destination that was in a slot, so that no answers to them reach
    /// the next one. Must be called in the network namespace of [`Self::lay`].
    ///
    /// # Errors
    /// If the kernel refuses, although it did not at first; or if the janitor is gone.
    pub fn forget_connections(&mut self, slot: u8) -> Result<()> {
        if self.cannot_forget.is_some() {
            return Ok(());
        }
        let command = format!("forget the connections of slot {slot}");
        self.janitor.forget(&slot_addresses(slot))?.map_err(|message| Error::Command { command, message })
    }

    /// Returns which address of the engine uses which uplink.
    pub fn paths(&self) -> &[EnginePath] {
        &self.paths
    }

    /// Returns whether a step with that undo is recorded. The undo of a variable is the one from when it was first set.
    fn knows(&self, undo: &str) -> bool {
        let of_variable = |line: &str| Some(line.strip_prefix("sysctl ")?.split(' ').next()?.to_owned());
        let variable = of_variable(undo);
        self.undo.iter().any(|line| line == undo || variable.is_some() && of_variable(line) == variable)
    }

    /// Records how `steps` are undone, and carries them out.
    fn change(&mut self, steps: &[Step], standing: Standing) -> Result<()> {
        for step in steps {
            if let Some(line) = undo_of(step).filter(|line| !self.knows(line)) {
                self.undo.insert(0, line);
            }
        }
        self.claim.write(&self.undo)?;
        let mut statements = Vec::new();
        for (position, step) in steps.iter().enumerate() {
            let mut request = step.request();
            if let Step::Filter { statement, .. } = step {
                statements.push(statement.as_str());
                if matches!(steps.get(position + 1), Some(Step::Filter { .. })) {
                    continue;
                }
                // In one transaction, so the guard is never half complete.
                request = format!("nft {}", statements.join("; "));
            }
            if let Step::Forget { from } = step {
                // Everything else works without.
                self.cannot_forget = self.janitor.forget(from)?.err();
                continue;
            }
            match self.janitor.request(&request)? {
                Err(why) if standing == Standing::Stays && exists_already(&why) => {}
                done => done.map_err(|why| failed(step, &why))?,
            }
            if matches!(step, Step::Filter { .. }) {
                self.guard_rules = statements.iter().filter(|statement| statement.starts_with("add rule ")).count();
            }
        }
        Ok(())
    }
}

impl Drop for Plumbing {
    fn drop(&mut self) {
        // The same killer may end this process next.
        let _ = self.check_janitor();
    }
}

/// Returns the steps that renew the guard: there may be more to guard than before, or the guard may be gone. They are
/// one transaction, and translations in progress survive it.
fn guard_anew(plan: &Plan) -> Vec<Step> {
    let device = &plan.device;
    // `delete` fails unless the table exists.
    let anew = ["add", "delete"].map(|what| format!("{what} table inet {device}"));
    let anew = anew.map(|statement| Step::Filter { device: device.clone(), statement });
    let guard = plan.steps.iter().filter(|step| matches!(step, Step::Filter { .. })).cloned();
    anew.into_iter().chain(guard).collect()
}

/// What an existing route or rule means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It belongs to another program: the step fails.
    IsForeign,
    /// It is ours.
    Stays,
}

/// Returns whether a message of `ip` means that the rule, route or address is there.
fn exists_already(why: &str) -> bool {
    why.contains("File exists") || why.contains("ddress already assigned")
}

/// Returns the undo of a variable after its interface was renamed; `None` if the line is not about a variable of
/// `from`.
fn moved(line: &str, from: &str, to: &str) -> Option<String> {
    let rest = line.strip_prefix("sysctl ")?;
    let (family, rest) = rest.split_once("/conf/")?;
    let rest = rest.strip_prefix(from)?.strip_prefix('/')?;
    Some(format!("sysctl {family}/conf/{to}/{rest}"))
}

/// Returns the interface that a line of the record says forwarding was switched on for, and whether it is that of IPv6.
fn forwarding_of(undo: &str) -> Option<(&str, bool)> {
    let path = undo.strip_prefix("sysctl ")?.split(' ').next()?;
    let v4 = path.strip_prefix("ipv4/conf/").and_then(|rest| rest.strip_suffix("/forwarding"));
    let v6 = path.strip_prefix("ipv6/conf/").and_then(|rest| rest.strip_suffix("/force_forwarding"));
    v4.map(|name| (name, false)).or_else(|| v6.map(|name| (name, true)))
}

/// Returns how a step is undone, given the current value of its variable and the one before our programs changed it.
fn undo_of(step: &Step) -> Option<String> {
    let mut step = step.clone();
    if let Step::Set { path, original: Some(original), .. } = &mut step {
        if let Some(setting) = Setting::read(path) {
            *original = setting.original;
        }
    }
    let was_no_router = || Setting::read(ROUTER).is_some_and(|setting| setting.now == "0");
    let line = step.undo()?;
    // A program that makes this host a router later sets the variable of every interface, which must then stay set.
    Some(if is_forwarding(&step) && was_no_router() { format!("{line} {ROUTER}") } else { line })
}

/// Returns whether a step makes the kernel forward IPv4 from an interface. For IPv6 there is a variable that no other
/// program sets.
fn is_forwarding(step: &Step) -> bool {
    matches!(step, Step::Set { path, .. } if path.starts_with("ipv4/conf/") && path.ends_with("/forwarding"))
}

fn failed(step: &Step, why: &str) -> Error {
    let message = match step {
        Step::Route { .. } | Step::Rule { .. } | Step::Lookup { .. } => explain(why),
        Step::Forget { .. } => why.into(),
        Step::Set { .. } => format!("{why} (in a container: --privileged)"),
        Step::Filter { .. } => format!(
            "{why} (is nftables installed, with the kernel's modules nft_masq, nft_ct, nft_limit and nft_connlimit?)"
        ),
    };
    Error::Command { command: step.to_string(), message }
}

/// Undoes what killed processes have left whose janitors were killed too; touches nothing of live processes. Acts only
/// in the calling thread's network namespace. Returns the devices of which something was left.
///
/// # Errors
/// If the process may not.
pub fn clean() -> Result<Vec<String>> {
    state::clean()
}

/// Removes the records of killed processes in network namespaces that no longer exist: nothing is left to undo there.
/// Also counts those in other namespaces, which [`clean`] undoes when called there.
///
/// # Errors
/// If the process may not.
pub fn forget() -> Result<Elsewhere> {
    state::forget()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_renamed_interface_are_those_of_its_name() {
        assert_eq!(
            moved("sysctl ipv4/conf/usb1/forwarding 1 0", "usb1", "phone").unwrap(),
            "sysctl ipv4/conf/phone/forwarding 1 0"
        );
        for other in ["sysctl ipv4/conf/usb10/forwarding 1 0", "sysctl mptcp/pm_type 1 0", "filter usb1", "", "sysctl "]
        {
            assert_eq!(moved(other, "usb1", "phone"), None, "{other}");
        }
    }

    #[test]
    fn the_record_says_where_forwarding_was_switched_on() {
        assert_eq!(forwarding_of("sysctl ipv4/conf/usb1/forwarding 1 0 ipv4/ip_forward"), Some(("usb1", false)));
        assert_eq!(forwarding_of("sysctl ipv6/conf/usb1/force_forwarding 1 0"), Some(("usb1", true)));
        for other in ["sysctl ipv4/conf/usb1/rp_filter 2 1", "sysctl mptcp/pm_type 1 0", "filter usb1", ""] {
            assert_eq!(forwarding_of(other), None, "{other}");
        }
    }

    #[test]
    fn only_forwarding_of_ipv4_is_left_on_for_others() {
        let set = |path: &str| Step::Set { path: path.into(), value: "1", original: Some("0".into()) };
        assert!(is_forwarding(&set("ipv4/conf/usb0/forwarding")));
        for other in ["ipv4/conf/usb0/rp_filter", "ipv6/conf/usb0/force_forwarding", "mptcp/pm_type"] {
            assert!(!is_forwarding(&set(other)), "{other}");
        }
    }
}
