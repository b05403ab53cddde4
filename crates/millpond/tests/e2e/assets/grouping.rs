//! Every way to group files into an asset, and index files that stand for media.

use crate::support::{
    self, Server, clips, decode,
    origins::{self, Kind, Stack},
};
use std::{path::Path, process::Command};

over_every_storage! {
    a_folder_a_manifest_and_a_list_in_the_url
    an_index_file_stands_for_its_media_and_ffmpeg_reads_it_too
}

/// One title in two sizes, a second language, and subtitles.
fn title(folder: &Path) {
    let clip = |name: &str, args: &str| clips::make(&folder.join(name), args);
    clip("a_240.mp4", "V S -vf scale=426:240 -c:v libx264 -g 50 -b:v 200k -c:a aac -metadata:s:a:0 language=eng");
    clip("a_480.mp4", "V -vf scale=854:480 -c:v libx264 -g 50 -b:v 700k");
    clip(
        "a_de.m4a",
        "-f lavfi -i sine=frequency=880:sample_rate=48000:duration=9 -c:a aac -metadata:s:a:0 language=deu",
    );
    std::fs::write(
        folder.join("a.en.vtt"),
        "WEBVTT\n\n00:01.000 --> 00:03.500\nHello\n\n00:05.000 --> 00:08.000\nStill here\n",
    )
    .unwrap();
    std::fs::write(folder.join("a.de.srt"), "1\n00:00:01,000 --> 00:00:03,500\nHallo <i>du</i>\n").unwrap();
}

fn check(server: &Server, asset: &str, video: usize, audio: &[&str], subtitles: usize) {
    let reply = server.get(&format!("{asset}/index.m3u8"));
    let text = reply.text();
    assert_eq!(reply.status, 200, "{asset}: {text}");
    assert_eq!(text.matches("#EXT-X-STREAM-INF").count(), video, "{asset}: {text}");
    assert_eq!(text.matches("TYPE=SUBTITLES").count(), subtitles, "{asset}: {text}");
    for language in audio {
        let found = text.lines().any(|l| l.contains("TYPE=AUDIO") && l.contains(&format!("LANGUAGE=\"{language}\"")));
        assert!(found, "{asset} has no sound in {language}: {text}");
    }
}

fn a_folder_a_manifest_and_a_list_in_the_url(kind: Kind) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("a");
    std::fs::create_dir(&folder).unwrap();
    title(&folder);
    let smil = r#"<?xml version="1.0"?><smil xmlns="http://www.w3.org/2001/SMIL20/Language"><body><switch>
        <video src="a/a_240.mp4" systemBitrate="200000"/><video src="a/a_480.mp4" systemBitrate="700000"/>
        <audio src="a/a_240.mp4" systemLanguage="eng"/><audio src="a/a_de.m4a" systemLanguage="deu"/>
        <textstream src="a/a.en.vtt" systemLanguage="eng"/></switch></body></smil>"#;
    std::fs::write(root.path().join("film.smil"), smil).unwrap();
    std::fs::write(root.path().join("film.ism"), smil).unwrap();
    let Some(Stack { server, .. }) = &origins::start_named(kind, Some("films"), root.path(), &[]) else { return };
    check(server, "films/a", 2, &["en", "de"], 2);
    check(server, "films/film.smil", 2, &["en", "de"], 1);
    check(server, "films/film.ism", 2, &["en", "de"], 1);
    check(server, "films/a/a_,240,480,.mp4.urlset", 2, &["en"], 0);
    let vtt = server.get("films/a/s1/all.vtt").text() + &server.get("films/a/s2/all.vtt").text();
    assert!(vtt.contains("Still here") && vtt.contains("Hallo <i>du</i>"), "{vtt}");
}

#[test]
fn a_manifest_names_tracks_by_number() {
    let root = tempfile::tempdir().unwrap();
    let two = "V S -map 0:v -map 1:a -map 1:a -c:v libx264 -g 50 -c:a aac -metadata:s:a:0 language=eng -metadata:s:a:1 language=deu";
    clips::make(&root.path().join("two.mp4"), two);
    let entries =
        r#"<video src="two.mp4"/><audio src="two.mp4" systemLanguage="fra"><param name="trackID" value="3"/></audio>"#;
    std::fs::write(root.path().join("one.smil"), format!("<smil><body><switch>{entries}</switch></body></smil>"))
        .unwrap();
    let server = &Server::start(&[root.path().to_str().unwrap()]);
    check(server, "two.mp4", 1, &["en", "de"], 0);
    check(server, "one.smil", 1, &["fr"], 0);
    let text = server.get("one.smil/index.m3u8").text();
    assert_eq!(text.matches("TYPE=AUDIO").count(), 1, "{text}");
}

