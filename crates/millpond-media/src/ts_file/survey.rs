//! Chooses the programme of a file, by its first pieces.

use super::packets::Packets;
use crate::{
    error::MediaError,
    movie::{SkippedTrack, extraction::PacketForm},
    programme::{self, FileProgramme},
    ts::{Demultiplexer, Programme, ProgrammeStreams, ServiceNames, TsEvent, TsLimits, TsStream},
};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes whose packets are read together.
const CHUNK: usize = 64 << 10;

/// The programmes of a file.
#[derive(Debug, Default)]
pub(super) struct Survey {
    programmes: Vec<Programme>,
    maps: BTreeMap<u16, ProgrammeStreams>,
    /// PIDs with clear PES packets.
    clear: BTreeSet<u16>,
    names: BTreeMap<u16, String>,
}

/// The programme that becomes the movie.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) programmes: Vec<Programme>,
    pub(super) map: ProgrammeStreams,
    /// All programmes, as they are listed.
    pub(super) listed: Vec<FileProgramme>,
    /// Other programmes, which have no pictures or sound that can be read.
    pub(super) left: Vec<SkippedTrack>,
}

impl Survey {
    /// Reads the programmes of the first pieces of a file, which begin with a packet at `offset`.
    pub(super) fn of(form: PacketForm, offset: u64, pieces: &[Bytes]) -> Self {
        let mut survey = Self::default();
        let mut packets = Packets::new(form, offset);
        let mut demultiplexer = Demultiplexer::new(TsLimits::default());
        let (mut events, mut names) = (Vec::new(), ServiceNames::default());
        for chunk in pieces.iter().flat_map(|piece| piece.chunks(CHUNK)) {
            packets.append(chunk);
            while let Some((packet, at)) = packets.next() {
                demultiplexer.packet(&packet, at, &mut events);
                names.packet(&packet);
            }
            events.drain(..).for_each(|event| survey.take(event));
        }
        demultiplexer.finish(&mut events);
        events.drain(..).for_each(|event| survey.take(event));
        survey.names = names.finish();
        survey
    }

    fn take(&mut self, event: TsEvent) {
        match event {
            TsEvent::Programmes(programmes) if self.programmes.is_empty() => self.programmes = programmes,
            TsEvent::Streams(map) => {
                // The first map of a programme that has media.
                let known = self.maps.get(&map.programme);
                if !known.is_some_and(|known| known.streams.iter().any(is_media)) {
                    self.maps.insert(map.programme, map);
                }
            }
            TsEvent::Unit(unit) => drop(self.clear.insert(unit.pid)),
            _ => {}
        }
    }

    /// Returns the programme of number `wanted`. Without a number, returns the first programme that has pictures, else the first one with
    /// sound. Programmes with clear packets precede others.
    ///
    /// # Errors
    /// The programme, or each one, lacks pictures and sound that can be read. The error names the programmes that there are.
    pub(super) fn choose(mut self, wanted: Option<u16>) -> Result<Choice, MediaError> {
        let Some(chosen) = self.best(wanted) else { return Err(self.unplayable(wanted)) };
        let (listed, left) = (self.listed(Some(chosen)), self.others(chosen));
        let map = self.maps.remove(&chosen).ok_or_else(|| self.unplayable(wanted))?;
        Ok(Choice { programmes: self.programmes, map, listed, left })
    }

    /// Returns the number of the programme that a request for the number `wanted`, or without a number, plays.
    fn best(&self, wanted: Option<u16>) -> Option<u16> {
        let is_clear = |stream: &TsStream| self.clear.contains(&stream.pid);
        let tests: [&dyn Fn(&TsStream) -> bool; 4] = [
            &|stream| is_picture(stream) && is_clear(stream),
            &|stream| is_media(stream) && is_clear(stream),
            &is_picture,
            &is_media,
        ];
        let asked = self.programmes.iter().filter(|p| wanted.is_none_or(|wanted| wanted == p.number));
        let maps: Vec<&ProgrammeStreams> = asked.filter_map(|p| self.maps.get(&p.number)).collect();
        let best = tests.iter().find_map(|test| maps.iter().find(|map| map.streams.iter().any(test)));
        best.map(|map| map.programme)
    }

    /// Returns all programmes, each number once, in the order of the association table.
    fn listed(&self, chosen: Option<u16>) -> Vec<FileProgramme> {
        let default = self.best(None);
        let mut seen = BTreeSet::new();
        let once = self.programmes.iter().filter(|programme| seen.insert(programme.number));
        let listed = once.map(|Programme { number, .. }| {
            let map = self.maps.get(number);
            FileProgramme {
                number: *number,
                name: self.names.get(number).cloned(),
                streams: map.map_or_else(|| "without a map".to_owned(), codings),
                is_playable: map.is_some_and(|map| map.streams.iter().any(is_media)),
                is_chosen: chosen == Some(*number),
                is_default: default == Some(*number),
            }
        });
        listed.collect()
    }

    /// Names the programmes that can't be chosen instead of `chosen`.
    fn others(&self, chosen: u16) -> Vec<SkippedTrack> {
        let count = self.programmes.len();
        let can_play = |number: &u16| self.maps.get(number).is_some_and(|map| map.streams.iter().any(is_media));
        let others = (1..).zip(&self.programmes).filter(|(_, p)| p.number != chosen && !can_play(&p.number));
        let named = others.map(|(place, Programme { number, map_pid })| {
            let streams = self.maps.get(number).map_or_else(|| "without a map".to_owned(), codings);
            let reason = format!("programme {place} of {count}, number {number}: {streams}");
            SkippedTrack::new(u32::from(*map_pid), reason)
        });
        named.collect()
    }

    fn unplayable(&self, wanted: Option<u16>) -> MediaError {
        let listed = self.listed(None);
        if let Some(wanted) = wanted {
            let Some(of_wanted) = listed.iter().find(|programme| programme.number == wanted) else {
                return MediaError::NoProgramme { wanted, programmes: listed.into() };
            };
            if listed.iter().any(|p| p.is_playable && p.number != wanted) {
                let found = format!("{} in programme {wanted}", of_wanted.streams);
                return MediaError::invalid("the transport stream", 0, found, programme::choices(&listed));
            }
        }
        let found = listed.iter().map(|programme| format!("programme {}: {}", programme.number, programme.streams));
        let mut found: Vec<String> = found.collect();
        if found.is_empty() {
            found.push("no programme association table in the first pieces of the file".to_owned());
        }
        MediaError::NoPlayableTrack { path: "the transport stream".to_owned(), offset: 0, found, cut_short: false }
    }
}

fn is_picture(stream: &TsStream) -> bool {
    stream.coding.is_video()
}

/// Whether the stream has pictures or sound that can be read.
fn is_media(stream: &TsStream) -> bool {
    stream.coding.form().is_some()
}

/// Returns the codings of a programme's streams.
fn codings(map: &ProgrammeStreams) -> String {
    let names: Vec<_> = map.streams.iter().map(|stream| stream.coding.name()).collect();
    if names.is_empty() { "no streams".to_owned() } else { names.join(", ") }
}
