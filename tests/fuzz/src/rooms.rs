//! Rooms of a server, beside a model: who is in them, which values they keep within which bound, and that a peer that enters
//! ends with the newest value that it was sent of each key.

use std::collections::{BTreeMap, BTreeSet};

use tickwire::endpoint::{
    DisconnectReason, Event, Host, Inbox, PeerHandle, PeerRoom, RoomError, Rooms, ToRoom,
};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{OpaqueBody, SendOptions};

use super::input::Input;
use super::world::{START, blob, client_address, connected, server_address};

/// The channel of newest values in [`super::world::protocol`].
const LATEST: usize = 6;
const ROOMS: usize = 3;

struct Model {
    members: BTreeSet<PeerHandle>,
    /// By key: the number, and the bytes.
    kept: BTreeMap<u32, (u32, usize)>,
}

struct Scene {
    server: Host,
    rooms: Rooms,
    /// Each room with its model; the first is everybody's.
    all: Vec<(PeerRoom, Model)>,
    /// The client, and some that are gone.
    peers: [PeerHandle; 4],
    /// By key: the number that the client was sent last.
    sent: BTreeMap<u32, u32>,
    count: u32,
}

pub fn run(data: &[u8]) {
    let (server, mut client) = connected();
    let here = server.connected().next().expect("the client is connected");
    let gone = |slot| PeerHandle { slot, generation: 77 };
    let mut rooms = Rooms::default();
    let mut all = vec![rooms.everybody().clone()];
    all.extend((1..ROOMS).map(|_| rooms.open()));
    let model = || Model { members: BTreeSet::new(), kept: BTreeMap::new() };
    let all = all.into_iter().map(|room| (room, model())).collect();
    let peers = [here, gone(0), gone(1), gone(500)];
    let mut scene = Scene { server, rooms, all, peers, sent: BTreeMap::new(), count: 0 };
    let mut input = Input::new(data);
    while !input.is_empty() {
        scene.step(&mut input);
        for (room, model) in &scene.all {
            assert_eq!(room.members(), model.members.iter().copied().collect::<Vec<_>>());
        }
    }
    assert_eq!(arrived(&mut scene.server, &mut client), scene.sent);
}

impl Scene {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        let place = usize::from(op >> 5) % ROOMS;
        let (now, peer) = (Instant::ZERO, self.peers[usize::from(op >> 3 & 3)]);
        match op & 7 {
            0 => self.enter(place, peer),
            1 => {
                let (room, model) = &mut self.all[place];
                assert_eq!(room.leave(peer), model.members.remove(&peer));
            }
            2 => {
                let (room, model) = &mut self.all[place];
                let key = (op >> 3 & 1 == 1).then(|| input.below(4));
                let before = model.kept.len();
                model.kept.retain(|kept, _| key.is_some_and(|key| key != *kept));
                assert_eq!(room.forget(LATEST, key), before - model.kept.len());
            }
            3 if op >> 3 & 3 == 3 => {
                self.all[place].0.clear();
                self.all[place].1.members.clear();
            }
            4 => {
                let reason = DisconnectReason::TimedOut;
                let event = Event::Disconnected { peer, reason, violation: None, detail: None };
                self.rooms.note_events(now, &mut self.server, &[event]);
                self.all.iter_mut().for_each(|(_, model)| _ = model.members.remove(&peer));
            }
            _ => self.send(place, op >> 3 & 3, input),
        }
    }

    fn enter(&mut self, place: usize, peer: PeerHandle) {
        let (room, model) = &mut self.all[place];
        let is_new = model.members.insert(peer);
        assert_eq!(room.enter(Instant::ZERO, &mut self.server, peer), is_new);
        if is_new && peer == self.peers[0] {
            self.sent.extend(model.kept.iter().map(|(key, (number, _))| (*key, *number)));
        }
    }

    fn send(&mut self, place: usize, form: u8, input: &mut Input<'_>) {
        let (room, model) = &mut self.all[place];
        let (here, max) = (self.peers[0], usize::from(input.u8()));
        let messages: Vec<_> = (0..1 + form)
            .map(|_| {
                self.count += 1;
                let options = SendOptions { key: input.below(4), ..SendOptions::default() };
                (blob(self.count, usize::from(input.u8() & 63)), options)
            })
            .collect();
        let to = ToRoom {
            channel: LATEST,
            messages: &messages,
            exclude: (form == 2).then_some(here),
            retain_bytes: (form != 1).then_some(max),
        };
        let first = self.count + 1 - messages.len() as u32;
        let size = |place: usize| messages[place].0.encoded.max_bits().div_ceil(8);
        let mut kept = model.kept.clone();
        for (place, (_, options)) in messages.iter().enumerate().filter(|_| form != 1) {
            kept.insert(options.key, (first + place as u32, size(place)));
        }
        let bytes: usize = kept.values().map(|(_, bytes)| bytes).sum();
        match room.send(Instant::ZERO, &mut self.server, to) {
            Ok(left_out) => {
                assert!(left_out.is_empty() && (form == 1 || bytes <= max));
                if model.members.contains(&here) && form != 2 {
                    let each =
                        messages.iter().zip(first..).map(|((_, options), number)| (options.key, number));
                    self.sent.extend(each);
                }
                model.kept = kept;
            }
            Err(RoomError::Full { bytes: told, .. }) => assert!(form != 1 && told == bytes && bytes > max),
            Err(error) => panic!("{error}"),
        }
    }
}

/// By key: the newest number that reached the client.
fn arrived(server: &mut Host, client: &mut Host) -> BTreeMap<u32, u32> {
    let (mut now, mut inbox, mut newest) = (Instant::ZERO, Inbox::new(), BTreeMap::new());
    let (mut to_client, mut to_server) = (Datagrams::new(), Datagrams::new());
    for _ in 0..20 {
        now += Duration::from_millis(50);
        server.transmit(now, &mut to_client);
        client.transmit(now, &mut to_server);
        let (for_client, for_server) = (std::mem::take(&mut to_client), std::mem::take(&mut to_server));
        for (_, bytes) in for_client.iter() {
            client.handle_datagram(now, START, server_address(), &mut bytes.to_vec(), &mut to_server);
        }
        for (_, bytes) in for_server.iter() {
            server.handle_datagram(now, START, client_address(), &mut bytes.to_vec(), &mut to_client);
        }
        client.take_messages(&mut inbox);
        for record in inbox.game.records.iter().filter(|record| usize::from(record.head.channel) == LATEST) {
            let body = OpaqueBody::read(inbox.game.body(record));
            newest.insert(record.head.key, body.reader().bits(32).unwrap() as u32);
        }
        inbox.game.clear();
    }
    newest
}
