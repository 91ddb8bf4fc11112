//! What the program of a relay tells its agent: measurements of the link, and packets in transit.

use bytes::Bytes;
use cooperation::agent::relay::{FlowUse, Measurement};
use cooperation::relay_selection::monitor::LinkUse;
use host::Host as _;
use units::Rate;
use wire::{Segment, TooBig};

use crate::endpoint::{AnabranchEndpoint, read_octets, with_endpoint, write_out};
use crate::status::{AnabranchStatus, Failure};

/// Measurements of a relay's link.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnabranchLinkUse {
    /// Octets of packets that have arrived over the link so far, for whomever.
    pub delivered_bytes: u64,
    /// Those of them for the relay's owner.
    pub local_bytes: u64,
    /// Rate that the link would carry now, as the modem reports it, bit/s; `has_granted` tells whether it does.
    pub granted_bps: u64,
    /// Whether `granted_bps` is known.
    pub has_granted: bool,
    /// Whether more data were waiting for the link all the time since the previous measurement, as far as is known.
    pub backlogged: bool,
    /// The owner's flows, `flows_len` of them, for reports on how crowded the link is; null if they are not known. Those
    /// that have ended stay in the list.
    pub flows: *const AnabranchFlowUse,
    /// Number of the owner's flows, always in the same order.
    pub flows_len: usize,
}

impl Default for AnabranchLinkUse {
    fn default() -> Self {
        Self {
            delivered_bytes: 0,
            local_bytes: 0,
            granted_bps: 0,
            has_granted: false,
            backlogged: false,
            flows: core::ptr::null(),
            flows_len: 0,
        }
    }
}

/// What one flow of a relay's owner receives.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnabranchFlowUse {
    /// Octets of packets received so far.
    pub received_bytes: u64,
    /// Octets of packets that it asked for so far; `has_demanded` tells whether that is known. Otherwise it counts as a
    /// flow that takes all it can get.
    pub demanded_bytes: u64,
    /// Whether `demanded_bytes` is known.
    pub has_demanded: bool,
}

/// Tells a relay's agent what its link carried so far: the answer to `ANABRANCH_AGENT_EVENT_KIND_MEASURE`.
///
/// # Safety
/// `endpoint` is null or valid; `measured` is null or points to measurements, and their `flows` to as many as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_measure(
    endpoint: *mut AnabranchEndpoint,
    measured: *const AnabranchLinkUse,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let measured = measurement(measured.as_ref().ok_or_else(|| Failure::null("measured"))?)?;
            let now = endpoint.advance(now_ns)?;
            let is_relay = endpoint.host.with_agent_mut(|role, engine| {
                let relay = role.relay_mut();
                relay.map(|agent| agent.handle_measurement(&measured, engine, now)).is_some()
            });
            if !is_relay {
                return Err(no_relay());
            }
            endpoint.agent.asked = false;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Reads an argument of measurements.
///
/// # Safety
/// `flows` is null or points to `flows_len` flows.
unsafe fn measurement(measured: &AnabranchLinkUse) -> Result<Measurement, Failure> {
    let flows = match measured.flows_len {
        0 => &[],
        _ if measured.flows.is_null() => return Err(Failure::null("flows")),
        // SAFETY: not null, and so as many flows by the contract of this function.
        len => unsafe { core::slice::from_raw_parts(measured.flows, len) },
    };
    let flow = |flow: &AnabranchFlowUse| FlowUse {
        demanded_bytes: flow.has_demanded.then_some(flow.demanded_bytes),
        received_bytes: flow.received_bytes,
    };
    let link = LinkUse {
        local_bytes: measured.local_bytes,
        delivered_bytes: measured.delivered_bytes,
        backlogged: measured.backlogged,
        granted: measured.has_granted.then(|| Rate::from_bps(measured.granted_bps)),
    };
    Ok(Measurement { link, flows: flows.iter().map(flow).collect() })
}

/// What a relay's agent does with packets in transit.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnabranchTransit {
    /// Whether they pass the agent: give them to `anabranch_forward_packet`, and do not forward them. Does not change.
    pub takes_packets: bool,
    /// Number of subflows that end at the relay and continue from there.
    pub splices: usize,
    /// Octets that the relay holds until the destination wants them; a packet of less than 64 counts as 64.
    pub held_bytes: u64,
}

/// Returns what the agent of a relay does with packets in transit. `ANABRANCH_STATUS_WRONG_STATE` if the endpoint has no
/// agent of a relay.
///
/// # Safety
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_transit(
    endpoint: *mut AnabranchEndpoint,
    transit: *mut AnabranchTransit,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            write_out(transit, "transit", AnabranchTransit::default())?;
            let relay = endpoint.host.agent().relay().ok_or_else(no_relay)?;
            let held = relay.held_bytes();
            let takes_packets = held.is_some();
            let state = AnabranchTransit { takes_packets, splices: relay.splices(), held_bytes: held.unwrap_or(0) };
            write_out(transit, "transit", state)?;
            Ok(AnabranchStatus::Ok)
        })
    }
}

/// Passes an IP packet in transit to a relay's agent: of TCP, from or to the destination's `path`, or an ICMP error about
/// such a packet. The agent passes it on, keeps it for later, or ends its subflow here. What should travel on,
/// `anabranch_poll_transmit` returns among the other packets; those to `path` go to the destination. The time to live
/// begins anew, and of the type of service only the congestion marking stays. A damaged packet returns
/// `ANABRANCH_STATUS_MALFORMED_PACKET` and changes nothing: drop it and continue.
///
/// Packets of the relay's owner go to `anabranch_handle_packet`, even if they have the same address.
///
/// # Safety
/// `endpoint` is null or valid; `packet` points to `len` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_forward_packet(
    endpoint: *mut AnabranchEndpoint,
    packet: *const u8,
    len: usize,
    now_ns: u64,
) -> AnabranchStatus {
    // SAFETY: the caller keeps to the contract of this function, which is that of every function called here.
    unsafe {
        with_endpoint(endpoint, |endpoint| {
            let takes_packets = endpoint.host.agent().relay().is_some_and(|relay| relay.held_bytes().is_some());
            if !takes_packets {
                let message = "no packets pass through the endpoint's agent: route them";
                return Err(Failure::new(AnabranchStatus::WrongState, message));
            }
            let packet = Bytes::copy_from_slice(read_octets(packet, len, "packet")?);
            let now = endpoint.advance(now_ns)?;
            match Segment::parse(&packet) {
                Ok(mut segment) => endpoint.host.handle_segment(&mut segment, now),
                Err(error) => {
                    let malformed = |_| Failure::new(AnabranchStatus::MalformedPacket, error);
                    TooBig::parse(&packet).map_err(malformed)?;
                    endpoint.host.handle_octets(packet, now);
                }
            }
            Ok(AnabranchStatus::Ok)
        })
    }
}

fn no_relay() -> Failure {
    Failure::new(AnabranchStatus::WrongState, "the endpoint has no agent of a relay")
}
