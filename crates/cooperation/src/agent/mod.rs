//! The three agents: everything that a host does to cooperate with others.
//!
//! ```text
//!   source's          relay's                destination's
//!  ┌────────┐        ┌────────┐  offers     ┌─────────────┐
//!  │ layers │        │ offers ├────────────▶│ selection   │
//!  │ over   │        │ load   │ loads,      │ ranges      │
//!  │ its    │        │ way    │ delays      │ watch       │
//!  │ con-   │        │ hold / │◀────────────┤             │
//!  │ troller│        │ splice │ ranges      │             │
//!  └───▲────┘        └────────┘             └──────┬──────┘
//!      └─────────── loads and delays ──────────────┘
//! ```
//!
//! The agents exchange octets on TCP connections of the engine ([`control`]), which arrive as late as the network makes
//! them. The destination calls; relays and source answer. A source without an agent is an ordinary host. An agent owns
//! all modules of its host, and is itself a part of the host ([`host::Agent`]): segments and events of the engine,
//! measurements and the time go in; segments, commands to the engine, events for observers and the next wake-up come
//! out.
//!
//! ```text
//! control       channels on connections
//! destination   relay selection, ranges, the watch over relays, reports to the source
//! relay         offers, load, data in transit
//! source        adaptive congestion control, bandwidth sharing
//! events        events that wait for an observer
//! role          one of the agents, or none
//! ```

pub mod control;
pub mod destination;
mod events;
pub mod relay;
mod role;
pub mod source;

pub use role::Role;
