//! Packets with coded ghosts that clients refuse for something else in them.

use super::*;
use crate::replication::packet::Violation;
use crate::wire::BitSink;

#[test]
fn models_of_a_refused_packet_are_not_kept() {
    let class = |name: &str, coded: bool| {
        let properties = Properties::new(Schema::new([("x", Kind::Bits { bits: 8 })]).unwrap()).unwrap();
        Arc::new(GhostClass::new(name, properties, [Condition::Always], 9).unwrap().with_coding(coded))
    };
    let classes = Arc::new(Classes::new([class("Plain", false), class("Coded", true)]).unwrap());
    let (mut publisher, mut mirror) =
        (Publisher::new(classes.clone(), PublisherConfig { channel: 3, seed: 0 }), Mirror::new(classes));
    publisher.add_peer(ONE);
    let row = publisher.spawn(1, None).unwrap();
    publisher.enter(ONE, 1, row);
    let mut sent = Vec::new();
    for now in 0..20 {
        let cells = [[now; 1]; 2];
        publisher.begin_tick(&cells.each_ref().map(|cells| [Column { cells, scan: true }]), &mut Vec::new());
        for (record, length, bytes) in packets(&mut publisher, ONE, 9000) {
            publisher.handle_notification(ONE, record, true);
            sent.push((length, bytes));
        }
    }
    let mut handle = |bits: &mut BitWriter| {
        let length = bits.bit_len();
        mirror.handle_payload(BitReader::with_range(bits.as_bytes(), 0, length))
    };
    let tick_of =
        |(length, bytes): &(usize, Vec<u8>)| BitReader::with_range(bytes, 0, *length).bits(16).unwrap();
    // A plain ghost, of the tick before.
    let mut bits = BitWriter::new();
    bits.bits(tick_of(&sent[0]) - 1, 17);
    bits.bits(0b01 | 0b01011 << 2, 2 + 5 + 8 + 2);
    handle(&mut bits).unwrap();
    // In each packet, in front of what is coded: it, 40 ticks old, which it never was.
    for packet @ (length, bytes) in &sent {
        let mut from = BitReader::with_range(bytes, 18, *length - 18);
        let mut bits = BitWriter::new();
        bits.bits(tick_of(packet), 17);
        bits.bits(0b01, 2);
        bits.bits(0b111 | 39 << 5 | 0b100 << 11 | 1 << 14, 3 + 2 + 6 + 3 + 3);
        bits.bits(0, 2);
        while let part @ 1.. = from.remaining_bits().min(8) as u32 {
            bits.bits(from.bits(part).unwrap(), part);
        }
        assert_eq!(handle(&mut bits), Err(Violation::Baseline { class: 0, id: 0 }));
    }
    // The server was told that the client has these models.
    let (length, bytes) = &sent[sent.len() - 1];
    let result = mirror.handle_payload(BitReader::with_range(bytes, 0, *length));
    assert_eq!(result, Err(Violation::Form));
}

/// Coded packets are written once for clients that acked the same; and those of a client that lost one are its own, until the
/// named ticks are the same again.
#[test]
fn clients_share_coded_packets_again_after_a_loss() {
    let properties = Properties::new(Schema::new([("x", Kind::Bits { bits: 8 })]).unwrap()).unwrap();
    let class = GhostClass::new("Coded", properties, [Condition::Always], 9).unwrap().with_coding(true);
    let classes = Arc::new(Classes::new([Arc::new(class)]).unwrap());
    let mut publisher = Publisher::new(classes.clone(), PublisherConfig { channel: 3, seed: 0 });
    let mut mirrors = [ONE, OTHER].map(|peer| {
        publisher.add_peer(peer);
        Mirror::new(classes.clone())
    });
    for row in 0..9 {
        assert_eq!(publisher.spawn(0, None), Ok(row));
        assert!(publisher.enter(ONE, 0, row) && publisher.enter(OTHER, 0, row));
    }
    let mut shared = Vec::new();
    for now in 0..80u8 {
        let cells: Vec<u8> = (0..9).map(|row| now.wrapping_mul(row)).collect();
        publisher.begin_tick(&[[Column { cells: &cells, scan: true }]], &mut Vec::new());
        let [one, other] = [ONE, OTHER].map(|peer| packets(&mut publisher, peer, 9000));
        shared.push(publisher.coder.as_ref().unwrap().parts.len() == 1);
        assert!(!shared[shared.len() - 1] || (one[0].1, &one[0].2) == (other[0].1, &other[0].2));
        for (peer, mirror, (record, length, bytes)) in [(ONE, 0, &one[0]), (OTHER, 1, &other[0])] {
            let arrives = peer == ONE || now != 30;
            if arrives {
                mirrors[mirror].handle_payload(BitReader::with_range(bytes, 0, *length)).unwrap();
            }
            publisher.handle_notification(peer, *record, arrives);
        }
    }
    assert!(
        shared[..=30].iter().all(|it| *it) && !shared[31] && shared[60..].iter().all(|it| *it),
        "{shared:?}"
    );
}
