//! Indexing of an object: which bytes are read, and what they tell about its tracks.

mod entry_look;
mod entry_points;
pub(crate) mod finer_clock;
mod first_frames;
pub(crate) mod fragment_loader;
mod fragment_walk;
mod in_band;
pub(crate) mod indexer;
mod lane;
mod movie_box_search;
mod outline_ends;
mod outline_search;
mod span_walk;
