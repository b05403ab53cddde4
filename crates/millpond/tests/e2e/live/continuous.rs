//! Continuous recordings: files without a lost frame between them, servers that are killed, files that are deleted, and buckets that are gone
//! for a while. ffmpeg publishes, and judges the files.

use crate::{
    live::publish::{CLIP, push_clip},
    operations::{
        metrics::{By, watch::Watch},
        upgrade::{Successor, eventually, upgrade},
    },
    support::{
        Running, Server,
        api::api,
        clips, free_port, have,
        origins::{SECRET, credentials},
        wait_for_port,
    },
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Far more than anything here takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(90);

fn args<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let folder = folder.to_str().unwrap();
    [&["live=publish:", "--linger", "0s", "--disk-low", "0", "--record-folder", folder], more].concat()
}

fn serve(folder: &Path, more: &[&str]) -> Server {
    Server::start(&args(folder, more))
}

fn url(server: &Server, path: &str) -> String {
    format!("rtsp://127.0.0.1:{}/{path}", server.rtsp)
}

/// Waits until something is there.
#[track_caller]
fn until<T>(server: &Server, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LONG, "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The list of recorded files.
fn listed(server: &Server, query: &str) -> Value {
    api(server.admin, &format!("recorded-files?limit=1000&{query}"))
}

fn count(server: &Server) -> u64 {
    listed(server, "")["total"].as_u64().unwrap()
}

/// All files below a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn is_part(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "part")
}

fn movies(folder: &Path) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "mp4")).collect()
}

/// Presentation times in ticks and hashes of the frames of a track: decoded, or as they are stored.
fn frames(file: &Path, track: &str, is_copied: bool) -> Vec<(i64, String)> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-i"]).arg(file).args(["-map", track, "-fps_mode", "passthrough"]);
    command.args(if is_copied { &["-c", "copy"][..] } else { &["-enc_time_base", "-1"] });
    let output = command.args(["-f", "framemd5", "-"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{}: {said}", file.display());
    let text = String::from_utf8(output.stdout).unwrap();
    let hashed = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        (fields[2].parse().unwrap(), fields[5].to_owned())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(hashed).collect()
}

/// Checks that the frames of all files, one file after the other, are those of the clip round and round, and that no time is missing within a
/// file. Returns the number of frames of each file.
fn assert_of_clip(files: &[PathBuf], track: &str, is_copied: bool, step: i64) -> Vec<usize> {
    let of_clip = frames(&clips::folder().join(CLIP), track, is_copied);
    let of_files: Vec<_> = files.iter().map(|file| frames(file, track, is_copied)).collect();
    for (file, frames) in files.iter().zip(&of_files) {
        let mut times: Vec<i64> = frames.iter().map(|(pts, _)| *pts).collect();
        times.sort_unstable();
        // Where a recording ends, frames that are presented earlier may be missing.
        let is_last = files.last() == Some(file);
        times.truncate(if is_last { times.len().saturating_sub(4) } else { times.len() });
        let steps = times.windows(2).map(|two| two[1] - two[0]);
        // The clip's sound is longer than its pictures. Where it begins again, two frames of sound may have nearly the same time.
        let least = if is_copied { 0 } else { step * 9 / 10 };
        assert!(steps.clone().all(|found| (least..step * 21 / 10).contains(&found)), "{}: {times:?}", file.display());
    }
    let recorded: Vec<&str> = of_files.iter().flatten().map(|(_, hash)| hash.as_str()).collect();
    let source: Vec<&str> = of_clip.iter().map(|(_, hash)| hash.as_str()).collect();
    let offset = source.iter().position(|hash| *hash == recorded[0]).expect("a frame of the clip");
    let same = source.iter().cycle().skip(offset).zip(&recorded).take_while(|(a, b)| a == b).count();
    // The same frames may be missing here.
    assert!(same + 4 >= recorded.len(), "{same} of {} frames are equal: {files:?}", recorded.len());
    of_files.iter().map(Vec::len).collect()
}

#[test]
fn a_published_stream_is_recorded_in_files_without_a_lost_frame_between_them() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), &["--record", "live/*,other/cam", "--record-file-length", "4s"]);
    assert_eq!(count(&server), 0);
    let publisher = push_clip("tcp", &url(&server, "live/cam"));
    until(&server, || (count(&server) >= 3).then_some(()));
    let modules = api(server.admin, "modules");
    let module = modules["items"].as_array().unwrap().iter().find(|module| module["stream"] == "live/cam").unwrap();
    assert_eq!(
        (&module["kind"], &module["state"], &module["is-configured"]),
        (&json!("archiver"), &json!("running"), &json!(true))
    );
    // The file that is written is hidden.
    until(&server, || files(folder.path()).into_iter().find(|file| is_part(file)));
    drop(publisher);
    until(&server, || files(folder.path()).iter().all(|file| !is_part(file)).then_some(()));
    let recorded = movies(&folder.path().join("live/cam"));
    assert!(recorded.len() >= 4, "{recorded:?}");
    let pictures = assert_of_clip(&recorded, "0:v", false, 3600);
    let sound = assert_of_clip(&recorded, "0:a", true, 1024);
    assert!(pictures.iter().sum::<usize>() >= 200 && sound.iter().sum::<usize>() >= 374, "{pictures:?} {sound:?}");
    // Files begin with the first key frame behind a multiple of four seconds.
    let list = listed(&server, "stream=live/cam");
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), recorded.len());
    for (item, file) in items.iter().zip(&recorded) {
        let name = item["file"].as_str().unwrap();
        assert_eq!(folder.path().join(name), *file);
        let from = item["from"].as_str().unwrap();
        assert_eq!(name, format!("live/cam/{}/{}Z.mp4", &from[..10], from[11..19].replace(':', "-")));
        assert_eq!((&item["state"], &item["lost-frames"]), (&json!("kept"), &json!(0)));
        assert_eq!(item["bytes"].as_u64(), Some(file.metadata().unwrap().len()));
    }
    for item in &items[1..] {
        let seconds: f64 = item["from"].as_str().unwrap()[17..23].parse().unwrap();
        assert!(seconds % 4.0 < 2.2, "{item}");
    }
    // The timeline has one time, which is that of all frames.
    let times = list["streams"][0]["times"].as_array().unwrap();
    let seconds = times[0]["seconds"].as_f64().unwrap();
    let lasts = pictures.iter().sum::<usize>() as f64 / 25.0;
    assert!(times.len() == 1 && (seconds - lasts).abs() < 0.5, "{times:?} {lasts}");
    assert!(server.metric("millpond_recorded_files_completed_total", "") >= 4.0);
    assert_eq!(server.metric("millpond_recorded_files", ""), recorded.len() as f64);
    // The module of a stream that is gone is forgotten; that of a stream that is always wanted waits.
    until(&server, || {
        let modules = api(server.admin, "modules");
        let streams: Vec<_> =
            modules["items"].as_array().unwrap().iter().map(|module| module["stream"].clone()).collect();
        (streams == [json!("other/cam")]).then_some(())
    });
    // A publisher that comes back is recorded again, into new files.
    let _publisher = push_clip("tcp", &url(&server, "live/cam"));
    until(&server, || (count(&server) > recorded.len() as u64).then_some(()));
}

