//! Connections whose driver is awake between ticks: called when they say, and when something arrives.

use tickwire::netsim::{Conditions, Link};
use tickwire::store::Packets;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{
    BudgetConfig, ChannelConfig, ChannelKind, Connection, ConnectionConfig, Message, SendOptions,
};

use crate::fuzz_targets::native::{handle, labelled};
use crate::pair::{RELIABLE, UNRELIABLE, blob, check, number, protocol_with};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Two connections, each called when it is due.
struct Line {
    now: Instant,
    ends: [Connection; 2],
    due: [Instant; 2],
    links: [Link<Vec<u8>>; 2],
    /// Calls, and datagrams with their bytes, of each end.
    calls: [usize; 2],
    sent: [Vec<(Instant, usize)>; 2],
    out: Packets,
}

impl Line {
    fn new(config: &ConnectionConfig, channels: Vec<ChannelConfig>, conditions: Conditions) -> Self {
        let protocol = protocol_with(channels);
        let mut line = Line {
            now: Instant::ZERO,
            ends: [0, 1].map(|_| Connection::new(config, protocol.clone()).unwrap()),
            due: [Instant::ZERO; 2],
            links: [1, 2].map(|seed| Link::new(conditions, seed).unwrap()),
            calls: [0; 2],
            sent: [Vec::new(), Vec::new()],
            out: Packets::new(),
        };
        // Both have the other's hello, and know it.
        line.run(ms(500));
        line
    }

    fn plain(conditions: Conditions) -> Self {
        let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
        Self::new(&ConnectionConfig::default(), channels, conditions)
    }

    /// Lets time pass.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let arrivals = self.links.iter().filter_map(Link::next_delivery);
            let next = arrivals.chain(self.due).min().unwrap();
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            for end in 0..2 {
                let mut arrived = false;
                while let Some(datagram) = self.links[1 - end].poll(self.now) {
                    handle(&mut self.ends[end], self.now, &datagram).unwrap();
                    arrived = true;
                }
                if arrived || self.due[end] <= self.now {
                    self.between(end);
                }
            }
        }
    }

    fn between(&mut self, end: usize) {
        self.calls[end] += 1;
        self.due[end] = self.ends[end].transmit_between(self.now, &mut self.out);
        assert!(self.due[end] >= self.now + ms(1), "no driver is kept busy");
        self.carry(end);
    }

    /// The end of a tick of the game.
    fn flush(&mut self, end: usize) {
        self.ends[end].transmit(self.now, &mut self.out);
        self.carry(end);
        let (next, sent) = (self.ends[end].next_between(self.now), self.sent[end].len());
        self.between(end);
        assert_eq!((self.due[end], self.sent[end].len()), (next, sent), "it needn't have been called");
    }

    fn carry(&mut self, end: usize) {
        for (number, datagram) in self.out.iter() {
            self.sent[end].push((self.now, datagram.len()));
            self.links[end].send(self.now, labelled((number, datagram)), datagram.len());
        }
        self.out.clear();
    }

    fn send(&mut self, end: usize, channel: usize, message: Message) {
        self.ends[end].send(self.now, channel, message, SendOptions::default()).unwrap();
        // As any driver would: something may be due now.
        self.due[end] = self.now;
    }

    fn received(&mut self, end: usize, channel: usize) -> Vec<u32> {
        let protocol = protocol_with(vec![ChannelConfig::unreliable()]);
        let connection = &mut self.ends[end];
        std::iter::from_fn(|| connection.poll_received(channel)).map(|m| check(&protocol, &m)).collect()
    }

    fn forget_sent(&mut self) {
        self.sent = [Vec::new(), Vec::new()];
        self.calls = [0; 2];
    }
}

#[test]
fn an_idle_connection_is_called_for_its_keep_alives_only() {
    let mut line = Line::plain(Conditions::perfect().latency(ms(30), Duration::ZERO));
    line.forget_sent();
    line.run(Duration::from_secs(10));
    for end in 0..2 {
        assert!((99..=101).contains(&line.sent[end].len()), "{} keep-alives", line.sent[end].len());
        assert!(line.calls[end] <= 202, "one call to send each, one to receive each: {}", line.calls[end]);
    }
}

