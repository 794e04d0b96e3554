//! One conversation: reliable 1.0 packets and acks, channels, framing.
