//! Components of the scenes' entities for Bevy.
//!
//! "Plain" are components as a game has them, singles; "quantised" those of which the application makes as few bytes as bytes
//! allow, as it writes them: a position in 8, a rotation in 4.

use bevy::prelude::*;
use serde::{Deserialize, Serialize};

use crate::scene::Scene;

#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct Place([f32; 3]);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct Turn([f32; 4]);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct PlaceSteps([u8; 8]);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct TurnSteps([u8; 4]);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct Health(pub(crate) u16);
#[derive(Component, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub(crate) struct Flags(u8);

/// Steps of 1/512 m, 21 bits an axis.
pub(crate) fn place_steps(place: [f32; 3]) -> [u32; 3] {
    place.map(|at| ((f64::from(at) + 2000.0) * 512.0).round() as u32)
}

/// The largest one's number, and the others in 9 bits each.
pub(crate) fn turn_steps(turn: [f32; 4]) -> (u32, [u32; 3]) {
    let largest = (0..4).fold(0, |best, at| if turn[at].abs() > turn[best].abs() { at } else { best });
    let sign = if turn[largest] < 0.0 { -1.0 } else { 1.0 };
    let level = |at: usize| ((sign * turn[at] * std::f32::consts::SQRT_2 * 255.0).round() + 255.0) as u32;
    let rest = [1, 2, 3].map(|next| if next <= largest { next - 1 } else { next });
    (largest as u32, rest.map(level))
}

impl PlaceSteps {
    fn new(place: [f32; 3]) -> Self {
        let [x, y, z] = place_steps(place).map(u64::from);
        PlaceSteps((x | y << 21 | z << 42).to_le_bytes())
    }
}

impl TurnSteps {
    fn new(turn: [f32; 4]) -> Self {
        let (largest, [a, b, c]) = turn_steps(turn);
        TurnSteps((largest | a << 2 | b << 11 | c << 20).to_le_bytes())
    }
}

/// Spawns all of a scene, each with this besides.
pub(crate) fn spawn(
    world: &mut World,
    scene: &Scene,
    quantised: bool,
    and: impl Bundle + Clone,
) -> Vec<Entity> {
    let rows = (0..scene.plan.entities).map(|i| {
        let mut entity = world.spawn((Health(scene.health[i]), Flags(scene.flags[i])));
        if quantised {
            entity.insert((PlaceSteps::new(scene.position[i]), TurnSteps::new(scene.rotation[i])));
        } else {
            entity.insert((Place(scene.position[i]), Turn(scene.rotation[i])));
        }
        entity.insert(and.clone()).id()
    });
    rows.collect()
}

/// The application's writes of a tick.
pub(crate) fn apply(world: &mut World, entities: &[Entity], scene: &Scene, quantised: bool) {
    for row in &scene.moved {
        let i = *row as usize;
        let mut entity = world.entity_mut(entities[i]);
        if quantised {
            if let Some(mut place) = entity.get_mut::<PlaceSteps>() {
                place.set_if_neq(PlaceSteps::new(scene.position[i]));
            }
            if let Some(mut turn) = entity.get_mut::<TurnSteps>() {
                turn.set_if_neq(TurnSteps::new(scene.rotation[i]));
            }
        } else {
            if let Some(mut place) = entity.get_mut::<Place>() {
                *place = Place(scene.position[i]);
            }
            if let Some(mut turn) = entity.get_mut::<Turn>() {
                *turn = Turn(scene.rotation[i]);
            }
        }
        if let Some(mut health) = entity.get_mut::<Health>() {
            health.set_if_neq(Health(scene.health[i]));
        }
        if let Some(mut flags) = entity.get_mut::<Flags>() {
            flags.set_if_neq(Flags(scene.flags[i]));
        }
    }
}

/// Whether an entity is at a place.
pub(crate) fn is_at(world: &World, entity: Entity, place: [f32; 3]) -> bool {
    match world.get::<Place>(entity) {
        Some(shown) => shown.0 == place,
        None => world.get::<PlaceSteps>(entity) == Some(&PlaceSteps::new(place)),
    }
}
