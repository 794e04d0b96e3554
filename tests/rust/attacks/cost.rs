//! What somebody with a slot can make the server's processor do, for the bytes that it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant as Clock;

use tickwire::endpoint::ChunkStore;
use tickwire::store::BitSet;
use tickwire::transport::chunks::{Assembly, Offer, Rejection, Sink, StorageError, Stored};
use tickwire::wire::{BitSink, BitWriter};

use super::arena::{Arena, Figures};
use super::members::{CHUNKS, Member, channel, message};

/// A directory with a part of anything offered: all but the last slice. Counts the bytes read back from it.
struct Parts(Arc<AtomicU64>);

#[derive(Debug)]
struct Part(Arc<AtomicU64>);

impl ChunkStore for Parts {
    fn open(&mut self, _: u64, offer: &Offer) -> Result<Assembly, Rejection> {
        let slices = offer.size.div_ceil(offer.slice_bytes.into()) as usize;
        let mut there = BitSet::new(slices);
        (0..slices - 1).for_each(|index| assert!(there.insert(index)));
        Ok(Assembly::resumed(offer, Box::new(Part(self.0.clone())), there))
    }

    fn bytes_at_once(&self) -> u64 {
        1 << 30
    }
}

impl Sink for Part {
    fn write_at(&mut self, _: u64, _: &[u8]) -> Result<(), StorageError> {
        Ok(())
    }

    fn read_at(&mut self, _: u64, out: &mut [u8]) -> Result<(), StorageError> {
        self.0.fetch_add(out.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Stored, StorageError> {
        Err(StorageError("it has no end".into()))
    }
}

/// A gigabyte to be resumed, and packets that cost next to nothing but make the server check its chunks.
pub(super) fn partial_chunk_resumed() -> Figures {
    const SECONDS: u64 = 4;
    let run = |offers: bool| {
        let read = Arc::new(AtomicU64::new(0));
        let mut arena = Arena::new();
        arena.server.set_chunk_store(Box::new(Parts(read.clone())));
        let mut member = Member::join(&mut arena);
        if offers {
            member.say(&mut arena, |writer| {
                channel(writer, CHUNKS);
                writer.bits(1, 2);
                writer.bits(0, 16);
                writer.bits(1 << 30, 40);
                writer.bits(1200, 11);
                writer.bytes(&[0; 32]);
                writer.string("world", 64);
                writer.bool(false);
            });
            member.tick(&mut arena);
        }
        let clock = Clock::now();
        for _ in 0..60 * SECONDS {
            for _ in 0..20 {
                member.say(&mut arena, |writer| {
                    channel(writer, CHUNKS);
                    // A withdrawal of a chunk that can't be.
                    writer.bits(3, 2);
                    writer.bits(30_000, 16);
                    writer.bool(false);
                });
            }
            member.tick(&mut arena);
        }
        let took = clock.elapsed();
        assert!(member.is_connected(&arena));
        (arena.finish(), read.load(Ordering::Relaxed) >> 20, took)
    };
    let (_, nothing, without) = run(false);
    let (figures, read, with) = run(true);
    println!("{read} MiB read back in {SECONDS} s of play, which took {:?}", with.saturating_sub(without));
    assert_eq!(nothing, 0);
    assert!((24 * SECONDS..=33 * SECONDS).contains(&read), "{read} MiB read back");
    figures
}

/// The time that a packet takes at the server, and the bytes of its datagrams: the least of many, because whatever else the
/// machine does only adds.
fn cost(entries: impl Fn(&mut BitWriter)) -> (u64, usize) {
    const ROUNDS: usize = 100;
    let mut arena = Arena::new();
    let mut member = Member::join(&mut arena);
    let mut packets = Vec::new();
    for _ in 0..ROUNDS {
        let (nanos, bytes) = (arena.figures.nanos, arena.figures.bytes_in);
        member.say(&mut arena, |writer| {
            channel(writer, 2);
            entries(writer);
        });
        packets.push(((arena.figures.nanos - nanos) as u64, arena.figures.bytes_in - bytes));
        member.tick(&mut arena);
    }
    assert!(member.is_connected(&arena));
    packets.into_iter().min().expect("some")
}

#[test]
fn many_messages_a_packet_beside_few() {
    let messages = |count: usize, bytes: Option<u64>| {
        cost(move |writer| {
            for n in 0..count {
                match bytes {
                    Some(bytes) => message(writer, bytes),
                    None => writer.bits(2, 2),
                }
                writer.bool(n + 1 < count);
            }
        })
    };
    println!("\n| messages | bytes | ns | ns a byte | ns a message |\n|---|---:|---:|---:|---:|");
    let [_, few, _, most] = [
        ("1 of 1,000 bytes", 1, Some(1000)),
        ("40 of 20 bytes", 40, Some(20)),
        ("3,000 of no bits", 3000, None),
        ("16,384 of no bits", 16_384, None),
    ]
    .map(|(name, count, bytes)| {
        let (nanos, size) = messages(count, bytes);
        let (byte, each) = (nanos as f64 / size as f64, nanos as f64 / count as f64);
        println!("| {name} | {size} | {nanos} | {byte:.1} | {each:.0} |");
        each
    });
    // It is the messages that cost, and no more when there are many.
    assert!(most < 10.0 * few, "{most} ns a message instead of {few}");
}
