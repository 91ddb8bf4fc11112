//! What users notice: stalls, and waiting.

use serde::{Deserialize, Serialize};
use simulator::traffic::Latencies;
use simulator::traffic::video::PlaybackStats;
use units::{Duration, Instant};

use crate::measure::statistics::mean;

/// What the viewers of videos saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VideoResults {
    /// Number of viewers.
    pub viewers: u32,
    /// How long after the video's start playback began, for the latest viewer; null if it never began for one of them.
    pub started_s: Option<f64>,
    /// How long a viewer at most waited for that, if it never began for one of them: that one waited for the whole
    /// available time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_s: Option<f64>,
    /// Number of stalls after that.
    pub stalls: u32,
    /// Total length of the stalls; the whole available time for a viewer for whom playback never began.
    pub stalled_s: f64,
    /// Frames that arrived completely.
    pub frames: u64,
    /// Video buffered at the end, for the viewer with the least.
    pub buffered_s: f64,
}

/// One viewer.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// What the viewer saw.
    pub stats: PlaybackStats,
    /// When the video began.
    pub from: Instant,
    /// Until when the viewer could have watched.
    pub until: Instant,
}

impl VideoResults {
    /// Results of all viewers together; `None` if there are none. Those whose video was over before it began, because
    /// the run was, had nothing to see and are none.
    pub fn of(viewers: impl IntoIterator<Item = Watched>) -> Option<Self> {
        let could_see = viewers.into_iter().filter(|viewer| viewer.from < viewer.until);
        let all = could_see.map(Self::from).reduce(|all, next| Self {
            viewers: all.viewers + next.viewers,
            started_s: all.started_s.zip(next.started_s).map(|(one, other)| one.max(other)),
            waited_s: all.waited_s.zip(next.waited_s).map(|(one, other)| one.max(other)),
            stalls: all.stalls + next.stalls,
            stalled_s: all.stalled_s + next.stalled_s,
            frames: all.frames + next.frames,
            buffered_s: all.buffered_s.min(next.buffered_s),
        })?;
        Some(Self { waited_s: all.waited_s.filter(|_| all.started_s.is_none()), ..all })
    }
}

impl From<Watched> for VideoResults {
    fn from(Watched { stats, from, until }: Watched) -> Self {
        let since_start_s = |at: Instant| at.saturating_since(from).as_secs_f64();
        let started_s = stats.started_at.map(since_start_s);
        let waited_s = started_s.unwrap_or_else(|| since_start_s(until));
        Self {
            viewers: 1,
            started_s,
            waited_s: Some(waited_s),
            stalls: stats.stalls,
            stalled_s: if started_s.is_some() { stats.stalled.as_secs_f64() } else { waited_s },
            frames: stats.arrived_frames,
            buffered_s: stats.level.as_secs_f64(),
        }
    }
}

/// Durations of responses or short flows. One that broke off, or was incomplete at the end, counts with its waiting
/// time so far, if that exceeds the mean of the completed ones: hanging ones are not left out. Their real duration is
/// longer. Where any of them count, the mean and the maximum are therefore lower bounds, as are the percentiles for
/// which [`Self::is_certain`] returns false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyResults {
    /// Number of completed ones.
    pub completed: u64,
    /// Number of incomplete ones that count nevertheless.
    #[serde(default)]
    pub unfinished: u64,
    /// Shortest waiting time of an incomplete one; null if all were complete.
    #[serde(default)]
    pub awaited_min_s: Option<f64>,
    /// Longest waiting time of an incomplete one.
    #[serde(default)]
    pub awaited_max_s: Option<f64>,
    /// Mean; null if there is nothing to count.
    pub mean_s: Option<f64>,
    /// Half of them took at most this long.
    pub median_s: Option<f64>,
    /// 95 % took at most this long.
    pub p95_s: Option<f64>,
    /// The longest duration.
    pub max_s: Option<f64>,
}

