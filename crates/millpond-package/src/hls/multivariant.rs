//! The multivariant playlist (RFC 8216 4.3.4).

use super::{Container, groups::Group, keys};
use crate::{
    PackageError,
    delivery::{text_track::is_webvtt, thumbnails::Thumbnails, transport},
    live::{Rung, Tracks, Window},
    manifest::{captions::CaptionListing, filter::TrackFilter, track_listing::TrackListing},
    presentation::{
        Presentation,
        track::{MediaKind, PresentedTrack},
    },
    timeline::bandwidth::Bandwidth,
    writing::digits,
};
use millpond_media::{Purpose, codec::Codec};
use std::collections::HashSet;

/// Group ID of all subtitles.
const SUBTITLES: &str = "text";
/// Group ID of all captions within pictures.
const CAPTIONS: &str = "cc";

/// Content of the playlist of one container.
struct Content<'a> {
    container: Container,
    /// Path before the URIs of tracks.
    base: &'a str,
    /// Key tags.
    keys: String,
    video: Vec<TrackListing<'a>>,
    groups: Vec<Group<'a>>,
    text: Vec<TrackListing<'a>>,
    /// Codecs of variants without an audio group, except for the video's.
    codecs: Vec<String>,
    /// Captions within the pictures. Players look for them in media of several segments where there may be some.
    captions: CaptionListing<'a>,
    /// Whether pictures for trick play are listed. While only the beginning of a file is known, they have no playlist.
    has_iframes: bool,
}

/// Returns the multivariant playlist of an asset, with a variant for each combination of video track and audio codec.
/// Subtitles alone are a variant.
///
/// # Errors
/// [`PackageError::Container`] where the container can carry no video and no audio of the asset.
pub fn multivariant(presentation: &Presentation, container: Container) -> Result<String, PackageError> {
    filtered_multivariant(presentation, container, &TrackFilter::default())
}

/// Returns the multivariant playlist of the tracks that a filter keeps. A sound that is muxed into the segments of video stays.
///
/// # Errors
/// As [`multivariant`], and [`PackageError::Filtered`] where the filter keeps neither video nor audio.
pub fn filtered_multivariant(
    presentation: &Presentation,
    container: Container,
    filter: &TrackFilter,
) -> Result<String, PackageError> {
    let tracks = TrackListing::of_presentation(presentation, container, |track| match (track.kind, container) {
        (MediaKind::Text, _) => container == Container::Fmp4 || is_webvtt(track),
        (_, Container::Fmp4) => presentation.lists(track),
        (_, Container::Ts) => transport::is_carried(presentation, track),
    });
    let has_media = tracks.iter().any(|track| track.kind != MediaKind::Text);
    if !has_media && (tracks.is_empty() || !presentation.is_text()) {
        return Err(not_carried(presentation, container));
    }
    let mut tracks = filter.choose(tracks)?;
    let has_video = tracks.iter().any(|track| track.kind == MediaKind::Video);
    let muxed = (container == Container::Ts).then(|| transport::muxed_audio(presentation)).flatten();
    let muxed = muxed.and_then(|muxed| {
        let place = presentation.tracks.iter().position(|track| track.name == muxed.name)?;
        TrackListing::stored(presentation, place, container)
    });
    let mut keys = String::new();
    if container == Container::Fmp4 {
        keys::of_session(&mut keys, presentation, tracks.iter().filter_map(|track| track.source))?;
    }
    filter.put_first(&mut tracks);
    let captions = CaptionListing::of(&presentation.captions, &tracks);
    let content = Content::of(tracks, muxed, container, &presentation.base, keys);
    let has_iframes = !presentation.is_so_far();
    let mut out = Content { captions, has_iframes, ..content }.write();
    let has_thumbnails = presentation.lists_thumbnails && has_video && has_iframes;
    let thumbnails = has_thumbnails.then(|| Thumbnails::of(presentation)).flatten();
    if let Some(thumbnails) = thumbnails.filter(|_| container == Container::Fmp4) {
        thumbnails.stream(&mut out, &presentation.base);
    }
    Ok(out)
}

/// Returns why the playlists of a container lack a track, as the end of a sentence about the track; `None` for a track that is listed
/// or muxed into the segments of video. An alternative video has only its own URL.
#[must_use]
pub fn absence(presentation: &Presentation, track: &PresentedTrack, container: Container) -> Option<&'static str> {
    match container {
        Container::Fmp4 if track.kind == MediaKind::Text => None,
        Container::Fmp4 => presentation.absence(track),
        Container::Ts => transport::absence(presentation, track),
    }
}

