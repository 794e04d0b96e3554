//! The canonical text of a protocol and its hash.

use sha2::{Digest, Sha256};

use super::channel::{ChannelConfig, ChannelKind};
use super::yojimbo::{Framing, YojimboChannel, YojimboConfig};
use super::{Body, MessageType};

/// The first eight bytes, little-endian, of SHA-256 over the canonical text.
pub(super) fn hash(text: &str) -> u64 {
    let digest = Sha256::digest(text);
    u64::from_le_bytes(core::array::from_fn(|i| digest[i]))
}

/// The canonical text of `STANDARD.md` or `YOJIMBO.md`, "Protocol hash".
pub(super) fn describe(
    messages: &[MessageType],
    owner_of_type: impl Fn(u16) -> Option<&'static str>,
    layers: &str,
    channels: &[ChannelConfig],
    framing: &Framing,
) -> String {
    let mut text = match framing {
        Framing::Native => String::from("tickwire protocol 1\n"),
        Framing::Yojimbo(YojimboConfig { max_packet_bytes, packet_fragment_bytes, .. }) => {
            format!("yojimbo protocol 1\npackets {max_packet_bytes} {packet_fragment_bytes}\n")
        }
    };
    for (number, MessageType { name, body }) in messages.iter().enumerate() {
        if let Framing::Yojimbo(config) = framing
            && config.is_block(number as u16)
        {
            text += "block ";
        }
        // Ids have 16 bits.
        text += &owner_of_type(number as u16).map_or("message ".into(), |name| format!("system {name} "));
        // The length before the name makes the text unambiguous whatever is in a name.
        text += &match body {
            Body::Declared(schema) => {
                format!("{}:{name} declared\n{}", name.len(), schema.describe())
            }
            Body::Opaque { max_bytes } => format!("{}:{name} opaque {max_bytes}\n", name.len()),
        };
    }
    text += layers;
    channels
        .iter()
        .enumerate()
        .for_each(|(number, channel)| text += &describe_channel(number, channel, framing));
    text
}

/// Its line of the text.
pub(super) fn describe_channel(number: usize, channel: &ChannelConfig, framing: &Framing) -> String {
    let mut text = format!("channel {}", channel.kind.name());
    if let Framing::Yojimbo(config) = framing {
        let YojimboChannel { max_messages_per_packet, max_block_bytes, block_fragment_bytes, blocks } =
            config.channel(number);
        let blocks = u8::from(blocks);
        text += &format!(" {max_messages_per_packet} {max_block_bytes} {block_fragment_bytes} {blocks}\n");
        return text;
    }
    if !channel.kind.is_chunks() {
        text += &format!(" {}", channel.max_message_bytes);
    }
    text += &match channel.kind {
        ChannelKind::Reliable { receive_window, receive_bytes, .. } => {
            format!(" {receive_window} {receive_bytes}")
        }
        ChannelKind::Latest { keys } => format!(" {keys}"),
        _ => String::new(),
    };
    text.push('\n');
    text
}
