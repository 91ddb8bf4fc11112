//! A live video over TCP or MPTCP, and its viewer.
//!
//! ```text
//! frames    sizes in groups of pictures
//! playback  the viewer's buffer
//! ```

mod frames;
mod playback;

use core::cell::RefCell;
use core::net::SocketAddr;
use std::rc::Rc;

use transport::{ConnectionConfig, Endpoint, Event};
use units::Instant;

use super::writer::Writer;
use super::{Octets, TcpSink};
use host::{App, Report};

pub use frames::{FrameSizes, VideoFormat};
pub use playback::{Playback, PlaybackConfig, PlaybackStats};

/// A video.
#[derive(Clone, Debug)]
pub struct VideoFlow {
    /// Source address and port; port 0 for any.
    pub local: SocketAddr,
    /// Destination address and port.
    pub remote: SocketAddr,
    /// Settings of the connection.
    pub config: ConnectionConfig,
    /// The sizes of its frames.
    pub frames: FrameSizes,
    /// When the flow connects and makes the first frame.
    pub start: Instant,
    /// No frame is made from this time on; the connection ends when all frames are sent.
    pub stop: Instant,
}

/// Makes frames at their rate and writes each completely, when the connection takes it. It skips no frame: frames that
/// the network cannot carry in time arrive late.
pub struct VideoSource {
    flow: VideoFlow,
    writer: Writer,
    made_frames: u64,
    made: Octets,
    finished: bool,
}

impl VideoSource {
    /// Creates a source of `flow`.
    pub fn new(flow: VideoFlow) -> Self {
        Self { flow, writer: Writer::default(), made_frames: 0, made: Octets::default(), finished: false }
    }

    /// Returns the octets of all frames made so far, shared with the source: its demand.
    pub fn demanded(&self) -> Octets {
        self.made.clone()
    }

    /// Returns when the next frame is made.
    fn next_frame_at(&self) -> Option<Instant> {
        let at = self.flow.start + self.flow.frames.format().span(self.made_frames);
        (at < self.flow.stop).then_some(at)
    }

    fn advance(&mut self, endpoint: &mut Endpoint, now: Instant) {
        if now >= self.flow.start {
            let VideoFlow { local, remote, config, .. } = &self.flow;
            self.writer.connect((*local, *remote), config, endpoint, now);
        }
        while self.next_frame_at().is_some_and(|at| at <= now) {
            self.made_frames += 1;
            self.made.add(self.flow.frames.next_bytes());
        }
        self.writer.write(self.made.get() - self.writer.written_bytes(), endpoint, now);
        let all_written = self.made.get() == self.writer.written_bytes();
        if self.next_frame_at().is_none() && all_written && self.writer.is_ready() && !self.finished {
            self.finished = true;
            self.writer.finish(endpoint, now);
        }
    }
}

impl App for VideoSource {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.advance(endpoint, now);
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        if self.writer.handle_event(event) {
            self.advance(endpoint, now);
        }
    }

    fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.advance(endpoint, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        // A failed connection gets no more frames.
        self.next_frame_at().filter(|_| self.writer.faults().is_empty())
    }

    fn report(&self) -> Report {
        self.writer.report(self.finished)
    }
}

/// Receives a video and plays it; one connection at a time.
pub struct VideoPlayer {
    sink: TcpSink,
    received: Octets,
    viewer: Viewer,
}

/// The viewer of a video, separate from the connection that carries it.
#[derive(Clone, Debug)]
pub struct Viewer {
    frames: FrameSizes,
    /// Octets of the video up to the end of the frame that is arriving.
    frame_end_bytes: u64,
    screen: Screen,
    ended: bool,
}

/// A player's picture, shared with the reader of measurements.
#[derive(Clone, Debug)]
pub struct Screen(Rc<RefCell<Playback>>);

impl Screen {
    /// Returns what was seen until `now`.
    pub fn stats(&self, now: Instant) -> PlaybackStats {
        self.0.borrow().stats(now)
    }
}

impl Viewer {
    /// Creates a viewer of the video with these `frames`.
    pub fn new(mut frames: FrameSizes, playback: PlaybackConfig) -> Self {
        let playback = Playback::new(*frames.format(), playback);
        let frame_end_bytes = frames.next_bytes();
        Self { frame_end_bytes, frames, screen: Screen(Rc::new(RefCell::new(playback))), ended: false }
    }

    /// Returns the viewer's screen, shared with the viewer.
    pub fn screen(&self) -> Screen {
        self.screen.clone()
    }

    /// Tells the viewer that `total_bytes` octets of the video have arrived in order.
    pub fn received(&mut self, total_bytes: u64, now: Instant) {
        let mut playback = self.screen.0.borrow_mut();
        while total_bytes >= self.frame_end_bytes {
            playback.frame_arrived(now);
            self.frame_end_bytes += self.frames.next_bytes();
        }
    }

    /// Tells the viewer that nothing more will come.
    pub fn stream_ended(&mut self, now: Instant) {
        if !self.ended {
            self.ended = true;
            self.screen.0.borrow_mut().stream_ended(now);
        }
    }
}

impl VideoPlayer {
    /// Creates a player at `local` of the video with these `frames`.
    pub fn new(local: SocketAddr, config: ConnectionConfig, frames: FrameSizes, playback: PlaybackConfig) -> Self {
        let sink = TcpSink::new(local, config);
        Self { received: sink.received(), sink, viewer: Viewer::new(frames, playback) }
    }

    /// Returns the player's screen, shared with the player.
    pub fn screen(&self) -> Screen {
        self.viewer.screen()
    }

    /// Returns the octets that have arrived so far in order, shared with the player.
    pub fn received(&self) -> Octets {
        self.received.clone()
    }

    fn look(&mut self, now: Instant) {
        self.viewer.received(self.received.get(), now);
        if self.sink.finished() > 0 {
            self.viewer.stream_ended(now);
        }
    }
}

impl App for VideoPlayer {
    fn start(&mut self, endpoint: &mut Endpoint, now: Instant) {
        self.sink.start(endpoint, now);
    }

    fn handle_event(&mut self, event: &Event, endpoint: &mut Endpoint, now: Instant) {
        self.sink.handle_event(event, endpoint, now);
        self.look(now);
    }

    fn report(&self) -> Report {
        self.sink.report()
    }
}
