//! Standard output for results, standard error for everything else.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lab::run::Progress;

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
    pub fn show(&self, progress: Progress) {
        self.bar.set_position((progress.done_ratio * STEPS as f64) as u64);
        let megabytes = progress.delivered_bytes as f64 / 1e6;
        self.bar.set_message(format!(
            "{:.1} {}, {megabytes:.1} MB delivered",
            progress.now.as_secs_f64(),
            self.seconds
        ));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
