//! Goodput G4 (mVeno): file size over the elapsed time of the download.

use units::{Duration, Instant};

use super::rate_bps;

/// A download.
#[derive(Clone, Debug)]
pub struct FileGoodput {
    began: Instant,
    file_bytes: u64,
    delivered_bytes: u64,
    finished_at: Option<Instant>,
}

impl FileGoodput {
    /// Measures a download of `file_bytes` octets. It begins with the request, so handshakes count, as they do for
    /// `wget`.
    pub fn new(began: Instant, file_bytes: u64) -> Self {
        Self { began, file_bytes, delivered_bytes: 0, finished_at: None }
    }

    /// The application receives `bytes` octets.
    pub fn delivered(&mut self, at: Instant, bytes: u64) {
        self.delivered_bytes += bytes;
        if self.delivered_bytes >= self.file_bytes {
            self.finished_at.get_or_insert(at);
        }
    }

    /// Duration of the download; `None` while octets are missing.
    pub fn elapsed(&self) -> Option<Duration> {
        Some(self.finished_at?.saturating_since(self.began))
    }

    /// Goodput in bit/s; `None` while octets are missing: a part of a file is no download.
    pub fn value_bps(&self) -> Option<f64> {
        rate_bps(self.file_bytes, self.elapsed()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 MB (8000000 octets) requested at 1 s and complete at 17 s: 64 Mbit / 16 s.
    #[test]
    fn a_download_counts_when_it_is_complete() {
        let mut goodput = FileGoodput::new(Instant::from_secs(1), 8_000_000);
        goodput.delivered(Instant::from_secs(9), 7_999_999);
        assert_eq!(goodput.value_bps(), None);
        goodput.delivered(Instant::from_secs(17), 1);
        goodput.delivered(Instant::from_secs(18), 1);
        assert_eq!(goodput.elapsed(), Some(Duration::from_secs(16)));
        assert_eq!(goodput.value_bps(), Some(4e6));
    }
}
