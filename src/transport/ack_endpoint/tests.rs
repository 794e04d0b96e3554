use super::*;
use crate::limits::MAX_PAYLOAD;
use crate::rng::{Entropy, Rng};

fn standard() -> AckEndpoint {
    AckEndpoint::new(AckEndpointConfig::standard()).unwrap()
}

fn large() -> AckEndpoint {
    AckEndpoint::new(AckEndpointConfig::large()).unwrap()
}

fn send(endpoint: &mut AckEndpoint, now: Instant, payload: &[u8]) -> Vec<Vec<u8>> {
    let written = |piece: Piece<'_>| {
        let mut bytes = Vec::new();
        piece.write(&mut bytes);
        bytes
    };
    endpoint.send(now, payload).unwrap().pieces().map(written).collect()
}

/// A payload that encodes its number and length, so that every byte can be checked.
fn payload(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::seeded(number).fill(&mut bytes);
    bytes
}

#[test]
fn a_refused_packet_is_not_acked_and_its_acks_are_ignored() {
    let (mut a, mut b) = (standard(), standard());
    let mut acked = Vec::new();
    let datagram = send(&mut a, Instant::ZERO, b"hello").remove(0);
    let incoming = b.open(&datagram).unwrap().unwrap();
    assert_eq!(incoming.payload(), b"hello");
    b.refuse(incoming);
    let datagram = send(&mut b, Instant::ZERO, b"reply").remove(0);
    let incoming = a.open(&datagram).unwrap().unwrap();
    a.accept(Instant::ZERO, incoming, RttSampling::EveryAck, &mut acked);
    assert_eq!(acked, []);
    assert_eq!((b.acks.counters.refused, b.acks.counters.received), (1, 0));
}

#[test]
fn drops_are_counted_by_reason() {
    let (mut a, mut b) = (standard(), standard());
    let datagram = send(&mut a, Instant::ZERO, b"once").remove(0);
    let incoming = b.open(&datagram).unwrap().unwrap();
    b.accept(Instant::ZERO, incoming, RttSampling::EveryAck, &mut Vec::new());
    assert_eq!(b.open(&datagram).unwrap_err(), DropReason::NotNew(NotNew::Duplicate));
    assert_eq!(b.open(&vec![0; 16 * 1024 + 15]).unwrap_err(), DropReason::TooLarge);
    assert_eq!(b.open(&[]).unwrap_err(), DropReason::Header(HeaderError::TooShort));
    assert_eq!(b.open(&[1, 0, 0]).unwrap_err(), DropReason::Fragment(FragmentError::TooShort));
    let error = b.send(Instant::ZERO, &vec![0; 16 * 1024 + 1]).unwrap_err();
    assert_eq!(error.to_string(), "the payload must be at most 16384 bytes, not 16385");
    assert_eq!(b.acks.next_sequence(), 0, "nothing was sent");
    let counters = b.acks.counters;
    assert_eq!((counters.duplicates, counters.too_large_to_receive, counters.invalid), (1, 1, 1));
    assert_eq!((counters.fragments_invalid, counters.too_large_to_send), (1, 1));
}

#[test]
fn large_packets_go_in_datagrams_that_netcode_carries() {
    let mut a = large();
    for (len, count) in [(0, 1), (1191, 1), (1192, 2), (256 * 1024, 256)] {
        let datagrams = send(&mut a, Instant::ZERO, &payload(0, len));
        assert_eq!(datagrams.len(), count, "{len}");
        assert!(datagrams.iter().all(|datagram| datagram.len() <= MAX_PAYLOAD));
    }
    assert_eq!(a.acks.counters.fragments_sent, 2 + 256);
}

