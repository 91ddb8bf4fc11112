//! Standard output for results, standard error for everything else.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lab::results::{RelaySeries, quantity, sparkline};
use lab::run::Progress;

/// Windows that the live view shows.
const WINDOWS: usize = 40;
/// Relays that the live view shows.
const RELAYS_MAX: usize = 16;
/// Steps of a progress bar.
const STEPS: u64 = 1000;

/// Writes results. A closed pipe is an error, not a panic.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes what is not a result.
pub fn complain(text: &str) -> io::Result<()> {
    io::stderr().lock().write_all(text.as_bytes())
}

/// A progress bar on standard error; invisible where that is no terminal.
pub struct Bar {
    bar: ProgressBar,
    seconds: &'static str,
}

impl Bar {
    /// A bar at its beginning; `seconds` says whose seconds they are.
    pub fn new(seconds: &'static str) -> Self {
        let bar = ProgressBar::new(STEPS);
        let template = "{bar:30} {percent:>3} %  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, seconds }
    }

    /// Moves it.
    pub fn show(&self, progress: Progress<'_>) {
        self.bar.set_position((progress.done_ratio * STEPS as f64) as u64);
        let megabytes = progress.delivered_bytes as f64 / 1e6;
        self.bar.set_message(format!(
            "{:.1} {}, {megabytes:.1} MB delivered",
            progress.now.as_secs_f64(),
            self.seconds
        ));
    }
}

/// What a run measures while it goes on, on standard error; the bar where that is no terminal.
pub struct LiveView {
    view: ProgressBar,
}

impl LiveView {
    /// A view without content.
    pub fn new() -> Self {
        let view = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %\n{msg}") {
            view.set_style(style);
        }
        Self { view }
    }

    /// Brings it up to date.
    pub fn show(&self, progress: Progress<'_>) {
        self.view.set_position((progress.done_ratio * STEPS as f64) as u64);
        let Some(live) = progress.live else { return };
        let mut rows = vec![
            ("throughput".to_string(), live.series.aggregate_throughput_bps.as_slice()),
            ("in order".to_string(), live.series.goodput_in_order_bps.as_slice()),
        ];
        let carries = |relay: &&RelaySeries| relay.carried_bps.iter().any(|bps| *bps > 0.0);
        let relays = live.relays.iter().filter(carries).take(RELAYS_MAX);
        rows.extend(relays.map(|relay| (relay.name.clone(), relay.carried_bps.as_slice())));
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let row = |(name, values): &(String, &[f64])| {
            let latest = &values[values.len().saturating_sub(WINDOWS)..];
            let most = latest.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            let now = quantity(latest.last().copied().unwrap_or(0.0), "bit/s");
            format!("{name:width$}  {:<WINDOWS$}  {now}", sparkline(latest, most))
        };
        let time_s = progress.now.as_secs_f64();
        let text = rows.iter().map(row).collect::<Vec<_>>().join("\n");
        self.view.set_message(format!("{time_s:.1} s simulated\n{text}"));
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.view.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
