//! Data in transit through a relay: routed, held back or spliced.

use core::net::IpAddr;
use std::collections::VecDeque;

use bytes::Bytes;
use transport::observation::Observer;
use transport::relay::{FastAckRelay, ForwardingRelay, RelayConfig, RelayError, Side, SpliceId, SpliceStats};
use units::Instant;
use wire::{Segment, TooBig};

use super::lending::{Lending, LendingLimits};
use crate::forwarding::differentiated::{About, Differentiated};
use crate::forwarding::hold_queue::HoldLimits;
use crate::forwarding::range::{CumAck, RangeUpdate};
use crate::forwarding::routed::Routed;

/// How a relay handles packets that are not its own.
#[derive(Clone, Debug)]
pub enum PassageSettings {
    /// They never reach its agent: a router beside it forwards them.
    Beside,
    /// The relay forwards them, and holds back data that the destination does not want yet.
    Routed {
        /// The destination's addresses.
        destination: Vec<IpAddr>,
        /// Limits of what it holds, and for how long.
        limits: HoldLimits,
    },
    /// The relay terminates the subflows that join, acknowledges at once, and holds back data that the destination does
    /// not want yet.
    Spliced {
        /// The destination's addresses.
        destination: Vec<IpAddr>,
        /// Limits of what it holds, and for how long.
        limits: HoldLimits,
        /// Settings of its legs.
        relay: Box<RelayConfig>,
    },
}

/// Handles packets that are not the relay's own.
pub(super) struct Passage {
    own: IpAddr,
    destination: Vec<IpAddr>,
    /// Addresses from which destinations call, or have called since the latest one began to.
    callers: Vec<IpAddr>,
    way: Way,
    lending: Lending,
    passing: VecDeque<Segment>,
    octets: VecDeque<Bytes>,
}

enum Way {
    Beside,
    Routed(Box<Routed>),
    Spliced(Box<ForwardingRelay<Differentiated>>),
}

impl Passage {
    pub fn new(
        own: IpAddr,
        settings: &PassageSettings,
        lends: LendingLimits,
        seed: [u8; 32],
    ) -> Result<Self, RelayError> {
        let (destination, way) = match settings {
            PassageSettings::Beside => (Vec::new(), Way::Beside),
            PassageSettings::Routed { destination, limits } => {
                (destination.clone(), Way::Routed(Box::new(Routed::new(*limits))))
            }
            PassageSettings::Spliced { destination, limits, relay } => {
                let relay = FastAckRelay::new(relay.as_ref().clone(), seed)?;
                let relay = ForwardingRelay::new(relay, Differentiated::new(*limits));
                (destination.clone(), Way::Spliced(Box::new(relay)))
            }
        };
        let (callers, lending) = (Vec::new(), Lending::within(lends));
        let (passing, octets) = (VecDeque::new(), VecDeque::new());
        Ok(Self { own, destination, callers, way, lending, passing, octets })
    }

