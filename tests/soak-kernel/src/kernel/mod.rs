//! The kernel of a case: its settings, and the applications on its sockets.

mod settings;
mod talk;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use interop::go_first;
use linux::netns::Namespace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use soak::transport::case::Side;
use socket2::{Domain, Protocol, Socket, Type};

pub use settings::{add_endpoint, complaints, remove_endpoint, set_priority, set_up};
pub use talk::Conversation;
use talk::{Part, converse};

use crate::case::Case;
use crate::network::{PORT_FIRST, server};
use crate::patience::pause_for;

/// How long a thread waits for a socket before it checks whether the case is over.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Maximum number of connections that wait for `accept`: more than any case opens at once.
const BACKLOG: i32 = 64;

/// Records of the applications.
type Conversations = Arc<Mutex<Vec<Arc<Mutex<Conversation>>>>>;

/// The kernel's applications; they end on drop.
pub struct Kernel {
    conversations: Conversations,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared by an application's threads.
#[derive(Clone)]
struct Application {
    part: Part,
    mptcp: bool,
    buffers: [Option<u32>; 2],
    conversations: Conversations,
    over: Arc<AtomicBool>,
}

impl Kernel {
    /// Starts the applications of a case. On return a server listens, and a client begins to connect.
    ///
    /// # Errors
    /// If a socket cannot be opened.
    pub fn start(case: &Case, host: &Namespace) -> io::Result<Self> {
        let mut kernel = Self { conversations: Conversations::default(), over: Arc::default(), threads: Vec::new() };
        for talk in 0..case.talks.len() {
            let application = Application {
                part: Part::new(case, talk),
                mptcp: case.kernel.mptcp,
                buffers: [case.kernel.send_buffer_bytes, case.kernel.receive_buffer_bytes],
                conversations: kernel.conversations.clone(),
                over: kernel.over.clone(),
            };
            match case.kernel_is {
                Side::Server => kernel.threads.push(application.listen(case, talk, host)?),
                Side::Client => kernel.threads.extend(application.open(case, talk, host)?),
            }
        }
        Ok(kernel)
    }

    /// Returns the records of its applications so far.
    pub fn conversations(&self) -> Vec<Conversation> {
        let all = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|one| one.lock().unwrap_or_else(PoisonError::into_inner).clone()).collect()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic was recorded where it happened.
            let _ = thread.join();
        }
    }
}

impl Application {
    fn listen(self, case: &Case, talk: usize, host: &Namespace) -> io::Result<JoinHandle<()>> {
        let any: IpAddr = if case.ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let address = SocketAddr::new(any, PORT_FIRST + talk as u16);
        let listener = inside(host, || {
            let socket = self.socket(address)?;
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            // MPTCP's `accept` has no time-out, so the thread polls.
            socket.set_nonblocking(true)?;
            Ok(socket)
        })?;
        Ok(std::thread::spawn(move || self.accept(&listener)))
    }

    fn accept(&self, listener: &Socket) {
        go_first();
        let mut threads = Vec::new();
        while !self.over.load(Ordering::Relaxed) {
            let Ok((socket, _)) = listener.accept() else {
                wait_for(listener, PollFlags::IN);
                continue;
            };
            let (application, conversation) = (self.clone(), self.begin());
            let over = self.over.clone();
            threads.push(std::thread::spawn(move || converse(socket, &application.part, &conversation, &over)));
        }
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// Starts a thread for each connection, which opens it at its time.
    fn open(&self, case: &Case, talk: usize, host: &Namespace) -> io::Result<Vec<JoinHandle<()>>> {
        let mut remote = server(case);
        remote.set_port(remote.port() + talk as u16);
        let Timing { at_ms, every_ms, count } = Timing::of(case, talk);
        let sockets = (0..count).map(|_| inside(host, || self.socket(remote))).collect::<io::Result<Vec<_>>>()?;
        let connect = |(number, socket): (u64, Socket)| {
            let (application, conversation) = (self.clone(), self.begin());
            std::thread::spawn(move || {
                pause_for(Duration::from_millis(at_ms + number * every_ms));
                match connected(&socket, remote, &application.over) {
                    Ok(()) => converse(socket, &application.part, &conversation, &application.over),
                    Err(error) => conversation.lock().unwrap_or_else(PoisonError::into_inner).fail(&error),
                }
            })
        };
        Ok((0..).zip(sockets).map(connect).collect())
    }

    fn begin(&self) -> Arc<Mutex<Conversation>> {
        let conversation = Arc::new(Mutex::new(Conversation::new(self.part.talk)));
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner).push(conversation.clone());
        conversation
    }

    fn socket(&self, address: SocketAddr) -> io::Result<Socket> {
        let protocol = if self.mptcp { Protocol::MPTCP } else { Protocol::TCP };
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
        if let Some(bytes) = self.buffers[0] {
            socket.set_send_buffer_size(bytes as usize)?;
        }
        if let Some(bytes) = self.buffers[1] {
            socket.set_recv_buffer_size(bytes as usize)?;
        }
        Ok(socket)
    }
}

/// Connects, unless the run is `over` before.
fn connected(socket: &Socket, remote: SocketAddr, over: &AtomicBool) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    match socket.connect(&remote.into()) {
        Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {}
        result => return result,
    }
    while !over.load(Ordering::Relaxed) {
        if wait_for(socket, PollFlags::OUT) {
            return socket.take_error()?.map_or(Ok(()), Err);
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Returns whether something happened on a socket within a turn.
fn wait_for(socket: &Socket, what: PollFlags) -> bool {
    poll(&mut [PollFd::new(socket, what)], Some(&TURN)).is_ok_and(|ready| ready > 0)
}

/// Opening times of a talk's connections.
struct Timing {
    at_ms: u64,
    every_ms: u64,
    count: u32,
}

impl Timing {
    fn of(case: &Case, talk: usize) -> Self {
        let talk = &case.talks[talk];
        Self { at_ms: talk.at_ms, every_ms: talk.every_ms, count: talk.connections }
    }
}

fn inside<T: Send>(host: &Namespace, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    host.run(work).map_err(io::Error::other)?
}
