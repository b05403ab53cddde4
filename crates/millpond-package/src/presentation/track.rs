//! One track as players see it.

use crate::{
    object::ObjectIndex,
    plan::ObjectRange,
    presentation::{Sidecar, counters::TsLayout, flac_track::FlacTrack, iframes::IFrames, selection::of_movie},
    timeline::{
        Timed, Timeline,
        bandwidth::Bandwidth,
        outlined::Outlined,
        scan::Facts,
        segmentation::{SegmentInfo, Segments, SyncPoint},
    },
};
use bytes::Bytes;
use millpond_media::{
    Sample,
    codec::Codec,
    movie::{Movie, Track, TrackKind},
    protection::Protection,
    units::ByteRange,
};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

/// Texts before a segment among which those are searched that are still shown.
const MOST_BEFORE: u32 = 1024;

/// Kind of a presented track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MediaKind {
    /// Video: `v1`, `v2` ... by rising bandwidth.
    Video,
    /// Audio: `a1`, `a2` ...
    Audio,
    /// Subtitles and captions: `s1`, `s2` ...
    Text,
}

impl MediaKind {
    pub(crate) const fn letter(self) -> char {
        match self {
            Self::Video => 'v',
            Self::Audio => 'a',
            Self::Text => 's',
        }
    }
}

/// One track of a presentation.
#[derive(Debug)]
pub struct PresentedTrack {
    pub(crate) name: String,
    pub(crate) kind: MediaKind,
    pub(crate) content: Content,
    pub(crate) segments: Segments,
    /// BCP 47 tag.
    pub(crate) language: Option<String>,
    /// Name for menus, unique among the tracks of its kind.
    pub(crate) label: String,
    pub(crate) default: bool,
    pub(crate) forced: bool,
    pub(crate) bandwidth: Bandwidth,
    /// Ladder of a video: 0 for the main one.
    pub(crate) ladder: u16,
}

/// The fragments of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentFragments {
    /// Object that contains them.
    pub object: ObjectIndex,
    /// Their numbers, from 0.
    pub fragments: Range<u32>,
    /// Their bytes.
    pub range: ByteRange,
}

/// Source of a track's samples.
#[derive(Debug)]
pub(crate) enum Content {
    Media(Box<MediaTrack>),
    Sidecar(Sidecar),
}

/// Kind of stream access point with which the segments of a track begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamAccess {
    /// Decoding can begin with the first sample, and no sample of the segment needs earlier ones.
    Closed,
    /// Decoding can begin with the first sample, but pictures presented before it may need earlier samples.
    Open,
    /// The first sample of the first segment needs other samples.
    Unknown,
}

impl StreamAccess {
    /// Determines the access of a track cut at these points.
    pub(crate) fn of(points: &[SyncPoint], begins_sync: bool) -> Self {
        match begins_sync {
            false => Self::Unknown,
            true if points.iter().any(|point| point.is_open) => Self::Open,
            true => Self::Closed,
        }
    }

    /// Returns the greatest type of stream access point among the segments' starts (ISO/IEC 14496-12 I.2); `None` where
    /// a start is no access point. Types 1 and 2 have no pictures that need others; leading pictures of type 3 may.
    pub(crate) const fn sap_type(self) -> Option<u8> {
        match self {
            Self::Closed => Some(1),
            Self::Open => Some(3),
            Self::Unknown => None,
        }
    }

    /// Whether segments can be decoded without others (RFC 8216 4.3.5.1).
    pub(crate) fn is_independent(self) -> bool {
        self == Self::Closed
    }
}

/// A track of an object.
#[derive(Debug)]
pub(crate) struct MediaTrack {
    pub(crate) object: ObjectIndex,
    pub(crate) movie: Arc<Movie>,
    pub(crate) index: usize,
    pub(crate) timeline: Timeline,
    pub(crate) facts: Facts,
    pub(crate) access: StreamAccess,
    /// Most pictures for trick play.
    pub(crate) most_iframes: usize,
    pub(crate) iframes: OnceLock<IFrames>,
    /// Whether a transport stream can carry the track.
    pub(crate) fits_ts: OnceLock<bool>,
    /// Layout of the track's own transport stream segments.
    pub(crate) ts: OnceLock<TsLayout>,
    /// How the sound becomes FLAC in HLS and DASH; `None` where samples stay as they are.
    pub(crate) flac: Option<Box<FlacTrack>>,
}

