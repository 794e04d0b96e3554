//! Datagrams at a server and a client that are connected to each other, sealed with their keys and not: the connection
//! holds or ends by name, and nothing is answered to anybody else.

use tickwire::endpoint::{Event, Host, Inbox};
use tickwire::netcode::packet::{Kind, seal};
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};
use tickwire::transport::acks::FullHeader;
use tickwire::wire::BitSink;

use super::input::Input;
use super::native;
use super::world::{
    CLIENT_CHUNKS, PROTOCOL_ID, START, begin_payload, client_address, connected, server_address, token,
};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (mut server, mut client) = connected();
    // Client to server, server to client: they end the public part of a token with one IPv4 address.
    let token = token().to_bytes();
    let key = |at: usize| token[1100 + at..1132 + at].try_into().unwrap();
    let keys = [key(0), key(32)];
    let mut out = Datagrams::new();
    let (mut now, mut sequence) = (Instant::ZERO, 1000u64);
    let mut ended = false;
    while !input.is_empty() {
        let op = input.u8();
        now += Duration::from_millis(u64::from(op >> 4) * 4);
        let to_client = op & 1 == 1;
        let datagram = match op >> 1 & 3 {
            0 => input.piece().to_vec(),
            1 => {
                let kind = [Kind::Denied, Kind::KeepAlive, Kind::Disconnect][input.below(3) as usize];
                let bytes = if kind == Kind::KeepAlive { 8 } else { 0 };
                sealed(sequence, &keys[usize::from(to_client)], kind, &input.array::<8>()[..bytes])
            }
            form => {
                let (ack, ack_bits) = (input.u8().into(), input.u32());
                let header = FullHeader { sequence, ack, ack_bits, skipped: input.u8() & 1 };
                let mut payload = native::datagram(&header, &[]);
                if form == 2 {
                    let mut writer = begin_payload();
                    input.piece().iter().for_each(|byte| writer.bits((*byte).into(), 8));
                    payload.extend(writer.into_bytes());
                } else {
                    payload.extend(input.piece());
                }
                payload.truncate(1200);
                sealed(sequence, &keys[usize::from(to_client)], Kind::Payload, &payload)
            }
        };
        sequence += u64::from(input.u8() % 4);
        if to_client {
            client.handle_datagram(now, START, server_address(), &mut datagram.clone(), &mut out);
            assert!(out.iter().all(|(to, _)| to == server_address()));
        } else {
            server.handle_datagram(now, START, client_address(), &mut datagram.clone(), &mut out);
            assert!(out.iter().all(|(to, _)| to == client_address()));
        }
        assert!(out.len() <= 10, "at most a goodbye, said ten times");
        out.clear();
        if op & 8 != 0 {
            tick(now, &mut server, &mut client, &mut out);
        }
        while let Some(event) = server.poll_event() {
            if let Event::Disconnected { .. } = event {
                assert!(!ended, "told once");
                ended = true;
            }
        }
        assert_eq!(server.connected().next().is_none(), ended);
    }
    tick(now, &mut server, &mut client, &mut out);
}

fn sealed(sequence: u64, key: &[u8; 32], kind: Kind, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    seal(&mut out, PROTOCOL_ID, key, sequence, kind, body);
    out
}

/// Both send what is due and read what has arrived.
fn tick(now: Instant, server: &mut Host, client: &mut Host, out: &mut Datagrams) {
    server.transmit(now, out);
    client.transmit(now, out);
    assert!(out.iter().all(|(_, datagram)| datagram.len() <= 1225));
    out.clear();
    let mut inbox = Inbox::new();
    server.take_messages(&mut inbox);
    client.take_messages(&mut inbox);
    let mut chunks = Vec::new();
    server.take_chunk_events(&mut chunks);
    client.take_chunk_events(&mut chunks);
    for client in server.connected().collect::<Vec<_>>() {
        let incoming = server.connection(client).into_iter().flat_map(|it| it.chunks().incoming(now));
        assert!(incoming.map(|(offer, _)| offer.size).sum::<u64>() <= CLIENT_CHUNKS);
    }
}
