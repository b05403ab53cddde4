//! One rendition of a source: its playlist is read again and again, and its pieces are requested.

use super::{
    decryption::{BLOCK, Decryption},
    opening,
};
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
use millpond_package::hls_playlist::{
    self, SegmentRange,
    live::{Follower, LivePlaylist, Next, Piece, PlaylistRequest, SegmentKey, Turn},
};
use std::time::Duration;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};
use url::Url;

/// Time for which requests for the playlist may fail, in target durations, and the least such time.
const FAILING: (u32, Duration) = (2, Duration::from_secs(4));
/// Pause before a piece is requested again.
const AGAIN: Duration = Duration::from_millis(500);
/// Target durations for which a server may let a request wait (RFC 8216bis 6.2.5.2).
const BLOCKED: u32 = 3;

/// A playlist with its URL.
pub(super) struct Reading {
    pub(super) url: Url,
    pub(super) text: String,
}

/// A rendition, over all sessions with its source.
pub(in crate::reception::pulled) struct HlsRendition {
    /// Language that the source states.
    language: Option<String>,
    url: Url,
    /// URL of the last reading, from which URIs count.
    base: Url,
    follower: Follower,
    /// The first reading, where it is known already.
    first: Option<Reading>,
    /// The last key, with its URL.
    key: Option<(Url, [u8; BLOCK])>,
}

impl Rendition for HlsRendition {
    async fn open(source: &PulledSource, fetcher: &Fetcher, _: Stopwatch) -> Result<Vec<Self>, SourceError> {
        opening::open(source, fetcher).await
    }

    fn following(self, before: Self) -> Self {
        let follower = if before.url == self.url { before.follower.reopened() } else { before.follower.succeeded() };
        Self { follower, ..self }
    }

    fn language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    async fn run(&mut self, fetcher: &Fetcher, events: &mpsc::Sender<Event>, watch: Stopwatch) -> SourceError {
        // Time since which requests for the playlist fail.
        let mut failing: Option<Duration> = None;
        loop {
            let result = match self.follower.next() {
                Next::Ended => {
                    return error(
                        SourceErrorKind::Unreachable,
                        &self.url,
                        "the source has ended its playlist (#EXT-X-ENDLIST)".to_owned(),
                    );
                }
                Next::Piece(piece) => match self.piece(&piece, fetcher, events).await {
                    Ok(()) => continue,
                    Err(Closed) => std::future::pending().await,
                },
                Next::Playlist(request) => self.reload(request, fetcher, watch).await,
            };
            let now = watch.now();
            match result {
                Ok(()) => failing = None,
                Err(Failure::Final(error)) => return error,
                Err(Failure::Passing(error)) => {
                    let since = *failing.get_or_insert(now);
                    let target = self.follower.playlist().map_or(Duration::ZERO, |playlist| playlist.target);
                    let is_first = self.follower.playlist().is_none();
                    if is_first || now > since + target.saturating_mul(FAILING.0).max(FAILING.1) {
                        return error;
                    }
                    tracing::info!(url = %error.address, %error, "the playlist of a source was not read: it is requested again");
                    sleep((target / 2).max(AGAIN)).await;
                }
            }
            if let Some(still) = self.follower.stands_still(now) {
                let words = format!("the playlist stands still: no new segment for {:.1} s", still.as_secs_f64());
                return error(SourceErrorKind::TimedOut, &self.url, words);
            }
        }
    }
}

impl HlsRendition {
    /// Creates a rendition, whose playlist may have been read already.
    pub(super) fn new((url, language): (Url, Option<String>), first: Option<Reading>) -> Self {
        Self { language, base: url.clone(), url, follower: Follower::default(), first, key: None }
    }

    /// Requests the playlist.
    async fn reload(&mut self, request: PlaylistRequest, fetcher: &Fetcher, watch: Stopwatch) -> Result<(), Failure> {
        watch.sleep_until(Some(request.at)).await;
        let asked = watch.now();
        let reading = match self.first.take() {
            Some(first) => first,
            None => {
                let target = self.follower.playlist().map_or(Duration::ZERO, |playlist| playlist.target);
                let longer = request.awaits.map_or(Duration::ZERO, |_| target.saturating_mul(BLOCKED));
                read(fetcher, with_directives(&self.url, request), longer).await.map_err(Failure::Passing)?
            }
        };
        let playlist = LivePlaylist::parse(&reading.text).map_err(|why| {
            Failure::Passing(error(
                SourceErrorKind::Protocol,
                &reading.url,
                format!("the playlist can't be read: {why}"),
            ))
        })?;
        if self.follower.playlist().is_none() && playlist.has_ended {
            let words = "the playlist has ended (#EXT-X-ENDLIST), so it is a stored title and no live stream: write its folder as a place \
                         of http or https";
            return Err(Failure::Final(error(SourceErrorKind::NoMedia, &reading.url, words.to_owned())));
        }
        // Redirects may lead to another folder, from which URIs count.
        self.base = reading.url;
        let turn = self.follower.take(playlist, asked, watch.now());
        self.tell(turn);
        Ok(())
    }

    fn tell(&self, turn: Turn) {
        let source = millpond_store::without_secrets(&self.url);
        match turn {
            Turn::Follows => {}
            Turn::Skipped(segments) => {
                tracing::warn!(
                    source,
                    segments,
                    "segments of a source are skipped: they had left the playlist, or were too far from its end"
                );
            }
            Turn::Anew { expected, end } => {
                tracing::warn!(
                    source,
                    expected,
                    end,
                    "the playlist of a source begins anew: its segments do not follow those before"
                );
            }
        }
    }