#[test]
fn the_messages_of_a_tick_share_packets() {
    let mut line = Line::plain(Conditions::perfect());
    line.forget_sent();
    for n in 0..60 {
        line.send(0, RELIABLE, number(n));
        line.run(Duration::from_micros(250));
    }
    assert!(line.received(1, RELIABLE).is_empty(), "they wait for the end of the tick");
    line.flush(0);
    line.run(ms(1));
    assert_eq!(line.received(1, RELIABLE), Vec::from_iter(0..60));
    assert!(line.sent[0].len() <= 2, "one packet and a keep-alive");
}

#[test]
fn messages_of_a_tick_that_never_ends_go_out_all_the_same() {
    let mut line = Line::plain(Conditions::perfect());
    line.send(0, RELIABLE, number(1));
    line.run(ms(99));
    assert!(line.received(1, RELIABLE).is_empty());
    line.run(ms(2));
    assert_eq!(line.received(1, RELIABLE), [1]);
    line.send(0, RELIABLE, number(2));
    line.run(ms(50));
    line.send(0, RELIABLE, number(3));
    line.run(ms(52));
    assert_eq!(line.received(1, RELIABLE), [2, 3]);
}

#[test]
fn what_is_lost_is_sent_again_while_the_game_does_nothing() {
    let bad = Conditions::perfect().latency(ms(30), ms(10)).loss(0.3);
    let mut line = Line::plain(bad);
    for n in 0..200 {
        line.send(0, RELIABLE, blob(n, 300));
    }
    line.flush(0);
    line.run(Duration::from_secs(10));
    assert_eq!(line.received(1, RELIABLE), Vec::from_iter(0..200));
    assert!(line.ends[0].channel_stats(RELIABLE).resent > 10);
    assert_eq!(line.ends[0].channel_stats(RELIABLE).queued, 0);
}

#[test]
fn an_ack_waits_for_a_packet_to_ride_in_and_not_for_long() {
    for (channel, wait) in [(UNRELIABLE, 25), (RELIABLE, 1)] {
        let mut line = Line::plain(Conditions::perfect());
        line.run(ms(10));
        line.forget_sent();
        line.send(0, channel, blob(1, 200));
        line.flush(0);
        let sent = line.now;
        line.run(ms(30));
        assert_eq!(line.sent[1].first().map(|(at, _)| *at - sent), Some(ms(wait)));
    }
}

/// An ack that the peer held until its tick would make each copy late by as much, just too late for the tick after.
#[test]
fn a_lost_message_goes_again_a_round_trip_later_whenever_the_peer_has_its_ticks() {
    let latency = Conditions::perfect().latency(ms(50), Duration::ZERO);
    let mut line = Line::plain(latency);
    line.ends.iter_mut().for_each(|end| end.set_awake(true));
    for n in 0..60 {
        line.send(0, RELIABLE, number(n));
        line.flush(0);
        line.run(ms(12));
        line.flush(1);
        line.run(ms(5));
    }
    line.run(ms(200));
    line.links[0].set_conditions(latency.loss(1.0)).unwrap();
    line.forget_sent();
    line.send(0, RELIABLE, number(60));
    line.flush(0);
    let sent = line.now;
    line.run(ms(1));
    line.links[0].set_conditions(latency).unwrap();
    line.run(ms(170));
    let again = line.sent[0].iter().map(|(at, _)| *at - sent).find(|after| *after > ms(1));
    assert!(again.is_some_and(|after| after < ms(105)), "{again:?}");
}

#[test]
fn many_packets_are_acked_sooner() {
    let mut line = Line::plain(Conditions::perfect());
    line.forget_sent();
    for n in 0..40 {
        line.send(0, RELIABLE, blob(n, 900));
    }
    line.flush(0);
    line.run(ms(1));
    assert!(line.sent[0].len() >= 40);
    assert!(!line.sent[1].is_empty(), "32 packets don't wait");
    let bytes = |end: usize| line.sent[end].iter().map(|(_, bytes)| bytes + 28).sum::<usize>();
    assert!(bytes(1) * 10 < bytes(0));
}

