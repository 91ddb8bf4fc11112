//! State that a spliced subflow keeps separately towards each host.

use core::ops::{Index, IndexMut};

use super::Side;

/// A value for each side.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerSide<T> {
    source: T,
    destination: T,
}

impl<T> PerSide<T> {
    /// Builds both values with `make`.
    pub(super) fn from_fn(mut make: impl FnMut(Side) -> T) -> Self {
        Self { source: make(Side::Source), destination: make(Side::Destination) }
    }

    /// Iterates over both values, the source's first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.source, &self.destination].into_iter()
    }

    /// Iterates over both values, the source's first.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        [&mut self.source, &mut self.destination].into_iter()
    }
}

impl<T> Index<Side> for PerSide<T> {
    type Output = T;

    fn index(&self, side: Side) -> &T {
        match side {
            Side::Source => &self.source,
            Side::Destination => &self.destination,
        }
    }
}

impl<T> IndexMut<Side> for PerSide<T> {
    fn index_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Source => &mut self.source,
            Side::Destination => &mut self.destination,
        }
    }
}
