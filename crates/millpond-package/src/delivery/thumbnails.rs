//! Thumbnails for seeking: small pictures of an asset at equal intervals, laid out in sheets.
//!
//! Players find them as WebVTT with places in images, as tiled thumbnails of DASH (DASH-IF IOP 6.2.6), and as image playlists
//! of HLS. The pictures are key frames of the smallest H.264 rendition: the decoder that makes the sheets knows no other codec.

use crate::{
    plan::ObjectRange,
    presentation::{
        Presentation,
        track::{MediaKind, PresentedTrack},
    },
    writing::{digits, xml::Writer},
};
use millpond_media::{
    codec::{Codec, PictureSequence},
    movie::TrackKind,
};

/// Columns and rows of a sheet.
pub const LAYOUT: (u32, u32) = (5, 5);
/// Width of a thumbnail in pixels. That of high pictures is less.
const WIDTH: u32 = 160;
/// Greatest height of a thumbnail in pixels.
const MOST_HEIGHT: u32 = 160;
/// Most samples of a coded picture: 1920 by 1088.
const MOST_SAMPLES: u32 = 1920 * 1088;
/// Seconds between thumbnails: of assets up to the seconds before, and of longer ones.
const INTERVALS: [(f64, u32); 2] = [(120.0, 2), (600.0, 5)];
const LONG_INTERVAL: u32 = 10;
/// Most pictures that a poster is chosen from. The distance between two pictures is a tenth of the asset.
const POSTERS: u32 = 5;
/// Bytes of a thumbnail in a sheet, for the bandwidth in manifests. They are not made to write a manifest.
const BYTES: u64 = 4000;

/// Thumbnails of an asset.
#[derive(Clone, Copy, Debug)]
pub struct Thumbnails<'a> {
    track: &'a PresentedTrack,
    /// Seconds between two of them.
    interval: u32,
    /// Number of thumbnails.
    count: u32,
    size: (u32, u32),
}

/// Whether the decoder reads the samples of a codec: 8 bits, 4:2:0 or without colour. Unread parameter sets count as plain.
fn is_plain(codec: &Codec) -> bool {
    PictureSequence::of(codec).is_none_or(|set| set.chroma_format <= 1 && set.bit_depths == (8, 8))
}

impl<'a> Thumbnails<'a> {
    /// Returns the thumbnails of an asset; `None` where it has no video, or one that can't be decoded for them.
    #[must_use]
    pub fn of(presentation: &'a Presentation) -> Option<Self> {
        let track = presentation.of_kind(MediaKind::Video).find(|track| !track.is_alternative())?;
        let source = track.source_track().filter(|source| matches!(source.codec, Codec::Avc(_)))?;
        let TrackKind::Video { width, height, .. } = source.kind else { return None };
        let fits = u32::from(width).saturating_mul(u32::from(height)) <= MOST_SAMPLES;
        if !fits || !is_plain(&source.codec) || track.protection().is_some() {
            return None;
        }
        let (width, height) = track.display_size()?;
        let interval = INTERVALS.iter().find(|(most, _)| presentation.duration() <= *most);
        let interval = interval.map_or(LONG_INTERVAL, |(_, interval)| *interval);
        let count =
            (presentation.duration() / f64::from(interval)).ceil().clamp(1.0, f64::from(u32::MAX / 1000)) as u32;
        Some(Self { track, interval, count, size: fitted(width, height) })
    }

