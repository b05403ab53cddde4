//! AAC in LATM (MP4A-LATM, RFC 6416 6).

use super::{
    PayloadError,
    building::{Building, Content, Join, Progress, Start},
};
use crate::sdp_reader::MediaDescription;
use bytes::Bytes;
use millpond_media::latm::{LatmReader, StreamMux};

/// Joins fragments to elements, which the marker ends, and takes their frames out.
#[derive(Debug)]
pub(super) struct LatmJoin {
    reader: LatmReader,
    /// Timestamp ticks per second.
    clock_rate: u32,
    /// `AudioSpecificConfig` of the last element.
    configuration: Option<Bytes>,
}

impl LatmJoin {
    /// Makes one for a described stream.
    pub(super) fn of(stream: &MediaDescription) -> Result<Self, PayloadError> {
        let reader = match latm_configuration(stream)? {
            Some(mux) => LatmReader::configured(mux),
            None => LatmReader::in_band(),
        };
        let mut join = Self { reader, clock_rate: stream.clock_rate, configuration: None };
        join.take_configuration();
        Ok(join)
    }

    fn take_configuration(&mut self) {
        let Some(mux) = self.reader.mux() else { return };
        if self.configuration.as_deref() != Some(&mux.audio_specific_config[..]) {
            self.configuration = Some(Bytes::copy_from_slice(&mux.audio_specific_config));
        }
    }

    fn frames(&mut self, unit: &mut Building) -> Result<(), PayloadError> {
        let element = std::mem::take(&mut unit.bytes);
        let unread = |error| PayloadError::packet(0, error, "an audio multiplex element of AAC");
        let frames = self.reader.element(&element).map_err(unread)?;
        self.take_configuration();
        let Some(mux) = self.reader.mux() else { return Ok(()) };
        let ticks = u64::from(mux.samples) * u64::from(self.clock_rate);
        for (frame, place) in frames.iter().zip(0_u64..) {
            unit.extend(frame)?;
            unit.close((ticks * place / u64::from(mux.sample_rate.max(1))) as u32);
        }
        Ok(())
    }
}

/// Returns the configuration that the description of an MP4A-LATM stream states for all elements. `None` if each element has its
/// own, which is the default (`cpresent`, RFC 6416 7.3).
///
/// # Errors
/// It is missing, or not supported.
pub fn latm_configuration(stream: &MediaDescription) -> Result<Option<StreamMux>, PayloadError> {
    if stream.parameters.get("cpresent").is_none_or(|present| present.trim() != "0") {
        return Ok(None);
    }
    let mux = StreamMux::new(&stream.configuration().unwrap_or_default());
    let found = stream.parameters.get("config").cloned().unwrap_or_default();
    mux.map(Some).map_err(|_| PayloadError::Mode { name: "config", found, expected: "AAC in one layer of LATM" })
}

impl Join for LatmJoin {
    fn start(&self, _payload: &[u8]) -> Result<Start, PayloadError> {
        Ok(Start::Unknown)
    }

    fn join(&mut self, payload: &[u8], unit: &mut Building) -> Result<Progress, PayloadError> {
        unit.extend(payload)?;
        Ok(Progress::Open)
    }

    fn finish(&mut self, unit: &mut Building) -> bool {
        self.frames(unit).is_ok()
    }

    fn content(&self, _unit: &Bytes) -> Content {
        Content { parameter_sets: self.configuration.iter().cloned().collect(), ..Content::picture(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        packet::Header,
        payload::{Depacketizer, Unit},
        sdp_reader::SessionDescription,
    };

    fn stream(parameters: &str) -> MediaDescription {
        let text = format!("v=0\nm=audio 0 RTP/AVP 97\na=rtpmap:97 MP4A-LATM/48000/2\na=fmtp:97 {parameters}\n");
        SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap().streams.remove(0)
    }

    /// Returns the units of payloads, each with its sequence number and marker.
    fn units(stream: &MediaDescription, packets: &[(u16, bool, &[u8])]) -> Vec<Unit> {
        let (mut depacketizer, mut units) = (Depacketizer::of(stream).unwrap(), Vec::new());
        for &(sequence, marker, payload) in packets {
            let header =
                Header { marker, payload_type: 97, sequence, timestamp: u32::from(sequence).div_ceil(2), ssrc: 1 };
            depacketizer.push(&header, payload, &mut units).unwrap();
        }
        units
    }

    #[test]
    fn elements_without_configurations() {
        let stream = stream("cpresent=0; config=400023203fc0");
        let whole = units(&stream, &[(0, true, &[2, 7, 8]), (1, false, &[3, 1]), (2, true, &[2, 3])]);
        let bytes: Vec<_> = whole.iter().map(|unit| (unit.timestamp, unit.bytes.to_vec())).collect();
        assert_eq!(bytes, [(0, vec![7, 8]), (1, vec![1, 2, 3])]);
        assert_eq!(whole[0].parameter_sets, [Bytes::from_static(&[0x11, 0x90])]);
        let broken = units(&stream, &[(0, true, &[9, 7, 8]), (1, false, &[3, 1]), (3, true, &[1, 5])]);
        assert_eq!(broken.len(), 1, "what is cut or lacks a fragment is left out: {broken:?}");
        assert!(broken[0].bytes == [5_u8][..] && broken[0].lost_before);
    }

    #[test]
    fn a_configuration_of_gstreamer_ends_early() {
        let stream = stream("cpresent=0; config=40002320");
        let units = units(&stream, &[(0, true, &[2, 7, 8])]);
        assert!(units[0].bytes == [7_u8, 8][..] && units[0].parameter_sets == [Bytes::from_static(&[0x11, 0x90])]);
    }

    #[test]
    fn several_frames_of_an_element_have_times() {
        // Three frames an element.
        let stream = stream("cpresent=0; config=420023203fc0");
        let units = units(&stream, &[(0, true, &[1, 5, 1, 6, 2, 7, 8])]);
        let found: Vec<_> = units.iter().map(|unit| (unit.timestamp, unit.bytes.to_vec())).collect();
        assert_eq!(found, [(0, vec![5]), (1024, vec![6]), (2048, vec![7, 8])]);
    }

    #[test]
    fn configurations_in_elements_and_bad_ones() {
        let stream = stream("profile-level-id=1");
        assert_eq!(latm_configuration(&stream), Ok(None));
        assert!(units(&stream, &[(0, true, &[0x81, 0x83, 0x80])]).is_empty(), "before the first one");
        for parameters in ["cpresent=0", "cpresent=0; config=40", "cpresent=0; config=400123203fc0"] {
            let stream = self::stream(parameters);
            let PayloadError::Mode { name, .. } = Depacketizer::of(&stream).unwrap_err() else { panic!() };
            assert_eq!(name, "config");
        }
    }
}
