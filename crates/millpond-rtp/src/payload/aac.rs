//! AAC (RFC 3640, mode AAC-hbr: 13 bits of size, 3 bits of index).

use super::{
    PayloadError, Piece,
    building::{Building, Join, Progress, Start, head},
    parts,
};

/// Makes one packet per access unit (RFC 3640 3.3.6), or several with fragments of a large unit.
pub(super) fn cut(frame: &[u8], most: usize, pieces: &mut Vec<Piece>) -> Result<(), PayloadError> {
    let Some(size) = u16::try_from(frame.len()).ok().filter(|size| *size < 1 << 13) else {
        return Err(PayloadError::new(0, format!("an access unit of {} bytes", frame.len()), "fewer than 8192"));
    };
    let [high, low] = (size << 3).to_be_bytes();
    // Every fragment states the size of the whole unit (RFC 3640 3.2.3.2).
    for part in parts(0..frame.len(), most - 4) {
        pieces.push(Piece::new(&[0, 16, high, low], part));
    }
    Ok(())
}

/// Ticks of an access unit of 1024 samples, where the clock is the sampling rate.
const DURATION: u32 = 1024;

#[derive(Debug)]
pub(super) struct AacJoin {
    /// Ticks per access unit, from which each unit of a packet gets its time (RFC 3640 3.2.1).
    duration: u32,
    /// Size of the unit of which fragments are arriving.
    fragmented: Option<usize>,
}

impl Default for AacJoin {
    fn default() -> Self {
        Self::new(DURATION)
    }
}

impl AacJoin {
    pub(super) fn new(duration: u32) -> Self {
        Self { duration, fragmented: None }
    }

    fn fragment(&mut self, size: usize, part: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let whole = *self.fragmented.get_or_insert(size);
        if whole != size || unit.bytes.len() + part.len() > whole {
            let found = format!("{} bytes of an access unit of {size}", unit.bytes.len() + part.len());
            return Err(PayloadError::packet(2, found, "fragments that make up one unit"));
        }
        unit.extend(part)?;
        if unit.bytes.len() < whole {
            return Ok(Progress::Open);
        }
        self.fragmented = None;
        unit.close(0);
        Ok(Progress::Closed)
    }
}

/// Reads the sizes of the access units, and the offset of the first one (RFC 3640 3.2.1).
fn headers(payload: &[u8]) -> Result<(Vec<usize>, usize), PayloadError> {
    let bits = u16::from_be_bytes(head(payload, "the length of AU headers")?);
    let end = 2 + usize::from(bits).div_ceil(8);
    let section = payload.get(2..end).filter(|_| bits > 0 && bits % 16 == 0);
    let section = section.ok_or_else(|| {
        PayloadError::packet(0, format!("AU headers of {bits} bits"), "16 bits each, and the packet to have them")
    })?;
    let mut sizes = Vec::with_capacity(section.len() / 2);
    for (place, field) in section.chunks_exact(2).enumerate() {
        let field = u16::from_be_bytes([field[0], field[1]]);
        let (size, index) = (usize::from(field >> 3), field & 7);
        // A first index other than 0, or a difference other than 0, means interleaving (RFC 3640 3.2.3.1).
        if index != 0 || size == 0 {
            let found = format!("an access unit of {size} bytes with index {index}");
            return Err(PayloadError::packet(2 + 2 * place, found, "a size, and index 0 (no interleaving)"));
        }
        sizes.push(size);
    }
    Ok((sizes, end))
}

impl Join for AacJoin {
    fn start(&self, payload: &[u8]) -> Result<Start, PayloadError> {
        let (sizes, start) = headers(payload)?;
        // Fragments don't state which one they are.
        let whole = sizes.iter().sum::<usize>() <= payload.len() - start;
        Ok(if whole { Start::Yes } else { Start::Unknown })
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        let (sizes, start) = headers(payload)?;
        let mut media = &payload[start..];
        if let [size] = sizes[..]
            && size > media.len()
        {
            return self.fragment(size, media, unit);
        }
        let total: usize = sizes.iter().sum();
        if total != media.len() || self.fragmented.is_some() {
            let found = format!("{} bytes for access units of {total}", media.len());
            let expected = if self.fragmented.is_some() { "another fragment" } else { "as many as the AU headers say" };
            return Err(PayloadError::packet(start, found, expected));
        }
        for (size, place) in sizes.into_iter().zip(0_u32..) {
            let (one, rest) = media.split_at(size);
            media = rest;
            unit.extend(one)?;
            unit.close(place.wrapping_mul(self.duration));
        }
        Ok(Progress::Closed)
    }

    fn is_whole(&self, _unit: &Building) -> bool {
        self.fragmented.is_none()
    }

    fn forget(&mut self) {
        self.fragmented = None;
    }
}
