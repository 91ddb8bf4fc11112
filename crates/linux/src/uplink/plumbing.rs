//! Lays plans, and takes them back.

use std::net::IpAddr;

use super::janitor::Janitor;
use super::plan::{EnginePath, Plan, Step, routes, settings, table_of};
use super::state::{self, Claim, Turn};
use super::{Setting, Surroundings, Uplink};
use crate::ip_command::explain;
use crate::{Error, Result};

/// A plan that is in force. Dropping it takes everything back, and so does the end of the process, in whatever way.
#[derive(Debug)]
pub struct Plumbing {
    // Fields are dropped in this order: the janitor needs the claim to be held until it is done, and holds it itself.
    janitor: Janitor,
    claim: Claim,
    device: String,
    paths: Vec<EnginePath>,
    /// How everything is undone, first line first.
    undo: Vec<String>,
}

impl Plumbing {
    /// Makes the changes of a plan, after what dead processes have left is undone. How they are undone is written down before.
    ///
    /// # Errors
    /// In one line: the step that failed, and why. Everything is as it was then.
    pub fn lay(plan: Plan) -> Result<Self> {
        let claim = Claim::take(&plan.device)?;
        state::clean()?;
        let janitor = Janitor::start(&claim)?;
        let turn = Turn::take()?;
        let mut plumbing = Self { janitor, claim, device: plan.device, paths: plan.paths, undo: Vec::new() };
        let done = plumbing.change(&plan.steps);
        // The janitor needs its turn when it undoes what a failure has left.
        drop(turn);
        done?;
        Ok(plumbing)
    }

    /// Lays an uplink's part again, which has come back or changed: its device may be another, and so may its gateway. The
    /// engine's addresses stay.
    ///
    /// # Errors
    /// As [`Self::lay`], but what is there stays; [`Error::Usage`] if the uplink is none of the plan's.
    pub fn replace(&mut self, uplink: &Uplink) -> Result<()> {
        let index = self.paths.iter().position(|path| path.uplink.interface == uplink.interface);
        let Some(index) = index else {
            return Err(Error::Usage(format!("{} is none of the uplinks of {}", uplink.interface, self.device)));
        };
        // Without an address of the family nothing of ours goes that way.
        let mut uplink = uplink.clone();
        let addresses = &self.paths[index].addresses;
        uplink.v4 = uplink.v4.filter(|_| addresses.iter().any(IpAddr::is_ipv4));
        uplink.v6 = uplink.v6.filter(|_| addresses.iter().any(IpAddr::is_ipv6));
        self.paths[index].uplink = uplink.clone();
        let table = table_of(&self.device, index)?;
        let _turn = Turn::take()?;
        let surroundings = Surroundings::look(core::slice::from_ref(&uplink))?;
        let mut steps = settings(&uplink, &surroundings);
        // The end for what finds no way stays all the time.
        for family in ["-4", "-6"] {
            // Nothing is there to be removed if the device was.
            let _ = self.janitor.request(&format!("ip {family} route flush table {table} type unicast"))?;
        }
        let stays = |step: &Step| matches!(step, Step::Route { route, .. } if route.starts_with("unreachable"));
        steps.extend(routes(&self.paths[index], table).into_iter().filter(|step| !stays(step)));
        self.change(&steps)
    }

    /// Which address of the engine goes where.
    pub fn paths(&self) -> &[EnginePath] {
        &self.paths
    }

    /// Writes down how `steps` are undone, and does them.
    fn change(&mut self, steps: &[Step]) -> Result<()> {
        for step in steps {
            if let Some(line) = undo_of(step).filter(|line| !self.undo.contains(line)) {
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
                // One transaction: there is no time at which half of the guard stands.
                request = format!("nft {}", statements.join("; "));
            }
            self.janitor.request(&request)?.map_err(|why| failed(step, &why))?;
        }
        Ok(())
    }
}

/// How a step is undone, by what its variable is now and was before any of our programs.
fn undo_of(step: &Step) -> Option<String> {
    let mut step = step.clone();
    if let Step::Set { path, original: Some(original), .. } = &mut step {
        if let Some(setting) = Setting::read(path) {
            *original = setting.original;
        }
    }
    step.undo()
}

fn failed(step: &Step, why: &str) -> Error {
    let message = match step {
        Step::Route { .. } | Step::Rule { .. } => explain(why),
        Step::Set { .. } => format!("{why} (in a container: --privileged)"),
        Step::Filter { .. } => format!("{why} (is nftables installed, with the kernel's modules nft_masq and nft_ct?)"),
    };
    Error::Command { command: step.to_string(), message }
}

/// Undoes what killed processes have left whose janitors were killed too; touches nothing of the living. Only the calling
/// thread's network namespace is looked at. Gives the devices of which something was left.
///
/// # Errors
/// If the process may not.
pub fn clean() -> Result<Vec<String>> {
    state::clean()
}