    /// Name of the track that they are made of.
    #[must_use]
    pub fn track(&self) -> &'a str {
        self.track.name()
    }

    /// Width and height of a thumbnail in pixels. Both are even.
    #[must_use]
    pub const fn size(&self) -> (u32, u32) {
        self.size
    }

    /// Number of sheets.
    #[must_use]
    pub const fn sheets(&self) -> u32 {
        self.count.div_ceil(LAYOUT.0 * LAYOUT.1)
    }

    /// Returns the numbers of the pictures for trick play on sheet `number` (from 1), row by row. `None` if there is no such
    /// sheet. The first call for a track makes its list of pictures, in proportion to its samples.
    #[must_use]
    pub fn pictures(&self, number: u32) -> Option<Vec<u32>> {
        let media = self.track.media()?;
        let first = number.checked_sub(1).filter(|_| number <= self.sheets())? * LAYOUT.0 * LAYOUT.1;
        let end = self.count.min(first + LAYOUT.0 * LAYOUT.1);
        let scale = i64::from(media.track().timescale.get());
        let iframes = media.iframes(self.track.segments().end());
        Some((first..end).map(|n| iframes.at(i64::from(n * self.interval) * scale)).collect())
    }

    /// Returns the numbers of the pictures for trick play that a poster is chosen from, each once. The first picture is at a tenth of the
    /// asset, because openings are often black.
    #[must_use]
    pub fn posters(&self) -> Vec<u32> {
        let Some(media) = self.track.media() else { return Vec::new() };
        let end = self.track.segments().end();
        let iframes = media.iframes(end);
        let mut numbers: Vec<u32> = (1..=POSTERS).map(|tenths| iframes.at(end / 10 * i64::from(tenths))).collect();
        numbers.dedup();
        numbers
    }

    /// Returns the WebVTT text in which each cue is a place on a sheet (media fragments, `#xywh=`).
    #[must_use]
    pub fn webvtt(&self) -> String {
        let mut out = String::with_capacity(16 + self.count as usize * 72);
        out.push_str("WEBVTT\n");
        let (width, height) = self.size;
        for n in 0..self.count {
            out.push('\n');
            clock(&mut out, n * self.interval);
            out.push_str(" --> ");
            clock(&mut out, (n + 1) * self.interval);
            let (sheet, place) = (n / (LAYOUT.0 * LAYOUT.1), n % (LAYOUT.0 * LAYOUT.1));
            out.push_str("\nsheet");
            digits::push(&mut out, u64::from(sheet + 1));
            out.push_str(".jpg#xywh=");
            for (place, value) in
                [place % LAYOUT.0 * width, place / LAYOUT.0 * height, width, height].into_iter().enumerate()
            {
                if place > 0 {
                    out.push(',');
                }
                digits::push(&mut out, u64::from(value));
            }
            out.push('\n');
        }
        out
    }

    /// Returns the image playlist of HLS.
    #[must_use]
    pub fn playlist(&self) -> String {
        let lasts = self.sheet_duration();
        let mut out = format!(
            "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:{lasts}\n#EXT-X-MEDIA-SEQUENCE:1\n#EXT-X-PLAYLIST-TYPE:VOD\n\
             #EXT-X-IMAGES-ONLY\n"
        );
        let (width, height) = self.size;
        for sheet in 1..=self.sheets() {
            let ((columns, rows), interval) = (LAYOUT, self.interval);
            out.push_str(&format!(
                "#EXTINF:{lasts}.000000,\n#EXT-X-TILES:RESOLUTION={width}x{height},LAYOUT={columns}x{rows},\
                 DURATION={interval}.000000\nsheet{sheet}.jpg\n"
            ));
        }
        out.push_str("#EXT-X-ENDLIST\n");
        out
    }

    /// Writes the tag of the image playlist. `base` stands before the name of the track.
    pub(crate) fn stream(&self, out: &mut String, base: &str) {
        let ((width, height), name) = (self.size, self.track());
        out.push_str(&format!(
            "#EXT-X-IMAGE-STREAM-INF:BANDWIDTH={},RESOLUTION={width}x{height},CODECS=\"jpeg\",URI=\"{base}{name}/images.m3u8\"\n",
            self.bandwidth()
        ));
    }

    /// Writes the adaptation set of a MPD.
    pub(crate) fn adaptation_set(&self, w: &mut Writer, id: u64, base: &str) {
        let ((width, height), (columns, rows), name) = (self.size, LAYOUT, self.track());
        w.start("AdaptationSet").number("id", id).attribute("contentType", "image").attribute("mimeType", "image/jpeg");
        w.start("SegmentTemplate")
            .attribute("media", &format!("{base}{name}/sheet$Number$.jpg"))
            .number("duration", u64::from(self.sheet_duration()))
            .number("timescale", 1)
            .number("startNumber", 1)
            .end();
        w.start("Representation")
            .attribute("id", "thumbnails")
            .number("bandwidth", self.bandwidth())
            .number("width", u64::from(width * columns))
            .number("height", u64::from(height * rows));
        w.start("EssentialProperty")
            .attribute("schemeIdUri", "http://dashif.org/guidelines/thumbnail_tile")
            .attribute("value", &format!("{columns}x{rows}"))
            .end();
        w.end().end();
    }

    /// Seconds that a sheet covers.
    const fn sheet_duration(&self) -> u32 {
        self.interval * LAYOUT.0 * LAYOUT.1
    }

    const fn bandwidth(&self) -> u64 {
        8 * BYTES / self.interval as u64
    }
}

