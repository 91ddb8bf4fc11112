//! Bytes <-> segments: IPv4, IPv6, TCP and every option of RFC 8684.
//!
//! The engine works on [`Segment`]s; only TUN devices, ns-3 and capture files need bytes. [`Segment::parse`] converts
//! bytes to a segment and [`Segment::emit`] converts it back:
//!
//! ```
//! use bytes::Bytes;
//! use wire::{Flags, Options, Payload, Segment};
//!
//! let mut segment = Segment::new("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
//! segment.flags = Flags::SYN;
//! segment.options = Options { mss: Some(1460), ..Options::default() };
//!
//! let mut packet = Vec::new();
//! segment.emit(&mut packet);
//! assert_eq!(packet.len(), 20 + 20 + 4);
//! assert_eq!(Segment::parse(&Bytes::from(packet)), Ok(segment));
//! ```
//!
//! | file | octets |
//! |---|---|
//! | `ip.rs` | IPv4 and IPv6 headers |
//! | `tcp.rs` | the fixed TCP header |
//! | `option.rs` | TCP options; what happens to unknown and malformed ones |
//! | `fit.rs` | which options give way if 40 octets are too few |
//! | `mptcp/` | MPTCP options, one file each |
//! | `checksum.rs` | RFC 1071 sums; the DSS checksum |
//! | `payload.rs` | data: real octets or a computable pattern |
//! | `segment.rs` | all of them together |
//! | `icmp.rs` | ICMP errors: the packets they quote, and how a NAT translates them |
//! | `too_big.rs` | ICMP errors that a packet does not fit its path |

#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod checksum;
mod error;
mod icmp;
mod ip;
pub mod mptcp;
mod octets;
mod option;
mod payload;
mod segment;
mod tcp;
mod too_big;

pub use error::ParseError;
pub use icmp::IcmpError;
pub use ip::{Ecn, destination, hop_limit, set_hop_limit, source};
pub use option::{Options, SackBlock, SackBlocks, Timestamps};
pub use payload::{Pattern, Payload};
pub use segment::{ChecksumOffload, Segment, TcpChecksum};
pub use tcp::Flags;
pub use too_big::TooBig;
