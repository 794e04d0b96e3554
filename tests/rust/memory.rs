//! The memory of one connection, counted as it is allocated: a server holds thousands. And that of a socket.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use tickwire::driver::Driver;
use tickwire::driver::udp::UdpConfig;
use tickwire::netsim::Conditions;
use tickwire::replication::{Classes, Condition, Mirror};
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{
    Body, ChannelConfig, ChannelKind, Connection, ConnectionConfig, Message, MessageType, Protocol, Scratch,
    SendOptions, VERSION,
};
use tickwire::wire::{BitReader, BitSink, BitWriter, Kind, Schema};

use crate::endpoint::World;
use crate::fuzz_targets::ghosts::class;
use crate::fuzz_targets::native::{Peer, deliver, handle, labelled};
use crate::pair::{RELIABLE, UNRELIABLE, blob, number, protocol};

/// Counts the bytes that each thread holds, and how often it asks for more, so that tests in parallel don't see each
/// other's.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static REQUESTS: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static BLOCKS: Cell<isize> = const { Cell::new(0) };
}

/// The bytes that this thread holds.
pub(crate) fn held() -> isize {
    LIVE.get()
}

/// The most that this thread held, beyond what it holds now, while it did this.
pub(crate) fn peak(run: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    run();
    (PEAK.get() - before) as usize
}

/// How often this thread asked for memory.
pub(crate) fn requests() -> usize {
    REQUESTS.get()
}

fn count(bytes: isize) {
    // A thread that ends has no counter any more.
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
    let _ = PEAK.try_with(|peak| peak.set(peak.get().max(LIVE.get())));
    let _ = REQUESTS.try_with(|requests| requests.set(requests.get() + usize::from(bytes > 0)));
}

fn count_blocks(blocks: isize) {
    let _ = BLOCKS.try_with(|held| held.set(held.get() + blocks));
}

