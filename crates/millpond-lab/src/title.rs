//! The contents of a manifest, HLS or DASH, in the one form that the player needs.

use std::rc::Rc;

use url::Url;

use crate::m3u8::{self, M3u8Error, Multivariant, Part, Playlist};
use crate::mpd::{self, AdaptationSet, ContentType, Mpd, MpdError, Period};
use crate::resource::Resource;

/// Most servers of a title that are told apart.
const MOST_SERVERS: usize = 8;

/// A title as its top manifest describes it.
#[derive(Debug, Default)]
pub(crate) struct Title {
    /// By rising bandwidth; there is at least one.
    pub(crate) ladder: Vec<Rendition>,
    /// Audio fetched beside the ladder.
    pub(crate) audio: Vec<Rendition>,
    /// The same at other servers, with as many rungs, in the order of the manifest.
    pub(crate) elsewhere: Vec<Title>,
}

/// One rung of the ladder, or one audio rendition.
#[derive(Debug)]
pub(crate) struct Rendition {
    /// Bits per second.
    pub(crate) bandwidth: u64,
    pub(crate) media: Media,
    /// Index in [`Title::audio`] of what plays along with it.
    pub(crate) audio: Option<usize>,
}

/// Where the segments of a rendition are listed.
#[derive(Clone, Debug)]
pub(crate) enum Media {
    /// In a media playlist, to be fetched.
    Playlist(Url),
    /// Here.
    Track(Rc<Track>),
}

/// The segments of one rendition.
#[derive(Debug, Default)]
pub(crate) struct Track {
    pub(crate) inits: Vec<Resource>,
    pub(crate) segments: Vec<TrackSegment>,
}

/// One segment in its place.
#[derive(Debug)]
pub(crate) struct TrackSegment {
    pub(crate) resource: Resource,
    /// Media seconds.
    pub(crate) start: f64,
    /// Media seconds.
    pub(crate) end: f64,
    /// Index in [`Track::inits`].
    pub(crate) init: Option<usize>,
}

/// The kind of a manifest, told by its text.
#[derive(Clone, Debug)]
pub(crate) enum Document {
    Title(Rc<Title>),
    /// An HLS media playlist.
    Track(Rc<Track>),
}

/// Why a manifest can't be played.
#[derive(Debug, thiserror::Error)]
pub enum TitleError {
    /// Not a playlist as RFC 8216 has them.
    #[error(transparent)]
    M3u8(#[from] M3u8Error),
    /// Not an MPD as ISO/IEC 23009-1 has them.
    #[error(transparent)]
    Mpd(#[from] MpdError),
    /// A reference that is no URL.
    #[error("the manifest names the URL {reference:?}: {source}")]
    Url {
        /// As written.
        reference: String,
        /// Description of the fault.
        source: url::ParseError,
    },
    /// The playlist may still grow.
    #[error("the playlist has no EXT-X-ENDLIST: live titles are not played")]
    Live,
    /// There is nothing to play.
    #[error("the manifest lists no {0}")]
    Empty(&'static str),
    /// A multivariant playlist where segments were expected.
    #[error("expected a media playlist, found a multivariant playlist or an MPD")]
    Nested,
    /// Bytes that are not text.
    #[error("the manifest is not UTF-8 text from byte {0}")]
    Encoding(usize),
}

/// Returns whether the first bytes are those of a manifest, and of which kind.
pub(crate) fn detect(head: &[u8]) -> Option<Format> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if head.starts_with(b"#EXTM3U") {
        return Some(Format::Hls);
    }
    let head = head.get(..1024).unwrap_or(head);
    let is_xml = head.trim_ascii_start().starts_with(b"<");
    (is_xml && head.windows(4).any(|window| window == b"<MPD")).then_some(Format::Dash)
}

/// The kinds of manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Hls,
    Dash,
}

impl Document {
    /// Reads a manifest of any kind that was fetched from `location`.
    pub(crate) fn read(body: &[u8], location: &Url) -> Result<Self, TitleError> {
        let text = std::str::from_utf8(body).map_err(|problem| TitleError::Encoding(problem.valid_up_to()))?;
        if detect(body) == Some(Format::Dash) {
            return Ok(Self::Title(Rc::new(from_mpd(mpd::parse(text, location)?)?)));
        }
        Ok(match m3u8::parse(text)? {
            Playlist::Multivariant(list) => Self::Title(Rc::new(from_multivariant(&list, location)?)),
            Playlist::Media(list) => Self::Track(Rc::new(from_media(&list, location)?)),
        })
    }