#[test]
fn sidecars_beside_a_single_file() {
    let root = tempfile::tempdir().unwrap();
    std::fs::copy(clips::folder().join("h264_aac.mp4"), root.path().join("film.mp4")).unwrap();
    std::fs::write(root.path().join("film.fr.vtt"), "WEBVTT\n\n00:01.000 --> 00:02.000\nBonjour\n").unwrap();
    std::fs::write(root.path().join("other.fr.vtt"), "WEBVTT\n\n00:01.000 --> 00:02.000\nNon\n").unwrap();
    let server = &Server::start(&[root.path().to_str().unwrap()]);
    check(server, "film.mp4", 1, &[], 1);
    assert!(server.get("film.mp4/s1/1.vtt").text().contains("Bonjour"));
}

/// Warnings in the description of an asset.
fn warnings(server: &Server, path: &str) -> String {
    let described = server.get(&format!(".millpond/asset?path={path}"));
    assert_eq!(described.status, 200, "{}", described.text());
    let described: serde_json::Value = serde_json::from_slice(&described.body).unwrap();
    described["warnings"].to_string()
}

#[test]
fn subtitles_that_cannot_be_read_are_left_out_of_their_film() {
    let root = tempfile::tempdir().unwrap();
    std::fs::copy(clips::folder().join("h264_aac.mp4"), root.path().join("film.mp4")).unwrap();
    std::fs::write(root.path().join("film.fr.vtt"), "WEBVTT\n\n00:01.000 --> 00:02.000\nBonjour\n").unwrap();
    std::fs::write(root.path().join("film.en.srt"), "no subtitles\n").unwrap();
    std::fs::write(root.path().join("film.de.vtt"), "no WebVTT\n").unwrap();
    let server = &Server::start(&[root.path().to_str().unwrap()]);
    check(server, "film.mp4", 1, &[], 1);
    let told = warnings(server, "film.mp4");
    assert!(told.contains("film.en.srt") && told.contains("film.de.vtt"), "{told}");
}

