//! Standard output for results, standard error for everything else.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use lab::measure::results::RelaySeries;
use lab::present::{quantity, sparkline};
use lab::run::Progress;

/// Maximum number of windows in the live view.
const WINDOWS: usize = 40;
/// Columns for the rate after the windows.
const RATE_COLUMNS: usize = 11;
/// Lines for the bar, the time and the cursor.
const BAR_LINES: usize = 3;
/// Maximum number of relays in the live view.
const RELAYS_MAX: usize = 16;
/// Lines for a whole run without a terminal.
const LINES: u64 = 10;
/// Time between lines about many runs without a terminal.
const LINES_EVERY: Duration = Duration::from_secs(30);
/// Steps of a progress bar.
const STEPS: u64 = 1000;

/// Writes results. A closed pipe is an error, not a panic.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
}

/// Writes everything that is not a result.
pub fn complain(text: &str) -> io::Result<()> {
    io::stderr().lock().write_all(text.as_bytes())
}

/// A progress bar on standard error; invisible if that is not a terminal.
pub struct Bar {
    bar: ProgressBar,
    seconds: &'static str,
}

impl Bar {
    /// Creates a bar at zero; `seconds` names the kind of seconds.
    pub fn new(seconds: &'static str) -> Self {
        let bar = ProgressBar::new(STEPS);
        let template = "{bar:30} {percent:>3} %  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, seconds }
    }

    /// Updates the bar.
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

/// Progress of a download, on standard error; invisible if that is not a terminal.
pub struct DownloadBar(ProgressBar);

impl DownloadBar {
    /// Creates a bar without a length.
    pub fn new() -> Self {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Updates the bar.
    pub fn show(&self, progress: linux::get::Progress) {
        let Self(bar) = self;
        if bar.is_hidden() {
            return;
        }
        if let Some(total) = progress.total_bytes {
            bar.set_length(total);
        }
        bar.set_position(progress.bytes);
        let total = progress.total_bytes.map_or(String::new(), |total| format!(" of {}", quantity(total as f64, "B")));
        let (bytes, rate) = (quantity(progress.bytes as f64, "B"), quantity(bar.per_sec() * 8.0, "bit/s"));
        bar.set_message(format!("{bytes}{total}, {rate}, {} s left", bar.eta().as_secs()));
    }
}

impl Drop for DownloadBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Progress of many runs, on standard error: a bar on a terminal, otherwise a line every half minute.
pub struct RunsBar {
    bar: ProgressBar,
    what: String,
    /// Runs that an earlier start finished.
    before: Cell<Option<usize>>,
    /// When the latest line was due, since the beginning.
    told_at: Cell<Duration>,
}

impl RunsBar {
    /// Creates a bar at zero that counts `what`.
    pub fn new(what: &str) -> Self {
        let bar = ProgressBar::new(0);
        let template = format!("{{bar:30}} {{pos}}/{{len}} {what}{{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, what: what.into(), before: Cell::new(None), told_at: Cell::new(Duration::ZERO) }
    }

    /// Updates the bar, or writes a line if one is due.
    pub fn show(&self, progress: lab::run::sweep::Progress) {
        let message = self.message(progress, self.bar.elapsed());
        if let Some(line) = self.line(progress, self.bar.elapsed()).filter(|_| !io::stderr().is_terminal()) {
            // An error means that standard error is closed.
            let _ = complain(&line);
        }
        self.bar.set_length(progress.all as u64);
        self.bar.set_position(progress.finished as u64);
        self.bar.set_message(message);
    }

    /// The line that is due after `elapsed`, if one is.
    fn line(&self, progress: lab::run::sweep::Progress, elapsed: Duration) -> Option<String> {
        let message = self.message(progress, elapsed);
        if elapsed < self.told_at.get() + LINES_EVERY {
            return None;
        }
        self.told_at.set(elapsed);
        Some(format!("{}/{} {}{message}\n", progress.finished, progress.all, self.what))
    }

    /// How long the rest takes, and how many runs had faults.
    fn message(&self, progress: lab::run::sweep::Progress, elapsed: Duration) -> String {
        let before = self.before.get().unwrap_or(progress.finished);
        self.before.set(Some(before));
        let left = left(elapsed, progress.finished - before, progress.all - progress.finished);
        let left = left.map_or(String::new(), |left| format!(", {} left", HumanDuration(left)));
        let faulty = if progress.faulty > 0 { format!("  {} with faults", progress.faulty) } else { String::new() };
        format!("{left}{faulty}")
    }
}

/// Estimates how long `missing` runs take if `ran` took `elapsed`; `None` before the first.
fn left(elapsed: Duration, ran: usize, missing: usize) -> Option<Duration> {
    (ran > 0).then(|| elapsed.mul_f64(missing as f64 / ran as f64))
}

impl Drop for RunsBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Measurements during a run, on standard error: an updated picture on a terminal, otherwise a line from time to time.
pub struct LiveView {
    shape: Shape,
    seconds: &'static str,
}

enum Shape {
    Picture(ProgressBar),
    /// Number of lines written so far.
    Lines(Cell<u64>),
}

impl LiveView {
    /// Creates an empty view; `seconds` names the kind of seconds.
    pub fn new(seconds: &'static str) -> Self {
        if !io::stderr().is_terminal() {
            return Self { shape: Shape::Lines(Cell::new(0)), seconds };
        }
        let view = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %\n{msg}") {
            view.set_style(style);
        }
        Self { shape: Shape::Picture(view), seconds }
    }

