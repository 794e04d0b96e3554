//! Packets of a class whose words are narrow, with bits flipped: what is refused leaves nothing, whatever came before.

use super::*;
use crate::rng::Rng;

const ROWS: u32 = 24;

/// The sizes of a row's cells: three numbers of 64 bits, four of 32, and words.
const SIZES: [usize; 3] = [24, 16, 4];

fn classes() -> Arc<Classes> {
    let kinds = [
        ("at", Kind::Vector { axes: 3, lo: -100.0, hi: 100.0, resolution: 1.0 / 64.0 }),
        ("turned", Kind::Rotation { bits: 9 }),
        ("n", Kind::Bits { bits: 32 }),
    ];
    let properties = Properties::new(Schema::new(kinds).unwrap()).unwrap();
    let class = GhostClass::new("Dot", properties, [Condition::Always; 3], ROWS).unwrap();
    Arc::new(Classes::new([Arc::new(class)]).unwrap())
}

/// What a client of some loss is sent, of ghosts that move.
fn sent(classes: &Arc<Classes>, rng: &mut Rng) -> Vec<(usize, Vec<u8>)> {
    let mut publisher = Publisher::new(classes.clone(), PublisherConfig { channel: 3, seed: 0 });
    publisher.add_peer(ONE);
    let (mut sent, mut at) = (Vec::new(), vec![[0.0f64; 3]; ROWS as usize]);
    let mut n = vec![0u32; ROWS as usize];
    for row in 0..ROWS {
        assert_eq!(publisher.spawn(0, None), Ok(row));
        publisher.enter(ONE, 0, row);
    }
    for now in 0..25 {
        if now > 8 && rng.chance(0.3) {
            let row = rng.below(ROWS.into()) as u32;
            if !publisher.leave(ONE, 0, row) {
                publisher.enter(ONE, 0, row);
            }
        }
        for (at, n) in at.iter_mut().zip(&mut n) {
            at.iter_mut().for_each(|axis| *axis += if rng.chance(0.6) { 0.25 } else { 0.0 });
            *n = n.wrapping_add(u32::from(rng.chance(0.1)) << rng.below(32));
        }
        let turned = |i: usize| [i as f32, 1.0, f32::from(now as u8), 3.0].map(f32::to_le_bytes);
        let cells = [
            at.iter().flatten().flat_map(|axis| axis.to_le_bytes()).collect::<Vec<u8>>(),
            (0..ROWS as usize).flat_map(turned).flatten().collect(),
            n.iter().flat_map(|n| n.to_le_bytes()).collect(),
        ];
        let mut errors = Vec::new();
        publisher.begin_tick(&[cells.each_ref().map(|cells| Column { cells, scan: true })], &mut errors);
        assert_eq!(errors, []);
        for (record, length, bytes) in packets(&mut publisher, ONE, 9000) {
            let arrives = !rng.chance(0.2);
            publisher.handle_notification(ONE, record, arrives);
            if arrives {
                sent.push((length, bytes));
            }
        }
    }
    sent
}

fn handle(mirror: &mut Mirror, (length, bytes): &(usize, Vec<u8>)) -> bool {
    mirror.handle_payload(BitReader::with_range(bytes, 0, *length)).is_ok()
}

/// All that the game would see, once it took it.
fn seen(mirror: &mut Mirror) -> (Vec<Vec<u8>>, Vec<(bool, u32)>, String) {
    let mut cells = SIZES.map(|size| vec![0; size * ROWS as usize]);
    let mut events = Vec::new();
    mirror.take(&mut [cells.each_mut().map(|cells| &mut cells[..])], &mut events);
    let ghosts = (0..ROWS).map(|id| (mirror.is_alive(0, id), mirror.tick_of(0, id))).collect();
    (cells.to_vec(), ghosts, format!("{events:?} {} {}", mirror.tick(), mirror.rows(0)))
}

#[test]
fn a_packet_that_is_refused_for_flipped_bits_leaves_nothing() {
    let (mut rng, classes) = (Rng::seeded(4), classes());
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..60 {
        let sent = sent(&classes, &mut rng);
        for _ in 0..50 {
            let [mut mirror, mut other] = [(); 2].map(|()| Mirror::new(classes.clone()));
            let count = rng.below(sent.len() as u64) as usize;
            for packet in &sent[..count] {
                assert!(handle(&mut mirror, packet) && handle(&mut other, packet));
            }
            let (mut length, mut bytes) = sent[count].clone();
            for _ in 0..1 + rng.below(3) {
                let bit = rng.below(length as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            if rng.chance(0.2) {
                length = 1 + rng.below(length as u64) as usize;
            }
            if handle(&mut mirror, &(length, bytes)) {
                taken += 1;
                seen(&mut mirror);
            } else {
                refused += 1;
                // And what comes then is taken as if it had not come.
                for packet in &sent[count..] {
                    assert!(handle(&mut mirror, packet) && handle(&mut other, packet));
                }
                assert_eq!(seen(&mut mirror), seen(&mut other));
            }
        }
    }
    assert!(refused > 300 && taken > 300, "{refused} {taken}");
}
