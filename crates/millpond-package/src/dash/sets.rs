//! Adaptation sets: tracks that players choose among or switch between.

use super::{captions, protection, supplement};
use crate::{
    manifest::{captions::CaptionListing, first_picture, track_listing::TrackListing},
    presentation::{Presentation, period::Period, selection::family, track::MediaKind},
    timeline::{grid::nanos_to, segmentation::Segments},
    writing::xml::Writer,
};
use millpond_media::{Purpose, codec::Codec, movie::TrackKind, units::Timescale};
use std::collections::{HashMap, HashSet};

/// Scheme of MPEG audio channel configurations (ISO/IEC 23003-3), whose values 1 to 7 are layouts.
const CHANNELS: &str = "urn:mpeg:dash:23003:3:audio_channel_configuration:2011";
const CHANNEL_LAYOUT: &str = "urn:mpeg:mpegB:cicp:ChannelConfiguration";
const ROLE: &str = "urn:mpeg:dash:role:2011";

/// Segments of the tracks of a manifest.
pub(super) trait Templates {
    /// Path before the URIs of tracks.
    fn base(&self) -> &str;

    /// Whether two tracks are cut at the same times.
    fn same_times(&self, a: &TrackListing<'_>, b: &TrackListing<'_>) -> bool;

    /// Writes the segment template of a track.
    fn template(&self, w: &mut Writer, track: &TrackListing<'_>);

    /// Returns the captions within the pictures of tracks.
    fn captions(&self, tracks: &[TrackListing<'_>]) -> CaptionListing<'_>;
}

impl Templates for Presentation {
    fn base(&self) -> &str {
        &self.base
    }

    fn same_times(&self, a: &TrackListing<'_>, b: &TrackListing<'_>) -> bool {
        let segments = |track: &TrackListing<'_>| self.tracks.get(track.place).map(|track| &track.segments);
        segments(a).zip(segments(b)).is_some_and(|(a, b)| a.same_times(b))
    }

    fn template(&self, w: &mut Writer, track: &TrackListing<'_>) {
        if let Some(track) = self.tracks.get(track.place) {
            template(w, &track.segments, (0, first_picture::micros(self)), &self.base);
        }
    }

    fn captions(&self, tracks: &[TrackListing<'_>]) -> CaptionListing<'_> {
        CaptionListing::of(&self.captions, tracks)
    }
}

impl Templates for Period {
    fn base(&self) -> &str {
        &self.presentation.base
    }

    fn same_times(&self, a: &TrackListing<'_>, b: &TrackListing<'_>) -> bool {
        self.presentation.same_times(a, b)
    }

    fn template(&self, w: &mut Writer, track: &TrackListing<'_>) {
        if let Some(track) = self.presentation.tracks.get(track.place) {
            let times = (self.start, first_picture::micros(&self.presentation));
            template(w, &track.segments, times, &self.presentation.base);
        }
    }

    fn captions(&self, tracks: &[TrackListing<'_>]) -> CaptionListing<'_> {
        self.presentation.captions(tracks)
    }
}

/// One adaptation set.
pub(super) struct Set<'a> {
    tracks: Vec<TrackListing<'a>>,
    aligned: bool,
    /// Whether the set is the first of its kind that players may choose by themselves.
    main: bool,
}

/// Returns the adaptation sets of an asset: video by ladder and codec, audio by language and codec, and one set for each text
/// track. Audio tracks have different content, because repetitions in renditions were removed. `aligned` tells whether all videos
/// of the main ladder have common segment boundaries.
pub(super) fn sets<'a>(tracks: &[TrackListing<'a>], aligned: bool) -> Vec<Set<'a>> {
    let mut sets: Vec<Set<'a>> = Vec::new();
    let mut places = HashMap::new();
    let mut kinds = HashSet::new();
    for track in tracks {
        let place = switchable(track).map(|codec| *places.entry(codec).or_insert(sets.len()));
        if let Some(set) = place.and_then(|place| sets.get_mut(place)) {
            set.tracks.push(*track);
            continue;
        }
        let main = track.purposes().is_usual() && kinds.insert(track.kind);
        let aligned = track.kind != MediaKind::Video || aligned || track.ladder > 0;
        sets.push(Set { tracks: vec![*track], aligned, main });
    }
    sets
}

/// Properties that video tracks must share so that players may switch between them: ladder, codec and key.
type Switchable = (u16, &'static str, Option<String>, Option<protection::Key>);

fn switchable(track: &TrackListing<'_>) -> Option<Switchable> {
    let codec = track.codec().filter(|_| track.kind == MediaKind::Video)?;
    Some((track.ladder, family(codec), codec.parameter().get(..4).map(str::to_owned), protection::key(track)))
}

impl Set<'_> {
    /// Writes attributes and elements in the order of the schema (23009-1 5.3.3.3).
    pub(super) fn write(&self, w: &mut Writer, id: u64, templates: &dyn Templates) {
        let Some(first) = self.tracks.first() else { return };
        w.start("AdaptationSet").number("id", id).attribute("contentType", content_type(first.kind));
        if let Some(language) = first.language {
            w.attribute("lang", language);
        }
        w.attribute("mimeType", mime_type(first));
        supplement::name_space(w, &self.tracks);
        if !first.is_vtt_file() {
            let aligned = self.aligned && (first.ladder == 0 || self.shares_times(templates));
            w.attribute("segmentAlignment", if aligned { "true" } else { "false" });
            // The greatest type among the renditions (5.3.7.2); none where one begins without an access point.
            let types = self.tracks.iter().map(|track| track.sap_type);
            if let Some(most) = types.reduce(|a, b| Some(a?.max(b?))).flatten() {
                w.number("startWithSAP", u64::from(most));
            }
        }
        if first.kind == MediaKind::Video {
            self.limits(w);
        }
        if let [only] = &self.tracks[..] {
            channels(w, only);
        }
        protection::elements(w, first);
        range(w, first);
        objects(w, first);
        w.start("Label").end_with(&self.label());
        accessibility(w, first);
        captions::elements(w, &templates.captions(&self.tracks));
        for role in self.roles(first) {
            w.start("Role").attribute("schemeIdUri", ROLE).attribute("value", role).end();
        }
        let shared = self.shared_template(templates);
        if let Some(track) = shared {
            templates.template(w, track);
        }
        for track in &self.tracks {
            representation(w, track, shared.is_none(), templates);
        }
        w.end();
    }

    fn limits(&self, w: &mut Writer) {
        let coded = |t: &TrackListing<'_>| match t.track?.kind {
            TrackKind::Video { width, height, .. } => Some((width, height)).filter(|(w, h)| *w > 0 && *h > 0),
            _ => None,
        };
        // Sizes before rotation and pixel aspect, like those of the representations (5.3.7.2).
        let sizes = || self.tracks.iter().filter_map(coded);
        if let (Some(width), Some(height)) = (sizes().map(|s| s.0).max(), sizes().map(|s| s.1).max()) {
            w.number("maxWidth", u64::from(width)).number("maxHeight", u64::from(height));
        }
        let rates = self.tracks.iter().filter_map(|t| t.frame_rate);
        let value = |(n, d): &(u32, u32)| f64::from(*n) / f64::from(*d);
        if let Some(rate) = rates.max_by(|a, b| value(a).total_cmp(&value(b))) {
            w.attribute("maxFrameRate", &fraction(rate));
        }
    }

    fn label(&self) -> String {
        match &self.tracks[..] {
            [first, _, ..] => first.codec().map_or_else(String::new, |c| c.name().to_owned()),
            tracks => tracks.first().map_or_else(String::new, |t| t.label.to_owned()),
        }
    }

    /// Returns the roles (5.8.5.5): those that the file states, else the one of its place.
    fn roles(&self, first: &TrackListing<'_>) -> Vec<&'static str> {
        let stated: Vec<_> = first.purposes().iter().map(Purpose::role).collect();
        match (first.is_default && self.main, &stated[..]) {
            (false, [_, ..]) => stated,
            _ => vec![self.role(first)],
        }
    }

    /// Returns the role of a set by its place.
    fn role(&self, first: &TrackListing<'_>) -> &'static str {
        match first.kind {
            MediaKind::Text if first.is_forced => "forced-subtitle",
            MediaKind::Text => "subtitle",
            MediaKind::Audio if first.is_default && self.main => "main",
            MediaKind::Audio => "alternate",
            MediaKind::Video if self.main => "main",
            MediaKind::Video => "alternate",
        }
    }

    /// Whether all tracks are cut at the same times.
    fn shares_times(&self, templates: &dyn Templates) -> bool {
        self.tracks.windows(2).all(|pair| templates.same_times(&pair[0], &pair[1]))
    }

    /// Returns the track whose segment template is common to all.
    fn shared_template(&self, templates: &dyn Templates) -> Option<&TrackListing<'_>> {
        let (first, rest) = self.tracks.split_first()?;
        (!rest.is_empty() && rest.iter().all(|track| templates.same_times(track, first))).then_some(first)
    }
}

const fn content_type(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Video => "video",
        MediaKind::Audio => "audio",
        MediaKind::Text => "text",
    }
}

fn mime_type(track: &TrackListing<'_>) -> &'static str {
    match track.kind {
        MediaKind::Video => "video/mp4",
        MediaKind::Audio => "audio/mp4",
        MediaKind::Text if track.is_vtt_file() => "text/vtt",
        MediaKind::Text => "application/mp4",
    }
}

fn representation(w: &mut Writer, track: &TrackListing<'_>, own_template: bool, templates: &dyn Templates) {
    w.start("Representation")
        .attribute("id", track.name)
        .number("bandwidth", track.bandwidth.peak.clamp(1, u64::from(u32::MAX)));
    if track.is_vtt_file() {
        w.start("BaseURL").end_with(&format!("{}{}/all.vtt", templates.base(), track.name));
        w.end();
        return;
    }
    w.attribute("codecs", &track.codec_parameter());
    supplement::attributes(w, track);
    picture(w, track);
    if let Some(TrackKind::Audio { sample_rate, .. }) = track.track.map(|t| t.kind) {
        w.number("audioSamplingRate", u64::from(sample_rate));
    }
    if own_template {
        templates.template(w, track);
    }
    w.end();
}

/// Writes the size in coded pixels, pixel aspect and frame rate.
fn picture(w: &mut Writer, track: &TrackListing<'_>) {
    let Some(TrackKind::Video { width, height, pixel_aspect, .. }) = track.track.map(|t| t.kind) else {
        return;
    };
    if width > 0 && height > 0 {
        w.number("width", u64::from(width)).number("height", u64::from(height));
    }
    if let Some(rate) = track.frame_rate {
        w.attribute("frameRate", &fraction(rate));
    }
    let (horizontal, vertical) = if pixel_aspect.0 == 0 || pixel_aspect.1 == 0 { (1, 1) } else { pixel_aspect };
    w.attribute("sar", &format!("{horizontal}:{vertical}"));
}

fn fraction((numerator, denominator): (u32, u32)) -> String {
    if denominator == 1 { numerator.to_string() } else { format!("{numerator}/{denominator}") }
}

/// Writes the channel count, also for Dolby's codecs.
fn channels(w: &mut Writer, track: &TrackListing<'_>) {
    let Some(channels) = track.channels().filter(|c| *c > 0) else { return };
    // The 23003-3 scheme counts up to 6. The value 12 is 8 channels (7.1), under the CICP scheme.
    let (scheme, value) = match channels {
        7 => (CHANNEL_LAYOUT, 11),
        8 => (CHANNEL_LAYOUT, 12),
        count => (CHANNELS, u64::from(count)),
    };
    w.start("AudioChannelConfiguration").attribute("schemeIdUri", scheme).number("value", value).end();
}

/// Writes for which viewers the set is (5.8.4.3), where its file states it.
fn accessibility(w: &mut Writer, track: &TrackListing<'_>) {
    let is_need = |purpose: &Purpose| {
        matches!(
            purpose,
            Purpose::Captions | Purpose::Description | Purpose::ClearSpeech | Purpose::EasyReader | Purpose::Sign
        )
    };
    for purpose in track.purposes().iter().filter(is_need) {
        w.start("Accessibility").attribute("schemeIdUri", ROLE).attribute("value", purpose.role()).end();
    }
}

/// Writes transfer characteristics other than those of standard dynamic range (ISO/IEC 23091-2 8.2).
fn range(w: &mut Writer, track: &TrackListing<'_>) {
    let transfer = track.codec().and_then(Codec::color).map(|c| c.transfer);
    if let Some(transfer @ (16 | 18)) = transfer {
        w.start("SupplementalProperty")
            .attribute("schemeIdUri", "urn:mpeg:mpegB:cicp:TransferCharacteristics")
            .number("value", u64::from(transfer))
            .end();
    }
}

/// Writes the objects of Dolby Atmos in E-AC-3 (ETSI TS 103 420 D.2).
fn objects(w: &mut Writer, track: &TrackListing<'_>) {
    let Some(objects) = track.joc_complexity() else { return };
    let property = |w: &mut Writer, scheme: &str, value: &str| {
        w.start("SupplementalProperty").attribute("schemeIdUri", scheme).attribute("value", value).end();
    };
    property(w, "tag:dolby.com,2018:dash:EC3_ExtensionType:2018", "JOC");
    property(w, "tag:dolby.com,2018:dash:EC3_ExtensionComplexityIndex:2018", &objects.to_string());
}

/// Most entries of the segment timeline. The first segment may be shortened.
pub(super) fn entries(segments: &Segments) -> usize {
    let lengths = || segments.times().windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    2 + lengths().zip(lengths().skip(1)).filter(|(a, b)| a != b).count()
}

/// Writes the segment template (5.3.9.4) and timeline of a stored track, in a period that begins at `begin` nanoseconds. Players
/// start where the first segment of all tracks begins, which is at `start` in millionths of a second.
fn template(w: &mut Writer, segments: &Segments, (begin, start): (i64, Option<u64>), base: &str) {
    w.start("SegmentTemplate").number("timescale", u64::from(segments.timescale().get()));
    if let Ok(offset @ 1..) = u64::try_from(nanos_to(begin, segments.timescale())) {
        w.number("presentationTimeOffset", offset);
    }
    w.attribute("initialization", &format!("{base}$RepresentationID$/init.mp4"))
        .attribute("media", &format!("{base}$RepresentationID$/$Number$.m4s"))
        .attribute("startNumber", "1");
    let times = segments.times();
    let least = start.map_or(i64::MIN, |micros| ticks(micros, segments.timescale()));
    let ends = times.get(1..).unwrap_or_default();
    timeline(
        w,
        times.iter().zip(ends).map(|(from, end)| {
            let from = (*from).max(least.min(end.saturating_sub(1)));
            (from, end.saturating_sub(from))
        }),
    );
    w.end();
}

/// Returns millionths of a second in ticks, rounded up.
fn ticks(micros: u64, timescale: Timescale) -> i64 {
    let ticks = (u128::from(micros) * u128::from(timescale.get())).div_ceil(1_000_000);
    i64::try_from(ticks).unwrap_or(i64::MAX)
}

/// Writes the segment timeline (5.3.9.6) of consecutive segments: start and duration of each in ticks.
pub(super) fn timeline(w: &mut Writer, segments: impl Iterator<Item = (i64, i64)>) {
    w.start("SegmentTimeline");
    let mut runs = segments.peekable();
    let mut end = None;
    while let Some((start, duration)) = runs.next() {
        let mut last = start.saturating_add(duration);
        let mut repeats = 0;
        while runs.next_if(|(s, d)| *s == last && *d == duration).is_some() {
            last = last.saturating_add(duration);
            repeats += 1;
        }
        w.start("S");
        if end.replace(last) != Some(start) {
            w.number("t", u64::try_from(start).unwrap_or(0));
        }
        w.number("d", u64::try_from(duration).unwrap_or(0));
        if repeats > 0 {
            w.number("r", repeats);
        }
        w.end();
    }
    w.end();
}
