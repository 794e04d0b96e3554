//! Bounds that more than one layer must know, with their reasons, and the error for a setting out of its bounds. Bounds
//! of one layer are in that layer.

use core::fmt;
use std::borrow::Cow;

use crate::exact::short;

/// The largest netcode payload: the standard's, chosen so that a datagram (payload + 25 bytes of netcode + 28 of
/// IPv4/UDP = 1,253) stays below IPv6's guaranteed 1,280.
pub const MAX_PAYLOAD: usize = 1200;

/// The largest datagram that netcode 1.02 allows (the standard's receive buffer).
pub const MAX_DATAGRAM: usize = 1300;

/// The maximum of bytes around a netcode payload in its IP packet: IPv6, UDP, and netcode's prefix, sequence and tag.
pub const PAYLOAD_OVERHEAD: usize = 40 + 8 + (1 + 8 + 16);

/// The default path MTU, IPv6's guaranteed one.
pub const DEFAULT_MTU: usize = 1280;

/// The smallest path MTU that can be set: over IPv6, the connection request needs as much.
pub const MIN_MTU: usize = 40 + 8 + 1078;

/// The maximum of client slots on a server.
pub const MAX_CLIENT_SLOTS: usize = 65_536;

/// A setting out of its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The subject of the error: the name of a setting, or a phrase like "the token".
    pub field: &'static str,
    /// The value it was given.
    pub value: String,
    /// A text with the allowed values.
    pub bound: Cow<'static, str>,
}

impl ConfigError {
    /// An error about `field`, unless its value is `valid`.
    pub(crate) fn unless(
        valid: bool,
        field: &'static str,
        value: impl fmt::Display,
        bound: impl Into<Cow<'static, str>>,
    ) -> Result<(), ConfigError> {
        if valid { Ok(()) } else { Err(ConfigError { field, value: value.to_string(), bound: bound.into() }) }
    }

    /// An error about `field`, unless its value is one of these.
    pub(crate) fn within<T: PartialOrd + fmt::Debug>(
        field: &'static str,
        value: T,
        low: T,
        high: T,
    ) -> Result<(), ConfigError> {
        let valid = (&low..=&high).contains(&&value);
        let value = format_args!("{value:?}");
        if valid { Ok(()) } else { Self::unless(false, field, value, format!("{low:?} to {high:?}")) }
    }

    /// An error about `field`, unless its value is a number above 0.
    pub(crate) fn positive(field: &'static str, value: f64) -> Result<(), ConfigError> {
        ConfigError::unless(value.is_finite() && value > 0.0, field, short(value), "above 0 and finite")
    }

    /// An error unless `low` is at most `high`. It is about the field that was given: `high`, unless that has its
    /// default.
    pub(crate) fn ordered(
        (low_field, low): (&'static str, f64),
        (high_field, high): (&'static str, f64),
        default_high: f64,
    ) -> Result<(), ConfigError> {
        let [low_shown, high_shown] = [low, high].map(short);
        match () {
            () if low <= high => Ok(()),
            () if high == default_high => {
                Self::unless(false, low_field, low_shown, format!("at most {high_field} ({high_shown})"))
            }
            () => Self::unless(false, high_field, high_shown, format!("at least {low_field} ({low_shown})")),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}, not {}", self.field, self.bound, self.value)
    }
}

impl core::error::Error for ConfigError {}
