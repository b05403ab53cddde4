//! Adaptation sets: tracks that players choose among or switch between.

use super::protection;
use crate::{
    delivery::is_webvtt,
    presentation::Presentation,
    segmentation::Segments,
    selection::family,
    track::{MediaKind, PresentedTrack},
    xml::Writer,
};
use millpond_media::{codec::Codec, movie::TrackKind};
use std::collections::{HashMap, HashSet};

/// Scheme of MPEG audio channel configurations (ISO/IEC 23003-3), whose values 1 to 7 are layouts.
const CHANNELS: &str = "urn:mpeg:dash:23003:3:audio_channel_configuration:2011";
const CHANNEL_LAYOUT: &str = "urn:mpeg:mpegB:cicp:ChannelConfiguration";
const ROLE: &str = "urn:mpeg:dash:role:2011";

/// One adaptation set.
pub(super) struct Set<'a> {
    tracks: Vec<&'a PresentedTrack>,
    aligned: bool,
    /// Whether the set is the first of its kind.
    main: bool,
}

/// Returns the adaptation sets of an asset: video by ladder and codec, audio by language and codec, each text by
/// itself. Audio tracks have different content, because repetitions in renditions were removed.
pub(super) fn sets(presentation: &Presentation) -> Vec<Set<'_>> {
    let mut sets: Vec<Set<'_>> = Vec::new();
    let mut places = HashMap::new();
    let mut kinds = HashSet::new();
    for track in presentation.listed() {
        let place = switchable(track).map(|codec| *places.entry(codec).or_insert(sets.len()));
        if let Some(set) = place.and_then(|place| sets.get_mut(place)) {
            set.tracks.push(track);
            continue;
        }
        let main = kinds.insert(track.kind);
        let aligned = track.kind != MediaKind::Video || presentation.aligned || track.is_alternative();
        sets.push(Set { tracks: vec![track], aligned, main });
    }
    sets
}

/// Properties that video tracks must share so that players may switch between them: ladder, codec and key.
type Switchable = (u16, &'static str, Option<String>, Option<protection::Key>);

fn switchable(track: &PresentedTrack) -> Option<Switchable> {
    let codec = track.codec().filter(|_| track.kind == MediaKind::Video)?;
    Some((track.ladder, family(codec), codec.parameter().get(..4).map(str::to_owned), protection::key(track)))
}

impl Set<'_> {
    /// Writes attributes and elements in the order of the schema (23009-1 5.3.3.3).
    pub(super) fn write(&self, w: &mut Writer, id: u64, base: &str) {
        let Some(first) = self.tracks.first() else { return };
        w.start("AdaptationSet").number("id", id).attribute("contentType", content_type(first.kind));
        if let Some(language) = &first.language {
            w.attribute("lang", language);
        }
        w.attribute("mimeType", mime_type(first));
        if !is_webvtt(first) {
            let aligned = self.aligned && (!first.is_alternative() || self.shares_times());
            w.attribute("segmentAlignment", if aligned { "true" } else { "false" });
            // The greatest type among the renditions (5.3.7.2); none where one begins without an access point.
            let types = self.tracks.iter().map(|t| t.media().map_or(Some(1), |m| m.access.sap_type()));
            if let Some(most) = types.reduce(|a, b| Some(a?.max(b?))).flatten() {
                w.number("startWithSAP", u64::from(most));
            }
        }
        if first.kind == MediaKind::Video {
            self.limits(w);
        }
        if let [only] = self.tracks[..] {
            channels(w, only);
        }
        protection::elements(w, first);
        range(w, first);
        w.start("Label").end_with(&self.label());
        w.start("Role").attribute("schemeIdUri", ROLE).attribute("value", self.role(first)).end();
        let shared = self.shared_template();
        if let Some(track) = shared {
            template(w, &track.segments, base);
        }
        for track in &self.tracks {
            representation(w, track, shared.is_none(), base);
        }
        w.end();
    }

    fn limits(&self, w: &mut Writer) {
        let sizes = || self.tracks.iter().filter_map(|t| t.display_size());
        if let (Some(width), Some(height)) = (sizes().map(|s| s.0).max(), sizes().map(|s| s.1).max()) {
            w.number("maxWidth", u64::from(width)).number("maxHeight", u64::from(height));
        }
        let rates = self.tracks.iter().filter_map(|t| t.frame_rate());
        let value = |(n, d): &(u32, u32)| f64::from(*n) / f64::from(*d);
        if let Some(rate) = rates.max_by(|a, b| value(a).total_cmp(&value(b))) {
            w.attribute("maxFrameRate", &fraction(rate));
        }
    }

    fn label(&self) -> String {
        match &self.tracks[..] {
            [first, _, ..] => first.codec().map_or_else(String::new, |c| c.name().to_owned()),
            tracks => tracks.first().map_or_else(String::new, |t| t.label.clone()),
        }
    }

    /// Returns the role (5.8.5.5).
    fn role(&self, first: &PresentedTrack) -> &'static str {
        match first.kind {
            MediaKind::Text if first.forced => "forced-subtitle",
            MediaKind::Text => "subtitle",
            MediaKind::Audio if first.default && self.main => "main",
            MediaKind::Audio => "alternate",
            MediaKind::Video if self.main => "main",
            MediaKind::Video => "alternate",
        }
    }

    /// Whether all tracks are cut at the same times.
    fn shares_times(&self) -> bool {
        self.tracks.windows(2).all(|pair| pair[0].segments.same_times(&pair[1].segments))
    }

    /// Returns the track whose segment template is common to all.
    fn shared_template(&self) -> Option<&PresentedTrack> {
        let (first, rest) = self.tracks.split_first()?;
        (!rest.is_empty() && rest.iter().all(|t| t.segments.same_times(&first.segments))).then_some(*first)
    }
}

