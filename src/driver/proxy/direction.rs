//! The two ways through a proxy.

/// A way through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to the server.
    Up,
    /// From the server to a client.
    Down,
}

/// One of something for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Both<T> {
    /// That of the way from client to server.
    pub up: T,
    /// That of the way from server to client.
    pub down: T,
}

impl<T> Both<T> {
    /// That of one direction.
    pub fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// That of one direction, to change.
    pub fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}
