//! Media of running streams: init segments, segments, and parts that are held until they are complete.

use super::{
    Front, Reply, ReplyInfo,
    live::LivePath,
    live_playlist::target,
    representation::{Negotiation, SelectedRepresentation, etag},
};
use crate::{
    http::{
        AnswerError, Kind,
        body::Body,
        render::{SegmentStream, is_begun},
        request::Request,
    },
    library::{LiveMedia, fingerprint},
};
use http::{HeaderValue, Method};
use millpond_media::Work;
use millpond_package::{
    MediaKind,
    live::{Edge, PartLookUp, SegmentNumber, Window},
};
use millpond_store::Permission;
use millpond_stream::live::{FoundPart, FoundSegment, LiveWindow, TransportError, TransportJob};
use std::sync::Arc;

/// Target durations for which a part may be late.
const LATE: u32 = 3;

impl Front {
    /// Answers a request for media of one run of a stream. It starts nothing: media of a run that is over are gone.
    ///
    /// # Errors
    /// There is no such media, or it is late.
    pub(super) async fn live_bytes(
        &self,
        path: &LivePath<'_>,
        (run, track, media): (&str, &str, LiveMedia),
        request: &Request,
        info: &mut ReplyInfo,
    ) -> Result<Reply, AnswerError> {
        info.kind = Kind::Segment;
        let known = match self.sources.manager().window_of_run(path.stream, run) {
            Some(window) => Some((window, media)),
            None => self.earlier(path, (run, track, media)).await?,
        };
        let (window, media) = known.ok_or_else(|| path.without(format!("the run {run} of the stream is over")))?;
        window.renew();
        let identity = fingerprint(format!("{run}/{track}/{media:?}").as_bytes());
        let track = path.track(&window, track)?;
        let body = match media {
            LiveMedia::Init(epoch) => {
                let init = window.init(track, epoch);
                Body::bytes(init.ok_or_else(|| path.without(format!("the track has no epoch {epoch}")))?)
            }
            LiveMedia::Part(segment, part) => {
                let place = Edge { segment: SegmentNumber(segment), part };
                self.live_part(path, &window, (track, place), info).await?
            }
            LiveMedia::Segment(number) => {
                self.live_segment(path, &window, (track, SegmentNumber(number)), request, info).await?
            }
            LiveMedia::SegmentAt(start) => {
                let number = self.live_number(path, &window, (track, start), info).await?;
                self.live_segment(path, &window, (track, number), request, info).await?
            }
            LiveMedia::Transport(number) => {
                self.live_transport_segment(path, &window, (track, SegmentNumber(number))).await?
            }
        };
        let kind = window.look(|window| window.tracks().get(track).map(|track| track.kind));
        let content_type = match (media, kind) {
            (LiveMedia::Transport(_), _) => "video/mp2t",
            (_, Some(MediaKind::Audio)) => "audio/mp4",
            _ => "video/mp4",
        };
        let selected = SelectedRepresentation {
            content_type: HeaderValue::from_static(content_type),
            cache_control: self.cache_control(path.place).made(true, &Permission::default()),
            etag: etag(identity),
            modified: None,
            more: Vec::new(),
            negotiation: Negotiation::Fixed,
            body,
        };
        Ok(selected.reply(request))
    }

    /// Returns the window of a stream with media of an earlier run on the disk, and the media by its number there. The stream need
    /// not run.
    async fn earlier(
        &self,
        path: &LivePath<'_>,
        (run, track, media): (&str, &str, LiveMedia),
    ) -> Result<Option<(Arc<LiveWindow>, LiveMedia)>, AnswerError> {
        let manager = self.sources.manager();
        let window = match (manager.window_with_past(path.stream), self.sources.live(path.stream)?) {
            (None, Some(source)) => manager.ended_window(&source).await,
            (window, _) => window,
        };
        let Some(window) = window else { return Ok(None) };
        let media = match media {
            // Numbers of segments on the disk are those of one run only.
            LiveMedia::Segment(_) => Some(media),
            LiveMedia::SegmentAt(start) => {
                let number = || window.stored_at(run, window.track(track)?, i64::try_from(start).ok()?);
                number().map(|number| LiveMedia::Segment(number.0))
            }
            _ => (window.run() == run).then_some(media),
        };
        Ok(media.map(|media| (window, media)))
    }

