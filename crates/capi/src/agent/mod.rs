//! The agent of an endpoint: what a destination, a relay or a source does to cooperate with others.
//!
//! ```text
//! peers      who the others are, and where
//! settings   settings of cooperation, by the names of scenario files
//! build      agents from both
//! event      events of agents as one flat C struct
//! relay      what a relay's program tells its agent: measurements, and packets in transit
//! ```
//!
//! The agents are those of the simulator. They exchange messages on TCP connections of the endpoint, of which the
//! program sees only packets.

mod build;
mod event;
mod peers;
mod relay;
mod settings;

use core::ffi::c_char;
use std::collections::VecDeque;

use cooperation::agent::Role;
use cooperation::channel::Identity;
use host::{Agent as _, App};
use transport::error::ListenError;
use transport::{ConnectionConfig, Endpoint, Event, SUBFLOWS_CAP};
use units::Instant;
use wire::Segment;

use crate::endpoint::{AnabranchEndpoint, with_endpoint};
use crate::status::{AnabranchStatus, Failure, guard};
use build::Needs;
pub use event::{
    ANABRANCH_RELAYS_MAX, AnabranchAgentEvent, AnabranchAgentEventKind, AnabranchCause, anabranch_poll_agent_event,
};

pub use relay::{
    AnabranchFlowUse, AnabranchLinkUse, AnabranchTransit, anabranch_forward_packet, anabranch_measure,
    anabranch_transit,
};

/// Octets of a key, private or public.
pub const ANABRANCH_KEY_LEN: usize = 32;

/// The program as the application of its host: events wait until it polls them.
#[derive(Default)]
pub(crate) struct Program(VecDeque<Event>);

impl Program {
    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.0.pop_front()
    }
}

impl App for Program {
    fn handle_event(&mut self, event: &Event, _: &mut Endpoint, _: Instant) {
        self.0.push_back(event.clone());
    }
}

/// What the program knows of its agent.
#[derive(Default)]
pub(crate) struct AgentNews {
    /// Whether it knows that the agent is ready.
    ready: bool,
    /// Whether it was asked to measure, and has not done so yet.
    asked: bool,
    /// What the agent needs of connections.
    needs: Needs,
}

impl AnabranchEndpoint {
    /// Returns when to ask the program for a measurement; [`Instant::FAR_FUTURE`] if none is needed, or it was asked.
    pub(crate) fn next_measurement(&self) -> Instant {
        let due = self.host.agent().relay().map_or(Instant::FAR_FUTURE, |agent| agent.next_measurement());
        if self.agent.asked { Instant::FAR_FUTURE } else { due }
    }

    /// Handles a segment for this host. What a relay passes on comes by `anabranch_forward_packet`, so its agent need
    /// not tell it from the owner's segments, which may be for the same address.
    pub(crate) fn handle_segment(&mut self, mut segment: Segment, now: Instant) {
        use host::Host as _;
        match self.host.agent() {
            Role::Relay(_) => self.host.endpoint.handle_segment(segment, now),
            Role::Alone | Role::Destination(_) | Role::Source(_) => self.host.handle_segment(&mut segment, now),
        }
    }

    /// Returns the settings of a connection that the program opens, with what the agent needs.
    pub(crate) fn adapted(&self, config: ConnectionConfig) -> ConnectionConfig {
        let Needs { steers, subflows } = self.agent.needs;
        let subflows_max = config.subflows_max.max(subflows.min(SUBFLOWS_CAP));
        let path_manager = if steers { "manual".into() } else { config.path_manager };
        ConnectionConfig { path_manager, subflows_max, ..config }
    }
}

/// Returns in `key` the public key that belongs to the private key `secret`: by it, others know an agent. Both have
/// `ANABRANCH_KEY_LEN` octets. Any octets are a private key; on a real network take them from the operating system's
/// random numbers.
///
/// # Safety
/// Pointers are null or point to as many octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_public_key(secret: *const u8, key: *mut u8) -> AnabranchStatus {
    guard(|| {
        // SAFETY: null or so many octets by the contract of this function.
        let secret = unsafe { read_key(secret, "secret") }?;
        if key.is_null() {
            return Err(Failure::null("key"));
        }
        // SAFETY: not null, and so valid for writes of as many octets; octets have no alignment.
        unsafe { key.cast::<[u8; ANABRANCH_KEY_LEN]>().write(*Identity::from_secret(secret).public().octets()) };
        Ok(AnabranchStatus::Ok)
    })
}

