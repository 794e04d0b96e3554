//! Client and Server as sans-IO machines.
