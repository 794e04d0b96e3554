use super::*;

const PATH: Path = Path { rtt: 0.05, send_tick: 0.001, receive_tick: 0.001 };

fn us(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

/// A round that begins then, over a link of `rate` bytes a second; `lost` says which packets are lost.
fn play(startup: &mut Startup, began: u64, rate: f64, lost: impl Fn(u64) -> bool) -> Option<f64> {
    play_over(startup, PATH, began, rate, lost)
}

fn play_over(
    startup: &mut Startup,
    path: Path,
    began: u64,
    rate: f64,
    lost: impl Fn(u64) -> bool,
) -> Option<f64> {
    startup.begin(us(began), path, true).unwrap();
    let (bytes, pace) = (1_000.0, startup.pace);
    let packets = (startup.window / bytes).ceil() as u64;
    let stamp = |n: u64| SentStamp {
        sent_at: us(began + (n as f64 * bytes / pace * 1e6) as u64),
        bytes: bytes as u32,
        bulk: true,
        sent_in_startup: true,
        app_limited: false,
    };
    (0..packets).for_each(|n| startup.on_sent(&stamp(n)));
    assert!(!startup.has_room(0.0), "the round is out");
    let spacing = bytes / rate.min(pace) * 1e6;
    let mut verdict = None;
    for n in 0..packets {
        let at = us(began + 25_000 + (n as f64 * spacing) as u64);
        if lost(n) {
            startup.on_lost(&stamp(n));
        } else {
            startup.on_acked(at, stamp(n).sent_at, path, &stamp(n));
        }
        verdict = verdict.or(startup.judge(at + core::time::Duration::from_millis(25), path));
    }
    verdict
}

#[test]
fn rounds_grow_until_one_takes_longer_to_arrive() {
    let mut startup = Startup::new(32_768, 262_144, 125e6);
    let mut paces = Vec::new();
    let rate = (0..9).find_map(|round| {
        let rate = play(&mut startup, round * 200_000, 6e6, |_| false);
        paces.push(startup.pace / (32_768.0 / 0.025));
        rate
    });
    assert!((rate.unwrap() - 6e6).abs() < 0.2e6, "{rate:?}");
    assert_eq!(paces.iter().map(|pace| pace.round()).collect::<Vec<_>>(), [1.0, 4.0, 16.0]);
}

#[test]
fn the_greatest_rate_ends_it_with_ticks_of_some_milliseconds() {
    for tick in [0.001, 0.002, 0.003, 0.004] {
        let path = Path { rtt: 0.03, send_tick: tick, receive_tick: tick };
        let mut startup = Startup::new(32_768, 262_144, 2e6);
        let rate = (0..20).find_map(|round| play_over(&mut startup, path, round * 200_000, 9e6, |_| false));
        assert!(rate.is_some_and(|rate| rate > 1.5e6), "{tick}: {startup:?}");
    }
}

#[test]
fn many_that_share_a_link_learn_their_part_in_the_first_round() {
    let mut startup = Startup::new(32_768, 262_144, 125e6);
    let rate = play(&mut startup, 0, 0.3e6, |_| false).unwrap();
    assert!((rate - 0.3e6).abs() < 0.02e6, "{rate}");
}

#[test]
fn a_short_path_gets_a_shorter_first_round() {
    let path = Path { rtt: 0.02, ..PATH };
    let mut startup = Startup::new(32_768, 262_144, 125e6);
    startup.begin(Instant::ZERO, path, true);
    assert!((startup.window - 0.4 * 32_768.0).abs() < 1.0 && startup.pace < 1.32e6, "{startup:?}");
}

#[test]
fn one_round_may_lose_most_by_chance_and_two_may_not() {
    let mut startup = Startup::new(32_768, 262_144, 125e6);
    assert_eq!(play(&mut startup, 0, 6e6, |n| n % 2 == 0), None);
    assert_eq!(startup.window, 32_768.0, "it is repeated");
    let rate = play(&mut startup, 200_000, 6e6, |n| n % 2 == 0);
    assert!(rate.is_some_and(|rate| rate <= startup.pace), "{rate:?}");
}

#[test]
fn what_an_outage_leaves_of_a_round_on_a_full_link_is_no_rate() {
    let mut startup = Startup::new(32_768, 262_144, 125e6);
    assert_eq!(play(&mut startup, 0, 0.6e6, |n| n < 20), None, "most of it was lost");
    let rate = play(&mut startup, 200_000, 0.6e6, |_| false).unwrap();
    assert!((rate - 0.6e6).abs() < 0.05e6, "{rate}");
}

#[test]
fn an_ack_that_was_lost_does_not_lengthen_a_round() {
    for (pause, longest) in [(0, 0.030), (40_000, 0.035)] {
        let mut startup = Startup::new(32_768, 262_144, 125e6);
        startup.begin(us(0), PATH, true);
        let stamp = |n: u64| SentStamp {
            sent_at: us(n * 760),
            bytes: 1_000,
            bulk: true,
            sent_in_startup: true,
            app_limited: false,
        };
        (0..33).for_each(|n| startup.on_sent(&stamp(n)));
        (0..20).for_each(|n| startup.on_acked(us(25_000 + n * 760), us(n * 760), PATH, &stamp(n)));
        // The rest is acked together with a packet that was sent after the pause.
        let newest = us(32 * 760 + pause);
        let at = newest + core::time::Duration::from_millis(25);
        (20..33).for_each(|n| startup.on_acked(at, newest, PATH, &stamp(n)));
        let [first, last] = startup.round.as_ref().unwrap().arrivals.unwrap();
        assert!((last.1 - first.1).as_secs_f64() < longest, "{startup:?}");
    }
}

#[test]
fn beside_others_a_round_may_take_longer() {
    for (wait, done) in [(0.0, true), (0.004, false)] {
        let mut startup = Startup::new(32_768, 262_144, 125e6);
        startup.begin(Instant::ZERO, PATH, true);
        startup.on_wait(Instant::ZERO, wait);
        let arriving = 0.6 * startup.pace;
        let rate = play_on(&mut startup, arriving);
        assert_eq!(rate.is_some(), done, "{wait}: {rate:?}");
    }
}

/// Acks of a round that arrived at this many bytes a second.
fn play_on(startup: &mut Startup, rate: f64) -> Option<f64> {
    let pace = startup.pace;
    (0..33).find_map(|n| {
        let sent_at = us((f64::from(n) * 1e9 / pace) as u64);
        let stamp =
            SentStamp { sent_at, bytes: 1_000, bulk: true, sent_in_startup: true, app_limited: false };
        startup.on_sent(&stamp);
        let at = us(25_000 + (f64::from(n) * 1e9 / rate) as u64);
        startup.on_acked(at, stamp.sent_at, PATH, &stamp);
        startup.judge(at + core::time::Duration::from_millis(50), PATH)
    })
}

#[test]
fn a_round_that_the_application_cut_short_is_begun_again() {
    let mut startup = Startup::new(32_768, 262_144, 125e6);
    startup.begin(Instant::ZERO, PATH, true).unwrap();
    assert_eq!(startup.begin(us(1_000), PATH, true), None, "nothing of it went out");
    let sent_at = us(1_000);
    let stamp = SentStamp { sent_at, bytes: 1_000, bulk: true, sent_in_startup: true, app_limited: false };
    startup.on_sent(&stamp);
    assert_eq!(startup.begin(us(2_000), PATH, false), None, "it is under way");
    assert!(startup.begin(us(90_000), PATH, true).is_some());
}
