//! A playback buffer: when frames are shown, and when playback stalls.

use units::{Duration, Instant};

use super::VideoFormat;

/// Buffer levels at which playback starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaybackConfig {
    /// Level for the first start.
    pub startup: Duration,
    /// Level after the buffer ran empty.
    pub rebuffer: Duration,
}

impl Default for PlaybackConfig {
    /// Two seconds for the first start, one after a stall.
    fn default() -> Self {
        Self { startup: Duration::from_secs(2), rebuffer: Duration::from_secs(1) }
    }
}

/// Playback as a viewer saw it up to some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaybackStats {
    /// When the first frame was shown.
    pub started_at: Option<Instant>,
    /// Number of stalls, including the present one. The wait for the first frame does not count, nor does the time
    /// after the last.
    pub stalls: u32,
    /// Total duration of the stalls.
    pub stalled: Duration,
    /// Duration of the buffered frames.
    pub level: Duration,
    /// Frames that have arrived completely.
    pub arrived_frames: u64,
}

/// Shows frames at their rate while the buffer has any.
#[derive(Clone, Debug)]
pub struct Playback {
    format: VideoFormat,
    config: PlaybackConfig,
    state: State,
    /// The first frame of the latest uninterrupted run.
    first_frame: u64,
    arrived_frames: u64,
    finished: bool,
    started_at: Option<Instant>,
    stalls: u32,
    stalled: Duration,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The picture moves; the first frame of this run was shown at this time.
    Playing(Instant),
    /// The picture has stood still since this time.
    Waiting(Instant),
}

impl Playback {
    /// Creates a player for `format` without any frames.
    pub fn new(format: VideoFormat, config: PlaybackConfig) -> Self {
        Self {
            format,
            config,
            state: State::Waiting(Instant::ZERO),
            first_frame: 0,
            arrived_frames: 0,
            finished: false,
            started_at: None,
            stalls: 0,
            stalled: Duration::ZERO,
        }
    }

    /// Adds a frame that has arrived completely.
    pub fn frame_arrived(&mut self, now: Instant) {
        self.advance(now);
        self.arrived_frames += 1;
        self.play_if_enough(now);
    }

    /// Ends the stream: no more frames come, so the rest is shown, however short.
    pub fn stream_ended(&mut self, now: Instant) {
        self.advance(now);
        self.finished = true;
        self.play_if_enough(now);
    }

    /// Returns the statistics up to `now`, which must not be before the latest call.
    pub fn stats(&self, now: Instant) -> PlaybackStats {
        let mut until_now = self.clone();
        until_now.advance(now);
        until_now.stats_now(now)
    }

    fn stats_now(&self, now: Instant) -> PlaybackStats {
        let buffered = self.format.span(self.arrived_frames - self.first_frame);
        let (level, stall) = match self.state {
            State::Playing(since) => (buffered.saturating_sub(now.saturating_since(since)), None),
            State::Waiting(since) => (buffered, self.stall_since(since, now)),
        };
        PlaybackStats {
            started_at: self.started_at,
            stalls: self.stalls + u32::from(stall.is_some()),
            stalled: self.stalled + stall.unwrap_or_default(),
            level,
            arrived_frames: self.arrived_frames,
        }
    }

    /// How long the picture has stood still, unless it never moved or the video is over.
    fn stall_since(&self, since: Instant, now: Instant) -> Option<Duration> {
        let over = self.finished && self.arrived_frames == self.first_frame;
        self.started_at.filter(|_| !over).map(|_| now.saturating_since(since))
    }

    /// Records whether the buffer ran empty before `now`. A frame that arrives when it is due is in time.
    fn advance(&mut self, now: Instant) {
        if let State::Playing(since) = self.state {
            let empty_at = since + self.format.span(self.arrived_frames - self.first_frame);
            if empty_at < now {
                self.state = State::Waiting(empty_at);
                self.first_frame = self.arrived_frames;
            }
        }
    }

    fn play_if_enough(&mut self, now: Instant) {
        let State::Waiting(since) = self.state else { return };
        let needed = if self.started_at.is_some() { self.config.rebuffer } else { self.config.startup };
        let frames = self.arrived_frames - self.first_frame;
        if frames == 0 || !self.finished && self.format.span(frames) < needed {
            return;
        }
        if let Some(stall) = self.stall_since(since, now) {
            self.stalls += 1;
            self.stalled += stall;
        }
        self.started_at.get_or_insert(now);
        self.state = State::Playing(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Ten frames a second; two frames for the first start, and two after a stall.
    fn playback() -> Playback {
        let config = PlaybackConfig { startup: Duration::from_millis(200), rebuffer: Duration::from_millis(200) };
        Playback::new(VideoFormat { frames_per_s: 10, ..VideoFormat::default() }, config)
    }

    /// Stalls, their duration, and the level; ms.
    fn seen(playback: &Playback, at_ms: u64) -> (u32, u64, u64) {
        let stats = playback.stats(ms(at_ms));
        (stats.stalls, stats.stalled.as_millis(), stats.level.as_millis())
    }

    #[test]
    fn the_picture_moves_when_enough_is_buffered() {
        let mut playback = playback();
        playback.frame_arrived(ms(30));
        assert_eq!((playback.stats(ms(70)).started_at, seen(&playback, 70)), (None, (0, 0, 100)));
        playback.frame_arrived(ms(130));
        assert_eq!((playback.stats(ms(130)).started_at, seen(&playback, 180)), (Some(ms(130)), (0, 0, 150)));
    }

    #[test]
    fn a_late_frame_stalls_the_picture_until_enough_is_buffered_again() {
        let mut playback = playback();
        playback.frame_arrived(ms(0));
        playback.frame_arrived(ms(100));
        // Played from 100 ms on: empty at 300 ms.
        assert_eq!(seen(&playback, 300), (0, 0, 0));
        assert_eq!(seen(&playback, 340), (1, 40, 0));
        playback.frame_arrived(ms(350));
        assert_eq!(seen(&playback, 360), (1, 60, 100));
        playback.frame_arrived(ms(420));
        assert_eq!(seen(&playback, 600), (1, 120, 20));
        playback.frame_arrived(ms(620));
        assert_eq!(seen(&playback, 620), (1, 120, 100));
        assert_eq!(seen(&playback, 725), (2, 125, 0));
    }

    #[test]
    fn frames_in_time_never_stall() {
        let mut playback = playback();
        (0..50).for_each(|frame| playback.frame_arrived(ms(frame * 100)));
        assert_eq!(seen(&playback, 4900), (0, 0, 200));
    }

    #[test]
    fn the_end_of_the_video_is_no_stall() {
        let mut playback = playback();
        playback.frame_arrived(ms(0));
        playback.stream_ended(ms(50));
        // The only frame is shown at once.
        assert_eq!((playback.stats(ms(60)).started_at, seen(&playback, 60)), (Some(ms(50)), (0, 0, 90)));
        assert_eq!(seen(&playback, 10_000), (0, 0, 0));
    }
}
