//! Why a datagram was dropped, and how often: every drop is counted under a name.

use super::{NAME, VERSION_BYTES};

/// Defines the enum, the list of all reasons and their names in one place, so that they can't disagree.
macro_rules! drop_reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Why a datagram was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DropReason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl DropReason {
            /// Every reason, in the order of their declaration.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant),+];

            /// The name under which it is counted.
            pub fn name(self) -> &'static str {
                match self {
                    $(DropReason::$variant => $name,)+
                }
            }
        }
    };
}

drop_reasons! {
    /// Shorter than its kind of packet can be.
    TooShort = "too_short",
    /// Longer than its kind of packet can be.
    TooLong = "too_long",
    /// A packet type the standard doesn't define, or a request with bits where none belong.
    UnknownType = "unknown_type",
    /// A number of sequence bytes outside 1..=8.
    SequenceLength = "sequence_length",
    /// A type of packet that this side, or this state, has no use for.
    UnexpectedType = "unexpected_type",
    /// A sequence received before, or too old to tell.
    Replayed = "replayed",
    /// Altered on the way, sealed with another key, or for another protocol id.
    NotAuthentic = "not_authentic",
    /// Encrypted, from an address this side has no keys for.
    UnknownSource = "unknown_source",
    /// A request of another version of netcode, which [`Counters::wrong_version`] names.
    WrongVersion = "wrong_version",
    /// A request for another protocol id.
    WrongProtocol = "wrong_protocol",
    /// A request whose token expired long ago.
    TokenExpired = "token_expired",
    /// A request whose token expired a few minutes ago at most: the clocks of backend and server may differ by
    /// more than [`ServerConfig::clock_skew`](super::ServerConfig::clock_skew). A hint: anybody can claim any
    /// expiry, and nothing is decrypted to find out.
    TokenJustExpired = "token_just_expired",
    /// A request whose token may have been used before this server's start.
    TokenBeforeStart = "token_before_start",
    /// A request whose token lives longer than this server allows, or whose backend's clock is ahead.
    TokenLifetime = "token_lifetime",
    /// A request or response whose token has already become a connection.
    TokenConsumed = "token_consumed",
    /// A request whose token was first used from another address.
    TokenElsewhere = "token_elsewhere",
    /// A request beyond what its source may make this server decrypt.
    SourceLimit = "source_limit",
    /// A request whose token was not sealed with this server's private key, or was altered.
    TokenNotAuthentic = "token_not_authentic",
    /// A request whose token is sealed correctly but malformed inside.
    TokenMalformed = "token_malformed",
    /// A request whose token doesn't name this server.
    TokenForOtherServer = "token_for_other_server",
    /// A request of a client that speaks something else: development mode only.
    ProtocolDiffers = "protocol_differs",
    /// A request or response from an address that is already connected, unless it makes the same client's next connection.
    AddressConnected = "address_connected",
    /// A request or response of a client id that is already connected, and isn't to be replaced.
    ClientIdConnected = "client_id_connected",
    /// A request that found the token history full of unexpired tokens.
    TokenHistoryFull = "token_history_full",
    /// A request that found every place for half-open connections taken.
    HalfOpenFull = "half_open_full",
    /// A request or response that was answered with "denied": every client slot is taken.
    ServerFull = "server_full",
    /// A request or response while newcomers have to wait: see [`Server::set_welcoming`](super::Server::set_welcoming).
    NotWelcoming = "not_welcoming",
    /// A response whose challenge isn't this server's, or is from before its start.
    ChallengeNotAuthentic = "challenge_not_authentic",
    /// A response with a challenge that was made for another token, or sent to another address.
    ChallengeForOtherRequest = "challenge_for_other_request",
    /// A packet to a client from an address that is not its server's.
    WrongAddress = "wrong_address",
    /// A packet to a client that has finished.
    NotConnected = "not_connected",
    /// A keep-alive that names a client index at or beyond its own maximum.
    ClientIndex = "client_index",
}

/// How many datagrams were dropped, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    drops: [u64; DropReason::ALL.len()],
    wrong_version: Option<[u8; VERSION_BYTES]>,
}

impl Counters {
    /// How many datagrams were dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Every reason's name with its count, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        DropReason::ALL.iter().map(|&reason| (reason.name(), self.dropped(reason)))
    }

    /// The version in the last request with another version of netcode: `1.01`, say. Printable, and unproven.
    pub fn wrong_version(&self) -> Option<String> {
        let number = self.wrong_version.as_ref()?.strip_prefix(NAME)?;
        Some(number.iter().take_while(|byte| byte.is_ascii_graphic()).map(|&byte| char::from(byte)).collect())
    }

    /// Notes the version of a request that was dropped for it.
    pub(crate) fn note_version(&mut self, request: &[u8]) {
        self.wrong_version = request.get(1..).and_then(|version| version.first_chunk()).copied();
    }

    /// Adds what another counted.
    pub(crate) fn add(&mut self, other: &Counters) {
        self.drops.iter_mut().zip(other.drops).for_each(|(drops, more)| *drops += more);
        self.wrong_version = self.wrong_version.or(other.wrong_version);
    }

    pub(crate) fn count(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_reason_has_its_own_counter_and_name() {
        let mut counters = Counters::default();
        for (i, &reason) in DropReason::ALL.iter().enumerate() {
            (0..=i).for_each(|_| counters.count(reason));
        }
        let counted: Vec<_> = counters.iter().collect();
        assert!(counted.iter().enumerate().all(|(i, &(_, n))| n == i as u64 + 1));
        assert_eq!(
            counted.iter().map(|&(name, _)| name).collect::<HashSet<_>>().len(),
            DropReason::ALL.len()
        );
    }
}
