//! Multivariant playlists that ffmpeg has made, and playlists with discontinuities, as titles.

use super::{
    hls_folders::{assert_heard, assert_heard_after, make},
    joined::{BASELINE, LARGE, same},
    joined_periods::{decoded, stretches},
};
use crate::support::{
    self, Server, clips,
    decode::{self, Frame},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Form of a ladder: its name, streams of the two films, groups of streams, and arguments for the format of segments.
type Form = (&'static str, &'static [&'static str], &'static str, &'static [&'static str]);

/// The sound of the second film within both variants, and as one rendition for both.
const FORMS: [Form; 4] = [
    ("muxed", &["0:v", "1:v", "1:a", "1:a"], "v:0,a:0 v:1,a:1", &[]),
    ("shared", &["0:v", "1:v", "1:a"], "v:0,agroup:s v:1,agroup:s a:0,agroup:s,language:eng,default:yes", &[]),
    ("muxed_fragments", &["0:v", "1:v", "1:a", "1:a"], "v:0,a:0 v:1,a:1", &["-hls_segment_type", "fmp4"]),
    (
        "shared_fragments",
        &["0:v", "1:v", "1:a"],
        "v:0,agroup:s v:1,agroup:s a:0,agroup:s,language:eng,default:yes",
        &["-hls_segment_type", "fmp4"],
    ),
];

/// Makes a multivariant playlist of two films in a folder of its own.
fn make_ladder(films: [&Path; 2], place: &Path, (name, streams, groups, form): Form) {
    let folder = place.join(name);
    fs::create_dir(&folder).unwrap();
    let extension = if form.is_empty() { "ts" } else { "m4s" };
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-y"]);
    for film in films {
        command.arg("-i").arg(film);
    }
    for stream in streams {
        command.args(["-map", stream]);
    }
    command.args(["-c", "copy", "-f", "hls", "-hls_time", "1", "-hls_playlist_type", "vod"]).args(form);
    command.args(["-master_pl_name", "main.m3u8", "-var_stream_map", groups, "-hls_segment_filename"]);
    command.arg(folder.join(format!("v%v_%d.{extension}"))).arg(folder.join("v%v.m3u8"));
    assert!(command.status().unwrap().success(), "ffmpeg can't make {name}");
}

/// Returns the pictures and the sound of a film.
fn film(path: &Path) -> (Vec<Frame>, decode::Sound) {
    let input = ["-i", path.to_str().unwrap()];
    (decode::video(&input, "0:v").unwrap(), decode::audio(&input, "0:a").unwrap())
}

/// Returns the address of the media playlist of the variant whose entry has a text.
fn variant(server: &Server, asset: &str, tail: &str, told: &str) -> String {
    let text = server.get(&format!("{asset}/{tail}index.m3u8")).text();
    let entry = text.split("#EXT-X-STREAM-INF").skip(1).find(|entry| entry.contains(told));
    let uri = entry.and_then(|entry| entry.lines().nth(1)).unwrap_or_else(|| panic!("{asset}: no {told} in {text}"));
    let mut path = PathBuf::from(format!("{asset}/{tail}"));
    for part in uri.split('/') {
        if part == ".." { assert!(path.pop()) } else { path.push(part) }
    }
    server.url(path.to_str().unwrap())
}

#[test]
fn variants_are_a_ladder_in_time_with_their_sound() {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (small, large) = (scratch.path().join("small.mp4"), scratch.path().join("large.mp4"));
    clips::make(&small, BASELINE);
    clips::make(&large, LARGE);
    for form in FORMS {
        make_ladder([&small, &large], place.path(), form);
    }
    let ((low, _), (high, sound)) = (film(&small), film(&large));
    let server = Server::start(&[place.path().to_str().unwrap(), "--segment-duration", "2"]);
    for (name, ..) in FORMS {
        let asset = format!("{name}/main.m3u8");
        for (told, pictures, other) in [("RESOLUTION=320x180", &low, &high), ("RESOLUTION=640x360", &high, &low)] {
            let name = format!("{asset}: {told}");
            let url = variant(&server, &asset, "", told);
            let ours = decode::video(&["-i", &url], "0:v").unwrap_or_else(|error| panic!("{name}: {error}"));
            same(&ours, pictures).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(same(&ours, other).is_err(), "{name}");
            // Both variants and the sound have one clock. Pictures of the large film are reordered, those of the small one are not.
            let url = server.url(&format!("{asset}/a1/index.m3u8"));
            let heard = decode::audio(&["-i", &url], "0:a").unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_heard(&heard, &sound, ours[0].time - pictures[0].time, &name);
            let url = variant(&server, &asset, "ts/", told);
            let ours = decode::video(&["-i", &url], "0:v").unwrap_or_else(|error| panic!("{name}: {error}"));
            same(&ours, pictures).unwrap_or_else(|error| panic!("{name} in TS: {error}"));
        }
        let url = server.url(&format!("{asset}/index.mpd"));
        // Representations are in the order of their bit rates, whatever their sizes are.
        let found = ["0:v:0", "0:v:1"].map(|map| decode::video(&["-i", &url], map).unwrap());
        let are = |first: &[Frame], second: &[Frame]| same(&found[0], first).and_then(|()| same(&found[1], second));
        are(&low, &high).or_else(|_| are(&high, &low)).unwrap_or_else(|error| panic!("{asset}, DASH: {error}"));
        let text = server.get(&format!("{asset}/index.m3u8")).text();
        assert_eq!(text.contains("LANGUAGE=\"en\""), name.starts_with("shared"), "{text}");
    }
    // The media playlists of a ladder are titles too.
    let url = server.url("shared/v0.m3u8/index.m3u8");
    same(&decode::video(&["-i", &url], "0:v").unwrap(), &low).unwrap();
}

#[test]
fn subtitles_of_a_multivariant_playlist_are_those_of_the_title() {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let film = scratch.path().join("film.mp4");
    clips::make(&film, BASELINE);
    make(&film, &place.path().join("v.m3u8"), &[]);
    let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
    let list = |segments: &str| format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{segments}#EXT-X-ENDLIST\n");
    write("en.m3u8", &list("#EXTINF:2,\nen%201.vtt?x\n#EXTINF:2,\nen2.vtt\n"));
    write("en 1.vtt", "WEBVTT\n\n00:01.000 --> 00:02.500\none\n");
    write("en2.vtt", "WEBVTT\n\n00:01.000 --> 00:02.500\none\n\n00:03.000 --> 00:03.500\ntwo\n");
    write("de.m3u8", &list("#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:2,\n1.m4s\n"));
    write(
        "main.m3u8",
        "#EXTM3U\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"English\",LANGUAGE=\"en\",URI=\"en.m3u8\"\n\
         #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"Deutsch\",LANGUAGE=\"de\",URI=\"de.m3u8\"\n\
         #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"Suomi\",LANGUAGE=\"fi\",URI=\"fi.m3u8\"\n\
         #EXT-X-STREAM-INF:BANDWIDTH=900000,SUBTITLES=\"s\"\nv.m3u8\n",
    );
    let server = Server::start(&[place.path().to_str().unwrap()]);
    let text = server.get("main.m3u8/index.m3u8").text();
    assert!(text.contains("NAME=\"English\"") && !text.contains("Deutsch") && !text.contains("Suomi"), "{text}");
    let cues = server.get("main.m3u8/s1/all.vtt").text();
    assert!(cues.contains("00:00:01.000 --> 00:00:02.500\none\n"), "{cues}");
    assert!(cues.contains("00:00:03.000 --> 00:00:03.500\ntwo\n"), "{cues}");
    assert_eq!(cues.matches("one").count(), 1, "{cues}");
    // The description of the title names the subtitles that are left out.
    let told = server.get(".millpond/asset?path=main.m3u8").text();
    assert!(told.contains("de.m3u8: line 3: found an init section, expected segments of WebVTT"), "{told}");
    assert!(told.contains("fi.m3u8: not found"), "{told}");
}

#[test]
fn stretches_between_discontinuities_are_items_of_a_title() {
    if !support::have("ffmpeg") {
        return;
    }
    let (place, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (small, large) = (scratch.path().join("small.mp4"), scratch.path().join("large.mp4"));
    clips::make(&small, BASELINE);
    clips::make(&large, LARGE);
    // The film has two segments of two seconds, the break four of one.
    for (film, name) in [(&large, "film"), (&small, "break")] {
        make(film, &place.path().join(format!("{name}_ts.m3u8")), &[]);
        let init = format!("{name}_init.mp4");
        let form = ["-hls_segment_type", "fmp4", "-hls_fmp4_init_filename", &init];
        make(film, &place.path().join(format!("{name}_mp4.m3u8")), &form);
    }
    let playlist = |kind: &str, extension: &str| {
        let map = |name: &str| match kind {
            "mp4" => format!("#EXT-X-MAP:URI=\"{name}_init.mp4\"\n"),
            _ => String::new(),
        };
        let segment = |name: &str, number: usize| format!("#EXTINF:2,\n{name}_{kind}{number}.{extension}?token=x\n");
        let pause: String = (0..4).map(|number| segment("break", number)).collect();
        format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n{}{}#EXT-X-DISCONTINUITY\n{}{pause}#EXT-X-DISCONTINUITY\n{}{}#EXT-X-ENDLIST\n",
            map("film"),
            segment("film", 0),
            map("break"),
            map("film"),
            segment("film", 1),
        )
    };
    fs::write(place.path().join("evening_ts.m3u8"), playlist("ts", "ts")).unwrap();
    fs::write(place.path().join("evening_mp4.m3u8"), playlist("mp4", "m4s")).unwrap();
    let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nevening_ts.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nfilm_ts.m3u8\n";
    fs::write(place.path().join("main.m3u8"), main).unwrap();
    let ((film, film_sound), (pause, pause_sound)) = (self::film(&large), self::film(&small));
    let expected = [&film[..50], &pause[..], &film[50..]];
    let server = Server::start(&[place.path().to_str().unwrap()]);
    for name in ["evening_ts.m3u8", "evening_mp4.m3u8"] {
        for list in ["v1/index.m3u8", "ts/v1/index.m3u8"] {
            let items = stretches(&server, name, list);
            assert_eq!(items.len(), 3, "{name}");
            for (number, (bytes, pictures)) in items.iter().zip(expected).enumerate() {
                let name = format!("{name}/{list}, item {number}");
                let ours = decoded(scratch.path(), bytes, |input| decode::video(input, "0:v"));
                same(&ours, pictures).unwrap_or_else(|error| panic!("{name}: {error}"));
                if list.starts_with("ts") {
                    // A TS segment has sound too, by the same clock. Sound is compared a second after its beginning.
                    let heard = decoded(scratch.path(), bytes, |input| decode::audio(input, "0:a"));
                    let (of, skipped) =
                        [(&film_sound, 48_000), (&pause_sound, 48_000), (&film_sound, 3 * 48_000)][number];
                    assert_heard_after(skipped, &heard, of, ours[0].time - pictures[0].time, &name);
                }
            }
        }
        assert_eq!(stretches(&server, name, "a1/index.m3u8").len(), 3, "{name}");
        let mpd = server.get(&format!("{name}/index.mpd")).text();
        assert_eq!(mpd.matches("<Period").count(), 3, "{name}: {mpd}");
    }
    // A variant with discontinuities is no rendition.
    let reply = server.get("main.m3u8/index.m3u8");
    let told = "evening_ts.m3u8: line 7: found a discontinuity, expected none in a playlist of a title with others";
    assert!(reply.status == 422 && reply.text().contains(told), "{}", reply.text());
}