    /// Returns a part. The one that playlists hint at is held until it is complete (rfc8216bis 6.2.6).
    async fn live_part(
        &self,
        path: &LivePath<'_>,
        window: &LiveWindow,
        (track, place): (usize, Edge),
        info: &mut ReplyInfo,
    ) -> Result<Body, AnswerError> {
        let is_decided = |window: &Window| (window.part(track, place) != PartLookUp::Next).then_some(());
        self.held(path, window, (Some(track), target(window) * LATE), info, is_decided).await?;
        match window.part(track, place.segment, place.part) {
            FoundPart::Complete(part) => Ok(Body::chunks(part.bytes.iter().cloned())),
            FoundPart::Next | FoundPart::Unknown => {
                let Edge { segment: SegmentNumber(segment), part } = place;
                Err(path.without(format!("no playlist lists or announces part {part} of segment {segment}")))
            }
        }
    }

    /// Returns the segment that manifests list at a time. Where a later one than the newest is asked for, the refusal waits
    /// until a manifest lists one more: ffmpeg asks for the end of a timeline again and again, and loses its place where
    /// that succeeds before the manifest lists it.
    async fn live_number(
        &self,
        path: &LivePath<'_>,
        window: &LiveWindow,
        (track, start): (usize, u64),
        info: &mut ReplyInfo,
    ) -> Result<SegmentNumber, AnswerError> {
        let none = || path.without(format!("no manifest lists a segment at {start}"));
        let time = i64::try_from(start).map_err(|_| none())?;
        let look = |window: &Window| (window.segment_at(track, time), window.newest_start(track));
        let (number, newest) = window.look(look);
        if number.is_none() && newest.is_some_and(|newest| time > newest) {
            let lists_more = |window: &Window| (window.newest_start(track) > newest).then_some(());
            self.held(path, window, (Some(track), target(window) * LATE), info, lists_more).await?;
        }
        number.ok_or_else(none)
    }

    /// Returns a segment. One that is not complete is sent part by part; one that begins next is held until it does.
    async fn live_segment(
        &self,
        path: &LivePath<'_>,
        window: &Arc<LiveWindow>,
        (track, number): (usize, SegmentNumber),
        request: &Request,
        info: &mut ReplyInfo,
    ) -> Result<Body, AnswerError> {
        let none = || path.without(format!("no playlist lists segment {}", number.0));
        if window.segment(track, number) == FoundSegment::Next {
            let begun = |window: &Window| is_begun(window, track, number).then_some(());
            self.held(path, window, (Some(track), target(window)), info, begun).await.map_err(|_| none())?;
        }
        match window.segment(track, number) {
            FoundSegment::Begun { parts, is_closed: true } => {
                Ok(Body::chunks(parts.iter().flat_map(|part| part.bytes.iter().cloned())))
            }
            FoundSegment::Begun { .. } if request.method == Method::HEAD => Ok(Body::unmade()),
            FoundSegment::Begun { .. } => {
                let stream = SegmentStream::new(window.clone(), (track, number), target(window) * LATE);
                Ok(Body::stream(Box::new(stream)))
            }
            FoundSegment::Next => Err(none()),
            FoundSegment::Unknown => {
                let window = window.clone();
                let stored = tokio::task::spawn_blocking(move || window.stored(track, number)).await;
                stored.ok().flatten().map(Body::files).ok_or_else(none)
            }
        }
    }

    /// Returns a segment as a transport stream. Playlists list only complete ones, so nothing is waited for but the thread that
    /// makes it.
    async fn live_transport_segment(
        &self,
        path: &LivePath<'_>,
        window: &Arc<LiveWindow>,
        (track, number): (usize, SegmentNumber),
    ) -> Result<Body, AnswerError> {
        let pool = self.library.pool().clone();
        let run = |job: TransportJob| async move {
            let made = pool.run(&Work::unlimited(), job).await;
            made.unwrap_or_else(|why| Err(TransportError::NotRun(why.to_string())))
        };
        window.transport((track, number), run).await.map(Body::bytes).map_err(|error| match error {
            TransportError::Unknown => {
                path.without(format!("no playlist lists segment {} as a transport stream", number.0))
            }
            TransportError::Sample(error) => {
                AnswerError::Unreadable { asset: path.stream.to_owned(), why: error.to_string() }
            }
            TransportError::NoMemory(_) | TransportError::NotRun(_) => {
                AnswerError::Busy { path: path.stream.to_owned(), why: error.to_string() }
            }
        })
    }
}
