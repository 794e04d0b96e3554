//! What ghosts cost on the wire, in bits: the sum is what the payloads of their channel have.

// Of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassCosts {
    // By property.
    pub properties: Vec<u64>,
    /// What stands before the properties of updates: gaps, ages, masks.
    pub updates: u64,
    /// What stands before the properties of creates.
    pub creates: u64,
    pub destroys: u64,
}

// Of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// In the order of their ids.
    pub classes: Vec<ClassCosts>,
    /// Ticks of packets, and the beginnings and ends of their sections.
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
