//! Classes of ghosts: which properties are sent, to whom, and how many ghosts there may be.
//!
//! A class's id is its place among [`Classes`]; both sides compare [`Classes::hash`] when they meet.
//!
//! Refuses, when it is made, a class that could never be sent because its whole record is larger than half a
//! datagram.

use core::fmt;
use std::sync::Arc;

use super::rules::{Rule, RuleError, Velocity};
use crate::time::Duration;
use crate::wire::{Properties, SchemaError};
use sha2::{Digest, Sha256};

/// Most classes of a world: an id is at most 8 bits.
pub const MAX_CLASSES: usize = 256;

/// Most ghosts of a class: ids have 16 bits on the wire.
pub const MAX_CAPACITY: u32 = 1 << 16;

/// The maximum size of a whole record's properties: with everything in front of it, half of the smallest datagram.
pub const MAX_RECORD_BITS: usize = 480 * 8;

/// States that a client keeps of each ghost, those with the newest ticks, and that the server remembers of each row: part of
/// the protocol.
pub const HISTORY: u8 = 64;

/// The maximum of a ghost's records after its baseline: then the server waits for an ack. When the last of them is acked, at
/// most one less may have followed it.
pub const MAX_IN_FLIGHT: u8 = HISTORY / 2;

/// A loss of this many ticks or more may make the server wait for acks, because some records were in flight before it.
pub const LONG_LOSS: u8 = MAX_IN_FLIGHT / 2;

/// The time after a long loss until the server has acks again.
pub const ACKED_AFTER: Duration = Duration::from_millis(500);

/// The most groups of clients that are sent other properties of a ghost: by owner, and by the game's choice.
pub const MAX_GROUPS: usize = 4;

/// Which clients get a property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Every client that has the ghost.
    #[default]
    Always,
    /// Every client, only as the ghost is created for it.
    Initial,
    OwnerOnly,
    /// All but the owner.
    ExceptOwner,
    /// Those whom the game chooses for each ghost.
    Chosen,
}

/// Why a class, or a set of classes, is invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassError {
    Schema(SchemaError),
    /// A number of conditions other than that of fields.
    Conditions {
        class: String,
        /// How many there are.
        count: usize,
        /// How many there should be.
        fields: usize,
    },
    /// A capacity outside of 1 to [`MAX_CAPACITY`].
    Capacity {
        class: String,
        capacity: u32,
    },
    /// A record that has no room in a packet.
    TooLarge {
        class: String,
        /// Bits of a whole record.
        bits: usize,
    },
    /// No classes, or more than [`MAX_CLASSES`].
    Count {
        count: usize,
    },
    /// Two classes of one name.
    Duplicate {
        class: String,
    },
}

impl fmt::Display for ClassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassError::Schema(error) => error.fmt(f),
            ClassError::Conditions { class, count, fields } => {
                write!(
                    f,
                    "ghost class {class:?} must have a condition for each field ({fields}), not {count}"
                )
            }
            ClassError::Capacity { class, capacity } => {
                write!(f, "capacity of ghost class {class:?} must be 1 to {MAX_CAPACITY}, not {capacity}")
            }
            ClassError::TooLarge { class, bits } => write!(
                f,
                "a ghost of class {class:?} must take at most {MAX_RECORD_BITS} bits, not {bits}: shorten its texts and \
                 lists, or send them as messages"
            ),
            ClassError::Count { count } => {
                write!(f, "a world must have 1 to {MAX_CLASSES} ghost classes, not {count}")
            }
            ClassError::Duplicate { class } => write!(f, "ghost class {class:?} is declared twice"),
        }
    }
}

impl core::error::Error for ClassError {}

/// A class of ghosts.
#[derive(Clone, Debug)]
pub struct GhostClass {
    pub name: String,
    pub properties: Properties,
    /// Which clients get each of them.
    pub conditions: Box<[Condition]>,
    /// How each is shown between two states: this side's own, and no part of the hash.
    pub rules: Box<[Rule]>,
    /// The maximum number of ghosts at a time.
    pub capacity: u32,
    /// Whether its records are coded by how likely they are: fewer bytes, and several times the CPU time of both sides.
    pub coded: bool,
    /// Masks by the client's group.
    created: [u64; MAX_GROUPS],
    updated: [u64; MAX_GROUPS],
    by_owner: bool,
    is_chosen: bool,
}

