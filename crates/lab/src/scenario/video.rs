//! A video, and the viewer's buffer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use simulator::traffic::video::{PlaybackConfig, VideoFormat};
use units::{Duration, Probability, Rate};

use super::schema::Written;

/// Frames of a live video, and the buffering before playback begins; the bit rate is a separate field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Video {
    /// Frames per second.
    #[schemars(range(min = 1))]
    pub frames_per_s: u32,
    /// Frames from one I frame to the next.
    #[schemars(range(min = 1))]
    pub group_frames: u32,
    /// Frames from one I or P frame to the next; those between are B frames.
    #[schemars(range(min = 1))]
    pub anchor_frames: u32,
    /// Mean sizes of I, P and B frames, relative to each other.
    pub weights: [u32; 3],
    /// Half width of the uniform distribution of sizes, as a share of the mean of the frame's kind.
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub spread: Probability,
    /// Video to buffer before the first frame is shown.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub startup: Duration,
    /// Video to buffer before playback continues after a stall.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub rebuffer: Duration,
}

impl Default for Video {
    fn default() -> Self {
        let (format, playback) = (VideoFormat::default(), PlaybackConfig::default());
        Self {
            frames_per_s: format.frames_per_s,
            group_frames: format.group_frames,
            anchor_frames: format.anchor_frames,
            weights: format.weights,
            spread: Probability::new(f64::from(format.spread_percent) / 100.0).unwrap_or(Probability::ZERO),
            startup: playback.startup,
            rebuffer: playback.rebuffer,
        }
    }
}

impl Video {
    /// Its format at a mean bit rate of `rate`.
    pub fn format(&self, rate: Rate) -> VideoFormat {
        VideoFormat {
            rate,
            frames_per_s: self.frames_per_s,
            group_frames: self.group_frames,
            anchor_frames: self.anchor_frames,
            weights: self.weights,
            spread_percent: (self.spread.value() * 100.0).round() as u32,
        }
    }

    /// The viewer's playback settings.
    pub fn playback(&self) -> PlaybackConfig {
        PlaybackConfig { startup: self.startup, rebuffer: self.rebuffer }
    }
}
