//! Per-subflow state of a controller.

use crate::SubflowId;

/// One `T` per subflow. Connections have a handful of subflows, so a scan beats any map.
#[derive(Clone, Debug, Default)]
pub struct PerSubflow<T> {
    entries: Vec<(SubflowId, T)>,
}

impl<T: Default> PerSubflow<T> {
    /// Returns the state of `subflow`; the default if it has none yet.
    pub fn get_mut(&mut self, subflow: SubflowId) -> &mut T {
        let position = self.entries.iter().position(|(id, _)| *id == subflow).unwrap_or_else(|| {
            self.entries.push((subflow, T::default()));
            self.entries.len() - 1
        });
        &mut self.entries[position].1
    }

    /// Forgets `subflow`.
    pub fn remove(&mut self, subflow: SubflowId) {
        self.entries.retain(|(id, _)| *id != subflow);
    }

    /// Iterates over all subflows with a state, in the order in which they got it.
    pub fn iter(&self) -> impl Iterator<Item = (SubflowId, &T)> + Clone {
        self.entries.iter().map(|(id, state)| (*id, state))
    }

    /// Like [`Self::iter`], with mutable states.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (SubflowId, &mut T)> {
        self.entries.iter_mut().map(|(id, state)| (*id, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subflow_has_its_own() {
        let mut states = PerSubflow::<u32>::default();
        *states.get_mut(SubflowId(3)) += 5;
        *states.get_mut(SubflowId(1)) += 7;
        *states.get_mut(SubflowId(3)) += 1;
        assert_eq!(states.iter().collect::<Vec<_>>(), [(SubflowId(3), &6), (SubflowId(1), &7)]);
        states.remove(SubflowId(3));
        assert_eq!(*states.get_mut(SubflowId(3)), 0);
    }
}
