//! A channel that is pushed to a listener of ffmpeg, which leaves.

use super::{By, watch::Watch};
use crate::support::{Running, Server, api::send, free_port, have};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

#[test]
fn pushes() {
    if !have("ffmpeg") {
        return;
    }
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample/180p.mp4");
    let place = sample.parent().unwrap().to_str().unwrap();
    let server = Server::start(&[place, "--rtsp-channels", "180p.mp4"]);
    let watch = Watch::begin(&server);
    let url = format!("srt://127.0.0.1:{}", free_port());
    let mut listener = Command::new("ffmpeg");
    listener.args(["-v", "error", "-nostdin", "-i", &format!("{url}?mode=listener"), "-f", "null", "-"]);
    let listener = Running(listener.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let body = serde_json::json!({ "stream": "180p.mp4", "kind": "push", "options": { "url": url } });
    let began = Instant::now();
    while send(server.admin, "POST", "modules", &body, &[]).status != 201 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
    }
    watch.until("millpond_pushed_frames_total", || ());
    watch.until("millpond_pushes", || ());
    drop(listener);
    watch.until("millpond_pushes_failed_total", || ());
    watch.end(By::Pushes, &server);
}
