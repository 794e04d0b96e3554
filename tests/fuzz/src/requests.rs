//! Requests and rates of calls, beside a model: numbers that wait are unique, each ends once, and no more pass than may.

use std::collections::HashMap;

use tickwire::calls::{MAX_REQUESTS, Rate, Requests};
use tickwire::store::Bucket;
use tickwire::time::{Duration, Instant};

use super::input::Input;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (per_second, burst) = (f64::from(input.u16()) / 16.0, f64::from(input.u8()));
    let Ok(rate) = Rate::new(per_second, burst) else { return };
    let (mut requests, mut model) = (Requests::default(), HashMap::new());
    let (mut now, mut bucket) = (Instant::ZERO, Bucket::default());
    let (mut passed, mut count) = (0_u64, 0_u32);
    while !input.is_empty() {
        let op = input.u8();
        match op & 7 {
            0..=2 => {
                let deadline = now + Duration::from_millis(u64::from(input.u8()));
                count += 1;
                match requests.begin(u16::from(op >> 3), deadline, count) {
                    Some(number) => {
                        let before = model.insert(number, (u16::from(op >> 3), deadline, count));
                        assert!(before.is_none(), "{number} waits already");
                    }
                    None => assert_eq!(model.len(), MAX_REQUESTS),
                }
            }
            3 | 4 => {
                // A reply, perhaps to nothing.
                let number = u16::from(input.u8()) | u16::from(op >> 6) << 8;
                assert_eq!(requests.call(number), model.get(&number).map(|(call, ..)| *call));
                assert_eq!(requests.end(number), model.remove(&number).map(|(.., what)| what));
            }
            5 => {
                now += Duration::from_millis(u64::from(input.u8()));
                let mut over = requests.expire(now);
                let is_over = |(_, deadline, _): &(u16, Instant, u32)| *deadline <= now;
                let mut expected: Vec<u32> =
                    model.values().filter(|each| is_over(each)).map(|each| each.2).collect();
                model.retain(|_, each| !is_over(each));
                over.sort_unstable();
                expected.sort_unstable();
                assert_eq!(over, expected);
                let deadlines = model.values().map(|each| each.1);
                assert_eq!(requests.deadline(), deadlines.min().unwrap_or(Instant::NEVER));
            }
            6 => {
                let over = requests.discard(|what| what % 2 == 0).len();
                let before = model.len();
                model.retain(|_, each| each.2 % 2 != 0);
                assert_eq!(over, before - model.len());
            }
            _ => {
                passed += u64::from(rate.take(&mut bucket, now));
                let most = burst + per_second * now.since(Instant::ZERO).as_secs_f64() + 1e-6;
                assert!(passed as f64 <= most, "{passed} passed of {most}");
            }
        }
        assert!(model.len() <= MAX_REQUESTS);
        assert_eq!(requests.iter().count(), model.len());
    }
    let left = requests.take_all().len();
    assert_eq!(left, model.len());
}
