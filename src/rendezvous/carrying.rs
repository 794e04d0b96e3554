//! Two members of a game that don't reach each other, through a third one, the carrier, that reaches both.
//!
//! Promises: a member carries only between neighbours that are named to it, each datagram once and unchanged, at a bounded
//! rate. If a carrier falls silent, another one takes over within a second or two. The datagrams are netcode's, sealed between
//! the two ends, so a carrier can lose them, and neither read nor change them. State is bounded by the number of players.
//!
//! On the wire: [`CARRIED`], the sender's number, the receiver's, and the datagram.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::relay::ByteBucket;
use crate::store::Datagrams;
use crate::store::counters::counters;
use crate::time::{Duration, Instant};

/// The first byte of what is carried. No packet of netcode begins with it, nor any of a rendezvous.
pub const CARRIED: u8 = 0xF8;

/// Bytes before the datagram.
pub const CARRIED_HEAD: usize = 3;

/// The network of addresses that stand for members: beside those of codes and of the relay.
const NETWORK: [u16; 4] = [0xFD3C, 0x9A57, 0xE1D4, 0x7279];

/// The port of all of them.
const PORT: u16 = 7777;

/// Players that there are at most, and as many that are about to be some.
const MAX_NEIGHBOURS: usize = 32;

/// The silence after which another member is tried: netcode's keep-alives come ten times a second.
const SILENT_AFTER: Duration = Duration::from_millis(700);

/// Bytes a second that a member carries from one neighbour, and from all.
const MAX_RATE_OF_ONE: u64 = 128 << 10;
const MAX_RATE: u64 = 512 << 10;

/// Bytes of the smallest packet of netcode: less is not worth a turn.
const MIN_CARRIED: usize = 18;

/// A player that this one knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    pub player: u8,
    /// Which joining of that number it is.
    pub joined: u32,
    /// Where it is, if there is a connection to it that nobody carries.
    pub address: Option<SocketAddr>,
}

/// What a datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriedHere {
    /// Nothing that is carried.
    NotCarried,
    Taken,
    /// From this address, behind [`CARRIED_HEAD`] bytes.
    Ours(SocketAddr),
}

counters! {
    /// What a member carried for others, and what it didn't.
    pub struct CarryCounters {
        carried,
        carried_bytes,
        /// Datagrams from or to whom nobody named, or from another address than the sender's.
        refused,
        /// Datagrams beyond the rate of their sender, or of all.
        over_rate,
        /// Ours, while nobody could carry them.
        no_carrier,
    }
}

/// The way to a member.
#[derive(Clone, Copy, Debug)]
struct Way {
    to: (u8, u32),
    through: u8,
    /// When something came by it, or it was taken.
    since: Instant,
    /// Whether something came by it.
    heard: bool,
}

/// A member's part in carrying, on its own behalf and on that of others.
pub struct MemberRelay {
    me: Option<u8>,
    neighbours: Vec<Neighbour>,
    ways: Vec<Way>,
    buckets: Vec<(u8, ByteBucket)>,
    total: ByteBucket,
    counters: CarryCounters,
}

/// The address that stands for a player who is reached through a carrier.
pub fn member_address(player: u8, joined: u32) -> SocketAddr {
    let [a, b, c, d] = NETWORK;
    let joined = [(joined >> 16) as u16, joined as u16];
    SocketAddr::new(Ipv6Addr::new(a, b, c, d, 0, joined[0], joined[1], player.into()).into(), PORT)
}

/// The player that an address stands for, with its joining, if it is such.
pub fn member_of(address: SocketAddr) -> Option<(u8, u32)> {
    let IpAddr::V6(ip) = address.ip() else { return None };
    let segments = ip.segments();
    let is_such = segments[..4] == NETWORK && segments[4] == 0 && address.port() == PORT;
    let player = u8::try_from(segments[7]).ok().filter(|_| is_such)?;
    Some((player, u32::from(segments[5]) << 16 | u32::from(segments[6])))
}

impl Default for MemberRelay {
    fn default() -> Self {
        let bucket = ByteBucket::new(MAX_RATE);
        MemberRelay {
            me: None,
            neighbours: Vec::new(),
            ways: Vec::new(),
            buckets: Vec::new(),
            total: bucket,
            counters: CarryCounters::default(),
        }
    }
}

impl MemberRelay {
    pub fn counters(&self) -> CarryCounters {
        self.counters
    }

