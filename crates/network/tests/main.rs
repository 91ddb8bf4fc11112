//! The network models through their public interface.

mod cell;
mod wlan;
mod wlan_ns3;
