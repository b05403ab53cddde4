//! Decoding with ffmpeg: pictures with hashes and times, sound as samples from a time on.

use std::process::Command;

/// One decoded picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Presentation time in seconds.
    pub time: f64,
    pub hash: String,
}

/// Decoded sound: interleaved 32-bit floats from a time on.
#[derive(Debug)]
pub struct Sound {
    pub start: f64,
    pub rate: u32,
    pub channels: usize,
    pub samples: Vec<u8>,
}

/// A decoded track.
#[derive(Debug)]
pub enum Track {
    Video(Vec<Frame>),
    Audio(Sound),
}

/// Pictures of a long clip that are decoded: half a minute at 30 a second. Unless MILLPOND_TEST_WHOLE is set, the rest
/// of it is left out, as decoding six minutes of AV1 four times takes as long as all other tests together.
pub const MOST_PICTURES: usize = 1000;

/// Decodes tracks of an input, each a stream specifier and whether it is video, by one process. While sound is left, ffmpeg
/// decodes the pictures after [`MOST_PICTURES`] too, and drops them.
pub fn tracks(input: &[&str], tracks: &[(&str, bool)]) -> Result<Vec<Track>, String> {
    let scratch = tempfile::tempdir().unwrap();
    let file = |number: usize, kind: &str| scratch.path().join(format!("{number}.{kind}"));
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-copyts"]).args(input);
    // Hashing pictures by MD5 takes longer than decoding them.
    let hashes = ["-f", "framehash", "-hash", "murmur3"];
    for (number, (map, is_video)) in tracks.iter().enumerate() {
        command.args(["-map", map]);
        if *is_video {
            // Pictures of several sizes stay as they are.
            command.args(["-fps_mode", "passthrough", "-enc_time_base", "-1", "-autoscale", "0"]);
            if std::env::var_os("MILLPOND_TEST_WHOLE").is_none() {
                command.args(["-frames:v", &MOST_PICTURES.to_string()]);
            }
        } else {
            command.args(["-c:a", "pcm_f32le", "-f", "f32le"]).arg(file(number, "samples"));
            command.args(["-map", map, "-c:a", "pcm_f32le", "-frames:a", "1"]);
        }
        command.args(hashes).arg(file(number, "hashes"));
    }
    let output = command.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let decoded = |(number, (_, is_video)): (usize, &(&str, bool))| {
        let text = std::fs::read_to_string(file(number, "hashes")).unwrap_or_default();
        if *is_video {
            return frames_of(&text).map(Track::Video);
        }
        let samples = std::fs::read(file(number, "samples")).unwrap_or_default();
        sound_of(&text, samples).map(Track::Audio)
    };
    tracks.iter().enumerate().map(decoded).collect()
}

/// The fields of each frame in the output of ffmpeg's muxer `framehash`.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').map(str::trim).collect())
}

/// Seconds of a tick of that output.
fn tick_of(text: &str) -> Result<f64, String> {
    text.lines()
        .find_map(|line| line.strip_prefix("#tb 0: "))
        .and_then(|base| base.split_once('/'))
        .map(|(n, d)| n.parse::<f64>().unwrap() / d.parse::<f64>().unwrap())
        .ok_or_else(|| "no time base: nothing was decoded".to_owned())
}

fn frames_of(text: &str) -> Result<Vec<Frame>, String> {
    let tick = tick_of(text)?;
    let frame = |f: Vec<&str>| Frame { time: f[2].parse::<f64>().unwrap() * tick, hash: f[5].to_owned() };
    Ok(lines(text).map(frame).collect())
}

