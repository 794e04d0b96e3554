//! The messages in which peers agree on who is in the game, and their bytes.
//!
//! Promises: [`Message::read`] reads back whatever [`Message::write`] wrote; it takes any bytes, with memory in
//! proportion.

use core::net::{IpAddr, SocketAddr};

use super::roster::{LeaveReason, Member, Players, Roster, Start};
use super::{MAX_ADDRESSES, MAX_NAME_BYTES, MAX_PASS_BYTES, MAX_PLAYERS};

/// Identifies a proposal, by the master's epoch and that master's count. Later ones are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Counts masters, one after another.
    pub epoch: u32,
    pub revision: u32,
}

/// By this a member recognises the newcomer that the master has announced.
pub type Ticket = [u8; 16];

/// The key that seals connect tokens for a peer.
pub type Key = [u8; 32];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A newcomer's request to join.
    Hello { name: String, addresses: Vec<SocketAddr> },
    /// The peer that was asked isn't the master; the master's addresses, if known.
    NotMaster { addresses: Vec<SocketAddr> },
    /// The newcomer can't join.
    Refused { reason: LeaveReason },
    /// The newcomer can join once it reaches all members: its number, and the master's.
    Welcome { player: u8, joined: u32, master: u8, master_joined: u32, epoch: u32 },
    /// To a newcomer: dial this member, with this connect token.
    Intro { player: u8, joined: u32, pass: Vec<u8> },
    /// To a member: a newcomer will dial, with this ticket.
    Expect { player: u8, joined: u32, ticket: Ticket },
    /// The newcomer has reached these members.
    Reached { players: Players },
    /// The newcomer can't reach this member.
    Unreached { player: u8 },
    /// The master's proposal: the roster agreed on before, and the one to be.
    Propose { stamp: Stamp, stable: Roster, pending: Roster },
    /// The sender knows this proposal.
    Ack { stamp: Stamp },
    /// A quorum knows the proposal: it counts. Microseconds until the start, if there is one; negative after it.
    Commit { stamp: Stamp, left: Option<i64> },
    /// Microseconds until the start, repeated for members whom an earlier message reached late.
    Count { left: i64 },
    /// The sender can't reach another member any more: because of what that member sent, if it `broke_rules`.
    Lost { player: u8, joined: u32, broke_rules: bool },
    /// The master is gone and the sender wants to be it; the newest proposal it knows.
    Claim { epoch: u32, last: Stamp },
    /// The sender votes for the claim.
    Grant { epoch: u32 },
    /// The sender votes against it; the highest epoch it knows.
    Deny { epoch: u32 },
    /// The key for connect tokens, for the master that lets in, and for a new one.
    SealedWith { key: Key },
    /// The receiver is out of the game.
    Out { reason: LeaveReason },
    /// The connect token by which the receiver reaches the server that the master runs.
    Seat { pass: Vec<u8> },
}

impl Message {
    /// The size of the largest message.
    pub const MAX_BYTES: usize =
        64 + 2 * (MAX_PLAYERS * (16 + MAX_NAME_BYTES + MAX_ADDRESSES * 20) + 32) + MAX_PLAYERS * 8 * 2;

