//! Paths of what is made of a running stream.
//!
//! Playlists, manifests and long responses have stable addresses below the path of the stream. Media lie below the name of its
//! run (`~0a1b/v1/12.m4s`), so that a restart never reuses an address.

use crate::route::{number, split};
use millpond_package::hls::Container;

/// Most characters of the name of a run.
const RUN: usize = 32;
/// Characters of the id of a session.
const SESSION: usize = 32;

/// Something made of a running stream. Tracks are named `v1`, `a1`, `text1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveResource {
    /// `index.m3u8`, `ts/index.m3u8`
    Multivariant(Container),
    /// `index.mpd`
    Mpd,
    /// `v1/index.m3u8`, `ts/v1/index.m3u8`: the playlist of a track.
    Media(Container, String),
    /// `stream.mp4`, `stream.ts`: all tracks in one response without an end.
    Long(Container),
    /// `snapshot.jpg`: the newest key frame as an image.
    Snapshot,
    /// `epg.xml`, `epg.json`: the programmes of a stream with a schedule.
    Guide(GuideFormat),
    /// `window.copy`: the window of the stream, for another node of a cluster.
    Copy,
    /// `whep`, `whip`: peers of WebRTC send their offers there. `whep/5a3f…`: a session, by its id.
    WebRtc(WebRtcUse, Option<String>),
    /// Media of one run.
    OfRun {
        /// Name of the run, without its `~`.
        run: String,
        /// Name of the track.
        track: String,
        /// The media.
        media: LiveMedia,
    },
}

/// Formats of a list of programmes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuideFormat {
    /// XMLTV.
    Xmltv,
    /// JSON.
    Json,
}

/// Use of a stream by a WebRTC peer: WHEP plays it, WHIP publishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebRtcUse {
    /// It plays the stream (WHEP, draft-ietf-wish-whep).
    Play,
    /// It publishes the stream (WHIP, RFC 9725).
    Publish,
}

impl WebRtcUse {
    /// The use of an address by its name.
    fn of(name: &str) -> Option<Self> {
        [Self::Play, Self::Publish].into_iter().find(|of| of.name() == name)
    }

    /// Name of the address to which offers are sent.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Play => "whep",
            Self::Publish => "whip",
        }
    }
}

/// Media of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveMedia {
    /// `~RUN/v1/init-2.mp4`: the init segment of an epoch.
    Init(u32),
    /// `~RUN/v1/12.m4s`: a segment.
    Segment(u64),
    /// `~RUN/v1/t900000.m4s`: the segment that starts at a time of the track's timescale.
    SegmentAt(u64),
    /// `~RUN/v1/12.3.m4s`: a part of a segment. Parts count from 0.
    Part(u64, u16),
    /// `ts/~RUN/v1/12.ts`: a segment as a transport stream.
    Transport(u64),
    /// `~RUN/text1/12.vtt`, `ts/~RUN/text1/12.vtt`: a segment of subtitles, with the times of a container.
    Text(Container, u64),
}

/// A path that names something made of a running stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRoute {
    /// Path of the stream, without slashes at its ends.
    pub stream: String,
    /// The resource of it.
    pub resource: LiveResource,
}

