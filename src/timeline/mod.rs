//! One time on both sides: a client's estimate of the server's tick, how far it runs ahead so that its inputs arrive just in
//! time, and the buffer in which a server finds them by tick.
//!
//! Promises: a function of samples and of time, which come from outside; what a peer says moves nothing beyond its bounds and
//! grows no memory. Time on a client never runs back.
//!
//! | module | what it is |
//! |---|---|
//! | [`clock`] | the estimate of the server's tick, and its drift |
//! | [`lead`] | how far inputs are ahead of it |
//! | [`input_buffer`] | a client's inputs on the server, by tick |
//! | [`packet`] | the payloads that carry inputs and what the server says of them |
//! | [`player`] | a client's part of the exchange |
//! | [`playout`] | which tick of the server a client shows |
//! | [`referee`] | the server's part, of one client |

pub mod clock;
pub mod input_buffer;
pub mod lead;
pub mod packet;
pub mod player;
pub mod playout;
pub mod referee;

pub use clock::ServerClock;
pub use input_buffer::{InputBuffer, InputCounters, InputState, MissingPolicy};
pub use lead::{InputLead, LeadConfig};
pub use packet::InputFault;
pub use player::{Player, PlayerConfig};
pub use playout::{Playout, PlayoutConfig};
pub use referee::Referee;
