//! A peer with a good key that sends fragments of messages as no honest one does: its connection ends, or nothing comes of it.

use std::sync::Arc;

use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{
    Body, BudgetConfig, ChannelConfig, ChannelKind, Connection, ConnectionConfig, DirectTables, End,
    MessageType, Protocol, Refusal, Resend, SendOptions, VERSION, Violation,
};
use tickwire::wire::{BitSink, BitWriter, Kind, Schema};

use crate::fuzz_targets::native;
use crate::memory::held;
use crate::pair::blob;

const CHANNEL_BYTES: usize = 65_536;

/// Number, Blob (opaque) and Map (its length and cells), on an ordered and an unordered channel.
fn protocol() -> Arc<Protocol> {
    let declared = |name: &str, kind| {
        let body = Body::Declared(Schema::new([("it", kind)]).unwrap());
        MessageType { name: name.into(), body }
    };
    let types = vec![
        declared("Number", Kind::Bits { bits: 32 }),
        MessageType { name: "Blob".into(), body: Body::Opaque { max_bytes: 65_536 } },
        declared("Map", Kind::Data { max_bytes: 60_000 }),
    ];
    let reliable = |ordered| {
        let (receive_window, receive_bytes, resend) = (1024, 1 << 20, Resend::default());
        ChannelConfig::new(ChannelKind::Reliable { ordered, receive_window, receive_bytes, resend })
    };
    Arc::new(Protocol::new(types, vec![reliable(true), reliable(false)]).unwrap())
}

const NUMBER: u64 = 0;
const BLOB: u64 = 1;
const MAP: u64 = 2;

/// A fragment as the standard has it.
#[derive(Clone, Copy)]
struct Cut {
    channel: u64,
    id: u16,
    kind: u64,
    bits: usize,
    index: usize,
}

impl Cut {
    fn write(self, w: &mut BitWriter, bytes: &[u8]) {
        w.bits(self.channel, 1);
        w.bits(self.id.into(), 16);
        w.bits(self.kind, 2);
        w.bits(self.bits as u64, 20);
        let count = self.bits.div_ceil(8).div_ceil(1024);
        w.bits(self.index as u64, usize::BITS - (count - 1).leading_zeros());
        w.bytes(bytes);
    }

    /// Its bytes, all of them this one.
    fn filled(self, byte: u8) -> Vec<u8> {
        vec![byte; 1024.min(self.bits.div_ceil(8) - self.index * 1024)]
    }
}

/// The rows of a tick.
#[derive(Default)]
struct Rows {
    rows: Vec<Vec<u8>>,
    before: usize,
}

impl DirectTables for Rows {
    fn begin(&mut self, _: Instant) -> u64 {
        self.before = self.rows.len();
        1
    }

    fn place(&mut self, _: u64, _: u8, _: u16) -> Option<&mut Vec<u8>> {
        self.rows.push(Vec::new());
        self.rows.last_mut()
    }

    fn settle(&mut self) {}

    fn cut(&mut self) {
        self.rows.truncate(self.before);
    }

    fn push_out(&mut self, _: u8) {}
}

struct Peer {
    peer: native::Peer,
    ours: Connection,
    /// Where messages go that needn't wait, if anywhere.
    rows: Option<Rows>,
}

impl Peer {
    fn new() -> Self {
        let ours = Connection::new(&ConnectionConfig::default(), protocol()).unwrap();
        Peer { peer: native::Peer::default(), ours, rows: None }
    }

    /// Sends a packet with hello and what `rest` writes behind credit.
    fn send(&mut self, rest: impl FnOnce(&mut BitWriter)) -> Result<(), End> {
        let mut writer = BitWriter::new();
        writer.bool(true);
        writer.bits(VERSION.into(), 8);
        writer.bits(protocol().hash(), 64);
        writer.bits(0, 3);
        rest(&mut writer);
        let payload = writer.into_bytes();
        self.peer.send(&payload).into_iter().try_for_each(|(number, datagram)| match &mut self.rows {
            Some(rows) => self.ours.handle_into(Instant::ZERO, number, &datagram, rows),
            None => self.ours.handle_datagram(Instant::ZERO, number, &datagram),
        })
    }

