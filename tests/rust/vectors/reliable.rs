//! Vectors of reliable 1.0: headers, whole packets and fragments, estimators, packets to refuse.

use serde_json::Value;
use std::sync::LazyLock;
use tickwire::articles::StandardEstimate;
use tickwire::time::{Duration, Instant};
use tickwire::transport::PacketStats;
use tickwire::transport::ack_endpoint::{AckEndpoint, AckEndpointConfig, DropReason};
use tickwire::transport::acks::{Acked, RttSampling};
use tickwire::transport::header::{Header, HeaderError};

static VECTORS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/reliable.json");
    let text = std::fs::read_to_string(path).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(file["reliable"].take()).unwrap()
});

fn vector(name: &str) -> &'static Value {
    VECTORS.iter().find(|vector| vector["name"] == name).unwrap_or_else(|| panic!("no vector {name}"))
}

fn of_kind(kind: &str) -> impl Iterator<Item = &'static Value> {
    VECTORS.iter().filter(move |vector| vector["kind"] == kind)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn bytes(hex: &Value) -> Vec<u8> {
    hex::decode(hex.as_str().unwrap()).unwrap()
}

/// The payload of every vector: byte i = (7 * i + 3) & 0xff.
fn payload(len: u64) -> Vec<u8> {
    (0..len).map(|i| (7 * i + 3) as u8).collect()
}

#[test]
fn headers_are_written_and_read() {
    for vector in of_kind("reliable_header") {
        let header = Header {
            sequence: number(&vector["sequence"]) as u16,
            ack: number(&vector["ack"]) as u16,
            ack_bits: u32::from_str_radix(vector["ack_bits"].as_str().unwrap(), 16).unwrap(),
        };
        let expected = bytes(&vector["header"]);
        let mut written = Vec::new();
        header.write(&mut written);
        assert_eq!(written, expected, "{}", vector["name"]);
        assert_eq!(Header::read(&expected), Ok((header, expected.len())), "{}", vector["name"]);
        assert_eq!(expected.len() as u64, number(&vector["bytes"]));
    }
    assert_eq!(of_kind("reliable_header").count(), 16);
}

fn endpoint(fragment_above: usize, fragment_size: usize) -> AckEndpoint {
    let mut config = AckEndpointConfig::standard();
    config.fragment_above = fragment_above;
    config.reassembly.fragment_size = fragment_size;
    config.max_packet_size = fragment_size * config.reassembly.max_fragments;
    AckEndpoint::new(config).unwrap()
}

fn send(endpoint: &mut AckEndpoint, payload: &[u8]) -> Vec<Vec<u8>> {
    let outgoing = endpoint.send(Instant::ZERO, payload).unwrap();
    let written = |piece: tickwire::transport::ack_endpoint::Piece<'_>| {
        let mut bytes = Vec::new();
        piece.write(&mut bytes);
        bytes
    };
    outgoing.pieces().map(written).collect()
}

/// Receives and accepts: the payload, when the datagram completed a packet.
fn receive(endpoint: &mut AckEndpoint, datagram: &[u8], acked: &mut Vec<Acked>) -> Option<Vec<u8>> {
    let incoming = endpoint.open(datagram).unwrap()?;
    let payload = incoming.payload().to_vec();
    endpoint.accept(Instant::ZERO, incoming, RttSampling::EveryAck, acked);
    Some(payload)
}

fn sequences(acked: &[Acked]) -> Vec<u64> {
    acked.iter().map(|acked| acked.sequence).collect()
}

/// The conversation from which the packets of the vectors were taken: A and B, from their first packets.
#[test]
fn packets_and_fragments_are_sent_and_received() {
    let fragmented = vector("fragmented_250");
    let size = number(&fragmented["fragment_size"]) as usize;
    let above = number(&fragmented["fragment_above"]) as usize;
    let (mut a, mut b) = (endpoint(above, size), endpoint(above, size));
    let mut acked = Vec::new();

    for i in 0..3 {
        let expected = vector(&format!("small_packet_b_{i}"));
        let packet = bytes(&expected["packet"]);
        let small = payload(number(&expected["payload_bytes"]));
        assert_eq!(send(&mut b, &small), [&packet[..]], "small packet {i}");
        if !expected["dropped"].as_bool().unwrap() {
            assert_eq!(receive(&mut a, &packet, &mut acked), Some(small));
        }
    }
    assert_eq!(acked, [], "B had received nothing");

    let whole = bytes(&vector("unfragmented_100")["packet"]);
    assert_eq!(send(&mut a, &payload(100)), [&whole[..]]);
    assert_eq!(receive(&mut b, &whole, &mut acked), Some(payload(100)));
    assert_eq!(sequences(&acked), [2, 0], "the dropped packet is not acked");

    let fragments: Vec<_> = fragmented["fragments"].as_array().unwrap().iter().map(bytes).collect();
    let large = payload(number(&fragmented["payload_bytes"]));
    assert_eq!(send(&mut a, &large), fragments);
    acked.clear();
    let received: Vec<_> = fragments.iter().map(|f| receive(&mut b, f, &mut acked)).collect();
    assert_eq!(received, [None, None, Some(large.clone())]);

    let ack = bytes(&vector("ack_after_fragmented")["packet"]);
    assert_eq!(send(&mut b, &payload(1)), [&ack[..]]);
    assert_eq!(receive(&mut a, &ack, &mut acked), Some(payload(1)));
    assert_eq!(sequences(&acked), [1, 0]);

    let partial = send(&mut a, &large);
    assert_eq!(receive(&mut b, &partial[1], &mut acked), None);
    let ack = bytes(&vector("ack_with_partial_reassembly")["packet"]);
    assert_eq!(send(&mut b, &payload(1)), [&ack[..]]);
    acked.clear();
    receive(&mut a, &ack, &mut acked);
    assert_eq!(acked, [], "a packet received in part is not acked");

    let checked = of_kind("reliable_packet").count() + of_kind("reliable_fragments").count();
    assert_eq!(checked, 3 + 1 + 1 + 2);
}