impl MediaTrack {
    /// Returns the pictures for trick play.
    pub(crate) fn iframes(&self, end: i64) -> &IFrames {
        self.iframes.get_or_init(|| IFrames::of(self.track(), &self.timeline, end, self.most_iframes))
    }

    /// Returns the bit rates of the pictures for trick play of a track of this bandwidth. If only the samples of the first fragment
    /// are known, they are estimated from it.
    pub(crate) fn iframe_rate(&self, end: i64, all: Bandwidth) -> Bandwidth {
        if self.outlined().is_none() {
            return self.iframes(end).bandwidth;
        }
        let (track, ends) = (self.track(), self.timeline.len());
        let end = self.timeline.dts_at(&track.samples, ends).max(1);
        let known = IFrames::of(track, &self.timeline, end, self.most_iframes).bandwidth;
        let seconds = track.timescale.seconds(end).max(1e-3);
        let rate = (track.samples.total_bytes() as f64 * 8.0 / seconds).max(1.0);
        let scaled = |known: u64, all: u64| ((known as f64 * all as f64 / rate).ceil() as u64).min(all.max(1));
        Bandwidth {
            peak: scaled(known.peak, all.peak),
            average: scaled(known.average, all.average),
            sustained: scaled(known.sustained, all.sustained),
        }
    }

    /// Returns its fragments where the index has the samples of the first one only.
    pub(crate) fn outlined(&self) -> Option<Outlined<'_>> {
        Outlined::of(&self.movie, self.index, &self.timeline)
    }

    /// Returns the object of a sample, and its range there.
    pub(crate) fn place(&self, range: ByteRange) -> ObjectRange {
        ObjectRange::of_sample(&self.movie, self.object, range)
    }

    /// Returns the track in the index.
    pub(crate) fn track(&self) -> &Track {
        of_movie(&self.movie, self.index)
    }

    /// Returns the track as HLS and DASH describe it.
    pub(crate) fn delivered(&self) -> &Track {
        self.flac.as_ref().map_or_else(|| self.track(), |flac| &flac.form.track)
    }
}

impl PresentedTrack {
    /// Name in URLs: `v1`, `a1`, `s1` ...
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kind of the track.
    #[must_use]
    pub const fn kind(&self) -> MediaKind {
        self.kind
    }

    /// Object that contains the samples, the first one of a stitched title; `None` for sidecars.
    #[must_use]
    pub fn object(&self) -> Option<ObjectIndex> {
        self.media().map(|m| m.object)
    }

    /// Objects that contain the samples; none for sidecars.
    pub fn objects(&self) -> impl Iterator<Item = ObjectIndex> + use<> {
        let stitched = self.media().and_then(|media| media.movie.stitched.as_deref());
        let own = self.object().filter(|_| stitched.is_none());
        own.into_iter().chain((0..stitched.map_or(0, |stitched| stitched.objects)).map(ObjectIndex))
    }

    /// Returns the object of one of its samples, and the sample's range there; `None` for sidecars.
    #[must_use]
    pub fn place(&self, sample: &Sample) -> Option<ObjectRange> {
        Some(self.media()?.place(sample.range))
    }

    /// Index of that object.
    #[must_use]
    pub fn movie(&self) -> Option<&Arc<Movie>> {
        self.media().map(|m| &m.movie)
    }

    /// Track in that index.
    #[must_use]
    pub fn source_track(&self) -> Option<&Track> {
        self.media().map(MediaTrack::track)
    }

    /// Cues of a sidecar.
    #[must_use]
    pub const fn sidecar(&self) -> Option<&Sidecar> {
        match &self.content {
            Content::Sidecar(s) => Some(s),
            Content::Media(_) => None,
        }
    }