/// Packets of up to 256 fragments, whose datagrams are lost, doubled and shuffled: what arrives is whole,
/// arrives once, is acked if and only if it arrived, and memory stays within its bound.
#[test]
fn fragments_survive_loss_duplicates_and_reordering_in_bounded_memory() {
    let mut rng = Rng::seeded(5);
    let (mut a, mut b) = (large(), large());
    let bound = AckEndpointConfig::large().reassembly.max_bytes;
    let mut in_flight: Vec<Vec<u8>> = Vec::new();
    let mut arrived = [0u8; 200];
    let mut acked = Vec::new();
    for number in 0..200u64 {
        let fragments = 1 + rng.below(256);
        let len = ((fragments - 1) * 1024 + 1 + rng.below(1024)) as usize;
        in_flight.extend(send(&mut a, Instant::from_millis(number), &payload(number, len)));
        for _ in 0..in_flight.len() * 3 / 4 {
            let near = rng.below(in_flight.len().min(300) as u64) as usize;
            let datagram = in_flight[near].clone();
            if rng.chance(0.98) {
                in_flight.remove(near);
            }
            if rng.chance(0.002) {
                continue;
            }
            if let Ok(Some(incoming)) = b.open(&datagram) {
                let number = incoming.header.sequence;
                let received = incoming.payload();
                assert!(received == payload(number, received.len()), "packet {number} is damaged");
                arrived[number as usize] += 1;
                b.accept(Instant::from_millis(number), incoming, RttSampling::EveryAck, &mut Vec::new());
            }
            assert!(b.reassembly.reserved_bytes() <= bound);
        }
        let ack = send(&mut b, Instant::ZERO, b"").remove(0);
        let incoming = a.open(&ack).unwrap().unwrap();
        a.accept(Instant::from_millis(number), incoming, RttSampling::EveryAck, &mut acked);
    }
    assert!(arrived.iter().all(|&times| times <= 1));
    assert!(acked.iter().all(|acked| arrived[acked.sequence as usize] == 1));
    assert_eq!(acked.len() as u64, b.acks.counters.received);
    assert!(acked.len() > 100, "{} arrived", acked.len());
    assert!(b.acks.counters.fragment_duplicates > 0 && b.acks.counters.received < 200);
}

/// Random, cut and bit-flipped datagrams between honest ones.
#[test]
fn hostile_datagrams_neither_panic_nor_break_the_state() {
    let mut rng = Rng::seeded(13);
    let (mut a, mut b) = (standard(), standard());
    let bound = AckEndpointConfig::standard().reassembly.max_bytes;
    let mut acked = Vec::new();
    for i in 0..20_000u64 {
        let len = if rng.chance(0.1) { rng.below(5000) } else { rng.below(100) } as usize;
        let mut datagrams = send(&mut a, Instant::from_millis(i), &payload(i, len));
        match rng.below(4) {
            0 => {
                let cut = rng.below(datagrams[0].len() as u64) as usize;
                datagrams[0].truncate(cut);
            }
            1 => {
                let bit = rng.below(datagrams[0].len().min(16) as u64 * 8) as usize;
                datagrams[0][bit / 8] ^= 1 << (bit % 8);
            }
            2 => {
                let mut noise = vec![0; rng.below(40) as usize];
                rng.fill(&mut noise);
                datagrams.push(noise);
            }
            _ => {}
        }
        for datagram in &datagrams {
            if let Ok(Some(incoming)) = b.open(datagram) {
                b.accept(Instant::from_millis(i), incoming, RttSampling::EveryAck, &mut acked);
            }
        }
        assert!(b.reassembly.reserved_bytes() <= bound);
    }
    assert_eq!(acked, [], "b never sent, so no bytes can make it believe it was acked");
    let counters = b.acks.counters;
    assert!(counters.invalid > 0 && counters.fragments_invalid > 0 && counters.stale > 0, "{counters:?}");
    // The conversation goes on once the noise stops.
    for i in 0..70_000u64 {
        let datagram = send(&mut a, Instant::from_millis(i), b"on").remove(0);
        if let Ok(Some(incoming)) = b.open(&datagram) {
            b.accept(Instant::from_millis(i), incoming, RttSampling::EveryAck, &mut acked);
        }
    }
    let newest = a.acks.next_sequence().wrapping_sub(1);
    let newest_received = b.acks.received.newest.unwrap();
    assert_eq!(newest_received as u16, newest as u16, "the noise moved the window by laps");
}

/// A fragment half of all numbers ahead of the newest is both newer than it and older than the window. reliable 1.0 takes it
/// for newer, and then drops all packets for half a lap; here it is old, whatever its number.
#[test]
fn a_fragment_whose_number_lost_its_top_bit_shuts_out_nobody() {
    for first in [0, 5, 16_000] {
        let (mut a, mut b) = (standard(), standard());
        a.acks.begin_at(first);
        let mut received = 0;
        for number in 0..8 {
            let mut datagrams = send(&mut a, Instant::ZERO, &payload(number, 4000));
            if number == 3 {
                datagrams[2][2] ^= 0x80;
            }
            for datagram in datagrams {
                if let Ok(Some(incoming)) = b.open(&datagram) {
                    b.accept(Instant::ZERO, incoming, RttSampling::EveryAck, &mut Vec::new());
                    received += 1;
                }
            }
        }
        assert_eq!((received, b.acks.counters.stale), (7, 1));
    }
}

#[test]
fn settings_that_cannot_work_are_named() {
    let config = AckEndpointConfig { max_packet_size: 16 * 1024 + 1, ..AckEndpointConfig::standard() };
    assert_eq!(AckEndpoint::new(config).unwrap_err().field, "max_packet_size");
}
