//! PyO3 bindings: converts and delegates.
//!
//! Promises: every name, signature and doc of `python/tickwire/_core.pyi`. Classes are frozen with one lock
//! inside where state changes, and no lock is held while Python code runs. Calls stay attached to the
//! interpreter, as all of them take bounded time, waiting for a turn of the driver's thread included, which
//! never waits for Python. Only two kinds detach: hashing a large chunk, and the proxy's calls, which wait
//! for its thread.

mod address;
mod arrays;
mod buffers;
mod calls;
mod capture;
mod channel;
mod checks;
mod chunks;
mod client;
mod codec;
mod collections;
mod columns;
mod composites;
mod conditions;
mod declared;
mod dialling;
mod endpoint;
mod errors;
mod events;
mod exit;
mod facade;
#[cfg(feature = "faults")]
mod faults;
mod fields;
mod forks;
mod garbage;
mod ghosts;
mod goodbye;
mod hooks;
mod inbox;
mod kind;
mod leaves;
mod lockstep;
mod log;
mod making;
mod meeting;
mod network;
mod parts;
mod peer;
mod prelude;
mod protocol;
mod proxy;
mod randomness;
mod reconnect;
mod rendezvous;
mod requests;
mod rollback;
mod row_type;
mod schema;
mod sending;
mod server;
mod settings;
mod setup;
mod shape;
mod shared;
mod slots;
mod state;
mod stats;
mod stream;
mod ticking;
mod time;
mod token;
mod value;
mod yojimbo;

/// The extension module.
#[pyo3::pymodule(gil_used = false)]
#[pyo3(name = "_core")]
pub mod module {
    use crate::python::prelude::*;

    #[pymodule_export]
    use super::{
        address::Address,
        arrays::{Batch, ReceivedRows, arena, dtype, pack, row_format, unpack},
        capture::{Capture, PacketOpener},
        channel::{
            Channel, chunks, latest, payload, redundant, reliable_ordered, reliable_unordered, sequenced,
            unreliable,
        },
        chunks::{Chunk, IncomingChunk, ReceivedChunk, Transfer},
        client::Client,
        composites::{common_of, composed, converted_of, member_of, nested_of},
        conditions::{Bottleneck, Bursts, Conditions, Outages, RandomWalk},
        events::{ClientHandle, Connected, Disconnected},
        facade::Tick,
        fields::{
            FieldType, angle, bits, boolean, data, fixed, flags, float32, float64, network_id, pressed,
            quantized, quaternion, ranged, raw, signed_quaternion, text, transform, uint128, unit_vector,
            vec2, vec3, wide_text,
        },
        ghosts::{
            ClientWorld, Ghost, GhostArrays, GhostChanged, GhostDespawned, GhostLinked, GhostOwned,
            GhostSpawned, Properties, Property, World, WorldView,
        },
        hooks::Candidates,
        inbox::{Inbox, Notifications},
        lockstep::{
            LockstepCore, Random, read_recording, recording_settings, recording_snapshot, recording_turn,
            replayed_crc,
        },
        meeting::{Relay, RendezvousServer},
        network::SimulatedNetwork,
        parts::{
            AckEndpoint, BitMeasure, BitReader, BitWriter, ChunkProgress, ChunkReceiver, ChunkSender,
            Fragments, GoodBad, Link, PacketStats, Socket, VirtualConnection,
        },
        peer::{
            GameEnded, HostChanged, MasterChanged, Peer, Player, PlayerJoined, PlayerLeft, PlayerPath,
            Started,
        },
        protocol::Protocol,
        proxy::Proxy,
        rendezvous::{Code, Rendezvous},
        rollback::{
            Advance, Desync, PlayerOut, Rollback, Spectator, SpectatorLost, StateArrays, SyncTest, Timing,
            state_sum,
        },
        schema::Schema,
        server::{Access, Room, Server},
        settings::{Congestion, Debugging, Transfers, Tuning},
        stats::{ChannelSnapshot, ChannelStats, ChunkStats, ConnectionStats},
        stream::Stream,
        time::{Clock, InputColumns, InputStatus, Inputs, Latency},
        token::{ConnectToken, generate_key},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Set directly: `add` would list it in `__all__`.
        #[cfg(feature = "faults")]
        module.setattr("_break_thread", wrap_pyfunction!(super::faults::_break_thread, module)?)?;
        super::errors::import_all(module.py());
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
