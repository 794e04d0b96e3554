//! What the fuzz targets run: each module is a target, whose `run` takes any bytes and panics when a promise is broken.
//! The project's own tests replay the seeds and feed random bytes to the same functions, so they can't rot.

pub mod acks;
pub mod atomic;
pub mod bits;
pub mod calls;
pub mod connected;
pub mod fresh;
pub mod ghosts;
pub mod hosting;
pub mod input;
pub mod inputs;
pub mod lockstep;
pub mod mesh;
pub mod native;
pub mod netcode;
pub mod packets;
pub mod reconnect;
pub mod rendezvous;
pub mod requests;
pub mod rollback;
pub mod rooms;
pub mod saved;
pub mod schema;
pub mod slices;
pub mod virtual_connection;
pub mod words;
pub mod world;
