//! The multivariant playlist (RFC 8216 4.3.4).

use super::{Container, keys, media::is_independent};
use crate::{
    PackageError,
    bandwidth::Bandwidth,
    delivery::is_webvtt,
    digits,
    presentation::Presentation,
    selection::family,
    track::{MediaKind, PresentedTrack},
    transport,
};
use millpond_media::codec::Codec;
use std::collections::HashSet;

/// Group ID of all subtitles.
const SUBTITLES: &str = "text";

/// Audio tracks of one codec, from which players of a variant choose.
struct Group<'a> {
    id: &'static str,
    tracks: Vec<&'a PresentedTrack>,
    bandwidth: Bandwidth,
    /// Codecs of its variants except for the video's, without duplicates.
    codecs: Vec<String>,
}

/// Content of the playlist of one container.
struct Content<'a> {
    presentation: &'a Presentation,
    container: Container,
    video: Vec<&'a PresentedTrack>,
    groups: Vec<Group<'a>>,
    text: Vec<&'a PresentedTrack>,
    /// Codecs of variants without an audio group, except for the video's.
    codecs: Vec<String>,
}

/// Returns the multivariant playlist of an asset, with a variant for each combination of video track and audio codec.
/// Subtitles alone are a variant.
///
/// # Errors
/// [`PackageError::Container`] where the container can carry no video and no audio of the asset.
pub fn multivariant(presentation: &Presentation, container: Container) -> Result<String, PackageError> {
    let content = Content::of(presentation, container)?;
    let mut out = String::with_capacity(1024);
    out.push_str("#EXTM3U\n#EXT-X-VERSION:");
    digits::push(&mut out, if container == Container::Fmp4 { 7 } else { 4 });
    out.push('\n');
    if content.video.iter().all(|v| is_independent(v)) {
        out.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
    }
    if container == Container::Fmp4 {
        keys::of_session(&mut out, presentation)?;
    }
    content.renditions(&mut out);
    for video in &content.video {
        if content.groups.is_empty() {
            content.variant(&mut out, Some(video), None);
        }
        for group in &content.groups {
            content.variant(&mut out, Some(video), Some(group));
        }
    }
    if content.video.is_empty() {
        for group in &content.groups {
            content.variant(&mut out, None, Some(group));
        }
        if content.groups.is_empty() {
            content.variant(&mut out, None, None);
        }
    }
    if container == Container::Fmp4 {
        content.video.iter().for_each(|v| content.iframes(&mut out, v));
    }
    Ok(out)
}

impl<'a> Content<'a> {
    fn of(presentation: &'a Presentation, container: Container) -> Result<Self, PackageError> {
        let fits = |t: &&PresentedTrack| match container {
            Container::Fmp4 => presentation.lists(t),
            Container::Ts => transport::is_carried(presentation, t),
        };
        // Variants are renditions of one video (RFC 8216 4.3.4.2). An alternative video has only its own URL.
        let mut video: Vec<_> = presentation.of_kind(MediaKind::Video).filter(fits).collect();
        if let Some(ladder) = video.first().map(|track| track.ladder) {
            video.retain(|track| track.ladder == ladder);
        }
        let mut groups: Vec<Group<'a>> = Vec::new();
        for track in presentation.of_kind(MediaKind::Audio).filter(fits) {
            let bandwidth = bandwidth(presentation, track, container);
            let id = track.codec().map_or("audio", family);
            match groups.iter_mut().find(|g| g.id == id) {
                Some(group) => {
                    group.tracks.push(track);
                    group.bandwidth = larger(group.bandwidth, bandwidth);
                }
                None => groups.push(Group { id, tracks: vec![track], bandwidth, codecs: Vec::new() }),
            }
        }
        let text: Vec<_> =
            presentation.of_kind(MediaKind::Text).filter(|t| container == Container::Fmp4 || is_webvtt(t)).collect();
        if video.is_empty() && groups.is_empty() && (text.is_empty() || !presentation.is_text()) {
            return Err(match container {
                Container::Fmp4 => {
                    presentation.not_carried("HLS", "video, or audio other than G.711 and PCM of 8 bits")
                }
                Container::Ts => presentation.not_carried("MPEG-2 TS", "H.264, HEVC, AAC, MP3, AC-3 or E-AC-3"),
            });
        }
        let muxed = (container == Container::Ts).then(|| transport::muxed_audio(presentation)).flatten();
        let beside = || muxed.into_iter().chain(text.iter().copied().filter(|t| !is_webvtt(t)));
        for group in &mut groups {
            group.codecs = codecs(group.tracks.iter().copied().chain(beside()), container);
        }
        let codecs = codecs(beside(), container);
        Ok(Self { presentation, container, video, groups, text, codecs })
    }

    /// Whether audio tracks have `EXT-X-MEDIA` tags: a single audio track alone is a variant.
    fn has_audio_media(&self) -> bool {
        !self.video.is_empty() || self.groups.iter().any(|g| g.tracks.len() > 1)
    }

    /// Writes the renditions (4.3.4.1).
    fn renditions(&self, out: &mut String) {
        for group in self.groups.iter().filter(|_| self.has_audio_media()) {
            for track in &group.tracks {
                media_head(out, "AUDIO", group.id, track);
                yes_no(out, "DEFAULT", track.default);
                out.push_str(",AUTOSELECT=YES");
                if let Some(channels) = track.channels().filter(|c| *c > 0) {
                    out.push_str(",CHANNELS=\"");
                    digits::push(out, u64::from(channels));
                    out.push('"');
                }
                uri(out, &self.presentation.base, track);
            }
        }
        for track in &self.text {
            media_head(out, "SUBTITLES", SUBTITLES, track);
            yes_no(out, "DEFAULT", track.default);
            out.push_str(",AUTOSELECT=YES");
            yes_no(out, "FORCED", track.forced);
            uri(out, &self.presentation.base, track);
        }
    }

