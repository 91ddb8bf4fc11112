//! The modules by which a destination, its relays and its source work together, each alone and all together, and the agents that
//! own them.
//!
//! All are sans-IO: messages, measurements and the time go in; messages, commands and the next wake-up come out. No module
//! knows another by name: the agents, and only they, pass on what one says to the others.
//!
//! ```text
//! adaptive_congestion  which window to cut so that the delays of all paths come closer together
//! agent                the three agents: all that a host does for cooperation, and what they say to each other over the network
//! bandwidth_sharing    how much a subflow may take of a relay's link: from the relay's own flows to a ratio of competition
//! channel              what source, relays and destination tell each other: frames, and how they are kept authentic
//! forwarding           how data get through a relay: which go on at once, and which wait
//! link                 what passes between a relay and a destination on a network that others are on: sealed packets, and pairing
//! relay_selection      which relays carry data: from their offers and the target bit rate to an active and a backup set
//! ```

pub mod adaptive_congestion;
pub mod agent;
pub mod bandwidth_sharing;
pub mod channel;
pub mod forwarding;
pub mod link;
pub mod relay_selection;
