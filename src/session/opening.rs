//! How a peer of a game opens: what its port listens for, how it dials, and its part in the session.
//!
//! Promises: a peer's clock may be wrong by an hour; nobody takes a player's place by the number of that player's connection.

use core::net::SocketAddr;

use super::hosting::Hosting;
use super::peers::{PeerConfig, PeerPart};
use crate::endpoint::{DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY};
use crate::mesh::{MAX_NAME_BYTES, MAX_PLAYERS, Mesh, MeshConfig};
use crate::netcode::{self, Key, UpperProtocol};
use crate::rng::Entropy;
use crate::time::{Duration, Instant, UnixSeconds};

/// Connections kept free for newcomers, beside those of players.
const GUESTS: usize = 8;

/// The longest silence that may end a link, in seconds.
const MAX_TIMEOUT: u32 = 60;

/// The seconds of silence that end a link, by default.
const TIMEOUT: u32 = 5;

/// By how much players' clocks may differ.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// The settings of a peer.
#[derive(Clone, Debug)]
pub struct Opening<'a> {
    pub protocol_id: u64,
    /// The protocol's digest, for refusals that say what differs.
    pub upper_protocol: Option<UpperProtocol>,
    /// The key that all peers of the game share. None: anyone can join.
    pub key: Option<Key>,
    pub name: &'a str,
    /// The maximum of players, of a game's first peer.
    pub places: u8,
    /// An address of a member; None: this is the game's first peer.
    pub contact: Option<SocketAddr>,
    /// The seconds of silence that end a link.
    pub timeout: Option<u32>,
    /// Whether two players may play by way of a third.
    pub relaying: bool,
    /// Whether one of the players hosts the game.
    pub is_hosted: bool,
}

impl Opening<'_> {
    /// # Errors
    /// The setting out of its bound.
    pub fn check(&self) -> Result<(), String> {
        let (bytes, timeout) = (self.name.len(), self.timeout());
        if bytes > MAX_NAME_BYTES || self.name.contains('\0') {
            return Err(format!(
                "name must be 0 to {MAX_NAME_BYTES} bytes in UTF-8 without NUL, not {bytes}"
            ));
        }
        if timeout > MAX_TIMEOUT {
            return Err(format!("timeout must be 1 to {MAX_TIMEOUT} between peers, not {timeout}"));
        }
        Ok(())
    }

    /// Refuses a contact that is the peer itself, bound to this address.
    ///
    /// # Errors
    /// The setting out of its bound.
    pub fn check_contact(&self, bound: SocketAddr) -> Result<(), String> {
        let is_own = |contact: &SocketAddr| {
            let reaches = bound.ip().is_unspecified() && contact.ip().is_loopback();
            contact.port() == bound.port() && (contact.ip() == bound.ip() || reaches)
        };
        match self.contact.filter(is_own) {
            Some(contact) => Err(format!(
                "address must be another player's address, not the peer's own, {contact}: the first player calls Peer.host"
            )),
            None => Ok(()),
        }
    }

    fn timeout(&self) -> u32 {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// The key of newcomers' tokens.
    pub fn join_key(&self) -> Key {
        self.key.unwrap_or(DEVELOPMENT_KEY)
    }

    /// Whether anyone can join from another machine, at these addresses: of the peer, and of what it asks first.
    pub fn is_open(&self, address: SocketAddr, asked: SocketAddr) -> bool {
        self.key.is_none() && !asked.ip().is_loopback() && !address.ip().is_loopback()
    }

    /// What the peer's port listens for. Tokens for this peer alone are sealed with its own key.
    pub fn listener(&self, address: SocketAddr, own_key: Key) -> netcode::ServerConfig {
        let names = vec![address, DEVELOPMENT_ADDRESS];
        let slots = MAX_PLAYERS + GUESTS;
        let listener = netcode::ServerConfig::new(self.protocol_id, self.join_key(), slots, names);
        netcode::ServerConfig {
            second_key: Some(own_key),
            replace_duplicates: false,
            clock_skew: CLOCK_SKEW,
            explains: self.key.is_none(),
            upper_protocol: self.upper_protocol.clone(),
            ..listener
        }
    }

    /// The peer's part in its session. `entropy` makes keys: it must be the system's.
    pub fn part(
        &self,
        address: SocketAddr,
        own_key: Key,
        entropy: Box<dyn Entropy + Send>,
        now: Instant,
        unix: UnixSeconds,
    ) -> PeerPart {
        let timeout = Duration::from_secs(self.timeout().into());
        let dialling = netcode::ClientConfig::new(self.protocol_id);
        let config = PeerConfig {
            key: self.join_key(),
            netcode: netcode::ClientConfig { development: self.key.is_none(), ..dialling },
            timeout: self.timeout(),
            upper_protocol: self.upper_protocol.as_ref().map(|upper_protocol| upper_protocol.hash),
            relaying: self.relaying,
        };
        let of_mesh = MeshConfig {
            name: self.name.into(),
            key: own_key,
            addresses: Some(address).filter(|address| !address.ip().is_unspecified()).into_iter().collect(),
            places: self.places,
            timeout,
        };
        let mesh = match self.contact {
            None => Mesh::host(of_mesh),
            Some(contact) => Mesh::join(of_mesh, vec![contact]),
        };
        let mut part = PeerPart::new(mesh, config, entropy, now, unix);
        if self.is_hosted {
            part.set_core(now, Some(Box::new(Hosting::new(timeout))));
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_named_and_strangers_get_in_only_without_a_key() {
        let good = Opening {
            protocol_id: 1,
            upper_protocol: None,
            key: None,
            name: "ann",
            places: 4,
            contact: None,
            timeout: None,
            relaying: true,
            is_hosted: false,
        };
        assert_eq!(good.check(), Ok(()));
        let long = "n".repeat(MAX_NAME_BYTES + 1);
        for (opening, told) in [
            (
                Opening { name: &long, ..good.clone() },
                "name must be 0 to 32 bytes in UTF-8 without NUL, not 33",
            ),
            (
                Opening { name: "a\0", ..good.clone() },
                "name must be 0 to 32 bytes in UTF-8 without NUL, not 2",
            ),
            (Opening { timeout: Some(61), ..good.clone() }, "timeout must be 1 to 60 between peers, not 61"),
        ] {
            assert_eq!(opening.check(), Err(told.into()));
        }
        let at = |text: &str| text.parse().unwrap();
        let (here, there) = (at("127.0.0.1:7"), at("192.0.2.1:7"));
        assert!(good.is_open(there, there) && !good.is_open(here, there) && !good.is_open(there, here));
        let own = Opening { contact: Some(there), ..good.clone() };
        assert!(own.check_contact(here).is_ok() && own.check_contact(at("192.0.2.1:8")).is_ok());
        assert!(own.check_contact(there).is_err());
        let own = Opening { contact: Some(here), ..good.clone() };
        assert!(own.check_contact(at("0.0.0.0:7")).is_err() && good.check_contact(there).is_ok());
        let closed = Opening { key: Some([1; 32]), ..good.clone() };
        assert!(!closed.is_open(there, there));
        // Only who knows the key, or has a token for this peer, connects; strangers aren't told what differs.
        let listener = closed.listener(there, [2; 32]);
        assert_eq!((listener.private_key, listener.second_key), ([1; 32], Some([2; 32])));
        assert_eq!((listener.explains, good.listener(there, [2; 32]).explains), (false, true));
        assert!(!listener.replace_duplicates);
    }
}
