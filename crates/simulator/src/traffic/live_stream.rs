//! A stream that is produced while it is sent: a video, answers to requests, or data at a steady rate.

use units::Instant;

use super::Answers;
use super::answers::REQUEST_BYTES;
use super::pace::Pace;
use super::video::FrameSizes;

/// The content of a stream.
#[derive(Clone, Debug)]
pub enum Script {
    /// A live video from its first frame on.
    Video(FrameSizes),
    /// An answer for every [`REQUEST_BYTES`] octets that arrive.
    Answers(Answers),
    /// Data without end, at no more than this pace.
    Paced(Pace),
}

/// Tracks how much of a script has been produced.
#[derive(Clone, Debug)]
pub struct LiveStream {
    script: Script,
    began: Instant,
    /// Number of frames made, requests answered, or pieces written.
    pieces: u64,
    due_bytes: u64,
}

impl LiveStream {
    /// Starts a stream at `now`.
    pub fn new(script: Script, now: Instant) -> Self {
        Self { script, began: now, pieces: 0, due_bytes: 0 }
    }

    /// Produces everything that is due by `now`, after `received_bytes` of requests. `unsent_bytes` returns the octets
    /// produced earlier that still wait for a subflow. Returns the total octets produced so far.
    pub fn make(&mut self, received_bytes: u64, unsent_bytes: impl FnOnce() -> u64, now: Instant) -> u64 {
        match &mut self.script {
            Script::Video(frames) => {
                while self.began + frames.format().span(self.pieces) <= now {
                    self.pieces += 1;
                    self.due_bytes += frames.next_bytes();
                }
            }
            Script::Answers(answers) => {
                while self.pieces < received_bytes / REQUEST_BYTES {
                    self.pieces += 1;
                    self.due_bytes += answers.next_bytes();
                }
            }
            Script::Paced(pace) => {
                let mut unsent_bytes = unsent_bytes();
                while self.began + pace.span(self.pieces) <= now {
                    let piece_bytes = pace.piece_bytes(self.pieces, unsent_bytes);
                    self.pieces += 1;
                    self.due_bytes += piece_bytes;
                    unsent_bytes += piece_bytes;
                }
            }
        }
        self.due_bytes
    }

    /// Returns the octets produced so far.
    pub fn due_bytes(&self) -> u64 {
        self.due_bytes
    }

    /// Returns when there is more to produce without further requests.
    pub fn next_at(&self) -> Option<Instant> {
        match &self.script {
            Script::Video(frames) => Some(self.began + frames.format().span(self.pieces)),
            Script::Paced(pace) => Some(self.began + pace.span(self.pieces)),
            Script::Answers(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use units::{Duration, Rate};

    use super::*;

    #[test]
    fn data_are_made_as_they_fall_due() {
        let pace = Pace::new(Rate::from_mbps(8), Duration::from_millis(100));
        let ms = Instant::from_millis;
        let mut stream = LiveStream::new(Script::Paced(pace), ms(5));
        assert_eq!((stream.make(0, || 0, ms(5)), stream.next_at()), (10_000, Some(ms(15))));
        assert_eq!(stream.make(0, || 0, ms(14)), 10_000);
        assert_eq!(stream.make(0, || 95_000, ms(25)), 15_000, "of two pieces what the backlog leaves room for");
    }
}
