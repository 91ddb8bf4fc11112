//! All path managers, by name.

use policy::UnknownName;

use super::{FullMesh, Manual, OnePerAddress, PathManager, SignalOnly};

/// A registered path manager.
pub type Registration = policy::Registration<fn() -> Box<dyn PathManager>>;

/// All path managers.
pub const PATH_MANAGERS: &[Registration] = &[
    Registration {
        name: "full-mesh",
        summary: "the initiator joins from every local to every remote address; the responder announces its addresses",
        build: || Box::new(FullMesh::default()),
    },
    Registration {
        name: "one-per-address",
        summary: "the initiator joins from every local address to one remote address; the responder announces its addresses",
        build: || Box::new(OnePerAddress::default()),
    },
    Registration {
        name: "signal-only",
        summary: "announces all local addresses, opens no subflow",
        build: || Box::new(SignalOnly::default()),
    },
    Registration {
        name: "manual",
        summary: "does nothing by itself; the application adds and removes subflows",
        build: || Box::new(Manual),
    },
];

/// Builds the path manager called `name`.
pub fn build(name: &str) -> Result<Box<dyn PathManager>, UnknownName> {
    policy::find("path manager", PATH_MANAGERS, name).map(|found| (found.build)())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{World, closed};
    use super::*;

    #[test]
    fn every_path_manager_goes_by_its_registered_name() {
        for registration in PATH_MANAGERS {
            assert_eq!(build(registration.name).unwrap().name(), registration.name);
        }
        assert!(build("fullmesh").err().unwrap().to_string().contains("did you mean full-mesh?"));
    }

    #[test]
    fn only_two_open_subflows_and_manual_does_nothing() {
        let commands = |name| {
            let mut world = World::new(build(name).unwrap(), &[1, 2]);
            let mut commands = world.establish(1, true);
            commands.extend(world.handle(closed(1, 101, true)));
            commands.len()
        };
        // They open the second path and ask for a wake-up for the failed first path; signal-only announces once.
        let names = ["full-mesh", "one-per-address", "signal-only", "manual"];
        assert_eq!(names.map(commands), [2, 2, 1, 0]);
    }
}