impl LiveRoute {
    /// Parses a decoded path. Returns `None` where its end has no form of a [`LiveResource`].
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/').unwrap_or(path);
        // Publishers are told URLs that people copy, with a slash at the end too.
        if let Some(trimmed) = path.strip_suffix('/').filter(|path| WebRtcUse::of(split(path).1).is_some()) {
            return Self::parse(trimmed);
        }
        let (above, name) = split(path);
        let of = |stream: &str, resource| Some(Self { stream: stream.to_owned(), resource });
        match name {
            "index.mpd" => return of(above, LiveResource::Mpd),
            "stream.mp4" => return of(above, LiveResource::Long(Container::Fmp4)),
            "snapshot.jpg" => return of(above, LiveResource::Snapshot),
            "window.copy" => return of(above, LiveResource::Copy),
            "epg.xml" => return of(above, LiveResource::Guide(GuideFormat::Xmltv)),
            "epg.json" => return of(above, LiveResource::Guide(GuideFormat::Json)),
            "stream.ts" => return of(above, LiveResource::Long(Container::Ts)),
            "index.m3u8" => {
                let (stream, track) = split(above);
                if !is_live_track(track) {
                    let (stream, container) = container(above);
                    return of(stream, LiveResource::Multivariant(container));
                }
                let (stream, container) = container(stream);
                return of(stream, LiveResource::Media(container, track.to_owned()));
            }
            _ => {}
        }
        if let Some(end) = WebRtcUse::of(name) {
            return of(above, LiveResource::WebRtc(end, None));
        }
        if let (stream, end) = split(above)
            && let Some(end) = WebRtcUse::of(end)
            && is_session(name)
        {
            return of(stream, LiveResource::WebRtc(end, Some(name.to_owned())));
        }
        let mut media = LiveMedia::parse(name)?;
        let (above, track) = split(above);
        let (stream, run) = split(above);
        let run = run.strip_prefix('~').filter(|run| is_run(run))?;
        let stream = match (media, container(stream)) {
            (LiveMedia::Transport(_), (stream, Container::Ts)) => stream,
            (LiveMedia::Transport(_), _) => return None,
            (LiveMedia::Text(_, number), (stream, container)) => {
                media = LiveMedia::Text(container, number);
                stream
            }
            _ => stream,
        };
        if !is_live_track(track) {
            return None;
        }
        of(stream, LiveResource::OfRun { run: run.to_owned(), track: track.to_owned(), media })
    }
}

impl LiveMedia {
    /// Parses the name of a file.
    fn parse(name: &str) -> Option<Self> {
        let (stem, extension) = name.rsplit_once('.')?;
        match (extension, stem.split_once('.')) {
            ("mp4", None) => Some(Self::Init(counted(stem.strip_prefix("init-")?)?)),
            ("ts", None) => Some(Self::Transport(number(stem)?)),
            ("vtt", None) => Some(Self::Text(Container::Fmp4, number(stem)?)),
            ("m4s", None) => Some(match stem.strip_prefix('t') {
                Some(start) => Self::SegmentAt(counted(start)?),
                None => Self::Segment(number(stem)?),
            }),
            ("m4s", Some((segment, part))) => Some(Self::Part(number(segment)?, counted(part)?)),
            _ => None,
        }
    }
}

/// Splits the folder of transport streams off the end of a path.
fn container(path: &str) -> (&str, Container) {
    match split(path) {
        (above, "ts") => (above, Container::Ts),
        _ => (path, Container::Fmp4),
    }
}

/// `v1`, `a2`, `text1`: the kind and a number from 1. Subtitles of stored titles have `s1`, which live ones leave to the names of cameras.
pub(crate) fn is_live_track(name: &str) -> bool {
    let rest = name.strip_prefix(['v', 'a']).or_else(|| name.strip_prefix("text"));
    rest.is_some_and(|n| number::<u32>(n).is_some())
}

/// Whether a text has the form of a run's name.
fn is_run(text: &str) -> bool {
    (1..=RUN).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
}

