//! A server and one client in virtual time.

use std::fs;
use std::path::PathBuf;

use host::App as _;
use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Event, Received, SettingsChange};
use units::Duration;

use super::Server;
use super::files::Folder;
use crate::back_to_back::{CLIENT, Pair, SERVER};

const PORT: u16 = 80;
/// Interval at which the client acts.
const TICK: Duration = Duration::from_millis(100);

/// A folder of its own for a test; removed when dropped.
pub struct TestFolder(pub PathBuf);

impl TestFolder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("serve-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The server, and a client that the tests control.
pub struct World<'a> {
    application: Server<'a>,
    pair: Pair,
    connection: ConnectionId,
    /// Octets that the client received.
    pub received: Vec<u8>,
    /// Whether the server's stream has ended in order.
    pub finished: bool,
    /// How the client's connection ended.
    pub closed: Option<CloseReason>,
}

impl<'a> World<'a> {
    /// Creates a client that has connected and holds at most `window_bytes` that it has not read.
    pub fn new(folder: &TestFolder, idle_max: Duration, window_bytes: u64, say: &'a mut dyn FnMut(&str)) -> Self {
        let mut pair = Pair::new();
        let listener = pair.server.listen((SERVER, PORT).into(), ConnectionConfig::default()).unwrap();
        let config = ConnectionConfig { receive_buffer_bytes: window_bytes, ..ConnectionConfig::default() };
        let connection = pair.client.connect((CLIENT, 0).into(), (SERVER, PORT).into(), config, pair.now).unwrap();
        let application = Server::new(Folder::open(&folder.0).unwrap(), vec![listener], idle_max, say);
        let (received, finished, closed) = (Vec::new(), false, None);
        let mut world = Self { application, pair, connection, received, finished, closed };
        world.settle();
        world
    }

    /// Cuts the network: from now on nothing reaches the other end.
    pub fn cut(&mut self) {
        self.pair.cut = true;
    }

    pub fn request(&mut self, text: &str) {
        let sent = self.pair.client.send(self.connection, text.as_bytes().to_vec().into(), self.pair.now).unwrap();
        assert_eq!(sent, text.len());
        self.settle();
    }

    /// The client sends a request octet by octet.
    pub fn request_slowly(&mut self, text: &str) {
        let change = SettingsChange { nagle: Some(false), ..SettingsChange::default() };
        self.pair.client.change(self.connection, &change, self.pair.now).unwrap();
        text.chars().for_each(|octet| self.request(&octet.to_string()));
    }

    /// The client aborts the connection.
    pub fn abort(&mut self) {
        self.pair.client.abort(self.connection, self.pair.now).unwrap();
        self.settle();
    }

    /// Stops the server, as Ctrl-C does.
    pub fn end(&mut self) {
        self.application.handle_end(&mut self.pair.server, self.pair.now);
        self.settle();
    }

    /// Reads received octets, at most `max` of them.
    pub fn read(&mut self, max: usize) {
        let end = self.received.len() + max;
        while self.received.len() < end {
            match self.pair.client.recv(self.connection, end - self.received.len(), self.pair.now) {
                Ok(Received::Data(data)) => self.received.extend_from_slice(&data.to_bytes()),
                Ok(Received::Finished) => {
                    self.finished = true;
                    break;
                }
                Ok(Received::Pending) | Err(_) => break,
            }
        }
        self.settle();
    }

    /// Lets `span` pass; every tick the client reads at most `max` octets.
    pub fn pass(&mut self, span: Duration, max: usize) {
        let end = self.pair.now + span;
        while self.pair.now < end {
            let tick = self.pair.now + TICK;
            while self.pair.go_on(self.application.poll_timeout(), tick) {
                if self.application.poll_timeout().is_some_and(|at| at <= self.pair.now) {
                    self.application.handle_timeout(&mut self.pair.server, self.pair.now);
                }
                self.settle();
            }
            self.read(max);
        }
    }

    /// Moves segments and events until none is left.
    fn settle(&mut self) {
        loop {
            let mut moved = self.pair.exchange();
            while let Some(event) = self.pair.server.poll_event() {
                moved = true;
                self.application.handle_event(&event, &mut self.pair.server, self.pair.now);
            }
            while let Some(event) = self.pair.client.poll_event() {
                if let Event::Closed { reason, .. } = event {
                    self.closed = Some(reason);
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Returns whether the server wants another turn at once.
    pub fn awaits_turn(&self) -> bool {
        !self.application.again.is_empty()
    }

    /// Returns the number of connections that the server still has.
    pub fn open(&self) -> usize {
        self.application.sessions.len()
    }
}
