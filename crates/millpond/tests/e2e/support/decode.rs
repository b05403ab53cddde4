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

fn ffmpeg(args: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("ffmpeg").args(["-v", "error", "-nostdin"]).args(args).output().unwrap();
    if output.status.success() { Ok(output.stdout) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn frames_of(input: &[&str], map: &str, rest: &[&str]) -> Result<(Vec<Frame>, String), String> {
    let mut args = vec!["-copyts"];
    args.extend_from_slice(input);
    args.extend_from_slice(&["-map", map]);
    args.extend_from_slice(rest);
    args.extend_from_slice(&["-f", "framemd5", "-"]);
    let text = String::from_utf8(ffmpeg(&args)?).unwrap();
    let base: f64 = text
        .lines()
        .find_map(|l| l.strip_prefix("#tb 0: "))
        .and_then(|tb| tb.split_once('/'))
        .map(|(n, d)| n.parse::<f64>().unwrap() / d.parse::<f64>().unwrap())
        .ok_or("no time base: nothing was decoded")?;
    let frames = text
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| {
            let f: Vec<&str> = l.split(',').map(str::trim).collect();
            Frame { time: f[2].parse::<f64>().unwrap() * base, hash: f[5].to_owned() }
        })
        .collect();
    Ok((frames, text))
}

/// Pictures of a long clip that are decoded: two minutes at 30 a second. Unless MILLPOND_TEST_WHOLE is set, the rest
/// of it is left out, as decoding six minutes of AV1 four times takes as long as all other tests together.
const MOST_PICTURES: &str = "4000";

/// The pictures of a stream.
pub fn video(input: &[&str], map: &str) -> Result<Vec<Frame>, String> {
    let mut rest = vec!["-fps_mode", "passthrough", "-enc_time_base", "-1"];
    if std::env::var_os("MILLPOND_TEST_WHOLE").is_none() {
        rest.extend_from_slice(&["-frames:v", MOST_PICTURES]);
    }
    frames_of(input, map, &rest).map(|(frames, _)| frames)
}

/// The sound of a stream.
pub fn audio(input: &[&str], map: &str) -> Result<Sound, String> {
    let (frames, text) = frames_of(input, map, &["-c:a", "pcm_f32le", "-frames:a", "1"])?;
    let header = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).map(str::to_owned);
    let rate = header("#sample_rate 0: ").ok_or("no sample rate")?.parse().unwrap();
    let mut args = vec!["-copyts"];
    args.extend_from_slice(input);
    args.extend_from_slice(&["-map", map, "-c:a", "pcm_f32le", "-f", "f32le", "-"]);
    let samples = ffmpeg(&args)?;
    let layout = header("#channel_layout 0: ").or_else(|| header("#channel_layout_name 0: ")).unwrap_or_default();
    let channels = probe_channels(input, map).unwrap_or_else(|| panic!("channels of {layout}"));
    let start = frames.first().ok_or("no sound decoded")?.time;
    Ok(Sound { start, rate, channels, samples })
}

fn probe_channels(input: &[&str], map: &str) -> Option<usize> {
    let url = input.last()?;
    let select = map.strip_prefix("0:")?;
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", select, "-show_entries", "stream=channels", "-of", "csv=p=0", url])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // Transport streams list the streams of each program first, some with empty lines.
    text.lines().find_map(|l| l.trim().trim_matches(',').parse().ok())
}

/// Compares pictures: the same hashes in the same order, times within `tick` seconds after taking `base` from
/// ours. Pictures of ours before the presentation begins (preroll) are what a player drops.
pub fn same_video(ours: &[Frame], file: &[Frame], base: f64, tick: f64) -> Result<(), String> {
    let ours: Vec<Frame> =
        ours.iter().map(|f| Frame { time: f.time - base, ..f.clone() }).filter(|f| f.time > -tick).collect();
    if ours.len() != file.len() {
        return Err(format!("{} pictures, the file has {}", ours.len(), file.len()));
    }
    for (n, (a, b)) in ours.iter().zip(file).enumerate() {
        if a.hash != b.hash {
            return Err(format!("picture {n} differs (ours at {:.6}, the file's at {:.6})", a.time, b.time));
        }
        if (a.time - b.time).abs() > tick + 1e-6 {
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
