//! Relevancy: which rows of a class each client has.
//!
//! | rule | rows of a client |
//! |---|---|
//! | always | all rows |
//! | owner | its own rows |
//! | grid | rows within a radius of one of its viewpoints (given, or else its own rows), and its own. A row that it
//! has stays up to a larger radius, and beyond that for some ticks |
//! | mask | the application's choice, a byte a row |
//!
//! Promises: only rows that are alive and have a state are relevant. Changes are reported once. An unchanged rule
//! with unchanged rows and viewpoints costs a comparison per client. Call [`Interest::forget`] when a row ends: its
//! number may soon be another's.

mod grid;
mod interest;

use core::fmt;

use grid::Grid;
pub use interest::{Changes, Interest};

use super::class::GhostClass;
use super::publisher::Sight;
use super::scan::BLOCK;
use super::table::Table;
use crate::wire::{Kind, Steps};

/// Near is relevant. Lengths are in the position's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridConfig {
    /// The index of the position: a vector.
    pub property: usize,
    /// The side of a cell: about a quarter of the radius is best. The result doesn't depend on it.
    pub cell: f64,
    /// Rows enter within this distance.
    pub radius: f64,
    /// And stay within this one, so that what moves about the border doesn't come and go.
    pub leave_radius: f64,
    /// Ticks that a row beyond it stays.
    pub linger: u32,
    /// The factor of a ghost's priority at the radius: above 0, at most 1. It doubles at a quarter of the radius, and
    /// again at a quarter of that, up to 1.
    pub far_weight: f64,
}

/// Which rows of a class a client is to have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Relevancy {
    #[default]
    Always,
    Owner,
    Grid(GridConfig),
    /// The application chooses the rows.
    Mask,
}

/// Why a relevancy rule doesn't fit a class.
#[derive(Clone, Debug, PartialEq)]
pub enum RelevancyError {
    /// A property that is no vector.
    Property {
        property: usize,
        /// Its name, if there is one.
        name: Option<String>,
    },
    /// A weight of far ghosts that isn't above 0 and at most 1.
    FarWeight { value: f64 },
    /// An invalid length, or one below another.
    Length {
        name: &'static str,
        value: f64,
        /// The lower bound that it breaks.
        min: f64,
    },
}

impl fmt::Display for RelevancyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RelevancyError::Property { property, name: None } => {
                write!(f, "grid's property must be one of the class's, not number {property}")
            }
            RelevancyError::Property { name: Some(name), .. } => {
                write!(f, "grid's property must be a vector, not {name:?}")
            }
            RelevancyError::FarWeight { value } => {
                write!(f, "grid's far_weight must be above 0 and at most 1, not {value}")
            }
            RelevancyError::Length { name, value, min } if *min > 0.0 => {
                write!(f, "grid's {name} must be at least {min} and finite, not {value}")
            }
            RelevancyError::Length { name, value, .. } => {
                write!(f, "grid's {name} must be above 0 and finite, not {value}")
            }
        }
    }
}

impl core::error::Error for RelevancyError {}

/// The inputs of a client's relevancy besides the rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct View<'a> {
    /// The rows that it owns.
    pub owned: &'a [u32],
    /// The client's viewpoints; if empty, its own rows.
    pub viewpoints: &'a [[f64; 3]],
    /// Of a mask: a byte a row, not 0 where it is relevant.
    pub mask: &'a [u8],
}

/// A grid with its lengths in steps.
#[derive(Debug)]
struct Near {
    config: GridConfig,
    grid: Grid,
    steps: Steps,
    /// From where clients see, where nearness counts.
    sight: Option<Sight>,
}

/// The relevancy of a class, for all clients.
#[derive(Debug)]
pub struct ClassRelevancy {
    near: Option<Near>,
    pub(super) rule: Relevancy,
    /// Rows that are alive and have a state, as of the last tick.
    present: Vec<u64>,
    /// Another number when rows came, went or moved. Never 0.
    version: u64,
}

impl ClassRelevancy {
    /// A rule for this class.
    ///
    /// # Errors
    ///
    /// When the class has no such position, or a length is invalid.
    pub fn new(class: &GhostClass, rule: Relevancy) -> Result<Self, RelevancyError> {
        let near = if let Relevancy::Grid(config) = rule { Some(Near::new(class, config)?) } else { None };
        Ok(ClassRelevancy { near, rule, present: Vec::new(), version: 1 })
    }

    /// Reads the rows, after [`Table::update`] and before clients are asked about.
    pub fn begin_tick(&mut self, table: &Table) {
        let same = table.present().eq(self.present.iter().copied());
        if !same {
            self.present.clear();
            self.present.extend(table.present());
        }
        let moved = self.near.as_ref().is_some_and(|near| {
            let mut changed = table.changed().iter();
            let property = near.config.property;
            table.may_move(property) || changed.any(|row| table.changed_now(*row) >> property & 1 == 1)
        });
        if same && !moved {
            return;
        }
        self.version += 1;
        if let Some(near) = &mut self.near {
            near.grid.sort(table);
        }
    }

