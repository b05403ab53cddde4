//! Fields common to all audio sample entries: ISO/IEC 14496-12 12.2.3, and versions 1 and 2 of QuickTime (QuickTime
//! File Format, "Sound Sample Descriptions").

use crate::{
    boxes::{BoxHeader, FullBox, Node},
    codec::{Codec, SampleEntry, TrackKind},
    error::MediaError,
};

/// Length in bytes of the fields before the boxes, in version 0.
const FIELDS: usize = 28;
/// Bytes that QuickTime's version 1 adds.
const VERSION_1: usize = 16;
/// Bytes that QuickTime's version 2 adds.
const VERSION_2: usize = 36;

/// An audio sample entry.
#[derive(Debug)]
pub(in crate::codec) struct Sound<'n, 'a> {
    pub(in crate::codec) node: &'n Node<'a>,
    /// Channels as stated by the fields; the codec configuration takes precedence.
    pub(in crate::codec) channels: u16,
    /// Samples per second as stated by the fields; 0 where the rate exceeds the field.
    pub(in crate::codec) sample_rate: u32,
    /// Bits per value as stated by the fields; 16 where they state none.
    pub(in crate::codec) bits: u16,
    /// PCM format, which only version 2 states.
    pub(in crate::codec) format: Option<Format>,
    boxes_at: usize,
}

/// Format of linear PCM in a description of version 2.
#[derive(Clone, Copy, Debug)]
pub(in crate::codec) struct Format {
    /// `constBitsPerChannel`.
    pub(in crate::codec) bits: u32,
    /// `formatSpecificFlags`.
    pub(in crate::codec) flags: u32,
    /// `constBytesPerAudioPacket`: bytes of a PCM frame.
    pub(in crate::codec) packet_bytes: u32,
}

impl<'n, 'a> Sound<'n, 'a> {
    /// Reads the fields.
    pub(in crate::codec) fn parse(node: &'n Node<'a>) -> Result<Self, MediaError> {
        let mut fields = node.fields();
        fields.skip(8)?;
        let version = fields.u16()?;
        fields.skip(6)?;
        let channels = fields.u16()?;
        let bits = fields.u16()?;
        fields.skip(4)?;
        let sample_rate = fields.u32()? >> 16;
        let plain = Self { node, channels, sample_rate, bits, format: None, boxes_at: FIELDS };
        match version {
            1 => Ok(plain.version_1()),
            2 => plain.version_2(),
            _ => Ok(plain),
        }
    }

    /// Skips the four further fields of QuickTime's version 1. An `AudioSampleEntryV1` of ISO/IEC 14496-12 has the same
    /// version but not these fields, so the offset from which whole boxes fit decides.
    fn version_1(self) -> Self {
        let iso = boxes_fit(self.node.body.get(FIELDS..).unwrap_or_default());
        let boxes_at = if iso { FIELDS } else { FIELDS + VERSION_1 };
        let sample_rate = if iso { self.sampling_rate_box().unwrap_or(self.sample_rate) } else { self.sample_rate };
        Self { boxes_at, sample_rate, ..self }
    }

    fn version_2(self) -> Result<Self, MediaError> {
        let mut fields = self.node.fields();
        fields.skip(FIELDS)?;
        let size = fields.u32()? as usize;
        let [high, low] = [fields.u32()?, fields.u32()?];
        let rate = f64::from_bits(u64::from(high) << 32 | u64::from(low));
        let channels = fields.u32()?;
        fields.skip(4)?;
        let format = Format { bits: fields.u32()?, flags: fields.u32()?, packet_bytes: fields.u32()? };
        fields.skip(4)?;
        // The size counts the header of the entry. An implausible size is ignored.
        let header = self.node.whole.len() - self.node.body.len();
        let least = FIELDS + VERSION_2;
        let boxes_at = size.checked_sub(header).filter(|at| (least..=self.node.body.len()).contains(at));
        Ok(Self {
            channels: u16::try_from(channels).unwrap_or(self.channels),
            // A float to integer cast saturates and makes NaN zero, which is "unknown" here.
            sample_rate: rate as u32,
            format: Some(format),
            boxes_at: boxes_at.unwrap_or(least),
            ..self
        })
    }

    /// Reads the `srat` box (12.2.4), for rates above 65,535 Hz.
    fn sampling_rate_box(&self) -> Option<u32> {
        let srat = self.node.children_after(FIELDS).find(|child| child.kind == *b"srat")?;
        let FullBox { mut fields, .. } = srat.full().ok()?;
        fields.u32().ok()
    }