    /// Requests a piece, and gives it.
    async fn piece(&mut self, piece: &Piece, fetcher: &Fetcher, events: &mpsc::Sender<Event>) -> Result<(), Closed> {
        let outcome = match piece.is_gap {
            true => {
                Err(error(SourceErrorKind::NotFound, &self.base, "it is a gap in the playlist (#EXT-X-GAP)".to_owned()))
            }
            false => self.request(piece, fetcher, events).await?,
        };
        match outcome {
            Ok(()) => self.follower.taken(),
            Err(why) => {
                tracing::warn!(
                    url = why.address,
                    segment = piece.number,
                    why = why.words,
                    "a segment of a source is missing"
                );
                self.follower.missed();
                send(events, Event::Missed { why: format!("segment {}: {}", piece.number, why.words) }).await?;
            }
        }
        Ok(())
    }

    /// Gives a piece as it arrives. An error before its first bytes is tried once more.
    async fn request(
        &mut self,
        piece: &Piece,
        fetcher: &Fetcher,
        events: &mpsc::Sender<Event>,
    ) -> Result<Result<(), SourceError>, Closed> {
        let opened = match self.open(piece, fetcher).await {
            Err(error) if !matches!(error.kind, SourceErrorKind::NotFound | SourceErrorKind::Protocol) => {
                sleep_until(Instant::now() + AGAIN).await;
                self.open(piece, fetcher).await
            }
            opened => opened,
        };
        let Opened { init, mut decryption, mut segment } = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let Piece { stretch, is_torn, .. } = *piece;
        let (dating, offset) = (piece.date.map(Dating::First), Duration::ZERO);
        send(events, Event::Begin { stretch, dating, offset, is_torn, init }).await?;
        let result = loop {
            match segment.next().await {
                Ok(Some(bytes)) => {
                    let bytes = decryption.as_mut().map_or(bytes.clone(), |decryption| decryption.push(&bytes));
                    send(events, Event::Bytes(bytes)).await?;
                }
                Ok(None) => match decryption.take().map(Decryption::finish) {
                    None => break Ok(()),
                    Some(Ok(bytes)) => {
                        send(events, Event::Bytes(bytes)).await?;
                        break Ok(());
                    }
                    Some(Err(words)) => break Err(segment.error(words)),
                },
                Err(error) => break Err(error),
            }
        };
        send(events, Event::End { is_broken: result.is_err() }).await?;
        Ok(result)
    }

    /// Opens a piece, after its init section was read.
    async fn open(&mut self, piece: &Piece, fetcher: &Fetcher) -> Result<Opened, SourceError> {
        let decryption = match &piece.key {
            None => None,
            Some(_) if piece.is_part || piece.has_map => {
                let words = "the segment is encrypted (AES-128), and a part or fragmented MP4: expected a whole transport stream";
                return Err(error(SourceErrorKind::Protocol, &self.base, words.to_owned()));
            }
            Some(key) => {
                let bytes = self.key(key, fetcher).await?;
                Some(Decryption::new(bytes, key.iv, piece.number))
            }
        };
        let init = match &piece.init {
            None => None,
            Some(section) => {
                let SegmentRange { uri, bytes, .. } = &**section;
                Some(init(fetcher, fetcher.resolve(&self.base, uri)?, *bytes).await?)
            }
        };
        let url = fetcher.resolve(&self.base, &piece.range.uri)?;
        let segment = Segment::open(fetcher, url, piece.range.bytes).await?;
        Ok(Opened { init, decryption, segment })
    }

    /// Returns the bytes of a key. The last one is kept.
    async fn key(&mut self, key: &SegmentKey, fetcher: &Fetcher) -> Result<[u8; BLOCK], SourceError> {
        let url = fetcher.resolve(&self.base, &key.uri)?;
        if let Some((_, known)) = self.key.as_ref().filter(|(of, _)| *of == url) {
            return Ok(*known);
        }
        let (_, bytes) = fetcher.read(url.clone(), None, (BLOCK, Duration::ZERO)).await?;
        let found = bytes.len();
        let bytes = bytes.try_into().map_err(|_| {
            error(SourceErrorKind::Protocol, &url, format!("a key of {found} bytes, expected {BLOCK} bytes"))
        })?;
        self.key = Some((url, bytes));
        Ok(bytes)
    }
}

/// A piece that arrives.
struct Opened {
    init: Option<Bytes>,
    decryption: Option<Decryption>,
    segment: Segment,
}

/// A failure of a request for the playlist.
enum Failure {
    /// It may pass.
    Passing(SourceError),
    /// Another request would fail too.
    Final(SourceError),
}

/// Reads a playlist.
///
/// # Errors
/// It can't be read, or is no text.
pub(super) async fn read(fetcher: &Fetcher, url: Url, longer: Duration) -> Result<Reading, SourceError> {
    let (url, bytes) = fetcher.read(url, None, (hls_playlist::MOST_BYTES, longer)).await?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Reading { url, text })
}

/// Adds delivery directives to the URL of a playlist (RFC 8216bis 6.2.5).
fn with_directives(url: &Url, request: PlaylistRequest) -> Url {
    let mut url = url.clone();
    if let Some((number, part)) = request.awaits {
        let mut query = url.query_pairs_mut();
        query.append_pair("_HLS_msn", &number.to_string());
        if let Some(part) = part {
            query.append_pair("_HLS_part", &part.to_string());
        }
    }
    url
}
