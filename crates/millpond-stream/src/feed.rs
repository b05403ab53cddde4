//! Where frames enter a graph.

use crate::{Format, graph::Module, resources::Resources};
use std::sync::Arc;

/// A source of frames: a stored title, or something live.
pub trait Feed: std::fmt::Debug + Send + Sync + 'static {
    /// Path in URLs.
    fn path(&self) -> &str;

    /// Differs whenever anything differs that a frame depends on.
    fn id(&self) -> u64;

    /// The formats of its tracks. [`Frame::track`](crate::Frame::track) is an index of it; `None` for tracks without frames.
    fn formats(&self) -> &[Option<Format>];

    /// Returns a module without inputs that gives the frames of `tracks` without an end.
    fn endless(self: Arc<Self>, tracks: Arc<[u16]>, resources: &Resources) -> Box<dyn Module>;
}

impl dyn Feed {
    /// The format of a track.
    pub fn format(&self, track: u16) -> Option<&Format> {
        self.formats().get(usize::from(track))?.as_ref()
    }
}
