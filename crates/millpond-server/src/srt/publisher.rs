//! Publishers: what a connection receives becomes a stream.

use super::{
    Srt,
    refusal::Refused,
    rights::Asker,
    session::{End, Session},
};
use millpond_srt::SrtReceived;
use millpond_stream::{Publication, PublishRequest, PublishedMedia, Source};
use std::time::Duration;

/// A stream that a caller publishes.
pub(super) struct Published {
    publication: Publication,
    /// Longest silence of the caller's media.
    patience: Duration,
}

/// Begins to receive the stream that a caller publishes.
///
/// # Errors
/// The reason of the refusal.
pub(super) async fn open(srt: &Srt, asker: &Asker<'_>) -> Result<Published, Refused> {
    let manager = srt.sources.manager();
    let publishers = srt.publishers.as_deref().ok_or(Refused::NotPublished)?;
    srt.admit_publisher(publishers, asker, manager.clock().elapsed()).await?;
    let at = srt.sources.find(&asker.id.path);
    srt.sources.placed(&at)?;
    let stream = srt.sources.live(&at)?;
    let stream = stream.filter(|stream| stream.source == Source::Published).ok_or(Refused::NotPublished)?;
    let request = PublishRequest { stream, media: PublishedMedia::Transport, conflict: publishers.conflict() };
    let publication = manager.publish(request)?;
    Ok(Published { publication, patience: srt.sources.patience(&at) })
}

/// Gives what arrives to the publication, until one of both ends.
///
/// # Errors
/// The reason of the end.
pub(super) async fn serve(session: &mut Session, published: &Published) -> Result<(), End> {
    let Published { publication, patience } = published;
    loop {
        let stepped = session.step().await;
        while let Some(received) = session.link.deliver() {
            match received {
                SrtReceived::Payload(payload) => publication.push(0, payload).await?,
                // The transport stream's own counters show the gap.
                SrtReceived::Lost(_) => {}
            }
        }
        if let Err(end) = stepped {
            publication.taken().await?;
            return Err(end);
        }
        if session.looks()? {
            if let Some(end) = publication.ended() {
                return Err(end.into());
            }
            if publication.silence() > *patience {
                return Err(End::Silent(*patience));
            }
        }
    }
}
