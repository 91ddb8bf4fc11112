//! The channels of the control plane: frames, records, and the handling of hostile ones.

mod attacks;
mod bounds;
mod frames;
mod handshake;
mod hostile;
mod secure;
mod strategies;
mod support;