    fn fragments(&mut self, all: &[(Cut, Vec<u8>)]) -> Result<(), End> {
        self.send(|w| {
            w.bits(0, 2); // No credit, no entries.
            for (cut, bytes) in all {
                w.bool(true);
                cut.write(w, bytes);
            }
            w.bool(false);
        })
    }

    fn fragment(&mut self, cut: Cut, byte: u8) -> Result<(), End> {
        self.fragments(&[(cut, cut.filled(byte))])
    }

    fn number(&mut self, channel: u64, id: u16) -> Result<(), End> {
        self.send(|w| {
            w.bits(0, 1);
            w.bits(1, 1);
            w.bits(channel, 1);
            w.bits(id.into(), 16);
            w.bits(NUMBER, 2);
            w.bits(5, 32);
            w.bits(0, 2);
        })
    }

    fn taken(&mut self, channel: usize) -> usize {
        std::iter::from_fn(|| self.ours.poll_received(channel)).count()
    }
}

const TWO: Cut = Cut { channel: 1, id: 7, kind: BLOB, bits: 1500 * 8, index: 0 };
const DIFFERS: Result<(), End> = Err(End::Violation(Violation::Fragments));

#[test]
fn fragments_of_one_id_must_say_the_same_of_its_message() {
    for other in [
        Cut { bits: 1500 * 8 - 1, index: 1, ..TWO },
        Cut { bits: 60_000 * 8, index: 1, ..TWO },
        Cut { kind: MAP, index: 1, ..TWO },
    ] {
        let mut peer = Peer::new();
        assert_eq!(peer.fragment(TWO, 1), Ok(()));
        assert_eq!(peer.fragment(other, 1), DIFFERS);
        assert_eq!(peer.taken(1), 0);
    }
    let mut peer = Peer::new();
    assert_eq!(peer.fragment(TWO, 1), Ok(()));
    assert_eq!(peer.fragment(TWO, 2), Ok(()), "it comes again, whatever is in it");
    assert_eq!(peer.fragment(Cut { channel: 0, bits: 9000, ..TWO }, 2), Ok(()), "another channel's");
    assert_eq!(peer.fragment(Cut { index: 1, ..TWO }, 1), Ok(()));
    assert_eq!(peer.taken(1), 1);
    assert_eq!(peer.ours.channel_stats(1).duplicates, 1);
}

#[test]
fn a_whole_message_among_its_own_fragments_is_a_violation_and_behind_them_nothing() {
    let mut peer = Peer::new();
    assert_eq!(peer.fragment(TWO, 1), Ok(()));
    assert_eq!(peer.number(1, 7), Err(End::Violation(Violation::Window)));

    let mut peer = Peer::new();
    assert_eq!(peer.number(1, 7), Ok(()));
    assert_eq!(peer.fragment(TWO, 1), Ok(()), "it is here");
    assert_eq!(peer.fragment(Cut { index: 1, ..TWO }, 1), Ok(()));
    assert_eq!((peer.taken(1), peer.ours.channel_stats(1).duplicates), (1, 2));
    assert_eq!(peer.fragment(TWO, 1), Ok(()), "it was taken");
    assert_eq!(peer.taken(1), 0);

    let mut peer = Peer::new();
    assert_eq!(peer.fragments(&[(TWO, TWO.filled(1)), (Cut { index: 1, ..TWO }, vec![1; 476])]), Ok(()));
    assert_eq!(peer.number(1, 7), Ok(()), "late, as if it were the same");
    assert_eq!(peer.taken(1), 1);
}

