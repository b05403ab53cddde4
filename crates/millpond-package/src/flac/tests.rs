mod decoder;

use super::{FlacEncoder, FlacStream, Numbering, values};
use decoder::{Frame, decode};
use millpond_media::codec::{ByteOrder, PcmCoding, PcmConfig};

fn stream(channels: u8, bits: u8) -> FlacStream {
    FlacStream { numbering: Numbering::Frames, block: 4096, sample_rate: 48_000, channels, bits }
}

/// Numbers that look random, the same in each run.
fn noise(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// Encodes interleaved values in frames, and checks that they are decoded again. Returns the encoded frames.
fn round_trip(stream: FlacStream, values: &[i32]) -> Vec<Vec<u8>> {
    let mut encoder = FlacEncoder::new(stream);
    let length = usize::from(stream.block) * usize::from(stream.channels);
    let mut frames = Vec::new();
    for (number, of_frame) in (0..).zip(values.chunks(length)) {
        let mut bytes = Vec::new();
        encoder.encode(number, of_frame, &mut bytes);
        let most = stream.most_bytes((of_frame.len() / usize::from(stream.channels)) as u64);
        assert!(bytes.len() as u64 <= most, "{} bytes, at most {most}: {stream:?}", bytes.len());
        let Frame { number: told, values, used, .. } = decode(&bytes, &stream);
        assert_eq!((number, used), (told, bytes.len()));
        assert!(values == of_frame, "frame {number}: {stream:?}");
        frames.push(bytes);
    }
    frames
}

fn bytes(frames: &[Vec<u8>]) -> usize {
    frames.iter().map(Vec::len).sum()
}

/// Values of a tone in all channels, of which each is a bit louder than the one before.
fn tone(frames: usize, channels: u8, bits: u8) -> Vec<i32> {
    let most = f64::from((1_i32 << (bits - 1)) - 1);
    let value = |frame: usize, channel: u8| {
        let phase = frame as f64 * 440.0 * std::f64::consts::TAU / 48_000.0;
        (phase.sin() * most * 0.9 * f64::from(channel + 1) / f64::from(channels)) as i32
    };
    (0..frames).flat_map(|frame| (0..channels).map(move |channel| value(frame, channel))).collect()
}

#[test]
fn every_number_of_channels_and_bits_comes_back() {
    for channels in 1..=8_u8 {
        for bits in [8, 12, 16, 20, 24] {
            let stream = stream(channels, bits);
            let mut random = noise(u64::from(channels) * 100 + u64::from(bits));
            let shift = 64 - u32::from(bits);
            let mut value = || ((random() << 33 ^ random()) as i64) << shift >> shift;
            let values: Vec<i32> = (0..5000 * usize::from(channels)).map(|_| value() as i32).collect();
            let encoded = bytes(&round_trip(stream, &values));
            let plain = values.len() * usize::from(bits) / 8;
            assert!(encoded < plain + plain / 100, "noise grows by a header: {encoded}, {plain}");
            let values = tone(10_000, channels, bits);
            let encoded = bytes(&round_trip(stream, &values));
            let plain = values.len() * usize::from(bits) / 8;
            assert!(encoded * 10 < plain * 8, "{channels} channels, {bits} bits: {encoded}, {plain}");
        }
    }
}

#[test]
fn extremes_come_back() {
    for bits in [8_u8, 16, 24] {
        let (least, most) = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
        for pattern in [
            &[least, most][..],
            &[least, least, most, most],
            &[most, least, least, most, 0],
            &[least],
            &[most],
            &[0],
            &[0, 0, 0, 0, 0, 0, 0, least],
            &[1, 0, 0, 0, 0, most, least],
        ] {
            for channels in [1, 2, 3] {
                for length in [1, 2, 3, 4, 5, 15, 16, 17, 255, 256, 257, 4095, 4096, 4097, 9000] {
                    let values: Vec<i32> = pattern.iter().copied().cycle().take(length * channels).collect();
                    round_trip(stream(channels as u8, bits), &values);
                }
            }
        }
    }
}

#[test]
fn silence_and_steady_values_take_a_few_bytes() {
    for value in [0, -1, 77, i32::from(i16::MIN), i32::from(i16::MAX)] {
        let frames = round_trip(stream(2, 16), &[value; 8192]);
        assert!(frames.iter().all(|frame| frame.len() <= 16), "{} bytes", frames[0].len());
    }
}

#[test]
fn zero_bits_below_are_not_written() {
    let fine = round_trip(stream(1, 16), &tone(4096, 1, 12));
    let coarse: Vec<i32> = tone(4096, 1, 12).iter().map(|value| value << 4).collect();
    let coarse = round_trip(stream(1, 16), &coarse);
    assert!(bytes(&coarse) <= bytes(&fine) + 2, "{} and {}", bytes(&coarse), bytes(&fine));
}

#[test]
fn channels_that_are_alike_are_written_once() {
    let one = tone(4096, 1, 16);
    let two: Vec<i32> = one.iter().flat_map(|value| [*value, *value]).collect();
    let (one, two) = (bytes(&round_trip(stream(1, 16), &one)), bytes(&round_trip(stream(2, 16), &two)));
    assert!(two <= one + 8, "{two} bytes, one channel has {one}");
    let opposite: Vec<i32> = tone(4096, 1, 16).iter().flat_map(|value| [*value, -*value]).collect();
    assert!(bytes(&round_trip(stream(2, 16), &opposite)) < one * 5 / 4);
}

#[test]
fn each_form_of_two_channels_is_used() {
    let stream = stream(2, 16);
    let form = |pairs: Vec<[i32; 2]>| decode(&round_trip(stream, pairs.as_flattened())[0], &stream).channels;
    let mut random = noise(5);
    let mut value = |bits: u32| (random() & ((1 << bits) - 1)) as i32 - (1 << (bits - 1));
    let apart = (0..4096).map(|_| [value(14), value(4)]).collect();
    // A smooth channel, and one that differs from it by noise; then two of which only the middle is smooth.
    let smooth = tone(4096, 1, 15);
    let rough: Vec<[i32; 2]> = smooth.iter().map(|smooth| [*smooth, smooth + value(8)]).collect();
    let turned = rough.iter().map(|[smooth, rough]| [*rough, *smooth]).collect();
    let both = smooth.iter().map(|smooth| (smooth, value(8))).map(|(smooth, noise)| [smooth + noise, smooth - noise]);
    let around = both.collect();
    assert_eq!([form(apart), form(rough), form(turned), form(around)], [1, 8, 9, 10]);
}

#[test]
fn a_frame_is_the_same_wherever_it_is_made() {
    let stream = stream(2, 16);
    let values = tone(4096 * 3, 2, 16);
    let all = round_trip(stream, &values);
    let mut alone = Vec::new();
    FlacEncoder::new(stream).encode(2, &values[4096 * 4..], &mut alone);
    assert_eq!(alone, all[2]);
}

#[test]
fn headers_state_numbers_lengths_and_rates() {
    for (rate, code) in
        [(8000, 4), (44_100, 9), (48_000, 10), (192_000, 3), (12_000, 12), (11_025, 13), (352_800, 14), (999_999, 0)]
    {
        let stream = FlacStream { numbering: Numbering::Frames, block: 1024, sample_rate: rate, channels: 1, bits: 16 };
        let mut encoder = FlacEncoder::new(stream);
        for number in
            [0, 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x1_0000, 0x1f_ffff, 0x20_0000, 0x3ff_ffff, 0x400_0000, 0x7fff_ffff]
        {
            for length in [1, 256, 257, 1000, 1024] {
                let mut bytes = Vec::new();
                encoder.encode(number, &vec![3; length], &mut bytes);
                let frame = decode(&bytes, &stream);
                assert_eq!((frame.number, frame.rate), (number, code), "{rate}");
                assert_eq!(frame.values, vec![3; length]);
            }
        }
    }
}

#[test]
fn frames_that_vary_state_the_number_of_a_sample() {
    let stream = FlacStream { numbering: Numbering::Samples, ..stream(2, 16) };
    let values = tone(10_000, 2, 16);
    let mut encoder = FlacEncoder::new(stream);
    let mut at = 0;
    for length in stream.lengths(10_000) {
        let (number, length) = ((1 << 36) - 5000 + at as u64, length as usize);
        let (mut bytes, of_frame) = (Vec::new(), &values[2 * at..2 * (at + length)]);
        encoder.encode(number, of_frame, &mut bytes);
        let frame = decode(&bytes, &stream);
        assert_eq!((frame.number, frame.used), (number & ((1 << 36) - 1), bytes.len()));
        assert!(frame.values == of_frame, "{length} samples");
        at += length;
    }
    assert_eq!((at, stream.info()[..4].to_vec()), (10_000, vec![0, 16, 16, 0]));
}

#[test]
fn only_the_last_frame_is_short() {
    let (even, varying) = (stream(2, 16), FlacStream { numbering: Numbering::Samples, ..stream(2, 16) });
    for (samples, as_even, as_varying) in [
        (0, vec![], vec![]),
        (3, vec![3], vec![3]),
        (4096, vec![4096], vec![4096]),
        (8192 + 16, vec![4096, 4096, 16], vec![4096, 4096, 16]),
        (8192 + 3, vec![4096, 4096, 3], vec![4096, 4083, 16]),
    ] {
        assert_eq!((even.lengths(samples), varying.lengths(samples)), (as_even, as_varying), "{samples}");
    }
}

#[test]
fn the_frame_of_the_specification_is_read_and_begins_alike() {
    // RFC 9639 appendix D.1: one sample of two channels.
    let theirs = [0xff, 0xf8, 0x69, 0x18, 0, 0, 0xbf, 3, 0x58, 0xfd, 3, 0x12, 0x8b, 0xaa, 0x9a];
    let stream = FlacStream { numbering: Numbering::Frames, block: 4096, sample_rate: 44_100, channels: 2, bits: 16 };
    assert_eq!(decode(&theirs, &stream).values, [25_588, 10_416]);
    let mut ours = Vec::new();
    FlacEncoder::new(stream).encode(0, &[25_588, 10_416], &mut ours);
    assert_eq!(ours[..7], theirs[..7]);
    assert_eq!(decode(&ours, &stream).values, [25_588, 10_416]);
}

#[test]
fn streams_are_those_that_browsers_decode() {
    let of = |coding, channels, sample_rate| {
        FlacStream::of(&PcmConfig { fourcc: *b"sowt", coding, channels, sample_rate })
            .map(|stream| (stream.block, stream.bits))
    };
    assert_eq!(of(PcmCoding::Signed16(ByteOrder::Little), 2, 48_000), Some((4096, 16)));
    assert_eq!(of(PcmCoding::Signed24(ByteOrder::Big), 8, 192_000), Some((4096, 24)));
    for coding in [PcmCoding::Signed32, PcmCoding::Float32, PcmCoding::Float64] {
        assert_eq!(of(coding(ByteOrder::Little), 2, 48_000), Some((4096, 24)));
    }
    assert_eq!(of(PcmCoding::Unsigned8, 1, 22_050), Some((2048, 8)));
    assert_eq!(of(PcmCoding::MuLaw, 1, 8000), Some((512, 16)));
    assert_eq!(of(PcmCoding::ALaw, 1, 1), Some((256, 16)));
    for (coding, channels, rate) in [
        (PcmCoding::Signed8, 9, 48_000),
        (PcmCoding::Signed8, 0, 48_000),
        (PcmCoding::Signed8, 1, 0),
        (PcmCoding::Signed8, 1, 1 << 20),
    ] {
        assert_eq!(of(coding, channels, rate), None, "{coding:?}");
    }
    let info =
        FlacStream { numbering: Numbering::Frames, block: 4096, sample_rate: 44_100, channels: 2, bits: 16 }.info();
    // 44,100 is 0x0ac44: 20 bits, then 3 bits of channels less one, and 5 bits of depth less one.
    assert_eq!(info[..4], [0x10, 0, 0x10, 0]);
    assert_eq!(info[10..14], [0x0a, 0xc4, 0x42, 0xf0]);
    assert!(info[4..10].iter().chain(&info[14..]).all(|byte| *byte == 0));
}

#[test]
fn values_of_more_than_24_bits_are_rounded() {
    let read = |coding, bytes: Vec<u8>| {
        let mut out = Vec::new();
        values(coding, &bytes, &mut out);
        out
    };
    let integers = [0, 127, 128, -128, -129, i32::MAX, i32::MIN, 0x0102_0304];
    let expected = [0, 0, 1, 0, -1, 0x7f_ffff, -0x80_0000, 0x01_0203];
    let (big, little) = (integers.map(i32::to_be_bytes).concat(), integers.map(i32::to_le_bytes).concat());
    assert_eq!(read(PcmCoding::Signed32(ByteOrder::Big), big), expected);
    assert_eq!(read(PcmCoding::Signed32(ByteOrder::Little), little), expected);
    let floats = [0.0, 1.0, -1.0, 0.5, 7.0, -7.0, f64::NAN, f64::NEG_INFINITY, 1.0 / 16_777_216.0, 1e-300];
    let expected = [0, 0x7f_ffff, -0x80_0000, 0x40_0000, 0x7f_ffff, -0x80_0000, 0, -0x80_0000, 1, 0];
    let (big, little) = (floats.map(f64::to_be_bytes).concat(), floats.map(f64::to_le_bytes).concat());
    assert_eq!(read(PcmCoding::Float64(ByteOrder::Big), big), expected);
    assert_eq!(read(PcmCoding::Float64(ByteOrder::Little), little), expected);
    let floats = floats.map(|value| value as f32);
    let (big, little) = (floats.map(f32::to_be_bytes).concat(), floats.map(f32::to_le_bytes).concat());
    assert_eq!(read(PcmCoding::Float32(ByteOrder::Big), big), expected);
    assert_eq!(read(PcmCoding::Float32(ByteOrder::Little), little), expected);
}

#[test]
fn values_are_those_of_the_coding() {
    let read = |coding, bytes: &[u8]| {
        let mut out = Vec::new();
        values(coding, bytes, &mut out);
        out
    };
    assert_eq!(read(PcmCoding::Unsigned8, &[0, 128, 255]), [-128, 0, 127]);
    assert_eq!(read(PcmCoding::Signed8, &[0, 0x80, 0x7f]), [0, -128, 127]);
    assert_eq!(read(PcmCoding::Signed16(ByteOrder::Big), &[0x80, 0, 1, 2, 9]), [-32_768, 0x0102]);
    assert_eq!(read(PcmCoding::Signed16(ByteOrder::Little), &[0, 0x80, 2, 1]), [-32_768, 0x0102]);
    assert_eq!(read(PcmCoding::Signed24(ByteOrder::Big), &[0xff, 0xff, 0xfe, 1, 2, 3]), [-2, 0x01_0203]);
    assert_eq!(read(PcmCoding::Signed24(ByteOrder::Little), &[0xfe, 0xff, 0xff, 3, 2, 1]), [-2, 0x01_0203]);
    // ITU-T G.711 tables 1a and 2a: the first, middle and last code of either sign.
    assert_eq!(read(PcmCoding::MuLaw, &[0x00, 0x7f, 0x80, 0xff, 0x8f]), [-32_124, 0, 32_124, 0, 16_764]);
    assert_eq!(read(PcmCoding::ALaw, &[0x55, 0xd5, 0x2a, 0xaa, 0xc5]), [-8, 8, -32_256, 32_256, 264]);
    for byte in 0..=255_u8 {
        // The sign bit alone changes the sign, and codes differ.
        assert_eq!(read(PcmCoding::MuLaw, &[byte])[0], -read(PcmCoding::MuLaw, &[byte ^ 0x80])[0]);
        assert_eq!(read(PcmCoding::ALaw, &[byte])[0], -read(PcmCoding::ALaw, &[byte ^ 0x80])[0]);
    }
}