/// Returns the error for a container that can carry no video and no audio of the asset.
fn not_carried(presentation: &Presentation, container: Container) -> PackageError {
    match container {
        Container::Fmp4 => presentation.not_carried("HLS", "video, or audio other than G.711 and PCM of 8 bits"),
        Container::Ts => match transport::misfit(presentation).filter(|_| presentation.stitched().is_some()) {
            Some((item, part)) => PackageError::Container {
                container: "MPEG-2 TS",
                found: format!("{} in item {item}", part.codec_and_encryption()),
                expected: "H.264, HEVC, AAC, MPEG audio, AC-3 or E-AC-3 in each item of a stitched title: \
                    encode that item anew, or play HLS with fMP4 or DASH",
            },
            None => presentation.not_carried("MPEG-2 TS", "H.264, HEVC, AAC, MPEG audio, AC-3 or E-AC-3"),
        },
    }
}

/// Returns the multivariant playlist of a live stream, for the formats of its newest epoch. `None` until all tracks have a
/// complete segment, and if the container can carry no track.
#[must_use]
pub fn live_multivariant(window: &Window, container: Container) -> Option<String> {
    let epoch = window.newest_epoch().filter(|_| window.is_ready())?;
    let (tracks, muxed) = match container {
        Container::Fmp4 => (window.listings(epoch), None),
        Container::Ts => window.transport_listings(epoch),
    };
    if tracks.is_empty() {
        return None;
    }
    let captions = CaptionListing::of(window.caption_rule(), &tracks);
    let content = Content::of(tracks, muxed, container, "", String::new());
    Some(Content { captions, ..content }.write())
}

