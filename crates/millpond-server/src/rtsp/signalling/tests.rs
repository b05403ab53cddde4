//! Connections and sessions on a virtual clock.

mod connections;
mod playing;
mod silence;
mod simulation;
