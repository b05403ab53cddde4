//! FLV tags that arrive by RTMP: tags in, frames to the assembly out.

mod lane;
mod sound_times;

use crate::{
    Format,
    clock::Wrapped,
    reception::{
        assembly::{Arrived, Assembly},
        attendance::Rhythm,
        transport::Faults,
    },
    source_health::{SourceCounts, SourceError, SourceErrorKind},
};
use bytes::Bytes;
use lane::Lane;
use millpond_media::{
    MediaError,
    flv::{FlvAnnouncement, FlvContent, FlvTag},
};
use std::{sync::Arc, time::Duration};

/// Time for which the other kind of track is waited for after the first one: where metadata announce it, and where they don't.
const ANNOUNCED: Duration = Duration::from_secs(5);
const OTHER: Duration = Duration::from_secs(1);
/// Most bytes of frames that wait for it.
const MOST_BYTES: usize = 16 << 20;
/// Bytes that a frame counts for beside its own.
const FRAME: usize = 128;
/// Most tracks of pictures, and of sound, that are looked at. A stream has at most eight in all.
const MOST_LANES: usize = 8;

/// Makes frames of a stream of FLV tags: one track of pictures, and tracks of sound.
#[derive(Debug)]
pub(super) struct FlvFrames {
    /// Address of the sender in errors.
    address: String,
    /// In the order of [`Lane::place`].
    lanes: Vec<Lane>,
    /// The kinds of tracks that the sender has announced.
    announced: FlvAnnouncement,
    /// Whether frames are passed on.
    has_begun: bool,
    /// Arrival of the first configuration or frame.
    since: Option<Duration>,
    /// Frames that wait for other tracks.
    held: Vec<Held>,
    held_bytes: usize,
    /// How frames arrived.
    rhythm: Option<Rhythm>,
}

/// A frame that is to be passed on.
#[derive(Debug)]
struct Held {
    /// Place of its lane.
    lane: (bool, u8),
    timestamp: u32,
    /// Milliseconds from decoding to presentation.
    composition: i32,
    is_key: bool,
    bytes: Bytes,
    arrival: Duration,
}

