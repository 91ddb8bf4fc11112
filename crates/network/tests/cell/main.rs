//! The cell as part of a network.

mod behaviour;
mod ns3;
mod rig;
