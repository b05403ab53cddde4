//! AVI files of given chunks, and the order in which ffmpeg shows the pictures of a file.

use std::{path::Path, process::Command};

fn chunk(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let padding = &[0][..body.len() % 2];
    [&kind[..], &(body.len() as u32).to_le_bytes(), body, padding].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a file of H.264 pictures of 320 x 180 pixels, 25 in a second. `extra` is the codec's configuration in the header.
pub(crate) fn avi(extra: &[u8], pictures: &[Vec<u8>]) -> Vec<u8> {
    let header = [&b"vidsH264"[..], &words(&[0, 0, 0, 1, 25, 0, pictures.len() as u32, 1 << 20, 0, 0, 0, 0])].concat();
    let sizes = words(&[40 + extra.len() as u32, 320, 180, 1 | 24 << 16]);
    let format = [&sizes[..], b"H264", &words(&[0; 5]), extra].concat();
    let stream = [&b"strl"[..], &chunk(b"strh", &header), &chunk(b"strf", &format)].concat();
    let main = words(&[40_000, 0, 0, 0x10, pictures.len() as u32, 0, 1, 1 << 20, 320, 180, 0, 0, 0, 0]);
    let head = [&b"hdrl"[..], &chunk(b"avih", &main), &chunk(b"LIST", &stream)].concat();
    let movi =
        [&b"movi"[..], &pictures.iter().flat_map(|picture| chunk(b"00dc", picture)).collect::<Vec<_>>()].concat();
    let (mut at, mut index) = (4, Vec::new());
    for picture in pictures {
        index.extend([&b"00dc"[..], &words(&[0x10, at, picture.len() as u32])].concat());
        at += 8 + picture.len().next_multiple_of(2) as u32;
    }
    let parts = [&b"AVI "[..], &chunk(b"LIST", &head), &chunk(b"LIST", &movi), &chunk(b"idx1", &index)].concat();
    chunk(b"RIFF", &parts)
}

/// Returns the numbers of a file's pictures, by the order of decoding, in the order in which ffmpeg shows them.
pub(crate) fn shown(file: &Path) -> Vec<usize> {
    let fields = |entries: &str| -> Vec<String> {
        let mut command = Command::new("ffprobe");
        command.args(["-v", "error", "-select_streams", "v", "-show_entries", entries, "-of", "csv=p=0"]).arg(file);
        let output = command.output().expect("ffprobe is installed");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| line.trim_end_matches(',').to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let decoded = fields("packet=pos");
    fields("frame=pkt_pos").iter().map(|place| decoded.iter().position(|other| other == place).unwrap()).collect()
}

/// Returns hashes of the pictures in the order in which ffmpeg shows them.
pub(crate) fn hashes(file: &Path) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(file).args(["-fps_mode", "passthrough", "-f", "framemd5", "-"]);
    let lines = String::from_utf8(command.output().expect("ffmpeg is installed").stdout).unwrap();
    let frames = lines.lines().filter(|line| !line.starts_with('#'));
    frames.map(|line| line.rsplit(',').next().unwrap().trim().to_owned()).collect()
}