impl FlvFrames {
    /// Creates it for tags of a sender, whose address errors state.
    pub(super) fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            lanes: Vec::new(),
            announced: FlvAnnouncement::default(),
            has_begun: false,
            since: None,
            held: Vec::new(),
            held_bytes: 0,
            rhythm: None,
        }
    }

    /// Takes a tag.
    ///
    /// # Errors
    /// The pictures have a codec that is not supported, or a configuration is not.
    pub(super) fn push(
        &mut self,
        tag: &Bytes,
        now: Duration,
        assembly: &mut Assembly,
        faults: &mut Faults,
    ) -> Result<(), SourceError> {
        if let Some(announced) = FlvAnnouncement::read(tag) {
            self.announced = announced;
        }
        let mut unread = None;
        for read in FlvTag::read_all(tag) {
            match read {
                Ok(tag) => self.tag(tag, now, assembly)?,
                // The pictures are worth more than a stream that ends.
                Err(error @ MediaError::Unsupported { .. }) if FlvTag::is_sound(tag) => {
                    assembly.name(format!("sound from {} left out: {error}", self.address));
                }
                Err(error @ MediaError::Unsupported { .. }) => unread = Some(error),
                Err(error) => faults.fragment(error.to_string()),
            }
        }
        match unread {
            Some(error) if self.pictures().is_some() => {
                assembly.name(format!("further pictures from {} left out: {error}", self.address));
                Ok(())
            }
            Some(error) => Err(self.no_media(&error)),
            None => Ok(()),
        }
    }

    fn tag(&mut self, tag: FlvTag, now: Duration, assembly: &mut Assembly) -> Result<(), SourceError> {
        let FlvTag { timestamp, track, codec, content } = tag;
        self.since.get_or_insert(now);
        let place = (!codec.is_video(), track);
        let index = match self.lanes.binary_search_by_key(&place, Lane::place) {
            Ok(index) => {
                if self.lanes[index].codec() != codec {
                    self.lanes[index] = Lane::new(codec, track, self.lanes[index].track());
                }
                index
            }
            Err(index) => {
                if self.lanes.iter().filter(|lane| lane.place().0 == place.0).count() >= MOST_LANES {
                    assembly.name(format!("a track from {} left out: more than {MOST_LANES} of a kind", self.address));
                    return Ok(());
                }
                self.lanes.insert(index, Lane::new(codec, track, None));
                index
            }
        };
        match content {
            FlvContent::Configuration(record) => match self.lanes[index].configure(&record) {
                Ok(true) => self.describe(index, assembly),
                Ok(false) => {}
                // Further tracks are worth less than a stream that ends.
                Err(error) if track > 0 => {
                    assembly.name(format!("track {track} from {} left out: {error}", self.address));
                }
                Err(error) => return Err(self.no_media(&error)),
            },
            FlvContent::Frame { composition, is_key, data } => {
                let (is_changed, bytes) = self.lanes[index].sift(&data, is_key, now);
                if is_changed {
                    self.describe(index, assembly);
                }
                if !bytes.is_empty() {
                    self.take(Held { lane: place, timestamp, composition, is_key, bytes, arrival: now }, assembly);
                }
            }
        }
        self.tick(now, assembly);
        Ok(())
    }

    /// Takes note of a format that is new or has changed.
    fn describe(&mut self, index: usize, assembly: &mut Assembly) {
        if !self.has_begun {
            return;
        }
        let taken: Vec<u16> = self.lanes.iter().filter_map(Lane::track).collect();
        let has_pictures = self.pictures().is_some_and(|lane| lane.track().is_some());
        let address = &self.address;
        let Some(lane) = self.lanes.get_mut(index) else { return };
        if lane.track().is_none() {
            if lane.codec().is_video() && has_pictures {
                return assembly
                    .name(format!("further pictures from {address} left out: a stream has one track of them"));
            }
            lane.set_track(assembly.join(lane.media(), lane.clock(), (&taken, true)));
        }
        assembly.change(self.formats(assembly));
    }

    fn take(&mut self, frame: Held, assembly: &mut Assembly) {
        let rhythm = self.rhythm.get_or_insert(Rhythm { last: frame.arrival, longest: Duration::ZERO });
        rhythm.longest = rhythm.longest.max(frame.arrival.saturating_sub(rhythm.last));
        rhythm.last = frame.arrival;
        if self.has_begun {
            return self.pass(frame, assembly);
        }
        self.held_bytes += frame.bytes.len() + FRAME;
        self.held.push(frame);
    }

    /// Passes frames on once formats of both kinds are known and a frame has come, or were waited for long enough.
    pub(super) fn tick(&mut self, now: Duration, assembly: &mut Assembly) {
        if self.has_begun {
            return;
        }
        let is_known = self.known_kinds();
        let is_due = self.since.is_some_and(|since| now >= since + self.patience()) || self.held_bytes > MOST_BYTES;
        // Senders configure all tracks before the first frame.
        if is_known == [true; 2] && !self.held.is_empty() || is_known != [false; 2] && is_due {
            self.begin(assembly);
        } else if self.held_bytes > MOST_BYTES {
            // Nobody can decode frames without a configuration.
            self.held.clear();
            self.held_bytes = 0;
        }
    }

    /// Time at which [`tick`](Self::tick) must be called, if any.
    pub(super) fn wake(&self) -> Option<Duration> {
        let since = self.since.filter(|_| !self.has_begun && self.known().next().is_some())?;
        Some(since + self.patience())
    }

    /// Whether formats of pictures and of sound are known.
    fn known_kinds(&self) -> [bool; 2] {
        [true, false].map(|is_video| self.known().any(|lane| lane.codec().is_video() == is_video))
    }

    /// Time for which a kind of track is waited for.
    fn patience(&self) -> Duration {
        let [pictures, sound] = self.known_kinds();
        let is_due = (self.announced.pictures && !pictures) || (self.announced.sound && !sound);
        if is_due { ANNOUNCED } else { OTHER }
    }

    /// Whether frames are passed on.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// How frames have arrived; `None` before the first one.
    pub(super) fn rhythm(&self) -> Option<Rhythm> {
        self.rhythm
    }

    /// Counts of the session: it has no packets.
    pub(super) fn counts(&self) -> SourceCounts {
        SourceCounts { sessions: u64::from(self.has_begun), ..SourceCounts::default() }
    }

    /// The lane of pictures that a stream has: the first one whose format is known.
    fn pictures(&self) -> Option<&Lane> {
        let mut pictures = self.lanes.iter().filter(|lane| lane.codec().is_video() && lane.is_known());
        pictures.clone().find(|lane| lane.track().is_some()).or_else(|| pictures.next())
    }

    /// The lanes whose format is known and that a stream has: the first one of pictures, and all of sound.
    fn known(&self) -> impl Iterator<Item = &Lane> {
        let pictures = self.pictures().map(Lane::place);
        self.lanes
            .iter()
            .filter(move |lane| lane.is_known() && (!lane.codec().is_video() || Some(lane.place()) == pictures))
    }

    fn begin(&mut self, assembly: &mut Assembly) {
        self.has_begun = true;
        let (kinds, clocks): (Vec<_>, Vec<_>) = self.known().map(|lane| (lane.media(), lane.clock())).unzip();
        let places: Vec<_> = self.known().map(Lane::place).collect();
        let tracks = assembly.adopt_counted(&kinds, &clocks);
        for lane in &mut self.lanes {
            let known = places.iter().position(|place| *place == lane.place());
            lane.set_track(known.and_then(|known| tracks.get(known).copied().flatten()));
            match (lane.track(), known) {
                (Some(_), _) => {}
                (None, Some(_)) => tracing::warn!(codec = %lane.codec(), source = self.address,
                    "track left out: it was not there before"),
                (None, None) if lane.is_known() => assembly
                    .name(format!("further pictures from {} left out: a stream has one track of them", self.address)),
                (None, None) => {}
            }
        }
        assembly.begin(self.formats(assembly));
        self.held_bytes = 0;
        for frame in std::mem::take(&mut self.held) {
            self.pass(frame, assembly);
        }
    }

    /// The formats of all tracks of the stream.
    fn formats(&self, assembly: &Assembly) -> Arc<[Option<Format>]> {
        let format = |track: u16| {
            let lane = self.known().find(|lane| lane.track() == Some(track))?;
            lane.format(assembly.number(track), assembly.timescale(track)?)
        };
        (0..assembly.tracks() as u16).map(format).collect()
    }

    fn pass(&mut self, frame: Held, assembly: &mut Assembly) {
        let Ok(index) = self.lanes.binary_search_by_key(&frame.lane, Lane::place) else { return };
        let lane = &mut self.lanes[index];
        let Some(track) = lane.track() else { return };
        let (timestamp, reordered) = match lane.sound_time(frame.timestamp, &frame.bytes) {
            Some(samples) => (Wrapped::whole(samples as u64), 0),
            None => {
                let presented = frame.timestamp.wrapping_add_signed(frame.composition);
                (Wrapped::rtp(presented), lane.reordered(frame.composition))
            }
        };
        let arrived = Arrived {
            timestamp,
            reordered: Some(reordered),
            is_key: frame.is_key,
            importance: None,
            lost_before: false,
            bytes: frame.bytes,
        };
        assembly.frame(track, arrived, frame.arrival);
    }

    fn no_media(&self, error: &MediaError) -> SourceError {
        let words = error.to_string();
        SourceError { kind: SourceErrorKind::NoMedia, address: self.address.clone(), words }
    }
}