    /// The codec of the track's samples; `None` for sidecars.
    #[must_use]
    pub fn codec(&self) -> Option<&Codec> {
        self.source_track().map(|t| &t.codec)
    }

    /// Returns the track as HLS and DASH describe it; `None` for sidecars.
    pub(crate) fn delivered(&self) -> Option<&Track> {
        self.media().map(MediaTrack::delivered)
    }

    /// The codec of the track in HLS and DASH; `None` for sidecars.
    pub(crate) fn delivered_codec(&self) -> Option<&Codec> {
        self.delivered().map(|track| &track.codec)
    }

    /// Codec parameter of RFC 6381 in HLS and DASH; `wvtt` for sidecars, which are delivered as WebVTT.
    #[must_use]
    pub fn codec_parameter(&self) -> String {
        parameter(self.delivered_codec())
    }

    /// Codec parameter of the samples as they are stored.
    pub(crate) fn stored_parameter(&self) -> String {
        parameter(self.codec())
    }

    /// Whether the sound is delivered as FLAC in HLS and DASH.
    pub(crate) fn becomes_flac(&self) -> bool {
        self.media().is_some_and(|media| media.flac.is_some())
    }

    /// Encryption of the samples; `None` where they are clear.
    #[must_use]
    pub fn protection(&self) -> Option<&Protection> {
        self.source_track()?.protection.as_deref()
    }

    /// Upper bound of the bytes that keys of the track take in a manifest.
    #[must_use]
    pub fn key_bytes(&self) -> u64 {
        let headers = self.media().filter(|_| self.protection().is_some());
        let headers = headers.iter().flat_map(|media| &media.movie.system_headers);
        // The header in Base64, and once more while it is written.
        headers.map(|header| 512 + 3 * header.whole.len() as u64).sum()
    }

    /// Most bytes of auxiliary information per sample in memory while a segment is planned.
    #[must_use]
    pub fn encryption_bytes(&self) -> u64 {
        self.protection().map_or(0, |protection| 64 + 2 * u64::from(protection.samples.largest()))
    }

    /// Codec parameter of the samples, and scheme of an encrypted track, for messages.
    #[must_use]
    pub fn codec_and_encryption(&self) -> String {
        let parameter = self.stored_parameter();
        match self.protection() {
            Some(protection) => format!("{parameter} encrypted by {}", protection.scheme.name()),
            None => parameter,
        }
    }

    /// BCP 47 tag; `None` where the language is unknown.
    #[must_use]
    pub fn language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    /// Whether players may choose it by themselves: it is no commentary, and not for some viewers only.
    pub(crate) fn is_usual(&self) -> bool {
        self.source_track().is_none_or(|track| track.purposes.is_usual())
    }

