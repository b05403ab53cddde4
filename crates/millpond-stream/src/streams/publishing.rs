//! Requests of publishers.

use super::LiveRequest;
use crate::{
    cannot_open::CannotOpen,
    reception::{Conflict, PublishedMedia},
    source_health::SourceError,
};
use std::sync::Arc;

/// A publication as it is asked for.
#[derive(Debug)]
pub struct PublishRequest {
    /// The stream. Its source is [`Source::Published`](super::Source::Published).
    pub stream: LiveRequest,
    /// Media that is pushed.
    pub media: PublishedMedia,
    /// What happens to a publication that is under way.
    pub conflict: Conflict,
}

/// Why a publication is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PublishRefused {
    /// Another publisher pushes the stream.
    #[error("the stream has another publisher")]
    Taken,
    /// The source of the stream is no publisher.
    #[error("the stream is not published")]
    NotPublished,
    /// There are too many streams.
    #[error(transparent)]
    Streams(#[from] CannotOpen),
    /// The source of the stream failed just now.
    #[error(transparent)]
    Source(#[from] Arc<SourceError>),
    /// Another process of the server takes publishers now.
    #[error("another process of the server takes publishers now: push again")]
    HandedOver,
}