#[test]
fn estimators_follow_the_reference() {
    let samples = vector("estimator_trace")["samples"].as_array().unwrap();
    let mut expected = samples.iter().peekable();
    let (mut a, mut b) = (Estimated::new(), Estimated::new());
    for i in 0..400u64 {
        let now = Instant::from_millis(i * 50);
        a.update(now);
        let packet = a.send(now, &[0; 50]);
        if i % 10 != 9 {
            b.receive(now, &packet);
        }
        let packet = b.send(now, &[0; 20]);
        let now = now + Duration::from_millis(30 + 2 * (i % 5));
        a.update(now);
        a.receive(now, &packet);
        if let Some(sample) = expected.next_if(|sample| number(&sample["i"]) == i) {
            check_estimates(i, &a, sample);
        }
    }
    assert!(expected.next().is_none());
}

/// An endpoint with the standard's estimates.
struct Estimated {
    endpoint: AckEndpoint,
    estimate: StandardEstimate,
}

impl Estimated {
    fn new() -> Self {
        let config = AckEndpointConfig::standard();
        Estimated { estimate: StandardEstimate::new(&config), endpoint: AckEndpoint::new(config).unwrap() }
    }

    fn send(&mut self, now: Instant, payload: &[u8]) -> Vec<u8> {
        let outgoing = self.endpoint.send(now, payload).unwrap();
        self.estimate.note_sent(now, outgoing.header.sequence, payload.len());
        let mut bytes = Vec::new();
        outgoing.pieces().for_each(|piece| piece.write(&mut bytes));
        bytes
    }

    fn receive(&mut self, now: Instant, datagram: &[u8]) {
        let incoming = self.endpoint.open(datagram).unwrap().unwrap();
        let mut acked = Vec::new();
        self.estimate.note_received(now, &incoming);
        self.endpoint.accept(now, incoming, RttSampling::EveryAck, &mut acked);
        self.estimate.note_acked(&acked);
    }

    fn update(&mut self, now: Instant) {
        self.endpoint.acks.update(now);
        self.estimate.update(&self.endpoint.acks);
    }

    fn stats(&self) -> PacketStats {
        self.estimate.in_place_of(self.endpoint.acks.stats())
    }
}

fn check_estimates(i: u64, endpoint: &Estimated, sample: &Value) {
    let stats = endpoint.stats();
    let pairs = [
        ("rtt", stats.rtt),
        ("rtt_min", stats.rtt_min),
        ("rtt_max", stats.rtt_max),
        ("rtt_avg", stats.rtt_avg),
        ("jitter_avg_vs_min", stats.jitter_avg_vs_min),
        ("jitter_max_vs_min", stats.jitter_max_vs_min),
        ("jitter_stddev", stats.jitter_stddev),
        ("packet_loss", stats.packet_loss),
        ("sent_kbps", stats.sent_kbps),
        ("received_kbps", stats.received_kbps),
        ("acked_kbps", stats.acked_kbps),
    ];
    for (name, value) in pairs {
        let expected = sample[name].as_f64().unwrap();
        // The reference counts in 32-bit floats.
        let tolerance = 1e-6 * expected.abs().max(1.0);
        assert!((value - expected).abs() <= tolerance, "{name} at {i}: {value}, not {expected}");
    }
}

#[test]
fn bad_headers_are_refused() {
    let cases = vector("bad_headers")["cases"].as_array().unwrap();
    for case in cases {
        let packet = bytes(&case["packet"]);
        assert_eq!(case["rejected"], true);
        assert_eq!(Header::read(&packet), Err(HeaderError::TooShort), "{}", case["why"]);
        let mut endpoint = AckEndpoint::new(AckEndpointConfig::standard()).unwrap();
        assert_eq!(endpoint.open(&packet).unwrap_err(), DropReason::Header(HeaderError::TooShort));
        assert_eq!(endpoint.acks.counters.invalid, 1);
    }
    assert_eq!(cases.len(), 4);
}
