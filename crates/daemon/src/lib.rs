//! What runs beside other programs on a device with several uplinks.
//!
//! ```text
//! proxy   SOCKS5 and HTTP on the loopback: every client's connection becomes one of the engine's
//! ```

pub mod proxy;