    /// Updates the view.
    pub fn show(&self, progress: Progress<'_>) {
        match &self.shape {
            Shape::Picture(view) => {
                view.set_position((progress.done_ratio * STEPS as f64) as u64);
                if progress.live.is_some() {
                    view.set_message(picture(progress, self.seconds, room()));
                }
            }
            Shape::Lines(written) => {
                let due = (progress.done_ratio * LINES as f64) as u64;
                if due > written.get() && progress.live.is_some() {
                    written.set(due);
                    // An error means that standard error is closed.
                    let _ = complain(&line(progress, self.seconds));
                }
            }
        }
    }
}

/// Returns names and values for the view: the connection, then the relays that carry data.
fn rows<'a>(progress: &Progress<'a>) -> Vec<(String, &'a [f64])> {
    let Some(live) = progress.live else { return Vec::new() };
    let mut rows = vec![
        ("throughput".to_string(), live.series.aggregate_throughput_bps.as_slice()),
        ("in order".to_string(), live.series.goodput_in_order_bps.as_slice()),
    ];
    let carries = |relay: &&RelaySeries| relay.carried_bps.iter().any(|bps| *bps > 0.0);
    let relays = live.relays.iter().filter(carries).take(RELAYS_MAX);
    rows.extend(relays.map(|relay| (relay.name.clone(), relay.carried_bps.as_slice())));
    rows
}

/// Returns columns and lines of the terminal; by default those of a classic terminal.
fn room() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Draws one row per value, with as many of the latest windows as columns allow, and as many rows as fit beside the bar
/// and the time.
fn picture(progress: Progress<'_>, seconds: &str, (columns, lines): (usize, usize)) -> String {
    let mut rows = rows(&progress);
    rows.truncate(lines.saturating_sub(BAR_LINES));
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = widest.min(columns.saturating_sub(RATE_COLUMNS + 2));
    let windows = columns.saturating_sub(width + RATE_COLUMNS + 4).min(WINDOWS);
    let row = |(name, values): &(String, &[f64])| {
        let latest = &values[values.len().saturating_sub(windows)..];
        let most = latest.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let now = quantity(values.last().copied().unwrap_or(0.0), "bit/s");
        // A longer row would take a second line.
        match windows {
            0 => format!("{name:width$.width$}  {now}"),
            _ => format!("{name:width$}  {:<windows$}  {now}", sparkline(latest, most)),
        }
    };
    let text = rows.iter().map(row).collect::<Vec<_>>().join("\n");
    format!("{:.1} {seconds}\n{text}", progress.now.as_secs_f64())
}

/// Formats all current values in one line.
fn line(progress: Progress<'_>, seconds: &str) -> String {
    let now = |values: &[f64]| quantity(values.last().copied().unwrap_or(0.0), "bit/s");
    let parts: Vec<String> = rows(&progress).iter().map(|(name, values)| format!("{name} {}", now(values))).collect();
    let percent = progress.done_ratio * 100.0;
    format!("{percent:.0} %, {:.1} {seconds}: {}\n", progress.now.as_secs_f64(), parts.join(", "))
}

impl Drop for LiveView {
    fn drop(&mut self) {
        if let Shape::Picture(view) = &self.shape {
            view.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use lab::measure::results::Series;
    use lab::run::Live;
    use units::Instant;

    use super::*;

    fn shown(show: impl Fn(Progress<'_>) -> String) -> String {
        let series = Series {
            aggregate_throughput_bps: vec![0.0, 4e6, 8e6],
            goodput_in_order_bps: vec![0.0, 0.0, 2.5e6],
            ..Series::default()
        };
        let relay = |name: &str, carried_bps: Vec<f64>| RelaySeries {
            name: name.into(),
            carried_bps,
            ..RelaySeries::default()
        };
        let relays = [relay("amber", vec![0.0, 4e6, 8e6]), relay("idle", vec![0.0; 3])];
        let live = Some(Live { series: &series, relays: &relays });
        show(Progress { now: Instant::from_micros(1_500_000), delivered_bytes: 7, done_ratio: 0.3, live })
    }

    /// An earlier start finished 90 of 100 runs; two more took 10 s, so eight take 40 s.
    #[test]
    fn runs_of_an_earlier_start_took_no_time_of_this_one() {
        assert_eq!(left(Duration::from_secs(10), 2, 8), Some(Duration::from_secs(40)));
        assert_eq!(left(Duration::from_secs(10), 0, 10), None);
        let bar = RunsBar::new("runs");
        let show = |finished| bar.show(lab::run::sweep::Progress { finished, all: 100, faulty: 0 });
        show(90);
        assert_eq!((bar.before.get(), bar.bar.message().as_str()), (Some(90), ""));
        show(91);
        assert!(bar.before.get() == Some(90) && bar.bar.message().ends_with(" left"), "{}", bar.bar.message());
    }

    #[test]
    fn many_runs_without_a_terminal_are_a_line_every_half_minute() {
        let bar = RunsBar::new("runs");
        let line = |finished, faulty, seconds| {
            bar.line(lab::run::sweep::Progress { finished, all: 100, faulty }, Duration::from_secs(seconds))
        };
        assert_eq!((line(90, 0, 0), line(91, 0, 29)), (None, None));
        assert_eq!(line(92, 1, 30).as_deref(), Some("92/100 runs, 2 minutes left  1 with faults\n"));
        assert_eq!(line(93, 1, 59), None);
        assert!(line(94, 1, 60).is_some());
    }

    #[test]
    fn the_picture_has_a_row_for_the_connection_and_for_every_relay_that_carries() {
        let pad = " ".repeat(37);
        let wanted = format!(
            "1.5 s simulated\nthroughput   ▄█{pad}  8.00 Mbit/s\nin order      █{pad}  2.50 Mbit/s\n\
             amber        ▄█{pad}  8.00 Mbit/s"
        );
        assert_eq!(shown(|progress| picture(progress, "s simulated", (80, 24))), wanted);
        // A small terminal.
        let small = shown(|progress| picture(progress, "s simulated", (20, 5)));
        let rows: Vec<&str> = small.lines().skip(1).collect();
        assert_eq!(rows.len(), 2, "{small}");
        assert!(rows.iter().all(|row| row.chars().count() <= 20) && rows[0] == "through  8.00 Mbit/s", "{small}");
    }

    #[test]
    fn without_a_terminal_it_is_a_line() {
        let wanted = "30 %, 1.5 s: throughput 8.00 Mbit/s, in order 2.50 Mbit/s, amber 8.00 Mbit/s\n";
        assert_eq!(shown(|progress| line(progress, "s")), wanted);
    }
}
