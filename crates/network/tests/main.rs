//! The network models through their public face.

mod cell;
mod wlan;
mod wlan_ns3;
