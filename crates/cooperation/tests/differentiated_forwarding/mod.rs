//! Differentiated forwarding: the destination's ranges and the relays' hold queues, apart and together.

mod delivery;
mod hold_queue;
mod range_keeper;
