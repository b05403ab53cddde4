//! Covers in Ogg files of other programs: ffmpeg writes the files and takes the covers out. `samples` has files whose tags are by mutagen
//! 1.48.1 (Python): its `OggOpus` with two `Picture` blocks, and its `OggFLAC` with `COVERART`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use millpond_media::{ByteRange, ImageDecoder, ImageKind, Movie, index_bytes};
use std::{path::Path, process::Command};

/// The bytes of the cover.
fn cover(movie: &Movie, object: &[u8]) -> Vec<u8> {
    let artwork = movie.artwork.as_ref().expect("a cover");
    assert_eq!(artwork.kind, ImageKind::Png);
    let (mut decoder, mut out) = (ImageDecoder::new(artwork.text.unwrap()), Vec::new());
    for ByteRange { start, end } in &artwork.pieces {
        decoder.push(&object[*start as usize..*end as usize], &mut out).unwrap();
    }
    decoder.finish(&mut out).unwrap();
    out
}

/// A picture of a file as ffmpeg sees it, by its place.
fn taken_out(file: &Path, place: usize) -> Vec<u8> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(file);
    command.args(["-map", &format!("0:v:{place}"), "-c", "copy", "-f", "image2pipe", "-"]);
    command.output().expect("ffmpeg is installed").stdout
}

#[test]
fn covers_of_mutagen() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let opus = std::fs::read(samples.join("mutagen.opus")).unwrap();
    let movie = index_bytes(&opus).unwrap();
    let found = cover(&movie, &opus);
    assert!(movie.artwork.as_ref().unwrap().pieces.len() == 2, "the text lies in two pages");
    // The back cover stands before the front cover.
    assert!(found.len() == 2174 && found == taken_out(&samples.join("mutagen.opus"), 1));
    let flac = std::fs::read(samples.join("mutagen.oga")).unwrap();
    assert!(cover(&index_bytes(&flac).unwrap(), &flac) == found, "the same image, in COVERART");
}

#[test]
fn covers_of_ffmpeg() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = |kind: &str| folder.join(format!("{}.cover.{kind}", std::process::id()));
    let run = |arguments: &str, file: &Path| {
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin", "-y"]).args(arguments.split_whitespace()).arg(file);
        assert!(command.status().expect("ffmpeg is installed").success(), "{arguments:.100}");
    };
    let image = name("png");
    run("-f lavfi -i testsrc2=size=320x180 -vf noise=alls=20 -frames:v 1", &image);
    let image = std::fs::read(image).unwrap();
    // A page has less than 64 KiB, an argument at most 128 KiB.
    let image = &image[..image.len().min(90_000)];
    assert!(image.len() > 70_000, "{}", image.len());
    let text = |text: &[u8]| [&(text.len() as u32).to_be_bytes()[..], text].concat();
    let block = [&[0, 0, 0, 3][..], &text(b"image/png"), &text(b""), &[0; 16], &text(image)].concat();
    for (kind, codec) in [("opus", "libopus"), ("oga", "flac")] {
        let block = STANDARD.encode(&block);
        let file = name(kind);
        run(&format!("-f lavfi -i sine=440:duration=1 -c:a {codec} -metadata METADATA_BLOCK_PICTURE={block}"), &file);
        let object = std::fs::read(&file).unwrap();
        let movie = index_bytes(&object).unwrap();
        assert!(movie.artwork.as_ref().unwrap().pieces.len() > 1);
        assert!(cover(&movie, &object) == image && taken_out(&file, 0) == image, "{kind}");
        std::fs::remove_file(file).unwrap();
    }
    std::fs::remove_file(name("png")).unwrap();
}
