//! The messages in which peers agree on who is in the game, and their bytes.
//!
//! Promises: [`Message::read`] reads back whatever [`Message::write`] wrote; it takes any bytes, with memory in
//! proportion.

use super::roster::{Addresses, LeaveReason, Name, Player, Players, Roster};
use super::{MAX_ADDRESSES, MAX_NAME_BYTES, MAX_PASS_BYTES, MAX_PLAYERS};
use crate::wire::packet::{Bytes, from_bytes, packet, to_bytes};

packet! {
    /// Identifies a proposal, by the master's epoch and that master's count. Later ones are larger.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Stamp {
        /// Counts masters, one after another.
        pub epoch: u32,
        pub revision: u32,
    }
}

/// By this a member recognises the newcomer that the master has announced.
pub type Ticket = [u8; 16];

/// The key that seals connect tokens for a peer.
pub type Key = [u8; 32];

type Pass = Bytes<16, MAX_PASS_BYTES>;

packet! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Message as u8 {
        /// A newcomer's request to join.
        0 => Hello { name: Name, addresses: Addresses },
        /// The peer that was asked isn't the master; the master's addresses, if known.
        1 => NotMaster { addresses: Addresses },
        /// The newcomer can't join.
        2 => Refused { reason: LeaveReason },
        /// The newcomer can join once it reaches all members: its number, and the master's.
        3 => Welcome { player: Player, joined: u32, master: Player, master_joined: u32, epoch: u32 },
        /// To a newcomer: dial this member, with this connect token.
        4 => Intro { player: Player, joined: u32, pass: Pass },
        /// To a member: a newcomer will dial, with this ticket.
        5 => Expect { player: Player, joined: u32, ticket: Ticket },
        /// The newcomer has reached these members.
        6 => Reached { players: Players },
        /// The newcomer can't reach this member.
        7 => Unreached { player: Player },
        /// The master's proposal: the roster agreed on before, and the one to be.
        8 => Propose { stamp: Stamp, stable: Roster, pending: Roster },
        /// The sender knows this proposal.
        9 => Ack { stamp: Stamp },
        /// A quorum knows the proposal: it counts. Microseconds until the start, if there is one; negative after it.
        10 => Commit { stamp: Stamp, left: Option<i64> },
        /// Microseconds until the start, repeated for members whom an earlier message reached late.
        11 => Count { left: i64 },
        /// The sender can't reach another member any more: because of what that member sent, if it `broke_rules`.
        12 => Lost { player: Player, joined: u32, broke_rules: bool },
        /// The master is gone and the sender wants to be it; the newest proposal it knows.
        13 => Claim { epoch: u32, last: Stamp },
        /// The sender votes for the claim.
        14 => Grant { epoch: u32 },
        /// The sender votes against it; the highest epoch it knows.
        15 => Deny { epoch: u32 },
        /// The key for connect tokens, for the master that lets in, and for a new one.
        16 => SealedWith { key: Key },
        /// The receiver is out of the game.
        17 => Out { reason: LeaveReason },
        /// The connect token by which the receiver reaches the server that the master runs.
        18 => Seat { pass: Pass },
    }
}

impl Message {
    /// The size of the largest message.
    pub const MAX_BYTES: usize =
        64 + 2 * (MAX_PLAYERS * (16 + MAX_NAME_BYTES + MAX_ADDRESSES * 20) + 32) + MAX_PLAYERS * 8 * 2;

    pub fn write(&self) -> Vec<u8> {
        to_bytes::<Message>(self)
    }

    /// None if the bytes aren't exactly one message.
    pub fn read(bytes: &[u8]) -> Option<Message> {
        let message = from_bytes::<Message>(bytes).ok()?;
        match &message {
            Message::Propose { stable, pending, .. } if !(stable.is_valid() && pending.is_valid()) => None,
            _ => Some(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::roster::{Member, Start};
    use super::*;
    use crate::rng::Rng;

    fn all() -> Vec<Message> {
        let addresses = vec!["10.0.0.1:7".parse().unwrap(), "[fe80::1]:9".parse().unwrap()];
        let name = "n".repeat(MAX_NAME_BYTES);
        let member = |player| Member { player, joined: 9, name: name.clone(), addresses: addresses.clone() };
        let roster = Roster {
            members: (0..16).map(member).collect(),
            places: 16,
            start: Some(Start { seed: 3, countdown: 4, players: 5, late: true }),
            left: vec![(1, 2, LeaveReason::Lost); 16],
        };
        let stamp = Stamp { epoch: 7, revision: 8 };
        vec![
            Message::Hello { name, addresses: addresses.clone() },
            Message::NotMaster { addresses },
            Message::Refused { reason: LeaveReason::Full },
            Message::Welcome { player: 3, joined: 4, master: 0, master_joined: 1, epoch: 2 },
            Message::Intro { player: 3, joined: 4, pass: vec![5; MAX_PASS_BYTES] },
            Message::Expect { player: 3, joined: 4, ticket: [6; 16] },
            Message::Reached { players: 5 },
            Message::Unreached { player: 2 },
            Message::Propose {
                stamp,
                stable: Roster { places: 2, ..Roster::default() },
                pending: roster.clone(),
            },
            Message::Propose { stamp, stable: roster.clone(), pending: roster },
            Message::Ack { stamp },
            Message::Commit { stamp, left: Some(-3) },
            Message::Count { left: 1 << 40 },
            Message::Lost { player: 15, joined: 1, broke_rules: true },
            Message::Claim { epoch: 3, last: stamp },
            Message::Grant { epoch: 3 },
            Message::Deny { epoch: 3 },
            Message::SealedWith { key: [8; 32] },
            Message::Out { reason: LeaveReason::Kicked },
        ]
    }

    #[test]
    fn messages_read_back_and_fit() {
        for message in all() {
            let bytes = message.write();
            assert_eq!(Message::read(&bytes), Some(message.clone()));
            assert!(bytes.len() <= Message::MAX_BYTES, "{message:?}: {}", bytes.len());
            assert!((0..bytes.len()).all(|cut| Message::read(&bytes[..cut]).is_none()), "{message:?}");
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut rng = Rng::seeded(5);
        for message in all() {
            for _ in 0..200 {
                let mut bytes = message.write();
                for _ in 0..=rng.below(4) {
                    let place = rng.below(bytes.len() as u64) as usize;
                    bytes[place] = rng.next_u64() as u8;
                }
                if let Some(read) = Message::read(&bytes) {
                    assert_eq!(Message::read(&read.write()), Some(read));
                }
            }
        }
    }
}
