//! Links that misbehave on purpose, in virtual time.
