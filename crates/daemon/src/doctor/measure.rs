//! A short transfer over each uplink, one after the other.

use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::thread;

use linux::clock::Clock;
use linux::get::{GetOptions, Output, get};
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
    let (limit, over) = (Stop::new()?, Stop::new()?);
    let (enough, too_long, end) = (limit.handle()?, limit.handle()?, over.handle()?);
    let clock = Clock::start();
    let (mut bytes, mut began, mut ended) = (0, None, Instant::ZERO);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            let mut fds = [&over, stop].map(|stop| PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN));
            let _ = poll(&mut fds, Some(&Timespec { tv_sec: SECONDS_MAX, tv_nsec: 0 }));
            too_long.stop();
        });
        let outcome = get(&options, &limit, &mut |progress| {
            began.get_or_insert_with(|| clock.now());
            (bytes, ended) = (progress.bytes, clock.now());
            if bytes >= BYTES_MAX {
                enough.stop();
            }
        });
        end.stop();
        outcome
    });
    if stop.is_triggered() {
        return Err(Error::Interrupted);
    }
    let is_stalled = bytes == 0 && matches!(outcome, Err(Error::Interrupted));
    let failed = match outcome {
        Err(Error::Interrupted) if bytes == 0 => Some(format!("nothing arrived within {SECONDS_MAX} s")),
        Ok(_) | Err(Error::Interrupted) => None,
        Err(error) => Some(error.to_string()),
    };
    let duration = began.map_or(Duration::ZERO, |began| ended.saturating_since(began));
    Ok((Rate { uplink: uplink.into(), bytes, duration, failed, bytes_small: 0 }, is_stalled))
}
