//! A protocol in few bytes: enough for a peer with another one to name the differences, to the developers of the two.
//!
//! Promises: at most [`MAX_DIGEST_BYTES`], whatever the protocol; [`Protocol::differences`] reads arbitrary bytes. It
//! may take different things for the same (a digest of a field has 16 bits), so it explains and never decides.

use super::text::{describe_channel, hash};
use super::{Body, Extension, MessageType, Protocol};

/// A class of messages, or one that a feature declares, in a digest.
struct ClassDigest {
    name: String,
    is_features: bool,
    /// Each field with its kind; empty for opaque classes.
    fields: Vec<String>,
    is_opaque: bool,
}

/// The maximum size of a digest: it goes into answers that must stay well below the request. Message types that don't
/// fit are counted and not named.
pub const MAX_DIGEST_BYTES: usize = 448;

/// Differences that are named; the others are only counted.
const MAX_NAMED: usize = 6;

/// The bit of a name that marks a class that a feature declares.
const OF_FEATURE: u32 = 1 << 23;

/// A message type or a feature's class of the peer's: its name, and its fields in order.
#[derive(Debug, PartialEq)]
struct PeerType {
    name: u32,
    fields: Vec<u16>,
}

/// The contents of a digest.
struct Digest {
    channels: Vec<u16>,
    /// The number of message types, unnamed ones included.
    types: usize,
    classes: Vec<PeerType>,
}

impl Protocol {
    /// Few bytes by which a peer with another protocol finds out what differs.
    pub fn digest(&self) -> Vec<u8> {
        let mut bytes = vec![self.channels.len() as u8];
        self.channel_lines().for_each(|line| bytes.extend(short(&line).to_le_bytes()));
        let told = self.classes();
        bytes.extend(u16::to_le_bytes(told.len().min(u16::MAX.into()) as u16));
        for class in &told {
            let fields = &class.fields;
            let count = u8::try_from(fields.len()).unwrap_or(u8::MAX);
            if bytes.len() + 4 + 2 * fields.len() > MAX_DIGEST_BYTES || count == u8::MAX {
                continue;
            }
            bytes.extend(&class.key().to_le_bytes()[..3]);
            bytes.push(count);
            fields.iter().for_each(|field| bytes.extend(short(field).to_le_bytes()));
        }
        bytes
    }

    /// The differences between this protocol and that of a peer with this digest, in words; None if nothing can be
    /// said.
    pub fn differences(&self, peer: &[u8]) -> Option<String> {
        let mut found = self.compare(&Digest::read(peer)?);
        let more = found.len().saturating_sub(MAX_NAMED);
        found.truncate(MAX_NAMED);
        if more > 0 {
            found.push(format!("{more} more differences"));
        }
        (!found.is_empty()).then(|| found.join("; "))
    }

    fn compare(&self, theirs: &Digest) -> Vec<String> {
        let mut found = Vec::new();
        let is_whole = theirs.classes.len() == theirs.types;
        let mut places: [Vec<usize>; 2] = Default::default();
        for class in &self.classes() {
            let name = class.key();
            let Some(place) = theirs.classes.iter().position(|told| told.name == name) else {
                if is_whole {
                    found.push(format!("{} is unknown to the server", class.name));
                }
                continue;
            };
            places[usize::from(class.is_features)].push(place);
            found.extend(class.compare(&theirs.classes[place].fields));
        }
        let kinds = ["message", self.class_kind()];
        for (kind, name) in kinds.into_iter().enumerate() {
            let of_kind =
                theirs.classes.iter().filter(|told| (told.name & OF_FEATURE != 0) == (kind == 1)).count();
            let unknown = of_kind.saturating_sub(places[kind].len());
            if unknown > 0 {
                let them = if unknown == 1 { format!("a {name} class") } else { format!("{name} classes") };
                found.push(format!("the server has {them} that this client has not ({unknown})"));
            }
        }
        for (places, name) in places.iter().zip(kinds) {
            if found.is_empty() && !places.is_sorted() {
                found.push(format!("the {name} classes are in another order"));
            }
        }
        let channels: Vec<String> = self.channel_lines().collect();
        if channels.len() != theirs.channels.len() {
            let (ours, theirs) = (channels.len(), theirs.channels.len());
            found.push(format!("channels: {theirs} at the server, {ours} here"));
        }
        for (at, (ours, theirs)) in channels.iter().zip(&theirs.channels).enumerate() {
            if short(ours) != *theirs {
                let name = match self.channels[at].name.as_str() {
                    "" => String::new(),
                    name => format!(" ({name})"),
                };
                found.push(format!("channel {at}{name} has another kind or other bounds"));
            }
        }
        found
    }

