//! Encryption by the scheme `cbcs` (ISO/IEC 23001-7 10.4), which ffmpeg reads but doesn't write.

use aes::{
    Aes128,
    cipher::{Block, BlockCipherEncrypt as _, KeyInit as _},
};

/// Initialization vector of all samples.
const IV: [u8; 16] = [0x5a; 16];
/// Clear bytes of each NAL unit: its length, its header, and the start of a slice.
const CLEAR: usize = 80;
/// Blocks of the pattern of video: one is encrypted, nine are clear.
const PATTERN: (usize, usize) = (1, 9);

const CONTAINERS: [&[u8; 4]; 7] = [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf"];

/// Encrypts a fragmented file of H.264 and AAC: video in subsamples by a pattern, sound whole.
pub fn encrypt(file: &[u8], key: [u8; 16], kid: [u8; 16]) -> Vec<u8> {
    let cipher = Aes128::new(&key.into());
    let video = first_track_is_video(file);
    let (mut out, mut rest) = (Vec::new(), file);
    // Samples of the last `moof`: size, place in the file that is read, subsamples of those of video.
    let mut samples: Vec<Sample> = Vec::new();
    let mut at = 0;
    while let Some((kind, whole)) = next(&mut rest) {
        match &kind {
            b"moov" => {
                let moov = rewritten(whole, &mut |kind, whole| (kind == b"stsd").then(|| stsd(whole, kid)));
                out.extend(boxed(b"moov", &[&moov[8..], &pssh(kid)].concat()));
            }
            b"moof" => {
                samples = fragment(whole, at, file, video);
                out.extend(moof(whole, &samples));
            }
            b"mdat" => {
                let mut mdat = whole.to_vec();
                for sample in &samples {
                    sample.encrypt(&cipher, &mut mdat[sample.start - at..][..sample.size]);
                }
                out.extend(mdat);
            }
            // An index of fragments has places that are others now.
            b"sidx" | b"mfra" => {}
            _ => out.extend(whole),
        }
        at += whole.len();
    }
    out
}

struct Sample {
    video: bool,
    start: usize,
    size: usize,
    /// Clear and encrypted bytes.
    subsamples: Vec<(usize, usize)>,
}

impl Sample {
    fn encrypt(&self, cipher: &Aes128, bytes: &mut [u8]) {
        if !self.video {
            return chain(cipher, bytes, (1, 0));
        }
        let mut at = 0;
        for (clear, encrypted) in &self.subsamples {
            at += clear;
            chain(cipher, &mut bytes[at..at + encrypted], PATTERN);
            at += encrypted;
        }
    }
}

/// Encrypts whole blocks of a pattern in cipher block chaining mode, beginning anew; a part of a block stays clear.
fn chain(cipher: &Aes128, bytes: &mut [u8], (crypt, skip): (usize, usize)) {
    let mut last = IV;
    for (place, block) in bytes.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        if place % (crypt + skip) >= crypt {
            continue;
        }
        block.iter_mut().zip(last).for_each(|(byte, before)| *byte ^= before);
        let mut cell: Block<Aes128> = (*block).into();
        cipher.encrypt_block(&mut cell);
        last = cell.into();
        *block = last;
    }
}

/// The next box: its type, and the whole of it.
fn next<'a>(rest: &mut &'a [u8]) -> Option<([u8; 4], &'a [u8])> {
    let size = word(rest, 0)? as usize;
    let kind = *rest.get(4..8)?.first_chunk()?;
    let (whole, after) = rest.split_at_checked(size)?;
    *rest = after;
    Some((kind, whole))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes(), &kind[..], body].concat()
}

/// Gives what stands in the place of a box, or `None` where it stays.
type Replacement<'a> = &'a mut dyn FnMut(&[u8; 4], &[u8]) -> Option<Vec<u8>>;

/// A box with those in it replaced for which `replace` has another.
fn rewritten(whole: &[u8], replace: Replacement<'_>) -> Vec<u8> {
    let kind = whole[4..8].first_chunk().unwrap();
    if let Some(other) = replace(kind, whole) {
        return other;
    }
    if !CONTAINERS.contains(&kind) {
        return whole.to_vec();
    }
    let (mut rest, mut body) = (&whole[8..], Vec::new());
    while let Some((_, child)) = next(&mut rest) {
        body.extend(rewritten(child, replace));
    }
    boxed(kind, &body)
}