/// Sound whose first frame is told by the output of `framehash`.
fn sound_of(text: &str, samples: Vec<u8>) -> Result<Sound, String> {
    let tick = tick_of(text)?;
    let rate = text.lines().find_map(|line| line.strip_prefix("#sample_rate 0: ")).ok_or("no sample rate")?;
    let first = lines(text).next().ok_or("no sound decoded")?;
    let number = |field: usize| first[field].parse::<f64>().unwrap();
    let rate: u32 = rate.parse().unwrap();
    // Time, duration and bytes of the first frame.
    let frames = number(3) * tick * f64::from(rate);
    let channels = (number(4) / 4.0 / frames).round() as usize;
    Ok(Sound { start: number(2) * tick, rate, channels, samples })
}

/// The pictures of a stream.
pub fn video(input: &[&str], map: &str) -> Result<Vec<Frame>, String> {
    match tracks(input, &[(map, true)])?.pop() {
        Some(Track::Video(frames)) => Ok(frames),
        _ => Err("no pictures".to_owned()),
    }
}

/// The sound of a stream.
pub fn audio(input: &[&str], map: &str) -> Result<Sound, String> {
    match tracks(input, &[(map, false)])?.pop() {
        Some(Track::Audio(sound)) => Ok(sound),
        _ => Err("no sound".to_owned()),
    }
}

/// Most seconds by which a first picture is late that follows hidden ones.
const LATE: f64 = 0.02;

/// Seconds to the next picture after a hidden one, at most.
const HIDDEN: f64 = 0.002;

/// Number of pictures in the first instant that are there for their successors only.
pub fn hidden(pictures: &[Frame], base: f64) -> usize {
    let is_hidden = |pair: &&[Frame]| pair[1].time - base < LATE && pair[1].time - pair[0].time < HIDDEN;
    pictures.windows(2).take_while(is_hidden).count()
}

/// Compares pictures: the same hashes in the same order, times within `tick` seconds after taking `base` from
/// ours. Hidden pictures don't count, and the picture after them may be half a picture late.
pub fn same_video(ours: &[Frame], file: &[Frame], base: f64, tick: f64) -> Result<(), String> {
    let hidden = hidden(ours, base);
    let ours: Vec<Frame> = ours[hidden..].iter().map(|f| Frame { time: f.time - base, ..f.clone() }).collect();
    if ours.len() != file.len() {
        return Err(format!("{} pictures, the file has {}", ours.len(), file.len()));
    }
    for (n, (a, b)) in ours.iter().zip(file).enumerate() {
        if a.hash != b.hash {
            return Err(format!("picture {n} differs (ours at {:.6}, the file's at {:.6})", a.time, b.time));
        }
        let late = if hidden > 0 && n == 0 { LATE } else { 0.0 };
        if (a.time - b.time).abs() > tick + late + 1e-6 {
            return Err(format!("picture {n} at {:.6} s, the file's at {:.6} s", a.time, b.time));
        }
    }
    Ok(())
}

/// Compares sound sample by sample: ours may begin earlier (priming, which a player drops) and end later.
pub fn same_audio(ours: &Sound, file: &Sound, base: f64, tick: f64) -> Result<(), String> {
    if (ours.rate, ours.channels) != (file.rate, file.channels) {
        return Err(format!(
            "{} Hz {} channels, the file has {} Hz {}",
            ours.rate, ours.channels, file.rate, file.channels
        ));
    }
    let rate = f64::from(file.rate);
    let lead = (file.start - (ours.start - base)) * rate;
    let slack = tick * rate + 0.51;
    let frame = 4 * file.channels;
    // The clock of the output may be coarser than the sample rate: the true offset is near.
    let (low, high) = ((lead - slack).floor().max(0.0) as usize, (lead + slack).ceil().max(0.0) as usize);
    for offset in low..=high {
        let Some(rest) = ours.samples.get(offset * frame..) else { continue };
        if rest.len() >= file.samples.len() && rest[..file.samples.len()] == file.samples[..] {
            return Ok(());
        }
    }
    Err(format!(
        "sound differs: ours {} samples from {:.6} s, the file's {} from {:.6} s",
        ours.samples.len() / frame,
        ours.start - base,
        file.samples.len() / frame,
        file.start
    ))
}
