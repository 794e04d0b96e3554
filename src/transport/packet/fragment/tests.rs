use super::*;

const SIZE: usize = 10;

fn reassembly(max_bytes: usize) -> Reassembly {
    Reassembly::new(ReassemblyConfig { window: 8, fragment_size: SIZE, max_fragments: 4, max_bytes }).unwrap()
}

fn header(sequence: u64) -> FullHeader {
    FullHeader { sequence, ack: 7, ack_bits: 0xFF00_FF00, skipped: 0 }
}

fn payload(len: u8) -> Vec<u8> {
    (1..=len).collect()
}

fn datagrams(sequence: u64, payload: &[u8]) -> Vec<Vec<u8>> {
    split(header(sequence), payload, SIZE)
        .map(|fragment| {
            let mut bytes = Vec::new();
            fragment.write(&mut bytes);
            bytes
        })
        .collect()
}

fn read(datagram: &[u8]) -> Result<Fragment<'_>, FragmentError> {
    Fragment::read(datagram, SIZE, 4, (0, 0))
}

#[test]
fn a_packet_any_number_ahead_is_new() {
    for ahead in [1, 8, 32_768, 65_536, i64::MAX as u64] {
        let mut reassembly = reassembly(1000);
        let part = |packet| Fragment { packet, id: 1, last_id: 1, header: None, data: &[7] };
        reassembly.insert(&part(0)).unwrap();
        assert_eq!(reassembly.insert(&part(ahead)).unwrap(), None, "{ahead}");
        assert!(reassembly.contains(ahead));
    }
}

/// The last fragment first: it must not cost as much as the whole packet.
#[test]
fn a_fragment_takes_memory_in_proportion_to_itself() {
    let config = ReassemblyConfig { window: 64, fragment_size: 1024, max_fragments: 256, max_bytes: 1 << 20 };
    let mut reassembly = Reassembly::new(config).unwrap();
    let last = Fragment { packet: 0, id: 255, last_id: 255, header: None, data: &[7; 25] };
    reassembly.insert(&last).unwrap();
    let partial = reassembly.partials.get(&0).unwrap();
    assert!(partial.payload.capacity() <= 64 && partial.order.capacity() <= 64);
}

#[test]
fn any_order_of_fragments_gives_the_packet_once() {
    let payload = payload(35);
    let sent = datagrams(3, &payload);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let mut reassembly = reassembly(1000);
        for (n, id) in order.into_iter().enumerate() {
            let fragment = read(&sent[id]).unwrap();
            let complete = reassembly.insert(&fragment).unwrap();
            if n < 3 {
                assert_eq!(complete, None);
                assert_eq!(reassembly.insert(&fragment), Err(FragmentError::Duplicate));
            } else {
                let expected = Reassembled { header: header(3), payload: payload.clone() };
                assert_eq!(complete, Some(expected));
            }
        }
        assert_eq!(reassembly.reserved_bytes(), 0);
    }
}

#[test]
fn a_buffer_used_again_shows_nothing_of_its_last_packet() {
    let mut reassembly = reassembly(1000);
    reassembly.recycle(vec![0xEE; 40]);
    let payload = payload(31);
    let sent = datagrams(0, &payload);
    for id in [3, 1, 0, 2] {
        if let Some(complete) = reassembly.insert(&read(&sent[id]).unwrap()).unwrap() {
            assert_eq!(complete.payload, payload);
            return;
        }
    }
    panic!("the packet is complete");
}

#[test]
fn a_fragment_that_contradicts_itself_is_refused() {
    let sent = datagrams(3, &payload(35));
    let with = |id: usize, at: usize, value: u8| {
        let mut bytes = sent[id].clone();
        bytes[at] = value;
        read(&bytes).unwrap_err()
    };
    assert_eq!(read(&sent[1][..4]), Err(FragmentError::TooShort));
    assert_eq!(with(1, 0, 0x03), FragmentError::Prefix);
    assert_eq!(with(1, 4, 4), FragmentError::TooMany);
    assert_eq!(with(1, 3, 4), FragmentError::Id);
    assert_eq!(with(0, 1, 4), FragmentError::Sequence);
    assert_eq!(with(0, 5, sent[0][5] | 0x40), FragmentError::NotCanonical);
    assert_eq!(with(0, 5, 0x01), FragmentError::Header(HeaderError::Fragment));
    assert_eq!(read(&sent[0][..7]), Err(FragmentError::Header(HeaderError::TooShort)));
    assert_eq!(read(&sent[1][..14]), Err(FragmentError::Size));
    assert_eq!(with(3, 4, 2), FragmentError::Id, "the last id shrank below this one");
    let mut long = sent[3].clone();
    long.extend_from_slice(&[0; 6]);
    assert_eq!(read(&long), Err(FragmentError::Size));
}

