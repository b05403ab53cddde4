//! Media of running streams: init segments, segments, and parts that are held until they are complete.

use super::{
    super::{
        Context, Front, Reply, ReplyInfo,
        reply::{Negotiation, SelectedRepresentation, etag},
        target::LiveTarget,
    },
    playlist::{copied_window, held, target},
    title,
};
use crate::{
    http::{
        AnswerError, Kind,
        render::{SegmentStream, is_begun},
    },
    library::{LibraryError, LiveMedia, fingerprint},
};
use http::{HeaderValue, Method};
use millpond_http::body::Body;
use millpond_media::Work;
use millpond_package::{
    MediaKind,
    live::{Edge, PartLookUp, SegmentNumber, Window},
};
use millpond_store::Permission;
use millpond_stream::live::{FoundPart, FoundSegment, LiveWindow, TransportError, TransportJob};
use std::{sync::Arc, time::Duration};

/// Target durations for which a part may be late.
const LATE: u32 = 3;

/// Longest time by which a copy is behind the window that it follows: that of the probes after which it follows another node.
const BEHIND: Duration = Duration::from_secs(6);

/// Segments before the newest one that players may still begin to fetch: those of which the node before may have listed more.
const LISTED_LATELY: u64 = 3;

/// Most segments that a copy gets in that time.
const MOST_BEHIND: u64 = 8;

/// Media of one run of a stream.
#[derive(Clone, Copy)]
pub(super) struct OfRun<'a> {
    /// Name of the run.
    pub(super) run: &'a str,
    /// Name of the track.
    pub(super) track: &'a str,
    /// The media.
    pub(super) media: LiveMedia,
}

/// Answers a request for media of one run of a stream. It starts nothing: media of a run that is over are gone.
///
/// # Errors
/// There is no such media, or it is late.
pub(super) async fn answer(
    context: &Context<'_>,
    live: &LiveTarget,
    of_run: OfRun<'_>,
    info: &mut ReplyInfo,
) -> Result<Reply, AnswerError> {
    let front = context.front;
    let OfRun { run, track, media } = of_run;
    info.kind = Kind::Segment;
    let of_known_run = || front.sources.manager().window_of_run(&live.stream, run);
    let mut known = of_known_run();
    let copies = front.sources.copies().filter(|_| live.is_source);
    if (known.is_none() || copies.is_some_and(|copies| copies.has_takeovers()))
        && copied_window(context, live, false).await.is_some()
    {
        known = of_known_run();
    }
    let known = match known {
        Some(window) => Some((window, media)),
        None => earlier(front, live, of_run).await?,
    };
    let Some((window, media)) = known else {
        if copies.is_some_and(|copies| copies.is_elsewhere(&live.stream)) {
            return Err(AnswerError::Moved(live.stream.to_string()));
        }
        return Err(live.without(match title::is_known(front, live).await {
            true => format!("the title has another version than {run}"),
            false => format!("the run {run} of the stream is over"),
        }));
    };
    window.renew();
    let identity = fingerprint(format!("{run}/{track}/{media:?}").as_bytes());
    let track = live.track(&window, track)?;
    if window.is_copy() {
        catch_up(front, live, &window, (track, media), info).await;
    }
    let body = body(context, live, &window, (track, media), info).await.map_err(|error| match error {
        // The node that had the stream before may have listed it. Players give up what is 404, and ask again for this.
        AnswerError::Library(LibraryError::NoResource { .. }) if is_of_before(&window, track, media) => {
            AnswerError::Moved(live.stream.to_string())
        }
        error => error,
    })?;
    let kind = window.look(|window| window.tracks().get(track).map(|track| track.kind));
    let content_type = match (media, kind) {
        (LiveMedia::Transport(_), _) => "video/mp2t",
        (LiveMedia::Text(..), _) => "text/vtt; charset=utf-8",
        (_, Some(MediaKind::Audio)) => "audio/mp4",
        (_, Some(MediaKind::Text)) => "application/mp4",
        _ => "video/mp4",
    };
    let selected = SelectedRepresentation {
        content_type: HeaderValue::from_static(content_type),
        cache_control: front.cache_control(live.place).made(true, &Permission::default()),
        etag: etag(identity),
        modified: None,
        more: Vec::new(),
        negotiation: Negotiation::Fixed,
        body,
    };
    Ok(selected.reply(context.request))
}

