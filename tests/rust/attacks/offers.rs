//! Chunks offered and withdrawn as fast as a line of 10 Mbit/s carries it, at a server that makes a place for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tickwire::driver::files::DirectoryStore;
use tickwire::endpoint::ChunkStore;
use tickwire::transport::chunks::{Assembly, MemorySink, Offer, Rejection};
use tickwire::wire::{BitSink, BitWriter};

use super::arena::{Arena, Figures};
use super::members::{CHUNKS, Member, channel};

/// Packets of 118 bytes and their headers, in a tick.
const PACKETS: usize = 140;
const TICKS: usize = 120;
const BYTES: u64 = 200_000;

/// Counts the places that another store makes.
struct Counted<S>(S, Arc<AtomicUsize>);

struct Memory;

impl ChunkStore for Memory {
    fn open(&mut self, _: u64, offer: &Offer) -> Result<Assembly, Rejection> {
        Ok(Assembly::new(offer, Box::new(MemorySink::new(offer.size).map_err(|_| Rejection::Storage)?)))
    }

    fn bytes_at_once(&self) -> u64 {
        1 << 30
    }
}

impl<S: ChunkStore> ChunkStore for Counted<S> {
    fn open(&mut self, client_id: u64, offer: &Offer) -> Result<Assembly, Rejection> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.open(client_id, offer)
    }

    fn bytes_at_once(&self) -> u64 {
        self.0.bytes_at_once()
    }
}

fn offer(writer: &mut BitWriter, id: u16) {
    writer.bits(1, 2);
    writer.bits(id.into(), 16);
    writer.bits(BYTES, 40);
    writer.bits(1200, 11);
    writer.bytes(&[id as u8; 32]);
    writer.string("", 64);
}

fn withdraw(writer: &mut BitWriter, id: u16) {
    writer.bits(3, 2);
    writer.bits(id.into(), 16);
}

/// Four offers, four withdrawals, and so on; gives the places that were made and the packets that were dropped.
fn flood(store: Box<dyn ChunkStore>, places: &AtomicUsize, packets: usize) -> (Figures, usize, u64) {
    let mut arena = Arena::new();
    arena.server.set_chunk_store(store);
    let mut member = Member::join(&mut arena);
    let client = arena.server.find(66).unwrap();
    let (mut next, mut offers) = (0u16, true);
    for _ in 0..TICKS {
        for _ in 0..packets {
            let item = if offers { offer } else { withdraw };
            let before = arena.server.connection(client).unwrap().chunks().counters.offers_too_fast;
            member.say(&mut arena, |writer| {
                channel(writer, CHUNKS);
                for n in 0..4 {
                    item(writer, next.wrapping_add(n));
                    writer.bool(n < 3);
                }
            });
            // Dropped answers are repeated.
            if arena.server.connection(client).unwrap().chunks().counters.offers_too_fast == before {
                next = if offers { next } else { next.wrapping_add(4) };
                offers = !offers;
            }
        }
        member.tick(&mut arena);
        arena.server.take_chunk_events(&mut Vec::new());
    }
    assert!(member.is_connected(&arena), "it is dropped, not thrown out");
    let dropped = arena.server.connection(client).unwrap().chunks().counters.offers_too_fast;
    (arena.finish(), places.load(Ordering::Relaxed), dropped)
}

pub(super) fn offered_and_withdrawn() -> Figures {
    let places = Arc::new(AtomicUsize::new(0));
    let store = Counted(Memory, places.clone());
    let (figures, made, dropped) = flood(Box::new(store), &places, PACKETS);
    let per_tick = figures.nanos as f64 / TICKS as f64 / 1e6;
    println!("memory: {made} places made, {dropped} packets dropped, {per_tick:.2} ms a tick");
    assert!(made <= 300 + 1000 * TICKS / 60, "{made} places in {TICKS} ticks");
    assert!(dropped > 0);

    let directory = std::env::temp_dir().join(format!("tickwire-offers-{}", std::process::id()));
    let places = Arc::new(AtomicUsize::new(0));
    let store = Counted(DirectoryStore::new(directory.clone(), 1 << 20, 1 << 30).unwrap(), places.clone());
    let (of_files, made, dropped) = flood(Box::new(store), &places, PACKETS);
    std::fs::remove_dir_all(directory).unwrap();
    let per_tick = of_files.nanos as f64 / TICKS as f64 / 1e6;
    println!("files: {made} places made, {dropped} packets dropped, {per_tick:.2} ms a tick");
    assert!(made <= 300 + 1000 * TICKS / 60, "{made} files in {TICKS} ticks");
    figures
}

/// An honest sender has four open, and others follow as they are over: at 60 ticks a second that is no flood.
#[test]
fn an_honest_sender_of_small_chunks_meets_no_limit() {
    let places = Arc::new(AtomicUsize::new(0));
    let (_, made, dropped) = flood(Box::new(Counted(Memory, places.clone())), &places, 2);
    assert_eq!((made, dropped), (4 * TICKS, 0));
}
