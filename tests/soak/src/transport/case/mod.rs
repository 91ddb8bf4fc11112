//! A case: everything that determines a run, as data. A failure prints its text, and a regression test keeps it.

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
    /// The host that opens connections.
    Client,
    /// The host that accepts them.
    Server,
}

impl Side {
    /// Both hosts.
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];

    /// Returns the index of this side in a pair.
    pub const fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

/// A scenario: two hosts, the paths between them, their applications, and actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Seed of the network's and the hosts' randomness.
    pub seed: u64,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// The server has the address of the first path only.
    pub one_server_address: bool,
    /// Settings of the client.
    pub client: Settings,
    /// Settings of the server.
    pub server: Settings,
    /// The paths; connections begin on the first.
    pub paths: Vec<PathCase>,
    /// The applications.
    pub talks: Vec<Talk>,
    /// Actions on subflows and addresses during the run, in any order.
    pub actions: Vec<Action>,
}

impl Case {
    /// Returns the settings of one side.
    pub const fn settings(&self, side: Side) -> &Settings {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Returns the case as text.
    ///
    /// # Panics
    /// Never: every case has a text.
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a case has a text")
    }

    /// Reads the text that [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// If it is not a case; the message names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}
