//! Dropped datagrams, reported once a period: a flood costs only its counting.

use core::cmp::Reverse;

use super::{Counted, PERIOD};
use crate::time::{Duration, Instant};

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

/// Reports dropped datagrams, once a period.
#[derive(Debug, Default)]
pub struct DropReport {
    next: Instant,
    looked_at: Instant,
    known: Counted,
}

/// What was dropped in a period.
#[derive(Debug)]
pub struct Dropped {
    period: Duration,
    reasons: Vec<(&'static str, &'static str, u64)>,
    /// Peers that were turned away before the game had an event of them.
    mismatched: u64,
    /// The netcode version of the last peer whose version differed.
    wrong_version: Option<String>,
}

impl DropReport {
    /// Whether a report is due.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// What was dropped since the last report, if anything.
    pub fn look(&mut self, now: Instant, counted: Counted) -> Option<Dropped> {
        let counts = counted.iter().zip(self.known.iter());
        let increases = counts.map(|((layer, name, now), (_, _, then))| (layer, name, now - then));
        let mut reasons: Vec<_> =
            increases.filter(|(layer, name, increase)| *increase > 0 && is_drop(layer, name)).collect();
        let period = now - self.looked_at;
        let mismatched = counted.connections.mismatched - self.known.connections.mismatched;
        let wrong_version = counted.netcode.wrong_version();
        *self = DropReport { next: now + PERIOD, looked_at: now, known: counted };
        reasons.sort_by_key(|(.., increase)| Reverse(*increase));
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
    /// The lines for the log about an endpoint, each with whether it is a warning: no more than any network brings is none.
    pub fn lines(&self, endpoint: &str) -> Vec<(bool, String)> {
        let mut lines = Vec::new();
        if self.mismatched > 0 {
            let peers = format!("{endpoint} turned away {}", grouped(self.mismatched));
            let why = "whose protocol differs: other messages or channels, or another version";
            lines.push((true, format!("{peers} {why}")));
        }
        if self.reasons.is_empty() {
            return lines;
        }
        let total: u64 = self.reasons.iter().map(|(.., count)| count).sum();
        let ordinary = self.reasons.iter().all(|(layer, name, _)| ORDINARY.contains(&(layer, name)));
        let reasons: Vec<String> = self.reasons.iter().map(|reason| self.reason(reason)).collect();
        // The period is longer if the application didn't tick.
        let period = match self.period.as_secs_f64().round() {
            0.0..2.0 => "second".to_owned(),
            seconds => format!("{seconds} seconds"),
        };
        let (count, plural) = (grouped(total), if total == 1 { "" } else { "s" });
        let reasons = reasons.join(", ");
        let line = format!("{endpoint} dropped {count} datagram{plural} in the last {period}: {reasons}");
        lines.push((!ordinary || total >= WARN_AFTER, line));
        lines
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::PacketCounters;

    fn counted(invalid: u64, duplicates: u64) -> Counted {
        Counted {
            packets: PacketCounters { invalid, duplicates, ..Default::default() },
            ..Default::default()
        }
    }

    #[test]
    fn drops_are_reported_once_a_period() {
        let mut report = DropReport::default();
        let at = Instant::from_millis;
        assert!(report.is_due(at(0)));
        assert!(report.look(at(0), counted(0, 0)).is_none());
        assert!(!report.is_due(at(999)) && report.is_due(at(1000)));
        let dropped = report.look(at(1000), counted(1234, 5)).unwrap();
        let line = "the server dropped 1,239 datagrams in the last second: packets.invalid 1,234, packets.duplicates 5";
        assert_eq!(dropped.lines("the server"), [(true, line.to_owned())]);
        assert!(report.look(at(2000), counted(1234, 5)).is_none(), "nothing more was dropped");
    }

    #[test]
    fn what_any_network_brings_is_no_warning() {
        let mut report = DropReport::default();
        report.look(Instant::ZERO, counted(0, 0));
        let dropped = report.look(Instant::from_millis(5000), counted(0, 1)).unwrap();
        let line = "it dropped 1 datagram in the last 5 seconds: packets.duplicates 1";
        assert_eq!(dropped.lines("it"), [(false, line.to_owned())]);
        let dropped = report.look(Instant::from_millis(6000), counted(0, 1 + WARN_AFTER)).unwrap();
        assert!(dropped.lines("it")[0].0);
    }
}
