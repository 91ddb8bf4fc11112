//! The Wi-Fi channel.

mod behaviour;
mod hidden;
mod rig;