/// Gives an endpoint an agent, which begins to cooperate with those of other endpoints. An endpoint has one at most.
/// From now on, call `anabranch_poll_agent_event` wherever `anabranch_poll_event` is called.
///
/// `peers_json` says who the others are and where, as one of these objects. Keys are public keys, in 64 hexadecimal
/// digits; addresses are texts.
///
/// ```text
/// {"role": "destination", "source": "198.51.100.1:80", "relays": [
///     {"path": "10.1.0.2", "control": "10.1.0.1:40001", "key": "...", "calls_from": "192.168.1.2"}],
///  "source_agent": {"control": "198.51.100.1:40001", "key": "..."}}
/// {"role": "relay", "control": "10.1.0.1:40001", "serves": ["..."], "path": "10.1.0.2"}
/// {"role": "source", "control": "198.51.100.1:40001", "serves": ["..."]}
/// ```
///
/// A destination knows relays by their numbers in the list, from 0. `path` is its own address on the path through the
/// relay, `control` the address and port of the relay's agent. It calls from `path`, or from `calls_from` where a relay
/// lends its own address. A relay answers the destinations whose keys it `serves`, at its address `control`. It needs the
/// `path` only if packets pass through it (`anabranch_transit`): with `cooperation.relays` = "fast-ack", it ends the
/// subflows that join, and acknowledges at once; with `cooperation.forwarding`, it holds data until the destination wants
/// them. If it serves several keys, it believes what a destination says of data only if that calls from where they go.
///
/// A source needs an agent if relays report to it (`cooperation.bandwidth_sharing`), or if it adapts windows to delays
/// (`cooperation.adaptive_congestion`). It answers as relays do. Destinations call their `source_agent`, which may be
/// left out, if there is something to report.
///
/// `settings_json` is null for the defaults, or an object with any of `target`, `connection` (`receive_buffer`, which
/// `cooperation.forwarding` shares), `cooperation` (`relays`, `news`, `selection`, `adaptive_congestion`,
/// `bandwidth_sharing`, `forwarding`, `watch`) and `relay` (`bit_rate_max`, `local_rate`, `exaggerates`,
/// `energy_nj_per_bit`, `rho`). The names are those of scenario files (scenarios/README.md), and each
/// agent uses what concerns it, so all can get the same settings. One default differs: `bandwidth_sharing.demands` is
/// "estimated". `relay.rho` is the fixed value of one relay, `bandwidth_sharing.fixed` of scenario files.
///
/// `secret` points to `ANABRANCH_KEY_LEN` octets, the private key of this agent (`anabranch_public_key`), and `seed` to
/// `ANABRANCH_SEED_LEN` octets for its randomness, which must never be used twice.
///
/// Where a destination selects relays (`cooperation.selection.method` other than "all"), it alone opens subflows of the
/// endpoint's first connection to `source`. Open that when `ANABRANCH_AGENT_EVENT_KIND_READY` has come, from an
/// unspecified address: it then begins over a chosen relay, the one with the lowest number.
///
/// `ANABRANCH_STATUS_IN_USE` if a listener of the program has the address and port at which a relay or source would
/// answer: the endpoint then has no agent.
///
/// # Safety
/// Pointers are null or valid; texts are strings; `secret` and `seed` point to as many octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_start_agent(
    endpoint: *mut AnabranchEndpoint,
    peers_json: *const c_char,
    settings_json: *const c_char,
    secret: *const u8,
    seed: *const u8,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let peers = peers::read(peers_json)?;
            let settings = settings::read(settings_json)?;
            let identity = Identity::from_secret(read_key(secret, "secret")?);
            let seed = read_key(seed, "seed")?;
            if !matches!(endpoint.host.agent(), Role::Alone) {
                return Err(Failure::new(AnabranchStatus::WrongState, "the endpoint has an agent already"));
            }
            let built = build::agent(peers, &settings, identity, seed)?;
            let now = endpoint.advance(now_ns)?;
            endpoint.host.with_agent_mut(|role, engine| {
                let mut started = built.role;
                started.listen(engine)?;
                *role = started;
                role.start(engine, now);
                Ok::<_, ListenError>(())
            })?;
            endpoint.agent.needs = built.needs;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Ends the cooperation of an endpoint: its agent says goodbye to the others and begins nothing more; of what happens
/// later, no event tells. Connections keep the subflows that they have, and from now on the program may open and close
/// some. What passes through a relay still does, and nothing of it is held back. If `ANABRANCH_AGENT_EVENT_KIND_READY` has
/// not come by then, it will not: open connections without it.
///
/// # Safety
/// `endpoint` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_retire_agent(endpoint: *mut AnabranchEndpoint, now_ns: u64) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let now = endpoint.advance(now_ns)?;
            endpoint.host.with_agent_mut(|role, engine| role.retire(engine, now));
            endpoint.agent.needs = Needs::default();
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Reads an argument of 32 octets: a key or a seed.
///
/// # Safety
/// `octets` is null or points to as many octets.
unsafe fn read_key(octets: *const u8, name: &str) -> Result<[u8; ANABRANCH_KEY_LEN], Failure> {
    if octets.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: not null, and so as many octets by the contract of this function; octets have no alignment.
    Ok(unsafe { octets.cast::<[u8; ANABRANCH_KEY_LEN]>().read() })
}
