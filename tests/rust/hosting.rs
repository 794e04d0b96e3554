//! Who hosts a game, and with which world: walks in which packets and worlds are lost, hosts die or are cut off, and a
//! player lies.

use std::collections::BTreeMap;

use tickwire::mesh::{Member, Players, Roster, bit};
use tickwire::rng::Rng;
use tickwire::session::Carried;
use tickwire::session::hosting::{Agreed, Hosting, News, Transfer, WorldBytes, WorldId};
use tickwire::time::{Duration, Instant};
use tickwire::wire::BitWriter;

const TIMEOUT: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(20);

/// Where a packet's note begins, and the first byte of those about worlds.
const HEAD: usize = 16;
const MEMBER: u8 = 2;

/// What is on its way: due then, from and to a player.
enum Parcel {
    Note(Vec<u8>),
    Saved(WorldId, WorldBytes),
}

/// Changes the world that a player sends; true: the player sends nothing.
type Lie = fn(&mut WorldBytes) -> bool;

struct Peer {
    hosting: Hosting,
    agreed: Agreed,
    /// The ticks of its world: of what it hosts or last loaded.
    ticks: Option<u32>,
    /// Worlds that it refuses.
    refuses: bool,
    changes: Vec<u8>,
    alive: bool,
    heard: BTreeMap<usize, Instant>,
}

struct Game {
    now: Instant,
    rng: Rng,
    loss: f64,
    peers: Vec<Peer>,
    parcels: Vec<(Instant, usize, usize, Parcel)>,
    /// Groups of players that don't reach each other.
    parts: Vec<Players>,
    most_hosts: usize,
    /// Changes the worlds that a player sends.
    liar: Option<(usize, Lie)>,
    /// A player whom the first host sends no worlds.
    host_skips: Option<u8>,
    /// Takes the place of the notes that a player sends about the worlds.
    forged: Option<(usize, Vec<u8>)>,
}

fn world_of(ticks: u32) -> WorldBytes {
    WorldBytes::new(ticks.to_le_bytes().repeat(50))
}

impl Game {
    fn new(players: usize, seed: u64, loss: f64) -> Self {
        let everybody = (1 << players) - 1;
        let peer = |me: usize| Peer {
            hosting: Hosting::new(TIMEOUT),
            agreed: Agreed { epoch: 1, me: Some(me as u8), master: Some(0), others: everybody & !(1 << me) },
            ticks: None,
            refuses: false,
            changes: Vec::new(),
            alive: true,
            heard: BTreeMap::new(),
        };
        Game {
            now: Instant::from_millis(5_000),
            rng: Rng::seeded(seed),
            loss,
            peers: (0..players).map(peer).collect(),
            parcels: Vec::new(),
            parts: vec![everybody],
            most_hosts: 0,
            liar: None,
            host_skips: None,
            forged: None,
        }
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let knows = |one: usize, other: usize| self.peers[one].agreed.others & bit(other as u8) != 0;
        let connected = knows(from, to) && knows(to, from);
        connected && self.parts.iter().any(|part| part & bit(from as u8) != 0 && part & bit(to as u8) != 0)
    }

    fn is_quorum(&self, place: usize) -> bool {
        let peer = &self.peers[place];
        let players = peer.agreed.others | bit(place as u8);
        let member = |player: u8| Member { player, joined: 1, name: String::new(), addresses: Vec::new() };
        let members = (0..16).filter(|player| players & bit(*player) != 0).map(member).collect();
        let roster = Roster { members, places: 16, ..Roster::default() };
        roster.is_quorum(peer.hosting.leases(self.now) | bit(place as u8), players, 0)
    }

    fn is_host(&self, place: usize) -> bool {
        self.peers[place].alive && self.peers[place].hosting.is_running() && self.is_quorum(place)
    }

    fn hosts(&self) -> Vec<usize> {
        (0..self.peers.len()).filter(|place| self.is_host(*place)).collect()
    }

