//! The tracks of a clip in the place of a live stream's.

use crate::{Format, ticks::ticks};
use millpond_media::{
    codec::Codec,
    movie::{Track, TrackKind},
    units::Timescale,
};
use std::{sync::Arc, time::Duration};

/// Factor by which times before a clip's beginning move closer to the beginning. No picture is shown at these times, and they
/// must not fall before the times that were shown.
const SQUEEZE: i64 = 512;

/// Why a clip does not fit into a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Viewers begin with key frames of a track for which the clip has nothing.
    #[error("the clip has no {0}, with whose key frames viewers of the stream begin")]
    NoLead(&'static str),
    /// Viewers by RTP were told another format.
    #[error("the clip has {clip}, and the stream has {stream}")]
    Format {
        /// The best track of the clip.
        clip: String,
        /// The track of the stream.
        stream: String,
    },
}

impl Unfit {
    /// Words for an asset of a channel.
    pub(crate) fn of_asset(&self) -> String {
        match self {
            Self::NoLead(kind) => format!("it has no {kind}, and the channel has"),
            Self::Format { clip, stream } => format!("it has {clip}, and the channel has {stream}"),
        }
    }
}

/// The tracks of a clip that take the place of a stream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Tracks of the stream, and those of the clip.
    lines: Vec<Line>,
}

/// One track of the stream, and what the clip has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    stream: u16,
    clip: u16,
    is_video: bool,
    /// Clock of the stream's track.
    to: Timescale,
    /// Clock of the clip's track.
    from: Timescale,
}

/// Times of a frame in a track of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) track: u16,
    pub(crate) pts: i64,
    pub(crate) is_video: bool,
}

impl Plan {
    /// Chooses tracks of a clip for those of a stream. A track for whose kind the clip has no media has no frames while the clip
    /// plays. The leading track must have frames.
    ///
    /// # Errors
    /// The clip has nothing for the leading track, or another codec or clock where it has something.
    pub(crate) fn new(stream: &[Option<Format>], clip: &[Option<Format>], lead: u16) -> Result<Self, Unfit> {
        let mut lines = Vec::new();
        // Subtitles in private data have no frames while the clip plays.
        for (number, format) in present(stream).filter(|(_, format)| !format.is_private_text()) {
            let of_kind = present(clip).filter(|(_, of_clip)| of_clip.kind == format.kind);
            let fitting = of_kind.clone().filter(|(_, of_clip)| is_fit(number, format, of_clip));
            let best = fitting.min_by_key(|(_, of_clip)| distance(format, of_clip));
            match (best, of_kind.clone().next()) {
                (Some((of_clip, found)), _) => lines.push(Line {
                    stream: number,
                    clip: of_clip,
                    is_video: format.is_video(),
                    to: format.track.timescale,
                    from: found.track.timescale,
                }),
                (None, Some((_, other))) => {
                    return Err(Unfit::Format { clip: described(other), stream: described(format) });
                }
                (None, None) if number == lead => {
                    return Err(Unfit::NoLead(if format.is_video() { "pictures" } else { "sound" }));
                }
                (None, None) => {}
            }
        }
        Ok(Self { lines })
    }

    /// The clip's tracks that are used, in rising order.
    pub(crate) fn tracks(&self) -> Arc<[u16]> {
        let mut tracks: Vec<u16> = self.lines.iter().map(|line| line.clip).collect();
        tracks.sort_unstable();
        tracks.dedup();
        tracks.into()
    }

    /// The formats of the stream while the clip plays. Names, languages and clocks stay those of the stream.
    pub(crate) fn formats(&self, stream: &[Option<Format>], clip: &[Option<Format>]) -> Arc<[Option<Format>]> {
        let of_track = |(number, format): (u16, &Option<Format>)| {
            let known = format.as_ref()?;
            let line = self.lines.iter().find(|line| line.stream == number);
            let Some(new) = line.and_then(|line| clip.get(usize::from(line.clip))?.as_ref()) else {
                return Some(known.clone());
            };
            let track = Track { id: known.track.id, timescale: known.track.timescale, ..new.track.clone() };
            Some(Format { bandwidth: new.bandwidth, track, ..known.clone() })
        };
        (0..).zip(stream).map(of_track).collect()
    }

    /// The tracks of the stream that get a frame of the clip, with its presentation time. The clip begins at the stream time
    /// `begin`. Sound from before the clip's beginning is left out.
    pub(crate) fn place(&self, track: u16, pts: i64, begin: Duration) -> impl Iterator<Item = Placed> {
        let lines = self.lines.iter().filter(move |line| line.clip == track && (line.is_video || pts >= 0));
        lines.map(move |line| {
            let pts = line.from.convert(if pts < 0 { pts / SQUEEZE } else { pts }, line.to);
            Placed { track: line.stream, pts: ticks(begin, line.to).saturating_add(pts), is_video: line.is_video }
        })
    }
}

fn present(formats: &[Option<Format>]) -> impl Iterator<Item = (u16, &Format)> + Clone {
    (0..).zip(formats).filter_map(|(number, format)| Some((number, format.as_ref()?)))
}

/// Whether viewers by RTP, who were told the stream's format of a track, can receive the clip's. Pictures bring their parameter
/// sets along; the configuration of sound is told once.
fn is_fit(number: u16, stream: &Format, clip: &Format) -> bool {
    if clip.is_encrypted {
        return false;
    }
    // Timestamps count in the clock of the stream.
    let moved = Format { track: Track { timescale: stream.track.timescale, ..clip.track.clone() }, ..clip.clone() };
    let of = |format: &Format| {
        let described = format.described(number.into())?;
        Some((described.packetizer, described.payload_type, described.packetizer.clock_rate(&format.track)))
    };
    let is_same_sound = stream.is_video()
        || (stream.track.kind == clip.track.kind && stream.track.codec.parameter() == clip.track.codec.parameter());
    of(stream) == of(&moved) && stream.track.codec.name() == clip.track.codec.name() && is_same_sound
}

/// How far a fitting track is from the stream's: pictures by their size, then those with the lower bandwidth; sound by language.
fn distance(stream: &Format, clip: &Format) -> (u64, bool, u64) {
    let area = |format: &Format| match format.track.kind {
        TrackKind::Video { width, height, .. } => u64::from(width) * u64::from(height),
        TrackKind::Audio { .. } | TrackKind::Text => 0,
    };
    let is_other = stream.language != clip.language && !clip.is_default;
    (area(stream).abs_diff(area(clip)), is_other || clip.is_alternative, clip.bandwidth)
}

/// Names a format for people.
fn described(format: &Format) -> String {
    let Format { track, is_encrypted, .. } = format;
    let mut text = if *is_encrypted { "encrypted ".to_owned() } else { String::new() };
    text += &format!("{} ({})", track.codec.name(), track.codec.parameter());
    if let TrackKind::Audio { channels, sample_rate } = track.kind {
        text += &format!(" with {channels} channels of {sample_rate} Hz");
    }
    match &track.codec {
        Codec::Avc(config) if config.nal_length_size != 4 => text += " and short NAL unit lengths",
        Codec::Hevc(config) if config.nal_length_size != 4 => text += " and short NAL unit lengths",
        _ => {}
    }
    text
}