impl GhostClass {
    /// A class whose properties have these conditions, with at most `capacity` ghosts at a time.
    ///
    /// # Errors
    /// When the numbers don't fit, or a whole ghost is larger than [`MAX_RECORD_BITS`].
    pub fn new(
        name: impl Into<String>,
        properties: Properties,
        conditions: impl Into<Box<[Condition]>>,
        capacity: u32,
    ) -> Result<Self, ClassError> {
        let (class, conditions) = (name.into(), conditions.into());
        let fields = properties.each().len();
        if conditions.len() != fields {
            return Err(ClassError::Conditions { class, count: conditions.len(), fields });
        }
        if !(1..=MAX_CAPACITY).contains(&capacity) {
            return Err(ClassError::Capacity { class, capacity });
        }
        let bits = properties.schema().max_bits();
        if bits > MAX_RECORD_BITS {
            return Err(ClassError::TooLarge { class, bits });
        }
        let has = |those: &[Condition]| conditions.iter().any(|it| those.contains(it));
        let of = |allowed: &dyn Fn(Condition) -> bool| {
            let bits =
                conditions.iter().enumerate().map(|(i, condition)| u64::from(allowed(*condition)) << i);
            bits.fold(0, |mask, bit| mask | bit)
        };
        let (by_owner, is_chosen) =
            (has(&[Condition::OwnerOnly, Condition::ExceptOwner]), has(&[Condition::Chosen]));
        let mut created = [0; MAX_GROUPS];
        for (owner, chosen) in [(false, false), (false, true), (true, false), (true, true)] {
            created[group(by_owner, is_chosen, owner, chosen)] = of(&|it| match it {
                Condition::Always | Condition::Initial => true,
                Condition::OwnerOnly => owner,
                Condition::ExceptOwner => !owner,
                Condition::Chosen => chosen,
            });
        }
        let initial = of(&|it| it == Condition::Initial);
        let updated = created.map(|mask| mask & !initial);
        let rules = properties.each().iter().map(|property| Rule::of(property.field())).collect();
        Ok(GhostClass {
            name: class,
            properties,
            conditions,
            rules,
            capacity,
            coded: false,
            created,
            updated,
            by_owner,
            is_chosen,
        })
    }

    /// Sets how properties are shown, by index; the others have their type's rule.
    ///
    /// # Errors
    ///
    /// What a property lacks for its rule.
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = (usize, Rule)>) -> Result<Self, RuleError> {
        for (property, rule) in rules {
            rule.check(&self.properties, property)?;
            self.rules[property] = rule;
        }
        for (property, rule) in self.rules.iter().enumerate() {
            let Rule::Reckoned { velocity: Velocity { property: velocity, .. }, .. } = *rule else {
                continue;
            };
            let is_sent_alike = self.conditions[property] == self.conditions[velocity];
            if !is_sent_alike || matches!(self.rules[velocity], Rule::Reckoned { .. }) {
                let property = self.properties.each()[property].field().name().to_owned();
                let must = "its velocity must be sent to the same clients, and have no threshold itself";
                return Err(RuleError { property, must });
            }
        }
        Ok(self)
    }

    /// The same for a server with this many ticks a second.
    #[must_use]
    pub fn at_rate(mut self, rate: f64) -> Self {
        for rule in &mut self.rules {
            if let Rule::Hermite(velocity) | Rule::Reckoned { velocity, .. } = rule {
                velocity.rate = rate;
            }
        }
        self
    }

    /// The same, coded or not.
    #[must_use]
    pub fn with_coding(self, coded: bool) -> Self {
        GhostClass { coded, ..self }
    }

    /// In how many groups its clients are: those of one are sent the same properties of a ghost.
    #[inline]
    pub fn groups(&self) -> usize {
        1 << (u32::from(self.by_owner) + u32::from(self.is_chosen))
    }

    /// The group of a client that owns a ghost or doesn't, and that the game chose for it or didn't.
    #[inline]
    pub fn group(&self, owner: bool, chosen: bool) -> usize {
        group(self.by_owner, self.is_chosen, owner, chosen)
    }

    /// The properties that a create has, for clients of a group.
    #[inline]
    pub fn created(&self, group: usize) -> u64 {
        self.created[group]
    }

    /// The properties that an update may have, for clients of a group.
    #[inline]
    pub fn updated(&self, group: usize) -> u64 {
        self.updated[group]
    }

    /// The properties that an update may have, for anyone.
    pub fn updated_for_any(&self) -> u64 {
        self.updated.iter().fold(0, |all, mask| all | mask)
    }

    /// The properties that only creates have.
    pub fn initial(&self) -> u64 {
        self.created[0] & !self.updated[0]
    }

    /// Whether every property is sent to everybody whenever it changes.
    pub fn is_plain(&self) -> bool {
        let all = self.properties.all();
        self.updated[..self.groups()].iter().all(|mask| *mask == all)
    }

    /// Whether the game chooses who is sent some of its properties.
    #[inline]
    pub fn is_chosen(&self) -> bool {
        self.is_chosen
    }

    /// How many words the server keeps of a ghost's state: for each property that is reckoned, one more for since when.
    pub fn state_words(&self) -> usize {
        let reckoned = self.rules.iter().filter(|rule| matches!(rule, Rule::Reckoned { .. }));
        self.properties.word_count() + reckoned.count()
    }

    /// Whether a word has more than 32 bits.
    pub fn has_wide_words(&self) -> bool {
        let mut ranges = self.properties.each().iter().flat_map(|property| property.words());
        ranges.any(|range| range.bits() > u32::BITS)
    }
}

