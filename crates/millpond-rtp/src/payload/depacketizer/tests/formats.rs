//! Packets in forms that the packetizers don't write, made by hand from the formats' specifications.

use super::*;

/// Returns the units of consecutive payloads, each with or without the marker.
fn units(format: Packetizer, payloads: &[(&[u8], bool)]) -> Result<Vec<(u32, Vec<u8>)>, PayloadError> {
    let mut depacketizer = Depacketizer::new(format);
    let mut units = Vec::new();
    for ((payload, marker), sequence) in payloads.iter().zip(0..) {
        let header = Header { marker: *marker, payload_type: 96, sequence, timestamp: 0, ssrc: 1 };
        depacketizer.push(&header, payload, &mut units)?;
    }
    Ok(units.into_iter().map(|unit| (unit.timestamp, unit.bytes.to_vec())).collect())
}

fn unit(format: Packetizer, payload: &[u8]) -> Vec<u8> {
    let [(0, bytes)] = &units(format, &[(payload, true)]).unwrap()[..] else { panic!("one unit") };
    bytes.clone()
}

/// Returns offset and text of the error of one payload.
fn error(format: Packetizer, payload: &[u8]) -> (usize, String) {
    match units(format, &[(payload, true)]).unwrap_err() {
        PayloadError::Packet { at, found, .. } => (at, found),
        other => panic!("{other}"),
    }
}

const AVC: Packetizer = Packetizer::Avc(4);
const HEVC: Packetizer = Packetizer::Hevc(2);

#[test]
fn h264_units_are_taken_out_of_aggregates() {
    // RFC 6184 5.7.1: sequence and picture parameter sets in one packet, then a slice.
    let all = units(AVC, &[(&[0x78, 0, 2, 0x67, 1, 0, 1, 0x68], false), (&[0x65, 9], true)]).unwrap();
    assert_eq!(all, [(0, vec![0, 0, 0, 2, 0x67, 1, 0, 0, 0, 1, 0x68, 0, 0, 0, 2, 0x65, 9])]);
    assert_eq!(error(AVC, &[0x78, 0, 2, 0x67]), (1, "a NAL unit of 2 bytes, 3 are left".into()));
    assert_eq!(error(AVC, &[0x78, 0, 1, 0x78]), (3, "a NAL unit that begins with 0x78".into()));
}

#[test]
fn aggregates_may_be_filled_up_with_zeros() {
    for zeros in 0..6 {
        let payload = [&[0x78, 0, 2, 0x67, 1, 0, 2, 0x65, 9][..], &[0; 6][..zeros]].concat();
        assert_eq!(unit(AVC, &payload), [0, 0, 0, 2, 0x67, 1, 0, 0, 0, 2, 0x65, 9], "{zeros}");
    }
}

#[test]
fn packets_without_a_payload_are_ignored() {
    let expected = [(0, vec![0, 0, 0, 2, 0x67, 1, 0, 0, 0, 2, 0x65, 9])];
    for payloads in [
        [(&[][..], false), (&[0x67, 1], false), (&[], false), (&[0x65, 9], true)],
        [(&[0x67, 1], false), (&[0x65, 9], false), (&[], false), (&[], true)],
        [(&[0x67, 1], false), (&[0x65, 9], true), (&[], true), (&[], false)],
    ] {
        assert_eq!(units(AVC, &payloads).unwrap(), expected, "{payloads:?}");
    }
}

#[test]
fn h264_is_divided_at_start_codes() {
    let expected = [(0, vec![0, 0, 0, 2, 0x67, 1, 0, 0, 0, 1, 0x68, 0, 0, 0, 2, 0x65, 9])];
    for payload in
        [&[0x67, 1, 0, 0, 0, 1, 0x68, 0, 0, 1, 0x65, 9][..], &[0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 0, 0, 1, 0x65, 9]]
    {
        assert_eq!(units(AVC, &[(payload, true)]).unwrap(), expected);
    }
}

