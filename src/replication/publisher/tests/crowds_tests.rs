//! A client of a crowd is sent what it would be alone, in a world where nothing is kept from it: with any owners, choices, weights,
//! distances and ghosts that must be known, over losses and late acks.

use super::*;
use crate::rng::Rng;

const ROWS: u32 = 60;
const CROWD: [PeerHandle; 3] = [ONE, OTHER, PeerHandle { slot: 2, generation: 0 }];

/// Ticks in which all is said again after the last change.
const QUIET: u32 = 60;
const TICKS: u32 = 200;

/// Fields of each class: what all get, what some get, what the others get, and a text.
const FIELDS: usize = 4;
const CLASSES: usize = 5;

/// By class, the conditions of its fields.
const CONDITIONS: [[Condition; FIELDS]; CLASSES] = [
    [Condition::Always; FIELDS],
    [Condition::Always, Condition::OwnerOnly, Condition::ExceptOwner, Condition::Always],
    [Condition::Always, Condition::Chosen, Condition::Initial, Condition::Always],
    [Condition::Always, Condition::OwnerOnly, Condition::Chosen, Condition::ExceptOwner],
    [Condition::ExceptOwner, Condition::Chosen, Condition::OwnerOnly, Condition::Chosen],
];

/// What there is in a tick, the same everywhere.
#[derive(Clone)]
struct Truth {
    /// By class, field and row.
    cells: [[Vec<u32>; FIELDS]; CLASSES],
    owners: [Vec<Option<usize>>; CLASSES],
    /// By client and row.
    chosen: [Vec<u8>; 3],
    weights: Vec<f32>,
    /// The class and row of objects that end in this tick; others spawn in their rows.
    ended: Vec<(usize, u32)>,
}

impl Truth {
    fn new() -> Self {
        let none = || vec![0; ROWS as usize];
        Truth {
            cells: core::array::from_fn(|_| core::array::from_fn(|_| none())),
            owners: core::array::from_fn(|_| vec![None; ROWS as usize]),
            chosen: core::array::from_fn(|_| vec![0; ROWS as usize]),
            weights: vec![1.0; ROWS as usize],
            ended: Vec::new(),
        }
    }

    #[expect(clippy::needless_range_loop, reason = "a row's fields are drawn together")]
    fn go_on(&mut self, rng: &mut Rng) {
        self.ended.clear();
        for (class, fields) in self.cells.iter_mut().enumerate() {
            for row in 0..ROWS as usize {
                for (field, chance) in [0.4, 0.3, 0.2, 0.02].into_iter().enumerate() {
                    if rng.chance(chance) {
                        let cell = &mut fields[field][row];
                        *cell = cell.wrapping_add(1 << rng.below(32));
                    }
                }
                if rng.chance(0.004) {
                    self.owners[class][row] = Some(rng.below(4) as usize).filter(|owner| *owner < 3);
                }
                if rng.chance(0.002) {
                    self.ended.push((class, row as u32));
                }
            }
        }
        for row in 0..ROWS as usize {
            for chosen in &mut self.chosen {
                // Often for all of them at once.
                chosen[row] ^= u8::from(rng.chance(0.004));
            }
            if rng.chance(0.004) {
                let now = rng.chance(0.5).into();
                self.chosen.iter_mut().for_each(|chosen| chosen[row] = now);
            }
            self.weights[row] = 1.0 + rng.below(3) as f32;
        }
    }

    fn is_sent(&self, client: usize, class: usize, field: usize, row: usize) -> bool {
        let owns = self.owners[class][row] == Some(client);
        match CONDITIONS[class][field] {
            Condition::OwnerOnly => owns,
            Condition::ExceptOwner => !owns,
            Condition::Chosen => self.chosen[client][row] != 0,
            Condition::Always | Condition::Initial => true,
        }
    }

