//! The cost of ghosts on the wire, in bits: the total equals their channel's payloads.

// The costs of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCosts {
    // By property.
    pub properties: Vec<u64>,
    /// The heads of updates: gaps, ages, masks.
    pub updates: u64,
    /// The heads of creates.
    pub creates: u64,
    pub destroys: u64,
}

// The costs of all classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// In the order of class ids.
    pub classes: Vec<ClassCosts>,
    /// Ticks of packets, and starts and ends of sections.
    pub packets: u64,
}

impl Costs {
    pub fn total(&self) -> u64 {
        let of = |class: &ClassCosts| {
            class.properties.iter().sum::<u64>() + class.updates + class.creates + class.destroys
        };
        self.classes.iter().map(of).sum::<u64>() + self.packets
    }
}