    /// Name for menus.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether players should start with this track of its kind.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.default
    }

    /// Whether it is a video that is no rendition of the main one of its file. Players never switch to it by
    /// themselves.
    #[must_use]
    pub const fn is_alternative(&self) -> bool {
        self.ladder > 0
    }

    /// Bits per second as fragmented MP4. Sound that becomes FLAC has at most these.
    #[must_use]
    pub const fn bandwidth(&self) -> Bandwidth {
        self.bandwidth
    }

    /// Bits per second of the samples as they are stored, as fragmented MP4.
    #[must_use]
    pub fn stored_bandwidth(&self) -> Bandwidth {
        let flac = self.media().and_then(|media| media.flac.as_ref());
        flac.map_or(self.bandwidth, |flac| flac.stored)
    }

    /// Segments of the track.
    #[must_use]
    pub const fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Number of segments.
    #[must_use]
    pub fn segment_count(&self) -> u32 {
        self.segments.count()
    }

    /// Returns segment `number`, counted from 1.
    #[must_use]
    pub fn segment(&self, number: u32) -> Option<SegmentInfo> {
        self.segments.get(number)
    }

    /// Returns the fragments of segment `number`; `None` where the index has all samples, and without such a segment.
    #[must_use]
    pub fn fragments(&self, number: u32) -> Option<SegmentFragments> {
        let media = self.media()?;
        let (outlined, fragments) = (media.outlined()?, self.segment(number)?.samples);
        let range = outlined.range(&fragments)?;
        Some(SegmentFragments { object: media.object, fragments, range })
    }

    /// Returns the samples of a segment with their times, in decode order; none for sidecars. For text, samples before
    /// the segment are included if they are still shown at its start.
    #[must_use]
    pub fn samples(&self, segment: &SegmentInfo) -> Vec<Timed> {
        let Some(media) = self.media() else { return Vec::new() };
        let table = &media.track().samples;
        let mut samples = Vec::new();
        if self.kind == MediaKind::Text {
            let most = if table.overlaps() { MOST_BEFORE } else { 1 };
            let before = segment.samples.start.saturating_sub(most)..segment.samples.start;
            let shows = |t: &Timed| t.pts.saturating_add(i64::from(t.sample.duration)) > segment.start;
            samples.extend(media.timeline.walk(table, before).filter(shows));
        }
        samples.extend(media.timeline.walk(table, segment.samples.clone()));
        samples
    }

    /// Returns the samples of `ordinals` that exist, in decode order; none for sidecars.
    #[must_use]
    pub fn samples_of(&self, ordinals: Range<u32>) -> Vec<Timed> {
        let media = self.media().into_iter();
        media.flat_map(|m| m.timeline.walk(&m.track().samples, ordinals.clone())).collect()
    }

    /// Returns the parameter sets that must precede the bytes of a sample; mostly none ([`Track::sets_of`]).
    #[must_use]
    pub fn sets_of(&self, sample: &Sample) -> Bytes {
        self.media().map_or_else(Bytes::new, |media| Bytes::copy_from_slice(media.track().sets_of(sample)))
    }

    /// Number of samples presented. A sample that several edits show counts several times; sidecars have none.
    #[must_use]
    pub fn sample_count(&self) -> u32 {
        self.media().map_or(0, |m| m.timeline.len())
    }

    /// Returns the ordinals of all sync samples, in decode order; none for sidecars.
    pub fn sync_ordinals(&self) -> impl Iterator<Item = u32> + '_ {
        self.media().into_iter().flat_map(|m| m.timeline.sync_ordinals(&m.track().samples))
    }

    /// Returns the last sync sample presented no later than `seconds`, or the first one; `None` for sidecars.
    #[must_use]
    pub fn sync_before(&self, seconds: f64) -> Option<u32> {
        let media = self.media()?;
        let table = &media.track().samples;
        let scale = f64::from(media.track().timescale.get());
        // A tolerance of a millisecond, because clients return rounded times.
        let shows = |timed: &Timed| timed.pts as f64 / scale <= seconds + 0.001;
        let mut all = media.timeline.sync_samples(table).peekable();
        let first = all.peek()?.ordinal;
        Some(all.take_while(shows).last().map_or(first, |timed| timed.ordinal))
    }

    /// Returns the first sync sample presented no earlier than `seconds`; `None` after the last one, and for sidecars.
    #[must_use]
    pub fn sync_after(&self, seconds: f64) -> Option<u32> {
        let media = self.media()?;
        let table = &media.track().samples;
        let scale = f64::from(media.track().timescale.get());
        let shows = |timed: &Timed| timed.pts as f64 / scale >= seconds - 0.001;
        media.timeline.sync_samples(table).find(shows).map(|timed| timed.ordinal)
    }

    /// Returns the first sample presented no earlier than `seconds`; `None` after the last one, and for sidecars.
    #[must_use]
    pub fn ordinal_at(&self, seconds: f64) -> Option<u32> {
        let media = self.media()?;
        let ticks = (seconds * f64::from(media.track().timescale.get())) as i64;
        let table = &media.track().samples;
        let (mut from, mut to) = (0, media.timeline.len());
        // By decode time, which rises. Audio is presented in that order.
        while from < to {
            let middle = from + (to - from) / 2;
            if media.timeline.dts_at(table, middle) < ticks { from = middle + 1 } else { to = middle }
        }
        (from < media.timeline.len()).then_some(from)
    }

    /// Returns all samples with their times, in decode order; none for sidecars.
    pub fn all_samples(&self) -> impl Iterator<Item = Timed> + '_ {
        self.media().into_iter().flat_map(|m| m.timeline.walk(&m.track().samples, 0..m.timeline.len()))
    }

    /// Frames per second as a fraction; `None` except for video.
    #[must_use]
    pub fn frame_rate(&self) -> Option<(u32, u32)> {
        let media = self.media().filter(|_| self.kind == MediaKind::Video)?;
        media.facts.rate(media.track().timescale)
    }

    /// Width and height in square pixels as displayed, with pixel aspect and rotation applied; `None` where unknown,
    /// and except for video.
    #[must_use]
    pub fn display_size(&self) -> Option<(u32, u32)> {
        displayed(self.source_track()?)
    }

    /// Channels; `None` except for audio.
    #[must_use]
    pub fn channels(&self) -> Option<u16> {
        match self.source_track()?.kind {
            TrackKind::Audio { channels, .. } => Some(channels),
            _ => None,
        }
    }

    /// Whether HLS and DASH can contain the track: all but G.711 and PCM of 8 bits that doesn't become FLAC, which only RTSP can send.
    #[must_use]
    pub fn is_packaged(&self) -> bool {
        self.delivered_codec().is_none_or(Codec::fits_fmp4)
    }

    /// Returns the media track, if it can be packaged.
    pub(crate) fn packaged(&self) -> Option<&MediaTrack> {
        self.media().filter(|media| media.delivered().codec.fits_fmp4())
    }

    pub(crate) const fn media(&self) -> Option<&MediaTrack> {
        match &self.content {
            Content::Media(m) => Some(m),
            Content::Sidecar(_) => None,
        }
    }

    /// Bytes of heap held, without the index.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let content = match &self.content {
            Content::Media(m) => {
                let ts = m.ts.get().map_or(0, TsLayout::heap_bytes);
                let iframes = m.iframes.get().map_or(0, IFrames::heap_bytes);
                let flac = m.flac.as_ref().map_or(0, |flac| flac.heap_bytes());
                size_of::<MediaTrack>() + m.timeline.heap_bytes() + iframes + ts + flac
            }
            Content::Sidecar(s) => s.heap_bytes(),
        };
        size_of::<Self>() + content + self.segments.heap_bytes() + self.name.len() + self.label.len()
    }
}

