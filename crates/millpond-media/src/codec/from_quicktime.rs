//! Converts the sample entries of QuickTime to sample entries of ISO base media files.
//!
//! QuickTime's sound descriptions of versions 1 and 2 have fields that an `AudioSampleEntry` (ISO/IEC 14496-12 12.2.3)
//! lacks, and keep the decoder's configuration in a `wave` box. Its picture descriptions fill fields that are reserved
//! in a `VisualSampleEntry` (12.1.3). Players of fragmented MP4 read only ISO's entries. An ISO entry is not changed,
//! except for boxes that only QuickTime defines, which are removed, and reserved fields, which are set to ISO's values.

use crate::{
    boxes::{FourCc, Node},
    codec::{
        Codec, TrackKind,
        audio::{chan, mpeg_audio, pcm, sound::Sound},
    },
};

/// Length in bytes of a visual sample entry's fields before its boxes.
const VISUAL_FIELDS: usize = 78;
/// Boxes of sample entries that only QuickTime defines. A type of zeros ends its box lists.
const QUICKTIME: [&FourCc; 7] = [b"chan", b"enda", b"fiel", b"frma", b"gama", b"wave", &[0; 4]];
/// Decoder configuration boxes that a `wave` box can hold.
const CONFIGURATIONS: [&FourCc; 7] = [b"esds", b"alac", b"dac3", b"dec3", b"dfLa", b"dOps", b"sinf"];

/// Returns the ISO form of an entry. Text entries, and entries of codecs without an ISO entry, are not changed.
pub(crate) fn sample_entry(entry: &Node<'_>, codec: &Codec, kind: TrackKind) -> Vec<u8> {
    let written = match (kind, codec) {
        (TrackKind::Text, _) => None,
        (TrackKind::Video { .. }, _) => visual(entry),
        (TrackKind::Audio { .. }, Codec::Pcm(config)) if config.iso_type().is_none() => None,
        (TrackKind::Audio { .. }, codec) => audio(entry, codec),
    };
    written.unwrap_or_else(|| entry.whole.to_vec())
}

/// Returns a `VisualSampleEntry` with the boxes of the entry.
fn visual(entry: &Node<'_>) -> Option<Vec<u8>> {
    let fields = entry.body.get(..VISUAL_FIELDS)?;
    let mut body = Vec::with_capacity(entry.body.len());
    body.extend([0; 6]);
    body.extend(fields.get(6..8)?);
    body.extend([0; 16]);
    // Width and height.
    body.extend(fields.get(24..28)?);
    // 72 dpi, a reserved word, and one frame per sample.
    body.extend([0, 0x48, 0, 0, 0, 0x48, 0, 0, 0, 0, 0, 0, 0, 1]);
    let name = fields.get(42..74)?;
    body.extend(if name.first().is_some_and(|&len| len < 32) { name } else { &[0; 32] });
    // A depth of 24 bits, and no colour table.
    body.extend([0, 0x18, 0xff, 0xff]);
    let children = || entry.children_after(VISUAL_FIELDS);
    let color_type = |child: &Node<'_>| child.body.first_chunk::<4>().copied().filter(|_| child.kind == *b"colr");
    let has_range = children().any(|child| color_type(&child) == Some(*b"nclx"));
    for child in children().filter(|child| !QUICKTIME.contains(&&child.kind)) {
        match color_type(&child) {
            Some(kind) if kind == *b"nclc" && has_range => {}
            // `nclx` (12.1.5) has the same three numbers and a range flag; the range of `nclc` is limited.
            Some(kind) if kind == *b"nclc" => {
                if let Some(numbers) = child.body.get(4..10) {
                    put(&mut body, b"colr", &[b"nclx", numbers, &[0]]);
                }
            }
            _ => put(&mut body, &child.kind, &[child.body]),
        }
    }
    Some(boxed(entry.kind, &body))
}

/// Returns an `AudioSampleEntry` of version 0 with the boxes of the entry, and with the decoder's configuration from
/// its `wave` box.
fn audio(entry: &Node<'_>, codec: &Codec) -> Option<Vec<u8>> {
    let sound = Sound::parse(entry).ok()?;
    let (kind, channels, bits, rate) = match codec {
        Codec::MpegAudio(config) => (*b"mp4a", config.channels, 16, config.sample_rate),
        Codec::Pcm(config) => (config.iso_type()?, config.channels, config.value_bits(), config.sample_rate),
        _ => (entry.kind, sound.channels, if sound.bits == 0 { 16 } else { sound.bits }, sound.sample_rate),
    };
    let kind = if &entry.kind == b"enca" { entry.kind } else { kind };
    let mut body = Vec::with_capacity(entry.body.len());
    body.extend([0; 6]);
    body.extend(entry.body.get(6..8)?);
    body.extend([0; 8]);
    body.extend(channels.to_be_bytes());
    body.extend(bits.to_be_bytes());
    body.extend([0; 4]);
    // A rate of more than 16 bits is taken from the codec's configuration or the track's clock.
    body.extend(u16::try_from(rate).unwrap_or(0).to_be_bytes());
    body.extend([0; 2]);
    match codec {
        Codec::MpegAudio(config) => put(&mut body, b"esds", &[&mpeg_audio::descriptor(config)]),
        Codec::Pcm(config) => {
            put(&mut body, b"pcmC", &[&pcm::configuration(config)]);
            let layout = || chan::layout(sound.child(b"chan").as_ref(), config.channels);
            if let Some(layout) = (entry.kind != kind).then(layout).flatten() {
                put(&mut body, b"chnl", &[&layout]);
            }
        }
        _ => {}
    }
    let written = |kind: &FourCc| match codec {
        Codec::MpegAudio(_) => kind == b"esds",
        Codec::Pcm(_) => kind == b"pcmC",
        _ => false,
    };
    let left_out = |kind: &FourCc| QUICKTIME.contains(&kind) || kind == b"srat" || written(kind);
    for child in sound.boxes().filter(|child| !left_out(&child.kind)) {
        put(&mut body, &child.kind, &[child.body]);
    }
    for kind in CONFIGURATIONS.into_iter().filter(|kind| !written(kind)) {
        let in_wave = || sound.boxes().filter(|child| &child.kind == b"wave").find_map(|wave| wave.child(kind));
        if let Some(found) = in_wave().filter(|_| !sound.boxes().any(|child| &child.kind == kind)) {
            put(&mut body, kind, &[found.body]);
        }
    }
    Some(boxed(kind, &body))
}

/// Appends a box. Its size is computed from its parts.
pub(crate) fn put(out: &mut Vec<u8>, kind: &FourCc, parts: &[&[u8]]) {
    let len = 8 + parts.iter().map(|part| part.len()).sum::<usize>();
    out.extend(u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(kind);
    parts.iter().for_each(|part| out.extend(*part));
}

/// Returns a box.
pub(crate) fn boxed(kind: FourCc, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + body.len());
    put(&mut out, &kind, &[body]);
    out
}