/// Whether another node may have listed media that this one lacks: the last ones of its part of the run.
fn is_of_before(window: &LiveWindow, track: usize, media: LiveMedia) -> bool {
    if !window.is_of_another() {
        return false;
    }
    window.look(|window| match media {
        LiveMedia::Init(epoch) => window.epochs().map(|epoch| epoch.number).max().is_none_or(|last| epoch == last + 1),
        LiveMedia::Part(number, _)
        | LiveMedia::Segment(number)
        | LiveMedia::Transport(number)
        | LiveMedia::Text(_, number) => window.last_closed(track).is_none_or(|last| is_near(number, last)),
        LiveMedia::SegmentAt(start) => {
            let start = i64::try_from(start).unwrap_or(i64::MAX);
            window.newest_start(track).is_none_or(|newest| newest < start)
        }
    })
}

/// Whether players may begin to fetch a segment, by a playlist of the node that had the stream before. `last` is the last complete one here.
const fn is_near(number: u64, last: SegmentNumber) -> bool {
    last.0 <= number.saturating_add(LISTED_LATELY) && number <= last.0.saturating_add(MOST_BEHIND)
}

/// Returns the bytes of media of a window.
///
/// # Errors
/// There is no such media, or it is late.
async fn body(
    context: &Context<'_>,
    live: &LiveTarget,
    window: &Arc<LiveWindow>,
    (track, media): (usize, LiveMedia),
    info: &mut ReplyInfo,
) -> Result<Body, AnswerError> {
    let front = context.front;
    Ok(match media {
        LiveMedia::Init(epoch) => {
            let init = window.init(track, epoch);
            Body::bytes(init.ok_or_else(|| live.without(format!("the track has no epoch {epoch}")))?)
        }
        LiveMedia::Part(segment, part) => {
            let place = Edge { segment: SegmentNumber(segment), part };
            held_part(front, live, window, (track, place), info).await?
        }
        LiveMedia::Segment(number) => segment(context, live, window, (track, SegmentNumber(number)), info).await?,
        LiveMedia::SegmentAt(start) => {
            let number = number_at(front, live, window, (track, start), info).await?;
            segment(context, live, window, (track, number), info).await?
        }
        LiveMedia::Transport(number) => transport_segment(front, live, window, (track, SegmentNumber(number))).await?,
        LiveMedia::Text(container, number) => {
            let window = window.clone();
            let made =
                tokio::task::spawn_blocking(move || window.webvtt(track, SegmentNumber(number), container)).await;
            let text = made.ok().flatten();
            Body::bytes(text.ok_or_else(|| live.without(format!("no playlist lists subtitles {number}")))?.into())
        }
    })
}

/// Waits until a copy has media that another node may have listed already, but not for long.
async fn catch_up(
    front: &Front,
    live: &LiveTarget,
    window: &LiveWindow,
    (track, media): (usize, LiveMedia),
    info: &mut ReplyInfo,
) {
    let follows = |last: SegmentNumber, number: u64| last.0 < number && number - last.0 <= MOST_BEHIND;
    let is_next = |window: &Window, number| window.last_closed(track).is_some_and(|last| follows(last, number));
    let lacks = |window: &Window| match media {
        LiveMedia::Init(epoch) => window.init(track, epoch).is_none(),
        LiveMedia::Part(segment, part) => window.is_ahead(track, Edge { segment: SegmentNumber(segment), part }),
        LiveMedia::SegmentAt(start) => {
            let start = i64::try_from(start).unwrap_or(i64::MAX);
            window.newest_start(track).is_some_and(|newest| newest < start)
        }
        LiveMedia::Transport(number) | LiveMedia::Text(_, number) => is_next(window, number),
        // The next one is sent while it is made.
        LiveMedia::Segment(number) => window.next_segment(track).is_some_and(|next| follows(next, number)),
    };
    let has = |window: &Window| (!lacks(window)).then_some(());
    // Without it, the answer is as for a window that is no copy.
    let _ = held(front, live, window, (Some(track), BEHIND), info, has).await;
}

/// Returns the window of a stream with media of an earlier run on the disk, and the media by its number there. The stream need
/// not run.
async fn earlier(
    front: &Front,
    live: &LiveTarget,
    OfRun { run, track, media }: OfRun<'_>,
) -> Result<Option<(Arc<LiveWindow>, LiveMedia)>, AnswerError> {
    let manager = front.sources.manager();
    let window = match (manager.window_with_past(&live.stream), front.sources.live(&live.stream)?) {
        (None, Some(source)) => manager.ended_window(&source).await,
        (window, _) => window,
    };
    let Some(window) = window else { return Ok(None) };
    let media = match media {
        // Numbers of segments on the disk are those of one run only.
        LiveMedia::Segment(_) | LiveMedia::Text(..) => Some(media),
        LiveMedia::SegmentAt(start) => {
            let number = || window.stored_at(run, window.track(track)?, i64::try_from(start).ok()?);
            number().map(|number| LiveMedia::Segment(number.0))
        }
        _ => (window.run() == run).then_some(media),
    };
    Ok(media.map(|media| (window, media)))
}

