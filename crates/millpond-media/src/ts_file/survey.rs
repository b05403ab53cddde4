//! Chooses the programme of a file, by its first pieces.

use super::packets::Packets;
use crate::{
    error::MediaError,
    movie::{SkippedTrack, extraction::PacketForm},
    ts::{Demultiplexer, Programme, ProgrammeStreams, TsEvent, TsLimits, TsStream},
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
}

/// The programme that becomes the movie.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) programmes: Vec<Programme>,
    pub(super) map: ProgrammeStreams,
    /// The other programmes.
    pub(super) left: Vec<SkippedTrack>,
}

impl Survey {
    /// Reads the programmes of the first pieces of a file, which begin with a packet at `offset`.
    pub(super) fn of(form: PacketForm, offset: u64, pieces: &[Bytes]) -> Self {
        let mut survey = Self::default();
        let mut packets = Packets::new(form, offset);
        let mut demultiplexer = Demultiplexer::new(TsLimits::default());
        let mut events = Vec::new();
        for chunk in pieces.iter().flat_map(|piece| piece.chunks(CHUNK)) {
            packets.append(chunk);
            while let Some((packet, at)) = packets.next() {
                demultiplexer.packet(&packet, at, &mut events);
            }
            events.drain(..).for_each(|event| survey.take(event));
        }
        demultiplexer.finish(&mut events);
        events.drain(..).for_each(|event| survey.take(event));
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

    /// Returns the first programme that has pictures, else the first one with sound. Programmes with clear packets precede others.
    ///
    /// # Errors
    /// No programme has pictures or sound that can be read.
    pub(super) fn choose(mut self) -> Result<Choice, MediaError> {
        let is_clear = |stream: &TsStream| self.clear.contains(&stream.pid);
        let tests: [&dyn Fn(&TsStream) -> bool; 4] = [
            &|stream| is_picture(stream) && is_clear(stream),
            &|stream| is_media(stream) && is_clear(stream),
            &is_picture,
            &is_media,
        ];
        let maps: Vec<&ProgrammeStreams> = self.programmes.iter().filter_map(|p| self.maps.get(&p.number)).collect();
        let chosen = tests.iter().find_map(|test| maps.iter().find(|map| map.streams.iter().any(test)));
        let Some(chosen) = chosen.map(|map| map.programme) else { return Err(self.unplayable()) };
        let left = self.others(chosen);
        let map = self.maps.remove(&chosen).ok_or_else(|| self.unplayable())?;
        Ok(Choice { programmes: self.programmes, map, left })
    }

    /// Names all programmes but one.
    fn others(&self, chosen: u16) -> Vec<SkippedTrack> {
        let count = self.programmes.len();
        let others = (1..).zip(&self.programmes).filter(|(_, programme)| programme.number != chosen);
        let named = others.map(|(place, Programme { number, map_pid })| {
            let streams = self.maps.get(number).map_or_else(|| "without a map".to_owned(), names);
            SkippedTrack {
                id: u32::from(*map_pid),
                reason: format!("programme {place} of {count}, number {number}: {streams}"),
            }
        });
        named.collect()
    }

    fn unplayable(&self) -> MediaError {
        let named = self.programmes.iter().map(|programme| {
            let streams = self.maps.get(&programme.number).map_or_else(|| "without a map".to_owned(), names);
            format!("programme {}: {streams}", programme.number)
        });
        let mut found: Vec<String> = named.collect();
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

fn names(map: &ProgrammeStreams) -> String {
    let names: Vec<_> = map.streams.iter().map(|stream| stream.coding.name()).collect();
    if names.is_empty() { "no streams".to_owned() } else { names.join(", ") }
}
