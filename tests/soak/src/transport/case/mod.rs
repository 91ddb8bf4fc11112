//! A case: everything that decides a run, as data. Its text is what a failure prints and what a regression test keeps.

mod action;
mod era;
mod path;
mod settings;
mod talk;

use serde::{Deserialize, Serialize};

pub use action::{Action, Deed};
pub use era::EraCase;
pub use path::{Element, Gateway, Loss, PathCase, Relay, Segments, Strip, Way};
pub use settings::Settings;
pub use talk::{Ending, Speaker, Talk};

/// A host of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Who opens connections.
    Client,
    /// Who takes them.
    Server,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];

    /// As an index of a pair.
    pub const fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

/// A scenario: two hosts, the paths between them, what their applications do and what else happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Of the network's and the hosts' randomness.
    pub seed: u64,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// The server has the address of the first path only.
    pub one_server_address: bool,
    /// How the client is set.
    pub client: Settings,
    /// How the server is set.
    pub server: Settings,
    /// The paths; connections begin on the first.
    pub paths: Vec<PathCase>,
    /// What the applications do.
    pub talks: Vec<Talk>,
    /// What happens to subflows and addresses on the way, in any order.
    pub actions: Vec<Action>,
}

impl Case {
    /// The settings of one side.
    pub const fn settings(&self, side: Side) -> &Settings {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// The case as text.
    ///
    /// # Panics
    /// Never: every case has a text.
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a case has a text")
    }

    /// Reads what [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// If it is no case; in words, with the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}
