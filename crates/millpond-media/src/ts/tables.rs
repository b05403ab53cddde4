//! The programme association table and programme maps (ISO/IEC 13818-1 2.4.4).

use super::{coding::StreamCoding, descriptor, section::LongSection};
use crate::{
    codec::{Codec, PrivateForm, PrivateText, TrackKind, make::Made},
    teletext::TeletextPage,
};
use std::collections::BTreeMap;

/// `table_id` of the programme association table.
const ASSOCIATION: u8 = 0;
/// `table_id` of programme maps.
const MAP: u8 = 2;
/// Most programmes; a multiplex of 60 Mbit/s has about 30.
const MOST_PROGRAMMES: usize = 256;
/// Most streams of a programme. A map of one section has space for two hundred.
const MOST_STREAMS: usize = 64;

/// An entry of the programme association table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Programme {
    /// `program_number`.
    pub number: u16,
    /// PID of its map.
    pub map_pid: u16,
}

/// A programme's map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgrammeStreams {
    /// `program_number`.
    pub programme: u16,
    /// PID of packets with the programme's clock (`PCR_PID`); 0x1fff where it has none.
    pub clock_pid: u16,
    /// Descriptors of the whole programme, as in the map.
    pub descriptors: Vec<u8>,
    /// Streams in the order of the map, at most 64. The ones without a supported coding are listed too.
    pub streams: Vec<TsStream>,
}

/// An elementary stream of a programme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TsStream {
    /// PID of its packets.
    pub pid: u16,
    /// `stream_type` (table 2-34).
    pub stream_type: u8,
    /// Coding by stream type and descriptors.
    pub coding: StreamCoding,
    /// Language as in the ISO 639 language descriptor (2.6.18), such as `deu`.
    pub language: Option<String>,
    /// Descriptors, as in the map.
    pub descriptors: Vec<u8>,
}

impl TsStream {
    /// Returns the entries of all teletext descriptors (ETSI EN 300 468 6.2.43).
    #[must_use]
    pub fn teletext(&self) -> Vec<u8> {
        let bodies = descriptor::all(&self.descriptors).filter(|(tag, _)| *tag == descriptor::TELETEXT);
        bodies.flat_map(|(_, body)| body).copied().collect()
    }

    /// Returns its subtitles as they are, and their language, the first one that descriptors state. `None` for other streams.
    #[must_use]
    pub fn private_text(&self) -> Option<(Made, Option<String>)> {
        let (form, tag) = match self.coding {
            StreamCoding::Teletext => (PrivateForm::Teletext, descriptor::TELETEXT),
            StreamCoding::DvbSubtitles => (PrivateForm::DvbSubtitles, descriptor::SUBTITLING),
            _ => return None,
        };
        let pages = TeletextPage::announced(&self.teletext());
        let first = || descriptor::find(&self.descriptors, tag).and_then(descriptor::letters);
        let language = pages.first().and_then(|page| page.language.clone()).or_else(first);
        let codec = Codec::PrivateText(PrivateText { form, descriptors: self.descriptors.clone(), pages });
        Some((Made { codec, kind: TrackKind::Text, sample_entry: Vec::new() }, language))
    }
}

/// Sections of an association table that are collected.
#[derive(Debug, Default)]
pub(super) struct Association {
    version: Option<u8>,
    sections: BTreeMap<u8, Vec<Programme>>,
}

impl Association {
    /// Takes a section; returns all programmes where the table is complete.
    pub(super) fn section(&mut self, section: &LongSection<'_>) -> Option<Vec<Programme>> {
        if section.table != ASSOCIATION || !section.is_current {
            return None;
        }
        if self.version != Some(section.version) {
            self.version = Some(section.version);
            self.sections.clear();
        }
        let (entries, _) = section.body.as_chunks::<4>();
        let programmes = entries.iter().map(|[n0, n1, p0, p1]| Programme {
            number: u16::from_be_bytes([*n0, *n1]),
            map_pid: u16::from_be_bytes([p0 & 0x1f, *p1]),
        });
        // Programme 0 is the network information table.
        let programmes = programmes.filter(|programme| programme.number != 0).collect();
        self.sections.insert(section.number, programmes);
        // A table with fewer sections than the one before, whose version is the same.
        self.sections.retain(|number, _| *number <= section.last);
        (self.sections.len() == usize::from(section.last) + 1)
            .then(|| self.sections.values().flatten().take(MOST_PROGRAMMES).copied().collect())
    }
}

impl ProgrammeStreams {
    /// Reads a map that applies now.
    pub(super) fn parse(section: &LongSection<'_>) -> Option<Self> {
        if section.table != MAP || !section.is_current {
            return None;
        }
        let [c0, c1, l0, l1, rest @ ..] = section.body else { return None };
        let length = usize::from(u16::from_be_bytes([l0 & 0x0f, *l1]));
        let (descriptors, mut rest) = rest.split_at_checked(length)?;
        let mut streams = Vec::new();
        while let [stream_type, p0, p1, l0, l1, after @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([l0 & 0x0f, *l1]));
            let (own, after) = after.split_at_checked(length)?;
            rest = after;
            if streams.len() < MOST_STREAMS {
                streams.push(TsStream {
                    pid: u16::from_be_bytes([p0 & 0x1f, *p1]),
                    stream_type: *stream_type,
                    coding: StreamCoding::of(*stream_type, own, descriptors),
                    language: descriptor::language(own),
                    descriptors: own.to_vec(),
                });
            }
        }
        let clock_pid = u16::from_be_bytes([c0 & 0x1f, *c1]);
        Some(Self { programme: section.extension, clock_pid, descriptors: descriptors.to_vec(), streams })
    }
}
