//! How fast blocks move over links that lose packets, at what cost, and what they do to a game beside them. In virtual
//! time, so the figures are the same on every machine. Prints a table and writes `benches/links/results.json`.

#[allow(dead_code)]
#[path = "../tests/rust/bulk_line.rs"]
mod bulk_line;
#[path = "../tests/rust/link_table.rs"]
mod link_table;
#[allow(dead_code)]
#[path = "../tests/rust/pair.rs"]
mod pair;
#[allow(dead_code)]
#[path = "../tests/rust/scenes.rs"]
mod scenes;
#[allow(dead_code)]
#[path = "../tests/rust/tcp.rs"]
mod tcp;

use std::fs;

use bulk_line::{Act, median};
use link_table::{Measured, TableLink, game_alone, links, measure};
use serde_json::{Value, json};
use tickwire::transport::{BudgetConfig, CongestionConfig};

const SMALL: usize = 256 << 10;
const LARGE: usize = 8 << 20;
const SMALL_SEEDS: u64 = 25;
const LARGE_SEEDS: u64 = 7;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if !wanted.is_empty() {
        for (name, scene) in scenes::SCENES {
            if wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
                for seed in 1..=std::env::var("SEEDS").map_or(1, |seeds| seeds.parse().unwrap()) {
                    scene(seed).iter().for_each(print_scene);
                }
            }
        }
        return;
    }
    let mut results = Vec::new();
    println!(
        "x ideal; q: queue p95/p99 ms; r: (resent - 2 %) / lost; game: p99 ms, and alone. Medians of {SMALL_SEEDS} and {LARGE_SEEDS} seeds."
    );
    for (ends, act) in [("at once", Act::AT_ONCE), ("60 Hz", Act::POLLED)] {
        for link in links() {
            for block in [SMALL, LARGE] {
                for controller in ["adaptive", "fixed"] {
                    results.push(row(&link, ends, act, block, controller));
                }
            }
        }
    }
    fs::create_dir_all("benches/links").unwrap();
    fs::write("benches/links/results.json", serde_json::to_string_pretty(&results).unwrap() + "\n").unwrap();
}

fn row(link: &TableLink, ends: &str, act: Act, block: usize, controller: &str) -> Value {
    // A little below the link's rate: what somebody who knew it would set.
    let fixed = BudgetConfig { bytes_per_second: link.rate() * 0.97, burst_bytes: 16_384.0 };
    let congestion = match controller {
        "fixed" => CongestionConfig::Fixed(fixed),
        _ => CongestionConfig::default(),
    };
    let seeds = 1..=if block == SMALL { SMALL_SEEDS } else { LARGE_SEEDS };
    let runs: Vec<Measured> =
        seeds.clone().map(|seed| measure(link, act, block, congestion, false, seed)).collect();
    let of = |value: fn(&Measured) -> f64| round(median(runs.iter().map(value).collect()));
    let (ratio, seconds, again) = (of(|m| m.ratio), of(|m| m.seconds), of(|m| m.resent_over_lost));
    let (p95, p99) = (of(|m| m.queue_ms[0]), of(|m| m.queue_ms[1]));
    let worst = round(runs.iter().map(|m| m.ratio).fold(0.0, f64::max));
    let (mut game, mut alone) = (Value::Null, Value::Null);
    if block == LARGE {
        let with = seeds.clone().map(|seed| measure(link, act, block, congestion, true, seed).game_p99_ms);
        let without = seeds.map(|seed| game_alone(link, act, seconds, seed));
        (game, alone) = (json!(round(median(with.collect()))), json!(round(median(without.collect()))));
    }
    println!(
        "{ends:>7} {:44} {:>5} KiB {controller:>8}: {ratio:.3} (worst {worst:.3}), q {p95}/{p99}, r {again}, game {game}, {alone}",
        link.name,
        block >> 10
    );
    json!({
        "link": link.name, "ends": ends, "block_bytes": block, "controller": controller, "seconds": seconds,
        "ideal_seconds": round(link.ideal(block)), "ratio": ratio, "worst_ratio": worst, "added_delay_ms": p95,
        "added_delay_p99_ms": p99, "retransmit_ratio": again, "game_p99_ms": game, "game_alone_p99_ms": alone,
    })
}

fn print_scene(row: &scenes::Row) {
    let figures: Vec<String> =
        row.figures.iter().map(|(name, value)| format!("{name} {:.3}", round(*value))).collect();
    println!("{:>26} {:60} seed {}: {}", row.scene, row.case, row.seed, figures.join(", "));
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