#[test]
fn what_the_budget_has_no_room_for_is_paced_and_nothing_of_it_dropped() {
    let budget = BudgetConfig::new(50_000.0, 1_500.0);
    let config = ConnectionConfig { budget, ..Default::default() };
    let channels = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
    let mut line = Line::new(&config, channels, Conditions::perfect());
    for n in 0..100 {
        line.send(0, RELIABLE, blob(n, 500));
    }
    line.flush(0);
    line.forget_sent();
    line.run(ms(500));
    let bytes: usize = line.sent[0].iter().map(|(_, bytes)| bytes + 28).sum();
    assert!((22_000..28_000).contains(&bytes), "{bytes} bytes in half a second");
    let burst = line.sent[0].chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).max();
    assert!(burst <= Some(2), "they are spread over the time: {burst:?} at once");
    line.run(Duration::from_secs(2));
    assert_eq!(line.received(1, RELIABLE), Vec::from_iter(0..100));

    for n in 0..40 {
        line.send(0, UNRELIABLE, blob(n, 500));
    }
    line.run(ms(250));
    assert_eq!(line.ends[0].channel_stats(UNRELIABLE).dropped, 0);
    let arrived = line.received(1, UNRELIABLE).len();
    assert!((5..30).contains(&arrived), "{arrived} by now");
    line.flush(0);
    assert!(line.ends[0].channel_stats(UNRELIABLE).dropped > 0, "a tick drops what it has no room for");
}

#[test]
fn copies_of_redundant_messages_are_ticks_apart() {
    let channels = vec![ChannelConfig::new(ChannelKind::Redundant { copies: 3, receive_queue: 16 })];
    let slow = Conditions::perfect().latency(ms(100), Duration::ZERO);
    let mut line = Line::new(&ConnectionConfig::default(), channels, slow);
    // Whatever is sent now is not mixed with a keep-alive.
    line.flush(0);
    line.forget_sent();
    line.send(0, 0, number(1));
    line.flush(0);
    line.run(ms(50));
    assert_eq!(line.ends[0].channel_stats(0).resent, 0);
    line.flush(0);
    assert_eq!(line.ends[0].channel_stats(0).resent, 1, "the next tick's");
    line.run(ms(500));
    assert_eq!(line.ends[0].channel_stats(0).resent, 2, "without ticks the last one goes all the same");
    assert_eq!(line.received(1, 0), [1]);
}

#[test]
fn news_are_what_waits_for_the_application() {
    let mut line = Line::plain(Conditions::perfect());
    assert!(!line.ends[1].has_news());
    line.send(0, RELIABLE, number(1));
    line.flush(0);
    line.run(ms(1));
    assert!(line.ends[1].has_news() && !line.ends[0].has_news());
    line.received(1, RELIABLE);
    assert!(!line.ends[1].has_news());
    let options = SendOptions { tag: 7, notify: true, ..SendOptions::default() };
    line.ends[0].send(line.now, RELIABLE, number(2), options).unwrap();
    line.flush(0);
    line.run(ms(100));
    assert!(line.ends[0].has_news(), "its fate is known");
    line.ends[0].poll_notification().unwrap();
    assert!(!line.ends[0].has_news());
}

/// The messages behind a lost one give the application nothing to do, so no tick acks them.
#[test]
fn messages_behind_a_lost_one_are_acked_at_once_and_not_resent() {
    let mut line = Line::plain(Conditions::perfect().latency(ms(50), Duration::ZERO));
    line.ends.iter_mut().for_each(|end| end.set_awake(true));
    let send = |line: &mut Line, number_of: u32| {
        line.send(0, RELIABLE, number(number_of));
        line.flush(0);
        line.run(ms(17));
    };
    // The round trip is known by then.
    (0..60).for_each(|n| send(&mut line, n));
    line.run(ms(200));
    line.received(1, RELIABLE);
    let before = line.ends[0].channel_stats(RELIABLE).resent;
    line.links[0].set_conditions(Conditions::perfect().latency(ms(50), Duration::ZERO).loss(1.0)).unwrap();
    send(&mut line, 60);
    line.links[0].set_conditions(Conditions::perfect().latency(ms(50), Duration::ZERO)).unwrap();
    (61..66).for_each(|n| send(&mut line, n));
    line.run(ms(150));
    assert_eq!(line.received(1, RELIABLE), Vec::from_iter(60..66));
    let resent = line.ends[0].channel_stats(RELIABLE).resent - before;
    assert!(resent <= 2, "the lost one in two packets, not {resent}");
}
