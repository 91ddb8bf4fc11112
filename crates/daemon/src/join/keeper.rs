//! Follows uplinks that are lost and come back.

use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use linux::Result;
use linux::driver::Remote;
use linux::stop::Stop;
use linux::uplink::{Change, Plumbing, Uplink, Watch};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::{ProxyHost, Shared, lock};
use crate::proxy::choice;

/// Owns the plumbing: with it, everything is taken back.
pub struct Keeper<Say> {
    pub plumbing: Plumbing,
    pub watch: Watch,
    pub roster: Shared,
    pub remote: Remote<ProxyHost>,
    pub say: Arc<Say>,
}

impl<Say: Fn(&str)> Keeper<Say> {
    /// Until `over`, or until the driver has ended.
    pub fn keep(mut self, over: &Stop) {
        loop {
            let mut fds = [over.as_fd(), self.watch.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return self.give_up(&errno.to_string()),
            }
            if !fds[0].revents().is_empty() {
                return;
            }
            loop {
                match self.watch.next() {
                    Ok(Some(change)) => {
                        if self.heed(change).is_err() {
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return self.give_up(&error.to_string()),
                }
            }
        }
    }

    /// What is there goes on; what changes is no longer followed.
    fn give_up(&self, why: &str) {
        (self.say)(&format!("changes of uplinks are no longer followed ({why}): start again soon"));
    }

    /// # Errors
    /// If the driver has ended.
    fn heed(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Lost { interface, why } => self.lost(&interface, why),
            Change::Usable(uplink) => self.usable(uplink),
        }
    }

    fn lost(&self, interface: &str, why: String) -> Result<()> {
        (self.say)(&format!("{interface} {why}: going on without it"));
        let addresses = lock(&self.roster).entry(interface).map(|entry| {
            entry.lost = Some(why);
            entry.addresses.clone()
        });
        self.change(addresses.unwrap_or_default(), Vec::new())
    }

    fn usable(&mut self, uplink: Uplink) -> Result<()> {
        let name = uplink.interface.clone();
        if let Err(error) = self.plumbing.replace(&uplink) {
            // If it is gone again, that is told next.
            return self.lost(&name, format!("cannot be connected ({error})"));
        }
        let (addresses, used, was_lost) = match lock(&self.roster).entry(&name) {
            Some(entry) => {
                let was_lost = entry.lost.take().is_some();
                entry.uplink = uplink;
                (entry.addresses.clone(), entry.used(), was_lost)
            }
            None => return Ok(()),
        };
        (self.say)(&format!(
            "{name} {}",
            if was_lost { "is there and in use" } else { "has changed, and is in use again" }
        ));
        self.change(addresses, used)
    }

    /// What ran over `addresses` ends; what may be used is used anew.
    fn change(&self, addresses: Vec<IpAddr>, used: Vec<choice::Uplink>) -> Result<()> {
        self.remote.call(move |host, now| {
            host.with_app_mut(|proxy, endpoint| {
                addresses.iter().for_each(|ip| proxy.remove_uplink(*ip, endpoint, now));
                used.iter().for_each(|uplink| proxy.add_uplink(*uplink, endpoint, now));
            });
        })
    }
}
