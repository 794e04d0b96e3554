//! Peers in one process: their meshes, what they say to each other in flight, and someone who picks what happens next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use tickwire::mesh::{
    Action, Happening, LeaveReason, LinkEnd, Mesh, MeshConfig, Message, Phase, Roster, Stamp, Start, Ticket,
};
use tickwire::time::{Duration, Instant};

/// The messages in flight on a connection.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Accepted(Option<Ticket>),
    Dialled,
    Message(Box<Message>),
    End(LinkEnd),
}

/// A connection: who dialled whom. Its number on either side is twice its place, and one more where it was dialled.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) from: usize,
    pub(crate) to: usize,
    open: [bool; 2],
    pub(crate) way: [VecDeque<Item>; 2],
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) peers: Vec<Option<Mesh>>,
    pub(crate) connections: Vec<Connection>,
    tickets: u8,
    pub(crate) happened: Vec<Vec<Happening>>,
    /// The tokens that were taken: by whom, from which host.
    pub(crate) seats: Vec<(usize, u8, Vec<u8>)>,
    /// What counted by which proposal.
    agreed: BTreeMap<(Stamp, usize), Roster>,
    pub(crate) cut: BTreeSet<(usize, usize)>,
    left: usize,
    /// Peers that fell silent: who dials them hears nothing until [`World::lose`].
    silent: BTreeSet<usize>,
    /// Joinings from this one on are of newcomers.
    pub(crate) first_new: u32,
}

/// When what is in flight was sent, by its connection and way.
pub(crate) type Sent = BTreeMap<(usize, usize), VecDeque<u64>>;

pub(crate) fn address(peer: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, peer as u8], 7))
}

fn config(peer: usize, places: u8) -> MeshConfig {
    MeshConfig {
        name: format!("peer {peer}"),
        key: [peer as u8; 32],
        addresses: vec![address(peer)],
        places,
        timeout: Duration::from_secs(5),
    }
}

impl World {
    /// A host that is alone.
    pub(crate) fn new() -> Self {
        let mut world = World {
            now: Instant::from_millis(1_000),
            peers: Vec::new(),
            connections: Vec::new(),
            tickets: 0,
            happened: Vec::new(),
            seats: Vec::new(),
            agreed: BTreeMap::new(),
            cut: BTreeSet::new(),
            left: 0,
            silent: BTreeSet::new(),
            first_new: u32::MAX,
        };
        world.add(Mesh::host(config(0, 8)));
        world
    }

    fn add(&mut self, mesh: Mesh) {
        self.peers.push(Some(mesh));
        self.happened.push(Vec::new());
        self.act(self.peers.len() - 1);
    }

    /// Another peer, that asks this one.
    pub(crate) fn join(&mut self, contact: usize) -> usize {
        let peer = self.peers.len();
        self.add(Mesh::join(config(peer, 8), vec![address(contact)]));
        peer
    }

    /// This many peers in a circle, of which each asks the next one.
    pub(crate) fn join_around(&mut self, count: usize) -> Vec<usize> {
        let first = self.peers.len();
        for place in 0..count {
            let contact = address(first + (place + 1) % count);
            self.peers.push(Some(Mesh::join(config(first + place, 8), vec![contact])));
            self.happened.push(Vec::new());
        }
        let peers: Vec<usize> = (first..first + count).collect();
        peers.iter().for_each(|peer| self.act(*peer));
        peers
    }

    /// A game of this many.
    pub(crate) fn of(count: usize) -> Self {
        let mut world = World::new();
        for _ in 1..count {
            world.join(0);
            world.settle();
        }
        world.first_new = count as u32;
        world
    }

    pub(crate) fn mesh(&mut self, peer: usize) -> &mut Mesh {
        self.peers[peer].as_mut().unwrap()
    }

    pub(crate) fn start(&mut self, peer: usize) -> bool {
        let start = Start { seed: 77, countdown: 500_000, players: 0, late: true };
        let now = self.now;
        let begun = self.mesh(peer).start(now, start);
        self.act(peer);
        begun
    }

    fn dial(&mut self, from: usize, to: usize, ticket: Option<Ticket>, player: Option<(u8, u32)>) {
        let place = self.connections.len();
        let mut connection = Connection { from, to, open: [true; 2], way: Default::default() };
        if self.peers.get(to).is_some_and(Option::is_some) && !self.is_cut(from, to) {
            connection.way[0].push_back(Item::Accepted(ticket));
        } else if !self.silent.contains(&to) {
            connection.way[1].push_back(Item::End(LinkEnd::Lost));
        }
        self.connections.push(connection);
        let now = self.now;
        self.mesh(from).note_dialling(now, 2 * place as u64 + 1, player);
    }