#[test]
fn a_message_with_a_fragment_of_it_is_a_violation_wherever_it_goes() {
    for rows in [None, Some(Rows::default())] {
        let mut peer = Peer { rows, ..Peer::new() };
        let both = |peer: &mut Peer, id: u16, cut: Cut| {
            peer.send(|w| {
                w.bits(0, 1);
                w.bits(1, 1);
                w.bits(0, 1);
                w.bits(id.into(), 16);
                w.bits(NUMBER, 2);
                w.bits(5, 32);
                w.bits(0, 2);
                w.bool(true);
                cut.write(w, &cut.filled(1));
                w.bool(false);
            })
        };
        let cut = Cut { channel: 0, id: 1, ..TWO };
        assert_eq!(both(&mut peer, 0, cut), Ok(()), "of the next one");
        assert_eq!(peer.rows.as_ref().map_or(1, |rows| rows.rows.len()), 1);
        let mut peer = Peer { rows: peer.rows.map(|_| Rows::default()), ..Peer::new() };
        let cut = Cut { id: 0, ..cut };
        assert_eq!(both(&mut peer, 0, cut), Err(End::Violation(Violation::Window)));
        assert_eq!(peer.rows.map_or(0, |rows| rows.rows.len()), 0);
    }
}

#[test]
fn the_windows_are_for_fragments_what_they_are_for_messages() {
    let window = Err(End::Violation(Violation::Window));
    assert_eq!(Peer::new().fragment(Cut { id: 1023, ..TWO }, 0), Ok(()));
    assert_eq!(Peer::new().fragment(Cut { id: 1024, ..TWO }, 0), window);
    let mut peer = Peer::new();
    assert_eq!(peer.fragment(Cut { id: 65_535, ..TWO }, 0), Ok(()), "behind the window: it comes late");
    assert_eq!(peer.ours.channel_stats(1).duplicates, 1);
    // A message counts as a whole with its first fragment.
    let large = |id| Cut { id, bits: 64_000 * 8, index: 62, ..TWO };
    let mut peer = Peer::new();
    for id in 0..16 {
        assert_eq!(peer.fragment(large(id), 0), Ok(()));
    }
    assert_eq!(peer.fragment(large(3), 0), Ok(()));
    assert_eq!(peer.fragment(large(16), 0), window);
    // Messages that were taken count no more.
    let mut peer = Peer::new();
    for id in 0..3_000u16 {
        let cut = Cut { id, ..TWO };
        let both = [(cut, cut.filled(1)), (Cut { index: 1, ..cut }, vec![1; 476])];
        assert_eq!(peer.fragments(&both), Ok(()));
        assert_eq!(peer.taken(1), 1);
    }
}

#[test]
fn a_body_that_does_not_read_is_a_violation_when_its_last_fragment_comes() {
    // 16 bits of length, in bytes, and the cells.
    let map = |length: u64, cells: usize| {
        let mut writer = BitWriter::new();
        writer.bits(length, 16);
        writer.bytes(&vec![3; cells]);
        (Cut { kind: MAP, bits: 16 + 8 * cells, ..TWO }, writer.into_bytes())
    };
    let send = |cut: Cut, body: &[u8]| {
        let mut peer = Peer::new();
        for (index, part) in body.chunks(1024).enumerate().rev() {
            let end = peer.fragments(&[(Cut { index, ..cut }, part.to_vec())]);
            if index == 0 {
                assert_eq!(peer.taken(1), usize::from(end.is_ok()));
                return end;
            }
            assert_eq!(end, Ok(()), "{index}");
        }
        unreachable!()
    };
    let (cut, body) = map(2000, 2000);
    assert_eq!(send(cut, &body), Ok(()));
    let (cut, body) = map(2001, 2000);
    assert!(matches!(send(cut, &body), Err(End::Violation(Violation::Packet(Refusal::Bits(_))))));
    let (cut, body) = map(1999, 2000);
    assert_eq!(send(cut, &body), Err(End::Violation(Violation::Packet(Refusal::Length))));
    let (cut, body) = map(60_001, 2000);
    assert!(send(cut, &body).is_err());
    // Bits that fill the last byte.
    let odd = Cut { bits: 1500 * 8 - 3, ..TWO };
    let mut body = vec![0; 1500];
    assert_eq!(send(odd, &body), Ok(()));
    body[1499] = 0b0100_0000;
    assert!(matches!(send(odd, &body), Err(End::Violation(Violation::Packet(Refusal::Bits(_))))));
    // A type that has no such bodies.
    assert!(send(Cut { kind: NUMBER, ..TWO }, &vec![0; 1500]).is_err());
}

