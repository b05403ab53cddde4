//! Paths of running streams. A path that has a form lies below its stream, and no number of it changes when it is written.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_library::{GuideFormat, LiveMedia, LiveResource, LiveRoute};
use millpond_package::hls::Container;

fuzz_target!(|path: &str| {
    let Some(LiveRoute { stream, resource }) = LiveRoute::parse(path) else { return };
    let folder = |container| if container == Container::Ts { "ts/" } else { "" };
    let tail = match resource {
        LiveResource::Multivariant(container) => format!("{}index.m3u8", folder(container)),
        LiveResource::Mpd => "index.mpd".to_owned(),
        LiveResource::Snapshot => "snapshot.jpg".to_owned(),
        LiveResource::Copy => "window.copy".to_owned(),
        LiveResource::Guide(GuideFormat::Xmltv) => "epg.xml".to_owned(),
        LiveResource::Guide(GuideFormat::Json) => "epg.json".to_owned(),
        LiveResource::WebRtc(of, None) => of.name().to_owned(),
        LiveResource::WebRtc(of, Some(id)) => format!("{}/{id}", of.name()),
        LiveResource::Long(Container::Fmp4) => "stream.mp4".to_owned(),
        LiveResource::Long(Container::Ts) => "stream.ts".to_owned(),
        LiveResource::Media(container, track) => format!("{}{track}/index.m3u8", folder(container)),
        LiveResource::OfRun { run, track, media } => match media {
            LiveMedia::Init(epoch) => format!("~{run}/{track}/init-{epoch}.mp4"),
            LiveMedia::Segment(number) => format!("~{run}/{track}/{number}.m4s"),
            LiveMedia::SegmentAt(start) => format!("~{run}/{track}/t{start}.m4s"),
            LiveMedia::Part(number, part) => format!("~{run}/{track}/{number}.{part}.m4s"),
            LiveMedia::Transport(number) => format!("ts/~{run}/{track}/{number}.ts"),
            LiveMedia::Text(container, number) => format!("{}~{run}/{track}/{number}.vtt", folder(container)),
        },
    };
    let path = path.strip_prefix('/').unwrap_or(path);
    let rest = path.strip_suffix(&*tail).expect("the path ends with its resource");
    assert_eq!(rest.strip_suffix('/').unwrap_or(rest), stream);
});