    fn is_cut(&self, a: usize, b: usize) -> bool {
        self.cut.contains(&(a.min(b), a.max(b)))
    }

    /// Carries out a mesh's actions.
    fn act(&mut self, peer: usize) {
        while let Some(action) = self.peers[peer].as_mut().and_then(Mesh::poll_action) {
            match action {
                Action::Send { link, message } => self.send(link, Item::Message(Box::new(message))),
                Action::Ask { addresses } => {
                    let SocketAddr::V4(to) = addresses[0] else { panic!() };
                    self.dial(peer, usize::from(to.ip().octets()[3]), None, None);
                }
                Action::Dial { who, pass } => {
                    let ticket = pass[1..17].try_into().unwrap();
                    self.dial(peer, usize::from(pass[0]), Some(ticket), Some(who));
                }
                Action::Introduce { newcomer, who: (player, joined), member, of, addresses, .. } => {
                    self.tickets += 1;
                    let ticket = [self.tickets; 16];
                    self.send(member, Item::Message(Box::new(Message::Expect { player, joined, ticket })));
                    let SocketAddr::V4(to) = addresses[0] else { panic!() };
                    let mut pass = vec![to.ip().octets()[3]];
                    pass.extend(ticket);
                    let intro = Message::Intro { player: of.0, joined: of.1, pass };
                    self.send(newcomer, Item::Message(Box::new(intro)));
                }
                Action::Admit { .. } => {}
                Action::TakeSeat { host, pass } => self.seats.push((peer, host.0, pass)),
                Action::End { link, reason } => {
                    let how = if reason == LeaveReason::Closed { LinkEnd::Left } else { LinkEnd::Parted };
                    self.close(link, how);
                }
                Action::Refuse { link, .. } => {
                    self.close(link, LinkEnd::Accused);
                    let now = self.now;
                    self.mesh(peer).handle_end(now, link, LinkEnd::Violation);
                }
            }
        }
        let Some(mesh) = &mut self.peers[peer] else { return };
        let mut new = Vec::new();
        while let Some(happening) = mesh.poll_happening() {
            new.push(happening);
        }
        for happening in new {
            self.note(peer, happening);
        }
    }

    fn note(&mut self, peer: usize, happening: Happening) {
        let told = &mut self.happened[peer];
        let count = |of: Happening| told.iter().filter(|it| **it == of).count();
        match happening {
            Happening::Joined { .. } => assert_eq!(count(happening), 0, "{peer}: twice {happening:?}"),
            Happening::Left { player, joined, .. } => {
                let left = |it: &&Happening| matches!(it, Happening::Left { player: a, joined: b, .. } if (*a, *b) == (player, joined));
                assert_eq!(told.iter().filter(left).count(), 0, "{peer}: twice {happening:?}");
                assert_eq!(count(Happening::Joined { player, joined }), 1, "{peer}: {happening:?}");
            }
            Happening::Starts { .. } => {
                assert!(!told.iter().any(|it| matches!(it, Happening::Starts { .. })), "{peer}: {told:?}");
            }
            Happening::Ended { .. } => assert_eq!(count(happening), 0),
            Happening::Master { .. } => {
                assert_ne!(
                    told.iter().rev().find(|it| matches!(it, Happening::Master { .. })),
                    Some(&happening)
                );
            }
        }
        told.push(happening);
    }

    fn send(&mut self, link: u64, item: Item) {
        let side = (link & 1) as usize;
        let connection = &mut self.connections[link as usize / 2];
        // Of the dialling side it goes the first way.
        if connection.open[0] && connection.open[1] {
            connection.way[1 - side].push_back(item);
        }
    }

    fn close(&mut self, link: u64, how: LinkEnd) {
        self.send(link, Item::End(how));
        let connection = &mut self.connections[link as usize / 2];
        connection.open[1 - (link & 1) as usize] = false;
    }

    /// The connections with something in flight.
    pub(crate) fn ready(&self) -> Vec<(usize, usize)> {
        let ways =
            self.connections.iter().enumerate().flat_map(|(place, it)| [(place, 0, it), (place, 1, it)]);
        ways.filter(|(_, way, it)| !it.way[*way].is_empty()).map(|(place, way, _)| (place, way)).collect()
    }

