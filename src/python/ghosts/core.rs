//! What the bindings ask of the core's ghosts, all behind the endpoint's lock.

use crate::endpoint::PeerHandle;
use crate::python::state::State;

pub(super) fn spawn(state: &mut State, class: usize, owner: Option<PeerHandle>) -> Option<u32> {
    let _ = (state, class, owner);
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    Some(NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}
pub(super) fn despawn(state: &mut State, class: usize, row: u32) -> bool {
    let _ = (state, class, row);
    true
}
pub(super) fn set_value(state: &mut State, class: usize, row: u32, property: usize, body: &[u8]) {
    let _ = (state, class, row, property, body);
}
pub(super) fn set_owner(state: &mut State, class: usize, row: u32, owner: Option<PeerHandle>) {
    let _ = (state, class, row, owner);
}

pub(super) fn mirror(state: &mut State) -> Option<&mut crate::replication::Mirror> {
    let _ = state;
    None
}