    /// The same without what one client isn't sent.
    fn seen_by(&self, client: usize) -> Self {
        let mut seen = self.clone();
        for (class, fields) in seen.cells.iter_mut().enumerate() {
            for (field, cells) in fields.iter_mut().enumerate() {
                for (row, cell) in cells.iter_mut().enumerate() {
                    if !self.is_sent(client, class, field, row) {
                        *cell = 0;
                    }
                }
            }
        }
        seen
    }
}

/// A world, for some of the clients.
struct CrowdWorld {
    publisher: Publisher,
    clients: Vec<usize>,
    /// Packets under way: of whom, by their records, whether they arrive, and when that is known.
    under_way: Vec<(usize, u32, bool, u32)>,
    mirrors: [Mirror; 3],
    bits: u64,
    /// By class and row.
    owners: [[Option<usize>; ROWS as usize]; CLASSES],
    /// By client, the tick in which it last lost an object that it has.
    disowned: [u32; 3],
}

impl CrowdWorld {
    fn of(clients: &[usize], coded: bool) -> Self {
        let class = |class: usize| {
            let bits = || Kind::Bits { bits: 32 };
            let fields =
                [("x", bits()), ("some", bits()), ("rest", bits()), ("name", Kind::Text { max_bytes: 4 })];
            let properties = Properties::new(Schema::new(fields).unwrap()).unwrap();
            let made = GhostClass::new(class.to_string(), properties, CONDITIONS[class], ROWS).unwrap();
            Arc::new(made.with_coding(coded))
        };
        let classes = Arc::new(Classes::new([0, 1, 2, 3, 4].map(class)).unwrap());
        let mirrors = core::array::from_fn(|_| Mirror::new(classes.clone()));
        let mut publisher = Publisher::new(classes, PublisherConfig { channel: 3, seed: 0 });
        clients.iter().for_each(|client| publisher.add_peer(CROWD[*client]));
        for class in 0..CLASSES {
            for row in 0..ROWS {
                assert_eq!(publisher.spawn(class, None), Ok(row));
            }
            let must = (0..ROWS).map(|row| u8::from(row % 5 == 0)).collect();
            publisher.set_must_know(class, must);
        }
        CrowdWorld {
            publisher,
            clients: clients.to_vec(),
            under_way: Vec::new(),
            mirrors,
            bits: 0,
            owners: [[None; ROWS as usize]; CLASSES],
            disowned: [0; 3],
        }
    }

    /// Compares the last changes of owned objects with those of all rows, in some ticks.
    fn check_owned_changes(&mut self) {
        let publisher = &mut self.publisher;
        let mut found = Vec::new();
        publisher.owned_changes(&mut found);
        let mut expected = vec![0; publisher.peers.len()];
        for class in 0..CLASSES {
            for row in 0..ROWS {
                let Some(owner) = publisher.owner(class, row) else { continue };
                let chosen = publisher.peer(owner).is_some_and(|peer| peer.scopes[class].is_chosen(row));
                let class_of = publisher.table(class).class();
                let mask = class_of.updated(class_of.group(true, chosen && class_of.is_chosen()));
                let last = publisher.table(class).last_change(row, mask);
                let slot = owner.slot as usize;
                expected[slot] = last.max(expected[slot]);
            }
        }
        for (expected, disowned) in expected.iter_mut().zip(self.disowned) {
            *expected = disowned.max(*expected);
        }
        assert_eq!(found, expected);
    }

    /// Ends objects and gives them to clients, and notes which clients lose one by it.
    fn end_and_own(&mut self, now: u32, truth: &Truth) {
        let publisher = &mut self.publisher;
        for class in 0..CLASSES {
            for row in 0..ROWS {
                let owner = truth.owners[class][row as usize].filter(|owner| self.clients.contains(owner));
                let before = core::mem::replace(&mut self.owners[class][row as usize], owner);
                let ends = truth.ended.contains(&(class, row));
                if let Some(client) = before.filter(|_| ends || before != owner)
                    && publisher.peer(CROWD[client]).unwrap().scopes[class].was_sent(row)
                {
                    self.disowned[client] = now;
                }
                if ends {
                    assert!(publisher.despawn(class, row));
                    assert_eq!(publisher.spawn(class, None), Ok(row));
                }
                publisher.set_owner(class, row, owner.map(|owner| CROWD[owner]));
            }
        }
    }

