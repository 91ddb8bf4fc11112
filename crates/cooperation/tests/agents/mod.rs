//! Agents of a destination and its relays on a network: who hears what, and when, and the effects of faults.

mod clocked;
mod crowd;
mod disorder;
mod ended;
mod fast_clock;
mod forbidden_joins;
mod full;
mod late_start;
mod new_address;
mod observers;
mod pairing;
mod quiet;
mod restarted;
mod retired;
mod returning;
mod slow_reader;
mod stage;
mod stall;
mod stalls;
mod two_connections;
mod world;
