//! Dolby Vision in `dvcC`, `dvvC` and `dvwC` boxes ("Dolby Vision Streams within the ISO base media file format", 3.1).

use crate::{
    boxes::Node,
    codec::{fields::FieldReader, video::color::Color},
};
use serde::{Deserialize, Serialize};

/// `DOVIDecoderConfigurationRecord`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DolbyVision {
    /// `dv_profile`: 5 and 8 are HEVC in one layer, 7 HEVC in two, 9 AVC, 10 AV1.
    pub profile: u8,
    /// `dv_level`.
    pub level: u8,
    /// `bl_present_flag`: whether the track has the pictures, and not only an enhancement layer.
    pub has_base: bool,
    /// `el_present_flag`.
    pub has_enhancement: bool,
    /// `dv_bl_signal_compatibility_id`: other decoders show the pictures as 1 HDR10, 2 SDR, 4 HLG, or 0 not at all.
    pub compatibility: u8,
}

impl DolbyVision {
    /// Reads the record of a visual sample entry, whose boxes begin behind `skip` bytes.
    pub(in crate::codec) fn of_entry(entry: &Node<'_>, skip: usize) -> Option<Self> {
        let is_record = |child: &Node<'_>| matches!(&child.kind, b"dvcC" | b"dvvC" | b"dvwC");
        let record = entry.children_after(skip).find(is_record)?;
        let mut fields = FieldReader::of(&record);
        // Major and minor version.
        fields.skip(16).ok()?;
        let (profile, level) = (fields.small(7).ok()?, fields.small(6).ok()?);
        fields.skip(1).ok()?;
        let (has_enhancement, has_base) = (fields.flag().ok()?, fields.flag().ok()?);
        // Records of the first version end here: profiles 0 to 7, of which 5 alone has no compatible base.
        let compatibility = fields.small(4).unwrap_or(if profile == 5 { 0 } else { 2 });
        Some(Self { profile, level, has_base, has_enhancement, compatibility })
    }

    /// Whether the track is an enhancement layer of another one.
    #[must_use]
    pub fn is_enhancement(&self) -> bool {
        self.has_enhancement && !self.has_base
    }

    /// Whether only decoders of Dolby Vision show the pictures as they are meant.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        match self.profile {
            5 => true,
            8..=10 => self.compatibility == 0,
            _ => false,
        }
    }

    /// Returns the element of a `codecs` parameter, such as `dvh1.08.07`. `name` is the type of the sample entry.
    #[must_use]
    pub(in crate::codec) fn parameter(&self, name: &str) -> String {
        format!("{name}.{:02}.{:02}", self.profile, self.level)
    }

    /// Returns the brand of the pictures that other decoders show, as manifests state it.
    pub(in crate::codec) fn brand(&self) -> Option<&'static str> {
        let is_one_layer = matches!(self.profile, 8..=10);
        match self.compatibility {
            1 if is_one_layer => Some("db1p"),
            2 if is_one_layer => Some("db2g"),
            4 if is_one_layer => Some("db4h"),
            _ => None,
        }
    }

    /// Returns the colours of pictures that only Dolby Vision shows: PQ, whatever the sample entry states.
    pub(in crate::codec) fn color(&self) -> Option<Color> {
        self.stands_alone().then_some(Color { primaries: 9, transfer: 16, ..Color::UNSPECIFIED })
    }
}