/// A client's group, in a class with conditions by owner, and with those whom the game chooses, or without.
#[inline]
const fn group(by_owner: bool, is_chosen: bool, owner: bool, chosen: bool) -> usize {
    (by_owner & owner) as usize | ((is_chosen & chosen) as usize) << by_owner as u32
}

/// The classes of a world.
#[derive(Clone, Debug)]
pub struct Classes {
    classes: Box<[Arc<GhostClass>]>,
    class_bits: u32,
    hash: u64,
}

impl Classes {
    /// These, in the order of their ids.
    ///
    /// # Errors
    /// When there are none or too many, or two of one name.
    pub fn new(classes: impl IntoIterator<Item = Arc<GhostClass>>) -> Result<Self, ClassError> {
        let classes: Box<[Arc<GhostClass>]> = classes.into_iter().collect();
        let count = classes.len();
        if !(1..=MAX_CLASSES).contains(&count) {
            return Err(ClassError::Count { count });
        }
        for (i, class) in classes.iter().enumerate() {
            if classes[..i].iter().any(|other| other.name == class.name) {
                return Err(ClassError::Duplicate { class: class.name.clone() });
            }
        }
        let class_bits = usize::BITS - (count - 1).leading_zeros();
        let mut all = Classes { classes, class_bits, hash: 0 };
        let digest = Sha256::digest(all.describe());
        all.hash = u64::from_le_bytes(core::array::from_fn(|i| digest[i]));
        Ok(all)
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty)] // There is always one.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// The class of an id.
    pub fn get(&self, id: usize) -> Option<&Arc<GhostClass>> {
        self.classes.get(id)
    }

    /// All, in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<GhostClass>> {
        self.classes.iter()
    }

    /// Bits of a class id on the wire: none when there is only one.
    pub fn class_bits(&self) -> u32 {
        self.class_bits
    }

    /// 64 bits over everything that both sides must agree on.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The canonical text that the hash is made of: equal texts are equal wires. For each class a line with its name's length
    /// in bytes, a colon, the name and its capacity, then the fields as a schema describes them, each with its condition's
    /// letter (a, i, o, e or c) and a space before. The line of a class that is coded ends with a space and `coded`.
    pub fn describe(&self) -> String {
        let mut text = format!("tickwire ghosts 4\nhistory {HISTORY}\n");
        for GhostClass { name, properties, conditions, capacity, coded, .. } in
            self.classes.iter().map(|it| &**it)
        {
            let coded = if *coded { " coded" } else { "" };
            text += &format!("class {}:{name} {capacity}{coded}\n", name.len());
            for (field, condition) in properties.schema().fields().iter().zip(conditions) {
                let letter = match condition {
                    Condition::Always => 'a',
                    Condition::Initial => 'i',
                    Condition::OwnerOnly => 'o',
                    Condition::ExceptOwner => 'e',
                    Condition::Chosen => 'c',
                };
                let name = field.name();
                text += &format!("{letter} {}:{name} {}\n", name.len(), field.kind());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Kind, Schema};

    fn properties(kinds: &[(&str, Kind)]) -> Properties {
        Properties::new(Schema::new(kinds.iter().cloned()).unwrap()).unwrap()
    }

    fn tank() -> Properties {
        let bits = |bits| Kind::Bits { bits };
        properties(&[
            ("x", bits(8)),
            ("name", Kind::Text { max_bytes: 8 }),
            ("ammo", bits(4)),
            ("pose", bits(2)),
        ])
    }

    const CONDITIONS: [Condition; 4] =
        [Condition::Always, Condition::Initial, Condition::OwnerOnly, Condition::ExceptOwner];

    #[test]
    fn conditions_say_who_gets_what() {
        let class = GhostClass::new("Tank", tank(), CONDITIONS, 9).unwrap();
        assert_eq!((class.groups(), class.group(false, true), class.group(true, false)), (2, 0, 1));
        assert_eq!([0, 1].map(|group| class.created(group)), [0b1011, 0b0111]);
        assert_eq!([0, 1].map(|group| class.updated(group)), [0b1001, 0b0101]);
        assert_eq!((class.initial(), class.is_plain()), (0b0010, false));
        assert!(GhostClass::new("Tank", tank(), [Condition::Always; 4], 9).unwrap().is_plain());
    }

    #[test]
    fn owners_and_those_whom_the_game_chooses_are_told_apart() {
        let conditions =
            [Condition::ExceptOwner, Condition::Initial, Condition::OwnerOnly, Condition::Chosen];
        let class = GhostClass::new("Tank", tank(), conditions, 9).unwrap();
        let masks = [(false, false), (true, false), (false, true), (true, true)].map(|(owner, chosen)| {
            let group = class.group(owner, chosen);
            (class.created(group), class.updated(group))
        });
        assert_eq!(masks, [(0b0011, 0b0001), (0b0110, 0b0100), (0b1011, 0b1001), (0b1110, 0b1100)]);
        assert_eq!((class.groups(), class.initial(), class.updated_for_any()), (4, 0b0010, 0b1101));
    }

    #[test]
    fn all_that_both_sides_must_agree_on_is_in_the_hash() {
        let hash = |name: &str, conditions: [Condition; 4], capacity| {
            let class = GhostClass::new(name, tank(), conditions, capacity).unwrap();
            Classes::new([Arc::new(class)]).unwrap().hash()
        };
        let first = hash("Tank", CONDITIONS, 9);
        assert_eq!(first, hash("Tank", CONDITIONS, 9));
        assert_ne!(first, hash("Tanks", CONDITIONS, 9));
        assert_ne!(first, hash("Tank", CONDITIONS, 10));
        assert_ne!(first, hash("Tank", [Condition::Always; 4], 9));
    }

    #[test]
    fn what_can_never_be_sent_is_refused() {
        let text = |error: ClassError| error.to_string();
        let short = GhostClass::new("Tank", tank(), [Condition::Always; 3], 9).unwrap_err();
        assert_eq!(text(short), "ghost class \"Tank\" must have a condition for each field (4), not 3");
        for capacity in [0, MAX_CAPACITY + 1] {
            let error = GhostClass::new("Tank", tank(), CONDITIONS, capacity).unwrap_err();
            assert_eq!(
                text(error),
                format!("capacity of ghost class \"Tank\" must be 1 to 65536, not {capacity}")
            );
        }
        let long = properties(&[("story", Kind::Text { max_bytes: 600 })]);
        let error = GhostClass::new("Book", long, [Condition::Always], 1).unwrap_err();
        assert!(text(error).starts_with("a ghost of class \"Book\" must take at most 3840 bits, not 48"));
        let class = Arc::new(GhostClass::new("Tank", tank(), CONDITIONS, 9).unwrap());
        assert_eq!(
            text(Classes::new([class.clone(), class]).unwrap_err()),
            "ghost class \"Tank\" is declared twice"
        );
        assert_eq!(text(Classes::new([]).unwrap_err()), "a world must have 1 to 256 ghost classes, not 0");
    }
}
