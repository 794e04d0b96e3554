//! Lockstep with a player who lies: it desyncs nobody else.

use tickwire::lockstep::{Lockstep, LockstepConfig};
use tickwire::time::{Duration, Instant};
use tickwire::wire::BitWriter;

fn say(from: &mut Lockstep, to: &mut Lockstep, now: Instant, numbers: (u8, u8)) -> Result<(), String> {
    let mut writer = BitWriter::new();
    if from.fill(now, numbers.1, 8000, &mut writer) {
        to.read(now, numbers.0, writer.as_bytes()).map_err(|fault| format!("{numbers:?}: {fault}"))?;
    }
    Ok(())
}

#[test]
fn who_says_one_thing_here_and_another_there_and_leaves_parts_nobody_else() {
    let made = |me| Lockstep::new(LockstepConfig::new(me, 0b1111, 0), Instant::from_millis(100)).unwrap();
    let (mut now, mut honest) = (Instant::from_millis(100), [made(0), made(1), made(2)]);
    // Two of the liar, who gives other commands to one than to the other, and nothing to the third.
    let mut liars = [made(3), made(3)];
    for (at, liar) in liars.iter_mut().enumerate() {
        liar.command(&[at as u8; 3]).unwrap();
    }
    for _ in 0..60 {
        now += Duration::from_millis(20);
        for (at, liar) in liars.iter_mut().enumerate() {
            liar.poll_turn(now);
            say(liar, &mut honest[at + 1], now, (3, at as u8 + 1)).unwrap();
        }
        for peer in &mut honest {
            peer.poll_turn(now);
        }
    }
    for peer in &mut honest {
        peer.note_left(now, 3);
    }
    for round in 0..200 {
        now += Duration::from_millis(20);
        for from in 0..3 {
            for to in 0..3 {
                if from != to {
                    let [one, other] = honest.get_disjoint_mut([from, to]).unwrap();
                    say(one, other, now, (from as u8, to as u8))
                        .unwrap_or_else(|why| panic!("{round}: {why}"));
                }
            }
        }
        for peer in &mut honest {
            while peer.poll_turn(now).is_some() {}
        }
    }
    let turns: Vec<i32> = honest.iter().map(Lockstep::turn).collect();
    assert!(turns.iter().all(|turn| *turn > 20), "{turns:?}");
}
