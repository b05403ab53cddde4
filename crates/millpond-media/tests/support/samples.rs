//! Clips that ffmpeg makes, each once a build.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

const PICTURE: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=3";
const SOUND: &str = "-f lavfi -i sine=frequency=440:sample_rate=48000:duration=3";

/// Returns an MP4 file and its path. `V` and `S` stand for the test picture and the test sound.
pub(crate) fn clip(name: &str, arguments: &str) -> (Vec<u8>, PathBuf) {
    let file = folder().join(name);
    if !file.exists() {
        let arguments = arguments.replace("V ", &format!("{PICTURE} ")).replace("S ", &format!("{SOUND} "));
        run(&arguments, &file);
    }
    (std::fs::read(&file).unwrap(), file)
}

/// Returns the streams of a file in another container: `mpegts` or `avi`.
pub(crate) fn copied(source: &Path, container: &str, arguments: &str) -> Vec<u8> {
    let file = source.with_extension(container.trim_start_matches("mpeg"));
    if !file.exists() {
        run(&format!("-i {} -c copy {arguments} -f {container}", source.display()), &file);
    }
    std::fs::read(&file).unwrap()
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("media-samples-1");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Writes a file by way of another name, so that tests in parallel never see a part of it.
fn run(arguments: &str, file: &Path) {
    let extension = file.extension().unwrap().to_string_lossy();
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let part = file.with_extension(format!("{}.{thread}.part.{extension}", std::process::id()));
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-y"]).args(arguments.split_whitespace()).arg(&part);
    let status = command.status().expect("ffmpeg is installed");
    assert!(status.success(), "ffmpeg can't make {}", file.display());
    std::fs::rename(part, file).unwrap();
}