#[test]
fn another_count_for_the_same_packet_is_refused() {
    let mut reassembly = reassembly(1000);
    reassembly.insert(&read(&datagrams(3, &payload(35))[1]).unwrap()).unwrap();
    let other = datagrams(3, &payload(25));
    assert_eq!(reassembly.insert(&read(&other[0]).unwrap()), Err(FragmentError::Count));
}

#[test]
fn the_window_moving_on_drops_partial_packets() {
    let mut reassembly = reassembly(1000);
    let sent = datagrams(3, &payload(15));
    reassembly.insert(&read(&sent[0]).unwrap()).unwrap();
    reassembly.advance(10);
    assert!(reassembly.contains(3));
    reassembly.advance(11);
    assert!(!reassembly.contains(3));
    assert_eq!(reassembly.insert(&read(&sent[1]).unwrap()), Err(FragmentError::Stale));
}

#[test]
fn memory_goes_to_the_newest_packets_and_never_beyond_its_bound() {
    let mut reassembly = reassembly(3 * 40);
    let mut insert = |sequence| {
        let result = reassembly.insert(&read(&datagrams(sequence, &payload(35))[1]).unwrap());
        assert!(reassembly.reserved_bytes() <= 120);
        result
    };
    for sequence in [5, 6, 7] {
        assert_eq!(insert(sequence), Ok(None));
    }
    assert_eq!(insert(4), Err(FragmentError::Memory), "older than all that are here");
    assert_eq!(insert(8), Ok(None));
    assert!(!reassembly.contains(5) && reassembly.contains(6));
}

fn full_size() -> Reassembly {
    let config = ReassemblyConfig { window: 64, fragment_size: 1024, max_fragments: 256, max_bytes: 1 << 20 };
    Reassembly::new(config).unwrap()
}

fn allocated(reassembly: &Reassembly) -> usize {
    reassembly.partials.values().map(|partial| partial.payload.capacity()).sum()
}

#[test]
fn memory_is_taken_as_fragments_come() {
    let mut reassembly = full_size();
    let data = [1; 1024];
    let fragment = Fragment { packet: 0, id: 1, last_id: 255, header: None, data: &data };
    reassembly.insert(&fragment).unwrap();
    assert!(allocated(&reassembly) <= 4096);
    assert_eq!(reassembly.reserved_bytes(), 256 * 1024);
}

/// Large packets leave large buffers. Small partial packets must not hoard them.
#[test]
fn buffers_used_again_stay_within_the_bound_too() {
    let mut reassembly = full_size();
    let data = [1; 1024];
    for round in 0..60u64 {
        let large = 2 * round;
        for id in 0..=255 {
            let header = (id == 0).then_some(header(large));
            let fragment = Fragment { packet: large, id, last_id: 255, header, data: &data };
            if let Some(complete) = reassembly.insert(&fragment).unwrap() {
                reassembly.recycle(complete.payload);
            }
        }
        let small =
            Fragment { packet: large + 1, id: 0, last_id: 1, header: Some(header(large + 1)), data: &data };
        reassembly.insert(&small).unwrap();
        assert!(allocated(&reassembly) <= reassembly.reserved_bytes());
    }
}

#[test]
fn settings_out_of_bounds_are_named() {
    let config = ReassemblyConfig { window: 64, fragment_size: 1024, max_fragments: 257, max_bytes: 1 << 20 };
    let error = Reassembly::new(config).unwrap_err();
    assert_eq!(error.to_string(), "reassembly.max_fragments must be 1 to 256, not 257");
}
