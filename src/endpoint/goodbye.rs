//! The end of a connection by this side: at once, or after the peer has what was queued for it.
//!
//! Promises: lingering ends at its deadline, whatever the peer does; meanwhile nothing more is taken from the
//! application, and nothing of the peer is handed to it.

use core::fmt;

use super::reason::DisconnectReason;
use crate::time::{Duration, Instant};
use crate::transport::{CloseReason, MAX_DETAIL_BYTES};

/// The maximum time that a connection may linger: longer would be no end.
pub const MAX_LINGER: Duration = Duration::from_secs(60);

/// A text about the end of a connection, for the other side's application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail(Box<str>);

/// Why a text can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetailError {
    /// It has no bytes, or too many.
    Length(usize),
    /// It has a NUL.
    Nul,
}

impl Detail {
    /// A text of 1 to [`MAX_DETAIL_BYTES`] bytes without NUL.
    ///
    /// # Errors
    /// When it isn't.
    pub fn new(text: &str) -> Result<Self, DetailError> {
        match text.len() {
            1..=MAX_DETAIL_BYTES if text.contains('\0') => Err(DetailError::Nul),
            1..=MAX_DETAIL_BYTES => Ok(Detail(text.into())),
            bytes => Err(DetailError::Length(bytes)),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DetailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DetailError::Length(bytes) => {
                write!(f, "reason must be 1 to {MAX_DETAIL_BYTES} bytes in UTF-8, not {bytes}")
            }
            DetailError::Nul => f.write_str("reason must have no NUL"),
        }
    }
}

impl core::error::Error for DetailError {}

/// How a connection is to end.
#[derive(Clone, Debug, Default)]
pub struct Goodbye {
    /// How long to wait at most until the peer has what was queued; zero discards it.
    pub linger: Duration,
    /// The text for the peer's application.
    pub detail: Option<Detail>,
}

/// An end that the application asked for.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    pub(super) until: Instant,
    pub(super) reason: CloseReason,
    pub(super) detail: Option<Detail>,
}

impl Closing {
    pub(super) fn new(now: Instant, reason: CloseReason, goodbye: Goodbye) -> Self {
        let Goodbye { linger, detail } = goodbye;
        Closing { until: now + linger.min(MAX_LINGER), reason, detail }
    }

    /// The disconnect reason on this side.
    pub(super) fn own_reason(&self) -> DisconnectReason {
        match self.reason {
            CloseReason::Kicked => DisconnectReason::Kicked,
            _ => DisconnectReason::Closed,
        }
    }

    pub(super) fn detail(&self) -> Option<&str> {
        self.detail.as_ref().map(Detail::as_str)
    }
}