#[test]
fn markers_on_each_slice_end_no_picture() {
    let (first, second): (&[u8], &[u8]) = (&[0x65, 0x88], &[0x65, 0x09]);
    let whole = vec![0, 0, 0, 2, 0x65, 0x88, 0, 0, 0, 2, 0x65, 0x09];
    let mut depacketizer = Depacketizer::new(AVC);
    let mut units = Vec::new();
    for (number, payload) in (0..).zip([first, second, first, second, first]) {
        let timestamp = u32::from(number) / 2;
        let header = Header { marker: true, payload_type: 96, sequence: number, timestamp, ssrc: 1 };
        depacketizer.push(&header, payload, &mut units).unwrap();
    }
    let units: Vec<_> = units.into_iter().map(|unit| (unit.timestamp, unit.bytes.to_vec())).collect();
    // The first picture is given with its first slice, and again when the second one shows the habit.
    assert_eq!(units, [(0, vec![0, 0, 0, 2, 0x65, 0x88]), (0, whole.clone()), (1, whole)]);
}

#[test]
fn h264_of_interleaved_mode_is_refused() {
    for (kind, name) in [(25, "STAP-B"), (26, "MTAP"), (27, "MTAP"), (29, "FU-B")] {
        let (at, found) = error(AVC, &[0x60 | kind, 0, 0, 1, 2]);
        assert!(at == 0 && found.contains(name) && found.contains("interleaved"), "{found}");
    }
}

#[test]
fn h264_fragments_must_fit_together() {
    let (first, middle, last): (&[u8], &[u8], &[u8]) = (&[0x7c, 0x85, 1], &[0x7c, 0x05, 2], &[0x7c, 0x45, 3]);
    let joined = units(AVC, &[(first, false), (middle, false), (last, true)]).unwrap();
    assert_eq!(joined, [(0, vec![0, 0, 0, 4, 0x65, 1, 2, 3])]);
    assert!(units(AVC, &[(first, false), (first, true)]).is_err(), "two first ones");
    assert!(units(AVC, &[(first, false), (&[0x7c, 0x41, 3], true)]).is_err(), "of another type");
    assert!(units(AVC, &[(first, false), (&[0x41, 3], true)]).is_err(), "another unit between");
    // First and last in one, which RFC 6184 5.8 forbids.
    assert_eq!(units(AVC, &[(&[0x7c, 0xc5, 1], true)]), Ok(vec![(0, vec![0, 0, 0, 2, 0x65, 1])]));
    assert!(units(AVC, &[(&[0x7c], true)]).is_err());
    assert_eq!(units(AVC, &[(middle, false), (last, true)]), Ok(vec![]), "joined in the middle");
    assert_eq!(units(AVC, &[(first, false), (middle, true)]), Ok(vec![]), "marked before the end");
}

#[test]
fn lengths_too_small_for_a_unit_are_errors() {
    let large = [&[0x65][..], &[0; 300]].concat();
    assert_eq!(units(Packetizer::Avc(1), &[(&large, true)]), Err(PayloadError::TooLarge { most: 255 }));
}

#[test]
fn hevc_has_two_bytes_of_header() {
    let payload = [48 << 1, 1, 0, 3, 32 << 1, 1, 7, 0, 2, 34 << 1, 1];
    assert_eq!(unit(HEVC, &payload), [0, 3, 32 << 1, 1, 7, 0, 2, 34 << 1, 1]);
    let fragments: [(&[u8], bool); 2] = [(&[49 << 1, 10, 0x80 | 19, 1], false), (&[49 << 1, 10, 0x40 | 19, 2], true)];
    assert_eq!(units(HEVC, &fragments).unwrap(), [(0, vec![0, 4, 19 << 1, 10, 1, 2])]);
    assert_eq!(error(HEVC, &[50 << 1, 1, 0, 0]), (0, "a PACI packet".into()));
    assert_eq!(error(HEVC, &[1]), (0, "1 bytes".into()));
}