#[test]
fn memory_is_what_came_and_not_what_was_announced() {
    let mut peer = Peer::new();
    // A connection's memory of packets.
    (0..5_000).for_each(|_| assert_eq!(peer.number(0, 65_535), Ok(())));
    let before = held();
    // The last byte of sixteen messages that would fill the window, and the same again and again.
    for n in 0..2_000 {
        let cut = Cut { id: n % 16, bits: 62 * 8192 + 8, index: 62, ..TWO };
        assert_eq!(peer.fragment(cut, 0), Ok(()));
    }
    let grown = held() - before;
    assert!(grown < 24 * 1024, "{grown}");
    // The many of one packet, of 128 KiB, whose memory is kept for the next one.
    let cut = Cut { id: 3, bits: 62 * 8192 + 8, index: 62, ..TWO };
    assert_eq!(peer.fragments(&vec![(cut, vec![0]); 16_384]), Ok(()));
    let grown = held() - before;
    assert!(grown < 160 * 1024, "{grown}");
    let too_many = peer.fragments(&vec![(cut, vec![0]); 16_385]);
    assert_eq!(too_many, Err(End::Violation(Violation::Packet(Refusal::Messages))));
}

#[test]
fn a_message_that_came_is_read_once_however_often_its_last_fragment_comes() {
    let mut peer = Peer::new();
    let cut = |index| Cut { bits: CHANNEL_BYTES * 8, index, ..TWO };
    for index in 0..63 {
        assert_eq!(peer.fragment(cut(index), 0), Ok(()));
    }
    let last = (cut(63), cut(63).filled(0));
    assert_eq!(peer.fragments(&vec![last.clone(); 200]), Ok(()));
    let stats = peer.ours.channel_stats(1);
    assert_eq!((stats.received, stats.duplicates), (1, 199));
    assert_eq!(peer.taken(1), 1);
}

#[test]
fn credit_for_a_message_of_which_fragments_were_never_sent_is_a_violation() {
    let config =
        ConnectionConfig { budget: BudgetConfig::new(20_000.0, 3_000.0), ..ConnectionConfig::default() };
    let credit = |w: &mut BitWriter| {
        w.bits(1, 1); // Credit, of channel 1.
        w.bits(1, 1);
        w.bits(1, 16);
        w.bits(0, 2);
    };
    for (ticks, expected) in [(1, Err(End::Violation(Violation::Window))), (60, Ok(()))] {
        let mut peer = Peer::new();
        peer.ours = Connection::new(&config, protocol()).unwrap();
        let mut now = Instant::ZERO;
        peer.ours.send(now, 1, blob(1, 8_000), SendOptions::default()).unwrap();
        for _ in 0..ticks {
            now += Duration::from_millis(16);
            peer.ours.transmit(now, &mut Packets::new());
        }
        assert_eq!(peer.send(credit), expected);
    }
}

#[test]
fn the_window_holds_fragments_and_messages_of_one_packet_wherever_they_go() {
    // 16 * (63,489 + 64) and 30,721 + 64 bytes are announced: of a MiB that leaves 943, for messages of 68.
    for (messages, allowed) in [(13, true), (14, false)] {
        for rows in [None, Some(Rows::default())] {
            let mut peer = Peer { rows, ..Peer::new() };
            let result = peer.send(|w| {
                w.bits(0, 1);
                w.bits(1, 1);
                w.bits(0, 1);
                for n in 0..messages {
                    if n == 0 {
                        w.bits(0, 16);
                    } else {
                        w.bits(1, 1);
                    }
                    w.bits(NUMBER, 2);
                    w.bits(5, 32);
                    w.bool(n + 1 < messages);
                }
                w.bool(false);
                let of = |id, index| Cut { channel: 0, id, kind: BLOB, bits: index * 8192 + 8, index };
                for cut in (30..46).map(|id| of(id, 62)).chain([of(46, 30)]) {
                    w.bool(true);
                    cut.write(w, &[1]);
                }
                w.bool(false);
            });
            assert_eq!(result, if allowed { Ok(()) } else { Err(End::Violation(Violation::Window)) });
            let placed = if allowed { messages } else { 0 };
            assert!(peer.rows.is_none_or(|rows| rows.rows.len() == placed));
        }
    }
}
