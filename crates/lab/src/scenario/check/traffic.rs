//! Checks quantities of traffic of any kind.

use units::{ByteCount, Duration, Rate};

use crate::scenario::vary::{draw_of, most};
use crate::scenario::{Quantity, Varied, Video};

/// Maximum rate of a source; beyond it, a run would mostly simulate sources instead of a network.
const RATE_MAX: Rate = Rate::from_mbps(10_000);
/// Maximum size of one response or short flow, octets.
const SIZE_MAX: ByteCount = ByteCount(1 << 40);
/// Longest pause: a day, like the longest run.
const PAUSE_MAX: Duration = Duration::from_secs(86_400);
/// Maximum number of frames per second, and of frames in a group.
const FRAMES_MAX: u32 = 1000;

/// The problem with a video of rate zero.
pub(super) const NO_PICTURE: &str = "a video without a rate has no picture";
/// The remedy for that.
pub(super) const NO_PICTURE_REMEDY: &str = "write a rate above zero, like \"2 Mbit/s\"";

/// A callback that takes a field, a problem and a remedy.
pub(super) trait Refuse: FnMut(&str, String, &str) {}

impl<F: FnMut(&str, String, &str)> Refuse for F {}

pub(super) fn check_rate(rate: Rate, name: &str, refuse: &mut impl Refuse) {
    if rate > RATE_MAX {
        refuse(name, format!("{rate} is too high for a source"), &format!("write at most \"{RATE_MAX}\""));
    }
}

/// A quantity with a maximum.
pub(super) trait Bounded: Quantity {
    const MOST: Self;
    const EXAMPLE: &'static str;
}

impl Bounded for ByteCount {
    const MOST: Self = SIZE_MAX;
    const EXAMPLE: &'static str =
        "write a size, like \"20 kB\", { exponential = \"20 kB\" } or { pareto = [\"1 kB\", \"1 MB\"] }";
}

impl Bounded for Duration {
    const MOST: Self = PAUSE_MAX;
    const EXAMPLE: &'static str =
        "write a time up to \"24 h\", like \"2 s\", { exponential = \"2 s\" } or { uniform = [\"1 s\", \"3 s\"] }";
}

pub(super) fn refuse_varied<T: Bounded>(varied: Option<&Varied<T>>, name: &str, refuse: &mut impl Refuse) {
    let Some(varied) = varied else { return };
    match draw_of(varied) {
        Err(problem) => refuse(name, problem.into(), T::EXAMPLE),
        Ok(draw) if most(draw) > Quantity::value(T::MOST) => refuse(name, "is too large".into(), T::EXAMPLE),
        Ok(_) => {}
    }
}

pub(super) fn check_video(video: &Video, refuse: &mut impl Refuse) {
    let counts = [
        ("frames_per_s", video.frames_per_s),
        ("group_frames", video.group_frames),
        ("anchor_frames", video.anchor_frames),
    ];
    for (name, count) in counts {
        if count == 0 || count > FRAMES_MAX {
            refuse(&format!("video.{name}"), format!("{count} is not a valid number of frames"), "write 1 to 1000");
        }
    }
    let format = video.format(Rate::ZERO);
    if video.weights.iter().all(|weight| *weight == 0) || video.weights.iter().any(|weight| *weight > FRAMES_MAX) {
        refuse("video.weights", "are not valid weights of frames".into(), "write numbers up to 1000, like [5, 3, 1]");
    } else if (0..video.group_frames.clamp(1, FRAMES_MAX)).all(|place| format.weight(place) == 0) {
        let problem = "every frame has weight zero: a group has none of the other kinds";
        refuse("video.weights", problem.into(), "write weights above zero for I, P and B frames, like [5, 3, 1]");
    }
    for (name, span) in [("startup", video.startup), ("rebuffer", video.rebuffer)] {
        if span > PAUSE_MAX {
            refuse(&format!("video.{name}"), format!("{span} is too long a wait"), "write a time like \"2 s\"");
        }
    }
}
