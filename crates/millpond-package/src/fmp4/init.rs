//! Init segments: `ftyp` and `moov` without samples.

use super::{boxes::BoxWriter, clock::Clock, protection};
use crate::{
    language,
    presentation::{
        Presentation,
        track::{MediaKind, PresentedTrack, display_size},
    },
};
use bytes::Bytes;
use millpond_media::{
    Orientation,
    movie::{Track, TrackKind},
    units::Timescale,
};
use std::time::Duration;

/// ID of the only track of a presentation's segments.
pub(super) const TRACK_ID: u32 = 1;
/// The number 1.0 as 16.16.
const ONE: u32 = 0x0001_0000;
/// `dref` entry flag: the media is in the same file (8.7.2.3).
const SELF_CONTAINED: u32 = 1;

/// One track in an init segment.
#[derive(Clone, Copy, Debug)]
pub struct TrackHeader<'a> {
    /// ID, from 1.
    pub id: u32,
    /// Codec, sample entry and picture. Its samples don't count.
    pub track: &'a Track,
    /// Kind of the track.
    pub kind: MediaKind,
    /// BCP 47 tag; `None` where the language is unknown.
    pub language: Option<&'a str>,
    /// Name for menus.
    pub label: &'a str,
    /// Clock of the fragments.
    pub timescale: Timescale,
    /// Media time of presentation time 0, in ticks of that clock.
    pub early: i64,
}

