//! The first handshake with SYN cookies: the SYN/ACK for a connection that does not exist yet, and the connection that
//! the third ACK creates ([`crate::syn_cookie`]).

use std::sync::Arc;

use units::{Instant, SeqNr};
use wire::mptcp::{Experimental, MptcpOption};
use wire::{Flags, Segment};

use super::handshake::{answering_capable, offered_capable};
use super::receiver_centric::offers_receiver_centric;
use super::{Connection, ConnectionConfig, keys};
use crate::host::{Host, Tuple};
use crate::tcp::{Secrets, Tcb};

/// Returns the SYN/ACK with which a connection with `config` would answer `syn`, but with the numbers of a cookie.
pub(crate) fn answer_statelessly(syn: &Segment, config: &Arc<ConnectionConfig>, host: &Host, now: Instant) -> Segment {
    let cookie = host.cookies.cookie(syn, now);
    let tuple = Tuple { local: syn.dst, remote: syn.src };
    let secrets = Secrets { iss: cookie.iss, ..host.tcb_secrets(&tuple, now) };
    let mut answer = Segment::new(syn.dst, syn.src);
    Tcb::accept(syn, config.clone(), secrets, now).build_syn(&mut answer, first_window(config), now);
    if let Some(stamp) = &mut answer.options.timestamps {
        stamp.value = cookie.stamp(stamp.value);
    }
    // The key follows from the SYN, so if a connection already has its token, we cannot draw another one (RFC 8684
    // section 3.1).
    let is_free = || host.by_token(keys::token(cookie.key)).is_none();
    if let Some(capable) = offered_capable(syn).filter(|_| config.mptcp && is_free()) {
        answer.options.mptcp.push(answering_capable(capable, config, cookie.key));
        if config.receiver_centric.is_some() && offers_receiver_centric(syn) {
            answer.options.mptcp.push(MptcpOption::Experimental(Experimental::receiver_centric_offer()));
        }
    }
    if answer.options.timestamps.is_none() && answer.options.mptcp.is_empty() {
        // Nothing will bring back what the SYN offered, and what both SYNs offer the client would use.
        answer.options.window_scale = None;
        answer.options.sack_permitted = false;
        answer.flags.0 &= !Flags::ECE.0;
    }
    answer
}

/// Returns the window that the SYN/ACK announces: windows of SYNs are not scaled (RFC 7323 section 2.2).
fn first_window(config: &ConnectionConfig) -> u32 {
    config.receive_buffer_bytes.min(0xffff) as u32
}

impl Connection {
    /// Accepts the first subflow with a SYN that was answered earlier with sequence number `iss`. The third ACK comes
    /// next.
    pub(crate) fn accept_answered(&mut self, syn: &Segment, iss: SeqNr, secrets: Secrets, now: Instant) {
        self.accept(syn, Secrets { iss, ..secrets }, now);
        let window = first_window(&self.config);
        self.subflows.iter_mut().for_each(|subflow| subflow.tcb.assume_answered(window));
    }
}
