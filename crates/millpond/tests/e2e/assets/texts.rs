//! Texts in Matroska files become WebVTT. ffmpeg reads the same cues in the file and in the output.

use crate::support::{self, Server, clips};
use std::{path::Path, process::Command};

const SUBRIP: &str = "1\n00:00:00,500 --> 00:00:06,000\nA long <i>one</i>\n\n2\n00:00:02,000 --> 00:00:03,000\n\
    Short, over it\n\n3\n00:00:02,000 --> 00:00:03,500\nAt the same time\n\n4\n00:00:07,200 --> 00:00:08,900\nLast\nof two lines\n";
const SCRIPT: &str = "[Script Info]\nScriptType: v4.00+\nPlayResX: 320\nPlayResY: 180\n\n[V4+ Styles]\n\
    Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, \
    ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding\n\
    Style: Default,Arial,16,&Hffffff,&Hffffff,&H0,&H0,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,0\n\
    Style: Sign,Arial,16,&Hffffff,&Hffffff,&H0,&H0,-1,0,0,0,100,100,0,0,1,1,0,8,10,10,10,0\n\n[Events]\n\
    Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n\
    Dialogue: 0,0:00:01.00,0:00:04.50,Default,,0,0,0,,Hello, {\\i1}you{\\i0}\n\
    Dialogue: 0,0:00:02.00,0:00:02.40,Sign,,0,0,0,,EXIT\n\
    Dialogue: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,{\\p1}m 0 0 l 9 9{\\p0}\n\
    Dialogue: 0,0:00:06.25,0:00:08.00,Default,,0,0,0,,One\\NTwo\n";

const DRAWING: &str = "m 0 0 l 9 9";

/// A cue: its times in milliseconds, and its text.
type Cue = (i64, i64, String);

fn millis(time: &str) -> i64 {
    let seconds = time.split(':').fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().unwrap());
    (seconds * 1000.0).round() as i64
}

/// The cues of WebVTT, by time and text.
fn cues(vtt: &str) -> Vec<Cue> {
    let cue = |block: &str| {
        let (times, text) = block.split_once('\n')?;
        let (start, end) = times.split_once(" --> ")?;
        let end = end.split(' ').next()?;
        Some((millis(start), millis(end), text.trim_end().to_owned()))
    };
    let mut found: Vec<Cue> = vtt.split("\n\n").filter_map(cue).collect();
    found.sort();
    found
}

/// The cues of a track of text as ffmpeg reads them in a file.
fn in_file(file: &Path, track: usize) -> Vec<Cue> {
    let out = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-i"])
        .arg(file)
        .args(["-map", &format!("0:s:{track}"), "-f", "webvtt", "-"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    cues(&String::from_utf8(out.stdout).unwrap())
}

/// Cues without tags, which ffmpeg and Millpond may nest differently.
fn plain(cues: &[Cue]) -> Vec<Cue> {
    let text = |text: &str| {
        let mut in_tag = false;
        let shown = |c: &char| {
            let is_shown = *c != '<' && !in_tag;
            in_tag = (in_tag || *c == '<') && *c != '>';
            is_shown
        };
        text.chars().filter(shown).collect::<String>()
    };
    cues.iter().map(|(start, end, shown)| (*start, *end, text(shown))).filter(|cue| !cue.2.is_empty()).collect()
}

/// Start and end of each segment of a playlist in milliseconds, and its name.
fn segments(playlist: &str) -> Vec<(i64, i64, &str)> {
    let mut at = 0.0;
    let mut found = Vec::new();
    let mut lines = playlist.lines();
    while let Some(line) = lines.next() {
        let Some(duration) = line.strip_prefix("#EXTINF:") else { continue };
        let start = at;
        at += duration.trim_end_matches(',').parse::<f64>().unwrap();
        let name = lines.find(|line| !line.starts_with('#')).unwrap();
        found.push(((start * 1000.0_f64).round() as i64, (at * 1000.0_f64).round() as i64, name));
    }
    found
}

#[test]
fn texts_in_matroska_are_what_ffmpeg_reads() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("texts")).unwrap();
    std::fs::write(path("texts/a.srt"), SUBRIP).unwrap();
    std::fs::write(path("texts/b.ass"), SCRIPT).unwrap();
    let texts = format!("-i {} -i {}", path("texts/a.srt").display(), path("texts/b.ass").display());
    let coded = format!(
        "V S {texts} -map 0 -map 1 -map 2 -map 3 -c:v libx264 -preset ultrafast -g 50 -c:a aac -c:s:0 subrip -c:s:1 ass \
         -metadata:s:s:0 language=ger -metadata:s:s:1 language=eng -disposition:s:1 forced"
    );
    // With cues, and without any: the blocks of a whole file are then read.
    clips::make(&path("cues.mkv"), &coded);
    clips::make(&path("none.mkv"), &format!("{coded} -live 1"));
    clips::make(
        &path("web.webm"),
        &format!("V {texts} -map 0 -map 1 -c:v libvpx -g 50 -deadline realtime -cpu-used 8 -c:s webvtt"),
    );
    clips::make(&path("alone.mkv"), &format!("V {texts} -map 0 -map 1 -c:v mpeg4 -c:s subrip"));
    let server = Server::start(&[folder.path().to_str().unwrap()]);
    let refused = server.get("alone.mkv/index.m3u8");
    let why = refused.text();
    assert_eq!(refused.status, 422, "{why}");
    for part in
        ["MPEG-4 Part 2 video", "text without pictures or sound", "to make a file that plays: ffmpeg -i alone.mkv"]
    {
        assert!(why.contains(part), "{why}");
    }
    for (name, tracks) in [("cues.mkv", 2), ("none.mkv", 2), ("web.webm", 1)] {
        let master = server.get(&format!("{name}/index.m3u8")).text();
        assert_eq!(master.matches("TYPE=SUBTITLES").count(), tracks, "{name}: {master}");
        for track in 0..tracks {
            // ffmpeg takes drawings for text.
            let mut expected = plain(&in_file(&path(name), track));
            expected.retain(|cue| cue.2 != DRAWING);
            assert!(expected.len() >= 3, "{name}: {expected:?}");
            let url = |tail: &str| format!("{name}/s{}/{tail}", track + 1);
            let all = cues(&server.get(&url("all.vtt")).text());
            assert_eq!(plain(&all), expected, "{name}, track {track}");
            let playlist = server.get(&url("index.m3u8")).text();
            for (start, end, segment) in segments(&playlist) {
                let shown: Vec<Cue> = all.iter().filter(|cue| cue.0 < end && cue.1 > start).cloned().collect();
                assert_eq!(cues(&server.get(&url(segment)).text()), shown, "{name}, track {track}, {segment}");
            }
        }
    }
    let master = server.get("cues.mkv/index.m3u8").text();
    assert!(master.contains("LANGUAGE=\"de\"") && master.contains("FORCED=YES"), "{master}");
    let script = server.get("cues.mkv/s2/all.vtt").text();
    assert!(script.contains("line:0\n<b>EXIT</b>") && script.contains("Hello, <i>you</i>"), "{script}");
    let mpd = server.get("cues.mkv/index.mpd").text();
    assert_eq!(mpd.matches("text/vtt").count(), 2, "{mpd}");
}