    /// Tells it who this player is, and whom it knows of: those in the game, and those about to be.
    pub fn set_neighbours(&mut self, me: Option<u8>, neighbours: impl Iterator<Item = Neighbour>) {
        self.me = me;
        self.neighbours.clear();
        self.neighbours.extend(neighbours.take(MAX_NEIGHBOURS));
        let known = &self.neighbours;
        self.ways.retain(|way| known.iter().any(|it| (it.player, it.joined) == way.to));
        self.buckets.retain(|(player, _)| known.iter().any(|it| it.player == *player));
    }

    /// Who carries to a player now, if anybody does.
    pub fn through(&self, player: u8, joined: u32) -> Option<u8> {
        self.ways.iter().find(|way| way.to == (player, joined)).map(|way| way.through)
    }

    /// Takes what came from an address. What is for others is sent on.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        out: &mut Datagrams,
    ) -> CarriedHere {
        if member_of(from).is_some() {
            // Nothing comes from there as it is.
            self.counters.refused += 1;
            return CarriedHere::Taken;
        }
        let [CARRIED, rest @ ..] = datagram else { return CarriedHere::NotCarried };
        let [sender, receiver, inside @ ..] = rest else {
            self.counters.refused += 1;
            return CarriedHere::Taken;
        };
        let (sender, receiver) = (*sender, *receiver);
        // It can't be carried twice.
        let is_fine = sender != receiver && inside.len() >= MIN_CARRIED && inside[0] != CARRIED;
        let ours = self.me == Some(receiver);
        let taken = match is_fine && self.me != Some(sender) {
            true if ours => self.take(now, from, sender),
            true => {
                self.carry(now, from, (sender, receiver), datagram, out);
                return CarriedHere::Taken;
            }
            false => None,
        };
        self.counters.refused += u64::from(taken.is_none());
        taken.map_or(CarriedHere::Taken, CarriedHere::Ours)
    }

    /// A carried datagram for us came from this address, the carrier's.
    fn take(&mut self, now: Instant, from: SocketAddr, sender: u8) -> Option<SocketAddr> {
        let through = self.neighbours.iter().find(|it| it.address == Some(from))?.player;
        let sender = self.neighbours.iter().find(|it| it.player == sender && it.player != through)?;
        let to = (sender.player, sender.joined);
        let way = Way { to, through, since: now, heard: true };
        match self.ways.iter_mut().find(|way| way.to == to) {
            // While something comes by it, nobody else draws it to itself: whatever is inside can't be told apart here.
            Some(known) if known.heard && known.through != through && now - known.since < SILENT_AFTER => {}
            Some(known) => *known = way,
            None => self.ways.push(way),
        }
        Some(member_address(to.0, to.1))
    }

    fn carry(
        &mut self,
        now: Instant,
        from: SocketAddr,
        (sender, receiver): (u8, u8),
        datagram: &[u8],
        out: &mut Datagrams,
    ) {
        let is_there = self.neighbours.iter().any(|it| it.player == sender && it.address == Some(from));
        let to = self.neighbours.iter().find(|it| it.player == receiver).and_then(|it| it.address);
        let Some(to) = to.filter(|_| is_there) else { return self.counters.refused += 1 };
        let place = match self.buckets.iter().position(|(player, _)| *player == sender) {
            Some(place) => place,
            None => {
                self.buckets.push((sender, ByteBucket::new(MAX_RATE_OF_ONE)));
                self.buckets.len() - 1
            }
        };
        if !self.buckets[place].1.take(now, datagram.len()) || !self.total.take(now, datagram.len()) {
            return self.counters.over_rate += 1;
        }
        self.counters.carried += 1;
        self.counters.carried_bytes += datagram.len() as u64;
        out.push(to, datagram);
    }

    /// The carrier to a player from now on: the present one, unless nothing has come from it for too long.
    fn carrier_to(&mut self, now: Instant, to: (u8, u32)) -> Option<SocketAddr> {
        let may = |it: &&Neighbour| it.address.is_some() && it.player != to.0;
        let way = self.ways.iter_mut().find(|way| way.to == to);
        let known = way.as_ref().map(|way| way.through);
        let still = |player| self.neighbours.iter().filter(may).find(|it| it.player == player);
        if let Some(way) = &way
            && now - way.since < SILENT_AFTER
            && let Some(carrier) = still(way.through)
        {
            return carrier.address;
        }
        // The next one by number, and around.
        let next =
            self.neighbours.iter().filter(may).filter(|it| known.is_none_or(|it_is| it.player > it_is));
        let first = self.neighbours.iter().filter(may).min_by_key(|it| it.player);
        let carrier = next.min_by_key(|it| it.player).or(first)?;
        let new = Way { to, through: carrier.player, since: now, heard: false };
        match way {
            Some(way) => *way = new,
            None if self.neighbours.iter().any(|it| (it.player, it.joined) == to) => self.ways.push(new),
            None => return None,
        }
        carrier.address
    }

    /// Sends a datagram to a member through another one.
    fn wrap(&mut self, now: Instant, to: SocketAddr, datagram: &[u8], out: &mut Datagrams) {
        let Some(member) = member_of(to) else { return };
        match (self.me, self.carrier_to(now, member)) {
            (Some(me), Some(carrier)) => out.push_with(carrier, |out| {
                out.extend_from_slice(&[CARRIED, me, member.0]);
                out.extend_from_slice(datagram);
            }),
            _ => self.counters.no_carrier += 1,
        }
    }

    /// Sends those of a batch by others that go to addresses of members; the rest stays as it is, in order.
    pub fn wrap_all(&mut self, now: Instant, batch: &mut Datagrams) {
        let is_member = |to| member_of(to).is_some();
        batch.divert(is_member, |to, datagram, out| self.wrap(now, to, datagram, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const SEALED: [u8; 40] = [0x15; 40];

    fn at(player: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, player], 7))
    }

    /// A member that reaches these of four.
    fn member(me: u8, reaches: &[u8]) -> MemberRelay {
        let mut relay = MemberRelay::default();
        let of =
            |player| Neighbour { player, joined: 9, address: reaches.contains(&player).then(|| at(player)) };
        relay.set_neighbours(Some(me), (0..4).filter(|player| *player != me).map(of));
        relay
    }

    /// What a member sends on of a datagram from an address.
    fn sent_on(relay: &mut MemberRelay, now: Instant, from: SocketAddr, datagram: &[u8]) -> Vec<SocketAddr> {
        let mut out = Datagrams::new();
        relay.handle_datagram(now, from, datagram, &mut out);
        assert!(out.iter().all(|(_, sent)| sent == datagram));
        out.iter().map(|(to, _)| to).collect()
    }

    #[test]
    fn an_address_stands_for_a_member() {
        let address = member_address(15, 0xABCD_EF01);
        assert_eq!(member_of(address), Some((15, 0xABCD_EF01)));
        for text in ["10.0.0.1:7777", "[fd3c:9a57:e1d4:7278::1]:7777", "[fd3c:9a57:e1d4:7279::1]:7"] {
            assert_eq!(member_of(text.parse().unwrap()), None);
        }
    }

    #[test]
    fn a_datagram_goes_by_a_third_and_comes_as_it_was() {
        let (mut one, mut third, mut two) = (member(1, &[0]), member(0, &[1, 2, 3]), member(2, &[0]));
        let (now, mut out) = (Instant::from_millis(5), Datagrams::new());
        out.push(at(0), b"other");
        out.push(member_address(2, 9), &SEALED);
        one.wrap_all(now, &mut out);
        assert_eq!(out.iter().map(|(to, _)| to).collect::<Vec<_>>(), [at(0), at(0)]);
        let carried = out.iter().nth(1).unwrap().1.to_vec();
        assert_eq!(sent_on(&mut third, now, at(1), &carried), [at(2)]);
        let here = two.handle_datagram(now, at(0), &carried, &mut Datagrams::new());
        assert_eq!(here, CarriedHere::Ours(member_address(1, 9)));
        assert_eq!(carried[CARRIED_HEAD..], SEALED);
        assert_eq!((one.through(2, 9), two.through(1, 9)), (Some(0), Some(0)));
        assert_eq!((third.counters().carried, third.counters().carried_bytes), (1, carried.len() as u64));
    }

    #[test]
    fn nobody_carries_for_strangers_or_to_them() {
        let mut third = member(0, &[1, 2]);
        let now = Instant::from_millis(5);
        let carried = |from: u8, to: u8| [&[CARRIED, from, to], &SEALED[..]].concat();
        let stranger: SocketAddr = "6.6.6.6:6".parse().unwrap();
        let cases = [
            (stranger, carried(1, 2)),
            (at(1), carried(2, 1)),
            (at(1), carried(1, 1)),
            (at(1), carried(1, 3)),
            (at(1), carried(1, 9)),
            (at(1), carried(0, 2)),
            (at(1), carried(1, 2)[..CARRIED_HEAD + MIN_CARRIED - 1].to_vec()),
            (at(1), [&[CARRIED, 1, 2][..], &carried(1, 2)[..]].concat()),
            (at(1), vec![CARRIED, 1]),
            (member_address(1, 9), carried(1, 2)),
        ];
        for (place, (from, datagram)) in cases.iter().enumerate() {
            assert_eq!(sent_on(&mut third, now, *from, datagram), [], "{place}");
            assert_eq!(third.counters().refused, place as u64 + 1);
        }
        // Nor is anything taken that a stranger brings, or that somebody says of itself.
        for (from, datagram) in [(stranger, carried(1, 0)), (at(1), carried(1, 0))] {
            let here = third.handle_datagram(now, from, &datagram, &mut Datagrams::new());
            assert_eq!(here, CarriedHere::Taken);
        }
    }

    #[test]
    fn a_flood_is_carried_at_a_bounded_rate() {
        let mut third = member(0, &[1, 2]);
        let datagram = [&[CARRIED, 1, 2][..], &[7; 1_000]].concat();
        let mut bytes = 0;
        for ms in 0..10_000 {
            for _ in 0..5 {
                let sent = sent_on(&mut third, Instant::from_millis(ms), at(1), &datagram);
                bytes += sent.len() * datagram.len();
            }
        }
        assert!(bytes as u64 <= MAX_RATE_OF_ONE * 21 / 2 && bytes as u64 >= MAX_RATE_OF_ONE * 9, "{bytes}");
    }

    #[test]
    fn when_who_carries_falls_silent_another_one_does() {
        let mut one = member(1, &[0, 3]);
        let mut through = Vec::new();
        for ms in (0..3_000).step_by(100) {
            let mut out = Datagrams::new();
            out.push(member_address(2, 9), &SEALED);
            one.wrap_all(Instant::from_millis(ms), &mut out);
            through.push(one.through(2, 9).unwrap());
            if ms < 1_000 {
                // The first one does carry.
                let carried = [&[CARRIED, 2, 1], &SEALED[..]].concat();
                one.handle_datagram(Instant::from_millis(ms), at(0), &carried, &mut Datagrams::new());
            }
        }
        through.dedup();
        assert_eq!(through, [0, 3, 0]);
        let mut alone = member(1, &[]);
        let mut out = Datagrams::new();
        out.push(member_address(2, 9), &SEALED);
        out.push(member_address(7, 9), &SEALED);
        alone.wrap_all(Instant::ZERO, &mut out);
        assert!(out.is_empty());
        assert_eq!(alone.counters().no_carrier, 2);
    }

    #[test]
    fn nobody_draws_a_way_to_itself_while_something_comes_by_it() {
        let mut one = member(1, &[0, 3]);
        let carried = [&[CARRIED, 2, 1], &SEALED[..]].concat();
        let mut take = |ms, from| {
            let here = one.handle_datagram(Instant::from_millis(ms), from, &carried, &mut Datagrams::new());
            assert_eq!(here, CarriedHere::Ours(member_address(2, 9)));
            one.through(2, 9).unwrap()
        };
        for ms in (0..2_000).step_by(100) {
            assert_eq!((take(ms, at(0)), take(ms + 50, at(3))), (0, 0), "{ms}");
        }
        // Once that is silent, the next player that brings something is the way.
        let through: Vec<u8> = (2_000..3_000).step_by(100).map(|ms| take(ms, at(3))).collect();
        assert_eq!(through, [0, 0, 0, 0, 0, 0, 3, 3, 3, 3]);
    }

    #[test]
    fn any_bytes_are_carried_once_or_dropped() {
        let (mut third, mut rng) = (member(0, &[1, 2, 3]), Rng::seeded(3));
        for ms in 0..5_000 {
            let mut datagram: Vec<u8> = (0..rng.below(60)).map(|_| rng.next_u64() as u8).collect();
            for (place, most) in [(1, 5), (2, 5)] {
                if let Some(byte) = datagram.get_mut(place) {
                    *byte = rng.below(most) as u8;
                }
            }
            if let Some(first) = datagram.first_mut() {
                *first = CARRIED;
            }
            let from = at(rng.below(5) as u8);
            assert!(sent_on(&mut third, Instant::from_millis(ms), from, &datagram).len() <= 1);
            assert!(third.ways.len() <= 3 && third.buckets.len() <= 3);
        }
    }
}