impl LatencyResults {
    /// Results of all sources together, at `end`; `None` if there are none.
    pub fn of<'a>(sources: impl IntoIterator<Item = &'a Latencies>, end: Instant) -> Option<Self> {
        let sources: Vec<&Latencies> = sources.into_iter().collect();
        let all: Vec<_> = sources.iter().map(|source| source.to_vec()).collect();
        let mut took_s: Vec<f64> = all.iter().flatten().map(|latency| latency.as_secs_f64()).collect();
        let completed = took_s.len() as u64;
        let mean_s = mean(&took_s).unwrap_or(0.0);
        let awaited_s = sources.iter().flat_map(|source| source.awaited(end)).map(Duration::as_secs_f64);
        let awaited_s: Vec<f64> = awaited_s.filter(|awaited_s| *awaited_s > mean_s).collect();
        took_s.extend(&awaited_s);
        took_s.sort_unstable_by(f64::total_cmp);
        (!sources.is_empty()).then(|| Self {
            completed,
            unfinished: awaited_s.len() as u64,
            awaited_min_s: awaited_s.iter().copied().reduce(f64::min),
            awaited_max_s: awaited_s.iter().copied().reduce(f64::max),
            ..Self::of_sorted(&took_s)
        })
    }

    /// Number that count, complete or not.
    pub fn asked(&self) -> u64 {
        self.completed + self.unfinished
    }

    /// Returns whether a percentile of `took_s` is exact rather than a lower bound: no shorter value belongs to an
    /// incomplete one.
    pub fn is_certain(&self, took_s: f64) -> bool {
        self.awaited_min_s.is_none_or(|awaited_s| took_s < awaited_s)
    }

    fn of_sorted(took_s: &[f64]) -> Self {
        let count = took_s.len();
        // Nearest rank: the smallest value that at least this share of values do not exceed.
        let percentile = |percent: usize| took_s.get((count * percent).div_ceil(100).saturating_sub(1)).copied();
        Self {
            completed: count as u64,
            mean_s: (count > 0).then(|| took_s.iter().sum::<f64>() / count as f64),
            median_s: percentile(50),
            p95_s: percentile(95),
            max_s: took_s.last().copied(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use simulator::traffic::{Answers, Draw, Reader};
    use units::Prng;

    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let took_s: Vec<f64> = (1..=20).map(f64::from).collect();
        let results = LatencyResults::of_sorted(&took_s);
        assert_eq!((results.completed, results.mean_s), (20, Some(10.5)));
        assert_eq!((results.median_s, results.p95_s, results.max_s), (Some(10.0), Some(19.0), Some(20.0)));
        assert_eq!(LatencyResults::of_sorted(&[]), LatencyResults::default());
        assert_eq!(LatencyResults::of([], Instant::ZERO), None);
    }

    /// Pages at 1 and 3 s, and one still missing after 10 s.
    #[test]
    fn what_hangs_is_not_left_out() {
        let (second, mut reader) = (Instant::from_secs, reader());
        for (asked_s, there_s, bytes) in [(0, 1, 10), (2, 5, 20)] {
            assert!(reader.asks(second(asked_s)));
            reader.received(bytes, second(there_s));
        }
        assert!(reader.asks(second(6)));
        let at = |end_s| LatencyResults::of([&reader.latencies()], second(end_s)).unwrap();
        // After one second, the third page says nothing yet.
        assert_eq!((at(7).completed, at(7).mean_s), (2, Some(2.0)));
        assert_eq!((at(16).completed, at(16).mean_s, at(16).max_s), (2, Some(14.0 / 3.0), Some(10.0)));
        assert_eq!((at(7).unfinished, at(7).awaited_min_s, at(7).is_certain(3.0)), (0, None, true));
        assert_eq!((at(16).unfinished, at(16).awaited_min_s, at(16).awaited_max_s), (1, Some(10.0), Some(10.0)));
        assert_eq!([3.0, 10.0, 11.0].map(|took_s| at(16).is_certain(took_s)), [true, false, false]);
    }

    fn reader() -> Reader {
        let answers = Answers::new(Draw::Constant(10.0), Prng::new(1));
        Reader::new(answers, Draw::Constant(1.0), Prng::new(2), Instant::ZERO)
    }

    #[test]
    fn viewers_add_up() {
        assert_eq!(VideoResults::of([]), None);
        let (from, until) = (Instant::ZERO, Instant::from_secs(9));
        let seen = |started_s, stalled_s| PlaybackStats {
            started_at: Some(Instant::from_secs(started_s)),
            stalls: 1,
            stalled: Duration::from_secs(stalled_s),
            arrived_frames: 10,
            ..PlaybackStats::default()
        };
        let both = VideoResults::of([seen(2, 3), seen(4, 1)].map(|stats| Watched { stats, from, until })).unwrap();
        assert_eq!((both.viewers, both.stalls, both.frames), (2, 2, 20));
        assert_eq!((both.started_s, both.waited_s, both.stalled_s), (Some(4.0), None, 4.0));
    }

    /// Of three viewers of a run of 10 s, one saw the video after 2 s and then stalled for half a second.
    #[test]
    fn a_viewer_who_never_saw_anything_waited_all_the_time() {
        let unseen = PlaybackStats::default();
        let seen = PlaybackStats {
            started_at: Some(Instant::from_secs(2)),
            stalled: Duration::from_millis(500),
            ..PlaybackStats::default()
        };
        let viewers =
            [unseen, unseen, seen].map(|stats| Watched { stats, from: Instant::ZERO, until: Instant::from_secs(10) });
        let all = VideoResults::of(viewers).unwrap();
        assert_eq!((all.started_s, all.waited_s, all.stalled_s), (None, Some(10.0), 20.5));
        let late = Watched { stats: seen, from: Instant::from_secs(1), until: Instant::from_secs(10) };
        assert_eq!(VideoResults::from(late).started_s, Some(1.0));
    }

    /// The run ended at 9 s: nobody waited for a video that was to begin then or later.
    #[test]
    fn a_video_that_did_not_begin_has_no_viewer() {
        let watched = |started_at: Option<u64>, from_s| Watched {
            stats: PlaybackStats { started_at: started_at.map(Instant::from_secs), ..PlaybackStats::default() },
            from: Instant::from_secs(from_s),
            until: Instant::from_secs(9),
        };
        assert_eq!([9, 10].map(|from_s| VideoResults::of([watched(None, from_s)])), [None, None]);
        let one_of_two = VideoResults::of([watched(None, 10), watched(Some(2), 0)]).unwrap();
        assert_eq!((one_of_two.viewers, one_of_two.started_s, one_of_two.stalled_s), (1, Some(2.0), 0.0));
        let short = VideoResults::of([watched(None, 8)]).unwrap();
        assert_eq!((short.started_s, short.waited_s), (None, Some(1.0)));
    }
}