    /// The extensions that declare classes.
    fn declaring(&self) -> impl Iterator<Item = &Extension> {
        self.features.iter().map(|feature| &feature.extension).filter(|it| it.class_kind.is_some())
    }

    /// What a class is called that a feature declares.
    fn class_kind(&self) -> &'static str {
        self.declaring().find_map(|extension| extension.class_kind).unwrap_or("further")
    }

    /// Its message types, then the classes that features declare.
    fn classes(&self) -> Vec<ClassDigest> {
        let declared = self.declaring().flat_map(|extension| ClassDigest::of_text(&extension.text));
        self.messages.iter().map(ClassDigest::of_message).chain(declared).collect()
    }

    /// The lines of the canonical text that channels have.
    fn channel_lines(&self) -> impl Iterator<Item = String> {
        self.channels
            .iter()
            .enumerate()
            .map(|(number, channel)| describe_channel(number, channel, &self.framing))
    }
}

impl ClassDigest {
    fn of_message(message: &MessageType) -> Self {
        let (fields, is_opaque) = match &message.body {
            Body::Declared(schema) => (schema.describe().lines().map(str::to_owned).collect(), false),
            Body::Opaque { max_bytes } => (vec![format!("opaque {max_bytes}")], true),
        };
        ClassDigest { name: message.name.clone(), is_features: false, fields, is_opaque }
    }

    /// The classes in a feature's canonical text: a line `class LENGTH:NAME CAPACITY`, then lines `CONDITION LENGTH:NAME KIND`.
    fn of_text(text: &str) -> Vec<Self> {
        let mut classes: Vec<ClassDigest> = Vec::new();
        for line in text.lines() {
            let Some((first, rest)) = line.split_once(' ') else { continue };
            match (first, classes.last_mut()) {
                ("class", _) => {
                    let Some((name, capacity)) = field_name(rest).zip(rest.rsplit(' ').next()) else {
                        continue;
                    };
                    let fields = vec![format!("8:capacity {capacity}")];
                    classes.push(ClassDigest {
                        name: name.into(),
                        is_features: true,
                        fields,
                        is_opaque: false,
                    });
                }
                // The condition after the name, as if it were part of the kind.
                ("a" | "i" | "o" | "e", Some(class)) => class.fields.push(format!("{rest} {first}")),
                _ => {}
            }
        }
        classes
    }

    /// By which the peer knows it.
    fn key(&self) -> u32 {
        let name = hash(&self.name) as u32 & (OF_FEATURE - 1);
        if self.is_features { name | OF_FEATURE } else { name }
    }

