//! The roster: who is in the game, as all peers agree on it, and how many it takes to agree.

use core::net::{IpAddr, SocketAddr};

use super::{MAX_ADDRESSES, MAX_NAME_BYTES, MAX_PLAYERS};
use crate::wire::packet::{Below, Counted, Text, packet};

/// A set of players: a bit each.
pub type Players = u16;

/// A player's bit; 0 if no player can have the number.
pub fn bit(player: u8) -> Players {
    1_u16.checked_shl(player.into()).unwrap_or(0)
}

/// Whether a datagram to an address can only be for one host, and so may be sent because another peer says that a player is there:
/// not to a group, nor to all in a network, nor to nowhere.
pub fn is_dialable(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast() || ip.octets()[0] == 0);
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
}

/// A player's number, and which joining it is: numbers are given again.
pub type Identity = (u8, u32);

pub(super) type Player = Below<MAX_PLAYERS>;
pub(super) type Name = Text<8, MAX_NAME_BYTES>;
/// The addresses of a player.
pub(super) type Addresses = Counted<SocketAddr, 8, MAX_ADDRESSES>;

packet! {
    /// Someone in the game.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Member {
        /// The player's number in the game, below [`MAX_PLAYERS`].
        pub player: Player,
        /// Counts joinings over the whole game, to tell players who had the same number apart.
        pub joined: u32,
        pub name: Name,
        /// The addresses to reach the player at, the likeliest first.
        pub addresses: Addresses,
    }
}

packet! {
    /// Why a player left the game, or never got in.
    pub enum LeaveReason: u8 {
        /// It left by itself.
        Left = 0,
        /// It was silent for too long.
        Lost = 1,
        /// The master removed it.
        Kicked = 2,
        /// It and another player couldn't reach each other.
        Unreachable = 3,
        /// It broke the protocol.
        Violation = 4,
        /// Fewer than half of the players could still reach each other here: the game goes on elsewhere.
        Minority = 5,
        /// The game has no free place.
        Full = 6,
        /// The game has begun and takes nobody in any more.
        Started = 7,
        /// The two speak different protocols.
        Mismatch = 8,
        /// Nobody answered, or the peer that answered is gone.
        NoAnswer = 9,
        /// This peer closed it.
        Closed = 10,
        /// The rendezvous server knows no game with this code.
        UnknownCode = 11,
    }
}

packet! {
    /// The agreed start of a game.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Start {
        pub seed: u64,
        /// The countdown in microseconds.
        pub countdown: u32,
        /// The players at the time of the agreement: the same for all, even if some leave later. The master fills it in with
        /// the proposal.
        pub players: Players,
        /// Whether players may join after the start.
        pub late: bool,
    }
}

packet! {
    /// The roster that all peers agree on.
    #[derive(Clone, Debug, PartialEq, Eq, Default)]
    pub struct Roster {
        /// In rising order of the players' numbers.
        pub members: Counted<Member, 8, MAX_PLAYERS>,
        /// How many players there may be.
        pub places: u8,
        pub start: Option<Start>,
        /// The members of the previous roster that left: player, joining, reason.
        pub left: Counted<(Player, u32, LeaveReason), 8, MAX_PLAYERS>,
    }
}

impl Member {
    pub fn identity(&self) -> Identity {
        (self.player, self.joined)
    }
}

impl Roster {
    pub fn member(&self, player: u8) -> Option<&Member> {
        self.members.iter().find(|member| member.player == player)
    }

    /// Whether the player is in the roster with this very joining.
    pub fn has(&self, who: Identity) -> bool {
        self.members.iter().any(|member| member.identity() == who)
    }

    pub fn players(&self) -> Players {
        self.members.iter().fold(0, |players, member| players | bit(member.player))
    }

    /// Whether these players may decide: more than half of them, or exactly half including the lowest number, so that
    /// of two parts that don't see each other at most one decides. Of two players each may, if it doesn't reach the
    /// other: the survivor goes on. Members that said goodbye (`gone`) don't count.
    pub fn is_quorum(&self, players: Players, reached: Players, gone: Players) -> bool {
        let all = self.players() & !gone;
        let (here, count) = ((all & players).count_ones(), all.count_ones());
        let lowest = all & all.wrapping_neg();
        let is_left = count == 2 && all & reached & !players == 0;
        2 * here > count || 2 * here == count && (players & lowest != 0 || is_left)
    }

    /// Whether a peer's roster could be one.
    pub fn is_valid(&self) -> bool {
        let rising = self.members.windows(2).all(|pair| pair[0].player < pair[1].player);
        let places = usize::from(self.places);
        rising && self.members.len() <= places && places <= MAX_PLAYERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(players: &[u8]) -> Roster {
        let member =
            |player: &u8| Member { player: *player, joined: 1, name: String::new(), addresses: Vec::new() };
        Roster { members: players.iter().map(member).collect(), places: 16, ..Roster::default() }
    }

    #[test]
    fn only_addresses_of_one_host_are_dialled() {
        let is = |text: &str| is_dialable(text.parse().unwrap());
        for text in ["10.0.0.1:7", "127.0.0.1:7", "[::1]:7", "[fe80::1]:9", "[::ffff:1.2.3.4]:7"] {
            assert!(is(text), "{text}");
        }
        let none = [
            "10.0.0.1:0",
            "0.0.0.0:7",
            "0.1.2.3:7",
            "255.255.255.255:7",
            "224.0.0.1:7",
            "239.255.255.250:1900",
        ];
        let none_of_six =
            ["[::]:7", "[ff02::1]:7", "[::ffff:255.255.255.255]:7", "[::ffff:224.0.0.1]:7", "[::1]:0"];
        for text in none.into_iter().chain(none_of_six) {
            assert!(!is(text), "{text}");
        }
    }

    #[test]
    fn two_parts_are_never_both_enough_but_of_two_players() {
        for count in 1..=8_u8 {
            let players: Vec<u8> = (0..count).map(|player| player * 2 % 15).collect();
            let mut players = players;
            players.sort_unstable();
            players.dedup();
            let (roster, all) = (of(&players), of(&players).players());
            for part in 0..=all {
                let both = roster.is_quorum(part & all, 0, 0) && roster.is_quorum(all & !part, 0, 0);
                assert_eq!(
                    both,
                    players.len() == 2 && (part & all).count_ones() == 1,
                    "{players:?} {part:b}"
                );
            }
        }
    }
}