    pub fn write(&self) -> Vec<u8> {
        let mut to = Writer(Vec::new());
        match self {
            Message::Hello { name, addresses } => {
                to.u8(0);
                to.text(name);
                to.addresses(addresses);
            }
            Message::NotMaster { addresses } => {
                to.u8(1);
                to.addresses(addresses);
            }
            Message::Refused { reason } => to.0.extend([2, *reason as u8]),
            Message::Welcome { player, joined, master, master_joined, epoch } => {
                to.0.extend([3, *player, *master]);
                [joined, master_joined, epoch].into_iter().for_each(|number| to.u32(*number));
            }
            Message::Intro { player, joined, pass } => {
                to.0.extend([4, *player]);
                to.u32(*joined);
                to.pass(pass);
            }
            Message::Expect { player, joined, ticket } => {
                to.0.extend([5, *player]);
                to.u32(*joined);
                to.0.extend_from_slice(ticket);
            }
            Message::Reached { players } => {
                to.u8(6);
                to.u16(*players);
            }
            Message::Unreached { player } => to.0.extend([7, *player]),
            Message::Propose { stamp, stable, pending } => {
                to.u8(8);
                to.stamp(*stamp);
                to.roster(stable);
                to.roster(pending);
            }
            Message::Ack { stamp } => {
                to.u8(9);
                to.stamp(*stamp);
            }
            Message::Commit { stamp, left } => {
                to.u8(10);
                to.stamp(*stamp);
                to.u8(left.is_some().into());
                to.i64(left.unwrap_or(0));
            }
            Message::Count { left } => {
                to.u8(11);
                to.i64(*left);
            }
            Message::Lost { player, joined, broke_rules } => {
                to.0.extend([12, *player]);
                to.u32(*joined);
                to.u8(u8::from(*broke_rules));
            }
            Message::Claim { epoch, last } => {
                to.u8(13);
                to.u32(*epoch);
                to.stamp(*last);
            }
            Message::Grant { epoch } => {
                to.u8(14);
                to.u32(*epoch);
            }
            Message::Deny { epoch } => {
                to.u8(15);
                to.u32(*epoch);
            }
            Message::SealedWith { key } => {
                to.u8(16);
                to.0.extend_from_slice(key);
            }
            Message::Out { reason } => to.0.extend([17, *reason as u8]),
            Message::Seat { pass } => {
                to.u8(18);
                to.pass(pass);
            }
        }
        to.0
    }

    /// None if the bytes aren't exactly one message.
    pub fn read(bytes: &[u8]) -> Option<Message> {
        let mut from = Reader(bytes);
        let message = match from.u8()? {
            0 => Message::Hello { name: from.text()?, addresses: from.addresses()? },
            1 => Message::NotMaster { addresses: from.addresses()? },
            2 => Message::Refused { reason: from.reason()? },
            3 => {
                let (player, master) = (from.player()?, from.player()?);
                let (joined, master_joined, epoch) = (from.u32()?, from.u32()?, from.u32()?);
                Message::Welcome { player, joined, master, master_joined, epoch }
            }
            4 => Message::Intro { player: from.player()?, joined: from.u32()?, pass: from.pass()? },
            5 => Message::Expect { player: from.player()?, joined: from.u32()?, ticket: from.array()? },
            6 => Message::Reached { players: from.u16()? },
            7 => Message::Unreached { player: from.player()? },
            8 => Message::Propose { stamp: from.stamp()?, stable: from.roster()?, pending: from.roster()? },
            9 => Message::Ack { stamp: from.stamp()? },
            10 => {
                let (stamp, has) = (from.stamp()?, from.flag()?);
                let left = from.i64()?;
                Message::Commit { stamp, left: has.then_some(left) }
            }
            11 => Message::Count { left: from.i64()? },
            12 => Message::Lost { player: from.player()?, joined: from.u32()?, broke_rules: from.flag()? },
            13 => Message::Claim { epoch: from.u32()?, last: from.stamp()? },
            14 => Message::Grant { epoch: from.u32()? },
            15 => Message::Deny { epoch: from.u32()? },
            16 => Message::SealedWith { key: from.array()? },
            17 => Message::Out { reason: from.reason()? },
            18 => Message::Seat { pass: from.pass()? },
            _ => return None,
        };
        from.0.is_empty().then_some(message)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.0.extend(value.to_le_bytes());
    }

    fn pass(&mut self, pass: &[u8]) {
        self.u16(pass.len() as u16);
        self.0.extend_from_slice(pass);
    }

    fn stamp(&mut self, stamp: Stamp) {
        self.u32(stamp.epoch);
        self.u32(stamp.revision);
    }

