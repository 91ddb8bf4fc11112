//! The channels of the control plane: frames, records, and what happens to hostile ones.

mod attacks;
mod bounds;
mod frames;
mod handshake;
mod hostile;
mod secure;
mod strategies;
mod support;