    fn run(&mut self, seconds: f64) {
        let until = self.now + Duration::from_secs_f64(seconds);
        while self.now < until {
            self.now += TICK;
            self.deliver();
            for place in 0..self.peers.len() {
                if self.peers[place].alive {
                    self.tick(place);
                }
            }
            self.most_hosts = self.most_hosts.max(self.hosts().len());
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        let due: Vec<_> = self.parcels.extract_if(.., |parcel| parcel.0 <= now).collect();
        for (_, from, to, parcel) in due {
            let is_there = self.peers[to].alive && self.reaches(from, to);
            match parcel {
                Parcel::Note(bytes) if is_there => {
                    self.peers[to].heard.insert(from, now);
                    self.peers[to].hosting.read(now, from as u8, &bytes).unwrap();
                }
                Parcel::Saved(id, world) => {
                    if is_there {
                        self.peers[to].hosting.handle_world(from as u8, id, world);
                    }
                    self.peers[from].hosting.note_sent(to as u8, is_there);
                }
                Parcel::Note(_) => {}
            }
        }
    }

    fn tick(&mut self, place: usize) {
        let (now, is_host) = (self.now, self.is_host(place));
        let agreed = self.peers[place].agreed;
        let quorum = self.is_quorum(place);
        self.peers[place].hosting.update(now, agreed, quorum);
        while let Some(transfer) = self.peers[place].hosting.poll_transfer() {
            self.send(place, transfer);
        }
        while let Some(news) = self.peers[place].hosting.poll_news() {
            self.hear(place, news);
        }
        let peer = &mut self.peers[place];
        if is_host && let Some(ticks) = &mut peer.ticks {
            *ticks += 1;
            if peer.hosting.is_save_due(now) {
                assert!(peer.hosting.keep(now, world_of(*ticks)));
            }
        }
        for to in 0..self.peers.len() {
            let mut writer = BitWriter::new();
            if to == place || !self.peers[place].hosting.fill(now, to as u8, 8_000, &mut writer) {
                continue;
            }
            if !self.rng.chance(self.loss) {
                let at = now + Duration::from_millis(20 + self.rng.below(60));
                let bytes = self.told_by(place, writer.into_bytes());
                self.parcels.push((at, place, to, Parcel::Note(bytes)));
            }
        }
    }

    /// A packet as a player sends it, who may lie.
    fn told_by(&self, place: usize, packet: Vec<u8>) -> Vec<u8> {
        match &self.forged {
            Some((liar, note)) if *liar == place && packet.get(HEAD) == Some(&MEMBER) => {
                [&packet[..HEAD], note].concat()
            }
            _ => packet,
        }
    }

    fn send(&mut self, place: usize, transfer: Transfer) {
        let Transfer { player, id, mut world } = transfer;
        if place == 0 && self.host_skips == Some(player) {
            return self.peers[place].hosting.note_sent(player, true);
        }
        if self.liar.is_some_and(|(liar, change)| liar == place && change(&mut world)) {
            return;
        }
        let at = self.now + Duration::from_millis(40 + self.rng.below(200));
        self.parcels.push((at, place, usize::from(player), Parcel::Saved(id, world)));
    }

    fn hear(&mut self, place: usize, news: News) {
        let peer = &mut self.peers[place];
        match news {
            News::Begin { world } => {
                let is_fine = world.is_none() || !peer.refuses;
                peer.refuses = false;
                if is_fine {
                    let ticks = world.map_or(0, |it| u32::from_le_bytes(it.bytes[..4].try_into().unwrap()));
                    peer.ticks = Some(ticks);
                }
                peer.hosting.note_begun(self.now, is_fine);
            }
            News::Changed { host, .. } => peer.changes.push(host),
        }
    }

    /// The players of a part elect another master, once none of them can follow the old one.
    fn elect(&mut self, part: Players, master: usize) {
        let epoch = self.peers.iter().map(|peer| peer.agreed.epoch).max().unwrap() + 1;
        self.agree(part, epoch, Some(master as u8));
    }

    /// The players of a part have lost their master, and vote.
    fn vote(&mut self, part: Players, seconds: f64) {
        let epoch = self.peers.iter().map(|peer| peer.agreed.epoch).max().unwrap();
        self.agree(part, epoch, None);
        self.run(seconds);
    }

    fn agree(&mut self, part: Players, epoch: u32, master: Option<u8>) {
        let voters: Vec<usize> =
            (0..self.peers.len()).filter(|place| part & bit(*place as u8) != 0).collect();
        for place in voters {
            let peer = &mut self.peers[place];
            for gone in (0..16).filter(|player| part & bit(*player) == 0) {
                peer.hosting.note_left(self.now, gone);
            }
            let me = peer.agreed.me;
            peer.agreed = Agreed { epoch, me, master, others: part & !bit(place as u8) };
        }
    }

    /// Runs until none of these players can follow the host any more.
    fn wait_for_silence(&mut self, part: Players, host: usize) {
        loop {
            let heard = |peer: &Peer| peer.heard.get(&host).copied().unwrap_or_default();
            let last = self.peers.iter().zip(0_u8..).filter(|(_, place)| part & bit(*place) != 0);
            if last.map(|(peer, _)| heard(peer)).max().unwrap() + TIMEOUT <= self.now {
                return;
            }
            self.run(0.02);
        }
    }
}

#[test]
fn the_game_goes_on_with_the_newest_world_whenever_its_host_dies() {
    for seed in 0..300 {
        let loss = 0.1 * (seed % 3) as f64;
        let mut game = Game::new(4, seed, loss);
        game.run(2.0 + (seed % 17) as f64 * 0.06);
        assert_eq!(game.hosts(), [0]);
        let ticks = game.peers[0].ticks.unwrap();
        game.peers[0].alive = false;
        game.wait_for_silence(0b1110, 0);
        let master = 1 + (seed % 3) as usize;
        game.vote(0b1110, (seed % 5) as f64 * 0.1);
        game.elect(0b1110, master);
        game.run(3.0);
        assert_eq!(game.hosts(), [master], "seed {seed}");
        // Saves are a quarter of a second apart and take about as long, more where notes are lost. So do the answers.
        let before = ticks + (3.0 / TICK.as_secs_f64()) as u32;
        let now = game.peers[master].ticks.unwrap();
        assert!(now + 110 >= before && now <= before, "seed {seed}: {now} of {before}");
        for peer in &game.peers[1..] {
            assert_eq!(peer.changes, [master as u8], "seed {seed}");
        }
        assert_eq!(game.most_hosts, 1, "seed {seed}");
    }
}

#[test]
fn the_likely_next_host_has_the_newest_world_when_it_is_elected() {
    for seed in 0..200 {
        let mut game = Game::new(4, seed, 0.0);
        game.run(2.0 + (seed % 17) as f64 * 0.06);
        let ticks = game.peers[0].ticks.unwrap();
        // The newest worlds don't reach the next host, but the other two.
        game.host_skips = Some(1);
        game.run(1.0);
        game.peers[0].alive = false;
        game.wait_for_silence(0b1110, 0);
        game.vote(0b1110, 0.5);
        assert_eq!((game.hosts(), &game.peers[1].changes[..]), (vec![], &[][..]), "it isn't elected yet");
        game.elect(0b1110, 1);
        game.run(2.0 * TICK.as_secs_f64());
        assert_eq!((game.hosts(), game.most_hosts), (vec![1], 1), "seed {seed}");
        assert!(game.peers[1].ticks.unwrap() > ticks + 20, "seed {seed}: a world from the last half second");
    }
}

#[test]
fn a_host_that_is_cut_off_stops_before_another_one_begins() {
    for seed in 0..100 {
        let mut game = Game::new(5, seed, 0.1);
        game.run(2.0);
        game.parts = vec![0b00011, 0b11100];
        game.wait_for_silence(0b11100, 0);
        assert_eq!(game.hosts(), [0; 0], "it has heard too little for too long");
        game.elect(0b11100, 2);
        game.run(2.0);
        assert_eq!((game.hosts(), game.most_hosts), (vec![2], 1), "seed {seed}");
        game.parts = vec![0b11111];
        game.run(2.0);
        assert_eq!((game.hosts(), game.most_hosts), (vec![2], 1), "seed {seed}");
    }
}

#[test]
fn a_host_that_is_silent_for_a_while_goes_on_and_nobody_hears_of_a_change() {
    let mut game = Game::new(4, 3, 0.0);
    game.run(2.0);
    game.parts = vec![0b0001, 0b1110];
    game.run(1.98);
    game.parts = vec![0b1111];
    game.run(1.0);
    assert_eq!((game.hosts(), game.most_hosts), (vec![0], 1));
    // The others vote for it once more: nothing ends.
    game.elect(0b1111, 0);
    let ticks = game.peers[0].ticks.unwrap();
    game.run(1.0);
    assert_eq!(game.hosts(), [0]);
    assert_eq!(game.peers[0].ticks, Some(ticks + 50));
    assert!(game.peers.iter().all(|peer| peer.changes.is_empty()));
}

#[test]
fn a_world_that_cannot_be_loaded_gives_way_to_an_older_one_or_to_none() {
    let mut game = Game::new(3, 5, 0.0);
    game.run(3.0);
    game.peers[0].alive = false;
    game.wait_for_silence(0b110, 0);
    game.peers[1].refuses = true;
    game.elect(0b110, 1);
    game.run(1.0);
    assert_eq!(game.hosts(), [1]);
    assert!(game.peers[1].ticks.unwrap() > 50, "the world before");
    assert_eq!(game.peers[1].hosting.counters().refused_worlds, 1);
}

/// A player of four that doesn't have the newest world asks for it; the only other one that has it lies.
fn among_liars(lie: fn(&mut WorldBytes) -> bool) -> Game {
    let mut game = Game::new(6, 7, 0.0);
    game.run(3.0);
    game.peers[0].alive = false;
    game.wait_for_silence(0b111110, 0);
    game.liar = Some((1, lie));
    game.vote(0b111110, 0.2);
    // The worlds went to players 1 to 3.
    game.elect(0b111110, 5);
    game.run(3.0);
    assert_eq!((game.hosts(), game.most_hosts), (vec![5], 1));
    game
}

#[test]
fn a_successor_that_sends_another_world_or_none_only_delays_the_game() {
    let other = |world: &mut WorldBytes| {
        *world = world_of(1_000_000);
        false
    };
    for lie in [other, |_: &mut WorldBytes| true] {
        let game = among_liars(lie);
        let ticks = game.peers[5].ticks.unwrap();
        assert!((100..400).contains(&ticks), "the true world, from another player: {ticks}");
    }
}

/// A note that names a world which was never saved.
fn forged_note(id: WorldId, world: &WorldBytes) -> Vec<u8> {
    let mut note = vec![MEMBER];
    note.extend([id.0, id.1, world.bytes.len() as u32, 0].into_iter().flat_map(u32::to_le_bytes));
    note.extend(world.hash);
    note.push(1);
    note
}

#[test]
fn a_world_that_only_one_player_reports_is_not_taken_over() {
    let mut game = Game::new(6, 7, 0.0);
    game.run(3.0);
    game.peers[0].alive = false;
    game.wait_for_silence(0b111110, 0);
    game.forged = Some((1, forged_note((1, 1_000), &world_of(1_000_000))));
    game.liar = Some((1, |world| {
        *world = world_of(1_000_000);
        false
    }));
    game.elect(0b111110, 5);
    game.run(3.0);
    assert_eq!((game.hosts(), game.most_hosts), (vec![5], 1));
    let ticks = game.peers[5].ticks.unwrap();
    assert!((100..400).contains(&ticks), "{ticks}");
}

#[test]
fn worlds_that_nobody_announced_are_refused() {
    let mut game = Game::new(4, 9, 0.0);
    game.run(2.0);
    let forged = world_of(9);
    // Player 3 isn't the host, and epoch 9 hasn't been.
    for (from, id) in [(3, (1, 99)), (3, (9, 1)), (0, (9, 1))] {
        game.peers[1].hosting.handle_world(from, id, forged.clone());
    }
    assert_eq!(game.peers[1].hosting.counters().refused_worlds, 3);
    game.peers[0].alive = false;
    game.wait_for_silence(0b1110, 0);
    game.elect(0b1110, 1);
    game.run(2.0);
    assert!(game.peers[1].ticks.unwrap() > 100);
}

#[test]
fn any_bytes_are_read_or_refused() {
    let mut rng = Rng::seeded(8);
    let mut game = Game::new(4, 1, 0.0);
    game.run(0.5);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..rng.below(560)).map(|_| rng.next_u64() as u8).collect();
        if let Some(epoch) = bytes.first_chunk_mut::<4>() {
            *epoch = 1_u32.to_le_bytes();
        }
        if bytes.len() > 17 {
            bytes[16] = 1 + rng.below(3) as u8;
        }
        let player = rng.below(20) as u8;
        let _ = game.peers[1].hosting.read(game.now, player, &bytes);
        game.tick(1);
    }
}
