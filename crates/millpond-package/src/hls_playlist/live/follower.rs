//! The client's side of a live media playlist: what is requested next.

use super::{LivePart, LivePlaylist, LiveSegment, SegmentKey};
use crate::hls_playlist::SegmentRange;
use std::{sync::Arc, time::Duration};

/// Target durations before the end at which playback begins, where the playlist does not tell (RFC 8216bis 6.3.3).
const HOLD_BACK: u32 = 3;
/// Part targets before the end at which playback begins with parts, where the playlist does not tell.
const PART_HOLD_BACK: u32 = 3;
/// Media behind the position, beyond the distance of the start, after which it moves to the live edge.
const MOST_BEHIND: Duration = Duration::from_secs(30);
/// Segments by which a cached reading may be older than the one before.
const STALE: u64 = 3;
/// Target durations without a new segment after which the playlist stands still, and the least such time.
const STILL: (u32, Duration) = (3, Duration::from_secs(6));
/// Shortest time between two requests for the playlist that do not wait at the server.
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// Follows a live media playlist. Times count from any moment.
///
/// Call [`next`](Self::next), do what it says, and tell the outcome: [`take`](Self::take) for a reading of the playlist,
/// [`taken`](Self::taken) or [`missed`](Self::missed) for a piece.
#[derive(Debug, Default)]
pub struct Follower {
    playlist: Option<LivePlaylist>,
    position: Option<Position>,
    /// Number and URI of the last piece, and whether it was a part.
    last: Option<(u64, String, bool)>,
    /// Number of the present stretch, and the segment that it was counted with.
    stretch: u64,
    counted: Option<u64>,
    /// Stretch and init section of the pieces before.
    init: Option<(u64, Arc<SegmentRange>)>,
    /// Whether pieces before the next one are missing.
    is_torn: bool,
    /// Time of the last request for the playlist.
    asked: Duration,
    /// Whether its answer had news.
    has_news: bool,
    /// Time of the last news.
    news: Duration,
}

/// The next piece: a segment, and one of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    number: u64,
    part: usize,
}

/// The next request of a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Request a piece.
    Piece(Piece),
    /// Request the playlist.
    Playlist(PlaylistRequest),
    /// Nothing follows: the playlist has ended.
    Ended,
}

/// A request for the playlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaylistRequest {
    /// Earliest time of the request.
    pub at: Duration,
    /// Number of the segment, and the part, that the server waits for (`_HLS_msn`, `_HLS_part`); `None` for an answer at once.
    pub awaits: Option<(u64, Option<usize>)>,
}

/// A segment or a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of its segment.
    pub number: u64,
    /// Number of its stretch. Times of different stretches have nothing to do with each other.
    pub stretch: u64,
    /// Its bytes.
    pub range: SegmentRange,
    /// Bytes of the init section, where it is not that of the piece before.
    pub init: Option<Arc<SegmentRange>>,
    /// Key that decrypts it.
    pub key: Option<Arc<SegmentKey>>,
    /// Time of its first frame since the Unix epoch, where stated.
    pub date: Option<Duration>,
    /// Duration.
    pub duration: Duration,
    /// Whether its bytes are missing at the server.
    pub is_gap: bool,
    /// Whether pieces before it are missing.
    pub is_torn: bool,
    /// Whether it is a part of a segment.
    pub is_part: bool,
    /// Whether it has an init section.
    pub has_map: bool,
}

/// Relation of a playlist that was read to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The pieces follow those before.
    Follows,
    /// So many segments had left the playlist, or were too far from its end, and are skipped.
    Skipped(u64),
    /// The playlist is another one: its numbers went back, or name other segments. A stretch begins.
    Anew {
        /// Number of the segment that was expected.
        expected: u64,
        /// Number of the last segment, plus one.
        end: u64,
    },
}

impl Follower {
    /// Begins a stretch with the next piece, and forgets the reading. The source is opened again.
    #[must_use]
    pub fn reopened(self) -> Self {
        let Self { position, last, stretch, .. } = self;
        Self { position, last, stretch: stretch.saturating_add(1), is_torn: true, ..Self::default() }
    }

    /// Begins another playlist whose stretches follow those of this one.
    #[must_use]
    pub fn succeeded(&self) -> Self {
        Self { stretch: self.stretch.saturating_add(1), ..Self::default() }
    }