const fn content_type(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Video => "video",
        MediaKind::Audio => "audio",
        MediaKind::Text => "text",
    }
}

fn mime_type(track: &PresentedTrack) -> &'static str {
    match track.kind {
        MediaKind::Video => "video/mp4",
        MediaKind::Audio => "audio/mp4",
        MediaKind::Text if is_webvtt(track) => "text/vtt",
        MediaKind::Text => "application/mp4",
    }
}

fn representation(w: &mut Writer, track: &PresentedTrack, own_template: bool, base: &str) {
    w.start("Representation")
        .attribute("id", &track.name)
        .number("bandwidth", track.bandwidth.peak.clamp(1, u64::from(u32::MAX)));
    if is_webvtt(track) {
        w.start("BaseURL").end_with(&format!("{base}{}/all.vtt", track.name));
        w.end();
        return;
    }
    w.attribute("codecs", &track.codec_parameter());
    picture(w, track);
    if let Some(TrackKind::Audio { sample_rate, .. }) = track.source_track().map(|t| t.kind) {
        w.number("audioSamplingRate", u64::from(sample_rate));
    }
    if own_template {
        template(w, &track.segments, base);
    }
    w.end();
}

/// Writes the size in coded pixels, pixel aspect and frame rate.
fn picture(w: &mut Writer, track: &PresentedTrack) {
    let Some(TrackKind::Video { width, height, pixel_aspect, .. }) = track.source_track().map(|t| t.kind) else {
        return;
    };
    if width > 0 && height > 0 {
        w.number("width", u64::from(width)).number("height", u64::from(height));
    }
    if let Some(rate) = track.frame_rate() {
        w.attribute("frameRate", &fraction(rate));
    }
    let (horizontal, vertical) = if pixel_aspect.0 == 0 || pixel_aspect.1 == 0 { (1, 1) } else { pixel_aspect };
    w.attribute("sar", &format!("{horizontal}:{vertical}"));
}

fn fraction((numerator, denominator): (u32, u32)) -> String {
    if denominator == 1 { numerator.to_string() } else { format!("{numerator}/{denominator}") }
}

/// Writes the channel count, also for Dolby's codecs.
fn channels(w: &mut Writer, track: &PresentedTrack) {
    let Some(channels) = track.channels().filter(|c| *c > 0) else { return };
    // The 23003-3 scheme counts up to 6. The value 12 is 8 channels (7.1), under the CICP scheme.
    let (scheme, value) = match channels {
        7 => (CHANNEL_LAYOUT, 11),
        8 => (CHANNEL_LAYOUT, 12),
        count => (CHANNELS, u64::from(count)),
    };
    w.start("AudioChannelConfiguration").attribute("schemeIdUri", scheme).number("value", value).end();
}

/// Writes transfer characteristics other than those of standard dynamic range (ISO/IEC 23091-2 8.2).
fn range(w: &mut Writer, track: &PresentedTrack) {
    let transfer = track.codec().and_then(Codec::color).map(|c| c.transfer);
    if let Some(transfer @ (16 | 18)) = transfer {
        w.start("SupplementalProperty")
            .attribute("schemeIdUri", "urn:mpeg:mpegB:cicp:TransferCharacteristics")
            .number("value", u64::from(transfer))
            .end();
    }
}

/// Number of entries in the segment timeline.
pub(super) fn entries(segments: &Segments) -> usize {
    let lengths = || segments.times().windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    1 + lengths().zip(lengths().skip(1)).filter(|(a, b)| a != b).count()
}

/// Writes the segment template (5.3.9.4) and timeline (5.3.9.6).
fn template(w: &mut Writer, segments: &Segments, base: &str) {
    w.start("SegmentTemplate")
        .number("timescale", u64::from(segments.timescale().get()))
        .attribute("initialization", &format!("{base}$RepresentationID$/init.mp4"))
        .attribute("media", &format!("{base}$RepresentationID$/$Number$.m4s"))
        .attribute("startNumber", "1");
    w.start("SegmentTimeline");
    let times = segments.times();
    let mut runs = times.windows(2).map(|t| (t[0], t[1].saturating_sub(t[0]))).peekable();
    let mut first = true;
    while let Some((start, duration)) = runs.next() {
        let mut repeats = 0;
        while runs.next_if(|(_, d)| *d == duration).is_some() {
            repeats += 1;
        }
        w.start("S");
        if std::mem::take(&mut first) {
            w.number("t", u64::try_from(start).unwrap_or(0));
        }
        w.number("d", u64::try_from(duration).unwrap_or(0));
        if repeats > 0 {
            w.number("r", repeats);
        }
        w.end();
    }
    w.end().end();
}