    /// Sets the observer of the legs of spliced subflows. Returns false if this relay splices none.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) -> bool {
        let Way::Spliced(relay) = &mut self.way else { return false };
        relay.parts().0.set_observer(observer);
        true
    }

    /// Returns whether a segment neither begins nor ends at this relay.
    #[inline]
    pub fn is_in_transit(&self, segment: &Segment) -> bool {
        segment.dst.ip() != self.own && segment.src.ip() != self.own
    }

    /// Takes a segment that is not the relay's own; returns false if it is.
    #[inline]
    pub fn take(&mut self, segment: &mut Segment, now: Instant) -> bool {
        if segment.dst.ip() == self.own {
            return false;
        }
        if self.lending.is_refused(segment) {
            return true;
        }
        let segment = core::mem::take(segment);
        let to = segment.dst.ip();
        if self.destination.contains(&to) || self.callers.contains(&to) {
            if let Some(segment) = self.lending.take(segment, now) {
                self.forward(segment, now);
            }
        } else {
            self.lending.count(&segment);
            match &mut self.way {
                Way::Beside | Way::Routed(_) => self.passing.push_back(segment),
                Way::Spliced(relay) => self.passing.extend(relay.handle_segment(Side::Destination, segment, now)),
            }
        }
        true
    }

    /// Forwards a segment towards the destination.
    #[inline]
    fn forward(&mut self, segment: Segment, now: Instant) {
        match &mut self.way {
            Way::Beside => self.passing.push_back(segment),
            Way::Routed(routed) => routed.on_segment(now, segment),
            Way::Spliced(relay) => self.passing.extend(relay.handle_segment(Side::Source, segment, now)),
        }
    }

    /// Closes the spliced subflows: their data are delivered first.
    pub fn close_splices(&mut self, now: Instant) {
        if let Way::Spliced(relay) = &mut self.way {
            let (relay, _) = relay.parts();
            let open: Vec<SpliceId> = relay.splices().map(|(id, _)| id).collect();
            open.into_iter().for_each(|id| relay.close(id, now));
        }
    }

    /// Returns the state of lending.
    pub fn lending(&self) -> &Lending {
        &self.lending
    }

    /// Takes octets that another host should receive, or that report a packet of a leg as too big; returns all others.
    pub fn take_octets(&mut self, octets: Bytes, now: Instant) -> Option<Bytes> {
        if let Way::Spliced(relay) = &mut self.way {
            let too_big = TooBig::parse(&octets).ok();
            if too_big.is_some_and(|too_big| relay.handle_too_big(&too_big, now)) {
                return None;
            }
        }
        if wire::destination(&octets) == Some(self.own) {
            return Some(octets);
        }
        self.octets.push_back(octets);
        None
    }

    /// Sets the addresses from which destinations call: packets to these addresses are also for them.
    pub fn set_callers(&mut self, callers: Vec<IpAddr>) {
        self.callers = callers;
    }

    /// Handles a range that the destination announced.
    pub fn on_range(&mut self, about: About, update: RangeUpdate, now: Instant) {
        match &mut self.way {
            Way::Beside => {}
            Way::Routed(routed) => {
                routed.only_for(about.destination);
                routed.on_range(about.connection, update.range);
            }
            Way::Spliced(relay) => {
                let (relay, forwarding) = relay.parts();
                forwarding.on_range(about, update, relay, now);
            }
        }
    }

    /// Handles that a destination will not speak any more of this connection.
    pub fn on_former(&mut self, about: About) {
        if let Way::Spliced(relay) = &mut self.way {
            let (relay, forwarding) = relay.parts();
            forwarding.forget_window_of(about, relay);
        }
    }

    /// Handles the destination's acknowledgement. A relay that only routes does not need it: the source receives the
    /// DATA_ACKs.
    pub fn on_ack(&mut self, about: About, ack: CumAck) {
        if let Way::Spliced(relay) = &mut self.way {
            let (relay, forwarding) = relay.parts();
            forwarding.on_ack(about, ack, relay);
        }
    }

    /// Handles the new beginning of a destination's channel (`None`: of every destination): the range that it wants is
    /// unknown, so held data move on.
    pub fn on_new_beginning(&mut self, destination: Option<IpAddr>, now: Instant) {
        match &mut self.way {
            Way::Beside => {}
            Way::Routed(routed) => routed.forget_range(destination),
            Way::Spliced(relay) => {
                let (relay, forwarding) = relay.parts();
                forwarding.forget_range(destination, relay, now);
            }
        }
    }

    /// Handles the loss of a destination's channel (`None`: of every destination): held data move on, and so does what
    /// waits for room there.
    pub fn on_silence(&mut self, destination: Option<IpAddr>, now: Instant) {
        if let Way::Spliced(relay) = &mut self.way {
            let (relay, forwarding) = relay.parts();
            forwarding.forget_windows(destination, relay);
        }
        self.on_new_beginning(destination, now);
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(segment) = self.lending.release(now) {
            self.forward(segment, now);
        }
        match &mut self.way {
            Way::Beside => {}
            Way::Routed(routed) => routed.handle_timeout(now),
            Way::Spliced(relay) => relay.handle_timeout(now),
        }
    }

    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = match &self.way {
            Way::Beside => None,
            Way::Routed(routed) => routed.poll_timeout(),
            Way::Spliced(relay) => relay.poll_timeout(),
        };
        match self.lending.poll_timeout() {
            Some(turn) => Some(own.map_or(turn, |own| own.min(turn))),
            None => own,
        }
    }

    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let own = match &mut self.way {
            Way::Beside => None,
            Way::Routed(routed) => routed.poll_forward(),
            Way::Spliced(relay) => relay.poll_transmit(now).map(|(_, segment)| segment),
        };
        own.or_else(|| self.passing.pop_front())
    }

    pub fn poll_octets(&mut self) -> Option<Bytes> {
        self.octets.pop_front()
    }

    pub fn packet_payload(&self, segment: &Segment) -> Option<u32> {
        match &self.way {
            Way::Spliced(relay) => relay.relay().packet_payload(segment),
            Way::Beside | Way::Routed(_) => None,
        }
    }

    /// Returns the octets held for later; `None` if nothing is ever held.
    pub fn held_bytes(&self) -> Option<u64> {
        match &self.way {
            Way::Beside => None,
            Way::Routed(routed) => Some(routed.held_bytes()),
            Way::Spliced(relay) => Some(relay.forwarding().queue().held_bytes()),
        }
    }

    /// Returns the spliced subflows.
    pub fn splices(&self) -> impl Iterator<Item = (SpliceId, SpliceStats)> + '_ {
        let relay = match &self.way {
            Way::Spliced(relay) => Some(relay.relay()),
            Way::Beside | Way::Routed(_) => None,
        };
        relay.into_iter().flat_map(FastAckRelay::splices)
    }
}
