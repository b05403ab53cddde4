//! The elementary stream descriptor of `mp4a` sample entries (ISO/IEC 14496-14 6.7.2, ISO/IEC 14496-1 7.2.6).

use crate::{
    codec::{
        Medium, SampleEntry,
        audio::{aac, asc, mpeg_audio, sound::Sound},
        fields::FieldReader,
    },
    error::MediaError,
};

/// Descriptor tags (ISO/IEC 14496-1 table 1).
const ES_DESCRIPTOR: u8 = 3;
const DECODER_CONFIG: u8 = 4;
const DECODER_SPECIFIC_INFO: u8 = 5;

/// `DecoderConfigDescriptor`, with its decoder specific information.
#[derive(Debug)]
pub(in crate::codec) struct DecoderConfig<'a, 'p> {
    /// `objectTypeIndication`.
    pub(in crate::codec) object_type: u8,
    /// `avgBitrate` in bits per second; 0 where unknown.
    pub(in crate::codec) average_bitrate: u32,
    /// Body of the decoder specific information; `None` where there is none.
    pub(in crate::codec) specific: Option<FieldReader<'a, 'p>>,
}

/// Reads an `mp4a` sample entry with the codec of its object type: AAC or MPEG audio.
pub(in crate::codec) fn parse(sound: &Sound<'_, '_>) -> Result<SampleEntry, MediaError> {
    let esds = sound.need(b"esds")?;
    let (_, mut fields) = FieldReader::of_full(&esds)?;
    let config = es_descriptor(&mut fields)?;
    match config.object_type {
        0x40 | 0x66..=0x68 => match &config.specific {
            Some(specific) if asc::LAYERS.contains(&asc::object_type(specific.clone())?) => {
                Ok(mpeg_audio::entry(sound))
            }
            _ => aac::entry(sound, &config, &esds),
        },
        0x69 | 0x6b => Ok(mpeg_audio::entry(sound)),
        other => {
            let code = format!("object type {other:#04x}");
            Err(match object_type_name(other) {
                Some(name) => esds.unsupported(format!("{code} ({name})")).of_codec(Medium::Audio, name),
                None => esds.unsupported(&*code).of_codec(Medium::Audio, code),
            })
        }
    }
}

/// Returns the usual name of an object type (list of the registration authority).
fn object_type_name(object_type: u8) -> Option<&'static str> {
    Some(match object_type {
        0xa5 => "AC-3 in mp4a",
        0xa6 => "E-AC-3 in mp4a",
        0xa9..=0xac | 0xb2 => "DTS",
        0xad => "Opus in mp4a",
        0xdd => "Vorbis",
        0xe1 => "QCELP",
        _ => return None,
    })
}

fn es_descriptor<'a, 'p>(fields: &mut FieldReader<'a, 'p>) -> Result<DecoderConfig<'a, 'p>, MediaError> {
    let mut es = descriptor(fields, ES_DESCRIPTOR, "an ES descriptor")?;
    es.skip(16)?;
    let (depends, has_url, has_clock) = (es.flag()?, es.flag()?, es.flag()?);
    es.skip(5)?;
    if depends {
        es.skip(16)?;
    }
    if has_url {
        let len = es.u8()?;
        es.take(usize::from(len))?;
    }
    if has_clock {
        es.skip(16)?;
    }
    let mut config = descriptor(&mut es, DECODER_CONFIG, "a decoder configuration descriptor")?;
    let object_type = config.u8()?;
    // Stream type, buffer size and maximum bit rate.
    config.skip(8 + 24 + 32)?;
    let average_bitrate = config.bits(32)?;
    let specific = match config.left() {
        0 => None,
        _ => Some(descriptor(&mut config, DECODER_SPECIFIC_INFO, "decoder specific information")?),
    };
    Ok(DecoderConfig { object_type, average_bitrate, specific: specific.filter(|specific| specific.left() > 0) })
}

/// Returns the body of the next descriptor with this tag, and skips others.
fn descriptor<'a, 'p>(
    fields: &mut FieldReader<'a, 'p>,
    wanted: u8,
    name: &str,
) -> Result<FieldReader<'a, 'p>, MediaError> {
    while fields.left() > 0 {
        let tag = fields.u8()?;
        let len = length(fields)?;
        if tag == wanted {
            // Some writers state a length beyond the end; the actual end counts.
            return fields.part(len.min(fields.left() / 8));
        }
        fields.take(len)?;
    }
    Err(fields.invalid("no more descriptors", name))
}

/// Reads `sizeOfInstance` (ISO/IEC 14496-1 8.3.3): seven bits per byte, at most four bytes.
fn length(fields: &mut FieldReader<'_, '_>) -> Result<usize, MediaError> {
    let mut len = 0;
    for _ in 0..4 {
        let more = fields.flag()?;
        len = len << 7 | fields.bits(7)? as usize;
        if !more {
            return Ok(len);
        }
    }
    Err(fields.invalid("a descriptor length of more than four bytes", "at most four"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> FieldReader<'_, 'static> {
        FieldReader::new(bytes, 0, "esds")
    }

    #[test]
    fn lengths_take_one_to_four_bytes() {
        assert_eq!(length(&mut reader(&[0x7f])), Ok(127));
        assert_eq!(length(&mut reader(&[0x80, 0x80, 0x80, 0x25])), Ok(0x25));
        assert_eq!(length(&mut reader(&[0x81, 0x00])), Ok(128));
        assert!(length(&mut reader(&[0x80, 0x80, 0x80, 0x80, 0x01])).is_err());
        assert!(length(&mut reader(&[0x80])).is_err());
    }

    #[test]
    fn every_optional_field_is_passed_over() {
        let mut bytes = vec![3, 32, 0, 1, 0xe0, 0, 7, 2, b'u', b'r', 0, 9];
        // A registration descriptor before the wanted descriptor.
        bytes.extend([0x0d, 1, 0]);
        bytes.extend([4, 17, 0x40, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 5, 2, 0x11, 0x90]);
        let config = es_descriptor(&mut reader(&bytes)).unwrap();
        assert_eq!((config.object_type, config.average_bitrate), (0x40, 256));
        assert_eq!(config.specific.unwrap().rest(), [0x11, 0x90]);
    }

    #[test]
    fn a_missing_descriptor_is_named() {
        let error = es_descriptor(&mut reader(&[3, 3, 0, 1, 0])).unwrap_err();
        assert!(error.to_string().ends_with("found no more descriptors, expected a decoder configuration descriptor"));
    }
}
