//! Ghosts: a world that copies itself.

pub mod class;
mod history;
mod scan;
pub mod table;
mod wordless;

pub use class::{ClassError, Classes, Condition, GhostClass, HISTORY};
pub use table::{Column, Full, Table, Wrong};
