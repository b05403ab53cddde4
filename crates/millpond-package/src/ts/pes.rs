//! Headers of PES packets (ISO/IEC 13818-1, 2.4.3.6 and 2.4.3.7).

use super::Unit;
use millpond_media::{Codec, PrivateForm};

/// Mask of timestamps, which have 33 bits.
pub(super) const CLOCK_MASK: u64 = (1 << 33) - 1;
/// Length of a video header: fixed part, PTS, and DTS or stuffing of the same length.
const VIDEO_HEADER: usize = 19;
/// Length of an audio header: fixed part and PTS.
const AUDIO_HEADER: usize = 14;
/// Length of a teletext header: as of audio, and stuffing (ETSI EN 300 472 4.2).
const TELETEXT_HEADER: usize = 45;
/// Greatest `PES_packet_length` of an audio packet.
const MAX_LENGTH: u64 = 0xffff;
/// Most payload bytes of an audio PES packet.
pub(super) const MOST_AUDIO: u64 = MAX_LENGTH - COUNTED;
/// Most payload bytes of a PES packet of subtitles.
pub(super) const MOST_TEXT: u64 = MAX_LENGTH - TELETEXT_HEADER as u64 + 6;
/// Header bytes that `PES_packet_length` of an audio packet counts.
const COUNTED: u64 = AUDIO_HEADER as u64 - 6;

/// Length of the PES header before a unit of the codec, in bytes.
pub(super) fn header_len(codec: &Codec) -> u64 {
    match codec {
        Codec::Avc(_) | Codec::Hevc(_) => VIDEO_HEADER as u64,
        Codec::PrivateText(config) if config.form == PrivateForm::Teletext => TELETEXT_HEADER as u64,
        _ => AUDIO_HEADER as u64,
    }
}

/// Returns the header of a video PES packet. Its length field is 0, which transport streams allow: the packet extends
/// to the next one.
///
/// A DTS is only allowed where it differs from the PTS (2.7.5). The header has the same length either way.
pub(super) fn video_header(stream_id: u8, unit: &Unit) -> [u8; VIDEO_HEADER] {
    let mut header = [0xff; VIDEO_HEADER];
    header[..6].copy_from_slice(&[0, 0, 1, stream_id, 0, 0]);
    let both = unit.pts != unit.dts;
    header[6..9].copy_from_slice(&[0x84, if both { 0xc0 } else { 0x80 }, 10]);
    header[9..14].copy_from_slice(&timestamp(if both { 3 } else { 2 }, unit.pts));
    if both {
        header[14..].copy_from_slice(&timestamp(1, unit.dts));
    }
    header
}

/// Returns the header of an audio PES packet with `payload` bytes, at most [`MOST_AUDIO`].
pub(super) fn audio_header(stream_id: u8, pts: i64, payload: u64) -> [u8; AUDIO_HEADER] {
    let [high, low] = (payload.saturating_add(COUNTED).min(MAX_LENGTH) as u16).to_be_bytes();
    let mut header = [0; AUDIO_HEADER];
    header[..9].copy_from_slice(&[0, 0, 1, stream_id, high, low, 0x84, 0x80, 5]);
    header[9..].copy_from_slice(&timestamp(2, pts));
    header
}

/// Returns the header of a PES packet with `payload` bytes of subtitles, at most [`MOST_TEXT`]. Headers of teletext have 45 bytes, those
/// of DVB subtitles are as of audio.
pub(super) fn text_header(form: PrivateForm, pts: i64, payload: u64) -> Vec<u8> {
    let mut header = audio_header(0xbd, pts, payload).to_vec();
    if form == PrivateForm::Teletext {
        let stuffing = TELETEXT_HEADER - AUDIO_HEADER;
        let length = payload.saturating_add(TELETEXT_HEADER as u64 - 6).min(MAX_LENGTH) as u16;
        header[4..6].copy_from_slice(&length.to_be_bytes());
        header[8] += stuffing as u8;
        header.resize(TELETEXT_HEADER, 0xff);
    }
    header
}

/// Returns a timestamp: 4 bits of prefix, then 3, 15 and 15 bits with a marker bit after each.
fn timestamp(prefix: u8, time: i64) -> [u8; 5] {
    let t = time as u64 & CLOCK_MASK;
    [prefix << 4 | (t >> 29) as u8 & 0x0e | 1, (t >> 22) as u8, (t >> 14) as u8 | 1, (t >> 7) as u8, (t << 1) as u8 | 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_media::units::ByteRange;

    fn unit(dts: i64, pts: i64) -> Unit {
        Unit { range: ByteRange::at(0, 1), dts, pts, sync: true, sets: Some(0) }
    }

    /// Reads a timestamp as a demultiplexer does.
    fn read(b: &[u8]) -> u64 {
        assert_eq!((b[0] & 1, b[2] & 1, b[4] & 1), (1, 1, 1));
        u64::from(b[0] >> 1 & 7) << 30
            | u64::from(b[1]) << 22
            | u64::from(b[2] >> 1) << 15
            | u64::from(b[3]) << 7
            | u64::from(b[4] >> 1)
    }

    #[test]
    fn timestamps_wrap_at_33_bits() {
        for time in [0, 1, 900_000, 0x1_5555_5555, (1 << 33) - 1, 1 << 33, -1, i64::MAX, i64::MIN] {
            assert_eq!(read(&timestamp(2, time)), time as u64 & CLOCK_MASK);
        }
    }

    #[test]
    fn a_dts_is_only_written_where_it_differs() {
        let header = video_header(0xe0, &unit(900_000, 903_600));
        assert_eq!(header[6..9], [0x84, 0xc0, 10]);
        assert_eq!((header[9] >> 4, header[14] >> 4), (3, 1));
        assert_eq!((read(&header[9..]), read(&header[14..])), (903_600, 900_000));
        let header = video_header(0xe0, &unit(900_000, 900_000));
        assert_eq!((header[7], header[9] >> 4), (0x80, 2));
        assert_eq!(header[14..], [0xff; 5]);
    }

    #[test]
    fn teletext_headers_have_45_bytes() {
        let header = text_header(PrivateForm::Teletext, 900_000, 139);
        // 45 bytes and 3 data units of 46 bytes behind a byte fill one transport packet.
        assert_eq!((header.len(), header.len() + 139, header[8]), (45, 184, 0x24));
        assert_eq!(u16::from_be_bytes([header[4], header[5]]), 178);
        assert_eq!((read(&header[9..]), &header[14..]), (900_000, &[0xff; 31][..]));
        let header = text_header(PrivateForm::DvbSubtitles, 900_000, 100);
        assert_eq!((header.len(), header[3], header[5], header[8]), (14, 0xbd, 108, 5));
    }

    #[test]
    fn an_audio_header_states_its_length() {
        let header = audio_header(0xc0, 900_000, 1000);
        assert_eq!(u16::from_be_bytes([header[4], header[5]]), 1008);
        let header = audio_header(0xc0, 900_000, MOST_AUDIO);
        assert_eq!(header[4..6], [0xff, 0xff]);
    }
}
