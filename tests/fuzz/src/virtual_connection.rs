//! The plain virtual connection under fire: a listener that has proven nobody's address never sends more than it got.

use std::net::SocketAddr;

use tickwire::articles::{VirtualConfig, VirtualConnection};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};
use tickwire::transport::header::Header;

use super::input::Input;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let secret = Some(u64::from(input.u8()));
    let mut ours = VirtualConnection::listen(VirtualConfig { secret, ..VirtualConfig::new(7) }).unwrap();
    let (mut now, mut out) = (Instant::ZERO, Datagrams::new());
    let (mut given, mut datagrams_given) = (0, 0);
    while !input.is_empty() {
        let op = input.u8();
        now += Duration::from_millis(u64::from(op >> 4) * 20);
        let victim = SocketAddr::from(([10, 0, 0, op & 1], 9));
        match op >> 1 & 7 {
            0 => {
                let _refused = ours.send(now, &vec![2; usize::from(input.u8()) * 8], &mut out);
            }
            1 => ours.update(now, &mut out),
            2 => while ours.poll_event().is_some() {},
            3 => {
                let datagram = input.piece();
                given += datagram.len();
                datagrams_given += 1;
                let _dropped = ours.handle_datagram(now, victim, datagram);
            }
            _ => {
                let mut packet = Vec::new();
                let header = Header { sequence: input.u16(), ack: input.u16(), ack_bits: input.u32() };
                header.write(&mut packet);
                packet.extend(input.piece());
                let mut datagram = 7u32.to_le_bytes().to_vec();
                datagram.extend(crc32fast::hash(&packet).to_le_bytes());
                datagram.extend(packet);
                given += datagram.len();
                datagrams_given += 1;
                let _dropped = ours.handle_datagram(now, victim, &datagram);
            }
        }
        assert!(ours.is_ready() || out.total_bytes() <= given && out.len() <= datagrams_given);
        if ours.is_ready() {
            // The fuzzer guessed an ack: from here on the address is proven.
            return;
        }
    }
}