/// Returns a part. The one that playlists hint at is held until it is complete (rfc8216bis 6.2.6).
async fn held_part(
    front: &Front,
    live: &LiveTarget,
    window: &LiveWindow,
    (track, place): (usize, Edge),
    info: &mut ReplyInfo,
) -> Result<Body, AnswerError> {
    let is_decided = |window: &Window| (window.part(track, place) != PartLookUp::Next).then_some(());
    held(front, live, window, (Some(track), target(window) * LATE), info, is_decided).await?;
    match window.part(track, place.segment, place.part) {
        FoundPart::Complete(part) => Ok(Body::chunks(part.bytes.iter().cloned())),
        FoundPart::Next | FoundPart::Unknown => {
            let Edge { segment: SegmentNumber(segment), part } = place;
            Err(live.without(format!("no playlist lists or announces part {part} of segment {segment}")))
        }
    }
}

/// Returns the segment that manifests list at a time. Where a later one than the newest is asked for, the refusal waits
/// until a manifest lists one more: ffmpeg asks for the end of a timeline again and again, and loses its place where
/// that succeeds before the manifest lists it.
async fn number_at(
    front: &Front,
    live: &LiveTarget,
    window: &LiveWindow,
    (track, start): (usize, u64),
    info: &mut ReplyInfo,
) -> Result<SegmentNumber, AnswerError> {
    let none = || live.without(format!("no manifest lists a segment at {start}"));
    let time = i64::try_from(start).map_err(|_| none())?;
    let look = |window: &Window| (window.segment_at(track, time), window.newest_start(track));
    let (number, newest) = window.look(look);
    if number.is_none() && newest.is_some_and(|newest| time > newest) {
        let lists_more = |window: &Window| (window.newest_start(track) > newest).then_some(());
        held(front, live, window, (Some(track), target(window) * LATE), info, lists_more).await?;
    }
    number.ok_or_else(none)
}

/// Returns a segment. One that is not complete is sent part by part; one that begins next is held until it does.
async fn segment(
    context: &Context<'_>,
    live: &LiveTarget,
    window: &Arc<LiveWindow>,
    (track, number): (usize, SegmentNumber),
    info: &mut ReplyInfo,
) -> Result<Body, AnswerError> {
    let Context { front, request, .. } = *context;
    let none = || live.without(format!("no playlist lists segment {}", number.0));
    if window.segment(track, number) == FoundSegment::Next {
        let begun = |window: &Window| is_begun(window, track, number).then_some(());
        held(front, live, window, (Some(track), target(window)), info, begun).await.map_err(|_| none())?;
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
async fn transport_segment(
    front: &Front,
    live: &LiveTarget,
    window: &Arc<LiveWindow>,
    (track, number): (usize, SegmentNumber),
) -> Result<Body, AnswerError> {
    let pool = front.library.pool().clone();
    let run = |job: TransportJob| async move {
        let made = pool.run(&Work::unlimited(), job).await;
        made.unwrap_or_else(|why| Err(TransportError::NotRun(why.to_string())))
    };
    window.transport((track, number), run).await.map(Body::bytes).map_err(|error| match error {
        TransportError::Unknown => {
            live.without(format!("no playlist lists segment {} as a transport stream", number.0))
        }
        TransportError::Sample(error) => {
            AnswerError::Unreadable { asset: live.stream.to_string(), why: error.to_string() }
        }
        TransportError::NoMemory(_) | TransportError::NotRun(_) => {
            AnswerError::Busy { path: live.stream.to_string(), why: error.to_string() }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_near_the_end_of_the_node_before_are_asked_for_again() {
        let near: Vec<u64> = (0..200).filter(|number| is_near(*number, SegmentNumber(100))).collect();
        assert_eq!(near, (97..=108).collect::<Vec<_>>(), "others are gone, or never were listed");
        assert!(is_near(u64::MAX, SegmentNumber(u64::MAX)) && is_near(0, SegmentNumber(0)));
    }
}