/// The sample description with its only entry encrypted.
fn stsd(whole: &[u8], kid: [u8; 16]) -> Vec<u8> {
    let entry = &whole[16..];
    let format = &entry[4..8];
    let (kind, pattern) = if format == b"avc1" { (b"encv", 0x19) } else { (b"enca", 0) };
    let mut tenc = vec![1, 0, 0, 0, 0, pattern, 1, 0];
    tenc.extend(kid);
    tenc.push(16);
    tenc.extend(IV);
    let parts =
        [boxed(b"frma", format), boxed(b"schm", b"\0\0\0\0cbcs\0\x01\0\0"), boxed(b"schi", &boxed(b"tenc", &tenc))];
    let entry = [&entry[8..], &boxed(b"sinf", &parts.concat())].concat();
    boxed(b"stsd", &[&whole[8..16], &boxed(kind, &entry)].concat())
}

/// The header that names the key for any system (W3C, "cenc" Initialization Data Format 4).
fn pssh(kid: [u8; 16]) -> Vec<u8> {
    const COMMON: &[u8; 16] = b"\x10\x77\xef\xec\xc0\xb2\x4d\x02\xac\xe3\x3c\x1e\x52\xe2\xfb\x4b";
    boxed(b"pssh", &[&[1, 0, 0, 0][..], COMMON, &[0, 0, 0, 1], &kid, &[0; 4]].concat())
}

fn first_track_is_video(file: &[u8]) -> bool {
    let place = file.windows(4).position(|four| four == b"hdlr").unwrap();
    &file[place + 12..place + 16] == b"vide"
}

/// The samples of a `moof` at `at` of the file. Track 1 is video.
fn fragment(moof: &[u8], at: usize, file: &[u8], video: bool) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut rest = &moof[8..];
    while let Some((kind, traf)) = next(&mut rest) {
        if &kind == b"traf" {
            track_fragment(traf, at, file, video, &mut samples);
        }
    }
    samples
}

fn track_fragment(traf: &[u8], at: usize, file: &[u8], video: bool, samples: &mut Vec<Sample>) {
    let (mut rest, mut default, mut is_video) = (&traf[8..], 0, false);
    while let Some((kind, child)) = next(&mut rest) {
        let flags = word(child, 8).unwrap() & 0xff_ffff;
        match &kind {
            b"tfhd" => {
                is_video = video && word(child, 12) == Some(1);
                let before =
                    [1, 8, 2, 4, 8, 4].chunks(2).map(|bit| if flags & bit[0] != 0 { bit[1] as usize } else { 0 });
                default = word(child, 16 + before.sum::<usize>()).unwrap_or(0) as usize;
            }
            b"trun" => run(child, flags, default, at, file, is_video, samples),
            _ => {}
        }
    }
}

fn run(trun: &[u8], flags: u32, default: usize, at: usize, file: &[u8], video: bool, samples: &mut Vec<Sample>) {
    let count = word(trun, 12).unwrap();
    let mut start = at + word(trun, 16).unwrap() as usize;
    let mut field = if flags & 4 != 0 { 24 } else { 20 };
    for _ in 0..count {
        let mut size = default;
        for bit in [0x100, 0x200, 0x400, 0x800] {
            if flags & bit != 0 {
                size = if bit == 0x200 { word(trun, field).unwrap() as usize } else { size };
                field += 4;
            }
        }
        let subsamples = if video { units(&file[start..start + size]) } else { Vec::new() };
        samples.push(Sample { video, start, size, subsamples });
        start += size;
    }
}

/// Clear and encrypted bytes of NAL units with lengths of 4 bytes.
fn units(mut sample: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    while let Some(size) = word(sample, 0) {
        let size = size as usize + 4;
        let clear = size.min(CLEAR);
        found.push((clear, size - clear));
        sample = &sample[size..];
    }
    found
}

/// The `moof` with `senc` behind the runs of video, and places of media that are farther away by it.
fn moof(whole: &[u8], samples: &[Sample]) -> Vec<u8> {
    let video: Vec<&Sample> = samples.iter().filter(|sample| sample.video).collect();
    let mut senc = vec![0, 0, 0, 2];
    senc.extend((video.len() as u32).to_be_bytes());
    for sample in &video {
        senc.extend((sample.subsamples.len() as u16).to_be_bytes());
        for (clear, encrypted) in &sample.subsamples {
            senc.extend((*clear as u16).to_be_bytes());
            senc.extend((*encrypted as u32).to_be_bytes());
        }
    }
    let mut senc = if video.is_empty() { Vec::new() } else { boxed(b"senc", &senc) };
    let added = senc.len() as u32;
    rewritten(whole, &mut |kind, whole| {
        if kind != b"trun" {
            return None;
        }
        let mut trun = whole.to_vec();
        let offset = word(whole, 16).unwrap() + added;
        trun[16..20].copy_from_slice(&offset.to_be_bytes());
        // Video is in the first of the fragments.
        trun.append(&mut senc);
        Some(trun)
    })
}
