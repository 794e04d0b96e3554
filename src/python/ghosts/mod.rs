//! Ghosts for Python: classes and their properties, a server's world and a client's, as objects and as columns.
//!
//! Promises: the columns' memory belongs to Python and never moves; the core copies once a flush what may
//! have changed. Objects are made only of ghosts that the game asks for, or that events mention.

mod arrays;
mod callbacks;
mod client_world;
mod core;
mod events;
mod ghost;
mod hooks;
mod interest;
mod links;
mod news;
mod population;
mod properties;
mod property;
mod rows;
mod saving;
mod store;
mod values;
mod view;
mod world;

use crate::python::prelude::*;
use crate::replication::rows::NOBODY;
use crate::replication::{Column, Interests, NO_GHOST};
use crate::store::cells::Cells;
use arrays::{cells, numbers, rows_of};
use callbacks::{Callback, Callbacks};
pub(super) use core::{Found, number_for, owned_ages, part};
use properties::{DEFAULT_RATE, wrong_class};
use rows::{Checked, GhostRows, Links, Live, News, Values};
use store::store;
use world::Hooks;

pub(crate) use arrays::GhostArrays;
pub(super) use callbacks::{call_all, check_columns};
pub(crate) use client_world::ClientWorld;
pub(crate) use events::{GhostChanged, GhostDespawned, GhostLinked, GhostOwned, GhostSpawned};
pub(super) use links::references;
pub(super) use population::{Population, made_classes};
pub(crate) use properties::{Properties, Property};
pub(crate) use rows::Ghost;
pub(crate) use view::WorldView;
pub(crate) use world::World;