#[test]
fn recorded_files_play_as_a_place() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    let place = format!("recordings={}", folder.path().display());
    let server = serve(
        folder.path(),
        &[
            "--record",
            "*",
            "--record-file-length",
            "3s",
            "--record-name",
            "{name}_{year}{month}{day}T{hour}{minute}{second}Z.mp4",
            &place,
        ],
    );
    let _publisher = push_clip("tcp", &url(&server, "live/cam"));
    let name = until(&server, || listed(&server, "")["items"][0]["file"].as_str().map(str::to_owned));
    assert!(name.starts_with("live_cam_20") && name.ends_with("Z.mp4"), "{name}");
    let playlist = until(&server, || {
        Some(server.get(&format!("recordings/{name}/index.m3u8"))).filter(|reply| reply.status == 200)
    });
    assert!(playlist.text().contains("#EXT-X-"), "{}", playlist.text());
    let url = server.url(&format!("recordings/{name}/index.m3u8"));
    let played = frames(Path::new(&url), "0:v", false);
    let stored = frames(&folder.path().join(&name), "0:v", false);
    let hashes = |frames: &[(i64, String)]| frames.iter().map(|(_, hash)| hash.clone()).collect::<Vec<_>>();
    assert_eq!(hashes(&played), hashes(&stored));
    // The file that is written is no asset.
    let part = until(&server, || files(folder.path()).into_iter().find(|file| is_part(file)));
    let part = part.file_name().unwrap().to_str().unwrap();
    assert_eq!(server.get(&format!("recordings/{part}/index.m3u8")).status, 404);
}

