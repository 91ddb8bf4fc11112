//! Several applications of one host.

use network::Datagram;
use transport::{Endpoint, Event};
use units::Instant;

use crate::{App, Report};

/// Any number of applications of any kind, called as one.
///
/// Each is asked for its deadline only after a call: most calls of a host concern few of them.
pub struct Apps {
    apps: Vec<Box<dyn App>>,
    /// Each application's deadline after its latest call.
    deadlines: Vec<Instant>,
    /// The earliest deadline.
    next_deadline: Instant,
    /// Applications that send datagrams, in order.
    senders: Vec<usize>,
    /// All senders from this position on were called and may have datagrams.
    next_sender: usize,
    /// Other applications that were called and may have datagrams; the last one goes first.
    talkers: Vec<usize>,
}

impl Default for Apps {
    fn default() -> Self {
        Self {
            apps: Vec::new(),
            deadlines: Vec::new(),
            next_deadline: Instant::FAR_FUTURE,
            senders: Vec::new(),
            next_sender: 0,
            talkers: Vec::new(),
        }
    }
}

impl Apps {
    /// Adds an application.
    pub fn push(&mut self, app: impl App + 'static) {
        if app.sends_datagrams() {
            self.senders.push(self.apps.len());
            self.next_sender = self.senders.len();
        }
        self.apps.push(Box::new(app));
        self.deadlines.push(Instant::FAR_FUTURE);
    }

    /// Returns the applications' reports, in the order in which they were added.
    pub fn reports(&self) -> Vec<Report> {
        self.apps.iter().map(|app| app.report()).collect()
    }

    fn note_all_called(&mut self) {
        self.next_deadline = Instant::FAR_FUTURE;
        for (deadline, app) in self.deadlines.iter_mut().zip(&self.apps) {
            *deadline = app.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
            self.next_deadline = self.next_deadline.min(*deadline);
        }
        self.talkers.clear();
        self.next_sender = 0;
    }

    /// Returns an application that may have a datagram, if there is one.
    #[inline]
    fn talker(&self) -> Option<usize> {
        self.senders.get(self.next_sender).or(self.talkers.last()).copied()
    }

    /// Notes that the application of [`Self::talker`] has no datagram.
    fn pass_talker(&mut self) {
        if self.next_sender < self.senders.len() {
            self.next_sender += 1;
        } else {
            self.talkers.pop();
        }
    }

    fn ask_talkers(&mut self, now: Instant) -> Option<Datagram> {
        while let Some(talker) = self.talker() {
            let app = &mut self.apps[talker];
            if let Some(datagram) = app.poll_datagram(now) {
                // Sending has changed its deadline.
                self.deadlines[talker] = app.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
                self.find_next_deadline();
                return Some(datagram);
            }
            self.pass_talker();
        }
        None
    }

    fn find_next_deadline(&mut self) {
        self.next_deadline = self.deadlines.iter().copied().fold(Instant::FAR_FUTURE, Ord::min);
    }
}

impl App for Apps {
    fn sends_datagrams(&self) -> bool {
        !self.senders.is_empty()
    }

    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.apps.iter_mut().for_each(|app| app.start(endpoint, now));
        self.note_all_called();
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        self.apps.iter_mut().for_each(|app| app.handle_event(event, endpoint, now));
        self.note_all_called();
    }

    fn handle_datagram(&mut self, datagram: &Datagram, now: Instant) {
        self.apps.iter_mut().for_each(|app| app.handle_datagram(datagram, now));
        self.note_all_called();
    }

    #[inline]
    fn poll_datagram(&mut self, now: Instant) -> Option<Datagram> {
        self.talker()?;
        self.ask_talkers(now)
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.talkers.clear();
        self.next_sender = self.senders.len();
        for (index, (deadline, app)) in self.deadlines.iter_mut().zip(&mut self.apps).enumerate() {
            if *deadline <= now {
                app.handle_timeout(endpoint, now);
                *deadline = app.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
                if app.sends_datagrams() {
                    self.talkers.push(index);
                }
            }
        }
        self.talkers.reverse();
        self.find_next_deadline();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_deadline).filter(|at| *at < Instant::FAR_FUTURE)
    }

    fn handle_wake(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.apps.iter_mut().for_each(|app| app.handle_wake(endpoint, now));
        self.note_all_called();
    }

    fn handle_end(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.apps.iter_mut().for_each(|app| app.handle_end(endpoint, now));
    }

    /// A host without applications serves others, and never finishes.
    fn is_finished(&self) -> bool {
        !self.apps.is_empty() && self.apps.iter().all(|app| app.is_finished())
    }

    fn report(&self) -> Report {
        self.reports().into_iter().fold(Report::default(), Report::and)
    }
}
