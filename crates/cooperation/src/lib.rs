//! The modules by which a destination and its relays work together, each alone and all together.
//!
//! All are sans-IO: messages, measurements and the time go in; messages, commands and the next wake-up come out. No module
//! knows another by name: whoever owns them passes on what one says to the others.
//!
//! ```text
//! forwarding        how data get through a relay: which go on at once, which wait, and the frames they travel in
//! relay_selection   which relays carry data: from their offers and the target bit rate to an active and a backup set
//! ```

pub mod forwarding;
pub mod relay_selection;