#[test]
fn a_killed_server_loses_no_whole_fragment() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    let more = ["--record", "live/*", "--record-file-length", "1h"];
    let mut server = serve(folder.path(), &more);
    let publisher = push_clip("tcp", &url(&server, "live/cam"));
    let part = until(&server, || files(folder.path()).into_iter().find(|file| is_part(file)));
    until(&server, || (part.metadata().unwrap().len() > 100_000).then_some(()));
    std::thread::sleep(Duration::from_secs(5));
    server.process.0.kill().unwrap();
    server.process.0.wait().unwrap();
    drop(publisher);
    let written = part.metadata().unwrap().len();
    // As if the last fragment had been cut off by a loss of power.
    std::fs::File::options().write(true).open(&part).unwrap().set_len(written - 3000).unwrap();
    let server = serve(folder.path(), &more);
    let file = until(&server, || listed(&server, "")["items"][0]["file"].as_str().map(str::to_owned));
    let recorded = movies(folder.path());
    assert_eq!((recorded.len(), &recorded[0]), (1, &folder.path().join(file)));
    assert!(!part.exists());
    let pictures = assert_of_clip(&recorded, "0:v", false, 3600);
    assert!(pictures[0] >= 100 && pictures[0].is_multiple_of(50), "whole fragments: {pictures:?}");
    let log = server.log_text();
    assert!(log.contains("a recorded file was not complete"), "{log}");
    // It goes on in another file.
    let _publisher = push_clip("tcp", &url(&server, "live/cam"));
    until(&server, || files(folder.path()).into_iter().find(|file| is_part(file)));
    assert_eq!(movies(folder.path()), recorded);
}

#[test]
fn a_camera_is_recorded_at_its_times_and_a_reload_ends_it() {
    let origin = Server::start(&[clips::folder().to_str().unwrap(), "--rtsp-channels", CLIP]);
    let folder = tempfile::tempdir().unwrap();
    let (file, records) = (folder.path().join("millpond.toml"), folder.path().join("records"));
    let write = |record: &str| {
        let text = format!(
            "linger = \"0s\"\nrecord-folder = {records:?}\nrecord-file-length = \"3s\"\nrecord = [{record}]\n\
             [places.cams]\nurl = \"rtsp://127.0.0.1:{}/\"\n",
            origin.rtsp
        );
        std::fs::write(&file, text).unwrap();
    };
    write(&format!("\"cams/{CLIP} 00:00-24:00\""));
    let server = Server::start(&["--config", file.to_str().unwrap()]);
    let reload = || {
        let admin = format!("127.0.0.1:{}", server.admin);
        let reloaded =
            Command::new(env!("CARGO_BIN_EXE_millpond")).args(["reload", "--admin", &admin]).output().unwrap();
        assert!(reloaded.status.success(), "{}", String::from_utf8_lossy(&reloaded.stderr));
    };
    until(&server, || (count(&server) >= 2).then_some(()));
    // Now is none of these times.
    let hour = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() / 3600 % 24;
    write(&format!("\"cams/{CLIP} {:02}:00-{:02}:00\"", (hour + 3) % 24, (hour + 4) % 24));
    reload();
    until(&server, || files(&records).iter().all(|file| !is_part(file)).then_some(()));
    assert_eq!(api(server.admin, "modules")["items"], json!([]));
    assert_eq!(
        api(server.admin, "graph")["modules"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|module| module["kind"] == "archiver")
            .count(),
        0
    );
    let recorded = movies(&records);
    let pictures = assert_of_clip(&recorded, "0:v", false, 3600);
    assert!(pictures.iter().sum::<usize>() >= 100, "{pictures:?}");
    // The program lists what there is.
    let admin = format!("127.0.0.1:{}", server.admin);
    let list = Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(["record", "files", &format!("cams/{CLIP}"), "--admin", &admin])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&list.stdout);
    assert_eq!(
        said.lines().filter(|line| line.contains(" kept ") && line.ends_with("Z.mp4")).count(),
        recorded.len(),
        "{said}"
    );
    assert_eq!(said.lines().filter(|line| line.contains(" to ")).count(), 1, "{said}");
    write(&format!("\"cams/{CLIP}\""));
    reload();
    until(&server, || (count(&server) > recorded.len() as u64).then_some(()));
}

