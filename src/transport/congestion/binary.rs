//! The good/bad mode of "Networking for Game Programmers": this many packets a second while the round trip is short, fewer
//! at once when it isn't. It holds for all packets, not for bulk only.

use super::{CongestionConfig, Controller, RoundTrip, SentStamp};
use crate::time::{Duration, Instant};
use crate::transport::error::ConfigError;
use crate::transport::good_bad::{GoodBad, GoodBadConfig};

/// Packets that a tick may send at once if ticks are rarer than packets: those of 100 ms.
const CREDIT_SECONDS: f64 = 0.1;

/// How far each sample moves the round trip: the article's 10 %.
const SMOOTHING: f64 = 0.1;

/// For packets that are due now to the rounding of sums.
const NEARLY: f64 = 1.0 - 1e-6;

/// Sends packets at one of two rates.
#[derive(Debug)]
pub(super) struct Binary {
    mode: GoodBad,
    // Seconds.
    round_trip: Option<f64>,
    /// Packets that may go now.
    credit: f64,
    filled_at: Option<Instant>,
}

impl Binary {
    pub(super) fn new(config: GoodBadConfig) -> Result<Self, ConfigError> {
        Ok(Binary { mode: GoodBad::new(config)?, round_trip: None, credit: 1.0, filled_at: None })
    }
}

impl Controller for Binary {
    fn on_sent(&mut self, now: Instant, bytes: u32) -> SentStamp {
        self.credit -= 1.0;
        SentStamp { sent_at: now, bytes, bulk: false, sent_in_startup: false, app_limited: false }
    }

    fn on_acked(&mut self, now: Instant, _: &[(SentStamp, bool)], round_trip: Option<RoundTrip>) {
        let Some(sample) = round_trip.map(|it| it.time.as_secs_f64()) else { return };
        let smoothed = self.round_trip.map_or(sample, |smoothed| smoothed + (sample - smoothed) * SMOOTHING);
        self.round_trip = Some(smoothed);
        self.mode.update(now, Duration::from_secs_f64(smoothed));
    }

    fn on_lost(&mut self, _: Instant, _: SentStamp) {}

    fn on_app_limited(&mut self, _: Instant) {}

    fn can_send_packet(&mut self, now: Instant) -> bool {
        if let Some(smoothed) = self.round_trip {
            self.mode.update(now, Duration::from_secs_f64(smoothed));
        }
        let past = (now - self.filled_at.replace(now).unwrap_or(now)).as_secs_f64();
        let rate = self.mode.packets_per_second();
        self.credit = (self.credit + past * rate).min((rate * CREDIT_SECONDS).max(1.0));
        self.credit >= NEARLY
    }

    fn can_send(&mut self, now: Instant) -> bool {
        self.can_send_packet(now)
    }

    fn next_send(&self) -> Instant {
        let wait = (NEARLY - self.credit).max(0.0) / self.mode.packets_per_second();
        self.filled_at.unwrap_or(Instant::ZERO) + Duration::from_secs_f64(wait)
    }

    fn begin_burst(&mut self, _: Instant, _: u32) {}

    fn rate(&self) -> f64 {
        self.mode.packets_per_second() * 1248.0
    }

    fn reconfigure(&mut self, config: &CongestionConfig) -> bool {
        let CongestionConfig::GoodBad(config) = config else { return false };
        let Ok(mode) = GoodBad::new(*config) else { return false };
        self.mode = mode;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets sent in each second, at 60 ticks a second, when each packet's round trip is this long.
    fn play(seconds: u64, rtt: impl Fn(u64) -> u64) -> Vec<usize> {
        let mut controller = Binary::new(GoodBadConfig::default()).unwrap();
        let mut sent = vec![0; seconds as usize];
        for tick in 0..seconds * 60 {
            let now = Instant::from_millis(tick * 1000 / 60);
            let second = tick / 60;
            while controller.can_send_packet(now) {
                let stamp = controller.on_sent(now, 100);
                controller.on_acked(
                    now,
                    &[(stamp, false)],
                    Some(RoundTrip { time: Duration::from_millis(rtt(second)), received_at: None }),
                );
                sent[second as usize] += 1;
            }
        }
        sent
    }

    #[test]
    fn thirty_packets_a_second_while_good_and_ten_while_bad() {
        let sent = play(30, |second| if (12..14).contains(&second) { 1000 } else { 50 });
        assert!(sent[1..12].iter().all(|sent| (29..=31).contains(sent)), "{sent:?}");
        assert!(sent[13..15].iter().all(|sent| (9..=12).contains(sent)), "{sent:?}");
        assert!(sent[26..].iter().all(|sent| (29..=31).contains(sent)), "{sent:?}");
    }
}