    /// A tick, in which each client has, loses and acks the same as elsewhere. Gives what each is sent.
    fn tick(&mut self, now: u32, truth: &Truth, loss: f64) -> Vec<(usize, Vec<u8>)> {
        self.end_and_own(now, truth);
        let publisher = &mut self.publisher;
        let bytes = truth.cells.each_ref().map(|fields| {
            fields
                .each_ref()
                .map(|cells| cells.iter().flat_map(|cell| cell.to_le_bytes()).collect::<Vec<_>>())
        });
        for class in 0..CLASSES {
            for row in 0..ROWS {
                let text = truth.cells[class][3][row as usize].to_string().into_bytes();
                let text = &text[..text.len().min(4)];
                let offset = publisher.table(class).class().properties.schema().fields()[3].offset();
                let size = publisher.table(class).class().properties.schema().row_size();
                let mut body = vec![0; size];
                body[offset..offset + 8].copy_from_slice(
                    &[(size as u32).to_le_bytes(), (text.len() as u32).to_le_bytes()].concat(),
                );
                body.extend_from_slice(text);
                publisher.set_cell(class, row, 3, &body).unwrap();
            }
            publisher.set_weights(class, &truth.weights);
        }
        let columns =
            bytes.each_ref().map(|fields| fields.each_ref().map(|cells| Column { cells, scan: true }));
        let mut errors = Vec::new();
        publisher.begin_tick(&columns, &mut errors);
        assert_eq!(errors, []);
        self.check_owned_changes();
        let publisher = &mut self.publisher;
        let mut sent = Vec::new();
        for client in &self.clients {
            let (client, peer) = (*client, CROWD[*client]);
            // Two of three have the same most of the time.
            let mut rng = Rng::seeded(u64::from(now) << 8 | client.max(1) as u64);
            for class in 0..CLASSES {
                for row in 0..ROWS {
                    if rng.chance(if now < 3 { 1.0 } else { 0.02 }) {
                        publisher.enter(peer, class, row);
                    } else if rng.chance(0.002) {
                        publisher.leave(peer, class, row);
                    }
                }
            }
            for class in 2..CLASSES {
                publisher.set_chosen(peer, class, &truth.chosen[client]);
            }
            let views = vec![[f64::from(now) * 1e7, 0.0, 0.0]];
            let sight = Sight { property: 0, axes: 1, radius: 1e9, far_weight: 0.1, views };
            publisher.set_sight(peer, 0, Some(sight));
            if now.is_multiple_of(4) {
                publisher.choose(peer, 2_000);
            }
            let mut rng = Rng::seeded(u64::from(now) << 8 | client.max(1) as u64 | 1 << 40);
            for (record, bits, bytes) in packets(publisher, peer, 2_500) {
                let arrives = !rng.chance(loss);
                if arrives {
                    let reader = BitReader::with_range(&bytes, 0, bits);
                    self.mirrors[client].handle_payload(reader).unwrap();
                }
                self.bits += bits as u64;
                self.under_way.push((client, record, arrives, now + if rng.chance(0.05) { 5 } else { 2 }));
                sent.push((client, bytes));
            }
        }
        let is_first = |all: &[(usize, u32, bool, u32)], at: usize| {
            let waits =
                |(client, _, _, known): &(usize, u32, bool, u32)| *client == all[at].0 && *known > now;
            !all[..at].iter().any(waits)
        };
        let mut at = 0;
        while let Some((client, record, arrives, known)) = self.under_way.get(at).copied() {
            if known <= now && is_first(&self.under_way, at) {
                publisher.handle_notification(CROWD[client], record, arrives);
                self.under_way.remove(at);
            } else {
                at += 1;
            }
        }
        sent
    }