#[test]
fn av1_elements_come_in_all_forms() {
    let expected = [0x0a, 1, 7, 0x32, 2, 8, 9];
    // W is 0: each element has a length; one is a temporal delimiter.
    assert_eq!(unit(Packetizer::Av1, &[0x08, 1, 0x10, 2, 0x08, 7, 3, 0x30, 8, 9]), expected);
    // W is 2: the last element has no length.
    assert_eq!(unit(Packetizer::Av1, &[0x28, 2, 0x08, 7, 0x30, 8, 9]), expected);
    // With size fields, the second of which has more bytes than it needs.
    assert_eq!(unit(Packetizer::Av1, &[0x28, 3, 0x0a, 1, 7, 0x32, 0x82, 0, 8, 9]), expected);
    // The second element continues in the next packet.
    let parts: [(&[u8], bool); 2] = [(&[0x68, 2, 0x08, 7, 0x30, 8], false), (&[0x90, 9], true)];
    assert_eq!(units(Packetizer::Av1, &parts).unwrap(), [(0, expected.to_vec())]);
    assert_eq!(units(Packetizer::Av1, &[(&[0x10, 0x10], true)]), Ok(vec![]), "nothing but a temporal delimiter");
}

#[test]
fn av1_elements_that_lie_are_found() {
    for payload in [&[0x00_u8][..], &[0x20, 1, 0x30], &[0x00, 9, 0x30], &[0x00, 0x80], &[0x00, 0]] {
        assert!(units(Packetizer::Av1, &[(payload, true)]).is_err(), "{payload:?}");
    }
    assert!(units(Packetizer::Av1, &[(&[0x50, 0x30, 1], false), (&[0x10, 0x30, 1], true)]).is_err(), "no rest");
    assert!(units(Packetizer::Av1, &[(&[0x10, 0xb0, 1], true)]).is_err(), "the forbidden bit");
    assert!(units(Packetizer::Av1, &[(&[0x10, 0x32, 5, 1], true)]).is_err(), "a size field that is not its size");
}

#[test]
fn vp8_descriptors_are_left_out() {
    // Picture ID of 7 and of 15 bits, TL0PICIDX, TID and KEYIDX (RFC 7741 4.2).
    for descriptor in
        [&[0x10_u8][..], &[0x90, 0x80, 5], &[0x90, 0x80, 0x85, 1], &[0x90, 0xf0, 0x81, 1, 2, 3], &[0x90, 0x20, 1]]
    {
        assert_eq!(unit(Packetizer::Vp8, &[descriptor, b"frame"].concat()), b"frame", "{descriptor:?}");
        assert_eq!(error(Packetizer::Vp8, descriptor).0, descriptor.len());
    }
    // Other partitions begin within the frame.
    let parts: [(&[u8], bool); 3] = [(&[0x10, 1], false), (&[0x11, 2], false), (&[0x01, 3], true)];
    assert_eq!(units(Packetizer::Vp8, &parts).unwrap(), [(0, vec![1, 2, 3])]);
    assert!(units(Packetizer::Vp8, &[(&[0x10, 1], false), (&[0x10, 2], true)]).is_err(), "two frames at one time");
}

#[test]
fn vp9_descriptors_are_left_out() {
    let structure = [0x0a, 0x18, 1, 64, 0, 64, 2, 0x04, 1, 0x00];
    for descriptor in [
        &[0x08_u8][..],
        &[0x88, 5],
        &[0x88, 0x85, 1],
        // Layers in non-flexible mode: TL0PICIDX; flexible mode with two references.
        &[0x28, 0x40, 9],
        &[0x78, 0x40, 3, 4],
        &structure,
    ] {
        let payload = [descriptor, b"frame"].concat();
        assert_eq!(unit(Packetizer::Vp9, &payload), b"frame", "{descriptor:?}");
        assert_eq!(error(Packetizer::Vp9, descriptor).0, descriptor.len());
    }
    assert_eq!(error(Packetizer::Vp9, &[0x28, 0x02, 9, 1]), (1, "spatial layer 1".into()));
    assert!(error(Packetizer::Vp9, &[0x58, 1, 1, 1, 1]).1.contains("fourth"));
}