    /// As the top of a title: a lone media playlist is a title of one rendition.
    pub(crate) fn title(self) -> Rc<Title> {
        match self {
            Self::Title(title) => title,
            Self::Track(track) => {
                let only = Rendition { bandwidth: 0, media: Media::Track(track), audio: None };
                Rc::new(Title { ladder: vec![only], ..Title::default() })
            }
        }
    }

    /// As what a multivariant playlist refers to.
    pub(crate) fn track(self) -> Result<Rc<Track>, TitleError> {
        match self {
            Self::Track(track) => Ok(track),
            Self::Title(_) => Err(TitleError::Nested),
        }
    }
}

impl Title {
    /// Number of servers that have it.
    pub(crate) fn servers(&self) -> usize {
        1 + self.elsewhere.len()
    }

    /// The title at a server: 0 is the first one of the manifest.
    pub(crate) fn at(&self, server: usize) -> &Self {
        server.checked_sub(1).and_then(|other| self.elsewhere.get(other)).unwrap_or(self)
    }
}

impl Track {
    /// The segment to fetch for a media time: the first that reaches past it by a tenth of its length, so that
    /// renditions whose segments end a few milliseconds apart follow each other without a segment twice.
    pub(crate) fn at(&self, time: f64) -> Option<(usize, &TrackSegment)> {
        let reaches = |segment: &TrackSegment| segment.end > time + 0.1 * (segment.end - segment.start);
        let index = self.segments.partition_point(|segment| !reaches(segment));
        self.segments.get(index).map(|segment| (index, segment))
    }

