//! PyO3 bindings: converts and delegates.