// SAFETY: every call is the system allocator's; beside it, only a number is kept.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        count_blocks(1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        count_blocks(-1);
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as isize - layout.size() as isize);
        unsafe { System.realloc(memory, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Two connections at the ends of a line with an RTT of 100 ms that loses every tenth packet.
struct Line {
    now: Instant,
    ends: [Connection; 2],
    /// By end and by time of arrival.
    under_way: [Vec<(Instant, Vec<u8>)>; 2],
    sent: u64,
    packets: Packets,
    /// Of both, as a server's connections have it.
    scratch: Scratch,
}

impl Line {
    fn tick(&mut self) {
        self.now += Duration::from_micros(16_667);
        for end in 0..2 {
            self.ends[end].swap_scratch(&mut self.scratch);
            let due = self.under_way[end].partition_point(|(arrival, _)| *arrival <= self.now);
            for (_, packet) in self.under_way[end].drain(..due) {
                handle(&mut self.ends[end], self.now, &packet).unwrap();
            }
            for channel in [RELIABLE, UNRELIABLE] {
                while self.ends[end].poll_received(channel).is_some() {}
            }
            self.ends[end].transmit(self.now, &mut self.packets);
            self.ends[end].swap_scratch(&mut self.scratch);
            for packet in self.packets.iter() {
                self.sent += 1;
                if !self.sent.is_multiple_of(10) {
                    self.under_way[1 - end].push((self.now + Duration::from_millis(50), labelled(packet)));
                }
            }
            self.packets.clear();
        }
    }
}

/// The bytes that a connection holds, and in how many blocks, after `seconds` in which both ends do as told each tick.
fn held_after(seconds: usize, mut each_tick: impl FnMut(usize, &mut Connection)) -> (usize, isize) {
    let protocol = protocol();
    let config = ConnectionConfig::default();
    let end = || Connection::new(&config, Arc::clone(&protocol)).unwrap();
    let ends = [end(), end()];
    let mut line = Line {
        now: Instant::ZERO,
        ends,
        under_way: Default::default(),
        sent: 0,
        packets: Packets::new(),
        scratch: Scratch::default(),
    };
    for tick in 0..seconds * 60 {
        line.ends.iter_mut().for_each(|end| each_tick(tick, end));
        line.tick();
    }
    let Line { ends: [first, second], .. } = line;
    drop(second);
    let with = (LIVE.get(), BLOCKS.get());
    drop(first);
    // One block more is the connection's own.
    ((with.0 - LIVE.get()) as usize + size_of::<Connection>(), with.1 - BLOCKS.get() + 1)
}

#[test]
fn a_connection_holds_as_much_as_its_docs_say() {
    let fresh = held_after(0, |_, _| {});
    let idle = held_after(600, |_, _| {});
    // 60 packets a second each way, each with a reliable message and the state of a world.
    let busy = held_after(120, |tick, end| {
        let (now, none) = (Instant::from_millis(tick as u64 * 16), SendOptions::default());
        end.send(now, RELIABLE, number(tick as u32), none).unwrap();
        end.send(now, UNRELIABLE, blob(tick as u32, 800), none).unwrap();
    });
    println!("bytes and blocks: fresh {fresh:?}, idle {idle:?}, busy {busy:?}");
    assert!(fresh.0 <= 4 * 1024 && fresh.1 <= 4, "{fresh:?}");
    assert!(idle.0 <= 5632 && idle.1 <= 4, "{idle:?}");
    // One block is of the packets whose notifications wait.
    assert!(busy.0 <= 13 * 1024 + 272 && busy.1 <= 13, "{busy:?}");
}

/// The bytes and blocks that a server holds, with so many clients over a line that loses this share of packets.
fn held_by_a_server(clients: usize, loss: f64) -> (isize, isize) {
    let mut conditions = Conditions::default();
    (conditions.loss, conditions.latency) = (loss, Duration::from_millis(50));
    let mut world = World::new(64, conditions);
    (0..clients).for_each(|_| _ = world.add_client());
    // All connect, and then half a minute in which nobody says anything.
    world.ticks(40 * 60);
    let World { server, clients: all, .. } = world;
    assert_eq!(server.connected().count(), all.len());
    let with = (LIVE.get(), BLOCKS.get());
    drop(server);
    (with.0 - LIVE.get(), with.1 - BLOCKS.get())
}

/// Everything a server has for a client: its connection, its keys and windows, its places in tables and timers.
#[test]
fn an_idle_client_takes_a_server_four_blocks() {
    for loss in [0.0, 0.05] {
        // What all clients share, such as tables and the memory that packets are read in, is in both.
        let (few, many) = (held_by_a_server(10, loss), held_by_a_server(60, loss));
        let each = |many: isize, few: isize| (many - few) as f64 / 50.0;
        let (bytes, blocks) = (each(many.0, few.0), each(many.1, few.1));
        println!("loss {loss}: {bytes:.0} bytes and {blocks:.2} blocks");
        assert!(blocks <= 4.1 && bytes <= 7.0 * 1024.0, "{bytes} bytes in {blocks} blocks");
    }
}

#[test]
fn the_largest_packet_leaves_little_behind() {
    let nothing = Schema::new::<String>([]).unwrap();
    let types = vec![MessageType { name: "Nothing".into(), body: Body::Declared(nothing) }];
    let channel = ChannelConfig::new(ChannelKind::Unreliable { receive_queue: 16 });
    let protocol = Arc::new(Protocol::new(types, vec![channel]).unwrap());
    let mut payload = BitWriter::new();
    payload.bool(true);
    payload.bits(VERSION.into(), 8);
    payload.bits(protocol.hash(), 64);
    payload.bits(0, 4);
    (0..16_384).for_each(|_| payload.bool(true));
    payload.bits(0, 2);
    let payload = payload.into_bytes();

    let mut sender = Peer::default();
    let mut connection = Connection::new(&ConnectionConfig::default(), protocol).unwrap();
    let before = LIVE.get();
    deliver(&mut sender, &mut connection, Instant::ZERO, &payload).unwrap();
    assert_eq!(connection.channel_stats(0).received, 16_384);
    let held = LIVE.get() - before;
    assert!(held <= 64 * 1024, "{held}");
}

/// A list of identities takes 640 times its bits.
#[test]
fn lists_that_nobody_takes_hold_a_bounded_memory_and_come_through_when_they_are_taken() {
    let identities = Kind::List {
        max: 3000,
        item: Box::new(Kind::Transform { lo: -1.0, hi: 1.0, resolution: 1.0, bits: 9 }),
    };
    let schema = Schema::new([("list", identities)]).unwrap();
    let types = vec![MessageType { name: "Lists".into(), body: Body::Declared(schema) }];
    let channel = ChannelConfig { max_message_bytes: 1000, ..ChannelConfig::reliable_ordered() };
    let protocol = Arc::new(Protocol::new(types, vec![channel]).unwrap());
    let hash = protocol.hash();
    let packet = |id: u64| {
        let mut payload = BitWriter::new();
        payload.bool(true);
        payload.bits(VERSION.into(), 8);
        payload.bits(hash, 64);
        payload.bits(0, 4);
        payload.bits(1, 1);
        payload.bits(id, 16);
        payload.bits(3000, 12);
        (0..3000).for_each(|_| payload.bool(true));
        payload.bits(0, 2);
        payload.into_bytes()
    };
    let mut sender = Peer::default();
    let mut connection = Connection::new(&ConnectionConfig::default(), protocol).unwrap();
    let mut send = |connection: &mut Connection, id: u64| {
        let before = connection.counters().without_memory;
        deliver(&mut sender, connection, Instant::ZERO, &packet(id)).unwrap();
        connection.counters().without_memory == before
    };
    let before = LIVE.get();
    // All but the first, which the others wait for.
    let here: Vec<u64> = (1..1000).filter(|id| send(&mut connection, *id)).collect();
    let held = LIVE.get() - before;
    assert_eq!(connection.counters().without_memory + here.len() as u64, 999);
    // 2 MiB, the channel's window, and one packet.
    assert!((5 << 19..15 << 18).contains(&held), "{held}");
    assert!(connection.poll_received(0).is_none());
    assert!(send(&mut connection, 0), "the first must get through");
    let mut taken = 0;
    while taken < 1000 {
        while connection.poll_received(0).is_some() {
            taken += 1;
        }
        assert!(taken == 1000 || send(&mut connection, taken));
    }
}

#[test]
fn keys_used_once_leave_a_number_each() {
    let schema = Schema::new([("number", Kind::Bits { bits: 8 })]).unwrap();
    let types = vec![MessageType { name: "Number".into(), body: Body::Declared(schema) }];
    let latest = ChannelConfig::new(ChannelKind::Latest { keys: 65_536 });
    let protocol = Arc::new(Protocol::new(types, vec![latest]).unwrap());
    let end = || Connection::new(&ConnectionConfig::default(), protocol.clone()).unwrap();
    let (mut sender, mut receiver, mut packets) = (end(), end(), Packets::new());
    let mut now = Instant::ZERO;
    for key in 0..65_536 {
        let mut number = BitWriter::new();
        number.bits(7, 8);
        sender
            .send(now, 0, Message::new(0, number.encoded()), SendOptions { key, ..Default::default() })
            .unwrap();
        if key % 64 < 63 {
            continue;
        }
        sender.transmit(now, &mut packets);
        packets.iter().for_each(|(number, packet)| receiver.handle_datagram(now, number, packet).unwrap());
        packets.clear();
        receiver.transmit(now, &mut packets);
        packets.iter().for_each(|(number, packet)| sender.handle_datagram(now, number, packet).unwrap());
        packets.clear();
        while receiver.poll_received(0).is_some() {}
        now += Duration::from_millis(16);
    }
    drop(sender);
    let with = LIVE.get();
    drop(receiver);
    let bytes = (with - LIVE.get()) / 65_536;
    assert!(bytes <= 48, "{bytes} bytes a key");
}

/// A packet of the highest id of each class.
#[test]
fn ghosts_take_memory_for_what_arrived_and_not_for_the_ids_below() {
    let fields = |name| class(name, vec![("x", Kind::Bits { bits: 8 }, Condition::Always)], 1 << 16);
    let names: Vec<String> = (0..256).map(|i| format!("Class{i}")).collect();
    let classes = Arc::new(Classes::new(names.iter().map(|name| fields(name))).unwrap());
    let mut mirror = Mirror::new(classes);
    // An end, and then a beginning.
    for (tick, op, bits_of_op) in [(10, 0b00, 2), (20, 0b010, 3 + 8)] {
        let mut bits = BitWriter::new();
        bits.bits(tick, 17);
        for id_of_class in 0..256 {
            bits.bits(1 | id_of_class << 1, 9);
            bits.bits(1 | 0xFFFF << 5, 21);
            bits.bits(op, bits_of_op);
            bits.bool(false);
        }
        bits.bool(false);
        let (len, bytes) = (bits.bit_len(), bits.into_bytes());
        let before = held();
        mirror.handle_payload(BitReader::with_range(&bytes, 0, len)).unwrap();
        let taken = held() - before;
        assert!(taken < 1_200_000, "{taken} bytes for a packet of {}", bytes.len());
    }
    assert_eq!(mirror.rows(255), 1 << 16);
}

/// Run by hand, for its figures: `cargo test --release ten_million -- --ignored --nocapture`.
#[test]
#[ignore = "long in a debug build"]
fn ten_million_messages_leave_the_memory_flat() {
    const MESSAGES: u32 = 10_000_000;
    let end = || Connection::new(&ConnectionConfig::default(), protocol()).unwrap();
    let (mut now, mut ends, mut packets) = (Instant::ZERO, [end(), end()], Packets::new());
    let (mut sent, mut received, mut after_a_tenth) = (0u32, 0u32, 0);
    while received < MESSAGES {
        now += Duration::from_micros(16_667);
        // Small ones, half of them reliable, as many as a tick's budget has room for.
        for channel in [RELIABLE, UNRELIABLE] {
            for _ in 0..700 {
                let message = number(sent);
                sent += u32::from(ends[0].send(now, channel, message, SendOptions::default()).is_ok());
            }
        }
        for (from, to) in [(0, 1), (1, 0)] {
            ends[from].transmit(now, &mut packets);
            for (number, packet) in packets.iter() {
                ends[to].handle_datagram(now, number, packet).unwrap();
            }
            packets.clear();
        }
        for channel in [RELIABLE, UNRELIABLE] {
            received += core::iter::from_fn(|| ends[1].poll_received(channel)).count() as u32;
        }
        if after_a_tenth == 0 && received >= MESSAGES / 10 {
            after_a_tenth = held();
        }
    }
    let grown = held() - after_a_tenth;
    println!(
        "{received} messages; {after_a_tenth} bytes held after a tenth of them, {grown} more at the end"
    );
    assert!(grown.abs() < 4096, "{grown}");
}

#[test]
fn a_socket_in_use_asks_for_no_memory() {
    for batched in [false, true] {
        let config = UdpConfig { batched, ..UdpConfig::default() };
        let [mut a, mut b] = [(); 2].map(|()| Driver::udp("127.0.0.1:0".parse().unwrap(), config).unwrap());
        let to = b.local_address();
        let mut received = 0;
        let mut exchange = || {
            // Some alike and some not, answered one by one: about as many as wait at most.
            a.transmit(|_, out| {
                (0..200).for_each(|n| out.push(to, &[n; 1200][..1200 - usize::from(n % 7 / 5)]));
            });
            b.receive(|_, _, from, datagram, out| out.push(from, &datagram[..100])).unwrap();
            a.receive(|_, _, _, _, _| received += 1).unwrap();
        };
        // Memory grows with what one call brings, a few times.
        (0..10).for_each(|_| exchange());
        let before = REQUESTS.get();
        (0..10).for_each(|_| exchange());
        assert_eq!(REQUESTS.get() - before, 0);
        assert!(received > 3000, "{received}");
    }
}