    /// Takes a reading of the playlist, which was requested at `asked`.
    pub fn take(&mut self, playlist: LivePlaylist, asked: Duration, now: Duration) -> Turn {
        let known = self.playlist.as_ref().map(extent);
        let is_first = known.is_none();
        self.has_news = known != Some(extent(&playlist));
        if self.has_news {
            self.news = now;
        }
        self.asked = asked;
        let turn = match self.position {
            None => {
                self.start(&playlist, is_first);
                Turn::Follows
            }
            Some(position) if self.is_another(&playlist, position) => {
                self.stretch = self.stretch.saturating_add(1);
                self.start(&playlist, false);
                Turn::Anew { expected: position.number, end: playlist.end() }
            }
            Some(position) => self.go_on(&playlist, position),
        };
        self.playlist = Some(playlist);
        self.settle();
        turn
    }

    /// Whether a reading is of another stream than the readings before.
    fn is_another(&self, playlist: &LivePlaylist, position: Position) -> bool {
        if position.number > playlist.end().saturating_add(STALE) {
            return true;
        }
        let Some((number, uri, is_part)) = &self.last else { return false };
        let Some(segment) = playlist.segment(*number) else { return false };
        match is_part {
            false => segment.whole.as_ref().is_some_and(|whole| whole.range.uri != *uri),
            true => !segment.parts.is_empty() && segment.parts.iter().all(|part| part.range.uri != *uri),
        }
    }

    fn go_on(&mut self, playlist: &LivePlaylist, position: Position) -> Turn {
        let left = |segment: &&LiveSegment| segment.number >= position.number;
        let media: Duration = playlist.segments.iter().filter(left).map(LiveSegment::duration).sum();
        let missing = playlist.first.saturating_sub(position.number);
        if media > hold_back(playlist).saturating_add(MOST_BEHIND) {
            self.start(playlist, false);
            let number = self.position.map_or(position.number, |now| now.number);
            return Turn::Skipped(number.saturating_sub(position.number));
        }
        if missing > 0 {
            self.is_torn = true;
            self.position = Some(Position { number: playlist.first, part: 0 });
            return Turn::Skipped(missing);
        }
        Turn::Follows
    }

    /// Chooses the first piece: the last one that is far enough from the end.
    fn start(&mut self, playlist: &LivePlaylist, is_first: bool) {
        let wanted = hold_back(playlist);
        let uses_parts = playlist.delivery.part_target.is_some();
        let mut distance = Duration::ZERO;
        let mut found = None;
        for segment in playlist.segments.iter().rev() {
            let whole = segment.duration();
            if uses_parts {
                let mut behind = distance;
                for (part, listed) in segment.parts.iter().enumerate().rev() {
                    behind = behind.saturating_add(listed.duration);
                    let can_begin = listed.is_independent || (part == 0 && segment.whole.is_none());
                    if found.is_none() && can_begin && behind >= wanted {
                        found = Some((segment, part));
                    }
                }
            }
            distance = distance.saturating_add(whole);
            if found.is_none() && distance >= wanted {
                found = Some((segment, 0));
            }
            if found.is_some() {
                break;
            }
        }
        let Some((segment, part)) = found.or_else(|| Some((playlist.segments.first()?, 0))) else {
            self.position = None;
            return;
        };
        if is_first && self.stretch == 0 {
            self.stretch = segment.discontinuities;
        }
        self.counted = Some(segment.number);
        self.is_torn = true;
        self.position = Some(Position { number: segment.number, part });
    }

    /// Moves the position from the end of a finished segment to the next one.
    fn settle(&mut self) {
        let (Some(position), Some(playlist)) = (&mut self.position, &self.playlist) else { return };
        let Some(segment) = playlist.segment(position.number).filter(|segment| segment.whole.is_some()) else { return };
        if position.part > 0 && position.part >= segment.parts.len() {
            // Parts that are not listed any more may be missing.
            self.is_torn |= segment.parts.is_empty();
            *position = Position { number: position.number.saturating_add(1), part: 0 };
        }
    }

    /// Returns what is to be done.
    #[must_use]
    pub fn next(&self) -> Next {
        if let Some(piece) = self.piece() {
            return Next::Piece(piece);
        }
        let Some(playlist) = &self.playlist else {
            return Next::Playlist(PlaylistRequest { at: Duration::ZERO, awaits: None });
        };
        if playlist.has_ended {
            return Next::Ended;
        }
        Next::Playlist(self.reload(playlist))
    }

