//! Differentiated forwarding: the destination's ranges and the relays' hold queues, separately and together.

mod delivery;
mod hold_queue;
mod range_keeper;
