//! The numbers that several parts of the adaptive controller share: `MODEL.md` has all of them in one table.

use crate::time::Duration;

/// Bytes of a packet that carries bulk, with all headers, more or less.
pub(super) const PACKET: f64 = 1_215.0;

/// Seconds by which clocks and ticks blur a wait: shorter ones show no queue.
pub(super) const BLUR: f64 = 0.001;

/// On any link, waits vary by this much, in seconds.
pub(super) const MIN_JITTER: f64 = 0.004;

/// How fast a window of TCP Cubic grows with time, in packets a second cubed, and the part of it that is kept after a
/// loss (RFC 9438).
pub(super) const CUBIC: f64 = 0.4;
pub(super) const CUBIC_KEEP: f64 = 0.7;

/// The packets by which a window of Reno grows in a round trip if it keeps as much as Cubic's (RFC 9438).
pub(super) const RENO: f64 = 3.0 * (1.0 - CUBIC_KEEP) / (1.0 + CUBIC_KEEP);

/// Fewer losses than this, in packets, tell nothing.
pub(super) const MIN_LOSSES: f64 = 2.5;

/// The part of former epochs' waits and losses that counts after one more.
pub(super) const KEEP_WAITS: f64 = 0.97;

/// A rate below this part of a former one is lower.
pub(super) const LESS: f64 = 0.95;

/// More counts as arriving if it exceeds the amount before by this share.
pub(super) const FRUITFUL: f64 = 0.02;

/// How often an interval or a step is doubled at most.
pub(super) const MAX_DOUBLINGS: u32 = 4;

/// Bytes that must have arrived before a rate is computed, and the smallest window.
pub(super) const ENOUGH: f64 = 4.0 * PACKET;

/// Fewer bytes than this determine no share of losses.
pub(super) const MIN_BYTES: f64 = 40.0 * PACKET;

/// Packets, epochs or seconds in which what is known of a path is forgotten.
pub(super) const LONG: f64 = 1_000.0;

/// How long the least round trip is believed without being seen again: one to two of these.
pub(super) const BASE_BUCKET: Duration = Duration::from_secs(5);
