//! Fragmented titles, cold: few requests and bytes from the storage, and the same segments whatever was read before.

use crate::support::{
    self, Server, clips,
    origins::{self, Kind, Stack},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// A title of a minute in groups of a second, about 1 Mbit/s.
const CODED: &str = "-f lavfi -i testsrc2=size=640x360:rate=25:duration=60 -f lavfi -i sine=frequency=440:sample_rate=48000:duration=60 -c:v libx264 -preset ultrafast -bf 2 -g 25 -b:v 1000k -maxrate 1000k -bufsize 1000k -c:a aac -b:a 96k";

/// Forms of the title, and how ffmpeg writes them.
const FORMS: [(&str, &str); 7] = [
    ("sidx.mp4", "-movflags +frag_keyframe+dash+global_sidx"),
    ("edits.mp4", "-movflags +frag_keyframe+delay_moov+default_base_moof+global_sidx"),
    ("mfra.mp4", "-movflags +frag_keyframe+empty_moov+default_base_moof"),
    ("partly.mp4", "-movflags +frag_keyframe"),
    ("plain.mp4", "-movflags +faststart"),
    ("cues.mkv", ""),
    ("cues_first.mkv", "-cues_to_front 1"),
];

/// Makes the forms, and renditions of a group: each its own file with `sidx`.
fn titles() -> Option<PathBuf> {
    if !support::have("ffmpeg") || !support::have("nginx") {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fragments-2");
    std::fs::create_dir_all(&folder).unwrap();
    let coded = folder.join("coded.mp4");
    clips::make(&coded, CODED);
    let copy = format!("-i {} -c copy", coded.display());
    for (name, flags) in FORMS {
        clips::make(&folder.join(name), &format!("{copy} {flags}"));
    }
    let flags = "-movflags +cmaf+frag_keyframe+global_sidx";
    clips::make(&folder.join("high.mp4"), &format!("{copy} -map 0:v {flags}"));
    for (name, rate) in [("low.mp4", 300), ("mid.mp4", 600)] {
        let video =
            format!("-c:v libx264 -preset ultrafast -bf 2 -g 25 -b:v {rate}k -maxrate {rate}k -bufsize {rate}k");
        clips::make(&folder.join(name), &format!("-i {} -map 0:v {video} {flags}", coded.display()));
    }
    clips::make(&folder.join("sound.mp4"), &format!("{copy} -map 0:a -frag_duration 1000000 {flags}"));
    let video = |name: &str| format!("<video src=\"{name}\"/>");
    let members: String = ["high.mp4", "mid.mp4", "low.mp4"].into_iter().map(video).collect();
    let smil = format!("<smil><body><switch>{members}<audio src=\"sound.mp4\"/></switch></body></smil>");
    std::fs::write(folder.join("group.smil"), smil).unwrap();
    Some(folder)
}

/// Requests to nginx, and the bytes that it sent.
fn traffic(stack: &Stack) -> (usize, u64) {
    let text = origins::settled_log(stack.scratch.path());
    let bytes = text.lines().filter_map(|line| line.rsplit('|').next()?.parse::<u64>().ok()).sum();
    (text.lines().count(), bytes)
}

/// Paths of a title's segments.
fn segments(server: &Server, asset: &str, track: &str) -> Vec<String> {
    let multivariant = server.get(&format!("{asset}/index.m3u8")).text();
    let playlist = multivariant.split(['"', '\n']).find(|part| part.ends_with(&format!("{track}/index.m3u8"))).unwrap();
    let base = format!("{asset}/{}", playlist.strip_suffix("index.m3u8").unwrap());
    let text = server.get(&format!("{base}index.m3u8")).text();
    let names = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    std::iter::once("init.mp4").chain(names).map(|name| format!("{base}{name}")).collect()
}

/// Gets all segments of the first picture and sound.
fn all(server: &Server, asset: &str) -> BTreeMap<String, Vec<u8>> {
    let paths = ["v1", "a1"].into_iter().flat_map(|track| segments(server, asset, track));
    let get = |path: String| {
        let reply = server.get(&path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        (path, reply.body)
    };
    paths.map(get).collect()
}

#[test]
fn a_cold_segment_takes_few_requests_and_bytes() {
    let Some(folder) = titles() else { return };
    let forms = FORMS.into_iter().map(|(name, _)| name).chain(["group.smil"]);
    for name in forms {
        let stack = origins::start(Kind::Nginx, &folder, &["--segment-duration", "4"]).unwrap();
        let manifest = stack.server.get(&format!("{name}/index.mpd"));
        assert_eq!(manifest.status, 200, "{name}: {}", manifest.text());
        let (of_manifest, _) = traffic(&stack);
        let text = manifest.text();
        let version = text.split('"').find(|part| part.starts_with('~')).unwrap().split('/').next().unwrap().to_owned();
        let mut out = text.len() as u64;
        let track = if name == "group.smil" { "v3" } else { "v1" };
        for path in ["init.mp4", "1.m4s"] {
            let reply = stack.server.get(&format!("{name}/{version}/{track}/{path}"));
            assert_eq!(reply.status, 200, "{name}: {}", reply.text());
            out += reply.body.len() as u64;
        }
        let (requests, bytes) = traffic(&stack);
        let ratio = out as f64 / bytes as f64;
        println!(
            "{name}: {of_manifest} requests for the manifest, {requests} in all, {bytes} bytes in, {out} out, {ratio:.3}"
        );
        let (least, most) = match name {
            "plain.mp4" => (0.5, 5),
            // Its first fragment lies in the movie box, its index at the end.
            "partly.mp4" => (0.75, 7),
            "group.smil" => (0.75, 20),
            _ => (0.75, 6),
        };
        assert!(ratio >= least && requests <= most, "{name}: {ratio}, {requests} requests");
        // A later segment is one request.
        assert_eq!(stack.server.get(&format!("{name}/{version}/{track}/2.m4s")).status, 200);
        let after = traffic(&stack).0 - requests;
        assert!(after <= 2, "{name}: {after} requests for a segment");
    }
}

#[test]
fn a_fragmented_title_played_through_reads_each_byte_once() {
    let Some(folder) = titles() else { return };
    for (name, _) in FORMS {
        let stack = origins::start(Kind::Nginx, &folder, &["--segment-duration", "4"]).unwrap();
        let found = all(&stack.server, name);
        let (requests, bytes) = traffic(&stack);
        let out: usize = found.values().map(Vec::len).sum();
        let ratio = out as f64 / bytes as f64;
        println!("{name}: {requests} requests for {} segments, {bytes} bytes in, {out} out, {ratio:.3}", found.len());
        assert!(ratio >= 0.95, "{name}: {ratio}");
        assert!(requests <= found.len() + 4, "{name}: {requests}");
    }
}

#[test]
fn segments_do_not_depend_on_what_was_read_before() {
    let Some(folder) = titles() else { return };
    for name in ["sidx.mp4", "edits.mp4", "mfra.mp4", "partly.mp4", "group.smil", "cues.mkv"] {
        let cold = origins::start(Kind::Folder, &folder, &["--segment-duration", "4"]).unwrap();
        let first = all(&cold.server, name);
        // Transport streams and trick play need all samples.
        let warm = origins::start(Kind::Folder, &folder, &["--segment-duration", "4"]).unwrap();
        let ts = warm.server.get(&format!("{name}/ts/v1/index.m3u8"));
        assert_eq!(ts.status, 200, "{name}: {}", ts.text());
        assert_eq!(warm.server.get(&format!("{name}/ts/v1/1.ts")).status, 200);
        let multivariant = warm.server.get(&format!("{name}/index.m3u8")).text();
        let iframes = multivariant.split('"').find(|part| part.ends_with("iframes.m3u8")).unwrap();
        let listed = warm.server.get(&format!("{name}/{iframes}"));
        assert!(listed.text().contains("i1.m4s"), "{name}: {}", listed.text());
        assert_eq!(warm.server.get(&format!("{name}/{}", iframes.replace("iframes.m3u8", "i1.m4s"))).status, 200);
        let second = all(&warm.server, name);
        assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>(), "{name}");
        assert!(first == second, "{name}: the segments differ");
    }
}

/// Returns the file with other durations of two fragments in its first `sidx`.
fn with_wrong_times(file: &[u8]) -> Vec<u8> {
    let at = file.windows(4).position(|kind| kind == b"sidx").unwrap();
    let mut wrong = file.to_vec();
    let head = if file[at + 4] == 0 { 4 + 4 + 8 + 8 + 4 } else { 4 + 4 + 8 + 16 + 4 };
    let mut add = |entry: usize, ticks: i32| {
        let place = at + head + entry * 12 + 4;
        let field: [u8; 4] = wrong[place..place + 4].try_into().unwrap();
        let value = u32::from_be_bytes(field).wrapping_add_signed(ticks);
        wrong[place..place + 4].copy_from_slice(&value.to_be_bytes());
    };
    add(3, 1500);
    add(6, -1500);
    wrong
}

#[test]
fn a_wrong_index_of_fragments_is_recognised_and_replaced() {
    let Some(folder) = titles() else { return };
    let own = tempfile::tempdir().unwrap();
    let whole = std::fs::read(folder.join("sidx.mp4")).unwrap();
    std::fs::write(own.path().join("wrong.mp4"), with_wrong_times(&whole)).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let args = ["--segment-duration", "1", "--cache", cache.path().to_str().unwrap()];
    let stack = origins::start(Kind::Nginx, own.path(), &args).unwrap();
    let paths = segments(&stack.server, "wrong.mp4", "v1");
    let refused = paths.iter().map(|path| stack.server.get(path)).find(|reply| reply.status != 200).unwrap();
    assert_eq!(refused.status, 404);
    assert!(refused.text().contains("load the playlist or manifest again"), "{}", refused.text());
    // The title is indexed as a whole now, and after a restart too.
    let found = all(&stack.server, "wrong.mp4");
    drop(stack);
    let stack = origins::start(Kind::Nginx, own.path(), &args).unwrap();
    assert!(found == all(&stack.server, "wrong.mp4"));
    let known = segments(&stack.server, "wrong.mp4", "v1");
    assert!(!known.iter().any(|path| paths.contains(path)), "another version");
}

/// Returns a Matroska file in which the times of some cues are 256 ms off.
fn with_wrong_cues(file: &[u8]) -> Vec<u8> {
    let cues = file.windows(4).rposition(|id| id == [0x1c, 0x53, 0xbb, 0x6b]).unwrap();
    let times = (cues..file.len() - 4).filter(|at| file[*at] == 0xb3 && file[at + 1] == 0x82);
    let mut wrong = file.to_vec();
    // Not those by which the title is opened.
    for at in times.skip(3).take(5) {
        wrong[at + 2] ^= 1;
    }
    wrong
}

#[test]
fn wrong_cues_are_recognised_and_replaced() {
    let Some(folder) = titles() else { return };
    let own = tempfile::tempdir().unwrap();
    let whole = std::fs::read(folder.join("cues.mkv")).unwrap();
    std::fs::write(own.path().join("wrong.mkv"), with_wrong_cues(&whole)).unwrap();
    std::fs::write(own.path().join("right.mkv"), &whole).unwrap();
    let stack = origins::start(Kind::Nginx, own.path(), &["--segment-duration", "4"]).unwrap();
    let paths = segments(&stack.server, "wrong.mkv", "v1");
    let refused = paths.iter().map(|path| stack.server.get(path)).find(|reply| reply.status != 200).unwrap();
    assert!(refused.text().contains("load the playlist or manifest again"), "{}", refused.text());
    let pictures = |name: &str| -> Vec<Vec<u8>> {
        segments(&stack.server, name, "v1").iter().map(|path| stack.server.get(path).body).collect()
    };
    let (wrong, right) = (pictures("wrong.mkv").concat().len(), pictures("right.mkv").concat().len());
    assert!(wrong.abs_diff(right) < right / 100, "{wrong} bytes, expected about {right}");
}