#[test]
fn aac_packets_have_several_units_each_with_its_time() {
    let payload = [0, 32, 0, 2 << 3, 0, 3 << 3, 1, 2, 3, 4, 5];
    assert_eq!(units(Packetizer::Aac, &[(&payload, true)]), Ok(vec![(0, vec![1, 2]), (1024, vec![3, 4, 5])]));
    assert_eq!(error(Packetizer::Aac, &payload[..10]), (6, "4 bytes for access units of 5".into()));
    assert_eq!(error(Packetizer::Aac, &[0, 16, 0, 1 << 3, 1, 2]).0, 4, "more than the unit");
    assert_eq!(error(Packetizer::Aac, &[0, 32, 0, 1 << 3, 0, 1 << 3 | 1, 1, 2]).0, 4, "interleaved");
    assert_eq!(error(Packetizer::Aac, &[0, 15, 0, 0]).0, 0);
    assert_eq!(error(Packetizer::Aac, &[0, 48, 0, 0]).0, 0);
}

#[test]
fn aac_fragments_are_of_one_unit() {
    let (first, last): (&[u8], &[u8]) = (&[0, 16, 0, 3 << 3, 1, 2], &[0, 16, 0, 3 << 3, 3]);
    assert_eq!(units(Packetizer::Aac, &[(first, false), (last, true)]), Ok(vec![(0, vec![1, 2, 3])]));
    assert!(units(Packetizer::Aac, &[(first, false), (first, true)]).is_err(), "more than the whole");
    assert!(units(Packetizer::Aac, &[(first, false), (&[0, 16, 0, 1 << 3, 1], true)]).is_err(), "another unit");
    assert_eq!(units(Packetizer::Aac, &[(first, true)]), Ok(vec![]), "marked before the end");
}

#[test]
fn mpa_packets_have_several_frames_each_with_its_time() {
    // Layer III, 48 kHz, 32 kbit/s: 96 bytes, 1152 samples.
    let frame = [&[0xff, 0xfb, 0x14, 0][..], &[7; 92]].concat();
    let payload = [&[0; 4][..], &frame, &frame, &frame].concat();
    let all = units(Packetizer::Mpa, &[(&payload, false)]).unwrap();
    assert_eq!(all, [(0, frame.clone()), (2160, frame.clone()), (4320, frame.clone())]);
    // Layers I and II, and the low sampling frequencies of layer III.
    for (head, length) in [([0xff, 0xff, 0x14, 0], 32), ([0xff, 0xfd, 0x14, 0], 96), ([0xff, 0xf3, 0x14, 0], 24)] {
        let frame = [&head[..], &vec![7; length - 4]].concat();
        let payload = [&[0; 4][..], &frame, &frame].concat();
        assert_eq!(units(Packetizer::Mpa, &[(&payload, false)]).unwrap().len(), 2, "{head:?}");
    }
    // A frame in two packets is complete after the second one.
    let (first, second) = ([&[0; 4][..], &frame[..50]].concat(), [&[0, 0, 0, 50][..], &frame[50..]].concat());
    assert_eq!(units(Packetizer::Mpa, &[(&first, false), (&second, false)]), Ok(vec![(0, frame)]));
    assert!(units(Packetizer::Mpa, &[(&first, false), (&[0, 0, 0, 49, 1], false)]).is_err());
    assert_eq!(error(Packetizer::Mpa, &[0, 0, 0]).0, 0);
}

#[test]
fn opus_packets_are_units() {
    assert_eq!(unit(Packetizer::Opus, &[0xfc]), [0xfc]);
    assert_eq!(units(Packetizer::Opus, &[(&[], true)]), Ok(vec![]));
}

