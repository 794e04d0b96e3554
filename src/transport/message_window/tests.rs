use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A line that carries `rate` bytes a second after `rtt`, with a queue of `queue` bytes; each millisecond the sender
/// fills the window.
struct Line {
    window: MessageWindow,
    now: Instant,
    rate: f64,
    rtt: Duration,
    queue: f64,
    queued: f64,
    /// When the ack of each packet comes, and when it was sent; losses are known when the ack would have come.
    under_way: std::collections::VecDeque<(Instant, Instant, bool)>,
    sent: u32,
    dropped: u32,
    max_queued: f64,
    /// Every this many packets one is lost by chance.
    lose_every: u32,
}

impl Line {
    fn new(rate: f64, rtt: u64, queue: f64) -> Self {
        let (window, under_way) = (MessageWindow::default(), std::collections::VecDeque::new());
        // Long after the clock began.
        let (now, rtt) = (Instant::from_millis(3_600_000), ms(rtt));
        Line {
            window,
            now,
            rate,
            rtt,
            queue,
            queued: 0.0,
            under_way,
            sent: 0,
            dropped: 0,
            max_queued: 0.0,
            lose_every: u32::MAX,
        }
    }

    fn run(&mut self, seconds: u64, wanted: f64) {
        let mut wanting = 0.0;
        for _ in 0..seconds * 1_000 {
            self.now += ms(1);
            self.queued = (self.queued - self.rate / 1e3).max(0.0);
            while let Some((at, sent_at, arrived)) = self.under_way.front().copied()
                && at <= self.now
            {
                self.under_way.pop_front();
                if arrived {
                    self.window.on_acked(1_250, false);
                    self.window.on_round_trip(self.now, self.now - sent_at);
                } else {
                    self.window.on_lost(1_250);
                }
                self.window.judge(self.now);
            }
            self.window.update(self.now);
            wanting = (wanting + wanted / 1e3).min(1e6);
            while wanting > 0.0 && self.window.allows() {
                wanting -= PACKET;
                self.sent += 1;
                let arrived =
                    self.queued + PACKET <= self.queue && !self.sent.is_multiple_of(self.lose_every);
                self.dropped += u32::from(!arrived);
                self.queued += if arrived { PACKET } else { 0.0 };
                self.max_queued = self.max_queued.max(self.queued);
                self.window.on_sent(self.now, 1_250);
                let wait = Duration::from_secs_f64(self.queued / self.rate);
                self.under_way.push_back((self.now + self.rtt + wait, self.now, arrived));
            }
        }
    }
}

#[test]
fn a_slow_line_is_filled_and_its_queue_is_not() {
    let mut line = Line::new(125_000.0, 50, 65_536.0);
    line.run(6, 1.25e6);
    (line.sent, line.dropped, line.max_queued) = (0, 0, 0.0);
    line.run(20, 1.25e6);
    let share = f64::from(line.sent - line.dropped) * PACKET / (20.0 * 125_000.0);
    assert!(share > 0.93 && line.dropped == 0, "{share}, {} dropped", line.dropped);
    assert!(line.max_queued < 0.2 * 125_000.0, "{} bytes queued", line.max_queued);
}

/// A line that holds less than the least window loses the rest of it.
#[test]
fn a_shallow_queue_loses_a_part_that_is_bounded() {
    for (rtt, most) in [(20, 0.85), (60, 0.35), (100, 0.3), (200, 0.3)] {
        let mut line = Line::new(125_000.0, rtt, 4_000.0);
        line.run(20, 1.25e6);
        let lost = f64::from(line.dropped) / f64::from(line.sent);
        let share = f64::from(line.sent - line.dropped) * PACKET / (20.0 * 125_000.0);
        assert!(lost < most && share > 0.8, "{rtt} ms: {lost} lost, {share} of the line");
    }
}

#[test]
fn a_game_within_its_line_never_meets_the_window() {
    let mut line = Line::new(125_000.0, 200, 65_536.0);
    line.run(30, 30_000.0);
    assert!(f64::from(line.sent) * PACKET > 0.99 * 30.0 * 30_000.0);
    assert!(line.window.slow_start, "{:?}", line.window);
}

#[test]
fn loss_by_chance_slows_nobody_down() {
    let mut line = Line::new(1.25e6, 100, 1e6);
    line.lose_every = 3;
    line.run(20, 1e6);
    assert!(f64::from(line.sent) * PACKET > 0.85 * 20.0 * 1e6, "{} {:?}", line.sent, line.window);
}

#[test]
fn a_large_packet_is_lost_as_one_datagram() {
    let mut window = MessageWindow::default();
    window.on_sent(Instant::ZERO, 60_000);
    window.on_lost(60_000);
    assert!(window.epoch.losses.share() < 0.03 && window.in_flight == 0.0, "{window:?}");
}

/// Delays that come and go by themselves, as on a bad mobile line: sending less doesn't help, so no less is sent.
#[test]
fn queues_of_others_slow_nobody_down() {
    let mut line = Line::new(1.25e6, 100, 1e6);
    let (mut sent, mut wanted) = (0.0, 0.0);
    for second in 0..60 {
        line.rtt = ms(if second % 4 < 2 { 100 } else { 500 });
        let before = line.sent;
        line.run(1, 90_000.0);
        if second >= 10 {
            sent += f64::from(line.sent - before) * PACKET;
            wanted += 90_000.0;
        }
    }
    assert!(sent > 0.8 * wanted, "{sent} of {wanted}, {:?}", line.window);
}

#[test]
fn a_fast_line_is_filled_within_some_round_trips() {
    let mut line = Line::new(12.5e6, 100, 1.25e6);
    line.run(3, 12.5e6);
    assert!(f64::from(line.sent) * PACKET > 0.6 * 3.0 * 12.5e6, "{}", line.sent);
}
