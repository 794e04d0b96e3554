//! Comparisons of secrets take as long whatever the bytes: the tag of a packet, where a comparison that ends at the first
//! difference would tell an attacker byte by byte.

use std::hint::black_box;
use std::time::Instant;

use tickwire::netcode::packet::{Header, Kind, seal};

const KEY: [u8; 32] = [3; 32];

/// The least of what many refusals of a packet with this byte of its tag altered take, in nanoseconds: the least, because
/// whatever else the machine does only adds.
fn refusal(packet: &[u8], altered: usize) -> f64 {
    const EACH: u32 = 16;
    let mut packet = packet.to_vec();
    packet[altered] ^= 1;
    let header = Header::read(&packet).unwrap();
    let start = Instant::now();
    for _ in 0..EACH {
        assert!(black_box(header.open(black_box(&mut packet), 7, &KEY)).is_err());
    }
    start.elapsed().as_nanos() as f64 / f64::from(EACH)
}

#[test]
fn tags_are_compared_in_the_same_time_wherever_they_differ() {
    let mut packet = Vec::new();
    seal(&mut packet, 7, &KEY, 5, Kind::Payload, &[1; 100]);
    let (first, last) = (packet.len() - 16, packet.len() - 1);
    // A comparison by bytes would differ by some nanoseconds; 16 of them by far more than this.
    let mut least = [f64::MAX; 2];
    for round in 0..5 {
        for _ in 0..2_000 {
            for (place, altered) in least.iter_mut().zip([first, last]) {
                *place = place.min(refusal(&packet, altered));
            }
        }
        let apart = (least[0] - least[1]).abs();
        println!("tag refused: first byte wrong {:.1} ns, last byte wrong {:.1} ns", least[0], least[1]);
        if apart < 3.0 {
            return;
        }
        println!("round {round}: {apart:.1} ns apart, once more");
    }
    panic!("the place of the first difference shows: {least:?} ns");
}
