//! One stream of a programme: PES packets in, frames and their format out.

use super::faults::Faults;
use crate::{
    Format,
    clock::Wrapped,
    reception::{assembly::Arrived, format::Outline},
};
use millpond_media::{
    Codec, MediaError, Timescale,
    codec::make::{self, Made},
    ts::{Framed, Framer, PesUnit, StreamCoding, TsConfiguration, TsFrame, TsStream},
};
use millpond_package::{MediaKind, language};

/// Greatest time in ticks of 90 kHz by which decoding precedes presentation: 10 s. Greater ones are errors.
const MOST_REORDERED: u64 = 10 * 90_000;
/// Bits of a timestamp.
const CLOCK: u64 = (1 << 33) - 1;

/// Makes a sample entry from a frame.
type Maker = fn(&[u8]) -> Result<Made, MediaError>;

/// A stream of a programme that may be received.
#[derive(Debug)]
pub(super) struct Elementary {
    stream: TsStream,
    framer: Framer,
    /// Index in the formats; `None` before the tracks are known, and where there is none for it.
    pub(super) track: Option<u16>,
    shown: Shown,
    /// Ticks per second of its sound; 90 kHz for pictures.
    rate: Timescale,
    is_broken: bool,
    framed: Vec<Framed>,
}

/// What is known of the codec.
#[derive(Debug)]
enum Shown {
    Nothing,
    /// The next frame shows it.
    Next(Maker),
    Made(Box<Made>),
    Unsupported,
}

/// An event of a stream.
#[derive(Debug)]
pub(super) enum Found {
    /// Its format became known, or changed.
    Format,
    /// A frame of the format.
    Frame(Arrived),
    /// A frame is left out.
    Broken,
}

impl Elementary {
    /// Creates a stream; `None` where its coding has no frames.
    pub(super) fn new(stream: TsStream) -> Option<Self> {
        let framer = Framer::new(stream.coding)?;
        let (track, shown, rate) = (None, Shown::Nothing, Timescale::MPEG);
        Some(Self { stream, framer, track, shown, rate, is_broken: false, framed: Vec::new() })
    }

    pub(super) fn pid(&self) -> u16 {
        self.stream.pid
    }

    /// Whether a stream of a later map is this one, which then goes on.
    pub(super) fn continues(&self, stream: &TsStream) -> bool {
        let key = |of: &TsStream| (of.pid, of.coding);
        key(&self.stream) == key(stream)
    }

    /// Takes the description of the stream in a later programme map.
    pub(super) fn describe(&mut self, stream: TsStream) {
        self.stream = stream;
    }

    pub(super) fn is_video(&self) -> bool {
        self.stream.coding.is_video()
    }

    /// Media and clock rate, as tracks are chosen by.
    pub(super) fn media(&self) -> (&'static str, Timescale) {
        (if self.is_video() { "video" } else { "audio" }, self.rate)
    }

    /// Whether its format is known.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.shown, Shown::Made(_))
    }

    /// Whether its format is known, or never will be.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.shown, Shown::Made(_) | Shown::Unsupported)
    }

    /// Whether it has a format that can't be received.
    pub(super) fn is_unsupported(&self) -> bool {
        matches!(self.shown, Shown::Unsupported)
    }

    /// Returns the format of its track. `number` counts from 1 among the tracks of its media.
    pub(super) fn format(&self, number: u16, timescale: Timescale) -> Option<Format> {
        let Shown::Made(made) = &self.shown else { return None };
        let (kind, letter) = if self.is_video() { (MediaKind::Video, 'v') } else { (MediaKind::Audio, 'a') };
        let outline = Outline {
            name: format!("{letter}{number}"),
            kind,
            id: u32::from(self.track?) + 1,
            is_default: number == 1,
            language: self.stream.language.as_deref().and_then(language::tag),
            bandwidth: 0,
            timescale,
        };
        Some(outline.format((**made).clone()))
    }

    /// Takes its next PES packet.
    pub(super) fn push(&mut self, unit: &PesUnit, found: &mut Vec<Found>, faults: &mut Faults) {
        let mut framed = std::mem::take(&mut self.framed);
        self.framer.push(unit, &mut framed);
        for framed in framed.drain(..) {
            match framed {
                Framed::Configuration(configuration) => {
                    let shown = self.show(configuration);
                    self.settle(shown, found);
                }
                Framed::Frame(frame) => self.frame(frame, found),
                Framed::Fault(fault) => {
                    self.is_broken = true;
                    found.push(Found::Broken);
                    faults.frame(self.stream.pid, fault);
                }
            }
        }
        self.framed = framed;
    }

    fn frame(&mut self, frame: TsFrame, found: &mut Vec<Found>) {
        if let Shown::Next(make) = self.shown {
            let shown = make(&frame.data).map(|made| Shown::Made(Box::new(made)));
            self.settle(shown, found);
        }
        if !self.is_known() {
            return;
        }
        let reordered = frame.pts.wrapping_sub(frame.dts) & CLOCK;
        found.push(Found::Frame(Arrived {
            timestamp: Wrapped::mpeg(frame.pts),
            reordered: Some(if reordered > MOST_REORDERED { 0 } else { reordered as u32 }),
            is_key: frame.is_sync,
            importance: None,
            lost_before: std::mem::take(&mut self.is_broken),
            bytes: frame.data,
        }));
    }

    /// Returns what a configuration shows, and takes its rate.
    fn show(&mut self, configuration: TsConfiguration) -> Result<Shown, MediaError> {
        let made = match configuration {
            TsConfiguration::Avc { sps, pps } => make::avc(&sps, &pps),
            TsConfiguration::Hevc { vps, sps, pps } => make::hevc(&vps, &sps, &pps),
            TsConfiguration::Aac { audio_specific_config } => make::aac(&audio_specific_config),
            TsConfiguration::Opus { channels, .. } => make::opus(channels),
            TsConfiguration::MpegAudio { sample_rate, .. } => return Ok(self.next(sample_rate, make::mpeg_audio)),
            TsConfiguration::Ac3 { sample_rate, .. } => return Ok(self.next(sample_rate, make::ac3)),
            TsConfiguration::Eac3 { sample_rate, .. } => return Ok(self.next(sample_rate, make::eac3)),
        }?;
        match (&made.codec, self.stream.coding) {
            (Codec::Aac(config), _) => self.set_rate(config.sample_rate),
            (_, StreamCoding::Opus(_)) => self.set_rate(48_000),
            _ => {}
        }
        Ok(Shown::Made(Box::new(made)))
    }

    fn next(&mut self, rate: u32, maker: Maker) -> Shown {
        self.set_rate(rate);
        Shown::Next(maker)
    }

    fn set_rate(&mut self, rate: u32) {
        self.rate = Timescale::new(rate).unwrap_or(Timescale::MPEG);
    }

    fn settle(&mut self, shown: Result<Shown, MediaError>, found: &mut Vec<Found>) {
        let shown = shown.unwrap_or_else(|why| {
            let TsStream { pid, coding, .. } = self.stream;
            if !matches!(self.shown, Shown::Unsupported) {
                tracing::warn!(pid, %coding, %why, "stream of a programme left out");
            }
            Shown::Unsupported
        });
        self.shown = shown;
        if self.is_known() {
            found.push(Found::Format);
        }
    }
}
