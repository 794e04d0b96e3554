//! How fast blocks move over links that lose packets, at what cost, and what they do to a game beside them. In virtual
//! time, so the figures are the same on every machine. Then scenes: bulk beside others, and on links that do more than lose
//! packets. Prints a table and writes `benches/links/results.json`.

#[allow(dead_code)]
#[path = "../tests/rust/bulk_line.rs"]
mod bulk_line;
#[allow(dead_code)]
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
use link_table::{Game, Measured, TableLink, game_alone, links, measure};
use scenes::Row;
use serde_json::{Map, Value, json};

const SMALL: usize = 256 << 10;
const LARGE: usize = 8 << 20;
const SMALL_SEEDS: u64 = 25;
const LARGE_SEEDS: u64 = 7;
/// For the scenes, unless `SEEDS` says otherwise.
const SCENE_SEEDS: u64 = 3;

/// From `FIRST_SEED`: what was found with some seeds should hold with others.
fn scene_seeds() -> std::ops::RangeInclusive<u64> {
    let number = |name, or| std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(or);
    let first = number("FIRST_SEED", 1);
    first..=first + number("SEEDS", SCENE_SEEDS) - 1
}

fn main() {
    // With words, only the scenes whose names have one of them, and nothing is written.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if !wanted.is_empty() {
        let named = |name: &str| wanted.iter().any(|word| name.contains(word.as_str()));
        scenes::SCENES.iter().filter(|(name, _)| named(name)).for_each(|(_, scene)| drop(scene_rows(*scene)));
        return;
    }
    let mut results = Vec::new();
    println!(
        "x ideal; q: queue p95/p99 ms; r: (resent - 2 %) / lost; game: p99 ms of the messages that arrived (share of those sent), and alone. Medians of {SMALL_SEEDS} and {LARGE_SEEDS} seeds."
    );
    for (ends, act) in [("at once", Act::AT_ONCE), ("60 Hz", Act::POLLED)] {
        for link in links() {
            for block in [SMALL, LARGE] {
                results.push(row(&link, ends, act, block));
            }
        }
    }
    results.extend(scenes::SCENES.iter().flat_map(|(_, scene)| scene_rows(*scene)));
    fs::create_dir_all("benches/links").unwrap();
    fs::write("benches/links/results.json", serde_json::to_string_pretty(&results).unwrap() + "\n").unwrap();
}

fn row(link: &TableLink, ends: &str, act: Act, block: usize) -> Value {
    let seeds = 1..=if block == SMALL { SMALL_SEEDS } else { LARGE_SEEDS };
    let runs: Vec<Measured> = seeds.clone().map(|seed| measure(link, act, block, false, seed)).collect();
    let of = |value: fn(&Measured) -> f64| round(median(runs.iter().map(value).collect()));
    let (ratio, seconds, again) = (of(|m| m.ratio), of(|m| m.seconds), of(|m| m.resent_over_lost));
    let (p95, p99) = (of(|m| m.queue_ms[0]), of(|m| m.queue_ms[1]));
    let worst = round(runs.iter().map(|m| m.ratio).fold(0.0, f64::max));
    let (mut game, mut alone) = (Value::Null, Value::Null);
    let (mut received, mut received_alone) = (Value::Null, Value::Null);
    if block == LARGE {
        let with = seeds.clone().map(|seed| measure(link, act, block, true, seed).game);
        let without = seeds.map(|seed| game_alone(link, act, seconds, seed));
        let figures = |games: Vec<Game>| {
            let share = games.iter().map(|game| game.received_share).sum::<f64>() / games.len() as f64;
            (json!(round(median(games.iter().map(|game| game.p99_ms).collect()))), json!(round(share)))
        };
        (game, received) = figures(with.collect());
        (alone, received_alone) = figures(without.collect());
    }
    println!(
        "{ends:>7} {:44} {:>5} KiB: {ratio:.3} (worst {worst:.3}), q {p95}/{p99}, r {again}, \
         game {game} ({received} arrived), {alone} ({received_alone})",
        link.name,
        block >> 10
    );
    json!({
        "link": link.name, "ends": ends, "block_bytes": block, "seconds": seconds,
        "ideal_seconds": round(link.ideal(block)), "ratio": ratio, "worst_ratio": worst, "added_delay_ms": p95,
        "added_delay_p99_ms": p99, "retransmit_ratio": again, "game_p99_ms": game, "game_alone_p99_ms": alone,
        "game_received_share": received, "game_alone_received_share": received_alone,
    })
}

/// A scene's rows: of each figure the median of the seeds, and the least and the most.
fn scene_rows(scene: fn(u64) -> Vec<Row>) -> Vec<Value> {
    let runs: Vec<Vec<Row>> = scene_seeds().map(scene).collect();
    let row = |index: usize| {
        let Row { scene, case, figures } = &runs[0][index];
        let figure = |number: usize, name: &str| {
            let mut values: Vec<f64> = runs.iter().map(|rows| round(rows[index].figures[number].1)).collect();
            values.sort_by(f64::total_cmp);
            let (least, most) = (values[0], values[values.len() - 1]);
            (name.to_owned(), json!({ "median": median(values), "least": least, "most": most }))
        };
        let figures: Map<String, Value> =
            figures.iter().enumerate().map(|(number, (name, _))| figure(number, name)).collect();
        let line: Vec<String> = figures
            .iter()
            .map(|(name, of)| format!("{name} {} ({} to {})", of["median"], of["least"], of["most"]))
            .collect();
        println!("{scene:>26} {case:58}: {}", line.join(", "));
        json!({ "scene": scene, "case": case, "seeds": runs.len(), "figures": figures })
    };
    (0..runs[0].len()).map(row).collect()
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