    /// Writes a variant (4.3.4.2).
    fn variant(&self, out: &mut String, video: Option<&PresentedTrack>, group: Option<&Group<'_>>) {
        let audio = group.and_then(|g| g.tracks.first().copied());
        let Some(track) = video.or(audio).or(self.text.first().copied()) else { return };
        let mut rate = video.map_or_else(Bandwidth::default, |v| bandwidth(self.presentation, v, self.container));
        rate = group.map_or(rate, |g| rate.with(g.bandwidth));
        // The largest sum over all combinations of renditions, with subtitles.
        rate = rate.with(self.text.iter().map(|text| text.bandwidth).fold(Bandwidth::default(), larger));
        out.push_str("#EXT-X-STREAM-INF:");
        rates(out, rate);
        self.codecs(out, video.or(audio).is_none().then_some(track).or(video), group);
        if let Some(video) = video {
            picture(out, video);
        }
        if let Some(group) = group.filter(|_| self.has_audio_media()) {
            attribute(out, "AUDIO", group.id);
        }
        if !self.text.is_empty() {
            attribute(out, "SUBTITLES", SUBTITLES);
        }
        out.push('\n');
        out.push_str(&self.presentation.base);
        out.push_str(&track.name);
        out.push_str("/index.m3u8\n");
    }

    fn codecs(&self, out: &mut String, own: Option<&PresentedTrack>, group: Option<&Group<'_>>) {
        let own = own.map(|track| parameter(track, self.container));
        let others = group.map_or(&self.codecs, |g| &g.codecs).iter().filter(|codec| Some(*codec) != own.as_ref());
        let all: Vec<&str> = own.iter().chain(others).map(String::as_str).collect();
        attribute(out, "CODECS", &all.join(","));
    }

    /// Writes the I-frame variant of a video (4.3.4.3).
    fn iframes(&self, out: &mut String, video: &PresentedTrack) {
        let Some(media) = video.media() else { return };
        out.push_str("#EXT-X-I-FRAME-STREAM-INF:");
        rates(out, media.iframes(video.segments.end()).bandwidth);
        attribute(out, "CODECS", &video.codec_parameter());
        size(out, video);
        range(out, video);
        out.push_str(",URI=\"");
        out.push_str(&self.presentation.base);
        out.push_str(&video.name);
        out.push_str("/iframes.m3u8\"\n");
    }
}

/// Returns the codecs of tracks, without duplicates.
fn codecs<'a>(tracks: impl Iterator<Item = &'a PresentedTrack>, container: Container) -> Vec<String> {
    let mut seen = HashSet::new();
    tracks.map(|track| parameter(track, container)).filter(|codec| seen.insert(codec.clone())).collect()
}

/// Returns the codec parameter of a track in a container. Transport streams have no MP4 object types. There MP3 has the
/// name that Apple's and other players know (audio object type 34 of ISO/IEC 14496-3).
fn parameter(track: &PresentedTrack, container: Container) -> String {
    match (container, track.codec()) {
        (Container::Ts, Some(Codec::Mp3(_))) => "mp4a.40.34".to_owned(),
        _ if is_webvtt(track) => "wvtt".to_owned(),
        _ => track.codec_parameter(),
    }
}

fn bandwidth(presentation: &Presentation, track: &PresentedTrack, container: Container) -> Bandwidth {
    match container {
        Container::Fmp4 => track.bandwidth,
        Container::Ts => transport::bandwidth(presentation, track),
    }
}

fn larger(a: Bandwidth, b: Bandwidth) -> Bandwidth {
    Bandwidth { peak: a.peak.max(b.peak), average: a.average.max(b.average) }
}

fn media_head(out: &mut String, kind: &str, group: &str, track: &PresentedTrack) {
    out.push_str("#EXT-X-MEDIA:TYPE=");
    out.push_str(kind);
    attribute(out, "GROUP-ID", group);
    attribute(out, "NAME", &track.label);
    if let Some(language) = &track.language {
        attribute(out, "LANGUAGE", language);
    }
}

fn uri(out: &mut String, base: &str, track: &PresentedTrack) {
    out.push_str(",URI=\"");
    out.push_str(base);
    out.push_str(&track.name);
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

fn picture(out: &mut String, video: &PresentedTrack) {
    size(out, video);
    if let Some((numerator, denominator)) = video.frame_rate() {
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

fn size(out: &mut String, video: &PresentedTrack) {
    if let Some((width, height)) = video.display_size() {
        out.push_str(",RESOLUTION=");
        digits::push(out, u64::from(width));
        out.push('x');
        digits::push(out, u64::from(height));
    }
}

/// Writes `VIDEO-RANGE` for the transfer characteristics (ISO/IEC 23091-2 8.2); SDR is the default.
fn range(out: &mut String, video: &PresentedTrack) {
    match video.codec().and_then(|c| c.color()).map(|c| c.transfer) {
        Some(16) => out.push_str(",VIDEO-RANGE=PQ"),
        Some(18) => out.push_str(",VIDEO-RANGE=HLG"),
        _ => {}
    }
}