/// Whether a text has the form of a session's id: random bytes in hexadecimal digits.
fn is_session(text: &str) -> bool {
    text.len() == SESSION && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// A number from 0 in its only form.
fn counted<T: std::str::FromStr + Default>(text: &str) -> Option<T> {
    if text == "0" { Some(T::default()) } else { number(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form() {
        use Container::{Fmp4, Ts};
        use LiveMedia::{Init, Part, Segment, SegmentAt, Transport};
        use LiveResource::{Long, Media, Mpd, Multivariant, Snapshot};
        let of_run =
            |track: &str, media| LiveResource::OfRun { run: "0a1b".to_owned(), track: track.to_owned(), media };
        let (play, publish) = (WebRtcUse::Play, WebRtcUse::Publish);
        let id = || Some("00112233445566778899aabbccddeeff".to_owned());
        for (path, resource) in [
            ("index.m3u8", Multivariant(Fmp4)),
            ("ts/index.m3u8", Multivariant(Ts)),
            ("index.mpd", Mpd),
            ("snapshot.jpg", Snapshot),
            ("window.copy", LiveResource::Copy),
            ("epg.xml", LiveResource::Guide(GuideFormat::Xmltv)),
            ("epg.json", LiveResource::Guide(GuideFormat::Json)),
            ("whep", LiveResource::WebRtc(play, None)),
            ("whip/", LiveResource::WebRtc(publish, None)),
            ("whep/00112233445566778899aabbccddeeff", LiveResource::WebRtc(play, id())),
            ("whip", LiveResource::WebRtc(publish, None)),
            ("whip/00112233445566778899aabbccddeeff", LiveResource::WebRtc(publish, id())),
            ("stream.mp4", Long(Fmp4)),
            ("stream.ts", Long(Ts)),
            ("v1/index.m3u8", Media(Fmp4, "v1".to_owned())),
            ("a12/index.m3u8", Media(Fmp4, "a12".to_owned())),
            ("ts/a12/index.m3u8", Media(Ts, "a12".to_owned())),
            ("ts/~0a1b/v1/12.ts", of_run("v1", Transport(12))),
            ("text1/index.m3u8", Media(Fmp4, "text1".to_owned())),
            ("ts/text2/index.m3u8", Media(Ts, "text2".to_owned())),
            ("~0a1b/text1/12.vtt", of_run("text1", LiveMedia::Text(Fmp4, 12))),
            ("ts/~0a1b/text1/12.vtt", of_run("text1", LiveMedia::Text(Ts, 12))),
            ("~0a1b/v1/init-0.mp4", of_run("v1", Init(0))),
            ("~0a1b/v1/init-4294967295.mp4", of_run("v1", Init(u32::MAX))),
            ("~0a1b/v1/12.m4s", of_run("v1", Segment(12))),
            ("~0a1b/a2/1795341590.m4s", of_run("a2", Segment(1_795_341_590))),
            ("~0a1b/v1/t0.m4s", of_run("v1", SegmentAt(0))),
            ("~0a1b/v1/t900000.m4s", of_run("v1", SegmentAt(900_000))),
            ("~0a1b/v1/12.0.m4s", of_run("v1", Part(12, 0))),
            ("~0a1b/v1/18446744073709551615.65535.m4s", of_run("v1", Part(u64::MAX, u16::MAX))),
        ] {
            for stream in ["cams/floor 2/door", "door", ""] {
                let full = if stream.is_empty() { format!("/{path}") } else { format!("/{stream}/{path}") };
                let expected = LiveRoute { stream: stream.to_owned(), resource: resource.clone() };
                assert_eq!(LiveRoute::parse(&full), Some(expected), "{full}");
            }
        }
    }

    #[test]
    fn other_paths_have_no_form() {
        for path in [
            "",
            "/cams/door",
            "/door/v1/12.m4s",
            "/door/v1/init-0.mp4",
            "/door/0a1b/v1/12.m4s",
            "/door/~/v1/12.m4s",
            "/door/~0A1B/v1/12.m4s",
            "/door/~../v1/12.m4s",
            "/door/~0a1b/x1/12.m4s",
            "/door/~0a1b/12.m4s",
            "/door/~0a1b/v1/0.m4s",
            "/door/~0a1b/v1/012.m4s",
            "/door/~0a1b/v1/t.m4s",
            "/door/~0a1b/v1/t012.m4s",
            "/door/~0a1b/v1/t12.0.m4s",
            "/door/~0a1b/v1/12.00.m4s",
            "/door/~0a1b/v1/12.65536.m4s",
            "/door/~0a1b/v1/12.3.4.m4s",
            "/door/~0a1b/v1/18446744073709551616.m4s",
            "/door/~0a1b/v1/init.mp4",
            "/door/~0a1b/v1/init-.mp4",
            "/door/~0a1b/v1/init-01.mp4",
            "/door/~0a1b/v1/init-4294967296.mp4",
            "/door/~0a1b/v1/12.ts",
            "/door/ts/~0a1b/v1/012.ts",
            "/door/ts/~0a1b/v1/12.0.ts",
            "/door/ts/v1/12.ts",
        ] {
            assert_eq!(LiveRoute::parse(path), None, "{path}");
        }
        let long = format!("/door/~{}/v1/1.m4s", "0".repeat(RUN + 1));
        assert_eq!(LiveRoute::parse(&long), None);
    }
}
