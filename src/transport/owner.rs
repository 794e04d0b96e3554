//! The owner of messages: the game, or a layer above with types of its own.
//!
//! A layer's types have the numbers after the game's, layer by layer: the game's numbers never depend on them.

/// A layer that has message types of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Messages of ghosts, apart from their states.
    Ghosts,
    /// Calls, and replies to them.
    Calls,
    /// The messages of lockstep turns.
    Lockstep,
    /// What peers say of the game that they are in.
    Peers,
}

impl Layer {
    /// All of them, in the order of their types' numbers.
    pub const ALL: [Layer; 4] = [Layer::Ghosts, Layer::Calls, Layer::Lockstep, Layer::Peers];

    /// The name in the protocol hash.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Ghosts => "ghosts",
            Layer::Calls => "calls",
            Layer::Lockstep => "lockstep",
            Layer::Peers => "peers",
        }
    }
}

/// The owner of a type's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Game,
    /// A layer. The game's inbox never has them.
    System(Layer),
}
