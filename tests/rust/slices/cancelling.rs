//! Chunks given up at every stage: the next one always gets through, and nothing is mixed.

use tickwire::articles::slices::SliceDrop;

use super::{ack_tick, at, content, fast_sender, receiver, send_tick, sender, slice_of};

#[test]
fn a_chunk_that_waits_just_leaves_the_queue() {
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    (0..3).for_each(|number| assert_eq!(sender.send(vec![number]), Ok(number.into())));
    assert!(sender.cancel(1) && !sender.cancel(1) && !sender.cancel(7));
    for (now, number) in [(0, 0), (50, 2)] {
        receiver.handle_slice(at(now), &send_tick(&mut sender, at(now))[0]).unwrap();
        assert_eq!(receiver.read(), Some(vec![number]));
        let ack = ack_tick(&mut receiver, at(now)).unwrap();
        assert_eq!(sender.handle_ack(at(now), &ack), Ok(Some(number.into())));
    }
    assert!(sender.is_idle() && !sender.cancel(2));
    assert_eq!(sender.counters().chunks_cancelled, 1);
}

#[test]
fn a_chunk_that_the_receiver_has_begun_with_gives_way_at_once() {
    let (mut sender, mut receiver) = (sender(), receiver());
    sender.send(content(0, 100_000)).unwrap();
    sender.send(content(1, 1500)).unwrap();
    let first = send_tick(&mut sender, at(0));
    receiver.handle_slice(at(0), &first[0]).unwrap();
    let ack = ack_tick(&mut receiver, at(0)).unwrap();
    assert_eq!(sender.handle_ack(at(0), &ack), Ok(None));
    assert!(sender.cancel(0) && !sender.cancel(0));
    assert_eq!(sender.progress(), None);

    let second = send_tick(&mut sender, at(1000));
    assert_eq!(second.iter().map(|packet| slice_of(packet, 256)).collect::<Vec<_>>(), [(1, 0), (1, 1)]);
    receiver.handle_slice(at(1000), &second[0]).unwrap();
    assert_eq!(receiver.counters().chunks_abandoned, 1);
    // A late slice of what was given up neither finds a place nor is acked as if it had been read.
    assert_eq!(receiver.handle_slice(at(1000), &first[1]), Err(SliceDrop::Old));
    receiver.handle_slice(at(1000), &second[1]).unwrap();
    assert_eq!(receiver.read(), Some(content(1, 1500)));
    // Nor is a late ack.
    assert!(sender.handle_ack(at(1000), &ack).is_err());
    let ack = ack_tick(&mut receiver, at(1000)).unwrap();
    assert_eq!(sender.handle_ack(at(1000), &ack), Ok(Some(1)));
}

#[test]
fn without_an_ack_its_first_slice_goes_on_until_there_is_one() {
    let (mut sender, mut receiver) = (sender(), receiver());
    for number in 0..3 {
        sender.send(content(number, 3000)).unwrap();
    }
    let lost = send_tick(&mut sender, at(0));
    assert_eq!(lost.len(), 3);
    assert!(sender.cancel(0) && !sender.cancel(0));
    assert!(sender.cancel(1), "one that waits");
    let again: Vec<_> = (10..1010).step_by(10).flat_map(|now| send_tick(&mut sender, at(now))).collect();
    assert_eq!(again.len(), 10, "one each 100 ms");
    assert!(again.iter().all(|packet| slice_of(packet, 256) == (0, 0)));
    receiver.handle_slice(at(1010), &again[0]).unwrap();
    let ack = ack_tick(&mut receiver, at(1010)).unwrap();
    assert_eq!(sender.handle_ack(at(1010), &ack), Ok(None), "not across");
    for packet in send_tick(&mut sender, at(2000)) {
        receiver.handle_slice(at(2000), &packet).unwrap();
    }
    assert_eq!(receiver.read(), Some(content(2, 3000)));
    assert_eq!(receiver.counters().chunks_abandoned, 1);
}

/// Were the sender to go on at once, a receiver would be two chunks behind.
#[test]
fn two_given_up_in_a_row_without_an_ack_don_t_leave_the_receiver_behind() {
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    for number in 0..3 {
        sender.send(content(number, 3000)).unwrap();
    }
    for number in 0..2 {
        send_tick(&mut sender, at(number * 1000));
        sender.cancel(number);
    }
    let mut read = Vec::new();
    for now in (2000..4000).step_by(10) {
        for packet in send_tick(&mut sender, at(now)) {
            let _ = receiver.handle_slice(at(now), &packet);
        }
        read.extend(receiver.read());
        if let Some(ack) = ack_tick(&mut receiver, at(now)) {
            let _ = sender.handle_ack(at(now), &ack);
        }
    }
    assert!(sender.is_idle());
    assert!(read == [content(2, 3000)]);
}

#[test]
fn one_cancelled_before_anything_was_sent_leaves_its_id_to_the_next() {
    let mut sender = sender();
    // All that the accumulator holds.
    sender.send(content(0, 4096)).unwrap();
    send_tick(&mut sender, at(0));
    sender.send(content(1, 3000)).unwrap();
    sender.send(vec![2]).unwrap();
    let ack = super::ack_packet(0, 4, |_| true);
    assert_eq!(sender.handle_ack(at(0), &ack), Ok(Some(0)));
    // In flight, but the rate allows nothing.
    assert!(send_tick(&mut sender, at(0)).is_empty() && sender.queued() == 1);
    assert!(sender.cancel(1));
    assert_eq!(slice_of(&send_tick(&mut sender, at(1000))[0], 256), (1, 0));
}

#[test]
fn one_cancelled_too_late_arrives_whole_and_in_order() {
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    sender.send(content(0, 3000)).unwrap();
    sender.send(content(1, 2000)).unwrap();
    for packet in send_tick(&mut sender, at(0)) {
        receiver.handle_slice(at(0), &packet).unwrap();
    }
    assert!(sender.cancel(0));
    let again = send_tick(&mut sender, at(100));
    assert_eq!(again.len(), 1);
    assert_eq!(receiver.handle_slice(at(100), &again[0]), Err(SliceDrop::Complete));
    let ack = ack_tick(&mut receiver, at(100)).unwrap();
    assert_eq!(sender.handle_ack(at(100), &ack), Ok(None));
    assert_eq!(sender.counters().chunks_acked, 0);
    let next = send_tick(&mut sender, at(110));
    assert_eq!(receiver.handle_slice(at(110), &next[0]), Err(SliceDrop::Unread));
    assert_eq!(receiver.read(), Some(content(0, 3000)));
    next.iter().for_each(|packet| receiver.handle_slice(at(120), packet).unwrap());
    assert_eq!(receiver.read(), Some(content(1, 2000)));
}
