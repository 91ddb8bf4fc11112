//! The cell as part of a network.

mod allocation;
mod any_order;
mod behaviour;
mod ns3;
mod rig;
mod wire;