/// Returns the multivariant playlist of a ladder, whose streams are renditions of one title. `None` until one of the streams has
/// a complete segment of all its tracks. Each stream is a variant, with the sound of the first stream that has sound.
#[must_use]
pub fn ladder_multivariant(rungs: &[Rung<'_>]) -> Option<String> {
    let tracks = Tracks::of(rungs);
    let listings = tracks.listings();
    let captions = CaptionListing::of(tracks.caption_rule()?, &listings);
    let content = Content::of(listings, None, Container::Fmp4, "", String::new());
    Some(Content { captions, ..content }.write())
}

impl<'a> Content<'a> {
    /// `muxed` is the audio in the segments of the video.
    fn of(
        tracks: Vec<TrackListing<'a>>,
        muxed: Option<TrackListing<'a>>,
        container: Container,
        base: &'a str,
        keys: String,
    ) -> Self {
        let of_kind = |kind| tracks.iter().copied().filter(move |track| track.kind == kind);
        // Variants are renditions of one video (RFC 8216 4.3.4.2). An alternative video has only its own URL.
        let mut video: Vec<_> = of_kind(MediaKind::Video).collect();
        if let Some(ladder) = video.first().map(|track| track.ladder) {
            video.retain(|track| track.ladder == ladder);
        }
        let mut groups = Group::all(&of_kind(MediaKind::Audio).collect::<Vec<_>>());
        let text: Vec<_> = of_kind(MediaKind::Text).collect();
        let beside = || muxed.into_iter().chain(text.iter().copied().filter(|t| !t.is_webvtt()));
        for group in &mut groups {
            group.codecs = codecs(group.tracks.iter().copied().chain(beside()), container);
        }
        let codecs = codecs(beside(), container);
        Self {
            container,
            base,
            keys,
            video,
            groups,
            text,
            codecs,
            captions: CaptionListing::Unknown,
            has_iframes: true,
        }
    }

    fn write(&self) -> String {
        let mut out = String::with_capacity(1024 + self.keys.len());
        out.push_str("#EXTM3U\n#EXT-X-VERSION:");
        // Names of services (`INSTREAM-ID`) need version 7 too (RFC 8216 7).
        let is_newest = self.container == Container::Fmp4 || self.captions.has_services();
        digits::push(&mut out, if is_newest { 7 } else { 4 });
        out.push('\n');
        if self.video.iter().all(TrackListing::is_independent) {
            out.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
        }
        out.push_str(&self.keys);
        self.renditions(&mut out);
        for video in &self.video {
            if self.groups.is_empty() {
                self.variant(&mut out, Some(video), None);
            }
            for group in &self.groups {
                self.variant(&mut out, Some(video), Some(group));
            }
        }
        if self.video.is_empty() {
            for group in &self.groups {
                self.variant(&mut out, None, Some(group));
            }
            if self.groups.is_empty() {
                self.variant(&mut out, None, None);
            }
        }
        if self.container == Container::Fmp4 && self.has_iframes {
            self.video.iter().for_each(|video| self.iframes(&mut out, video));
        }
        out
    }

    /// Whether audio tracks have `EXT-X-MEDIA` tags: a single audio track alone is a variant.
    fn has_audio_media(&self) -> bool {
        !self.video.is_empty() || self.groups.iter().any(|g| g.tracks.len() > 1)
    }

    /// Writes the renditions (4.3.4.1).
    fn renditions(&self, out: &mut String) {
        for group in self.groups.iter().filter(|_| self.has_audio_media()) {
            for track in &group.tracks {
                media_head(out, "AUDIO", &group.id, track);
                yes_no(out, "DEFAULT", track.is_default);
                yes_no(out, "AUTOSELECT", is_chosen(track));
                characteristics(out, track);
                channels(out, track);
                uri(out, self.base, track);
            }
        }
        for track in &self.text {
            media_head(out, "SUBTITLES", SUBTITLES, track);
            yes_no(out, "DEFAULT", track.is_default);
            out.push_str(",AUTOSELECT=YES");
            yes_no(out, "FORCED", track.is_forced);
            characteristics(out, track);
            uri(out, self.base, track);
        }
        for captions in self.captions.listed() {
            out.push_str("#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS");
            attribute(out, "GROUP-ID", CAPTIONS);
            attribute(out, "NAME", &captions.label);
            if let Some(language) = captions.language {
                attribute(out, "LANGUAGE", language);
            }
            out.push_str(",DEFAULT=NO,AUTOSELECT=YES");
            attribute(out, "INSTREAM-ID", &captions.channel.to_string());
            out.push('\n');
        }
    }

    /// Writes a variant (4.3.4.2).
    fn variant(&self, out: &mut String, video: Option<&TrackListing<'_>>, group: Option<&Group<'_>>) {
        let audio = group.and_then(|g| g.tracks.first());
        let Some(track) = video.or(audio).or(self.text.first()) else { return };
        let mut rate = video.map_or_else(Bandwidth::default, |video| video.bandwidth);
        rate = group.map_or(rate, |g| rate.with(g.bandwidth));
        // The largest sum over all combinations of renditions, with subtitles.
        rate = rate.with(self.text.iter().map(|text| text.bandwidth).fold(Bandwidth::default(), Bandwidth::larger));
        out.push_str("#EXT-X-STREAM-INF:");
        rates(out, rate);
        self.codecs(out, video.or(audio).is_none().then_some(track).or(video), group);
        if let Some(video) = video {
            supplement(out, video);
            picture(out, video);
        }
        if let Some(group) = group.filter(|_| self.has_audio_media()) {
            attribute(out, "AUDIO", &group.id);
        }
        if !self.text.is_empty() {
            attribute(out, "SUBTITLES", SUBTITLES);
        }
        match &self.captions {
            CaptionListing::Absent if video.is_some() => out.push_str(",CLOSED-CAPTIONS=NONE"),
            CaptionListing::Present(_) => attribute(out, "CLOSED-CAPTIONS", CAPTIONS),
            CaptionListing::Absent | CaptionListing::Unknown => {}
        }
        out.push('\n');
        out.push_str(self.base);
        out.push_str(track.name);
        out.push_str("/index.m3u8\n");
    }

    fn codecs(&self, out: &mut String, own: Option<&TrackListing<'_>>, group: Option<&Group<'_>>) {
        let own = own.map(|track| parameters(track, self.container)).unwrap_or_default();
        let others = group.map_or(&self.codecs, |g| &g.codecs).iter().filter(|codec| !own.contains(codec));
        let all: Vec<&str> = own.iter().chain(others).map(String::as_str).collect();
        attribute(out, "CODECS", &all.join(","));
    }

    /// Writes the I-frame variant of a video (4.3.4.3), where it has one.
    fn iframes(&self, out: &mut String, video: &TrackListing<'_>) {
        let Some(bandwidth) = video.iframes() else { return };
        out.push_str("#EXT-X-I-FRAME-STREAM-INF:");
        rates(out, bandwidth);
        attribute(out, "CODECS", &parameters(video, self.container).join(","));
        supplement(out, video);
        size(out, video);
        range(out, video);
        out.push_str(",URI=\"");
        out.push_str(self.base);
        out.push_str(video.name);
        out.push_str("/iframes.m3u8\"\n");
    }
}

/// Returns the codecs of tracks, without duplicates.
fn codecs<'a>(tracks: impl Iterator<Item = TrackListing<'a>>, container: Container) -> Vec<String> {
    let mut seen = HashSet::new();
    tracks.flat_map(|track| parameters(&track, container)).filter(|codec| seen.insert(codec.clone())).collect()
}

/// Returns the codec parameters of a track in a container, without duplicates: several where its periods differ.
fn parameters(track: &TrackListing<'_>, container: Container) -> Vec<String> {
    if track.is_webvtt() {
        return vec!["wvtt".to_owned()];
    }
    let mut all = Vec::new();
    for codec in track.codecs() {
        let parameter = match (container, codec) {
            (Container::Ts, Codec::MpegAudio(config)) => config.ts_parameter(),
            _ => codec.parameter(),
        };
        if !all.contains(&parameter) {
            all.push(parameter);
        }
    }
    all
}

