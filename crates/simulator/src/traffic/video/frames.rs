//! Sizes of a video's frames.

use units::{Duration, Prng, Rate};

/// Format of a video in groups of pictures: an I frame, then P frames with B frames between them, in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoFormat {
    /// Mean bit rate.
    pub rate: Rate,
    /// Frames per second, at least 1.
    pub frames_per_s: u32,
    /// Frames from one I frame to the next, at least 1.
    pub group_frames: u32,
    /// Frames from one I or P frame to the next, at least 1; the frames between are B frames.
    pub anchor_frames: u32,
    /// Mean sizes of I, P and B frames, relative to each other.
    pub weights: [u32; 3],
    /// Each size is uniform within this percentage around the mean of its kind; 100 at most.
    pub spread_percent: u32,
}

impl Default for VideoFormat {
    /// 3 Mbit/s, 25 frames/s, groups of 12 with two B frames between anchors, sizes as 5 : 3 : 1 with a spread of 20 %.
    fn default() -> Self {
        Self {
            rate: Rate::from_mbps(3),
            frames_per_s: 25,
            group_frames: 12,
            anchor_frames: 3,
            weights: [5, 3, 1],
            spread_percent: 20,
        }
    }
}

impl VideoFormat {
    /// Returns how long `frames` frames are shown.
    pub fn span(&self, frames: u64) -> Duration {
        Duration::from_secs(1).mul_div(frames, self.frames_per_s.max(1).into())
    }

    /// Returns the weight of the frame at `place` in its group, from 0.
    pub fn weight(&self, place: u32) -> u64 {
        let kind = match place {
            0 => 0,
            _ if place % self.anchor_frames.max(1) == 0 => 1,
            _ => 2,
        };
        self.weights[kind].into()
    }
}

/// The sizes of a video's successive frames. Equal seeds give equal videos, so a receiver that counts octets knows
/// where each frame ends.
#[derive(Clone, Debug)]
pub struct FrameSizes {
    format: VideoFormat,
    /// Position of the next frame in its group.
    place: u32,
    group_bytes: u64,
    group_weight: u64,
    prng: Prng,
}

impl FrameSizes {
    /// Creates the frame sizes of the video with this format and seed.
    pub fn new(format: VideoFormat, seed: u64) -> Self {
        let group_frames = format.group_frames.max(1);
        let group_bytes = format.rate.bytes_in(format.span(group_frames.into()));
        let group_weight = (0..group_frames).map(|place| format.weight(place)).sum::<u64>().max(1);
        Self { format, place: 0, group_bytes, group_weight, prng: Prng::fork(seed, "video frames") }
    }

    /// Returns the format of the video.
    pub fn format(&self) -> &VideoFormat {
        &self.format
    }

    /// Returns the octets of the next frame, at least one.
    pub fn next_bytes(&mut self) -> u64 {
        let mean = self.group_bytes * self.format.weight(self.place) / self.group_weight;
        self.place = (self.place + 1) % self.format.group_frames.max(1);
        let spread = mean * u64::from(self.format.spread_percent.min(100)) / 100;
        (mean - spread + self.prng.below(2 * spread + 1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 24 frames/s in groups of 12 are half a second: 22,000 octets at 352 kbit/s, shared as 5 + 3 * 3 + 8 * 1 = 22.
    const FORMAT: VideoFormat = VideoFormat {
        rate: Rate::from_bps(352_000),
        frames_per_s: 24,
        group_frames: 12,
        anchor_frames: 3,
        weights: [5, 3, 1],
        spread_percent: 0,
    };

    #[test]
    fn a_group_is_shared_by_weight() {
        let mut sizes = FrameSizes::new(FORMAT, 1);
        let group: Vec<u64> = (0..13).map(|_| sizes.next_bytes()).collect();
        assert_eq!(group, [5000, 1000, 1000, 3000, 1000, 1000, 3000, 1000, 1000, 3000, 1000, 1000, 5000]);
        assert_eq!(FORMAT.span(36).as_millis(), 1500);
    }

    #[test]
    fn spread_keeps_the_rate() {
        let mut sizes = FrameSizes::new(VideoFormat { spread_percent: 50, ..FORMAT }, 1);
        let groups: Vec<Vec<u64>> = (0..2000).map(|_| (0..12).map(|_| sizes.next_bytes()).collect()).collect();
        assert!(groups.iter().all(|group| (2500..=7500).contains(&group[0]) && (500..=1500).contains(&group[1])));
        // Uniform deviations of 0.29 of each size: 2330 octets a group, that is 0.24 % of the mean of 2000 groups.
        let mean = groups.iter().flatten().sum::<u64>() as f64 / 2000.0;
        assert!((mean / 22_000.0 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_format_of_zeros_is_a_video_too() {
        let zeros = VideoFormat { rate: Rate::ZERO, frames_per_s: 0, group_frames: 0, anchor_frames: 0, ..FORMAT };
        assert_eq!(FrameSizes::new(VideoFormat { weights: [0; 3], ..zeros }, 1).next_bytes(), 1);
    }
}
