//! What the session's features add to a game's protocol.

use std::sync::Arc;

use crate::transport::protocol::{Extension, Resend};
use crate::transport::{Body, ChannelConfig, ChannelKind, FramingError, MessageType, Protocol, Share};
use crate::wire::Schema;

/// The names of the features.
pub(super) const GHOSTS: &str = "ghosts";
pub(super) const TIME: &str = "time";
pub(super) const PEERS: &str = "peers";

/// The place of the game core's channel among those of peers, behind their messages' channel.
pub(super) const CORE: usize = 1;

/// The maximum that ghosts, and inputs, write into one packet: the room of a datagram. Inputs need it to send a lost press
/// again.
const MAX_PAYLOAD_BYTES: usize = 1_200;

/// Most bytes of a message about the game that peers are in.
const MAX_PEERS_BYTES: usize = 8192;

/// Most bytes that a game core of peers writes into one packet.
const MAX_CORE_BYTES: usize = 1_000;

/// The settings of the server's time that both sides share.
#[derive(Clone, Debug)]
pub struct ServerTime {
    /// Ticks a second of the server.
    pub rate: u32,
    /// The name and the fields of an input, if clients have inputs.
    pub input: Option<(String, Arc<Schema>)>,
}

/// Ghosts with this canonical description of their classes, and a channel for them.
pub fn ghosts(text: String) -> Extension {
    let channels = vec![Extension::payloads(GHOSTS, MAX_PAYLOAD_BYTES, Share::default())];
    Extension { name: GHOSTS, text, class_kind: Some("ghost"), channels, message: None }
}

/// The server's time, inputs if there are any, and a channel for them.
pub fn time(time: &ServerTime) -> Extension {
    let mut text = format!("tickwire time 1\nrate {}\n", time.rate);
    if let Some((name, schema)) = &time.input {
        text += &format!("input {}:{name} declared\n{}", name.len(), schema.describe());
    }
    let channels = vec![Extension::payloads(TIME, MAX_PAYLOAD_BYTES, Share::default())];
    Extension { name: TIME, text, channels, ..Extension::default() }
}

/// Messages about the game of peers without a server, and channels for them and for a game core.
pub fn peers() -> Extension {
    let kind = ChannelKind::Reliable {
        ordered: true,
        receive_window: 256,
        receive_bytes: 1 << 18,
        // They are few, and who waits for a master waits for all of them.
        resend: Resend::Adaptive { early_copies: 3 },
    };
    let share = Share { strict: true, weight: 1 };
    let messages = ChannelConfig {
        name: PEERS.into(),
        max_message_bytes: MAX_PEERS_BYTES,
        send_queue: 256,
        share,
        ..ChannelConfig::new(kind)
    };
    let body = Body::Opaque { max_bytes: MAX_PEERS_BYTES as u32 };
    Extension {
        name: PEERS,
        message: Some(MessageType { name: PEERS.into(), body }),
        channels: vec![messages, Extension::payloads("core", MAX_CORE_BYTES, share)],
        ..Extension::default()
    }
}

/// The protocol on the links between the players of a game that one of them hosts: ghosts, inputs and the server's
/// time pass between its server and clients instead. It has a channel of chunks, for the world.
///
/// # Errors
/// When there are too many channels, or the framing has none but the game's.
pub fn between_players(protocol: &Protocol) -> Result<Protocol, FramingError> {
    let has_chunks = protocol.chunk_channel().is_some();
    let more = if has_chunks { vec![] } else { vec![ChannelConfig::new(ChannelKind::Chunks)] };
    let text = format!("hosted {:016x}\n", protocol.hash());
    protocol.without_features(more)?.extended(Extension { text, ..peers() })
}

/// The ghosts' channel, if the protocol has ghosts.
pub fn ghost_channel(protocol: &Protocol) -> Option<usize> {
    protocol.channels_of(GHOSTS).map(|channels| channels.start)
}

/// Whether peers may play the game.
pub fn has_peers(protocol: &Protocol) -> bool {
    protocol.channels_of(PEERS).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_players_of_a_hosted_game_goes_all_but_its_world() {
        let types = || vec![MessageType { name: "A".into(), body: Body::Opaque { max_bytes: 4 } }];
        let game = Protocol::new(types(), vec![ChannelConfig::unreliable()]).unwrap();
        let hosted = |rate| {
            let whole = game.clone().extended(ghosts("ghosts\n".into())).unwrap();
            whole.extended(time(&ServerTime { rate, input: None })).unwrap().extended(peers()).unwrap()
        };
        let between = between_players(&hosted(60)).unwrap();
        assert_eq!((between.channels_of(GHOSTS), between.channels_of(TIME)), (None, None));
        assert_eq!((between.chunk_channel(), between.channels_of(PEERS)), (Some(1), Some(2..4)));
        assert_eq!(
            (between.type_of(PEERS), between.takes(0, 0), between.takes(2, 0)),
            (Some(1), true, false)
        );
        // Players of another game are told apart, though what differs doesn't pass here.
        assert_ne!(between.hash(), between_players(&hosted(30)).unwrap().hash());
        assert!(between.describe().contains(&format!("hosted {:016x}\n", hosted(60).hash())));
    }
}
