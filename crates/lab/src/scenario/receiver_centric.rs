//! MPTCP-rec's settings in scenario files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transport::receiver_centric::{self, Reading, WindowRule};

/// MPTCP-rec at both ends of the connection: the receiver states its desired sending rate for each path. All fields are
/// optional: `{}` turns it on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverCentric {
    /// How to interpret the paper.
    pub mode: Mode,
    /// Which side bounds the flight on a path with a stated rate.
    pub window: Window,
    /// Number of rounds without foreseeable blocking after which all paths are used again; at least 1.
    #[schemars(range(min = 1))]
    pub clear_rounds: u32,
    /// Weight of the new sample after a round with losses (the paper's vartheta), from 0 to 1.
    pub lossy_weight: f64,
}

/// How to interpret the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As meant.
    #[default]
    Build,
    /// As printed: equations 1 and 2 and algorithm 1.
    Paper,
    /// Only equation 1 as printed: seven eighths of the round-trip time come from the last sample.
    PaperRtt,
}

/// Which side bounds the flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// The receiver, by its rate.
    #[default]
    Receiver,
    /// The congestion controller; the rate is used only for pacing.
    Controller,
}

impl Default for ReceiverCentric {
    fn default() -> Self {
        let engine = receiver_centric::ReceiverCentric::DEFAULT;
        Self {
            mode: Mode::Build,
            window: Window::Receiver,
            clear_rounds: engine.clear_rounds,
            lossy_weight: engine.lossy_weight,
        }
    }
}

impl ReceiverCentric {
    /// The engine's settings.
    pub fn to_config(self) -> receiver_centric::ReceiverCentric {
        let printed = receiver_centric::ReceiverCentric::AS_PRINTED;
        let read = match self.mode {
            Mode::Build => receiver_centric::ReceiverCentric::DEFAULT,
            Mode::Paper => printed,
            Mode::PaperRtt => receiver_centric::ReceiverCentric { reading: Reading::Build, ..printed },
        };
        let window = match self.window {
            Window::Receiver => WindowRule::Receiver,
            Window::Controller => WindowRule::Controller,
        };
        receiver_centric::ReceiverCentric {
            window,
            clear_rounds: self.clear_rounds,
            lossy_weight: self.lossy_weight,
            ..read
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_is_the_engine_s_default() {
        let read: ReceiverCentric = toml::from_str("").unwrap();
        assert_eq!(read.to_config(), receiver_centric::ReceiverCentric::DEFAULT);
        let paper: ReceiverCentric = toml::from_str("mode = \"paper\"\nwindow = \"controller\"").unwrap();
        let config = paper.to_config();
        assert_eq!(
            (config.rtt_old_eighths, config.reading, config.window),
            (1, Reading::Paper, WindowRule::Controller)
        );
    }
}
