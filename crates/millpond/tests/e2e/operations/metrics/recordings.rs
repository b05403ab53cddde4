//! Recordings of channels, onto disks that are full and slow.

use super::{By, watch::Watch};
use crate::support::{Running, Server, api::send, have, skip, small_disk::SmallDisk};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A server with a channel and a folder for its recordings.
fn serve(channel: &Path, recordings: &Path) -> Server {
    let name = channel.file_name().unwrap().to_str().unwrap();
    let (place, folder) = (channel.parent().unwrap().to_str().unwrap(), recordings.to_str().unwrap());
    Server::start(&[place, "--rtsp-channels", name, "--record-folder", folder])
}

fn record(server: &Server, channel: &Path) {
    let path = channel.file_name().unwrap().to_str().unwrap();
    let reply = send(server.admin, "POST", "recordings", &serde_json::json!({ "path": path }), &[]);
    assert_eq!(reply.status, 201, "{}", reply.text());
}

#[test]
fn recordings() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample/180p.mp4");
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&sample, folder.path());
    let watch = Watch::begin(&server);
    record(&server, &sample);
    watch.until("millpond_recorded_frames_total", || ());
    watch.end(By::Recordings, &server);
}

#[test]
fn a_recording_onto_a_full_disk() {
    let Some(disk) = SmallDisk::mount() else { return };
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample/180p.mp4");
    std::fs::write(disk.0.path().join("other"), vec![0; 3 << 20]).unwrap_err();
    let server = serve(&sample, disk.0.path());
    let watch = Watch::begin(&server);
    record(&server, &sample);
    watch.until("millpond_recordings_failed_total", || ());
    watch.end(By::FullRecording, &server);
}

/// The thread of a server that writes a recording. It begins when the stream does.
fn recorder(server: &Server) -> String {
    let began = Instant::now();
    loop {
        match find_recorder(server) {
            Some(thread) => return thread,
            None => assert!(began.elapsed() < Duration::from_secs(40), "no recorder"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn find_recorder(server: &Server) -> Option<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.process.0.id())).unwrap();
    let is_recorder = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "recorder")
    };
    let task = tasks.filter_map(Result::ok).find(is_recorder)?;
    Some(task.file_name().to_str().unwrap().to_owned())
}

/// Makes a clip of 4 s that no codec makes small.
pub(crate) fn noise(file: &Path, size: &str) {
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-nostdin", "-f", "rawvideo", "-s", size, "-pix_fmt", "yuv420p", "-r", "25"]);
    ffmpeg.args(["-i", "/dev/urandom", "-t", "4", "-c:v", "libx264", "-preset", "ultrafast", "-qp", "0", "-g", "25"]);
    assert!(ffmpeg.arg(file).status().unwrap().success());
}

#[test]
fn a_recording_onto_a_slow_disk() {
    if !have("strace") {
        return;
    }
    // 70 Mbit/s: the frames that wait are soon as many as may.
    let folder = tempfile::tempdir().unwrap();
    let noise = folder.path().join("noise.mp4");
    self::noise(&noise, "640x360");
    let server = serve(&noise, folder.path());
    let watch = Watch::begin(&server);
    record(&server, &noise);
    let thread = recorder(&server);
    // Each write takes a minute longer.
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-p", &thread, "-o", "/dev/null", "-e", "trace=writev"]);
    strace.args(["-e", "inject=writev:delay_enter=60000000"]).stderr(Stdio::null());
    let mut strace = Running(strace.spawn().unwrap());
    std::thread::sleep(Duration::from_millis(500));
    if strace.0.try_wait().unwrap().is_some() {
        skip("another process can't be traced here");
        return;
    }
    watch.until("millpond_recording_lost_frames_total", || ());
    watch.end(By::SlowRecording, &server);
}