#[test]
fn ac3_packets_have_several_frames_each_with_its_time() {
    // 48 kHz, 32 kbit/s: 128 bytes.
    let frame = [&[0x0b, 0x77, 1, 2, 0, 8 << 3][..], &[7; 122]].concat();
    let payload = [&[0, 2][..], &frame, &frame].concat();
    let all = units(Packetizer::Ac3, &[(&payload, true)]).unwrap();
    assert_eq!(all, [(0, frame.clone()), (1536, frame)]);
    assert_eq!(error(Packetizer::Ac3, &payload[..200]).0, 130);
    assert_eq!(error(Packetizer::Ac3, &[0, 1]).0, 1);
    assert!(units(Packetizer::Ac3, &[(&[2, 2, 1], false), (&[3, 3, 2], true)]).is_err(), "of two and of three");
    assert!(units(Packetizer::Ac3, &[(&[2, 2, 1], false), (&[2, 2, 1], true)]).is_err(), "two beginnings");
    assert_eq!(units(Packetizer::Ac3, &[(&[2, 3, 1], false), (&[3, 3, 2], true)]), Ok(vec![]), "one is missing");
}

#[test]
fn eac3_frames_with_their_dependents_are_one_unit() {
    // 48 kHz, 8 bytes; independent and dependent substreams of six blocks, then independent ones of three.
    let frame = |first: u8, blocks: u8| [0x0b, 0x77, first, 3, blocks << 4, 16 << 3, 9, 9];
    let (independent, dependent, half) = (frame(0, 3), frame(0x40, 3), frame(0, 2));
    let payload = [&[0, 5][..], &independent, &dependent, &half, &half, &independent].concat();
    let expected =
        vec![(0, [independent, dependent].concat()), (1536, [half, half].concat()), (3072, independent.to_vec())];
    assert_eq!(units(Packetizer::Eac3, &[(&payload, true)]), Ok(expected));
    assert!(units(Packetizer::Eac3, &[(&[1, 2, 1], false), (&[0, 1, 1], true)]).is_err(), "a frame in a frame");
}

#[test]
fn streams_are_read_as_they_are_described() {
    let described = |lines: &str| {
        let text = format!("v=0\r\nm=video 0 RTP/AVP 96\r\n{lines}\r\n");
        let read = crate::sdp_reader::SessionDescription::read(text.as_bytes(), "rtsp://h/").unwrap();
        Depacketizer::of(&read.streams[0])
    };
    for name in ["H264/90000", "H265/90000", "AV1/90000", "VP8/90000", "VP9/90000", "MPA/90000", "opus/48000/2"] {
        assert!(described(&format!("a=rtpmap:96 {name}")).is_ok(), "{name}");
    }
    let aac =
        "a=rtpmap:96 MPEG4-GENERIC/48000\r\na=fmtp:96 mode=AAC-hbr;SizeLength=13;indexlength=3;indexdeltalength=3";
    let mut depacketizer = described(&format!("{aac};constantDuration=960")).unwrap();
    let (mut units, header) = (Vec::new(), Header::default());
    depacketizer.push(&header, &[0, 32, 0, 8, 0, 8, 1, 2], &mut units).unwrap();
    assert_eq!(units[1].timestamp, 960);
    for (lines, words) in [
        ("a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=2", "packetization-mode is \"2\""),
        ("a=rtpmap:96 H265/90000\r\na=fmtp:96 sprop-max-don-diff=2", "sprop-max-don-diff is \"2\""),
        ("a=rtpmap:96 mpeg4-generic/8000\r\na=fmtp:96 mode=CELP-cbr", "mode is \"CELP-cbr\""),
        ("a=rtpmap:96 vnd.onvif.metadata/90000", "a=rtpmap is \"vnd.onvif.metadata\""),
    ] {
        let error = described(lines).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