    /// Writes a short string after its length.
    fn text(&mut self, text: &str) {
        self.u8(text.len() as u8);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn addresses(&mut self, addresses: &[SocketAddr]) {
        self.u8(addresses.len() as u8);
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    self.u8(4);
                    self.0.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    self.u8(6);
                    self.0.extend(ip.octets());
                }
            }
            self.u16(address.port());
        }
    }

    fn roster(&mut self, roster: &Roster) {
        let Roster { members, places, late, start, left } = roster;
        self.0.extend([members.len() as u8, *places, u8::from(*late), u8::from(start.is_some())]);
        for Member { player, joined, name, addresses } in members {
            self.u8(*player);
            self.u32(*joined);
            self.text(name);
            self.addresses(addresses);
        }
        if let Some(Start { seed, countdown, players }) = start {
            self.0.extend(seed.to_le_bytes());
            self.u32(*countdown);
            self.u16(*players);
        }
        self.u8(left.len() as u8);
        for (player, joined, reason) in left {
            self.u8(*player);
            self.u32(*joined);
            self.u8(*reason as u8);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        self.u8().filter(|flag| *flag < 2).map(|flag| flag == 1)
    }

    fn player(&mut self) -> Option<u8> {
        self.u8().filter(|player| usize::from(*player) < MAX_PLAYERS)
    }

    fn reason(&mut self) -> Option<LeaveReason> {
        self.u8().and_then(LeaveReason::from_number)
    }

    fn pass(&mut self) -> Option<Vec<u8>> {
        let length = usize::from(self.u16()?);
        (length <= MAX_PASS_BYTES).then_some(())?;
        self.bytes(length).map(<[u8]>::to_vec)
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp { epoch: self.u32()?, revision: self.u32()? })
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::from(self.u8()?);
        let text = core::str::from_utf8(self.bytes(length)?).ok()?;
        (length <= MAX_NAME_BYTES && !text.contains('\0')).then(|| text.to_owned())
    }

    fn addresses(&mut self) -> Option<Vec<SocketAddr>> {
        let count = usize::from(self.u8()?);
        if count > MAX_ADDRESSES {
            return None;
        }
        let address = |_| {
            let ip: IpAddr = match self.u8()? {
                4 => self.array::<4>()?.into(),
                6 => self.array::<16>()?.into(),
                _ => return None,
            };
            Some(SocketAddr::new(ip, self.u16()?))
        };
        (0..count).map(address).collect()
    }

    fn roster(&mut self) -> Option<Roster> {
        let (count, places, late, started) = (self.u8()?, self.u8()?, self.flag()?, self.flag()?);
        if usize::from(count.max(places)) > MAX_PLAYERS {
            return None;
        }
        let member = |_| {
            let (player, joined) = (self.player()?, self.u32()?);
            Some(Member { player, joined, name: self.text()?, addresses: self.addresses()? })
        };
        let members = (0..count).map(member).collect::<Option<Vec<_>>>()?;
        let start = match started {
            true => {
                let seed = self.array().map(u64::from_le_bytes)?;
                Some(Start { seed, countdown: self.u32()?, players: self.u16()? })
            }
            false => None,
        };
        let gone = usize::from(self.u8()?);
        if gone > MAX_PLAYERS {
            return None;
        }
        let leaver = |_| Some((self.player()?, self.u32()?, self.reason()?));
        let left = (0..gone).map(leaver).collect::<Option<Vec<_>>>()?;
        let roster = Roster { members, places, late, start, left };
        roster.is_valid().then_some(roster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn all() -> Vec<Message> {
        let addresses = vec!["10.0.0.1:7".parse().unwrap(), "[fe80::1]:9".parse().unwrap()];
        let name = "n".repeat(MAX_NAME_BYTES);
        let member = |player| Member { player, joined: 9, name: name.clone(), addresses: addresses.clone() };
        let roster = Roster {
            members: (0..16).map(member).collect(),
            places: 16,
            late: true,
            start: Some(Start { seed: 3, countdown: 4, players: 5 }),
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
