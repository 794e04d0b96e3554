use super::*;

fn opaque(name: &str) -> MessageType {
    MessageType { name: name.into(), body: Body::Opaque { max_bytes: 100 } }
}

fn two_channels() -> Vec<ChannelConfig> {
    vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()]
}

#[test]
fn a_type_costs_the_bits_that_tell_it_apart() {
    assert_eq!([1, 2, 3, 4, 5, 64].map(bits_to_name_one_of), [0, 1, 2, 2, 3, 6]);
}

#[test]
fn the_hash_tells_apart_what_must_agree_and_nothing_else() {
    let hash = |messages: &[&str], channels: Vec<ChannelConfig>| {
        Protocol::new(messages.iter().map(|n| opaque(n)).collect(), channels).unwrap().hash()
    };
    let base = hash(&["A", "B"], two_channels());
    assert_eq!(base, hash(&["A", "B"], two_channels()));
    assert_ne!(base, hash(&["B", "A"], two_channels()));
    assert_ne!(base, hash(&["A"], two_channels()));
    assert_ne!(base, hash(&["A", "B"], two_channels().into_iter().rev().collect()));
    let mut local = two_channels();
    local[0].send_queue = 7;
    local[1].name = "state".into();
    assert_eq!(base, hash(&["A", "B"], local), "local choices need not agree");
    let mut window = two_channels();
    window[0].max_message_bytes = 7;
    assert_ne!(base, hash(&["A", "B"], window));
}

#[test]
fn refuses_settings_out_of_their_bounds() {
    let refused = |change: fn(&mut ChannelConfig), field: &str| {
        let mut channel = ChannelConfig::reliable_ordered();
        change(&mut channel);
        let error = Protocol::new(vec![opaque("A")], vec![channel]).unwrap_err();
        assert_eq!(error.field, field);
    };
    refused(|c| c.send_queue = 0, "send_queue");
    refused(|c| c.max_message_bytes = 1 << 20, "max_message_bytes");
    refused(
        |c| {
            if let ChannelKind::Reliable { receive_bytes, .. } = &mut c.kind {
                *receive_bytes = 65_536;
            }
        },
        "receive_bytes",
    );
    assert_eq!(Protocol::new(vec![], two_channels()).unwrap_err().field, "number of message types");
    assert_eq!(Protocol::new(vec![opaque("A")], vec![]).unwrap_err().field, "number of channels");
}
