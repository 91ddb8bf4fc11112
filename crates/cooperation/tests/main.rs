//! Tests of the modules and agents of cooperation through their public interface, most of them on the simulator.

mod adaptive_congestion;
mod agents;
mod bandwidth_sharing;
mod channel;
mod differentiated_forwarding;
mod fast_ack_relays;
mod link;
mod prompt_selection;
mod relay_manager;
mod relay_selection;