#[test]
fn an_upgrade_goes_on_in_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let (place, channel) = (format!("films={}", clips::folder().display()), format!("films/{CLIP}"));
    let mut server = serve(
        folder.path(),
        &[&place, "--rtsp-channels", &channel, "--record", &channel, "--record-file-length", "1h"],
    );
    let part = until(&server, || files(folder.path()).into_iter().find(|file| is_part(file)));
    std::thread::sleep(Duration::from_secs(4));
    let _successor = Successor::of(&upgrade(server.admin));
    eventually("the old process ends", || server.process.0.try_wait().unwrap().is_some_and(|status| status.success()));
    until(&server, || (!part.exists() && count(&server) == 1).then_some(()));
    let first = movies(folder.path());
    let pictures = assert_of_clip(&first, "0:v", false, 512);
    assert!(pictures[0] >= 50, "{pictures:?}");
    let tail = listed(&server, "")["items"][0]["frames"].as_u64().unwrap();
    assert!(tail >= 50, "the old process has completed it: {tail}");
    until(&server, || files(folder.path()).into_iter().find(|file| is_part(file)));
}

#[test]
fn the_oldest_files_are_deleted_and_those_of_others_stay() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(clips::folder().join(CLIP), folder.path().join("film.mp4")).unwrap();
    std::fs::create_dir(folder.path().join("live")).unwrap();
    std::fs::copy(clips::folder().join(CLIP), folder.path().join("live/old.mp4")).unwrap();
    let server = serve(folder.path(), &["--record", "live/*", "--record-file-length", "2s", "--record-keep", "5s"]);
    let _publisher = push_clip("tcp", &url(&server, "live/cam"));
    let first =
        until(&server, || movies(&folder.path().join("live")).into_iter().find(|file| !file.ends_with("old.mp4")));
    until(&server, || (!first.exists()).then_some(()));
    until(&server, || (server.metric("millpond_recorded_files_deleted_total", "age") >= 3.0).then_some(()));
    let list = listed(&server, "");
    let seconds: f64 = list["items"].as_array().unwrap().iter().map(|item| item["seconds"].as_f64().unwrap()).sum();
    assert!((1.0..12.0).contains(&seconds), "{list}");
    assert!(folder.path().join("film.mp4").exists() && folder.path().join("live/old.mp4").exists());
    // It is still recorded.
    until(&server, || files(folder.path()).into_iter().find(|file| is_part(file)));
}

/// An S3-compatible server on a port, over a folder with the bucket `media`.
fn bucket(root: &Path, port: u16) -> Option<Running> {
    if !have("versitygw") {
        return None;
    }
    std::fs::create_dir_all(root.join("media")).unwrap();
    let mut command = Command::new("versitygw");
    command.args(["--access", "tester", "--secret", SECRET, "--port", &format!("127.0.0.1:{port}"), "posix"]);
    let log = root.with_extension("log");
    let child = command.arg(root).stdout(std::fs::File::create(&log).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    let running = Running(child);
    wait_for_port(port, &log);
    Some(running)
}

struct Bucket {
    root: TempDir,
    port: u16,
    process: Option<Running>,
}

impl Bucket {
    fn start() -> Option<Self> {
        let (root, port) = (tempfile::tempdir().unwrap(), free_port());
        let process = bucket(&root.path().join("s3"), port)?;
        Some(Self { root, port, process: Some(process) })
    }

    fn media(&self) -> PathBuf {
        self.root.path().join("s3/media")
    }

    fn serve(&self, folder: &Path, more: &[&str]) -> Server {
        let env = credentials(&format!("http://127.0.0.1:{}", self.port), SECRET);
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let more = [&["--record", "live/*", "--record-to", "s3://media/rec"], more].concat();
        Server::start_with(&args(folder, &more), &env)
    }

    fn stop(&mut self) {
        self.process = None;
    }

    fn restart(&mut self) {
        self.process = bucket(&self.root.path().join("s3"), self.port);
    }
}

#[test]
fn files_wait_for_a_bucket_that_is_gone_and_for_a_server_that_is_killed() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut bucket) = Bucket::start() else { return };
    let mut server = bucket.serve(folder.path(), &["--record-file-length", "2s"]);
    let publisher = push_clip("tcp", &url(&server, "live/cam"));
    let uploaded = |bucket: &Bucket| movies(&bucket.media());
    until(&server, || (uploaded(&bucket).len() >= 2).then_some(()));
    until(&server, || (server.metric("millpond_recording_uploads_total", "") >= 2.0).then_some(()));
    let list = listed(&server, "");
    assert!(list["items"].as_array().unwrap().iter().any(|item| item["state"] == "uploaded"), "{list}");
    bucket.stop();
    let before = uploaded(&bucket).len();
    until(&server, || (movies(folder.path()).len() >= 4).then_some(()));
    assert_eq!(uploaded(&bucket).len(), before);
    until(&server, || (server.metric("millpond_recording_uploads_failed_total", "") >= 1.0).then_some(()));
    server.process.0.kill().unwrap();
    server.process.0.wait().unwrap();
    drop(publisher);
    let waiting =
        files(folder.path()).into_iter().filter(|file| is_part(file) || movies(folder.path()).contains(file)).count();
    bucket.restart();
    let server = bucket.serve(folder.path(), &["--record-file-length", "2s"]);
    until(&server, || {
        (uploaded(&bucket).len() >= before + waiting - 1 && movies(folder.path()).is_empty()).then_some(())
    });
    // Nothing is left in the spool but the lock, and everything is in the bucket.
    until(&server, || (files(folder.path()).len() == 1).then_some(()));
    let recorded: Vec<_> =
        uploaded(&bucket).into_iter().filter(|file| file.starts_with(bucket.media().join("rec"))).collect();
    assert!(recorded.len() >= 6, "{recorded:?}");
    let pictures = assert_of_clip(&recorded, "0:v", false, 3600);
    assert_of_clip(&recorded, "0:a", true, 1024);
    assert!(pictures.iter().sum::<usize>() > 6 * 40, "{pictures:?}");
}

