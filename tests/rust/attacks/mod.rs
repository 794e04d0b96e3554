//! Attacks and their cost: bytes out for bytes in, memory, and the effect on an honest player and a newcomer.
//!
//! `cargo test --release attacks -- --nocapture` prints the table of docs/maintainers/robustness.md.

mod acks;
mod arena;
mod cost;
mod forged;
mod members;
mod offers;
mod proportion;
mod strangers;
mod timing;

use arena::Figures;

/// An attack and the cost allowed for it.
struct Attack {
    name: &'static str,
    run: fn() -> Figures,
    /// The most bytes out for each byte in; a peer that has proven its address may be sent more, within its budget.
    ratio: f64,
    /// The most bytes that the server holds for it.
    memory: isize,
    /// Whether somebody new gets in meanwhile, if that was tried.
    newcomer: Option<bool>,
}

const KIB: isize = 1024;

#[rustfmt::skip]
const ATTACKS: &[Attack] = &[
    Attack { name: "none, for comparison", run: strangers::nothing, ratio: 0.0, memory: 48 * KIB, newcomer: Some(true) },
    Attack { name: "spoofed connect flood", run: strangers::spoofed_connect_flood, ratio: 0.0, memory: 48 * KIB, newcomer: Some(true) },
    Attack { name: "connect flood of one source", run: strangers::connect_flood_of_one_source, ratio: 0.0, memory: 48 * KIB, newcomer: Some(true) },
    Attack { name: "valid request repeated", run: strangers::valid_request_repeated, ratio: 0.01, memory: 48 * KIB, newcomer: Some(true) },
    Attack { name: "replayed capture", run: strangers::replayed_capture, ratio: 0.0, memory: 48 * KIB, newcomer: Some(true) },
    Attack { name: "reflected packets", run: strangers::reflected_packets, ratio: 0.0, memory: 48 * KIB, newcomer: Some(true) },
    Attack { name: "stolen token", run: strangers::stolen_token, ratio: 0.01, memory: 48 * KIB, newcomer: Some(true) },
    Attack { name: "forged source, two tokens", run: forged::forged_source_with_two_tokens, ratio: 0.31, memory: 48 * KIB, newcomer: Some(true) },
    Attack { name: "half-open flood", run: strangers::half_open_flood, ratio: 0.31, memory: 600 * KIB, newcomer: Some(true) },
    Attack { name: "slow-loris handshakes", run: strangers::slow_loris, ratio: 0.31, memory: 400 * KIB, newcomer: Some(true) },
    Attack { name: "slot exhaustion", run: strangers::slot_exhaustion, ratio: 0.1, memory: 400 * KIB, newcomer: Some(false) },
    Attack { name: "noise", run: strangers::noise, ratio: 0.0, memory: 48 * KIB, newcomer: Some(true) },
    Attack { name: "reliable window filled", run: members::reliable_window_bomb, ratio: 0.1, memory: 300 * KIB, newcomer: None },
    Attack { name: "reliable window exceeded", run: members::reliable_window_exceeded, ratio: 1.0, memory: 64 * KIB, newcomer: Some(true) },
    Attack { name: "queues flooded", run: members::queue_flood, ratio: 0.01, memory: 1024 * KIB, newcomer: None },
    Attack { name: "every key of a latest channel", run: members::every_key, ratio: 0.01, memory: 1024 * KIB, newcomer: None },
    Attack { name: "16,384 messages a packet", run: members::sixteen_thousand_messages_a_packet, ratio: 0.1, memory: 128 * KIB, newcomer: None },
    Attack { name: "chunk offers", run: members::chunk_offers, ratio: 0.5, memory: 128 * KIB, newcomer: None },
    Attack { name: "chunks offered and withdrawn", run: offers::offered_and_withdrawn, ratio: 0.5, memory: 1536 * KIB, newcomer: None },
    Attack { name: "chunk offers withdrawn, never read", run: members::chunk_offers_withdrawn, ratio: 0.7, memory: 128 * KIB, newcomer: None },
    Attack { name: "a partial chunk resumed", run: cost::partial_chunk_resumed, ratio: 0.5, memory: 256 * KIB, newcomer: None },
    Attack { name: "fragment bomb", run: members::fragment_bomb, ratio: 0.01, memory: 2560 * KIB, newcomer: None },
    Attack { name: "sequence jumps", run: members::sequence_jumps, ratio: 0.5, memory: 128 * KIB, newcomer: None },
    Attack { name: "optimistic acks of a chunk", run: members::optimistic_acks, ratio: f64::INFINITY, memory: 256 * KIB, newcomer: None },
    Attack { name: "a peer that never acks", run: members::never_acks, ratio: f64::INFINITY, memory: 1024 * KIB, newcomer: None },
];

#[test]
fn every_attack_stays_within_its_bounds() {
    println!(
        "\n| attack | datagrams | bytes in | bytes out | out / in | memory, KiB | µs each | delay of an honest player, ticks | newcomer in, ticks |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for Attack { name, run, ratio, memory, newcomer } in ATTACKS {
        let figures = run();
        let out_per_in = figures.bytes_out as f64 / figures.bytes_in.max(1) as f64;
        let each = figures.nanos as f64 / figures.datagrams.max(1) as f64 / 1000.0;
        let got_in = match figures.newcomer {
            Some(ticks) => ticks.to_string(),
            None if *newcomer == Some(false) => "denied".into(),
            None => String::new(),
        };
        println!(
            "| {name} | {} | {} | {} | {out_per_in:.3} | {} | {each:.2} | {} | {got_in} |",
            figures.datagrams,
            figures.bytes_in,
            figures.bytes_out,
            figures.memory / KIB,
            figures.delay,
        );
        assert!(out_per_in <= *ratio, "{name}: {out_per_in} bytes out for each in");
        assert!(figures.memory <= *memory, "{name}: {} bytes held", figures.memory);
        assert_eq!(figures.delay, 0, "{name}: the honest player waits");
        assert_eq!(newcomer.unwrap_or(false), figures.newcomer.is_some(), "{name}: a newcomer");
        assert!(figures.newcomer.is_none_or(|ticks| ticks <= 10), "{name}: {:?}", figures.newcomer);
    }
}