    /// The next thing of a way arrives.
    pub(crate) fn deliver(&mut self, place: usize, way: usize) {
        let now = self.now;
        let connection = &mut self.connections[place];
        let Some(item) = connection.way[way].pop_front() else { return };
        let (from, to) = (connection.from, connection.to);
        let (sender, receiver) = if way == 0 { (from, to) } else { (to, from) };
        let link = 2 * place as u64 + way as u64;
        // The receiving side has ended it.
        if !connection.open[1 - way] && !matches!(item, Item::End(_)) {
            return;
        }
        if let (Item::Accepted(_), true) = (&item, self.peers[receiver].is_none()) {
            return self.connections[place].way[1].push_back(Item::End(LinkEnd::Lost));
        }
        let Some(mesh) = &mut self.peers[receiver] else { return };
        match item {
            Item::Accepted(ticket) => {
                mesh.handle_accepted(now, link, address(sender), ticket);
                self.connections[place].way[1].push_front(Item::Dialled);
            }
            Item::Dialled => mesh.handle_dialled(now, link, address(sender)),
            Item::Message(message) => {
                let shown = format!("{message:?}");
                if let Err(fault) = mesh.handle_message(now, link, *message, Duration::ZERO) {
                    panic!(
                        "{receiver} finds fault with {sender}: {fault}: {shown}, {:?}",
                        self.peers[receiver]
                    );
                }
            }
            Item::End(how) => {
                self.connections[place].open[1 - way] = false;
                self.mesh(receiver).handle_end(now, link, how);
            }
        }
        self.after(receiver);
    }

    fn after(&mut self, peer: usize) {
        self.act(peer);
        let Some(mesh) = &self.peers[peer] else { return };
        // The stamp of a peer that has voted for another since may be of a proposal that doesn't count yet.
        if let (Some((stamp, roster)), Phase::Member) = (mesh.agreed(), mesh.phase()) {
            let same = self.agreed.iter().find(|((other, _), _)| *other == stamp).map(|(_, roster)| roster);
            if let Some(known) = same {
                // Two who are both alone have masters of one epoch.
                let alone = known.members.len().max(roster.members.len()) <= 1 + self.left;
                let same = (&known.members, known.start) == (&roster.members, roster.start);
                assert!(same || alone, "{stamp:?} at {peer}: {:?}", self.agreed);
            }
            self.agreed.insert((stamp, peer), roster.clone());
        }
        self.check_masters();
    }

    /// Nobody is the master in an epoch in which somebody else is; but of two players who both are alone.
    fn check_masters(&self) {
        let may_be_alone = |mesh: &&Mesh| mesh.roster().members.len() <= 2 + self.left;
        let masters = self.peers.iter().flatten().filter(|mesh| mesh.is_master() && !may_be_alone(mesh));
        let masters = masters.map(Mesh::epoch);
        let masters: Vec<_> = masters.collect();
        let distinct: BTreeSet<_> = masters.iter().collect();
        assert_eq!(distinct.len(), masters.len(), "two masters of one epoch");
    }

    /// A peer stops silently; its messages in flight may be lost.
    pub(crate) fn kill(&mut self, peer: usize, keep: bool) {
        self.peers[peer] = None;
        for connection in &mut self.connections {
            let way = match peer {
                _ if connection.from == peer => 0,
                _ if connection.to == peer => 1,
                _ => continue,
            };
            if !keep {
                connection.way[way].clear();
            }
            connection.way[1 - way].clear();
            connection.way[way].push_back(Item::End(LinkEnd::Lost));
        }
    }

    /// A peer stops, and no link has noticed so far: [`World::lose`] has one notice.
    pub(crate) fn silence(&mut self, peer: usize) {
        self.silent.insert(peer);
        self.peers[peer] = None;
        for connection in self.connections.iter_mut().filter(|it| it.from == peer || it.to == peer) {
            connection.way.iter_mut().for_each(VecDeque::clear);
        }
    }

    /// A peer's link to a silent one ends.
    pub(crate) fn lose(&mut self, peer: usize, silent: usize) {
        for place in 0..self.connections.len() {
            let connection = &mut self.connections[place];
            let way = match (connection.from, connection.to) {
                (from, to) if (from, to) == (silent, peer) => 0,
                (from, to) if (from, to) == (peer, silent) => 1,
                _ => continue,
            };
            connection.way[way].push_back(Item::End(LinkEnd::Lost));
            self.deliver(place, way);
        }
    }

    /// A peer ends its link to another because of what that peer sent, or so it says.
    pub(crate) fn accuse(&mut self, accuser: usize, of: usize) {
        let link = self.link(accuser, of);
        self.close(link, LinkEnd::Accused);
        let now = self.now;
        self.mesh(accuser).handle_end(now, link, LinkEnd::Violation);
        self.after(accuser);
    }

    /// A peer sends what its mesh wouldn't.
    pub(crate) fn tell(&mut self, from: usize, to: usize, message: Message) {
        let link = self.link(from, to);
        self.send(link, Item::Message(Box::new(message)));
    }