    /// When the playlist is requested again (RFC 8216bis 6.3.4, 6.2.5.2).
    fn reload(&self, playlist: &LivePlaylist) -> PlaylistRequest {
        let LivePlaylist { target, delivery, .. } = playlist;
        if let Some(position) = self.position.filter(|_| delivery.can_block && self.has_news) {
            let part = delivery.part_target.map(|_| position.part);
            return PlaylistRequest { at: self.asked, awaits: Some((position.number, part)) };
        }
        let pace = delivery.part_target.unwrap_or(*target).min(*target);
        let wait = if self.has_news { pace } else { pace / 2 };
        PlaylistRequest { at: self.asked.saturating_add(wait.max(LEAST_WAIT)), awaits: None }
    }

    fn piece(&self) -> Option<Piece> {
        let (position, playlist) = (self.position?, self.playlist.as_ref()?);
        let segment = playlist.segment(position.number)?;
        let (part, is_part): (&LivePart, bool) = match &segment.whole {
            Some(whole) if position.part == 0 => (whole, false),
            _ => (segment.parts.get(position.part)?, true),
        };
        let is_next_stretch = segment.begins && self.counted != Some(segment.number);
        let stretch = self.stretch.saturating_add(is_next_stretch.into());
        let init = segment.map.as_ref().filter(|map| {
            self.init
                .as_ref()
                .is_none_or(|(of, known)| *of != stretch || (&known.uri, known.bytes) != (&map.uri, map.bytes))
        });
        Some(Piece {
            number: segment.number,
            stretch,
            range: part.range.clone(),
            init: init.cloned(),
            key: segment.key.clone(),
            date: segment.date.filter(|_| position.part == 0),
            duration: part.duration,
            is_gap: part.is_gap,
            is_torn: self.is_torn,
            is_part,
            has_map: segment.map.is_some(),
        })
    }

    /// Notes that the piece that [`next`](Self::next) told was received.
    pub fn taken(&mut self) {
        if let Some(piece) = self.piece() {
            let segment = self.playlist.as_ref().and_then(|playlist| playlist.segment(piece.number));
            if let Some(map) = segment.and_then(|segment| segment.map.clone()) {
                self.init = Some((piece.stretch, map));
            }
            self.is_torn = false;
            self.pass(&piece);
        }
    }

    /// Notes that the piece that [`next`](Self::next) told is missing.
    pub fn missed(&mut self) {
        if let Some(piece) = self.piece() {
            self.is_torn = true;
            self.pass(&piece);
        }
    }

    fn pass(&mut self, piece: &Piece) {
        let Some(position) = &mut self.position else { return };
        self.stretch = piece.stretch;
        self.counted = Some(piece.number);
        let segment = self.playlist.as_ref().and_then(|playlist| playlist.segment(piece.number));
        let is_whole = position.part == 0 && segment.is_some_and(|segment| segment.whole.is_some());
        self.last = Some((piece.number, piece.range.uri.clone(), !is_whole));
        match is_whole {
            true => *position = Position { number: piece.number.saturating_add(1), part: 0 },
            false => position.part += 1,
        }
        self.settle();
    }

    /// Returns the time for which the playlist has had no news, where it stands still.
    #[must_use]
    pub fn stands_still(&self, now: Duration) -> Option<Duration> {
        let playlist = self.playlist.as_ref().filter(|_| self.piece().is_none())?;
        let still = now.saturating_sub(self.news);
        (still > playlist.target.saturating_mul(STILL.0).max(STILL.1)).then_some(still)
    }

    /// Returns the last reading.
    #[must_use]
    pub fn playlist(&self) -> Option<&LivePlaylist> {
        self.playlist.as_ref()
    }
}

/// Distance from the end at which playback begins.
fn hold_back(playlist: &LivePlaylist) -> Duration {
    let LivePlaylist { target, delivery, .. } = playlist;
    let usual = delivery.hold_back.unwrap_or(target.saturating_mul(HOLD_BACK));
    match delivery.part_target {
        Some(part) => delivery.part_hold_back.unwrap_or(part.saturating_mul(PART_HOLD_BACK)).min(usual),
        None => usual,
    }
}

/// Numbers that change when something is added to a playlist, or when it is another one.
fn extent(playlist: &LivePlaylist) -> (u64, u64, usize, bool) {
    let last = playlist.segments.last();
    let parts = last.map_or(0, |last| last.parts.len() + usize::from(last.whole.is_some()));
    (playlist.first, playlist.end(), parts, playlist.has_ended)
}