    /// From where a client sees, if that matters to priorities.
    pub(super) fn sight(&self, interest: &Interest) -> Option<Sight> {
        let of_all = self.near.as_ref()?.sight.as_ref()?;
        Some(Sight { views: interest.views.clone(), ..of_all.clone() })
    }

    /// Adds to `changes` what enters and leaves a client's interest in this tick.
    pub fn update(
        &self,
        tick: u32,
        table: &Table,
        view: View<'_>,
        interest: &mut Interest,
        changes: &mut Changes,
    ) {
        let same = interest.seen == self.version;
        let linger = self.near.as_ref().map_or(0, |near| near.config.linger);
        match (self.rule, &self.near) {
            (Relevancy::Always, _) if same => return,
            (Relevancy::Grid(_), Some(near)) => {
                let is_unmoved = near.views(table, view).eq(interest.views.iter().copied())
                    && *view.owned == *interest.owned;
                if same && is_unmoved && !interest.is_waiting() {
                    return;
                }
                interest.views.clear();
                interest.views.extend(near.views(table, view));
                interest.owned.clear();
                interest.owned.extend_from_slice(view.owned);
            }
            _ => {}
        }
        interest.seen = self.version;
        interest.begin(self.present.len() * BLOCK);
        match (self.rule, &self.near) {
            (Relevancy::Always, _) => interest.wanted[..self.present.len()].copy_from_slice(&self.present),
            (Relevancy::Mask, _) => {
                let rows = view.mask.chunks(BLOCK).zip(&self.present).zip(&mut interest.wanted);
                for ((mask, present), wanted) in rows {
                    let bits = mask.iter().enumerate();
                    *wanted = bits.fold(0, |bits, (i, byte)| bits | u64::from(*byte != 0) << i) & present;
                }
            }
            (Relevancy::Grid(_), Some(near)) => {
                let (enter, leave) =
                    (near.in_steps(near.config.radius), near.in_steps(near.config.leave_radius));
                let views = core::mem::take(&mut interest.views);
                for view in &views {
                    near.grid.near(*view, leave, |row, square| {
                        interest.keep(row);
                        if square <= enter * enter {
                            interest.want(row);
                        }
                    });
                }
                interest.views = views;
            }
            _ => {}
        }
        if matches!(self.rule, Relevancy::Owner | Relevancy::Grid(_)) {
            for row in view.owned.iter().filter(|row| table.is_alive(**row) && table.has_state(**row)) {
                interest.want(*row);
            }
        }
        interest.finish(tick, linger, table, changes);
    }
}

impl Near {
    fn new(class: &GhostClass, config: GridConfig) -> Result<Self, RelevancyError> {
        let GridConfig { property, cell, radius, leave_radius, .. } = config;
        let field = class.properties.schema().fields().get(property);
        let refused = || RelevancyError::Property { property, name: field.map(|it| it.name().to_owned()) };
        let Some(Kind::Vector { axes, lo, hi, resolution }) = field.map(|field| field.kind()) else {
            return Err(refused());
        };
        let steps = Steps::range(*lo, *hi, *resolution).map_err(|_| refused())?;
        for (name, value, min) in
            [("radius", radius, 0.0), ("cell", cell, 0.0), ("leave_radius", leave_radius, radius)]
        {
            if !(value.is_finite() && value > 0.0 && value >= min) {
                return Err(RelevancyError::Length { name, value, min });
            }
        }
        let far_weight = config.far_weight;
        if !(far_weight > 0.0 && far_weight <= 1.0) {
            return Err(RelevancyError::FarWeight { value: far_weight });
        }
        // A cell smaller than a step finds no more.
        let grid = Grid::new(property, *axes as usize, (cell / steps.size()).max(1.0));
        let sight = (far_weight < 1.0).then(|| Sight {
            property,
            axes: *axes as usize,
            radius: radius / steps.size(),
            far_weight: far_weight as f32,
            views: Vec::new(),
        });
        Ok(Near { config, grid, steps, sight })
    }

    fn in_steps(&self, length: f64) -> f64 {
        length / self.steps.size()
    }

    /// A client's viewpoints, in steps.
    fn views<'a>(&'a self, table: &'a Table, view: View<'a>) -> impl Iterator<Item = [f64; 3]> + 'a {
        let lo = self.steps.bounds().0;
        let axes = self.grid.axes();
        let given = view.viewpoints.iter().map(move |at| {
            core::array::from_fn(|axis| if axis < axes { self.in_steps(at[axis] - lo) } else { 0.0 })
        });
        let owned = if view.viewpoints.is_empty() { view.owned } else { &[] };
        let owned = owned.iter().filter(|row| table.is_alive(**row) && table.has_state(**row));
        given.chain(owned.map(|row| self.grid.place(table, *row)))
    }
}

#[cfg(test)]
mod tests;