    /// Which fields the peer has otherwise.
    fn compare(&self, theirs: &[u16]) -> Option<String> {
        let ClassDigest { name, fields: ours, .. } = self;
        let digests: Vec<u16> = ours.iter().map(|field| short(field)).collect();
        if digests == theirs {
            return None;
        }
        if self.is_opaque {
            return Some(format!("{name} differs"));
        }
        let others = ours.iter().zip(&digests).filter(|(_, digest)| !theirs.contains(digest));
        let others: Vec<&str> = others.filter_map(|(field, _)| field_name(field)).collect();
        let missing = theirs.iter().filter(|digest| !digests.contains(digest)).count();
        let what = if self.is_features { "properties" } else { "fields" };
        // The first entry of a feature's class is its capacity.
        let here = ours.len() - usize::from(self.is_features);
        let there = theirs.len().saturating_sub(usize::from(self.is_features));
        Some(match (others.as_slice(), missing) {
            ([], 0) => format!("the {what} of {name} are in another order"),
            ([], _) => {
                format!("{name} has more {what} at the server ({there} there, {here} here)")
            }
            (others, _) => {
                let named = others.iter().take(MAX_NAMED).map(|field| format!("{name}.{field}"));
                let named: Vec<String> = named.collect();
                let verb = if named.len() == 1 { "differs or is" } else { "differ or are" };
                let counts = if there == here {
                    String::new()
                } else {
                    format!(" ({there} {what} there, {here} here)")
                };
                format!("{} {verb} unknown to the server{counts}", named.join(", "))
            }
        })
    }
}

/// The name in `LENGTH:NAME KIND`.
fn field_name(field: &str) -> Option<&str> {
    let (length, rest) = field.split_once(':')?;
    rest.get(..length.parse().ok()?)
}

fn short(text: &str) -> u16 {
    hash(text) as u16
}

impl Digest {
    fn read(bytes: &[u8]) -> Option<Digest> {
        let (&channels, rest) = bytes.split_first()?;
        let (channels, rest) = rest.split_at_checked(2 * usize::from(channels))?;
        let (types, mut rest) = rest.split_at_checked(2)?;
        let mut told = Vec::new();
        while !rest.is_empty() {
            let (head, tail) = rest.split_at_checked(4)?;
            let (fields, tail) = tail.split_at_checked(2 * usize::from(head[3]))?;
            told.push(PeerType {
                name: u32::from_le_bytes([head[0], head[1], head[2], 0]),
                fields: shorts(fields),
            });
            rest = tail;
        }
        let types = usize::from(u16::from_le_bytes([types[0], types[1]]));
        (told.len() <= types).then(|| Digest { channels: shorts(channels), types, classes: told })
    }
}