    fn costs(&self) -> Vec<u64> {
        let all = self.publisher.costs();
        let each = all
            .classes
            .iter()
            .flat_map(|it| [&it.properties[..], &[it.updates, it.creates, it.destroys]].concat());
        assert_eq!(all.total(), self.bits, "costs are the bits on the wire");
        each.chain([all.packets]).collect()
    }

    /// How many updates of the last tick several clients took.
    fn taken(&self) -> usize {
        self.publisher.caches.iter().map(|cache| cache.runs.uses().count()).sum()
    }

    /// Whether a client's ghosts are what they should be, without what it isn't sent.
    fn check(&mut self, client: usize, truth: &Truth) {
        let mut cells = vec![[[0; 4]; ROWS as usize]; CLASSES * FIELDS];
        let mut fields = cells.iter_mut().map(|cells| cells.as_flattened_mut());
        let mut columns: Vec<Vec<&mut [u8]>> =
            (0..CLASSES).map(|_| fields.by_ref().take(FIELDS).collect()).collect();
        self.mirrors[client].take(&mut columns, &mut Vec::new());
        for class in 0..CLASSES {
            for row in 0..ROWS {
                let Some(id) = self.publisher.ghost_id(CROWD[client], class, row) else { continue };
                for field in 0..FIELDS - 1 {
                    if CONDITIONS[class][field] != Condition::Initial
                        && truth.is_sent(client, class, field, row as usize)
                    {
                        let found = u32::from_le_bytes(cells[class * FIELDS + field][id as usize]);
                        let wanted = truth.cells[class][field][row as usize];
                        assert_eq!(found, wanted, "client {client}, class {class}, row {row}, field {field}");
                    }
                }
            }
        }
    }
}

fn compare(loss: f64) {
    let mut crowd = CrowdWorld::of(&[0, 1, 2], false);
    let mut each = [0, 1, 2].map(|client| CrowdWorld::of(&[client], false));
    let (mut rng, mut truth, mut taken) = (Rng::seeded(9), Truth::new(), 0);
    for now in 1..TICKS + QUIET {
        if now < TICKS {
            truth.go_on(&mut rng);
        } else {
            truth.ended.clear();
        }
        let loss = if now < TICKS { loss } else { 0.0 };
        let alone = [0, 1, 2].map(|client| each[client].tick(now, &truth.seen_by(client), loss)).concat();
        let together = crowd.tick(now, &truth, loss);
        assert_eq!(together.len(), alone.len(), "tick {now}");
        for ((client, sent), (_, wanted)) in together.iter().zip(&alone) {
            assert!(sent == wanted, "tick {now}, client {client}");
        }
        taken += crowd.taken();
    }
    (0..3).for_each(|client| crowd.check(client, &truth));
    let sums = each
        .map(|some| some.costs())
        .into_iter()
        .reduce(|all, one| all.iter().zip(one).map(|(all, one)| all + one).collect());
    assert_eq!(Some(crowd.costs()), sums);
    println!("loss {loss}: {taken} updates were taken");
    assert!(taken > 50, "{taken} updates were taken");
}

#[test]
fn a_crowd_of_all_audiences_is_sent_what_each_would_be_alone() {
    compare(0.0);
    compare(0.1);
}

/// Which states are remembered, and with it the bits, depends on all who are sent them; but not what each sees.
#[test]
fn a_coded_crowd_of_all_audiences_sees_what_each_is_to_see() {
    for loss in [0.0, 0.1, 0.4] {
        let (mut crowd, mut rng, mut truth) =
            (CrowdWorld::of(&[0, 1, 2], true), Rng::seeded(9), Truth::new());
        for now in 1..TICKS + QUIET {
            if now < TICKS {
                truth.go_on(&mut rng);
            } else {
                truth.ended.clear();
            }
            crowd.tick(now, &truth, if now < TICKS { loss } else { 0.0 });
        }
        (0..3).for_each(|client| crowd.check(client, &truth));
    }
}
