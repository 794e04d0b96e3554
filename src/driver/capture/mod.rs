//! Captures: the datagrams of endpoints with their times, in a pcapng file that Wireshark reads.
//!
//! Promises: the capture has what was received and what went out, after simulated links, by the driver's clock, which
//! may be virtual; the file stays within its bound; it holds no secret that wasn't on the wire. A full disk ends the
//! capture and not the game: [`Capture::failure`] names the file. Buffered datagrams are written with the first
//! datagram a second later, at the latest, and when an endpoint closes.

mod headers;
mod keys;
mod pcapng;

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use headers::Way;
pub use keys::{KeyFile, Secrets};

use headers::{MAX_HEADER_BYTES, exported, ip_datagram};

/// Bytes that wait to be written together.
const BUFFER_BYTES: usize = 64 * 1024;

/// How old they get, in nanoseconds.
const FLUSH_NANOS: u64 = 1_000_000_000;

/// The maximum size of the blocks around one datagram: fixed parts, padding, options, its headers, and the
/// description of an interface.
const PACKET_OVERHEAD: usize = 32 + 3 + 12 + MAX_HEADER_BYTES + 40;

/// One file that any number of endpoints write to. A clone is the same.
#[derive(Clone, Debug)]
pub struct Capture(Arc<Mutex<Recorder>>);

#[derive(Debug)]
struct Recorder {
    path: PathBuf,
    /// None once closed, failed or full.
    file: Option<File>,
    /// A fork's child has this object too, and must not write the same bytes again.
    process: u32,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    buffered_at: u64,
    max_bytes: u64,
    /// The number of the interface for opened packets, once it is described.
    opened: Option<u32>,
    counters: CaptureCounters,
    failure: Option<io::Error>,
}

/// Counts of a capture's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounters {
    /// Written, or about to be.
    pub packets: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Not written: the file had its bound, or writing failed.
    pub dropped: u64,
}

/// A datagram to capture.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    // Nanoseconds since 1970.
    pub nanos: u64,
    /// Whether it was sent or received.
    pub way: Way,
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub datagram: &'a [u8],
    /// It was decrypted: for our own dissector, not as on the wire.
    pub opened: bool,
}

