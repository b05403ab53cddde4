//! Media playlists.

use super::{
    Container,
    entries::Entries,
    keys,
    periods::{joined, parts},
};
use crate::{
    delivery::{text_track::is_webvtt, transport},
    manifest::first_picture,
    presentation::{
        Presentation,
        track::{MediaKind, PresentedTrack},
    },
    timeline::bandwidth::seconds,
    writing::digits,
};

/// Most bytes of an entry, except for very long segments: `#EXTINF:12.345678,` and `i12345.m4s`.
const ENTRY: usize = 34;

/// Returns the media playlist of a track. Text has a WebVTT playlist in either container, except for text that is delivered in
/// fragments. `None` if the container doesn't carry the track alone. While only the beginning of the file is known, the playlist is an
/// event (4.3.3.5) without an end, and players start at its first segment.
#[must_use]
pub fn media(presentation: &Presentation, track: &PresentedTrack, container: Container) -> Option<String> {
    let text = is_webvtt(track);
    let carried = match container {
        Container::Fmp4 => track.is_packaged(),
        Container::Ts => text || transport::is_carried(presentation, track),
    };
    if !carried {
        return None;
    }
    let suffix = suffix(container, text);
    if let Some(parts) = parts(presentation, track, container) {
        return Some(joined(presentation, track, &parts, (suffix, "")));
    }
    let mapped = suffix == FRAGMENT;
    let listed = presentation.listed_so_far(track);
    let most = listed.and_then(|listed| usize::try_from(listed).ok()).unwrap_or(usize::MAX);
    let micros = track.segments.micros().take(most);
    let mut out = String::with_capacity(256 + micros.len() * ENTRY);
    // The target duration of an event doesn't change (6.2.1), unless a later group of pictures is longer.
    let usual = listed.map(|_| u64::try_from(presentation.target / 1000).unwrap_or(0));
    let durations = track.segments.micros().chain(usual);
    let kind = if listed.is_some() { "EVENT" } else { "VOD" };
    head(&mut out, (if mapped { 7 } else { 3 }, kind), durations, has_independent(track));
    if !start(&mut out, presentation) && listed.is_some() {
        out.push_str("#EXT-X-START:TIME-OFFSET=0\n");
    }
    if mapped {
        out.push_str("#EXT-X-MAP:URI=\"init.mp4\"\n");
        keys::of_track(&mut out, presentation, track);
    }
    let mut entries = Entries::new("", suffix);
    micros.for_each(|micros| entries.push(&mut out, micros));
    if listed.is_none() {
        out.push_str("#EXT-X-ENDLIST\n");
    }
    Some(out)
}

/// Begin of the names of pictures for trick play.
pub(super) const IFRAME: &str = "i";
/// End of the names of fragments.
pub(super) const FRAGMENT: &str = ".m4s\n";

/// Returns the end of the names of segments.
fn suffix(container: Container, is_text: bool) -> &'static str {
    match container {
        _ if is_text => ".vtt\n",
        Container::Fmp4 => FRAGMENT,
        Container::Ts => ".ts\n",
    }
}

/// Whether a playlist says that each segment can be decoded without others.
pub(super) fn has_independent(track: &PresentedTrack) -> bool {
    match track.kind {
        MediaKind::Video => is_independent(track),
        MediaKind::Audio => true,
        MediaKind::Text => false,
    }
}

/// Returns the I-frame playlist of a video track (4.3.3.6), with a resource for each sync sample shown in trick play.
/// `None` for other tracks, and for transport streams, where I-frames are no resources of their own.
#[must_use]
pub fn iframes(presentation: &Presentation, track: &PresentedTrack, container: Container) -> Option<String> {
    if track.kind != MediaKind::Video || container == Container::Ts {
        return None;
    }
    let media = track.media()?;
    if let Some(parts) = parts(presentation, track, container) {
        return Some(joined(presentation, track, &parts, (FRAGMENT, IFRAME)));
    }
    let scale = media.track().timescale.get();
    let iframes = media.iframes(track.segments.end());
    let micros = || iframes.durations().map(|ticks| digits::micros(ticks, scale));
    let mut out = String::with_capacity(256 + micros().len() * ENTRY);
    head(&mut out, (7, "VOD"), micros(), is_independent(track));
    out.push_str("#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP:URI=\"init.mp4\"\n");
    keys::of_track(&mut out, presentation, track);
    let mut entries = Entries::new(IFRAME, FRAGMENT);
    micros().for_each(|micros| entries.push(&mut out, micros));
    out.push_str("#EXT-X-ENDLIST\n");
    Some(out)
}

/// Whether each segment can be decoded without others (4.3.5.1).
pub(super) fn is_independent(track: &PresentedTrack) -> bool {
    track.media().is_some_and(|m| m.access.is_independent())
}

/// Writes where players start (4.3.5.2), if that is not the beginning. Multivariant playlists don't say it: ffmpeg 5.1
/// takes them for media playlists then, and plays each track twice. Returns whether it wrote a tag.
pub(super) fn start(out: &mut String, presentation: &Presentation) -> bool {
    let micros = first_picture::micros(presentation);
    if let Some(micros) = micros {
        out.push_str("#EXT-X-START:TIME-OFFSET=");
        digits::push_micros(out, micros);
        out.push_str(",PRECISE=YES\n");
    }
    micros.is_some()
}

/// Writes the head with its version (RFC 8216 7): 3 for decimal durations, 6 with `EXT-X-MAP`, and 7 as is usual for
/// fragmented MP4. The type of the playlist (4.3.3.5) stands beside the version.
pub(super) fn head(
    out: &mut String,
    (version, kind): (u64, &str),
    micros: impl Iterator<Item = u64>,
    independent: bool,
) {
    out.push_str("#EXTM3U\n#EXT-X-VERSION:");
    digits::push(out, version);
    out.push_str("\n#EXT-X-TARGETDURATION:");
    digits::push(out, seconds(micros.max().unwrap_or(0)));
    out.push_str("\n#EXT-X-MEDIA-SEQUENCE:1\n#EXT-X-PLAYLIST-TYPE:");
    out.push_str(kind);
    out.push('\n');
    if independent {
        out.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
    }
}
