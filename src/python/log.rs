//! An endpoint's lines to the logger "tickwire" of Python's `logging`.
//!
//! Promises: at most one line a second per endpoint about dropped datagrams: a flood costs only its counting.
//! A line is formatted only if its level is enabled, and never while a lock is held.

use crate::python::prelude::*;
use pyo3::exceptions::PyKeyboardInterrupt;

use super::events::reason_to_python;
use super::stats::Counted;
use crate::endpoint::DisconnectReason;
use crate::transport::Violation;

/// How often dropped datagrams are reported.
const PERIOD: Duration = Duration::from_secs(1);

/// Drops that any network brings: duplicates, and packets in flight while a connection begins or ends. A
/// refused packet is a goodbye, or ends a connection, which is logged by itself.
const ORDINARY: [(&str, &str); 10] = [
    ("netcode", "replayed"),
    ("netcode", "unknown_source"),
    ("netcode", "unexpected_type"),
    ("netcode", "address_connected"),
    ("netcode", "not_connected"),
    ("packets", "duplicates"),
    ("packets", "stale"),
    ("packets", "out_of_order"),
    ("packets", "refused"),
    ("packets", "fragment_duplicates"),
];

/// This many ordinary drops in a period are worth a warning all the same.
const WARN_AFTER: u64 = 100;

/// The packet layer's counters that are drops; all of netcode's are.
const PACKET_DROPS: [&str; 10] = [
    "too_large_to_receive",
    "invalid",
    "stale",
    "duplicates",
    "out_of_order",
    "refused",
    "without_memory",
    "fragments_invalid",
    "fragment_duplicates",
    "fragments_without_memory",
];

/// Lets a line through at most once a second.
#[derive(Debug, Default)]
pub(super) struct LogPace(Option<std::time::Instant>);

impl LogPace {
    pub(super) fn is_due(&mut self, now: std::time::Instant) -> bool {
        let is_due = self.0.is_none_or(|logged_at| now - logged_at >= PERIOD);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

/// `logging`'s levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Debug = 10,
    Info = 20,
    Warning = 30,
    Error = 40,
}

/// Logs a line. An error in the logger doesn't lose what was received; an interrupt comes again.
pub(super) fn log(py: Python<'_>, level: Level, line: impl FnOnce() -> String) {
    log_with(py, level, line, None);
}

/// Logs an error with its traceback.
pub(super) fn log_traceback(py: Python<'_>, error: &PyErr, line: impl FnOnce() -> String) {
    log_with(py, Level::Error, line, Some(error));
}

fn log_with(py: Python<'_>, level: Level, line: impl FnOnce() -> String, error: Option<&PyErr>) {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let told = || -> PyResult<()> {
        let logger = LOGGER.get_or_try_init(py, || -> PyResult<_> {
            Ok(py.import("logging")?.call_method1("getLogger", ("tickwire",))?.unbind())
        })?;
        let (logger, level) = (logger.bind(py), level as u8);
        if logger.call_method1(intern!(py, "isEnabledFor"), (level,))?.is_truthy()? {
            let options = PyDict::new(py);
            if let Some(error) = error {
                // The exception doesn't hold its traceback until Python raises it.
                let exc_info = (error.get_type(py), error.value(py), error.traceback(py));
                options.set_item(intern!(py, "exc_info"), exc_info)?;
            }
            logger.call_method(intern!(py, "log"), (level, line()), Some(&options))?;
        }
        Ok(())
    };
    let Err(error) = told() else { return };
    if error.is_instance_of::<PyKeyboardInterrupt>(py)
        && py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main")).is_ok()
    {
        return;
    }
    error.write_unraisable(py, None);
}

/// Logs that a connection ended, why, how its peer broke the protocol if it did, and the reason's text.
pub(super) fn log_end(
    py: Python<'_>,
    reason: DisconnectReason,
    violation: Option<&Violation>,
    detail: Option<&str>,
    who: impl FnOnce() -> String,
) {
    // The game expects the other reasons; this one is the library's decision, by a setting.
    let level = if reason == DisconnectReason::Stalled { Level::Warning } else { Level::Info };
    log(py, level, || {
        let reason = reason_to_python(py, reason).and_then(|reason| reason.str()?.extract::<String>());
        let reason = reason.unwrap_or_default();
        let how = violation.map(|violation| format!(" ({violation})")).unwrap_or_default();
        // Escaped, as it may come from the peer.
        let detail = detail.map(|detail| format!(", {detail:?}")).unwrap_or_default();
        format!("{} disconnected: {reason}{how}{detail}", who())
    });
}

