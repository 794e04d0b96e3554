//! The use of a client's token.

use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

/// Whether a token is still good for another client: shared with the code that prevents a token's second use.
#[derive(Clone, Debug, Default)]
pub struct TokenUse(Arc<AtomicU8>);

impl TokenUse {
    const DIALLING: u8 = 0;
    const SEALED: u8 = 1;
    const UNUSED: u8 = 2;

    /// The client is gone or has finished, and its keys have sealed nothing.
    pub fn is_free(&self) -> bool {
        match self.0.load(Ordering::Relaxed) {
            Self::DIALLING => Arc::strong_count(&self.0) == 1,
            state => state == Self::UNUSED,
        }
    }

    /// The client has finished, or its keys have sealed something.
    pub(super) fn note(&self, sealed: bool) {
        self.0.store(if sealed { Self::SEALED } else { Self::UNUSED }, Ordering::Relaxed);
    }
}