    /// Media seconds.
    pub(crate) fn end(&self) -> f64 {
        self.segments.last().map_or(0.0, |segment| segment.end)
    }
}

fn join(base: &Url, reference: &str) -> Result<Url, TitleError> {
    base.join(reference).map_err(|source| TitleError::Url { reference: reference.to_owned(), source })
}

/// The variants of the first pathway, and those of others.
fn from_multivariant(list: &Multivariant, base: &Url) -> Result<Title, TitleError> {
    let mut pathways: Vec<&Option<String>> = Vec::new();
    for variant in &list.variants {
        if !pathways.contains(&&variant.pathway) && pathways.len() < MOST_SERVERS {
            pathways.push(&variant.pathway);
        }
    }
    let of = |pathway: &Option<String>| from_variants(list, pathway, base);
    let mut title = of(pathways.first().ok_or(TitleError::Empty("variants"))?)?;
    let others = pathways[1..].iter().map(|pathway| of(pathway)).collect::<Result<Vec<_>, _>>()?;
    let (rungs, audio) = (title.ladder.len(), title.audio.len());
    title.elsewhere = others;
    title.elsewhere.retain(|other| other.ladder.len() == rungs && other.audio.len() == audio);
    Ok(title)
}

/// RFC 8216 4.3.4: the ladder is the variants with video where there are any, each URI once (it comes again with
/// other audio groups); each rung plays with its group's default audio.
fn from_variants(list: &Multivariant, pathway: &Option<String>, base: &Url) -> Result<Title, TitleError> {
    let variants = || list.variants.iter().filter(|variant| variant.pathway == *pathway);
    let with_video = variants().any(|variant| variant.has_resolution);
    let mut title = Title::default();
    let mut seen = std::collections::HashSet::new();
    let mut audio_of = std::collections::HashMap::new();
    for variant in variants().filter(|variant| variant.has_resolution == with_video) {
        if !seen.insert(&variant.uri) {
            continue;
        }
        let audio = match &variant.audio {
            None => None,
            Some(group) => match audio_of.get(group) {
                Some(&known) => known,
                None => {
                    let found = group_audio(list, group, base, &mut title.audio)?;
                    audio_of.insert(group, found);
                    found
                }
            },
        };
        let media = Media::Playlist(join(base, &variant.uri)?);
        title.ladder.push(Rendition { bandwidth: variant.bandwidth, media, audio });
    }
    if title.ladder.is_empty() {
        return Err(TitleError::Empty("variants"));
    }
    title.ladder.sort_by_key(|rendition| rendition.bandwidth);
    Ok(title)
}

/// Adds the default rendition of a group, where it has a playlist of its own.
fn group_audio(
    list: &Multivariant,
    group: &str,
    base: &Url,
    audio: &mut Vec<Rendition>,
) -> Result<Option<usize>, TitleError> {
    let mut members = list.audio.iter().filter(|rendition| rendition.group == group);
    let first = members.clone().next();
    let chosen = members.find(|rendition| rendition.default).or(first);
    let Some(uri) = chosen.and_then(|rendition| rendition.uri.as_ref()) else { return Ok(None) };
    audio.push(Rendition { bandwidth: 0, media: Media::Playlist(join(base, uri)?), audio: None });
    Ok(Some(audio.len() - 1))
}

fn from_media(list: &m3u8::MediaPlaylist, base: &Url) -> Result<Track, TitleError> {
    if !list.ended {
        return Err(TitleError::Live);
    }
    let resource = |part: &Part| Ok::<_, TitleError>(Resource::new(join(base, &part.uri)?, part.range));
    let inits = list.maps.iter().map(resource).collect::<Result<_, _>>()?;
    let mut track = Track { inits, segments: Vec::with_capacity(list.segments.len()) };
    for segment in &list.segments {
        track.push(resource(&segment.part)?, segment.duration, segment.map);
    }
    if track.segments.is_empty() {
        return Err(TitleError::Empty("segments"));
    }
    Ok(track)
}

impl Track {
    fn push(&mut self, resource: Resource, duration: f64, init: Option<usize>) {
        let start = self.end();
        self.segments.push(TrackSegment { resource, start, end: start + duration, init });
    }
}

/// The first video set and the first audio set of each period, one period after the other; without video the
/// audio is the ladder.
fn from_mpd(mpd: Mpd) -> Result<Title, TitleError> {
    let elsewhere = mpd.others.into_iter().map(from_mpd).collect::<Result<_, _>>()?;
    let mut video: Vec<(u64, Track)> = Vec::new();
    let mut audio: Vec<(u64, Track)> = Vec::new();
    for Period { duration, sets } in mpd.periods {
        let (mut has_video, mut has_audio) = (false, false);
        for set in sets {
            match set.kind {
                ContentType::Video if !has_video => {
                    has_video = true;
                    append_period(&mut video, set, duration);
                }
                ContentType::Audio if !has_audio => {
                    has_audio = true;
                    append_period(&mut audio, set, duration);
                }
                _ => {}
            }
        }
    }
    if video.is_empty() {
        video = std::mem::take(&mut audio);
    }
    let rendition = |(bandwidth, track): (u64, Track), audio| {
        if track.segments.is_empty() {
            return Err(TitleError::Empty("segments for one of the representations"));
        }
        Ok(Rendition { bandwidth, media: Media::Track(Rc::new(track)), audio })
    };
    let top = video.len().saturating_sub(1);
    // The top rung comes with the best audio, the others with the leanest.
    let audio_of = |rung: usize| audio.len().checked_sub(1).map(|best| if rung == top { best } else { 0 });
    let ladder = video.into_iter().enumerate().map(|(rung, row)| rendition(row, audio_of(rung)));
    let ladder: Vec<_> = ladder.collect::<Result<_, _>>()?;
    if ladder.is_empty() {
        return Err(TitleError::Empty("video or audio"));
    }
    let audio = audio.into_iter().map(|row| rendition(row, None)).collect::<Result<_, _>>()?;
    Ok(Title { ladder, audio, elsewhere })
}

/// Adds a period's representations to the tracks so far, the leanest to the leanest and so on. A period with
/// fewer representations than the first leaves the upper tracks without it; one with more loses the rest.
fn append_period(tracks: &mut Vec<(u64, Track)>, set: AdaptationSet, period: f64) {
    let mut representations = set.representations;
    representations.sort_by_key(|representation| representation.bandwidth);
    let first = tracks.is_empty();
    for (index, representation) in representations.into_iter().enumerate() {
        if first {
            tracks.push((representation.bandwidth, Track::default()));
        }
        let Some((_, track)) = tracks.get_mut(index) else { return };
        let start = track.end();
        let init = representation.init.map(|init| {
            track.inits.push(init);
            track.inits.len() - 1
        });
        for segment in representation.segments {
            if track.end() - start < period {
                track.push(segment.resource, segment.duration, init);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location() -> Url {
        Url::parse("http://h/f/index").unwrap()
    }

    fn title(text: &str) -> Rc<Title> {
        Document::read(text.as_bytes(), &location()).expect(text).title()
    }

    fn path(media: &Media) -> String {
        match media {
            Media::Playlist(url) => url.path().to_owned(),
            Media::Track(track) => track.segments[0].resource.url.path().to_owned(),
        }
    }

    #[test]
    fn formats_by_first_bytes() {
        let table: [(&[u8], Option<Format>); 6] = [
            (b"#EXTM3U\n", Some(Format::Hls)),
            (b"\xef\xbb\xbf#EXTM3U\n", Some(Format::Hls)),
            (b"<?xml version=\"1.0\"?>\n<!-- x -->\n<MPD xmlns=", Some(Format::Dash)),
            (b"<html>", None),
            (b"\0\0\0\x20ftyp<MPD", None),
            (b"", None),
        ];
        for (head, format) in table {
            assert_eq!(detect(head), format, "{head:?}");
        }
    }

    #[test]
    fn hls_ladder_rises_without_repeats_and_without_audio_only() {
        let title = title(
            "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",URI=\"fr\"\n\
             #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",DEFAULT=YES,URI=\"en\"\n\
             #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"b\",URI=\"surround\"\n\
             #EXT-X-STREAM-INF:BANDWIDTH=3,RESOLUTION=2x2,AUDIO=\"a\"\nhigh\n\
             #EXT-X-STREAM-INF:BANDWIDTH=2,RESOLUTION=1x1,AUDIO=\"a\"\nlow\n\
             #EXT-X-STREAM-INF:BANDWIDTH=9,RESOLUTION=2x2,AUDIO=\"b\"\nhigh\n\
             #EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nen\n",
        );
        let ladder: Vec<_> = title.ladder.iter().map(|r| (path(&r.media), r.bandwidth, r.audio)).collect();
        assert_eq!(ladder, [("/f/low".to_owned(), 2, Some(0)), ("/f/high".to_owned(), 3, Some(0))]);
        assert_eq!(title.audio.iter().map(|r| path(&r.media)).collect::<Vec<_>>(), ["/f/en"]);
    }

    #[test]
    fn pathways_are_servers_of_one_title() {
        let title = title(
            "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",URI=\"en\"\n\
             #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a-2\",URI=\"http://i/en\"\n\
             #EXT-X-STREAM-INF:BANDWIDTH=3,RESOLUTION=2x2,AUDIO=\"a\",PATHWAY-ID=\"1\"\nhigh\n\
             #EXT-X-STREAM-INF:BANDWIDTH=2,RESOLUTION=1x1,AUDIO=\"a\",PATHWAY-ID=\"1\"\nlow\n\
             #EXT-X-STREAM-INF:BANDWIDTH=3,RESOLUTION=2x2,AUDIO=\"a-2\",PATHWAY-ID=\"2\"\nhttp://i/high\n\
             #EXT-X-STREAM-INF:BANDWIDTH=2,RESOLUTION=1x1,AUDIO=\"a-2\",PATHWAY-ID=\"2\"\nhttp://i/low\n\
             #EXT-X-STREAM-INF:BANDWIDTH=9,RESOLUTION=1x1,AUDIO=\"a\",PATHWAY-ID=\"poor\"\nonly\n",
        );
        assert_eq!(title.servers(), 2, "the third has other rungs");
        for (server, paths) in [(0, ["/f/low", "/f/high", "/f/en"]), (1, ["/low", "/high", "/en"])] {
            let at = title.at(server);
            let found: Vec<_> = at.ladder.iter().chain(&at.audio).map(|rendition| path(&rendition.media)).collect();
            assert_eq!(found, paths);
            assert_eq!(at.ladder[0].audio, Some(0));
        }
    }

    #[test]
    fn a_lone_media_playlist_is_a_title() {
        let title = title("#EXTM3U\n#EXTINF:4,\n1.ts\n#EXTINF:2,\n2.ts\n#EXT-X-ENDLIST\n");
        let Media::Track(track) = &title.ladder[0].media else { panic!("expected its track") };
        assert_eq!(track.end(), 6.0);
    }

    #[test]
    fn segments_are_found_by_time() {
        let title = title("#EXTM3U\n#EXTINF:4,\n1\n#EXTINF:0,\n2\n#EXTINF:4,\n3\n#EXT-X-ENDLIST\n");
        let Media::Track(track) = &title.ladder[0].media else { panic!("expected its track") };
        let table = [(0.0, Some(0)), (3.5, Some(0)), (3.7, Some(1)), (4.0, Some(2)), (7.5, Some(2)), (8.0, None)];
        for (time, index) in table {
            assert_eq!(track.at(time).map(|(index, _)| index), index, "{time}");
        }
    }

    #[test]
    fn dash_periods_follow_each_other() {
        let set = |kind: &str, ids: &[(&str, u64)]| {
            let representations: String = ids
                .iter()
                .map(|(id, bandwidth)| format!("<Representation id=\"{id}\" bandwidth=\"{bandwidth}\"/>"))
                .collect();
            format!(
                "<AdaptationSet contentType=\"{kind}\"><SegmentTemplate media=\"$RepresentationID$/$Number$\" \
                 initialization=\"$RepresentationID$/i\" duration=\"4\"/>{representations}</AdaptationSet>"
            )
        };
        let title = title(&format!(
            "<MPD><Period duration=\"PT6S\">{}{}{}</Period><Period duration=\"PT4S\">{}</Period></MPD>",
            set("video", &[("v2", 200), ("v1", 100)]),
            set("video", &[("other", 1)]),
            set("audio", &[("a1", 10), ("a2", 20)]),
            set("video", &[("w1", 90), ("w2", 210)]),
        ));
        let bandwidths: Vec<_> = title.ladder.iter().map(|r| (r.bandwidth, r.audio)).collect();
        assert_eq!(bandwidths, [(100, Some(0)), (200, Some(1))]);
        let Media::Track(track) = &title.ladder[1].media else { panic!("expected its track") };
        let rows: Vec<_> = track.segments.iter().map(|s| (s.resource.url.path(), s.start, s.end, s.init)).collect();
        assert_eq!(
            rows,
            [("/f/v2/1", 0.0, 4.0, Some(0)), ("/f/v2/2", 4.0, 6.0, Some(0)), ("/f/w2/1", 6.0, 10.0, Some(1)),]
        );
        assert_eq!(track.inits[1].url.path(), "/f/w2/i");
    }

    #[test]
    fn what_cannot_be_played_is_said() {
        let table: [(&[u8], &str); 6] = [
            (b"#EXTM3U\n#EXTINF:4,\n1.ts\n", "live"),
            (b"#EXTM3U\n#EXT-X-ENDLIST\n", "no segments"),
            (b"#EXTM3U\n#EXTINF:4,\nhttp://[\n#EXT-X-ENDLIST\n", "http://["),
            (b"#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\"\n", "no variants"),
            (b"<MPD><Period duration=\"PT1S\"/></MPD>", "no video or audio"),
            (b"#EXTM3U\n\xff", "byte 8"),
        ];
        for (body, word) in table {
            let error = Document::read(body, &location()).expect_err(word).to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
