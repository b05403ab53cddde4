//! One stream of a programme: PES packets in, frames and their format out.

use super::faults::Faults;
use crate::{
    Format,
    clock::Wrapped,
    reception::{
        assembly::{Arrived, TEXT},
        format::Outline,
    },
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
pub(in crate::reception) struct Elementary {
    stream: TsStream,
    /// `None` for subtitles, whose PES packets are frames.
    framer: Option<Framer>,
    /// Language of subtitles.
    language: Option<String>,
    /// Index in the formats; `None` before the tracks are known, and where there is none for it.
    pub(in crate::reception) track: Option<u16>,
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
pub(in crate::reception) enum Found {
    /// Its format became known, or changed.
    Format,
    /// A frame of the format.
    Frame(Arrived),
    /// A frame is left out.
    Broken,
}

/// Returns the frame that a PES packet of subtitles is.
fn text(unit: &PesUnit, clock: Option<u64>) -> Found {
    let time = unit.text_time(clock).filter(|_| !unit.is_broken && !unit.data.is_empty());
    time.map_or(Found::Broken, |pts| {
        Found::Frame(Arrived {
            timestamp: Wrapped::mpeg(pts),
            reordered: Some(0),
            is_key: true,
            importance: None,
            lost_before: false,
            bytes: unit.data.clone(),
        })
    })
}

impl Elementary {
    /// Creates a stream; `None` where its coding has no frames.
    pub(in crate::reception) fn new(stream: TsStream) -> Option<Self> {
        let framer = Framer::new(stream.coding);
        let (shown, language) = match &framer {
            Some(_) => (Shown::Nothing, None),
            None => stream.private_text().map(|(made, language)| (Shown::Made(Box::new(made)), language))?,
        };
        let (track, rate) = (None, Timescale::MPEG);
        Some(Self { stream, framer, language, track, shown, rate, is_broken: false, framed: Vec::new() })
    }

    pub(in crate::reception) fn pid(&self) -> u16 {
        self.stream.pid
    }

    /// Whether a stream of a later map is this one, which then goes on.
    pub(in crate::reception) fn continues(&self, stream: &TsStream) -> bool {
        let key = |of: &TsStream| (of.pid, of.coding);
        key(&self.stream) == key(stream)
    }

    /// Takes the description of the stream in a later programme map.
    pub(in crate::reception) fn describe(&mut self, stream: TsStream) {
        if let Some((made, language)) = stream.private_text() {
            (self.shown, self.language) = (Shown::Made(Box::new(made)), language);
        }
        self.stream = stream;
    }

    /// Whether it has subtitles, which may be silent for long.
    pub(in crate::reception) fn is_text(&self) -> bool {
        self.framer.is_none()
    }

    pub(in crate::reception) fn is_video(&self) -> bool {
        self.stream.coding.is_video()
    }

    /// Media and clock rate, as tracks are chosen by.
    pub(in crate::reception) fn media(&self) -> (&'static str, Timescale) {
        let media = match () {
            () if self.is_text() => TEXT,
            () if self.is_video() => "video",
            () => "audio",
        };
        (media, self.rate)
    }

    /// Whether its format is known.
    pub(in crate::reception) fn is_known(&self) -> bool {
        matches!(self.shown, Shown::Made(_))
    }

    /// Whether its format is known, or never will be.
    pub(in crate::reception) fn is_settled(&self) -> bool {
        matches!(self.shown, Shown::Made(_) | Shown::Unsupported)
    }

    /// Whether it has a format that can't be received.
    pub(in crate::reception) fn is_unsupported(&self) -> bool {
        matches!(self.shown, Shown::Unsupported)
    }

    /// Returns the format of its track. `number` counts from 1 among the tracks of its media.
    pub(in crate::reception) fn format(&self, number: u16, timescale: Timescale) -> Option<Format> {
        let Shown::Made(made) = &self.shown else { return None };
        let (kind, letter) = match () {
            () if self.is_text() => (MediaKind::Text, 't'),
            () if self.is_video() => (MediaKind::Video, 'v'),
            () => (MediaKind::Audio, 'a'),
        };
        let language = self.language.as_ref().or(self.stream.language.as_ref());
        let outline = Outline {
            name: format!("{letter}{number}"),
            kind,
            id: u32::from(self.track?) + 1,
            is_default: number == 1,
            language: language.and_then(|language| language::tag(language)),
            bandwidth: 0,
            timescale,
        };
        Some(outline.format((**made).clone()))
    }

    /// Takes its next PES packet. `clock` is the last one of the programme, in ticks of 90 kHz.
    pub(in crate::reception) fn push(
        &mut self,
        unit: &PesUnit,
        clock: Option<u64>,
        found: &mut Vec<Found>,
        faults: &mut Faults,
    ) {
        let Some(framer) = &mut self.framer else { return found.push(text(unit, clock)) };
        let mut framed = std::mem::take(&mut self.framed);
        framer.push(unit, &mut framed);
        self.take(framed, found, faults);
    }

    /// Ends the stream: its last picture is complete.
    pub(in crate::reception) fn finish(&mut self, found: &mut Vec<Found>, faults: &mut Faults) {
        let Some(framer) = &mut self.framer else { return };
        let mut framed = std::mem::take(&mut self.framed);
        framer.finish(&mut framed);
        self.take(framed, found, faults);
    }

    fn take(&mut self, mut framed: Vec<Framed>, found: &mut Vec<Found>, faults: &mut Faults) {
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
