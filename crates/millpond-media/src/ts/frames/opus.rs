//! Opus in transport streams (ETSI TS 103 491 and the draft "Opus in MPEG-TS", `opus_control_header`).

use super::{
    FrameFault, TsConfiguration,
    sound::{Look, SoundCode, SoundFrame},
};
use crate::codec::audio::opus;
use bytes::Bytes;

/// Clock of Opus in samples per second.
const RATE: u32 = 48_000;
/// Longest packet of up to 8 channels that is believed, in bytes.
const LONGEST: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Opus {
    configuration: Option<TsConfiguration>,
}

impl Opus {
    /// Creates the code of a stream with this `channel_config_code`.
    pub(super) fn new(channel_config: u8) -> Self {
        let configuration = match channel_config {
            channels @ 1..=2 => Some(TsConfiguration::Opus { channels, mapping_family: 0 }),
            channels @ 3..=8 => Some(TsConfiguration::Opus { channels, mapping_family: 1 }),
            _ => None,
        };
        Self { configuration }
    }
}

/// Reads a control header: its length, and that of the packet after it. `None` where bytes are missing.
fn header(bytes: &[u8]) -> Option<(usize, usize)> {
    let flags = *bytes.get(1)?;
    let full = bytes.get(2..)?.iter().take_while(|byte| **byte == 0xff).count();
    let last = usize::from(*bytes.get(2 + full)?);
    // Start trim and end trim take two bytes each.
    let trims = 2 * (usize::from(flags >> 4 & 1) + usize::from(flags >> 3 & 1));
    let mut at = 2 + full + 1 + trims;
    if flags & 4 != 0 {
        at += 1 + usize::from(*bytes.get(at)?);
    }
    Some((at, full * 255 + last))
}

/// Returns the Opus packet behind a control header.
pub(super) fn packet(frame: &[u8]) -> Option<&[u8]> {
    frame.get(header(frame)?.0..)
}

impl SoundCode for Opus {
    fn look(&self, bytes: &[u8], _is_end: bool) -> Look {
        if bytes[0] != 0x7f || bytes.get(1).is_some_and(|byte| byte & 0xe0 != 0xe0) {
            return Look::Garbage;
        }
        match header(bytes) {
            Some((_, 0)) => Look::Garbage,
            Some((header, packet)) if packet <= LONGEST => Look::Frame { length: header + packet, fixed: 0 },
            Some(_) => Look::Garbage,
            None if bytes.len() > LONGEST => Look::Garbage,
            None => Look::Short,
        }
    }

    fn open(&mut self, frame: &[u8], out: &mut Vec<SoundFrame>) -> Result<(), FrameFault> {
        if self.configuration.is_none() {
            return Err(FrameFault::Unsupported("the channel configuration of Opus"));
        }
        let packet = packet(frame).ok_or(FrameFault::Garbage)?;
        let samples = opus::samples(packet).ok_or(FrameFault::Garbage)?;
        out.push(SoundFrame { data: Bytes::copy_from_slice(packet), samples, rate: RATE });
        Ok(())
    }

    fn configuration(&self) -> Option<&TsConfiguration> {
        self.configuration.as_ref()
    }
}
