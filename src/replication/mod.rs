//! Ghosts: a replicated world.
//!
//! The server's objects are rows of a table per class; each client has ghosts of those that matter to it, and gets
//! their changes within its budget. [`Publisher`] is the server's side, [`Mirror`] a client's.
//!
//! Promises: a client's state of a ghost at a tick is the server's of that tick, quantised, and the shown state never
//! goes back. After a loss only properties that no later packet carries are resent, with their newest values; a ghost
//! whose newest state is acked costs nothing. Objects that aren't relevant to a client change no byte that it gets.

mod cells;
pub mod class;
mod coding;
mod copies;
mod drawn;
mod form;
pub mod frames;
mod history;
pub mod interests;
mod lives;
pub mod mirror;
mod name;
pub mod packet;
pub mod publisher;
mod references;
pub mod relevancy;
mod row_news;
pub mod rows;
pub mod rules;
mod saved;
mod scan;
mod served_world;
pub mod table;
mod wordless;

pub use class::{ACKED_AFTER, ClassError, Classes, Condition, GhostClass, HISTORY, LONG_LOSS, MAX_IN_FLIGHT};
pub use copies::{Copies, Copying};
pub use frames::Frames;
pub use interests::Interests;
pub use mirror::{
    GhostEvent, GhostEventKind, Mirror, MirrorCounters, Named, PacketTime, TickArrival, WorldFrames,
    WorldTime,
};
pub use name::GhostName;
pub use packet::Violation;
pub use publisher::{ClassCosts, Costs, Publisher, PublisherConfig};
pub use references::{Links, NO_GHOST, Reference, References, repeated_number};
pub use relevancy::{Changes, ClassRelevancy, GridConfig, Interest, Relevancy, RelevancyError, View};
pub use row_news::{Before, RowBody, RowNews};
pub use rules::{Rule, RuleError, Velocity};
pub use saved::{BadWorld, SavedClass, SavedIdentity, SavedWorld};
pub use served_world::ServedWorld;
pub use table::{Column, Full, MAX_PAST, Table, Turn, Wrong};
