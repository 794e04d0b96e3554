use super::*;

#[test]
fn of_silences_in_a_row_only_the_first_is_an_outage() {
    let mut adaptive = Adaptive::new(CongestionConfig::default());
    adaptive.startup = None;
    let round_trip = Some(RoundTrip { time: Duration::from_millis(50), received_at: None });
    let mut silence_until = |millis| {
        let stamp = adaptive.on_sent(Instant::from_millis(millis - 50), 1_200);
        let now = Instant::from_millis(millis);
        // It goes on asking for packets all the time.
        adaptive.can_send(now);
        adaptive.on_acked(now, &[(stamp, false)], round_trip);
        adaptive.on_sent(now, 1_200);
        adaptive.resumed
    };
    // Before the first, nothing was in flight.
    let resumed = [1_000, 2_000, 3_000, 9_000].map(&mut silence_until);
    assert_eq!(resumed, [0, 2_000, 2_000, 9_000].map(Instant::from_millis));
}