impl Capture {
    /// A capture into a new file; an existing one is overwritten.
    ///
    /// # Errors
    ///
    /// The system's, with errno.
    pub fn create(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let mut header = Vec::new();
        let application = concat!("tickwire ", env!("CARGO_PKG_VERSION"));
        pcapng::section(
            application,
            "datagrams of Tickwire endpoints; IP and UDP headers are made up",
            &mut header,
        );
        pcapng::interface("datagrams", pcapng::RAW_IP, &mut header);
        let mut file = File::create(path)?;
        file.write_all(&header)?;
        let counters = CaptureCounters { bytes: header.len() as u64, ..CaptureCounters::default() };
        Ok(Capture(Arc::new(Mutex::new(Recorder {
            path: path.to_owned(),
            file: Some(file),
            process: std::process::id(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            scratch: Vec::new(),
            buffered_at: 0,
            max_bytes,
            opened: None,
            counters,
            failure: None,
        }))))
    }

    /// Appends a datagram, unless the capture is over.
    pub fn record(&self, captured: &Captured<'_>) {
        self.recorder().record(captured);
    }

    /// Writes buffered datagrams to the file.
    pub fn flush(&self) {
        self.recorder().flush();
    }

    /// Writes buffered datagrams and closes the file; later datagrams count as dropped.
    ///
    /// # Errors
    ///
    /// The error of this or an earlier write.
    pub fn close(&self) -> io::Result<()> {
        let mut recorder = self.recorder();
        recorder.flush();
        recorder.file = None;
        recorder.failure.as_ref().map_or(Ok(()), |error| Err(again(error)))
    }

    pub fn path(&self) -> PathBuf {
        self.recorder().path.clone()
    }

    pub fn counters(&self) -> CaptureCounters {
        self.recorder().counters
    }

    /// The error that ended the capture, if any.
    pub fn failure(&self) -> Option<io::Error> {
        self.recorder().failure.as_ref().map(again)
    }

    /// The log message for a capture that ended without being closed.
    pub fn ended(&self) -> Option<String> {
        let recorder = self.recorder();
        let path = recorder.path.display();
        match &recorder.failure {
            Some(error) => Some(format!("stopped capturing: can't write {path}: {error}")),
            None if recorder.file.is_some() && recorder.counters.dropped > 0 => Some(format!(
                "stopped capturing: {path} has reached its bound of {} bytes",
                recorder.max_bytes
            )),
            None => None,
        }
    }

    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        // Each call leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    fn record(&mut self, captured: &Captured<'_>) {
        let most = (captured.datagram.len() + PACKET_OVERHEAD) as u64;
        if self.file.is_none() || self.counters.bytes + most > self.max_bytes {
            self.counters.dropped += 1;
            return;
        }
        if self.buffer.is_empty() {
            self.buffered_at = captured.nanos;
        }
        let before = self.buffer.len();
        let Captured { nanos, way, from, to, datagram, opened } = *captured;
        self.scratch.clear();
        let interface = if opened {
            exported(from, to, datagram, &mut self.scratch);
            *self.opened.get_or_insert_with(|| {
                pcapng::interface("opened", pcapng::UPPER_PDU, &mut self.buffer);
                1
            })
        } else {
            ip_datagram(from, to, datagram, &mut self.scratch);
            0
        };
        pcapng::packet(interface, nanos, way, &self.scratch, &mut self.buffer);
        self.counters.packets += 1;
        self.counters.bytes += (self.buffer.len() - before) as u64;
        let old = nanos.saturating_sub(self.buffered_at) >= FLUSH_NANOS;
        if old || self.buffer.len() + PACKET_OVERHEAD >= BUFFER_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Some(file) = &mut self.file else { return };
        if self.process != std::process::id() {
            self.file = None;
            return;
        }
        if let Err(error) = file.write_all(&self.buffer) {
            self.failure = Some(error);
            self.file = None;
        }
        self.buffer.clear();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A copy of an error: the system's errors aren't `Clone`.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(nanos: u64, datagram: &[u8]) -> Captured<'_> {
        let (from, to) = ("127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap());
        Captured { nanos, way: Way::In, from, to, datagram, opened: nanos.is_multiple_of(2) }
    }

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tickwire-capture-{name}-{}.pcapng", std::process::id()))
    }

    #[test]
    fn a_file_never_grows_beyond_its_bound() {
        let path = place("bound");
        let capture = Capture::create(&path, 10_000).unwrap();
        for nanos in 0..100 {
            capture.record(&captured(nanos, &vec![1; nanos as usize * 10]));
        }
        capture.close().unwrap();
        let counters = capture.counters();
        let written = std::fs::metadata(&path).unwrap().len();
        assert_eq!(written, counters.bytes);
        assert!((8_000..=10_000).contains(&written), "{written}");
        assert_eq!(counters.packets + counters.dropped, 100);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_captured_is_written_a_second_later() {
        let path = place("late");
        let capture = Capture::create(&path, u64::MAX).unwrap();
        let written = || std::fs::metadata(&path).unwrap().len();
        let empty = written();
        capture.record(&captured(5, b"one"));
        assert_eq!(written(), empty);
        capture.record(&captured(5 + FLUSH_NANOS, b"two"));
        assert_eq!(written(), capture.counters().bytes);
        std::fs::remove_file(path).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_ends_the_capture_and_nothing_else() {
        let error = Capture::create(Path::new("/dev/full"), u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let path = place("full");
        let capture = Capture::create(&path, u64::MAX).unwrap();
        capture.recorder().file = Some(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        capture.record(&captured(1, b"one"));
        assert!(capture.failure().is_none());
        capture.record(&captured(1 + FLUSH_NANOS, b"two"));
        capture.record(&captured(2 + FLUSH_NANOS, b"three"));
        assert_eq!(capture.failure().unwrap().kind(), io::ErrorKind::StorageFull);
        assert_eq!(capture.counters().dropped, 1);
        assert_eq!(capture.close().unwrap_err().kind(), io::ErrorKind::StorageFull);
        std::fs::remove_file(path).unwrap();
    }
}
