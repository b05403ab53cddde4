//! A viewer by RTMP, who leaves.

use super::{By, watch::Watch};
use crate::support::{Running, Server, clips, free_port};
use std::process::{Command, Stdio};

fn ffmpeg(arguments: &[&str]) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(arguments);
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn a_viewer_by_rtmp() {
    let clip = clips::folder().join("h264_aac.mp4");
    let port = free_port();
    let server = Server::start(&["live=publish:", "--linger", "0s", "--rtmp", &format!("127.0.0.1:{port}")]);
    let watch = Watch::begin(&server);
    let url = format!("rtmp://127.0.0.1:{port}/live/cam");
    let clip = clip.to_str().unwrap();
    let _publisher = ffmpeg(&["-re", "-stream_loop", "-1", "-i", clip, "-c", "copy", "-f", "flv", &url]);
    let viewer = ffmpeg(&["-i", &url, "-f", "null", "-"]);
    watch.until("millpond_rtmp_sent_bytes_total", || ());
    watch.until("millpond_rtmp_viewers", || ());
    drop(viewer);
    watch.until("millpond_rtmp_viewers_ended_total", || ());
    watch.end(By::Rtmp, &server);
}