/// A key frame of a track.
#[derive(Clone, Copy, Debug)]
pub struct KeyFrame<'a> {
    /// Its bytes.
    pub place: ObjectRange,
    /// Codec with its parameter sets.
    pub codec: &'a Codec,
}

/// Returns the number of pictures for trick play of a track.
#[must_use]
pub fn key_frames(track: &PresentedTrack) -> usize {
    let media = track.media().filter(|_| track.kind() == MediaKind::Video);
    media.map_or(0, |media| media.iframes(track.segments().end()).durations().len())
}

/// Returns picture `number` (from 1) for trick play of a track.
#[must_use]
pub fn key_frame(track: &PresentedTrack, number: u32) -> Option<KeyFrame<'_>> {
    let media = track.media().filter(|_| track.kind() == MediaKind::Video && track.protection().is_none())?;
    let (ordinal, _) = media.iframes(track.segments().end()).get(number)?;
    let sample = media.timeline.at(&media.track().samples, ordinal)?.sample;
    let place = media.place(sample.range);
    Some(KeyFrame { place, codec: media.track().codec_of(sample.index) })
}

/// Returns the size of a thumbnail of a picture, with even sides.
fn fitted(width: u32, height: u32) -> (u32, u32) {
    let (width, height) = (u64::from(width.max(1)), u64::from(height.max(1)));
    let even = |side: u64| u32::try_from(side.clamp(2, u64::from(WIDTH)) / 2 * 2).unwrap_or(2);
    let high = u64::from(WIDTH) * height / width;
    if high <= u64::from(MOST_HEIGHT) {
        (WIDTH, even(high))
    } else {
        (even(u64::from(MOST_HEIGHT) * width / height), MOST_HEIGHT)
    }
}

