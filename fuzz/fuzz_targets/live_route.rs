//! Paths of running streams. A path that has a form lies below its stream, and no number of it changes when it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_library::{LiveMedia, LiveResource, LiveRoute};

fuzz_target!(|path: &str| {
    let Some(LiveRoute { stream, resource }) = LiveRoute::parse(path) else { return };
    let tail = match resource {
        LiveResource::Multivariant => "index.m3u8".to_owned(),
        LiveResource::Mpd => "index.mpd".to_owned(),
        LiveResource::Long => "stream.mp4".to_owned(),
        LiveResource::Media(track) => format!("{track}/index.m3u8"),
        LiveResource::OfRun { run, track, media: LiveMedia::Init(epoch) } => format!("~{run}/{track}/init-{epoch}.mp4"),
        LiveResource::OfRun { run, track, media: LiveMedia::Segment(number) } => format!("~{run}/{track}/{number}.m4s"),
        LiveResource::OfRun { run, track, media: LiveMedia::Part(number, part) } => {
            format!("~{run}/{track}/{number}.{part}.m4s")
        }
    };
    let path = path.strip_prefix('/').unwrap_or(path);
    let rest = path.strip_suffix(&*tail).expect("the path ends with its resource");
    assert_eq!(rest.strip_suffix('/').unwrap_or(rest), stream);
});
