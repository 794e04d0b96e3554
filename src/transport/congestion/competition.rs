//! Whether others fill the queue, and the share to claim then.