/// Returns the init segment of tracks whose end is not known, such as live ones.
#[must_use]
pub fn live_init(tracks: &[TrackHeader<'_>]) -> Bytes {
    let mut w = BoxWriter::with_capacity(256 + 1024 * tracks.len());
    movie(&mut w, tracks, None, |_| {});
    w.out.into()
}

/// Returns the init segment of tracks that last for `duration` from presentation time 0.
#[must_use]
pub fn clip_init(tracks: &[TrackHeader<'_>], duration: Duration) -> Bytes {
    let scale = u128::from(movie_timescale(tracks));
    let ticks = (duration.as_nanos() * scale).div_ceil(1_000_000_000);
    let mut w = BoxWriter::with_capacity(256 + 1024 * tracks.len());
    movie(&mut w, tracks, Some(i64::try_from(ticks).unwrap_or(i64::MAX)), |_| {});
    w.out.into()
}

/// Returns the init segment of a track; empty for sidecars, and for audio that fragmented MP4 can't carry.
#[must_use]
pub fn init(presentation: &Presentation, presented: &PresentedTrack) -> Bytes {
    let Some(media) = presented.packaged() else { return Bytes::new() };
    let track = media.delivered();
    let (timescale, early, end) = match &media.flac {
        Some(flac) => (track.timescale, flac.early(), presented.segments.end()),
        None => {
            let clock = Clock::of(media);
            (clock.timescale(), clock.early(), clock.at(presented.segments.end()))
        }
    };
    let header = TrackHeader {
        id: TRACK_ID,
        track,
        kind: presented.kind,
        language: presented.language.as_deref(),
        label: &presented.label,
        timescale,
        early,
    };
    // While only the beginning of a file is known, its duration is unknown.
    let duration = (!presentation.is_so_far()).then(|| end.saturating_add(early));
    let mut w = BoxWriter::with_capacity(1024 + track.sample_entry.len());
    movie(&mut w, &[header], duration, |w| protection::movie_headers(w, media));
    w.out.into()
}

/// Writes `ftyp` and `moov`. `duration` is in ticks of the movie's clock.
fn movie(
    w: &mut BoxWriter,
    tracks: &[TrackHeader<'_>],
    duration: Option<i64>,
    protection: impl FnOnce(&mut BoxWriter),
) {
    file_type(w, tracks);
    w.put(b"moov", |w| {
        movie_header(w, tracks);
        for header in tracks {
            w.put(b"trak", |w| {
                track_header(w, header);
                edit_list(w, header.early);
                w.put(b"mdia", |w| media_box(w, header));
            });
        }
        w.put(b"mvex", |w| extends(w, tracks, duration));
        protection(w);
    });
}

/// Writes the brands. A CMAF track stands alone in its file; `cmf2` (23000-19 7.2) needs no edit list. Players recognise
/// all by `iso6`.
fn file_type(w: &mut BoxWriter, tracks: &[TrackHeader<'_>]) {
    w.put(b"ftyp", |w| {
        w.bytes(b"iso6");
        w.u32(1);
        w.bytes(b"iso6");
        let [only] = tracks else { return };
        w.bytes(b"cmfc");
        if only.early == 0 {
            w.bytes(b"cmf2");
        }
    });
}

/// Ticks a second of the clock of a movie with several tracks.
const MOVIE_TIMESCALE: u32 = 1000;

/// Ticks a second of a movie. With one track they are the track's, so that edit lists and durations are exact.
fn movie_timescale(tracks: &[TrackHeader<'_>]) -> u32 {
    match tracks {
        [only] => only.timescale.get(),
        _ => MOVIE_TIMESCALE,
    }
}

/// Writes `mvhd` (8.2.2).
fn movie_header(w: &mut BoxWriter, tracks: &[TrackHeader<'_>]) {
    let timescale = movie_timescale(tracks);
    w.full(b"mvhd", 0, 0, |w| {
        w.zeros(8);
        w.u32(timescale);
        w.u32(0);
        w.u32(ONE);
        w.u16(0x0100);
        w.zeros(10);
        matrix(w, Orientation::UPRIGHT, (0, 0));
        w.zeros(24);
        w.u32(tracks.iter().map(|header| header.id).max().unwrap_or(0).saturating_add(1));
    });
}

/// Writes `tkhd` (8.3.2). Flags: enabled, in the movie.
fn track_header(w: &mut BoxWriter, header: &TrackHeader<'_>) {
    let track = header.track;
    w.full(b"tkhd", 0, 3, |w| {
        w.zeros(8);
        w.u32(header.id);
        w.zeros(4);
        w.u32(0);
        w.zeros(8);
        w.zeros(4);
        w.u16(if matches!(track.kind, TrackKind::Audio { .. }) { 0x0100 } else { 0 });
        w.zeros(2);
        let (width, height) = display_size(track).unwrap_or((0.0, 0.0));
        let (width, height) = (fixed(width), fixed(height));
        let orientation = match track.kind {
            TrackKind::Video { orientation, .. } => orientation,
            _ => Orientation::UPRIGHT,
        };
        matrix(w, orientation, (width, height));
        w.u32(width);
        w.u32(height);
    });
}

/// Converts pixels to 16.16.
fn fixed(pixels: f64) -> u32 {
    (pixels * f64::from(ONE)).round() as u32
}

/// Writes the transformation matrix (8.2.2.3): a, b, c, d, and the translation back into view of pictures of a size.
fn matrix(w: &mut BoxWriter, orientation: Orientation, (width, height): (u32, u32)) {
    let [a, b, c, d] = orientation.matrix();
    // A negative coefficient moves the picture to negative coordinates, by its width or its height.
    let translation = |across: i32, down: i32| {
        if across < 0 {
            width
        } else if down < 0 {
            height
        } else {
            0
        }
    };
    let one = ONE as i32;
    w.i32(a * one);
    w.i32(b * one);
    w.u32(0);
    w.i32(c * one);
    w.i32(d * one);
    w.u32(0);
    w.u32(translation(a, c));
    w.u32(translation(b, d));
    w.u32(0x4000_0000);
}

/// Writes the edit list (8.6.6): presentation begins at media time `early`. A duration of 0 covers all following
/// fragments.
fn edit_list(w: &mut BoxWriter, early: i64) {
    let Ok(early) = u64::try_from(early) else { return };
    if early == 0 {
        return;
    }
    w.put(b"edts", |w| {
        w.full(b"elst", 1, 0, |w| {
            w.u32(1);
            w.u64(0);
            w.u64(early);
            w.u32(ONE);
        });
    });
}

fn media_box(w: &mut BoxWriter, header: &TrackHeader<'_>) {
    let track = header.track;
    let tag = header.language.unwrap_or("und");
    let code = language::iso_639_2(tag);
    w.full(b"mdhd", 0, 0, |w| {
        w.zeros(8);
        w.u32(header.timescale.get());
        w.u32(0);
        w.u16(code.iter().fold(0, |packed, letter| packed << 5 | u16::from(letter - 0x60)));
        w.zeros(2);
    });
    handler(w, header);
    if language::tag(&String::from_utf8_lossy(&code)).as_deref() != Some(tag) && tag != "und" {
        w.full(b"elng", 0, 0, |w| {
            w.bytes(tag.as_bytes());
            w.zeros(1);
        });
    }
    w.put(b"minf", |w| {
        match header.kind {
            MediaKind::Video => w.full(b"vmhd", 0, 1, |w| w.zeros(8)),
            MediaKind::Audio => w.full(b"smhd", 0, 0, |w| w.zeros(4)),
            MediaKind::Text if is_subtitle(track) => w.full(b"sthd", 0, 0, |_| {}),
            MediaKind::Text => w.full(b"nmhd", 0, 0, |_| {}),
        }
        w.put(b"dinf", |w| {
            w.full(b"dref", 0, 0, |w| {
                w.u32(1);
                w.full(b"url ", 0, SELF_CONTAINED, |_| {});
            });
        });
        sample_tables(w, track);
    });
}

/// Whether the track has the subtitle handler (12.6), not the text handler (12.5).
fn is_subtitle(track: &Track) -> bool {
    track.sample_entry.get(4..8) == Some(b"stpp")
}

fn handler(w: &mut BoxWriter, header: &TrackHeader<'_>) {
    let kind = match header.kind {
        MediaKind::Video => b"vide",
        MediaKind::Audio => b"soun",
        MediaKind::Text if is_subtitle(header.track) => b"subt",
        MediaKind::Text => b"text",
    };
    w.full(b"hdlr", 0, 0, |w| {
        w.zeros(4);
        w.bytes(kind);
        w.zeros(12);
        w.bytes(header.label.replace('\0', "").as_bytes());
        w.zeros(1);
    });
}

/// Writes `stbl` (8.5): the sample entry, and tables without samples.
fn sample_tables(w: &mut BoxWriter, track: &Track) {
    w.put(b"stbl", |w| {
        w.full(b"stsd", 0, 0, |w| {
            w.u32(1);
            let start = w.out.len();
            w.bytes(&track.sample_entry);
            // `data_reference_index` (8.5.2.2): the source may refer to several files, but the segment has one entry.
            if let Some(index) = w.out.get_mut(start + 14..start + 16) {
                index.copy_from_slice(&1_u16.to_be_bytes());
            }
        });
        w.full(b"stts", 0, 0, |w| w.u32(0));
        w.full(b"stsc", 0, 0, |w| w.u32(0));
        w.full(b"stsz", 0, 0, |w| w.zeros(8));
        w.full(b"stco", 0, 0, |w| w.u32(0));
    });
}

/// Writes `mvex` (8.8.1 to 8.8.3).
fn extends(w: &mut BoxWriter, tracks: &[TrackHeader<'_>], duration: Option<i64>) {
    if let Some(duration) = duration {
        w.full(b"mehd", 1, 0, |w| w.u64(u64::try_from(duration).unwrap_or(0)));
    }
    for header in tracks {
        w.full(b"trex", 0, 0, |w| {
            w.u32(header.id);
            w.u32(1);
            w.zeros(12);
        });
    }
}
