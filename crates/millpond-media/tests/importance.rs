//! Streams of real encoders without their least needed pictures: all others are decoded as before.

#[path = "support/samples.rs"]
#[expect(dead_code, reason = "other tests need transport streams")]
mod samples;

use millpond_media::{Codec, Importance, NalSyntax, Sample, index_bytes};
use samples::clip;
use std::{fs, path::Path, process::Command};

/// A picture as it is stored, with its importance and whether decoding can begin with it.
type Picture = (Vec<u8>, Importance, bool);

fn pictures(file: &[u8]) -> (Codec, Vec<Picture>) {
    let movie = index_bytes(file).unwrap();
    let track = &movie.tracks[0];
    let of = |sample: Sample| {
        let data = file[sample.range.start as usize..sample.range.end as usize].to_vec();
        let importance = Importance::of(&track.codec, &data);
        (data, importance, sample.sync)
    };
    (track.codec.clone(), track.samples.iter().map(of).collect())
}

/// Writes pictures so that ffmpeg reads them: as byte stream, or in IVF.
fn write(codec: &Codec, pictures: &[&Picture], path: &Path) {
    let mut bytes = Vec::new();
    if let Some((_, size)) = NalSyntax::of(codec) {
        for (data, ..) in pictures {
            let mut rest = &data[..];
            while !rest.is_empty() {
                let (length, after) = rest.split_at(usize::from(size));
                let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
                bytes.extend([0, 0, 0, 1]);
                bytes.extend(&after[..length]);
                rest = &after[length..];
            }
        }
    } else {
        let fourcc = if matches!(codec, Codec::Av1(_)) { b"AV01" } else { b"VP90" };
        bytes.extend(b"DKIF\0\0\x20\0");
        bytes.extend(fourcc);
        bytes.extend([64, 1, 180, 0, 25, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for (time, (data, ..)) in (0_u64..).zip(pictures) {
            bytes.extend((data.len() as u32).to_le_bytes());
            bytes.extend(time.to_le_bytes());
            bytes.extend(data);
        }
    }
    fs::write(path, bytes).unwrap();
}

/// Hashes of the decoded pictures.
fn decoded(path: &Path) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-threads", "1", "-i"]).arg(path);
    let output = command.args(["-fps_mode", "passthrough", "-f", "framemd5", "-"]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let hash = |line: &str| line.rsplit(',').next().unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

/// Checks that pictures are decoded to the same without those that a layer from `needed_by` on needs, and that those are at least
/// a share of all.
#[track_caller]
fn assert_spare(name: &str, arguments: &str, extension: &str, needed_by: u8, least: f64) {
    let (bytes, file) = clip(name, arguments);
    let (codec, all) = pictures(&bytes);
    let kept: Vec<&Picture> = all.iter().filter(|(_, of, is_sync)| *is_sync || of.needed_by < needed_by).collect();
    let dropped = all.len() - kept.len();
    assert!(dropped as f64 >= all.len() as f64 * least, "{name}: {dropped} of {}", all.len());
    let (whole, thinned) = (file.with_extension(extension), file.with_extension(format!("thin.{extension}")));
    write(&codec, &all.iter().collect::<Vec<_>>(), &whole);
    write(&codec, &kept, &thinned);
    let (whole, thinned) = (decoded(&whole), decoded(&thinned));
    assert_eq!((whole.len(), thinned.len()), (all.len(), kept.len()), "{name}");
    let mut rest = whole.iter();
    for (number, hash) in thinned.iter().enumerate() {
        assert!(rest.any(|other| other == hash), "{name}: picture {number} is another one");
    }
}

#[test]
fn pictures_of_h264_that_no_other_needs() {
    for (pyramid, least) in [("normal", 0.4), ("none", 0.6)] {
        let arguments = format!(
            "V -c:v libx264 -bf 3 -g 25 -x264-params b-pyramid={pyramid}:b-adapt=0:repeat-headers=1:scenecut=0"
        );
        assert_spare(&format!("importance_{pyramid}.mp4"), &arguments, "h264", 255, least);
    }
}

#[test]
fn pictures_and_layers_of_hevc() {
    let x265 = "V -c:v libx265 -x265-params bframes=3:b-adapt=0:keyint=25:repeat-headers=1:log-level=none";
    // Without layers, those that none needs.
    assert_spare("importance_hevc.mp4", x265, "hevc", 1, 0.3);
    assert_spare("importance_layers.mp4", &format!("{x265}:temporal-layers=1"), "hevc", 1, 0.3);
}

#[test]
fn frames_of_vp9_that_change_nothing() {
    let vp9 = "V -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 500k -g 25";
    let (bytes, _) = clip("importance_vp9.mp4", vp9);
    let (_, all) = pictures(&bytes);
    assert!(all.iter().all(|(_, of, _)| of.is_picture && of.layer == 0));
    assert_spare("importance_vp9.mp4", vp9, "ivf", 255, 0.0);
}
