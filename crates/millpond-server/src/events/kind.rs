//! The kinds of events.

/// Declares the kinds: a line each, with the type of CloudEvents.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// A kind of events.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub(super) const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// Returns its type in CloudEvents.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// A publisher begins to push a stream.
    PublisherBegan = "millpond.publisher.began",
    /// A publisher pushes no more.
    PublisherEnded = "millpond.publisher.ended",
    /// A live stream has its first viewer.
    ViewersBegan = "millpond.viewers.began",
    /// The last viewer of a live stream has left.
    ViewersEnded = "millpond.viewers.ended",
    /// The frames of a live source stopped.
    SourceLost = "millpond.source.lost",
    /// The frames of a live source arrive again.
    SourceBack = "millpond.source.back",
    /// A stream takes the frames of another input of its failover.
    Failover = "millpond.failover",
    /// A stream plays another entry of its schedule, or the filler.
    Schedule = "millpond.schedule",
    /// A recording has ended, and its files are complete.
    RecordingComplete = "millpond.recording.complete",
    /// A file of a continuous recording is in the bucket, and verified.
    RecordingUploaded = "millpond.recording.uploaded",
    /// A file of a continuous recording is lost: it waited for its upload, and the spool was full.
    RecordingDropped = "millpond.recording.dropped",
    /// A node of the cluster takes work for the first time.
    NodeJoined = "millpond.node.joined",
    /// A node has left the cluster after it drained.
    NodeLeft = "millpond.node.left",
    /// A node has left the cluster without a drain.
    NodeLost = "millpond.node.lost",
    /// A node has started again under its name.
    NodeRestarted = "millpond.node.restarted",
    /// A node takes no new work.
    NodeDraining = "millpond.node.draining",
    /// A node takes work again.
    NodeResumed = "millpond.node.resumed",
    /// A node does not answer.
    NodeUnreachable = "millpond.node.unreachable",
    /// A node answers again.
    NodeReachable = "millpond.node.reachable",
    /// A folder that the server writes has little free space.
    DiskLow = "millpond.disk.low",
}