    /// The number of an open link on this peer's side.
    fn link(&self, of: usize, to: usize) -> u64 {
        let open = |it: &Connection| {
            it.open == [true; 2] && [(it.from, it.to), (it.to, it.from)].contains(&(of, to))
        };
        let place = self.connections.iter().rposition(open).unwrap();
        2 * place as u64 + u64::from(self.connections[place].from == of)
    }

    /// What was sent so many steps ago arrives: `sent` has the steps of all that is in flight.
    pub(crate) fn deliver_late(&mut self, sent: &mut Sent, step: u64, latency: u64) {
        for way in self.ready() {
            let times = sent.entry(way).or_default();
            let waiting = self.connections[way.0].way[way.1].len();
            times.extend((times.len()..waiting).map(|_| step));
            while times.front().is_some_and(|at| at + latency <= step) {
                times.pop_front();
                self.deliver(way.0, way.1);
            }
        }
    }

    /// So much time passes for all.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        (0..self.peers.len()).for_each(|peer| self.update(peer));
    }

    /// A peer looks at the clock.
    pub(crate) fn update(&mut self, peer: usize) {
        let now = self.now;
        if let Some(mesh) = &mut self.peers[peer] {
            mesh.update(now);
            self.after(peer);
        }
    }

    /// A peer says goodbye.
    pub(crate) fn leave(&mut self, peer: usize) {
        self.mesh(peer).end(LeaveReason::Closed);
        self.act(peer);
        self.peers[peer] = None;
        self.left += 1;
    }

    /// Two don't reach each other any more.
    pub(crate) fn cut(&mut self, a: usize, b: usize) {
        self.cut.insert((a.min(b), a.max(b)));
        for connection in &mut self.connections {
            let pair = (connection.from.min(connection.to), connection.from.max(connection.to));
            if pair == (a.min(b), a.max(b)) && connection.open == [true; 2] {
                connection.way.iter_mut().for_each(|way| {
                    way.clear();
                    way.push_back(Item::End(LinkEnd::Lost));
                });
            }
        }
    }

    /// Time goes on to the next thing that somebody waits for.
    pub(crate) fn tick(&mut self) {
        let next = self.peers.iter().flatten().map(Mesh::next_deadline).min().unwrap_or(Instant::NEVER);
        let soon = self.now + Duration::from_millis(250);
        self.now = next.clamp(self.now + Duration::from_millis(1), soon);
        (0..self.peers.len()).for_each(|peer| self.update(peer));
    }

    /// Everything arrives, and time passes until nothing more happens.
    pub(crate) fn settle(&mut self) {
        for _ in 0..80 {
            while let Some((place, way)) = self.ready().first().copied() {
                self.deliver(place, way);
            }
            self.tick();
        }
    }

    /// The peers that go on, by those whom they know.
    pub(crate) fn parts(&self) -> BTreeMap<Vec<(u8, u32)>, Vec<usize>> {
        let mut parts: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (peer, mesh) in self.peers.iter().enumerate() {
            let Some(mesh) = mesh.as_ref().filter(|mesh| mesh.is_member()) else { continue };
            let members = mesh.roster().members.iter().map(|member| (member.player, member.joined));
            parts.entry(members.collect()).or_default().push(peer);
        }
        parts
    }

    /// All who go on agree, and are one part; of two players each may be alone.
    pub(crate) fn check_settled(&self) {
        let parts = self.parts();
        for (members, peers) in &parts {
            assert_eq!(members.len(), peers.len(), "{parts:?} {:#?}", self.peers[peers[0]]);
            let masters: Vec<_> =
                peers.iter().filter(|peer| self.peers[**peer].as_ref().unwrap().is_master()).collect();
            assert_eq!(masters.len(), 1, "{parts:?}");
            let known: BTreeSet<_> =
                peers.iter().map(|peer| self.peers[*peer].as_ref().unwrap().master()).collect();
            assert_eq!(known.len(), 1, "{parts:?}");
            let starts = peers.iter().map(|peer| {
                self.happened[*peer].iter().filter(|it| matches!(it, Happening::Starts { .. })).count()
            });
            assert_eq!(starts.collect::<BTreeSet<_>>().len(), 1, "{parts:?}");
        }
        // One of two who are both alone may have let newcomers in.
        let old = |members: &Vec<(u8, u32)>| members.iter().filter(|it| it.1 < self.first_new).count();
        assert!(parts.len() <= 1 || parts.keys().all(|members| old(members) <= 1), "split: {parts:?}");
        assert!(parts.len() <= 2, "split: {parts:?}");
    }
}