fn media_head(out: &mut String, kind: &str, group: &str, track: &TrackListing<'_>) {
    out.push_str("#EXT-X-MEDIA:TYPE=");
    out.push_str(kind);
    attribute(out, "GROUP-ID", group);
    attribute(out, "NAME", track.label);
    if let Some(language) = track.language {
        attribute(out, "LANGUAGE", language);
    }
}

/// Writes the number of channels, or that of the objects of Dolby Atmos (HLS Authoring Specification 2.11, 9.19).
fn channels(out: &mut String, track: &TrackListing<'_>) {
    let (count, is_joc) = match (track.joc_complexity(), track.channels()) {
        (Some(objects), _) => (u16::from(objects), true),
        (None, Some(count)) if count > 0 => (count, false),
        _ => return,
    };
    out.push_str(",CHANNELS=\"");
    digits::push(out, u64::from(count));
    out.push_str(if is_joc { "/JOC\"" } else { "\"" });
}

/// Writes what decoders of Dolby Vision show in place of `CODECS` (RFC 8216bis 4.4.6.2).
fn supplement(out: &mut String, video: &TrackListing<'_>) {
    if let Some((codec, brand)) = video.codec().and_then(Codec::supplement) {
        attribute(out, "SUPPLEMENTAL-CODECS", &format!("{codec}/{brand}"));
    }
}

/// Whether players may choose a sound by the viewer's language and needs. A default must allow it (RFC 8216 4.3.4.1).
fn is_chosen(track: &TrackListing<'_>) -> bool {
    track.is_default || !track.purposes().has(Purpose::Commentary)
}

/// Writes the media characteristic tags of a rendition (RFC 8216 4.3.4.1), where its file states some.
fn characteristics(out: &mut String, track: &TrackListing<'_>) {
    let tags = |purpose| match (purpose, track.kind) {
        (Purpose::Captions, MediaKind::Text) => {
            Some("public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound")
        }
        (Purpose::Description, MediaKind::Audio) => Some("public.accessibility.describes-video"),
        (Purpose::ClearSpeech, MediaKind::Audio) => Some("public.accessibility.enhances-speech-intelligibility"),
        (Purpose::EasyReader, MediaKind::Text) => Some("public.easy-to-read"),
        _ => None,
    };
    let all: Vec<&str> = track.purposes().iter().filter_map(tags).collect();
    if !all.is_empty() {
        attribute(out, "CHARACTERISTICS", &all.join(","));
    }
}

fn uri(out: &mut String, base: &str, track: &TrackListing<'_>) {
    out.push_str(",URI=\"");
    out.push_str(base);
    out.push_str(track.name);
    out.push_str("/index.m3u8\"\n");
}

fn attribute(out: &mut String, name: &str, value: &str) {
    out.push(',');
    out.push_str(name);
    out.push_str("=\"");
    out.push_str(value);
    out.push('"');
}

fn yes_no(out: &mut String, name: &str, yes: bool) {
    out.push(',');
    out.push_str(name);
    out.push_str(if yes { "=YES" } else { "=NO" });
}

fn rates(out: &mut String, bandwidth: Bandwidth) {
    out.push_str("BANDWIDTH=");
    digits::push(out, bandwidth.peak.max(1));
    out.push_str(",AVERAGE-BANDWIDTH=");
    digits::push(out, bandwidth.average.max(1));
}

fn picture(out: &mut String, video: &TrackListing<'_>) {
    size(out, video);
    if let Some((numerator, denominator)) = video.frame_rate {
        let thousandths = (u64::from(numerator) * 1000 + u64::from(denominator) / 2) / u64::from(denominator.max(1));
        out.push_str(",FRAME-RATE=");
        digits::push(out, thousandths / 1000);
        out.push('.');
        for place in [100, 10, 1] {
            digits::push(out, thousandths / place % 10);
        }
    }
    range(out, video);
}

fn size(out: &mut String, video: &TrackListing<'_>) {
    if let Some((width, height)) = video.display_size() {
        out.push_str(",RESOLUTION=");
        digits::push(out, u64::from(width));
        out.push('x');
        digits::push(out, u64::from(height));
    }
}

/// Writes `VIDEO-RANGE` for the transfer characteristics (ISO/IEC 23091-2 8.2); SDR is the default.
fn range(out: &mut String, video: &TrackListing<'_>) {
    match video.codec().and_then(|c| c.color()).map(|c| c.transfer) {
        Some(16) => out.push_str(",VIDEO-RANGE=PQ"),
        Some(18) => out.push_str(",VIDEO-RANGE=HLG"),
        _ => {}
    }
}
