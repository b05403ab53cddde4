//! One track of a source: its segments are requested as they appear.

use super::manifest::{Manifest, Reading};
use crate::{
    reception::{
        fetching::{Fetcher, error},
        pulled::{
            PulledSource,
            event::{Closed, Dating, Event, send},
            rendition::Rendition,
            segment::{Segment, init},
        },
        rtsp::link::Stopwatch,
    },
    source_health::{SourceError, SourceErrorKind},
};
use bytes::Bytes;
use millpond_package::dash_manifest::{Failed, Follower, Next, Piece};
use std::sync::Arc;
use tokio::sync::mpsc;
use url::Url;

/// A track, over all sessions with its source.
pub(in crate::reception::pulled) struct DashRendition {
    manifest: Arc<Manifest>,
    follower: Follower,
    /// Whether it reads the manifest for all.
    leads: bool,
}

impl Rendition for DashRendition {
    async fn open(source: &PulledSource, fetcher: &Fetcher, watch: Stopwatch) -> Result<Vec<Self>, SourceError> {
        let manifest = Arc::new(Manifest::open(source, fetcher, watch).await?);
        let reading = manifest.readings().borrow().clone();
        let roles = reading.presentation.roles().into_iter().enumerate();
        let all = roles.map(|(place, role)| {
            let follower = Follower::new(role);
            if let Next::Piece(piece) = follower.next(&reading.presentation, reading.clock.time(watch.now())) {
                // A host that is not the source's is told at once.
                resolve(fetcher, &reading.base, (&piece.bases, &piece.uri))?;
            }
            Ok(Self { manifest: manifest.clone(), follower, leads: place == 0 })
        });
        all.collect()
    }

    fn following(self, before: Self) -> Self {
        Self { follower: self.follower.following(&before.follower), ..self }
    }

    fn language(&self) -> Option<&str> {
        self.follower.language()
    }

    async fn run(&mut self, fetcher: &Fetcher, events: &mpsc::Sender<Event>, watch: Stopwatch) -> SourceError {
        let manifest = self.manifest.clone();
        match self.leads {
            true => tokio::select! {
                error = manifest.keep(fetcher, watch) => error,
                error = self.follow(fetcher, events, watch) => error,
            },
            false => self.follow(fetcher, events, watch).await,
        }
    }
}

impl DashRendition {
    /// Gives all segments, until the presentation ends.
    async fn follow(&mut self, fetcher: &Fetcher, events: &mpsc::Sender<Event>, watch: Stopwatch) -> SourceError {
        let mut readings = self.manifest.readings();
        loop {
            let reading = readings.borrow_and_update().clone();
            match self.follower.next(&reading.presentation, reading.clock.time(watch.now())) {
                Next::Ended => {
                    let words = "the source has ended its presentation (a static manifest)".to_owned();
                    return error(SourceErrorKind::Unreachable, &reading.base, words);
                }
                Next::Wait { until } => {
                    tokio::select! {
                        () = watch.sleep_until(Some(reading.clock.moment(until))) => {}
                        _ = readings.changed() => {}
                    }
                }
                Next::Piece(piece) => {
                    if let Err(Closed) = self.piece(&piece, &reading, (fetcher, events), watch).await {
                        return std::future::pending().await;
                    }
                }
            }
        }
    }

    /// Requests a segment, and gives it as it arrives.
    async fn piece(
        &mut self,
        piece: &Piece,
        reading: &Reading,
        (fetcher, events): (&Fetcher, &mpsc::Sender<Event>),
        watch: Stopwatch,
    ) -> Result<(), Closed> {
        let (result, is_final) = match open(piece, reading, fetcher).await {
            Ok((init, segment)) => (give(piece, init, segment, events).await?, true),
            Err(error) => {
                let is_final = error.kind == SourceErrorKind::Protocol;
                (Err(error), is_final)
            }
        };
        let Err(why) = result else {
            self.follower.taken(piece);
            return Ok(());
        };
        let (url, segment) = (&why.address, piece.number);
        match self.follower.failed(piece, &reading.presentation, reading.clock.time(watch.now()), is_final) {
            Failed::Again => {
                tracing::debug!(url, segment, why = why.words, "a segment of a source is not there yet");
                self.manifest.want();
            }
            Failed::Missed => {
                tracing::warn!(url, segment, why = why.words, "a segment of a source is missing");
            }
        }
        send(events, Event::Missed { why: format!("segment {segment}: {}", why.words) }).await
    }
}

/// Opens a segment, after its init section was read.
async fn open(piece: &Piece, reading: &Reading, fetcher: &Fetcher) -> Result<(Option<Bytes>, Segment), SourceError> {
    let found = match &piece.init {
        None => None,
        Some(section) => {
            let url = resolve(fetcher, &reading.base, (&section.bases, &section.uri))?;
            Some(init(fetcher, url, None).await?)
        }
    };
    let url = resolve(fetcher, &reading.base, (&piece.bases, &piece.uri))?;
    Ok((found, Segment::open(fetcher, url, None).await?))
}

/// Gives a segment as it arrives.
async fn give(
    piece: &Piece,
    init: Option<Bytes>,
    mut segment: Segment,
    events: &mpsc::Sender<Event>,
) -> Result<Result<(), SourceError>, Closed> {
    let Piece { stretch, offset, is_torn, wall, .. } = *piece;
    send(events, Event::Begin { stretch, dating: Some(Dating::Zero(wall)), offset, is_torn, init }).await?;
    let result = loop {
        match segment.next().await {
            Ok(Some(bytes)) => send(events, Event::Bytes(bytes)).await?,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    send(events, Event::End { is_broken: result.is_err() }).await?;
    Ok(result)
}

/// Resolves a URI behind the `BaseURL`s of all levels (ISO/IEC 23009-1 5.6.4).
fn resolve(fetcher: &Fetcher, base: &Url, (bases, uri): (&[Arc<str>], &str)) -> Result<Url, SourceError> {
    let mut url = base.clone();
    for base in bases {
        url = fetcher.resolve(&url, base)?;
    }
    fetcher.resolve(&url, uri)
}