fn shorts(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::ChannelConfig;

    fn opaque(name: &str, max_bytes: u32) -> MessageType {
        MessageType { name: name.into(), body: Body::Opaque { max_bytes } }
    }

    fn protocol(messages: &[(&str, u32)], channels: Vec<ChannelConfig>) -> Protocol {
        Protocol::new(messages.iter().map(|(name, bytes)| opaque(name, *bytes)).collect(), channels).unwrap()
    }

    fn ours() -> Protocol {
        protocol(&[("Move", 10), ("Chat", 20)], vec![ChannelConfig::reliable_ordered()])
    }

    fn said(theirs: &Protocol) -> Option<String> {
        ours().differences(&theirs.digest())
    }

    #[test]
    fn what_differs_is_named() {
        let one = || vec![ChannelConfig::reliable_ordered()];
        assert_eq!(said(&ours()), None);
        let says = |messages: &[(&str, u32)], channels| said(&protocol(messages, channels)).unwrap();
        assert_eq!(says(&[("Move", 10)], one()), "Chat is unknown to the server");
        assert_eq!(says(&[("Move", 11), ("Chat", 20)], one()), "Move differs");
        assert_eq!(says(&[("Chat", 20), ("Move", 10)], one()), "the message classes are in another order");
        assert_eq!(
            says(&[("Move", 10), ("Chat", 20), ("New", 1)], one()),
            "the server has a message class that this client has not (1)"
        );
        assert_eq!(
            says(&[("Move", 10), ("Chat", 20)], vec![ChannelConfig::unreliable()]),
            "channel 0 has another kind or other bounds"
        );
        let two = vec![ChannelConfig::reliable_ordered(), ChannelConfig::unreliable()];
        assert_eq!(says(&[("Move", 10), ("Chat", 20)], two), "channels: 2 at the server, 1 here");
    }

    #[test]
    fn a_class_of_ghosts_that_differs_is_named() {
        let of = |text: &str| {
            let text = format!("tickwire ghosts 1\nhistory 64\n{text}");
            let channels = vec![Extension::payloads("ghosts", 9, crate::transport::Share::default())];
            let class_kind = Some("ghost");
            ours().extended(Extension { name: "ghosts", text, class_kind, channels, message: None }).unwrap()
        };
        let mine = of("class 4:Tank 9\na 6:health bits 7\no 4:ammo bits 9\n");
        let said = |theirs: &str| mine.differences(&of(theirs).digest()).unwrap_or_default();
        assert_eq!(said("class 4:Tank 9\na 6:health bits 7\no 4:ammo bits 9\n"), "");
        let all = "class 4:Tank 9\na 6:health bits 7\no 4:ammo bits 9\n";
        assert_eq!(
            said(&all.replace("o 4", "a 4")),
            "Tank.ammo differs or is unknown to the server",
            "a condition"
        );
        assert_eq!(said(&all.replace("bits 7", "bits 8")), "Tank.health differs or is unknown to the server");
        assert_eq!(
            said(&all.replace("Tank 9", "Tank 8")),
            "Tank.capacity differs or is unknown to the server"
        );
        assert_eq!(
            said(&all.replace("Tank", "Door")),
            "Tank is unknown to the server; the server has a ghost class that this client has not (1)"
        );
        assert_eq!(
            said(&format!("{all}a 4:fuel bits 2\n")),
            "Tank has more properties at the server (3 there, 2 here)"
        );
        assert_eq!(
            said("class 4:Tank 9\no 4:ammo bits 9\na 6:health bits 7\n"),
            "the properties of Tank are in another order"
        );
        assert_eq!(
            ours().differences(&mine.digest()).unwrap(),
            "the server has a further class that this client has not (1); channels: 2 at the server, 1 here"
        );
    }

    #[test]
    fn a_large_protocol_tells_what_fits_and_names_nothing_for_missing() {
        let names: Vec<String> = (0..300).map(|n| format!("M{n}")).collect();
        let types = |bytes| names.iter().map(|name| (name.as_str(), bytes)).collect::<Vec<_>>();
        let channels = || vec![ChannelConfig::reliable_ordered(); 64];
        let (mine, other) = (protocol(&types(1), channels()), protocol(&types(2), channels()));
        let digest = other.digest();
        assert!((400..=MAX_DIGEST_BYTES).contains(&digest.len()), "{}", digest.len());
        let words = mine.differences(&digest).unwrap();
        assert!(words.starts_with("M0 differs; M1 differs"), "{words}");
        assert!(words.ends_with("more differences"), "{words}");
        assert_eq!(mine.differences(&mine.digest()), None);
    }

    #[test]
    fn a_type_that_is_too_large_does_not_keep_those_behind_it_out() {
        let large: Vec<(String, crate::wire::Kind)> =
            (0..250).map(|n| (format!("f{n}"), crate::wire::Kind::Bool)).collect();
        let schema =
            crate::wire::Schema::new(large.iter().map(|(name, kind)| (name.as_str(), kind.clone()))).unwrap();
        let of = |bytes| {
            let types = vec![
                MessageType { name: "Large".into(), body: Body::Declared(schema.clone()) },
                opaque("Move", bytes),
            ];
            Protocol::new(types, vec![ChannelConfig::reliable_ordered()]).unwrap()
        };
        assert_eq!(of(1).differences(&of(2).digest()).unwrap(), "Move differs");
    }

    #[test]
    fn whatever_a_digest_says_is_survived() {
        let digest = ours().digest();
        for len in 0..digest.len() {
            let _ = ours().differences(&digest[..len]);
        }
        for bit in 0..8 * digest.len() {
            let mut altered = digest.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let _ = ours().differences(&altered);
        }
        assert!(ours().differences(&[0xFF; MAX_DIGEST_BYTES]).is_none());
    }
}