/// Writes a time of WebVTT.
fn clock(out: &mut String, seconds: u32) {
    out.push_str(&format!("{:02}:{:02}:{:02}.000", seconds / 3600, seconds / 60 % 60, seconds % 60));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        dash, hls,
        testing::{frames, movie, presentation, reordered, table, video},
    };
    use millpond_media::Edit;

    #[test]
    fn thumbnails_are_key_frames_at_equal_intervals() {
        // 150 s from the first picture on, with a key frame every second.
        let edits = vec![Edit { duration: 150_000, media_time: Some(512) }];
        let film = presentation(vec![movie(vec![video(table(&reordered(3750, 25, 900), 48, 0), 12_800, edits)])]);
        let Some(thumbnails) = Thumbnails::of(&film) else { panic!("{:?}", film.tracks()[0].codec()) };
        assert_eq!((thumbnails.sheets(), thumbnails.size(), thumbnails.track()), (2, (160, 90), "v1"));
        let first = thumbnails.pictures(1).unwrap();
        assert_eq!((first.len(), &first[..3]), (25, &[1, 6, 11][..]));
        assert_eq!(thumbnails.pictures(2).unwrap().len(), 5);
        assert_eq!((thumbnails.pictures(0), thumbnails.pictures(3)), (None, None));
        let posters = thumbnails.posters();
        let distances: Vec<u32> = posters.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((15..=16).contains(&posters[0]) && distances == [15; 4], "{posters:?}");
        assert_eq!(key_frame(&film.tracks()[0], first[1]).unwrap().place.range.len(), 900);
        let text = thumbnails.webvtt();
        assert!(text.starts_with("WEBVTT\n\n00:00:00.000 --> 00:00:05.000\nsheet1.jpg#xywh=0,0,160,90\n"), "{text}");
        assert!(text.ends_with("\n00:02:25.000 --> 00:02:30.000\nsheet2.jpg#xywh=640,0,160,90\n"), "{text}");
        let playlist = thumbnails.playlist();
        let tiles = "#EXT-X-TILES:RESOLUTION=160x90,LAYOUT=5x5,DURATION=5.000000\nsheet2.jpg\n#EXT-X-ENDLIST\n";
        assert!(playlist.ends_with(tiles) && playlist.contains("#EXT-X-TARGETDURATION:125\n"), "{playlist}");
    }

    #[test]
    fn manifests_list_them_where_they_are_wanted() {
        let made =
            || presentation(vec![movie(vec![video(table(&reordered(250, 25, 900), 48, 0), 12_800, Vec::new())])]);
        let (plain, listed) = (made(), made().with_thumbnails(true));
        let lists =
            |film: &Presentation| (dash::mpd(film).unwrap(), hls::multivariant(film, hls::Container::Fmp4).unwrap());
        let (mpd, multivariant) = lists(&plain);
        assert!(!mpd.contains("thumbnail") && !multivariant.contains("IMAGE"));
        let (mpd, multivariant) = lists(&listed);
        assert!(
            mpd.contains("media=\"v1/sheet$Number$.jpg\" duration=\"50\"") && mpd.contains("value=\"5x5\""),
            "{mpd}"
        );
        assert!(multivariant.ends_with("CODECS=\"jpeg\",URI=\"v1/images.m3u8\"\n"), "{multivariant}");
    }

    #[test]
    fn pictures_that_the_decoder_does_not_read_have_none() {
        // Parameter sets of libx264: yuv420p, yuv422p and yuv420p10le.
        for (set, expected) in [
            ("6764000cacd941419f9f011000000300100000030320f1429960", true),
            ("677a000cbcd941419f8dc044000003000400000300c83c50a658", false),
            ("676e000ca6cd941419f9f011000003000100000300320f142996", false),
        ] {
            let mut track = video(table(&reordered(250, 25, 900), 48, 0), 12_800, Vec::new());
            let Codec::Avc(config) = &mut track.codec else { panic!("{:?}", track.codec) };
            let bytes = |at| u8::from_str_radix(&set[at..at + 2], 16).unwrap();
            config.sps = vec![(0..set.len()).step_by(2).map(bytes).collect()];
            assert!(PictureSequence::of(&track.codec).is_some(), "{set}");
            assert_eq!(Thumbnails::of(&presentation(vec![movie(vec![track])])).is_some(), expected, "{set}");
        }
    }

    #[test]
    fn sizes_keep_the_aspect() {
        assert_eq!(fitted(1920, 1080), (160, 90));
        assert_eq!(fitted(1080, 1920), (90, 160));
        assert_eq!(fitted(4, 1000), (2, 160));
        assert_eq!(fitted(1000, 1), (160, 2));
        let sound =
            presentation(vec![movie(vec![crate::testing::audio(table(&frames(100), 48, 0), "eng", Vec::new())])]);
        assert!(Thumbnails::of(&sound).is_none());
    }
}
