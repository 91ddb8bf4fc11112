//! Agents of a destination and its relays on a network: who hears what, and when.

mod pairing;
mod stage;
