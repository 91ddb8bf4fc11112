//! Sans-IO network models: a packet in at t, packets out at t'.
//!
//! Every element is a [`Node`]: it takes a packet and the time, gives packets to an [`Output`], and says when it wants
//! to be called next. A [`Network`] connects nodes into a graph with static routes. The simulator drives the graph in
//! virtual time; the emulator drives the same nodes on a real clock.
//!
//! ```text
//! link          rate or trace, drop-tail queue, delay and loss in one node: the most used path
//! impairments   delay, loss, reordering, duplication, corruption, outages, drops of matching packets
//! middlebox     strips, edits, translates, splits and merges segments
//! medium        an element that several vertices share: a radio cell, a Wi-Fi channel
//! graph         vertices, routes, one pending event per node
//! topology      two hosts joined by a list of paths
//! ```

mod address_table;
pub mod cell;
mod datagram;
mod graph;
pub mod impairment;
pub mod link;
mod medium;
pub mod middlebox;
mod neighbours;
mod node;
mod packet;
mod prefix;
mod routes;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod trace;
pub mod wlan;

pub use datagram::Datagram;
pub use graph::{Imbalance, MediumId, Network, PortId, VertexId};
pub use link::{Link, LossModel, Queue};
pub use medium::{Gate, Medium, MediumOutput};
pub use neighbours::Neighbours;
pub use node::{Amount, Counters, DropCause, Node, Output};
pub use packet::{Packet, PacketPool};
pub use prefix::Prefix;
pub use routes::Route;
pub use topology::{Path, PathEnds, TwoHosts, Wired};
pub use trace::Trace;
