//! The client of a session: a viewer, or a publisher.

use super::{
    publisher::Publisher,
    record::End,
    session::Shared,
    signalling::{Signs, Viewer},
};
use std::{sync::Arc, time::Duration};

/// A session, by what its client does.
#[derive(Clone)]
pub(super) enum Party {
    /// The client gets media.
    Viewer(Arc<Shared>),
    /// The client sends media.
    Publisher(Arc<Publisher>),
}

impl Party {
    /// The session of a viewer.
    pub(super) fn viewer(self) -> Option<Arc<Shared>> {
        match self {
            Self::Viewer(viewer) => Some(viewer),
            Self::Publisher(_) => None,
        }
    }

    /// The session of a publisher.
    pub(super) fn publisher(self) -> Option<Arc<Publisher>> {
        match self {
            Self::Viewer(_) => None,
            Self::Publisher(publisher) => Some(publisher),
        }
    }
}

impl Viewer for Party {
    fn signs(&self) -> Option<Signs> {
        match self {
            Self::Viewer(viewer) => viewer.signs(),
            Self::Publisher(publisher) => publisher.signs(),
        }
    }

    /// Publishers end with their connection, by whatever transport they send: its end tells that they have left.
    fn is_interleaved(&self) -> bool {
        match self {
            Self::Viewer(viewer) => viewer.is_interleaved(),
            Self::Publisher(_) => true,
        }
    }

    fn disconnect(&self) {
        if let Self::Viewer(viewer) = self {
            Shared::disconnect(viewer);
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Viewer(viewer) => viewer.is_over(),
            Self::Publisher(_) => false,
        }
    }

    fn heard(&self, now: Duration) {
        match self {
            Self::Viewer(viewer) => viewer.heard(now),
            Self::Publisher(publisher) => publisher.heard(now),
        }
    }

    fn ends(&self, why: End) {
        match self {
            Self::Viewer(viewer) => viewer.ends(why),
            Self::Publisher(publisher) => publisher.ends(why),
        }
    }
}
