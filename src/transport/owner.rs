//! To whom messages belong: to the game, or to a layer above that has types of its own beside the game's.
//!
//! A layer's types have the numbers behind the game's, layer by layer: with them or without, the game's have the same.

/// A layer that has message types of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// What ghosts say besides their states.
    Ghosts,
    /// Calls, and replies to them.
    Calls,
    /// Turns, and what is said of them.
    Lockstep,
    /// What peers say of the game that they are in.
    Peers,
}

impl Layer {
    /// All of them, in the order of their types' numbers.
    pub const ALL: [Layer; 4] = [Layer::Ghosts, Layer::Calls, Layer::Lockstep, Layer::Peers];

    /// The name, as the protocol hash has it.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Ghosts => "ghosts",
            Layer::Calls => "calls",
            Layer::Lockstep => "lockstep",
            Layer::Peers => "peers",
        }
    }
}

/// To whom the messages of a type go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Game,
    /// A layer. The game's inbox never has them.
    System(Layer),
}
