//! Sound is the same after it, at the same time.

use crate::{OpusPacket, OpusTranscoder};
use millpond_media::{
    codec::{ByteOrder, PcmCoding, make},
    movie::Track,
    units::Timescale,
};
use opus_rs::OpusDecoder;
use std::f64::consts::TAU;

fn pcm(coding: PcmCoding, channels: u16, rate: u32) -> Track {
    let rate = Timescale::new(rate).unwrap();
    Track::live(1, make::pcm(coding, channels, rate).unwrap(), rate, "und")
}

/// The height of two tones at a time in seconds: their sum repeats after a second alone.
fn tones(at: f64) -> f64 {
    (0.3 * (TAU * 441.0 * at).sin()) + 0.2 * (TAU * 1000.0 * at).cos()
}

/// Units of 20 ms of the tones in 16 bits, from a time on.
fn units(rate: u32, from: u32, count: u32) -> impl Iterator<Item = (i64, Vec<u8>)> {
    let length = rate / 50;
    (0..count).map(move |number| {
        let first = from + number * length;
        let value = |sample: u32| (tones(f64::from(sample) / f64::from(rate)) * 32767.0) as i16;
        (i64::from(first), (first..first + length).flat_map(|sample| value(sample).to_be_bytes()).collect())
    })
}

fn transcode(transcoder: &mut OpusTranscoder, units: impl Iterator<Item = (i64, Vec<u8>)>) -> Vec<OpusPacket> {
    let mut out = Vec::new();
    units.for_each(|(pts, unit)| transcoder.push(pts, &unit, &mut out));
    out
}

/// Checks that packets decode to the tones at their times, after a moment to begin.
fn assert_tones(packets: &[OpusPacket]) {
    let mut decoder = OpusDecoder::new(48_000, 1).unwrap();
    let (mut noise, mut signal) = (0.0, 0.0);
    for (number, packet) in packets.iter().enumerate() {
        let mut samples = [0.0; 960];
        assert_eq!(decoder.decode(&packet.data, 960, &mut samples), Ok(960));
        for (place, sample) in samples.iter().enumerate().filter(|_| number >= 3) {
            let expected = tones((packet.pts + place as i64) as f64 / 48_000.0);
            noise += (f64::from(*sample) - expected).powi(2);
            signal += expected.powi(2);
        }
    }
    assert!(noise * 200.0 < signal, "{:.1} dB", 10.0 * (signal / noise).log10());
}

#[test]
fn pcm_of_all_usual_rates_is_the_same_sound_at_the_same_time() {
    for rate in [8000, 16_000, 22_050, 32_000, 44_100, 48_000, 96_000] {
        let (mut transcoder, delivered) =
            OpusTranscoder::of(&pcm(PcmCoding::Signed16(ByteOrder::Big), 1, rate)).unwrap();
        assert_eq!((delivered.codec.parameter(), delivered.timescale.get()), ("opus".to_owned(), 48_000));
        let packets = transcode(&mut transcoder, units(rate, 10 * rate, 50));
        assert!(packets.len() >= 48, "{rate}: {}", packets.len());
        assert!(packets.windows(2).all(|two| two[1].pts == two[0].pts + 960));
        assert_eq!(packets[0].pts, 480_000 - 120);
        let bytes: usize = packets.iter().map(|packet| packet.data.len()).sum();
        assert!(bytes * 8 < 80_000, "{bytes}");
        assert_tones(&packets);
    }
}

#[test]
fn after_a_loss_packets_have_the_times_of_their_sound() {
    let (mut transcoder, _) = OpusTranscoder::of(&pcm(PcmCoding::Signed16(ByteOrder::Big), 1, 48_000)).unwrap();
    let lost = units(48_000, 480_000, 100).enumerate().filter(|(number, _)| !(20..25).contains(number));
    let packets = transcode(&mut transcoder, lost.map(|(_, unit)| unit));
    let steps: Vec<_> = packets.windows(2).map(|two| two[1].pts - two[0].pts).filter(|step| *step != 960).collect();
    assert_eq!(steps, [960 * 6]);
    assert_tones(&packets[21..]);
    // Times that go back don't.
    let back = transcode(&mut transcoder, units(48_000, 480_000, 10));
    assert!(back[0].pts >= packets[packets.len() - 1].pts + 960);
}

#[test]
fn g711_and_two_channels_are_taken() {
    let (mut transcoder, _) = OpusTranscoder::of(&pcm(PcmCoding::MuLaw, 1, 8000)).unwrap();
    // 0xff and 0x7f are silence of both signs.
    let silent = transcode(&mut transcoder, (0..10).map(|number| (number * 160, vec![0xff; 160])));
    assert!(silent.len() == 9 && silent.iter().all(|packet| packet.data.len() < 40), "{silent:?}");
    let (_, stereo) = OpusTranscoder::of(&pcm(PcmCoding::Signed16(ByteOrder::Big), 2, 44_100)).unwrap();
    assert!(matches!(stereo.codec, millpond_media::codec::Codec::Opus(config) if config.channels == 2));
}

#[test]
fn what_can_not_be_transcoded_is_refused() {
    assert!(!OpusTranscoder::takes(&pcm(PcmCoding::Signed16(ByteOrder::Big), 6, 48_000)));
    assert!(!OpusTranscoder::takes(&pcm(PcmCoding::Signed16(ByteOrder::Big), 1, 44_099)));
    let opus = Track::live(1, make::opus(2).unwrap(), Timescale::new(48_000).unwrap(), "und");
    assert!(!OpusTranscoder::takes(&opus));
}

#[test]
fn bytes_that_are_no_sound_are_silence() {
    let config = [0x12, 0x10];
    let rate = Timescale::new(44_100).unwrap();
    let aac = Track::live(1, make::aac(&config).unwrap(), rate, "und");
    let (mut transcoder, _) = OpusTranscoder::of(&aac).unwrap();
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let units = (0..200).map(|number| (number * 1024, (0..number % 97 * 8).map(|_| noise()).collect()));
    let packets = transcode(&mut transcoder, units);
    assert!(packets.len() > 200, "{}", packets.len());
}

#[test]
fn a_unit_of_another_form_silences_no_later_one() {
    // Silent frames of one channel and of two, as hls.js has them.
    const ONE: [u8; 6] = [0x00, 0xc8, 0x00, 0x80, 0x23, 0x80];
    const TWO: [u8; 9] = [0x21, 0x00, 0x49, 0x90, 0x02, 0x19, 0x00, 0x23, 0x80];
    let rate = Timescale::new(44_100).unwrap();
    let stereo = Track::live(1, make::aac(&[0x12, 0x10]).unwrap(), rate, "und");
    let (mut transcoder, _) = OpusTranscoder::of(&stereo).unwrap();
    let mut out = Vec::new();
    transcoder.push(0, &ONE, &mut out);
    (1..20).for_each(|number| transcoder.push(number * 1024, &TWO, &mut out));
    assert!(transcoder.damaged() <= 1, "{} units", transcoder.damaged());
    assert!(out.len() > 15, "{}", out.len());
}