    /// The boxes of the entry.
    pub(in crate::codec) fn boxes(&self) -> impl Iterator<Item = Node<'a>> {
        self.node.children_after(self.boxes_at)
    }

    /// Returns the box of type `kind`, in the entry or in its `wave` box, where QuickTime puts decoder configurations.
    pub(in crate::codec) fn child(&self, kind: &[u8; 4]) -> Option<Node<'a>> {
        self.boxes()
            .find(|child| child.kind == *kind)
            .or_else(|| self.boxes().filter(|child| child.kind == *b"wave").find_map(|wave| wave.child(kind)))
    }

    /// Returns the box of type `kind`, which the codec requires.
    pub(in crate::codec) fn need(&self, kind: &[u8; 4]) -> Result<Node<'a>, MediaError> {
        self.child(kind).ok_or_else(|| crate::codec::missing(self.node, kind))
    }

    /// Returns the sample entry of this codec. A zero in `channels` or `sample_rate` is replaced by the entry's own
    /// field.
    pub(in crate::codec) fn entry(&self, codec: Codec, channels: u16, sample_rate: u32) -> SampleEntry {
        let channels = if channels == 0 { self.channels } else { channels };
        let sample_rate = if sample_rate == 0 { self.sample_rate } else { sample_rate };
        SampleEntry { codec, kind: TrackKind::Audio { channels, sample_rate } }
    }
}

/// Whether `bytes` are whole boxes with printable types to the end, except for QuickTime's four bytes of zeros.
fn boxes_fit(mut bytes: &[u8]) -> bool {
    let mut any = false;
    while bytes.len() >= 8 {
        let Some(header) = BoxHeader::parse(bytes) else { return any && bytes.starts_with(&[0; 4]) };
        let size = header.size.and_then(|size| usize::try_from(size).ok());
        let Some(rest) = size.and_then(|size| bytes.get(size..)) else { return false };
        if !header.kind.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
            return false;
        }
        (bytes, any) = (rest, true);
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(version: u16, fields: &[u8], boxes: &[u8]) -> Vec<u8> {
        let mut body = vec![0, 0, 0, 0, 0, 0, 0, 1];
        body.extend(version.to_be_bytes());
        body.extend([0; 6]);
        body.extend([0, 2, 0, 16, 0, 0, 0, 0]);
        body.extend((44_100_u32 << 16).to_be_bytes());
        body.extend(fields);
        body.extend(boxes);
        let mut whole = (body.len() as u32 + 8).to_be_bytes().to_vec();
        whole.extend(b"test");
        whole.extend(body);
        whole
    }

    const CONFIG: &[u8] = b"\0\0\0\x0ccnfg\x01\x02\x03\x04";

    fn check(bytes: &[u8], channels: u16, sample_rate: u32) {
        let node = Node::new(bytes, 0, "test").unwrap();
        let sound = Sound::parse(&node).unwrap();
        assert_eq!((sound.channels, sound.sample_rate), (channels, sample_rate));
        assert_eq!(sound.need(b"cnfg").unwrap().body, [1, 2, 3, 4]);
    }

    #[test]
    fn boxes_are_found_in_every_version() {
        check(&entry(0, &[], CONFIG), 2, 44_100);
        check(&entry(1, &[0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2], CONFIG), 2, 44_100);
        let mut two = 72_u32.to_be_bytes().to_vec();
        two.extend(96_000_f64.to_bits().to_be_bytes());
        two.extend(6_u32.to_be_bytes());
        two.extend([0x7f, 0, 0, 0]);
        two.extend([0; 16]);
        check(&entry(2, &two, CONFIG), 6, 96_000);
    }

    #[test]
    fn an_iso_version_1_has_no_quicktime_fields_and_a_rate_box() {
        let mut boxes = b"\0\0\0\x10srat\0\0\0\0".to_vec();
        boxes.extend(192_000_u32.to_be_bytes());
        boxes.extend(CONFIG);
        check(&entry(1, &[], &boxes), 2, 192_000);
    }

    #[test]
    fn a_configuration_may_sit_in_wave() {
        let mut wave = b"\0\0\0\x28wave\0\0\0\x0cfrmamp4a".to_vec();
        wave.extend(CONFIG);
        wave.extend(b"\0\0\0\x08\0\0\0\0");
        check(&entry(1, &[0; 16], &wave), 2, 44_100);
    }
}
