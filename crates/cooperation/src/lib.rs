//! The modules by which a destination, its relays and its source cooperate, and the agents that own these modules. Each
//! module works alone or together with the others.
//!
//! All are sans-IO: messages, measurements and the time go in; messages, commands and the next wake-up come out. No
//! module knows another by name. Only the agents pass the output of one module to another.
//!
//! ```text
//! adaptive_congestion  which window to cut, so the delays of all paths move closer together
//! agent                the three agents: everything that a host does for cooperation, and the agents' messages
//! bandwidth_sharing    how much of a relay's link a subflow may take: a competition ratio from the relay's own flows
//! channel              the messages between source, relays and destination: frames, and their authentication
//! forwarding           how data pass through a relay: which go on at once, and which wait
//! link                 sealed packets between a relay and a destination over a shared network, and pairing
//! relay_selection      which relays carry data: an active and a backup set, from their offers and the target bit rate
//! ```

pub mod adaptive_congestion;
pub mod agent;
pub mod bandwidth_sharing;
pub mod channel;
pub mod forwarding;
pub mod link;
pub mod relay_selection;
