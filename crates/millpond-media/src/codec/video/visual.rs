//! Fields common to all visual sample entries (ISO/IEC 14496-12 12.1.3).

use crate::{
    boxes::{Node, show},
    codec::{
        Codec, SampleEntry, TrackKind,
        orientation::Orientation,
        video::{color::Color, dolby_vision::DolbyVision},
    },
    error::MediaError,
};

/// Length in bytes of the fields before the boxes.
const FIELDS: usize = 78;

/// A visual sample entry.
#[derive(Debug)]
pub(in crate::codec) struct Visual<'n, 'a> {
    node: &'n Node<'a>,
    /// Coded width in pixels.
    pub(in crate::codec) width: u16,
    /// Coded height in pixels.
    pub(in crate::codec) height: u16,
    /// Colours of the `colr` box.
    pub(in crate::codec) color: Option<Color>,
}

impl<'n, 'a> Visual<'n, 'a> {
    /// Reads the fields.
    pub(in crate::codec) fn parse(node: &'n Node<'a>) -> Result<Self, MediaError> {
        let mut fields = node.fields();
        fields.skip(24)?;
        let (width, height) = (fields.u16()?, fields.u16()?);
        fields.skip(FIELDS - 28)?;
        Ok(Self { node, width, height, color: Color::of_entry(node, FIELDS) })
    }

    /// Type of the sample entry. That of Dolby Vision counts as the codec's own.
    pub(in crate::codec) fn fourcc(&self) -> [u8; 4] {
        match &self.node.kind {
            b"dva1" => *b"avc1",
            b"dvav" => *b"avc3",
            b"dvh1" => *b"hvc1",
            b"dvhe" => *b"hev1",
            b"dav1" => *b"av01",
            _ => self.node.kind,
        }
    }

    /// Returns the record of Dolby Vision, where there is one.
    ///
    /// # Errors
    /// The track is an enhancement layer, and no rendition.
    pub(in crate::codec) fn dolby_vision(&self) -> Result<Option<DolbyVision>, MediaError> {
        let found = DolbyVision::of_entry(self.node, FIELDS);
        match found.filter(DolbyVision::is_enhancement) {
            Some(DolbyVision { profile, .. }) => {
                let name = show(self.node.kind);
                Err(self
                    .node
                    .unsupported(format!("'{name}' (the enhancement layer of Dolby Vision profile {profile})")))
            }
            None => Ok(found),
        }
    }

    /// Returns the box of type `kind`, which the codec requires.
    pub(in crate::codec) fn need(&self, kind: &[u8; 4]) -> Result<Node<'a>, MediaError> {
        self.child(kind).ok_or_else(|| crate::codec::missing(self.node, kind))
    }

    /// Returns the sample entry of this codec.
    pub(in crate::codec) fn entry(&self, codec: Codec) -> SampleEntry {
        let (width, height) = (self.width, self.height);
        let pixel_aspect = self.pixel_aspect().unwrap_or((1, 1));
        SampleEntry { codec, kind: TrackKind::Video { width, height, orientation: Orientation::UPRIGHT, pixel_aspect } }
    }

    fn child(&self, kind: &[u8; 4]) -> Option<Node<'a>> {
        self.node.children_after(FIELDS).find(|child| child.kind == *kind)
    }

    /// Returns the pixel aspect ratio of the `pasp` box (12.1.4); `None` where either number is zero.
    fn pixel_aspect(&self) -> Option<(u32, u32)> {
        let pasp = self.child(b"pasp")?;
        let mut fields = pasp.fields();
        let spacing = (fields.u32().ok()?, fields.u32().ok()?);
        (spacing.0 > 0 && spacing.1 > 0).then_some(spacing)
    }
}
