//! What clients take from each other is what each would have been sent alone.

use super::*;
use crate::rng::Rng;

const ROWS: u32 = 150;

/// A world, for some of the clients.
struct World {
    publisher: Publisher,
    peers: Vec<PeerHandle>,
    /// Packets under way: of whom, by their records, and whether they arrive.
    under_way: Vec<(PeerHandle, u32, bool)>,
}

impl World {
    fn of(peers: &[PeerHandle]) -> Self {
        let mut publisher = publisher(ROWS);
        peers.iter().filter(|peer| peer.slot > OTHER.slot).for_each(|peer| publisher.add_peer(*peer));
        for row in 0..ROWS {
            assert_eq!(publisher.spawn(0, None), Ok(row));
        }
        World { publisher, peers: peers.to_vec(), under_way: Vec::new() }
    }

    /// A tick, in which each client has, loses and acks the same as elsewhere, and others than the first two more or
    /// less, later or earlier. Gives what each is sent.
    fn tick(&mut self, now: u32, cells: &[u32], loss: f64) -> Vec<Vec<u8>> {
        for peer in &self.peers {
            let mut rng = Rng::seeded(u64::from(now) << 8 | u64::from(peer.slot));
            for row in 0..ROWS {
                if rng.chance(if now < 3 { 1.0 } else { 0.01 }) {
                    self.publisher.enter(*peer, 0, row);
                } else if loss > 0.0 && rng.chance(0.002) {
                    self.publisher.leave(*peer, 0, row);
                }
            }
        }
        tick(&mut self.publisher, cells);
        let mut sent = Vec::new();
        for peer in &self.peers {
            let mut rng = Rng::seeded(u64::from(now) << 8 | u64::from(peer.slot) | 1 << 40);
            let loss = loss * [1.0, 1.0, 0.0, 4.0][peer.slot as usize % 4];
            for (record, _, bytes) in packets(&mut self.publisher, *peer, 2_500) {
                sent.push(bytes);
                self.under_way.push((*peer, record, !rng.chance(loss)));
            }
        }
        for (peer, record, arrives) in core::mem::take(&mut self.under_way) {
            if (now + peer.slot / 2) % 3 == 1 {
                self.under_way.push((peer, record, arrives));
            } else {
                self.publisher.handle_notification(peer, record, arrives);
            }
        }
        sent
    }

    fn costs(&self) -> Vec<u64> {
        let Costs { classes, packets } = self.publisher.costs();
        let ClassCosts { updates, creates, destroys, properties } = &classes[0];
        [vec![*updates, *creates, *destroys, packets], properties.clone()].concat()
    }
}

#[test]
fn a_crowd_is_sent_what_each_would_be_alone() {
    for (loss, clients) in [(0.0, 2), (0.1, 2), (0.05, 12)] {
        let peers: Vec<_> = (0..clients).map(|slot| PeerHandle { slot, generation: 0 }).collect();
        let mut crowd = World::of(&peers);
        let mut each: Vec<_> = peers.iter().map(|peer| World::of(&[*peer])).collect();
        let (mut rng, mut cells, mut taken) = (Rng::seeded(9), vec![0u32; ROWS as usize], 0);
        for now in 1..120 {
            for cell in &mut cells {
                if rng.chance(0.4) {
                    *cell = cell.wrapping_add(1 << rng.below(32));
                }
            }
            let alone: Vec<_> = each.iter_mut().flat_map(|some| some.tick(now, &cells, loss)).collect();
            assert_eq!(crowd.tick(now, &cells, loss), alone, "tick {now}");
            taken += crowd.publisher.caches[0].runs.uses().count();
        }
        let mut sums = vec![0; crowd.costs().len()];
        for some in each {
            sums.iter_mut().zip(some.costs()).for_each(|(sum, bits)| *sum += bits);
        }
        assert_eq!(crowd.costs(), sums);
        assert!(taken > if loss > 0.0 { 100 } else { 1_000 }, "{taken} updates were taken");
    }
}

/// What the clients of a world are sent, of whom one gives up the first ghost and the other one the second.
fn sent_without_one_each(peers: &[PeerHandle]) -> Vec<(PeerHandle, Vec<u8>)> {
    let mut publisher = publisher(9);
    (0..9).for_each(|row| assert_eq!(publisher.spawn(0, None), Ok(row)));
    for peer in peers {
        (0..9).for_each(|row| assert!(publisher.enter(*peer, 0, row)));
    }
    let mut sent = Vec::new();
    for now in 0..9 {
        if now == 4 {
            peers.iter().for_each(|peer| assert!(publisher.leave(*peer, 0, peer.slot)));
        }
        tick(&mut publisher, &[now; 9]);
        for peer in peers {
            for (record, _, bytes) in packets(&mut publisher, *peer, 9_000) {
                sent.push((*peer, bytes));
                publisher.handle_notification(*peer, record, true);
            }
        }
    }
    sent
}

/// The same updates of the same ghosts stand behind one of another: the gap in front of them is another.
#[test]
fn what_stands_before_a_run_counts() {
    let together = sent_without_one_each(&[ONE, OTHER]);
    for peer in [ONE, OTHER] {
        let its: Vec<_> = together.iter().filter(|(of, _)| *of == peer).cloned().collect();
        assert!(its.len() == 9 && its == sent_without_one_each(&[peer]));
    }
}
