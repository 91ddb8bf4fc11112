//! A short transfer over each uplink, one after the other.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::thread;

use linux::clock::Clock;
use linux::get::{GetOptions, Output, find, get_from};
use linux::http::Url;
use linux::stop::Stop;
use linux::uplink::Uplink;
use linux::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::{Duration, Instant};

use super::facts::{Facts, Rate, SMALL_MTU};

/// Limits of a transfer: enough to see the rate, without using much of the data plan.
const BYTES_MAX: u64 = 5_000_000;
const SECONDS_MAX: i64 = 5;
/// What a rate takes, unless a limit ended the transfer: the first octets come in bursts, as slow start sends them.
const TIMED_BYTES_MIN: u64 = 100_000;
const DURATION_MIN: Duration = Duration::from_millis(500);

/// Times the octets that arrive after the first ones: how long those took, only the server knows.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    /// When the first octets arrived, and how many.
    first: Option<(Instant, u64)>,
    bytes: u64,
    ended: Instant,
}

impl Meter {
    /// Notes the number of octets that have arrived by `now`.
    fn note(&mut self, bytes: u64, now: Instant) {
        if bytes > 0 {
            self.first.get_or_insert((now, bytes));
            (self.bytes, self.ended) = (bytes, now);
        }
    }

    /// Returns the result. `is_whole`: the transfer was not cut off by a limit.
    fn rate(&self, uplink: &str, is_whole: bool, failed: Option<String>) -> Rate {
        let (began, first_bytes) = self.first.unwrap_or((self.ended, 0));
        let (timed_bytes, duration) = (self.bytes - first_bytes, self.ended.saturating_since(began));
        let is_long = duration >= DURATION_MIN && (timed_bytes >= TIMED_BYTES_MIN || !is_whole && timed_bytes > 0);
        let suffices = is_long || self.bytes >= BYTES_MAX && timed_bytes > TIMED_BYTES_MIN;
        Rate { uplink: uplink.into(), bytes: self.bytes, timed_bytes, duration, suffices, failed, bytes_small: 0 }
    }
}

/// Fetches part of `url` over each uplink.
///
/// # Errors
/// If the user interrupts it.
pub fn measure(url: &Url, uplinks: &[Uplink], facts: &mut Facts, stop: &Stop, say: &dyn Fn(&str)) -> Result<()> {
    if !facts.machine.is_plumbed {
        facts.left_out.push("the transfer of --measure: the engine could not be connected".into());
        return Ok(());
    }
    for uplink in uplinks {
        say(&format!("fetching part of {url} over {}", uplink.interface));
        let (mut rate, is_stalled) = over(url, &uplink.interface, None, stop)?;
        if is_stalled {
            say("nothing arrives; trying with small packets");
            rate.bytes_small = over(url, &uplink.interface, Some(SMALL_MTU), stop)?.0.bytes;
        }
        facts.rates.push(rate);
    }
    Ok(())
}

/// Runs one transfer with packets of at most `mtu` octets. Also returns whether it stalled: nothing arrived in time,
/// although the connection may have been established.
fn over(url: &Url, uplink: &str, mtu: Option<u16>, stop: &Stop) -> Result<(Rate, bool)> {
    let options = GetOptions {
        url: url.clone(),
        output: Output::File(PathBuf::from("/dev/null")),
        via: Vec::new(),
        interfaces: vec![uplink.to_owned()],
        resume: false,
        engine: linux::EngineOptions { mtu, ..linux::EngineOptions::default() },
    };
    // Outside the time limit, which is one for the transfer: the resolver may have to wait for a silent name server.
    let remotes = match find(&options, stop) {
        Ok(remotes) => remotes,
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(error) => return Ok((Meter::default().rate(uplink, false, Some(error.to_string())), false)),
    };
    let (limit, over) = (Stop::new()?, Stop::new()?);
    let (enough, too_long, end) = (limit.handle()?, limit.handle()?, over.handle()?);
    let clock = Clock::start();
    let mut meter = Meter::default();
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            let mut fds = [&over, stop].map(|stop| PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN));
            let _ = poll(&mut fds, Some(&Timespec { tv_sec: SECONDS_MAX, tv_nsec: 0 }));
            too_long.stop();
        });
        let outcome = get_from(&remotes, &options, &limit, &mut |progress| {
            meter.note(progress.bytes, clock.now());
            if progress.bytes >= BYTES_MAX {
                enough.stop();
            }
        });
        end.stop();
        outcome
    });
    if stop.is_triggered() {
        return Err(Error::Interrupted);
    }
    let is_stalled = meter.bytes == 0 && matches!(outcome, Err(Error::Interrupted));
    let is_whole = outcome.is_ok();
    let failed = match outcome {
        Err(Error::Interrupted) if meter.bytes == 0 => Some(format!("nothing arrived within {SECONDS_MAX} s")),
        Ok(_) | Err(Error::Interrupted) => None,
        Err(error) => Some(error.to_string()),
    };
    Ok((meter.rate(uplink, is_whole, failed), is_stalled))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of a transfer from the octets that have arrived by some milliseconds.
    fn rate(arrived: &[(u64, u64)], is_whole: bool) -> (u64, u64, bool) {
        let mut meter = Meter::default();
        arrived.iter().for_each(|(ms, bytes)| meter.note(*bytes, Instant::from_millis(*ms)));
        let rate = meter.rate("a", is_whole, None);
        (rate.timed_bytes, rate.duration.as_micros() / 1000, rate.suffices)
    }

    #[test]
    fn only_octets_after_the_first_ones_count_and_enough_of_them() {
        assert_eq!(rate(&[], true), (0, 0, false));
        assert_eq!(rate(&[(40, 1_256)], true), (0, 0, false), "all at once");
        assert_eq!(rate(&[(40, 14_600), (80, 40_000), (640, 90_000)], true), (75_400, 600, false));
        assert_eq!(rate(&[(40, 14_600), (80, 400_000)], true), (385_400, 40, false));
        assert_eq!(rate(&[(0, 0), (40, 14_600), (640, 400_000)], true), (385_400, 600, true));
        // Slow: cut off after five seconds.
        assert_eq!(rate(&[(400, 1_000), (5_000, 41_000)], false), (40_000, 4_600, true));
        assert_eq!(rate(&[(4_900, 1_000), (5_000, 2_000)], false), (1_000, 100, false));
        // Fast: cut off after five megabytes.
        assert_eq!(rate(&[(10, 14_600), (100, 5_000_100)], false), (4_985_500, 90, true));
    }
}
