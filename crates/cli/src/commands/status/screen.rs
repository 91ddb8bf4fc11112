//! `anabranch status --watch`: the same again every second, with the course of the last minutes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use linux::stop::Stop;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, Cell, Paragraph, Row as Line, Sparkline, Table, Wrap};
use ratatui::{DefaultTerminal, Frame};

use super::table::{self, Row, Sample};
use crate::failure::Failure;

const PERIOD: Duration = Duration::from_secs(1);
/// How often in a period it is looked whether a signal has come.
const LOOKS: u32 = 10;
/// Seconds of the course.
const COURSE: usize = 300;
/// Lines of an uplink's course.
const COURSE_LINES: u16 = 3;

/// What is shown of one daemon.
struct View {
    columns: &'static [&'static str],
    rows: Vec<Row>,
    clients: String,
    device: String,
    courses: BTreeMap<String, VecDeque<u64>>,
}

/// Shows the daemons until q, Esc, Ctrl-C or a signal, or until one of them has ended.
pub fn watch(devices: &[String]) -> Result<(), Failure> {
    let mut before = super::samples(devices)?;
    let mut views: Vec<View> = before.iter().map(View::new).collect();
    let stop = Stop::on_signals()?;
    let mut terminal = ratatui::try_init()?;
    let shown = show(devices, &mut before, &mut views, &mut terminal, &stop);
    ratatui::restore();
    shown
}

fn show(
    devices: &[String],
    before: &mut Vec<Sample>,
    views: &mut [View],
    terminal: &mut DefaultTerminal,
    stop: &Stop,
) -> Result<(), Failure> {
    loop {
        terminal.draw(|frame| draw(frame, views))?;
        if is_over(stop)? {
            return Ok(());
        }
        let now = super::samples(devices)?;
        for ((view, before), now) in views.iter_mut().zip(&*before).zip(&now) {
            view.look(before, now);
        }
        *before = now;
    }
}

/// Waits for the next second, and whether somebody has seen enough.
fn is_over(stop: &Stop) -> Result<bool, Failure> {
    for _ in 0..LOOKS {
        let is_ready = event::poll(PERIOD / LOOKS)?;
        if stop.is_triggered() {
            return Ok(true);
        }
        if is_ready {
            return is_enough();
        }
    }
    Ok(false)
}

fn is_enough() -> Result<bool, Failure> {
    Ok(match event::read()? {
        Event::Key(key) => {
            let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        }
        _ => false,
    })
}

impl View {
    fn new(sample: &Sample) -> Self {
        Self {
            columns: table::columns(sample),
            rows: table::rows(sample, sample),
            clients: table::clients(sample),
            device: format!("{}{}", sample.device(), table::target(sample)),
            courses: BTreeMap::new(),
        }
    }

    fn look(&mut self, before: &Sample, now: &Sample) {
        self.rows = table::rows(before, now);
        self.clients = table::clients(now);
        self.device = format!("{}{}", now.device(), table::target(now));
        for row in &self.rows {
            let course = self.courses.entry(row.cells[0].clone()).or_default();
            course.push_back((row.down_rate * 8.0) as u64);
            if course.len() > COURSE {
                course.pop_front();
            }
        }
    }
}

fn draw(frame: &mut Frame<'_>, views: &[View]) {
    let areas = Layout::vertical(views.iter().map(|_| Constraint::Fill(1))).split(frame.area());
    for (view, area) in views.iter().zip(areas.iter()) {
        let lines = u16::try_from(view.rows.len()).unwrap_or(u16::MAX);
        let parts =
            Layout::vertical([Constraint::Length(lines.saturating_add(3)), Constraint::Length(3), Constraint::Fill(1)])
                .split(*area);
        draw_table(frame, view, parts[0]);
        let lost = view.rows.iter().filter_map(|row| Some(format!("; {} {}", row.cells[0], row.lost.as_ref()?)));
        let words = format!("{}{}", view.clients, lost.collect::<String>());
        frame.render_widget(Paragraph::new(words).wrap(Wrap { trim: true }), parts[1]);
        draw_courses(frame, view, parts[2]);
    }
}

fn draw_table(frame: &mut Frame<'_>, view: &View, area: ratatui::layout::Rect) {
    let heading = Line::new(view.columns.iter().copied()).style(Style::new().add_modifier(Modifier::BOLD));
    let lines = view.rows.iter().map(|row| {
        let style = if row.lost.is_some() { Style::new().add_modifier(Modifier::DIM) } else { Style::new() };
        Line::new(row.cells.iter().map(|cell| Cell::new(cell.as_str()))).style(style)
    });
    let widest = |column: usize| {
        let cells = view.rows.iter().map(|row| row.cells[column].chars().count());
        cells.chain([view.columns[column].chars().count()]).max().unwrap_or(0)
    };
    let widths =
        (0..view.columns.len()).map(|column| Constraint::Length(u16::try_from(widest(column)).unwrap_or(u16::MAX)));
    let block = Block::bordered().title(format!(" {} (q ends) ", view.device));
    frame.render_widget(Table::new(lines, widths).header(heading).column_spacing(2).block(block), area);
}

/// What came over each uplink in the last minutes, as far as there is room; all to one scale.
fn draw_courses(frame: &mut Frame<'_>, view: &View, area: ratatui::layout::Rect) {
    let most = view.courses.values().flatten().copied().max().unwrap_or(0).max(1);
    let areas = Layout::vertical(view.courses.iter().map(|_| Constraint::Length(COURSE_LINES + 1))).split(area);
    for ((name, course), area) in view.courses.iter().zip(areas.iter()) {
        let shown = course.iter().copied().skip(course.len().saturating_sub(usize::from(area.width)));
        let block = Block::new().title(format!("{name}, down"));
        frame.render_widget(Sparkline::default().block(block).max(most).data(shown.collect::<Vec<_>>()), *area);
    }
}
