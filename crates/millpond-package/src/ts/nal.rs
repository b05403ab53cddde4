//! Converts NAL units from length fields (ISO/IEC 14496-15, 5.3.3) to start codes (H.264 and H.265, Annex B).

use millpond_media::NalSyntax;

/// Start code with the zero byte that parameter sets and the first unit of a picture need (Annex B.1.2).
pub(super) const START_CODE: [u8; 4] = [0, 0, 0, 1];
/// Output for an empty unit: zeros, which count as `trailing_zero_8bits` of the unit before.
const EMPTY: [u8; 4] = [0; 4];

/// Standard of the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NalCodec {
    /// H.264.
    Avc,
    /// H.265.
    Hevc,
}

impl NalCodec {
    /// Returns an access unit delimiter that allows every slice type, with its start code.
    pub(super) const fn delimiter(self) -> &'static [u8] {
        match self {
            // H.264 7.3.2.4: primary_pic_type 7.
            Self::Avc => &[0, 0, 0, 1, 0x09, 0xf0],
            // H.265 7.3.2.5: pic_type 2.
            Self::Hevc => &[0, 0, 0, 1, 0x46, 0x01, 0x50],
        }
    }

    /// Whether the unit is a slice of a picture.
    pub(super) fn is_slice(self, unit: &[u8]) -> bool {
        match self {
            Self::Avc => NalSyntax::Avc.is_slice(unit),
            Self::Hevc => NalSyntax::Hevc.is_slice(unit),
        }
    }

    /// Whether the unit is an access unit delimiter (H.264 Table 7-1, H.265 Table 7-1).
    fn is_delimiter(self, unit: &[u8]) -> bool {
        unit.first().is_some_and(|&byte| match self {
            Self::Avc => byte & 0x1f == 9,
            Self::Hevc => byte >> 1 & 0x3f == 35,
        })
    }
}

/// The reason why a sample is no sequence of NAL units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Offset of the length field in the sample.
    pub(super) offset: usize,
    /// Length or bytes found.
    pub(super) found: String,
}

/// The NAL units of a sample, up to the first length that does not fit.
#[derive(Clone, Debug)]
pub(super) struct Checked<'a> {
    /// Length fields and units.
    sample: &'a [u8],
    length_size: usize,
    /// Length with start codes instead of length fields, in bytes.
    len: usize,
    /// Whether the first unit is an access unit delimiter.
    delimited: bool,
    /// Bytes of the sample after the units.
    left_out: usize,
    malformed: Option<Malformed>,
}

impl<'a> Checked<'a> {
    /// Checks the length fields, of `length_size` bytes each.
    pub(super) fn new(kind: NalCodec, length_size: u8, sample: &'a [u8]) -> Self {
        let length_size = usize::from(length_size).clamp(1, 4);
        let first = Units { rest: sample, length_size }.next();
        let mut units = Units { rest: sample, length_size };
        let len = units.by_ref().map(|unit| unit.len() + START_CODE.len()).sum();
        let left_out = units.rest.len();
        let malformed = (left_out > 0).then(|| units.malformed(sample.len()));
        let sample = sample.get(..sample.len() - left_out).unwrap_or_default();
        Self {
            sample,
            length_size,
            len,
            delimited: first.is_some_and(|unit| kind.is_delimiter(unit)),
            left_out,
            malformed,
        }
    }

    /// Returns the number of bytes of the sample after the units.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Removes and returns the fault behind the units; `None` if the units fill the sample.
    pub(super) fn take_malformed(&mut self) -> Option<Malformed> {
        self.malformed.take()
    }

    /// Length in bytes of the output of [`pieces`](Self::pieces).
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Removes and returns the first unit if it is an access unit delimiter.
    pub(super) fn take_delimiter(&mut self) -> Option<&'a [u8]> {
        if !std::mem::take(&mut self.delimited) {
            return None;
        }
        let mut units = Units { rest: self.sample, length_size: self.length_size };
        let unit = units.next()?;
        self.sample = units.rest;
        self.len -= unit.len() + START_CODE.len();
        Some(unit)
    }

    /// Returns the sample in the form of Annex B: start code, unit, start code, unit ...
    pub(super) fn pieces(&self) -> impl Iterator<Item = [&'a [u8]; 2]> {
        Units { rest: self.sample, length_size: self.length_size }.map(|unit| {
            let code: &'static [u8] = if unit.is_empty() { &EMPTY } else { &START_CODE };
            [code, unit]
        })
    }
}