#[test]
fn a_rendition_that_cannot_be_read_is_left_out_of_its_film() {
    let root = tempfile::tempdir().unwrap();
    std::fs::copy(clips::folder().join("h264_aac.mp4"), root.path().join("film_720p.mp4")).unwrap();
    std::fs::write(root.path().join("film_480p.mp4"), "no film, and never was one").unwrap();
    std::fs::copy(clips::folder().join("h264_aac.mp4"), root.path().join("other.mp4")).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let file = std::fs::File::options().write(true).open(root.path().join("film_480p.mp4")).unwrap();
    file.set_modified(old).unwrap();
    let server = &Server::start(&[root.path().to_str().unwrap()]);
    let path = "film_,720p,480p,.mp4.urlset";
    check(server, path, 1, &[], 0);
    let told = warnings(server, path);
    assert!(told.contains("film_480p.mp4"), "{told}");
    // Once it can be read, it is a rendition.
    std::fs::copy(clips::folder().join("h264_aac.mp4"), root.path().join("film_480p.mp4")).unwrap();
    let begun = std::time::Instant::now();
    while server.get(&format!("{path}/index.m3u8")).text().matches("#EXT-X-STREAM-INF").count() < 2 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{}", warnings(server, path));
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn films_of_one_name_in_two_containers_are_two_titles() {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    std::fs::copy(clips::folder().join("h264_aac.mp4"), root.path().join("film.mp4")).unwrap();
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-t", "3", "-i"]).arg(root.path().join("film.mp4"));
    assert!(command.args(["-c", "copy"]).arg(root.path().join("film.mkv")).status().unwrap().success());
    let server = &Server::start(&[root.path().to_str().unwrap()]);
    let list = server.get(".millpond/all.m3u").text();
    for name in ["film.mp4", "film.mkv"] {
        assert!(list.contains(&format!("/{name}/index.m3u8")), "{list}");
        assert_eq!(server.get(&format!("{name}/index.m3u8")).status, 200);
    }
    // Names that an operator joins are compared where they differ in rendition words only.
    assert_eq!(server.get("film.,mp4,mkv,.urlset/index.m3u8").status, 200, "an operator's list");
}

/// Runs `millpond index`. Returns whether it succeeded, and its errors.
fn index(arguments: &[&Path]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("index").args(arguments).output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn index_files_of_one_stem_are_two_and_others_stay() {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    clips::make(&at("film.mkv"), "V S -t 2 -c:v libx264 -preset ultrafast -g 25 -c:a aac");
    clips::make(&at("film.mp4"), "V S -t 3 -c:v libx264 -preset ultrafast -g 25 -c:a aac");
    assert_eq!(index(&[root.path()]), (true, String::new()));
    assert!(!at("film.dref.mp4").exists());
    for name in ["film.mkv", "film.mp4"] {
        let index = at(&format!("{name}.dref.mp4"));
        let by_ffmpeg = ["-enable_drefs", "1", "-use_absolute_path", "1", "-i", index.to_str().unwrap()];
        let reference = decode::video(&["-i", at(name).to_str().unwrap()], "0:v:0").unwrap();
        decode::same_video(&decode::video(&by_ffmpeg, "0:v:0").unwrap(), &reference, 0.0, 2e-3).unwrap();
    }
    let server = &Server::start(&[root.path().to_str().unwrap()]);
    let list = server.get(".millpond/all.m3u").text();
    assert!(list.contains("/film.mkv.dref.mp4/") && list.contains("/film.mp4.dref.mp4/"), "{list}");
    assert!(!list.contains("/film.mkv/") && !list.contains("/film.mp4/"), "{list}");

    // If it is indexed alone, each file has an index file named after its stem.
    for _ in 0..2 {
        assert_eq!(index(&[&at("film.mp4")]), (true, String::new()), "its own index file is written again");
    }
    let before = std::fs::read(at("film.dref.mp4")).unwrap();
    let (is_written, error) = index(&[&at("film.mkv")]);
    let told = "film.dref.mp4: is the index file of film.mp4, not of film.mkv; it is kept as it is: rename";
    assert!(!is_written && error.contains(told), "{error}");
    assert!(std::fs::read(at("film.dref.mp4")).unwrap() == before);
    std::fs::rename(at("film.mp4"), at("film.dref.mp4")).unwrap();
    let (is_written, error) = index(&[&at("film.mkv")]);
    assert!(!is_written && error.contains("film.dref.mp4: exists, and is no index file of film.mkv;"), "{error}");
}

/// A file that can't have an index file is refused with the reason, and with a command that makes a file that can.
#[test]
fn each_container_has_an_index_file_or_a_cure() {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    for (name, arguments, is_indexed) in [
        ("a.avi", "V S -t 2 -c:v libx264 -bf 0 -c:a mp3", false),
        ("b.ts", "V S -t 2 -c:v libx264 -c:a aac", false),
        ("c.flv", "V S -t 2 -c:v libx264 -c:a aac", true),
        ("d.mp3", "S -t 2", true),
        ("e.flac", "S -t 2", true),
        ("f.ogg", "S -t 2 -c:a libopus", true),
        ("g.wav", "S -t 2", true),
        ("h.webm", "V -t 1 -c:v libvpx -deadline realtime", true),
        ("i.ac3", "S -t 2 -c:a ac3", false),
    ] {
        let file = root.path().join(name);
        clips::make(&file, arguments);
        let (is_written, error) = index(&[&file]);
        assert_eq!((is_written, error.is_empty()), (is_indexed, is_indexed), "{name}: {error}");
        if is_indexed {
            continue;
        }
        assert!(error.starts_with(&format!("millpond: {name}: ")) && !error.contains("at byte"), "{error}");
        let command = error.trim_end().split("ffmpeg -i ").nth(1).unwrap_or_else(|| panic!("no command: {error}"));
        let shell = format!("ffmpeg -v error -nostdin -y -i {command}");
        let made = Command::new("sh").args(["-c", &shell]).current_dir(root.path()).status().unwrap();
        assert!(made.success(), "{shell}");
        let made = file.with_extension("mp4");
        assert_eq!(index(&[&made]), (true, String::new()), "{name}");
    }
}

fn an_index_file_stands_for_its_media_and_ffmpeg_reads_it_too(kind: Kind) {
    if !support::have("ffmpeg") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    for name in ["h264_aac.mp4", "h264_fragmented.mp4"] {
        std::fs::copy(clips::folder().join(name), root.path().join(name)).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("index").arg(root.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let Some(Stack { server, .. }) = &origins::start(kind, root.path(), &[]) else { return };
    for name in ["h264_aac", "h264_fragmented"] {
        let (media, index) = (root.path().join(format!("{name}.mp4")), root.path().join(format!("{name}.dref.mp4")));
        assert!(std::fs::metadata(&index).unwrap().len() * 4 < std::fs::metadata(&media).unwrap().len());
        let reference = decode::video(&["-i", media.to_str().unwrap()], "0:v:0").unwrap();
        let by_ffmpeg = ["-enable_drefs", "1", "-use_absolute_path", "1", "-i", index.to_str().unwrap()];
        let read = decode::video(&by_ffmpeg, "0:v:0").unwrap();
        decode::same_video(&read, &reference, 0.0, 1e-4).unwrap();
        let url = server.url(&format!("{name}.dref.mp4/index.m3u8"));
        let ours = decode::video(&["-i", &url], "0:v:0").unwrap();
        decode::same_video(&ours, &reference, 0.0, 1e-4).unwrap();
    }
}
