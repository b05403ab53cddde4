//! Protection system headers (`pssh`, ISO/IEC 23001-7 8.1): opaque data for licence systems.

use super::Uuid;
use crate::{
    boxes::{FourCc, FullBox, Node},
    error::MediaError,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Most bytes of headers of a movie box; those of ten systems have a few thousand.
const MOST_OF_MOVIE: usize = 64 << 10;
/// Most bytes of different headers of all fragments.
const MOST_OF_FRAGMENTS: usize = 1 << 20;

/// One `pssh` box.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SystemHeader {
    /// `SystemID`.
    pub system: Uuid,
    /// The whole box.
    pub whole: Vec<u8>,
}

impl SystemHeader {
    const KIND: FourCc = *b"pssh";

    /// `Data`: the bytes after key identifiers and size.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        let node = Node::new(&self.whole, 0, "pssh");
        node.and_then(|node| data(&node).ok()).unwrap_or_default()
    }

    /// Bytes of heap held, for memory budgets.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.whole.capacity()
    }

    fn parse(node: &Node<'_>) -> Result<Self, MediaError> {
        let FullBox { mut fields, .. } = node.full()?;
        let mut system = Uuid([0; 16]);
        system.0.copy_from_slice(fields.take(16)?);
        data(node)?;
        Ok(Self { system, whole: node.whole.to_vec() })
    }
}

fn data<'a>(node: &Node<'a>) -> Result<&'a [u8], MediaError> {
    let FullBox { version, mut fields, .. } = node.full()?;
    fields.skip(16)?;
    if version > 0 {
        let keys = fields.u32()?;
        fields.skip(usize::try_from(u64::from(keys) * 16).unwrap_or(usize::MAX))?;
    }
    let size = fields.u32()?;
    fields.take(size as usize)
}

/// A header of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentHeader {
    /// First sample of the fragment.
    pub sample: u32,
    /// Index in [`Movie::fragment_headers`](crate::Movie::fragment_headers).
    pub header: u32,
}

/// Headers of a movie, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct SystemHeaders {
    /// Headers of the movie box.
    pub(crate) movie: Vec<SystemHeader>,
    /// Headers of fragments.
    pub(crate) fragments: Vec<SystemHeader>,
    places: HashMap<SystemHeader, u32>,
    bytes: usize,
}

impl SystemHeaders {
    /// Adds the headers of `moov`.
    pub(crate) fn of_movie(&mut self, moov: &Node<'_>) -> Result<(), MediaError> {
        let mut bytes = 0;
        for node in moov.children_of(&SystemHeader::KIND) {
            bytes += node.whole.len();
            room(&node, bytes, MOST_OF_MOVIE)?;
            let header = SystemHeader::parse(&node)?;
            if !self.movie.contains(&header) {
                self.movie.push(header);
            }
        }
        Ok(())
    }

    /// Adds the headers of `moof`, and returns their indexes among the headers of all fragments.
    pub(crate) fn of_fragment(&mut self, moof: &Node<'_>) -> Result<Vec<u32>, MediaError> {
        let mut found = Vec::new();
        for node in moof.children_of(&SystemHeader::KIND) {
            let header = SystemHeader::parse(&node)?;
            if let Some(&place) = self.places.get(&header) {
                found.push(place);
                continue;
            }
            self.bytes += node.whole.len();
            room(&node, self.bytes, MOST_OF_FRAGMENTS)?;
            let place = u32::try_from(self.fragments.len()).unwrap_or(u32::MAX);
            self.fragments.push(header.clone());
            self.places.insert(header, place);
            found.push(place);
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

fn room(node: &Node<'_>, bytes: usize, most: usize) -> Result<(), MediaError> {
    if bytes > most {
        let what = "bytes of protection system headers";
        return Err(MediaError::too_large(node.path.clone(), node.offset, bytes as u64, most as u64, what));
    }
    Ok(())
}
