//! `anabranch status --watch`: the status, updated every second, with the history of the last minutes.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::IsTerminal as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use daemon::control;
use linux::stop::Stop;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, Cell, Paragraph, Row as Line, Sparkline, Table, Wrap};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Samples;
use super::table::{self, Row, Sample};
use crate::failure::Failure;

const PERIOD: Duration = Duration::from_secs(1);
/// Seconds of history.
const COURSE: usize = 300;
/// Lines of an uplink's history.
const COURSE_LINES: u16 = 3;
/// Columns between two columns of the table.
const SPACING: u16 = 2;
/// Maximum number of lines of text below the table.
const WORDS_LINES: u16 = 8;

/// The display of one daemon.
struct View {
    columns: &'static [&'static str],
    dispensable: &'static [usize],
    rows: Vec<Row>,
    /// Text below the table.
    words: Vec<String>,
    device: String,
    /// The daemon did not answer the last request.
    is_silent: bool,
    courses: BTreeMap<String, VecDeque<u64>>,
}

/// Shows the daemons, beginning with these samples, until q, Esc, Ctrl-C or a signal, until the terminal disappears, or
/// until one of them has ended.
pub fn watch(samples: Samples) -> Result<(), Failure> {
    let (devices, mut before): (Vec<String>, Vec<Sample>) = samples.into_iter().unzip();
    let mut views: Vec<View> = before.iter().map(View::new).collect();
    let stop = Stop::on_signals()?;
    let keys = Keys::open()?;
    let mut terminal = ratatui::try_init()?;
    let shown = show(&devices, &mut before, &mut views, &mut terminal, (&stop, &keys));
    ratatui::restore();
    shown
}

fn show(
    devices: &[String],
    before: &mut [Sample],
    views: &mut [View],
    terminal: &mut DefaultTerminal,
    (stop, keys): (&Stop, &Keys),
) -> Result<(), Failure> {
    loop {
        terminal.draw(|frame| draw(frame, views))?;
        if keys.end_it(stop)? {
            return Ok(());
        }
        for ((view, before), device) in views.iter_mut().zip(&mut *before).zip(devices) {
            match super::look(device) {
                Ok(status) => {
                    let now = Sample::new(status);
                    view.look(before, &now);
                    *before = now;
                }
                // A daemon that is stopped or busy may continue later.
                Err(_) if control::running()?.contains(device) => view.is_silent = true,
                Err(ended) => return Err(ended),
            }
        }
    }
}

/// Keyboard input.
struct Keys(OwnedFd);

impl Keys {
    /// Opens the terminal itself if standard input is something else.
    fn open() -> Result<Self, Failure> {
        let input = std::io::stdin();
        Ok(Self(if input.is_terminal() { input.as_fd().try_clone_to_owned()? } else { File::open("/dev/tty")?.into() }))
    }

