//! The connection packets of Tickwire's own framing: pinned bytes, and what is refused.
