//! The emulator, and the engine with the kernel as its peer.

mod backend_faults;
mod backends;
mod captures;
mod closing;
mod confined;
mod congestion;
#[cfg(feature = "kernel-cc")]
mod congestion_in_kernel;
#[cfg(feature = "kernel-cc")]
mod cooperative_layers;
mod doctor;
mod emulator;
mod flood;
mod handshake;
mod join;
mod kernel_mode;
#[cfg(feature = "kernel-cc")]
mod kernels;
mod killed;
mod lending;
mod middleboxes;
mod path_mtu;
mod paths;
mod product;
mod programs;
mod proxy;
mod receiver_centric;
mod relays;
mod scale;
mod transfers;
mod uplinks;
mod veth;