/// Reports dropped datagrams, once a period.
#[derive(Debug, Default)]
pub(super) struct DropLog {
    next: Instant,
    looked_at: Instant,
    known: Counted,
}

/// What was dropped in a period.
#[derive(Debug)]
pub(super) struct Dropped {
    period: Duration,
    reasons: Vec<(&'static str, &'static str, u64)>,
    /// Peers that were turned away before the game had an event of them.
    mismatched: u64,
    /// The netcode version of the last peer whose version differed.
    wrong_version: Option<String>,
}

impl DropLog {
    /// Whether a report is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// What was dropped since the last report, if anything.
    pub(super) fn look(&mut self, now: Instant, counted: Counted) -> Option<Dropped> {
        let counts = counted.iter().zip(self.known.iter());
        let increases = counts.map(|((layer, name, now), (_, _, then))| (layer, name, now - then));
        let mut reasons: Vec<_> =
            increases.filter(|(layer, name, increase)| *increase > 0 && is_drop(layer, name)).collect();
        let period = now - self.looked_at;
        let mismatched = counted.connections.mismatched - self.known.connections.mismatched;
        let wrong_version = counted.netcode.wrong_version();
        *self = DropLog { next: now + PERIOD, looked_at: now, known: counted };
        reasons.sort_by_key(|(.., increase)| core::cmp::Reverse(*increase));
        let any = mismatched > 0 || !reasons.is_empty();
        any.then_some(Dropped { period, reasons, mismatched, wrong_version })
    }
}

fn is_drop(layer: &str, name: &str) -> bool {
    match layer {
        "netcode" => true,
        "packets" => PACKET_DROPS.contains(&name),
        "socket" => ["too_long", "kernel_drops"].contains(&name),
        _ => false,
    }
}

impl Dropped {
    /// Logs the drops, as a warning unless any network brings as many.
    pub(super) fn log(&self, py: Python<'_>, endpoint: impl Fn() -> String) {
        if self.mismatched > 0 {
            log(py, Level::Warning, || {
                format!(
                    "{} turned away {} whose protocol differs: other messages or channels, or another version",
                    endpoint(),
                    grouped(self.mismatched)
                )
            });
        }
        if self.reasons.is_empty() {
            return;
        }
        let total: u64 = self.reasons.iter().map(|(.., count)| count).sum();
        let ordinary = self.reasons.iter().all(|(layer, name, _)| ORDINARY.contains(&(layer, name)));
        let level = if ordinary && total < WARN_AFTER { Level::Debug } else { Level::Warning };
        log(py, level, || {
            let reasons: Vec<String> = self.reasons.iter().map(|reason| self.reason(reason)).collect();
            format!(
                "{} dropped {} datagram{} in the last {}: {}",
                endpoint(),
                grouped(total),
                if total == 1 { "" } else { "s" },
                // The period is longer if the game didn't tick.
                match self.period.as_secs_f64().round() {
                    0.0..2.0 => "second".to_owned(),
                    seconds => format!("{seconds} seconds"),
                },
                reasons.join(", ")
            )
        });
    }
}

impl Dropped {
    fn reason(&self, &(layer, name, count): &(&str, &str, u64)) -> String {
        let hint = match (name, &self.wrong_version) {
            ("token_just_expired", _) => {
                " (the clocks of the login backend and this server may differ)".to_owned()
            }
            ("wrong_protocol", _) => {
                " (clients with another protocol id: give both sides the same one)".to_owned()
            }
            ("token_not_authentic", _) => {
                " (clients with another key: give both sides the same one or neither one)".to_owned()
            }
            ("token_for_other_server", _) => {
                " (the tokens name another address: give that one in public_addresses)".to_owned()
            }
            ("protocol_differs", _) => {
                " (clients with other messages or channels: each is told which)".to_owned()
            }
            ("token_before_start", _) => " (the token was made before this server started)".to_owned(),
            ("wrong_version", Some(version)) => format!(" (from netcode {version}; this server has 1.02)"),
            _ => String::new(),
        };
        format!("{layer}.{name} {}{hint}", grouped(count))
    }
}

/// A number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