    /// Waits for the next second. Returns whether to end: on a key or a signal, or because the terminal has
    /// disappeared. It does not read from a terminal that has disappeared: that would never end.
    fn end_it(&self, stop: &Stop) -> Result<bool, Failure> {
        let mut fds = [stop.as_fd(), self.0.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let span = Timespec { tv_sec: PERIOD.as_secs() as i64, tv_nsec: PERIOD.subsec_nanos().into() };
        match poll(&mut fds, Some(&span)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(std::io::Error::from(errno).into()),
        }
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        if !fds[0].revents().is_empty() || fds[1].revents().intersects(gone) {
            return Ok(true);
        }
        // A change of size arrives as an event, too.
        while event::poll(Duration::ZERO)? {
            if is_enough(&event::read()?) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_enough(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

impl View {
    fn new(sample: &Sample) -> Self {
        Self {
            columns: table::columns(sample),
            dispensable: table::dispensable(sample),
            rows: table::rows(sample, sample),
            words: words(&table::rows(sample, sample), sample),
            device: format!("{}{}", sample.device(), table::target(sample)),
            is_silent: false,
            courses: BTreeMap::new(),
        }
    }

    fn look(&mut self, before: &Sample, now: &Sample) {
        self.rows = table::rows(before, now);
        self.words = words(&self.rows, now);
        self.device = format!("{}{}", now.device(), table::target(now));
        self.is_silent = false;
        // A relay's destination may have been removed, and an uplink's place be another's now.
        self.courses.retain(|name, _| self.rows.iter().any(|row| row.cells[0] == *name));
        for row in &self.rows {
            let course = self.courses.entry(row.cells[0].clone()).or_default();
            course.push_back((row.down_rate * 8.0) as u64);
            if course.len() > COURSE {
                course.pop_front();
            }
        }
    }
}

/// Returns the text below the table, one line each.
fn words(rows: &[Row], now: &Sample) -> Vec<String> {
    let troubles = rows.iter().filter_map(|row| Some(format!("{} {}", row.cells[0], row.trouble.as_ref()?)));
    troubles.chain([table::clients(now)]).chain(table::links(now)).collect()
}

fn draw(frame: &mut Frame<'_>, views: &[View]) {
    let areas = Layout::vertical(views.iter().map(|_| Constraint::Fill(1))).split(frame.area());
    for (view, area) in views.iter().zip(areas.iter()) {
        let rows = u16::try_from(view.rows.len()).unwrap_or(u16::MAX);
        let words = Paragraph::new(view.words.join("\n")).wrap(Wrap { trim: true });
        let lines_of = |line: &String| line.chars().count() / usize::from(area.width.max(1)) + 1;
        let lines: usize = view.words.iter().map(lines_of).sum();
        let lines = u16::try_from(lines).unwrap_or(u16::MAX).min(WORDS_LINES);
        // If there is little room, uplinks come first.
        let table_lines = rows.saturating_add(3).min(area.height);
        let lines = lines.min(area.height - table_lines);
        let parts = Layout::vertical([Constraint::Length(table_lines), Constraint::Length(lines), Constraint::Fill(1)])
            .split(*area);
        draw_table(frame, view, parts[0]);
        frame.render_widget(words, parts[1]);
        draw_courses(frame, view, parts[2]);
    }
}

fn draw_table(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let widest = |column: usize| {
        let cells = view.rows.iter().map(|row| row.cells[column].chars().count());
        cells.chain([view.columns[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..view.columns.len()).map(widest).collect();
    let room = usize::from(area.width.saturating_sub(2));
    let kept = table::fitting(&widths, usize::from(SPACING), room, view.dispensable);
    let heading = Line::new(kept.iter().map(|column| view.columns[*column]));
    let heading = heading.style(Style::new().add_modifier(Modifier::BOLD));
    let lines = view.rows.iter().map(|row| {
        let style = if row.is_lost { Style::new().add_modifier(Modifier::DIM) } else { Style::new() };
        Line::new(kept.iter().map(|column| Cell::new(row.cells[*column].as_str()))).style(style)
    });
    let widths = kept.iter().map(|column| Constraint::Length(u16::try_from(widths[*column]).unwrap_or(u16::MAX)));
    let silent = if view.is_silent { ", does not answer" } else { "" };
    let block = Block::bordered().title(format!(" {}{silent} (q ends) ", view.device));
    frame.render_widget(Table::new(lines, widths).header(heading).column_spacing(SPACING).block(block), area);
}

/// Draws the traffic over each uplink in the last minutes, as far as there is room, all to one scale.
fn draw_courses(frame: &mut Frame<'_>, view: &View, area: ratatui::layout::Rect) {
    let most = view.courses.values().flatten().copied().max().unwrap_or(0).max(1);
    let areas = Layout::vertical(view.courses.iter().map(|_| Constraint::Length(COURSE_LINES + 1))).split(area);
    for ((name, course), area) in view.courses.iter().zip(areas.iter()) {
        let shown = course.iter().copied().skip(course.len().saturating_sub(usize::from(area.width)));
        let block = Block::new().title(format!("{name}, down"));
        frame.render_widget(Sparkline::default().block(block).max(most).data(shown.collect::<Vec<_>>()), *area);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_is_gone_has_no_course() {
        let sample = |names: &[&str]| {
            let destinations: Vec<_> = names.iter().map(|name| json!({ "slot": 1, "name": name })).collect();
            Sample::new(json!({ "relay": { "destinations": destinations } }))
        };
        let (before, now) = (sample(&["phone", "laptop"]), sample(&["laptop"]));
        let mut view = View::new(&before);
        view.look(&before, &before);
        assert_eq!(view.courses.len(), 2);
        view.look(&before, &now);
        assert_eq!(view.courses.keys().collect::<Vec<_>>(), ["laptop"]);
    }
}
