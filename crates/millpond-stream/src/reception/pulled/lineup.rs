//! The lanes of all renditions as tracks of the stream.

use super::{
    pacer::{Due, LaneId},
    reader::{LaneFormat, ReadFrame},
};
use crate::{Format, epoch::EpochReason, reception::assembly::Assembly};
use std::sync::Arc;

/// Gives lanes their tracks, and frames with their formats to the assembly.
#[derive(Debug, Default)]
pub(super) struct Lineup {
    stretch: Option<u64>,
    seats: Vec<Seat>,
}

/// A lane and its track.
#[derive(Debug)]
struct Seat {
    lane: LaneId,
    /// Index in the formats; `None` where there is none for it.
    track: Option<u16>,
    format: Arc<LaneFormat>,
    /// Language that the source states beside the segments.
    language: Option<String>,
}

impl Seat {
    fn new(lane: LaneId, format: &Arc<LaneFormat>, languages: &[Option<&str>]) -> Self {
        let language = languages.get(lane.rendition).copied().flatten().map(str::to_owned);
        Self { lane, track: None, format: format.clone(), language }
    }

    /// The format of its track, which has a name and an identifier of its own.
    fn format(&self, assembly: &Assembly) -> Option<Format> {
        let track = self.track?;
        let (number, timescale) = (assembly.number(track), assembly.timescale(track)?);
        let mut format = self.format.format.clone();
        let letter = if format.is_video() { 'v' } else { 'a' };
        (format.name, format.is_default) = (format!("{letter}{number}"), number == 1);
        format.language = self.language.clone().or(format.language);
        (format.track.id, format.track.timescale) = (u32::from(track) + 1, timescale);
        Some(format)
    }
}

impl Lineup {
    /// Takes a frame that is due. `others` are the next frames of all lanes, and `languages` those that the source states for renditions.
    pub(super) fn take<'a>(
        &mut self,
        due: Due,
        others: impl Iterator<Item = (LaneId, &'a ReadFrame)>,
        languages: &[Option<&str>],
        assembly: &mut Assembly,
    ) {
        let Due { lane, stretch, at, frame } = due;
        if self.stretch != Some(stretch) {
            let others = others.map(|(lane, frame)| (lane, &frame.format)).filter(|(other, _)| *other != lane);
            let all = std::iter::once((lane, &frame.format)).chain(others);
            self.begin(all.map(|(lane, format)| Seat::new(lane, format, languages)).collect(), assembly);
            self.stretch = Some(stretch);
        }
        if !self.seats.iter().any(|seat| seat.lane == lane) {
            self.seats.push(Seat::new(lane, &frame.format, languages));
            self.join(assembly);
            self.change(assembly);
        }
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.lane == lane) else { return };
        if !Arc::ptr_eq(&seat.format, &frame.format) && seat.format != frame.format {
            seat.format = frame.format;
            self.change(assembly);
        }
        let Some(track) = self.seats.iter().find(|seat| seat.lane == lane).and_then(|seat| seat.track) else { return };
        if let Some(date) = frame.date {
            assembly.date(track, frame.arrived.timestamp, date);
        }
        assembly.frame(track, frame.arrived, at);
    }

    /// Begins a stretch with the lanes that have frames.
    fn begin(&mut self, mut seats: Vec<Seat>, assembly: &mut Assembly) {
        assembly.flush();
        seats.sort_by_key(|seat| (seat.format.media != "video", seat.lane.rendition, seat.lane.lane));
        self.seats = seats;
        if self.stretch.is_some() {
            assembly.restart(EpochReason::Jump);
        }
        let media: Vec<_> = self.seats.iter().map(|seat| (seat.format.media, seat.format.rate)).collect();
        let clocks: Vec<_> = self.seats.iter().map(|seat| seat.format.clock).collect();
        let tracks = assembly.adopt_counted(&media, &clocks);
        self.seats.iter_mut().zip(tracks).for_each(|(seat, track)| seat.track = track);
        self.join(assembly);
        assembly.begin(self.formats(assembly));
    }

    /// Gives lanes without a track a free one, or a new one.
    fn join(&mut self, assembly: &mut Assembly) {
        for place in 0..self.seats.len() {
            let taken: Vec<u16> = self.seats.iter().filter_map(|seat| seat.track).collect();
            let Some(seat) = self.seats.get_mut(place).filter(|seat| seat.track.is_none()) else { continue };
            seat.track = assembly.join((seat.format.media, seat.format.rate), seat.format.clock, (&taken, true));
            if seat.track.is_none() {
                assembly.name(format!("a track of {} of a source is left out: one too many", seat.format.media));
            }
        }
    }

    fn change(&self, assembly: &mut Assembly) {
        let formats = self.formats(assembly);
        if formats != *assembly.declared() {
            assembly.change(formats);
        }
    }

    fn formats(&self, assembly: &Assembly) -> Arc<[Option<Format>]> {
        let of = |track: u16| self.seats.iter().find(|seat| seat.track == Some(track))?.format(assembly);
        (0..u16::try_from(assembly.tracks()).unwrap_or(u16::MAX)).map(of).collect()
    }
}