/// Returns the codec parameter of RFC 6381; `wvtt` without a codec.
fn parameter(codec: Option<&Codec>) -> String {
    codec.map_or_else(|| "wvtt".to_owned(), Codec::parameter)
}

/// Returns width and height of a video track in square pixels, before rotation. The pixel aspect is applied to the
/// width.
pub(crate) fn display_size(track: &Track) -> Option<(f64, f64)> {
    let TrackKind::Video { width, height, pixel_aspect, .. } = track.kind else { return None };
    let aspect = match pixel_aspect {
        (0, _) | (_, 0) => 1.0,
        (h, v) => f64::from(h) / f64::from(v),
    };
    Some(((f64::from(width) * aspect).min(65_535.0), f64::from(height)))
}

/// Returns width and height of a video in square pixels as displayed, with pixel aspect and rotation applied; `None` where
/// unknown.
pub(crate) fn displayed(track: &Track) -> Option<(u32, u32)> {
    let TrackKind::Video { orientation, .. } = track.kind else { return None };
    // Manifests state no size where it is unknown.
    let (width, height) = display_size(track).filter(|(w, h)| *w >= 1.0 && *h >= 1.0)?;
    let (width, height) = (width.round() as u32, height.round() as u32);
    Some(if orientation.is_sideways() { (height, width) } else { (width, height) })
}
