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
use serde_json::Value;

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
/// Lines for a daemon that has never answered: an empty table and the reason.
const UNHEARD_LINES: u16 = 5;

/// The display of one daemon.
struct View {
    device: String,
    /// Its latest answer, if it has ever answered.
    latest: Option<Sample>,
    /// Why it did not answer the last request, if it did not.
    silence: Option<Failure>,
    columns: &'static [&'static str],
    dispensable: &'static [usize],
    rows: Vec<Row>,
    /// Text below the table.
    words: Vec<String>,
    title: String,
    courses: BTreeMap<String, VecDeque<u64>>,
}

/// Shows the daemons until q, Esc, Ctrl-C or a signal, until the terminal disappears, or until one of them has ended.
///
/// # Errors
/// If none answers at first, or one has never answered.
pub fn watch(devices: &[String]) -> Result<(), Failure> {
    let mut views: Vec<View> = devices.iter().map(|device| View::new(device)).collect();
    ask(&mut views, super::look, running)?;
    if views.iter().all(|view| view.latest.is_none()) {
        return verdict(views);
    }
    let stop = Stop::on_signals()?;
    let keys = Keys::open()?;
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut views, &mut terminal, (&stop, &keys));
    ratatui::restore();
    shown.and_then(|()| verdict(views))
}

fn show(views: &mut [View], terminal: &mut DefaultTerminal, (stop, keys): (&Stop, &Keys)) -> Result<(), Failure> {
    loop {
        terminal.draw(|frame| draw(frame, views))?;
        if keys.end_it(stop)? {
            return Ok(());
        }
        ask(views, super::look, running)?;
    }
}

fn running() -> Result<Vec<String>, Failure> {
    Ok(control::running()?)
}

/// Asks each daemon once.
///
/// # Errors
/// If one of them has ended.
fn ask(
    views: &mut [View],
    look: impl Fn(&str) -> Result<Value, Failure>,
    running: impl Fn() -> Result<Vec<String>, Failure>,
) -> Result<(), Failure> {
    for view in views {
        match look(&view.device) {
            Ok(status) => view.look(Sample::new(status)),
            // A daemon that is stopped or busy may continue later.
            Err(silence) if running()?.contains(&view.device) => view.fall_silent(silence),
            Err(ended) => return Err(ended),
        }
    }
    Ok(())
}

/// Returns the error of the first daemon that has never answered.
fn verdict(views: Vec<View>) -> Result<(), Failure> {
    let mut unheard = views.into_iter().filter(|view| view.latest.is_none());
    unheard.find_map(|view| view.silence).map_or(Ok(()), Err)
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
    /// Creates the display of a daemon that has not been asked yet.
    fn new(device: &str) -> Self {
        Self {
            device: device.to_owned(),
            latest: None,
            silence: None,
            columns: &[],
            dispensable: &[],
            rows: Vec::new(),
            words: Vec::new(),
            title: device.to_owned(),
            courses: BTreeMap::new(),
        }
    }

    fn fall_silent(&mut self, silence: Failure) {
        if self.latest.is_none() {
            self.words = silence.parts().1.map(str::to_owned).into_iter().collect();
        }
        self.silence = Some(silence);
    }

    fn look(&mut self, now: Sample) {
        (self.columns, self.dispensable) = (table::columns(&now), table::dispensable(&now));
        self.rows = table::rows(self.latest.as_ref().unwrap_or(&now), &now);
        self.words = words(&self.rows, &now);
        self.title = format!("{}{}", now.device(), table::target(&now));
        (self.latest, self.silence) = (Some(now), None);
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
    let share = |view: &View| match view.latest {
        Some(_) => Constraint::Fill(1),
        None => Constraint::Length(UNHEARD_LINES),
    };
    let areas = Layout::vertical(views.iter().map(share)).split(frame.area());
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
    let silent = if view.silence.is_some() { ", does not answer" } else { "" };
    let block = Block::bordered().title(format!(" {}{silent} (q ends) ", view.title));
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
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;

    #[test]
    fn who_is_gone_has_no_course() {
        let sample = |names: &[&str]| {
            let destinations: Vec<_> = names.iter().map(|name| json!({ "slot": 1, "name": name })).collect();
            Sample::new(json!({ "relay": { "destinations": destinations } }))
        };
        let (before, now) = (sample(&["phone", "laptop"]), sample(&["laptop"]));
        let mut view = View::new("anabranch98");
        view.look(before);
        assert_eq!(view.courses.len(), 2);
        view.look(now);
        assert_eq!(view.courses.keys().collect::<Vec<_>>(), ["laptop"]);
    }

    /// Returns what is on the screen.
    fn drawn(views: &[View]) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, views)).unwrap();
        terminal.backend().to_string()
    }

    /// A relay may be another user's, or busy for a moment.
    #[test]
    fn who_does_not_answer_at_first_is_shown_as_such_and_asked_again() {
        let devices = ["anabranch0", "anabranch98"];
        let running = || Ok(devices.map(String::from).to_vec());
        let answer =
            |device: &str| Ok(json!({ "device": device, "relay": { "destinations": [{ "name": "laptop" }] } }));
        let mut views = devices.map(View::new);
        let look = |device: &str| match device {
            "anabranch0" => answer(device),
            _ => Err(Failure::Failed("it is busy".into())),
        };
        ask(&mut views, look, running).unwrap();
        let screen = drawn(&views);
        assert!(screen.contains("anabranch98, does not answer") && screen.contains("it is busy"), "{screen}");
        assert!(screen.contains("laptop") && !screen.contains("anabranch0, does"), "{screen}");
        ask(&mut views, answer, running).unwrap();
        let screen = drawn(&views);
        assert!(screen.contains(" anabranch98 ") && !screen.contains("does not answer"), "{screen}");
        // What has answered may be silent now.
        ask(&mut views, look, running).unwrap();
        assert!(drawn(&views).contains("anabranch98, does not answer"));
        assert!(verdict(views.into()).is_ok(), "each has answered");
        let mut views = devices.map(View::new);
        ask(&mut views, look, running).unwrap();
        assert!(verdict(views.into()).is_err(), "one has never answered");
    }

    #[test]
    fn who_has_ended_ends_the_watch() {
        let mut views = [View::new("anabranch0")];
        let gone = |_: &str| Err(Failure::Failed("anabranch0 is not running here".into()));
        assert!(ask(&mut views, gone, || Ok(Vec::new())).is_err());
    }
}
