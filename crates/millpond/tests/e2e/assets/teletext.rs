//! Teletext subtitles of stored transport streams become WebVTT: what libzvbi reads, when it reads it.

use crate::support::{
    self, Server, decode,
    teletext::{FRENCH, GERMAN, assert_same, cues_of, film, joined, read_by_ffmpeg},
};
use std::{collections::BTreeSet, process::Command};

#[test]
fn teletext_of_files_is_what_libzvbi_reads() {
    if !support::have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("film.ts");
    std::fs::write(&file, film(10)).unwrap();
    let first = decode::video(&["-i", file.to_str().unwrap()], "0:v").unwrap()[0].time;
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "2"]);
    for container in ["", "ts/"] {
        let path = format!("film.ts/{container}index.m3u8");
        let master = server.get(&path).text();
        assert_eq!(master.matches("TYPE=SUBTITLES").count(), 2, "{master}");
        assert!(master.contains("NAME=\"French\",LANGUAGE=\"fr\""), "{master}");
        assert!(master.contains("NAME=\"German (hearing impaired)\",LANGUAGE=\"de\""), "{master}");
        assert!(master.contains("public.accessibility.describes-music-and-sound"), "{master}");
        let ours = decode::video(&["-i", &server.url(&path)], "0:v").unwrap()[0].time;
        for (track, page) in [("s1", FRENCH), ("s2", GERMAN)] {
            let expected = read_by_ffmpeg(&file, page, first);
            assert!(expected.len() >= 2, "{expected:?}");
            let folder = format!("film.ts/{container}{track}");
            let playlist = server.get(&format!("{folder}/index.m3u8")).text();
            let names: Vec<&str> = playlist.lines().filter(|line| !line.starts_with('#')).collect();
            assert!(names.len() > 1 && playlist.contains("#EXT-X-ENDLIST"), "{playlist}");
            // A cue stands in each segment that shows it, with all of its times.
            let cues: BTreeSet<_> =
                names.iter().flat_map(|name| cues_of(&server.get(&format!("{folder}/{name}")).text())).collect();
            let at = (ours * 1000.0).round() as i64;
            let cues: Vec<_> =
                joined(cues).into_iter().map(|(start, end, text)| (start - at, end - at, text)).collect();
            assert_same(&cues, &expected, &folder);
        }
    }
    let all = server.get("film.ts/s1/all.vtt").text();
    assert!(all.contains(" line:74%\n<c.yellow>Où vas-tu ?</c>\n<c.yellow>Nulle part.</c>\n"), "{all}");
    let mpd = server.get("film.ts/index.mpd").text();
    assert_eq!(mpd.matches("mimeType=\"text/vtt\"").count(), 2, "{mpd}");
    let probe = Command::new(env!("CARGO_BIN_EXE_millpond")).arg("probe").arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&probe.stdout).into_owned();
    assert!(said.contains("DVB subtitles"), "{said}");
}
