//! Boxes inside samples (ISO/IEC 14496-12, 4.2).

/// A walk over boxes.
pub(super) struct Boxes<'a> {
    rest: &'a [u8],
    offset: usize,
}

/// One box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleBox<'a> {
    /// Box type.
    pub(super) fourcc: [u8; 4],
    /// Content of the box.
    pub(super) body: &'a [u8],
}

/// An invalid box size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Offset of the box from the start of the walk.
    pub(super) offset: usize,
    /// Size or bytes found.
    pub(super) found: String,
}

impl<'a> Boxes<'a> {
    /// Starts a walk over the boxes that fill `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, offset: 0 }
    }

    fn malformed(&mut self, found: String) -> Malformed {
        self.rest = &[];
        Malformed { offset: self.offset, found }
    }
}

impl<'a> Iterator for Boxes<'a> {
    type Item = Result<SampleBox<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let left = self.rest.len();
        let Some((&[a, b, c, d, ref fourcc @ ..], _)) = self.rest.split_first_chunk::<8>() else {
            return Some(Err(self.malformed(format!("{left} bytes of a box header"))));
        };
        let size = u32::from_be_bytes([a, b, c, d]);
        // Size 0 means "to the end" (4.2.2); boxes of 4 GiB don't occur in samples.
        let size = if size == 0 { left } else { size as usize };
        let Some((whole, rest)) = self.rest.split_at_checked(size).filter(|_| size >= 8) else {
            return Some(Err(self.malformed(format!("box size {size} with {left} bytes left"))));
        };
        self.rest = rest;
        self.offset += size;
        Some(Ok(SampleBox { fourcc: *fourcc, body: &whole[8..] }))
    }
}

#[cfg(test)]
pub(super) fn make(fourcc: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes(), &fourcc[..], body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_follow_one_another() {
        let mut bytes = [make(b"payl", b"hi"), make(b"vtte", b"")].concat();
        bytes.extend_from_slice(b"\0\0\0\0restx");
        let found: Vec<_> = Boxes::new(&bytes).map(|b| b.map(|b| (b.fourcc, b.body.to_vec()))).collect();
        assert_eq!(found, [Ok((*b"payl", b"hi".to_vec())), Ok((*b"vtte", vec![])), Ok((*b"rest", b"x".to_vec()))]);
    }

    #[test]
    fn sizes_that_cannot_be_are_told() {
        let error = |bytes: &[u8]| Boxes::new(bytes).find_map(Result::err).unwrap();
        assert_eq!(error(b"\0\0\0\x07abcd").found, "box size 7 with 8 bytes left");
        assert_eq!(error(b"\0\0\0\x09abcd").found, "box size 9 with 8 bytes left");
        assert_eq!(error(b"\0\0\0\x08abcd\0\0").offset, 8);
    }
}
