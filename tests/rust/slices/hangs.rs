//! The three hangs that the article warns of: in each the receiver has it all, the sender doesn't know, and a receiver that
//! only drops what it doesn't need would never tell.

use tickwire::articles::slices::SliceDrop;

use super::{ack_tick, at, content, fast_sender, flags_of, receiver, send_tick};

#[test]
fn a_slice_that_comes_again_causes_an_ack() {
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    sender.send(content(0, 2048)).unwrap();
    let slices = send_tick(&mut sender, at(0));
    receiver.handle_slice(at(0), &slices[0]).unwrap();
    assert!(ack_tick(&mut receiver, at(0)).is_some(), "lost on its way");
    // Nothing came since, so nothing is said again.
    assert_eq!(ack_tick(&mut receiver, at(100)), None);
    assert_eq!(receiver.handle_slice(at(110), &slices[0]), Err(SliceDrop::Duplicate));
    let ack = ack_tick(&mut receiver, at(110)).expect("an ack for a duplicate");
    assert_eq!(flags_of(&ack), (0, vec![true, false]));
    assert_eq!(sender.handle_ack(at(120), &ack), Ok(None));
    assert_eq!(sender.progress().unwrap().slices, 1);
}

#[test]
fn slices_of_a_complete_chunk_that_waits_to_be_read_cause_acks() {
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    sender.send(content(0, 2048)).unwrap();
    for packet in send_tick(&mut sender, at(0)) {
        receiver.handle_slice(at(0), &packet).unwrap();
    }
    assert!(receiver.is_ready());
    assert!(ack_tick(&mut receiver, at(0)).is_some(), "lost on its way");
    let again = send_tick(&mut sender, at(100));
    assert_eq!(again.len(), 2);
    assert_eq!(receiver.handle_slice(at(110), &again[1]), Err(SliceDrop::Complete));
    let ack = ack_tick(&mut receiver, at(110)).expect("an ack of the complete chunk");
    assert_eq!(flags_of(&ack), (0, vec![true, true]));
    assert_eq!(sender.handle_ack(at(120), &ack), Ok(Some(0)));
    assert_eq!(receiver.read(), Some(content(0, 2048)));
}

#[test]
fn slices_of_the_chunk_read_last_cause_an_ack_of_all_of_it() {
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    sender.send(content(0, 2048)).unwrap();
    for packet in send_tick(&mut sender, at(0)) {
        receiver.handle_slice(at(0), &packet).unwrap();
    }
    assert!(ack_tick(&mut receiver, at(0)).is_some(), "lost on its way");
    assert_eq!(receiver.read(), Some(content(0, 2048)));
    let again = send_tick(&mut sender, at(100));
    assert_eq!(receiver.handle_slice(at(110), &again[0]), Err(SliceDrop::AlreadyRead));
    let ack = ack_tick(&mut receiver, at(110)).expect("an ack of the chunk before");
    assert_eq!(flags_of(&ack), (0, vec![true, true]));
    assert_eq!(sender.handle_ack(at(120), &ack), Ok(Some(0)));
    assert_eq!(receiver.read(), None, "once");
}

#[test]
fn an_ack_that_was_due_before_the_chunk_was_read_still_goes_out() {
    let (mut sender, mut receiver) = (fast_sender(), receiver());
    sender.send(content(0, 2048)).unwrap();
    let slices = send_tick(&mut sender, at(0));
    receiver.handle_slice(at(0), &slices[0]).unwrap();
    assert!(ack_tick(&mut receiver, at(0)).is_some());
    receiver.handle_slice(at(10), &slices[1]).unwrap();
    assert_eq!(ack_tick(&mut receiver, at(10)), None, "too soon");
    assert!(receiver.read().is_some());
    let ack = ack_tick(&mut receiver, at(50)).expect("the ack that was due");
    assert_eq!(sender.handle_ack(at(50), &ack), Ok(Some(0)));
}