#[test]
fn a_large_file_is_uploaded_in_parts_that_a_killed_server_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut bucket) = Bucket::start() else { return };
    // A complete file of 100 MiB: a small one, with a box of zeros before its last one.
    let small = tempfile::tempdir().unwrap();
    let recorder = serve(small.path(), &["--record", "live/*", "--record-file-length", "2s"]);
    let publisher = push_clip("tcp", &url(&recorder, "live/cam"));
    let file = until(&recorder, || movies(small.path()).into_iter().next());
    drop((publisher, recorder));
    let bytes = std::fs::read(&file).unwrap();
    let tail = u32::from_be_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
    let (media, tail) = bytes.split_at(bytes.len() - tail);
    let filling = 100 << 20_u32;
    let large = [media, &(filling as u32).to_be_bytes(), b"free", &vec![7; filling - 8], tail].concat();
    std::fs::create_dir_all(folder.path().join("live/cam")).unwrap();
    std::fs::write(folder.path().join("live/cam/large.mp4"), &large).unwrap();
    let note = folder.path().join("live/cam/.large.mp4.upload");
    let mut server = bucket.serve(folder.path(), &[]);
    let parts = until(&server, || {
        let note: Value = serde_json::from_slice(&std::fs::read(&note).ok()?).ok()?;
        Some(note["tags"].as_array()?.len()).filter(|parts| *parts >= 2)
    });
    server.process.0.kill().unwrap();
    server.process.0.wait().unwrap();
    let kept: Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    assert!(
        kept["tags"].as_array().unwrap().len() >= parts && folder.path().join("live/cam/large.mp4").exists(),
        "{kept}"
    );
    bucket.stop();
    bucket.restart();
    let server = bucket.serve(folder.path(), &[]);
    until(&server, || (!folder.path().join("live").exists()).then_some(()));
    let object = std::fs::read(bucket.media().join("rec/live/cam/large.mp4")).unwrap();
    assert!(object == large, "{} of {} bytes", object.len(), large.len());
}

#[test]
fn a_full_spool_loses_the_oldest_files_and_says_so() {
    clips::folder();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut bucket) = Bucket::start() else { return };
    bucket.stop();
    let server = bucket.serve(folder.path(), &["--record-file-length", "2s", "--record-spool", "256KiB"]);
    let watch = Watch::begin(&server);
    let _publisher = push_clip("tcp", &url(&server, "live/cam"));
    let first = until(&server, || movies(folder.path()).into_iter().next());
    until(&server, || (!first.exists()).then_some(()));
    until(&server, || (server.metric("millpond_recorded_files_deleted_total", "size") >= 2.0).then_some(()));
    assert!(server.metric("millpond_events_total", "millpond.recording.dropped") >= 2.0);
    let log = server.log_text();
    assert!(log.contains("the spool is full"), "{log}");
    let bytes: u64 = movies(folder.path()).iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes < 512 << 10, "{bytes}");
    bucket.restart();
    until(&server, || (!movies(&bucket.media()).is_empty()).then_some(()));
    watch.end(By::RecordedFiles, &server);
}
