//! Channels: stored titles that play one after the other, round and round, at the same position for all viewers (AMPS).
//!
//! A channel is a live stream whose source is a list of assets. The module `loader` opens each asset at its turn and gives its
//! frames the times and numbers of the channel ([`Joint`]). The module `channel` gives them to viewers when they are due. Frames
//! of another asset begin an epoch. Frames of the same asset continue the epoch. A channel with a [`TimedStart`] plays its asset as if it
//! had begun at a given moment.

mod joint;
mod schedule;
mod source;
mod start;

pub(crate) use joint::{Joint, Lap};
pub(crate) use schedule::{Schedule, Turn as AssetTurn};
pub use source::{ChannelSource, Titles};
pub(crate) use start::FirstFrames;
pub use start::TimedStart;
