//! A server and one client in virtual time, so that hours of patience take no time.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

use transport::error::CloseReason;
use transport::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, Received};
use units::{Duration, Instant};

use super::Server;
use super::files::Folder;
use crate::driver::Application as _;

const PORT: u16 = 80;
/// How long the client takes to look again.
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

/// Both ends and nothing between them.
pub struct World<'a> {
    pub application: Server<'a>,
    server: Endpoint,
    client: Endpoint,
    pub connection: ConnectionId,
    pub now: Instant,
    /// Nothing reaches the other end any more.
    pub cut: bool,
    /// What the client received.
    pub received: Vec<u8>,
    /// Whether the server's stream has ended in good order.
    pub finished: bool,
    /// How the client's connection ended.
    pub closed: Option<CloseReason>,
}

impl<'a> World<'a> {
    /// A client that has connected and holds at most `window_bytes` that it has not read.
    pub fn new(folder: &TestFolder, idle_max: Duration, window_bytes: u64, say: &'a mut dyn FnMut(&str)) -> Self {
        let now = Instant::ZERO;
        let mut server = Endpoint::with_seed(EndpointConfig::default(), 1);
        let mut client = Endpoint::with_seed(EndpointConfig::default(), 2);
        let at: IpAddr = "10.0.0.1".parse().unwrap();
        let listener = server.listen((at, PORT).into(), ConnectionConfig::default()).unwrap();
        let config = ConnectionConfig { receive_buffer_bytes: window_bytes, ..ConnectionConfig::default() };
        let local = "10.0.0.2:0".parse().unwrap();
        let connection = client.connect(local, (at, PORT).into(), config, now).unwrap();
        let application = Server::new(Folder::open(&folder.0).unwrap(), vec![listener], idle_max, now, say);
        let mut world = Self {
            application,
            server,
            client,
            connection,
            now,
            cut: false,
            received: Vec::new(),
            finished: false,
            closed: None,
        };
        world.settle();
        world
    }

    pub fn request(&mut self, text: &str) {
        let sent = self.client.send(self.connection, text.as_bytes().to_vec().into(), self.now).unwrap();
        assert_eq!(sent, text.len());
        self.settle();
    }

    /// Reads what has arrived, at most `max` octets of it.
    pub fn read(&mut self, max: usize) {
        let end = self.received.len() + max;
        while self.received.len() < end {
            match self.client.recv(self.connection, end - self.received.len(), self.now) {
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
        let end = self.now + span;
        while self.now < end {
            self.until(self.now + TICK);
            self.read(max);
        }
    }

    /// Does what is due until `end`.
    fn until(&mut self, end: Instant) {
        loop {
            self.settle();
            let due = [self.server.poll_timeout(), self.client.poll_timeout(), self.application.next_wakeup()];
            match due.into_iter().flatten().min().filter(|at| *at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            if self.application.next_wakeup().is_some_and(|at| at <= self.now) {
                self.application.handle_wakeup(&mut self.server, self.now);
            }
        }
        self.now = end;
    }

    fn settle(&mut self) {
        while self.exchange() {}
    }

    /// Moves what there is; false if there was nothing.
    fn exchange(&mut self) -> bool {
        let (now, mut moved) = (self.now, false);
        while let Some(segment) = self.client.poll_transmit(now) {
            moved = true;
            if !self.cut {
                self.server.handle_segment(segment, now);
            }
        }
        while let Some(segment) = self.server.poll_transmit(now) {
            moved = true;
            if !self.cut {
                self.client.handle_segment(segment, now);
            }
        }
        while let Some(event) = self.server.poll_event() {
            moved = true;
            self.application.handle_event(event, &mut self.server, now);
        }
        while let Some(event) = self.client.poll_event() {
            moved = true;
            if let Event::Closed { reason, .. } = event {
                self.closed = Some(reason);
            }
        }
        moved
    }

    /// Whether the server wants another turn at once.
    pub fn awaits_turn(&self) -> bool {
        !self.application.again.is_empty()
    }

    /// Connections that the server still knows.
    pub fn open(&self) -> usize {
        self.application.sessions.len()
    }
}
