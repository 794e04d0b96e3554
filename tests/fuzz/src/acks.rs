//! Headers, fragments and acks: any datagrams at an endpoint that sends. Each packet has one fate.

use tickwire::time::{Duration, Instant};
use tickwire::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig};
use tickwire::transport::acks::RttSampling;
use tickwire::transport::fragment::Fragment;
use tickwire::transport::header::Header;

use super::input::Input;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let config = if input.u8() & 1 == 0 { AckEndpointConfig::standard() } else { AckEndpointConfig::large() };
    let mut ours = AckEndpoint::new(config).unwrap();
    let (mut now, mut sequence, mut acked, mut lost) = (Instant::ZERO, 0u16, Vec::new(), Vec::new());
    let (mut sent, mut previous) = (0usize, input.u16());
    if previous > 60_000 {
        ours.acks.begin_at(previous.into());
        sequence = previous;
    }
    while !input.is_empty() {
        let op = input.u8();
        now += Duration::from_millis(u64::from(op >> 5) * 40);
        let datagram = match op & 7 {
            0 | 1 => {
                let payload = vec![0; usize::from(input.u8()) * usize::from(1 + (op >> 3 & 3))];
                sent += usize::from(ours.send(now, &payload).is_ok());
                continue;
            }
            2 => {
                ours.acks.poll_lost(now, &mut lost);
                ours.acks.update(now);
                continue;
            }
            3 => {
                let raw = input.piece().to_vec();
                if let Ok((header, size)) = Header::read(&raw) {
                    let mut written = Vec::new();
                    header.write(&mut written);
                    assert_eq!(header.is_canonical(&raw[..size]), written == raw[..size]);
                }
                raw
            }
            form => {
                sequence = sequence.wrapping_add(u16::from(input.u8() % 5));
                previous = (ours.acks.next_sequence() as u16).wrapping_sub(u16::from(input.u8()));
                let header = Header { sequence, ack: previous, ack_bits: input.u32() };
                let mut datagram = Vec::new();
                if form < 6 {
                    header.write(&mut datagram);
                    datagram.extend(input.piece());
                } else {
                    let (id, last_id) = (input.u8() % 8, input.u8() % 8);
                    let mut data = input.piece().to_vec();
                    if id < last_id {
                        data.resize(1024, 0);
                    }
                    let header = (id == 0).then_some(header.unwrap(0, 0));
                    let packet = sequence.into();
                    Fragment { packet, id, last_id, header, data: &data }.write(&mut datagram);
                }
                datagram
            }
        };
        match ours.open(&datagram) {
            Ok(Some(packet)) if op & 8 == 0 => ours.accept(now, packet, RttSampling::EveryAck, &mut acked),
            Ok(Some(packet)) => ours.refuse(packet),
            Ok(None) | Err(_) => {}
        }
    }
    ours.acks.poll_lost(now + Duration::from_secs(100), &mut lost);
    let in_time = acked.iter().filter(|acked| !acked.late).count();
    assert!(in_time + lost.len() <= sent, "each packet has one fate");
    assert!(acked.iter().filter(|acked| acked.late).count() <= lost.len());
}