/// Iterates over the units of a sample. It ends early where a length exceeds the rest.
struct Units<'a> {
    rest: &'a [u8],
    length_size: usize,
}

impl Units<'_> {
    /// Returns the error at the position where iteration stopped, in a sample of `len` bytes.
    fn malformed(&self, len: usize) -> Malformed {
        let found = match self.rest.split_at_checked(self.length_size) {
            Some((field, after)) => {
                format!("NAL unit length {} with {} bytes left", big_endian(field), after.len())
            }
            None => format!("{} bytes of a NAL unit length", self.rest.len()),
        };
        Malformed { offset: len - self.rest.len(), found }
    }
}

impl<'a> Iterator for Units<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (field, after) = self.rest.split_at_checked(self.length_size)?;
        let (unit, rest) = after.split_at_checked(big_endian(field))?;
        self.rest = rest;
        Some(unit)
    }
}

fn big_endian(field: &[u8]) -> usize {
    field.iter().fold(0, |value, &byte| value << 8 | usize::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annex_b(kind: NalCodec, length_size: u8, sample: &[u8]) -> Vec<u8> {
        let mut checked = Checked::new(kind, length_size, sample);
        assert_eq!((checked.left_out(), checked.take_malformed()), (0, None));
        let bytes = checked.pieces().flatten().flatten().copied().collect::<Vec<_>>();
        assert_eq!(bytes.len(), checked.len());
        bytes
    }

    #[test]
    fn lengths_become_start_codes() {
        let expected = [0, 0, 0, 1, 0x65, 7, 0, 0, 0, 1, 0x41];
        assert_eq!(annex_b(NalCodec::Avc, 4, &[0, 0, 0, 2, 0x65, 7, 0, 0, 0, 1, 0x41]), expected);
        assert_eq!(annex_b(NalCodec::Avc, 2, &[0, 2, 0x65, 7, 0, 1, 0x41]), expected);
        assert_eq!(annex_b(NalCodec::Avc, 1, &[2, 0x65, 7, 1, 0x41]), expected);
    }

    #[test]
    fn an_empty_unit_becomes_trailing_zeros() {
        assert_eq!(annex_b(NalCodec::Avc, 4, &[0, 0, 0, 1, 0x65, 0, 0, 0, 0]), [0, 0, 0, 1, 0x65, 0, 0, 0, 0]);
    }

    #[test]
    fn a_leading_delimiter_is_taken_off_once() {
        for (kind, header) in [(NalCodec::Avc, 0x09), (NalCodec::Hevc, 0x46)] {
            let sample = [0, 0, 0, 2, header, 0x10, 0, 0, 0, 1, 0x02];
            let mut checked = Checked::new(kind, 4, &sample);
            assert_eq!(checked.take_delimiter(), Some(&[header, 0x10][..]));
            assert_eq!(checked.take_delimiter(), None);
            assert_eq!(checked.len(), 5);
            assert_eq!(checked.pieces().collect::<Vec<_>>(), [[&START_CODE[..], &[0x02]]]);
        }
    }

    #[test]
    fn units_end_before_a_malformed_length_which_is_named() {
        for (sample, found, left_out) in [
            (&[0, 0, 0, 1, 0x65, 0, 0, 0, 9, 1][..], "NAL unit length 9 with 1 bytes left", 5),
            (&[0, 0, 0, 1, 0x65, 0, 0], "2 bytes of a NAL unit length", 2),
        ] {
            let mut checked = Checked::new(NalCodec::Avc, 4, sample);
            assert_eq!(checked.take_malformed(), Some(Malformed { offset: 5, found: found.to_owned() }));
            assert_eq!((checked.len(), checked.left_out()), (5, left_out));
            assert_eq!(checked.pieces().collect::<Vec<_>>(), [[&START_CODE[..], &[0x65]]]);
        }
        let checked = Checked::new(NalCodec::Avc, 4, &[0xff; 9]);
        assert_eq!((checked.pieces().count(), checked.len(), checked.left_out()), (0, 0, 9));
    }

    #[test]
    fn an_empty_sample_has_no_units() {
        assert_eq!(annex_b(NalCodec::Hevc, 4, &[]), []);
    }
}
