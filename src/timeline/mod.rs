//! One time on both sides: a client's estimate of the server's tick, the lead that makes its inputs arrive just in
//! time, and the buffer in which a server finds them by tick.
//!
//! Promises: everything is a function of samples and times from outside; a peer's reports move nothing beyond its
//! bounds and allocate nothing. Time on a client never runs back.
//!
//! | module | what it is |
//! |---|---|
//! | [`clock`] | the estimate of the server's tick, and its drift |
//! | [`lead`] | how far inputs are ahead of it |
//! | [`input_buffer`] | a client's inputs on the server, by tick |
//! | [`packet`] | the payloads that carry inputs and the server's reports |
//! | [`player`] | a client's part of the exchange |
//! | [`playout`] | the tick of the server that a client shows |
//! | [`referee`] | the server's part, for one client |

pub mod clock;
mod frame_pace;
pub mod input_buffer;
pub mod lead;
pub mod packet;
pub mod player;
pub mod playout;
mod presses;
pub mod referee;

pub use clock::ServerClock;
pub use input_buffer::{InputBuffer, InputCounters, InputState, MissingPolicy};
pub use lead::{InputLead, LeadConfig};
pub use packet::InputFault;
pub use player::{Player, PlayerConfig};
pub use playout::{Playout, PlayoutConfig};
pub use referee::Referee;
