//! Encrypted files pass through: what is served decrypts, frame for frame, to what was encrypted.

use crate::support::{self, Server, cbcs, clips, decode, rtsp::Client};
use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

const KEY: [u8; 16] = *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
const KID: [u8; 16] = *b"\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef";
const UUID: &str = "01234567-89ab-cdef-0123-456789abcdef";

fn digits(bytes: [u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The clear clip and its encrypted versions, made once a run: by ffmpeg (`cenc`), and here (`cbcs`).
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("encrypted-1");
        std::fs::create_dir_all(&folder).unwrap();
        clips::make(&folder.join("clear.mp4"), "V S -c:v libx264 -g 50 -bf 2 -c:a aac -ac 2");
        let copy = format!("-i {} -c copy", folder.join("clear.mp4").display());
        let scheme =
            format!("-encryption_scheme cenc-aes-ctr -encryption_key {} -encryption_kid {}", digits(KEY), digits(KID));
        // ffmpeg before version 6 leaves `senc` out of fragments.
        let fragments = "-movflags +frag_keyframe+empty_moov+default_base_moof";
        clips::make(&folder.join("cenc.mp4"), &format!("{copy} {scheme}"));
        clips::make(&folder.join("fragmented.mp4"), &format!("{copy} {fragments}"));
        let clear = std::fs::read(folder.join("fragmented.mp4")).unwrap();
        std::fs::write(folder.join("cbcs.mp4"), cbcs::encrypt(&clear, KEY, KID)).unwrap();
        folder
    })
}

const ENCRYPTED: [(&str, &str); 2] = [("cenc.mp4", "cenc"), ("cbcs.mp4", "cbcs")];

/// A server of the folder, with addresses of keys where they are given.
fn serve(key_uri: Option<&str>) -> (Server, tempfile::TempDir) {
    let scratch = tempfile::tempdir().unwrap();
    let config = scratch.path().join("millpond.toml");
    let keys = key_uri.map_or_else(String::new, |uri| format!("key-uri = \"{uri}\"\n"));
    let text = format!(
        "segment-duration = \"2s\"\n[places.films]\nurl = \"{}\"\n{keys}[places.served]\nurl = \"{}\"\n{keys}",
        folder().display(),
        scratch.path().display()
    );
    std::fs::write(&config, text).unwrap();
    (Server::start(&["--config", config.to_str().unwrap()]), scratch)
}

fn is_made() -> bool {
    support::have("ffmpeg")
}

/// The init segment and all media segments of a track, one after the other.
fn whole(server: &Server, asset: &str, track: &str) -> Vec<u8> {
    let base = format!("{asset}/{track}");
    let playlist = server.get(&format!("{base}/index.m3u8")).text();
    let mut file = server.get(&format!("{base}/init.mp4")).body;
    for segment in playlist.lines().filter(|line| line.ends_with(".m4s")) {
        let reply = server.get(&format!("{base}/{segment}"));
        assert_eq!(reply.status, 200, "{segment}");
        file.extend(reply.body);
    }
    file
}

/// Checks that each fragment begins with samples that stand in `file` as they are.
fn has_samples_of(fragments: &[u8], file: &Path) {
    let file = std::fs::read(file).unwrap();
    let mut rest = fragments;
    let mut found = 0;
    while let Some((size, _)) = rest.split_first_chunk::<4>() {
        let (whole, after) = rest.split_at(u32::from_be_bytes(*size) as usize);
        if &whole[4..8] == b"mdat" {
            let first = &whole[8..8 + 512];
            assert!(file.windows(first.len()).any(|window| window == first), "fragment {found}");
            found += 1;
        }
        rest = after;
    }
    assert!(found > 1, "{found} fragments");
}

#[test]
fn segments_decrypt_to_the_file_that_was_encrypted() {
    if !is_made() {
        return;
    }
    let (server, scratch) = serve(Some("/keys/{kid}"));
    // Fragments that ffmpeg makes have no edit list: their pictures are later.
    for (asset, clear) in [("cenc.mp4", "clear.mp4"), ("cbcs.mp4", "fragmented.mp4")] {
        let clear = folder().join(clear);
        let clear = ["-i", clear.to_str().unwrap()];
        let video = decode::video(&clear, "0:v:0").unwrap();
        let audio = decode::audio(&clear, "0:a:0").unwrap();
        for track in ["v1", "a1"] {
            let equal = |name: &str| {
                let url = server.url(&format!("served/{name}"));
                let result = match track {
                    "v1" => {
                        let hidden = decode::video(&["-i", &url], "0:v:0").unwrap_or_default();
                        assert!(
                            decode::same_video(&hidden, &video, 0.0, 1e-4).is_err(),
                            "{name}: it was not encrypted"
                        );
                        decode::same_video(&decode::video(&decrypted(&url), "0:v:0").unwrap(), &video, 0.0, 1e-4)
                    }
                    _ => decode::same_audio(&decode::audio(&decrypted(&url), "0:a:0").unwrap(), &audio, 0.0, 1e-4),
                };
                assert_eq!(result, Ok(()), "{name}");
            };
            let name = format!("{track}-{asset}");
            if (asset, track) == ("cbcs.mp4", "a1") {
                // Whole samples with a constant vector need no `senc`, without which ffmpeg decrypts nothing.
                has_samples_of(&whole(&server, &format!("films/{asset}"), track), &folder().join(asset));
                continue;
            }
            std::fs::write(scratch.path().join(&name), whole(&server, &format!("films/{asset}"), track)).unwrap();
            equal(&name);
            // The served file is encrypted itself, and fragmented.
            let again = format!("again-{name}");
            std::fs::write(scratch.path().join(&again), whole(&server, &format!("served/{name}"), track)).unwrap();
            equal(&again);
        }
    }
}

/// Arguments of ffmpeg, which loses count of encrypted samples in a file of fragments without an index (`sidx`) that it can
/// seek in, before version 6.
fn decrypted(url: &str) -> [&str; 6] {
    static DIGITS: OnceLock<String> = OnceLock::new();
    ["-decryption_key", DIGITS.get_or_init(|| digits(KEY)), "-seekable", "0", "-i", url]
}

#[test]
fn manifests_name_the_scheme_and_the_key() {
    if !is_made() {
        return;
    }
    let (server, _scratch) = serve(Some("/keys/{kid}"));
    for (asset, scheme) in ENCRYPTED {
        let mpd = server.get(&format!("films/{asset}/index.mpd")).text();
        let element = format!("value=\"{scheme}\" cenc:default_KID=\"{UUID}\"");
        assert_eq!(mpd.matches(&element).count(), 2, "{mpd}");
        let method = if scheme == "cenc" { "SAMPLE-AES-CTR" } else { "SAMPLE-AES" };
        let kid = digits(KID);
        let tag = format!("METHOD={method},URI=\"/keys/{kid}\",KEYID=0x{kid}\n");
        let text = server.get(&format!("films/{asset}/index.m3u8")).text();
        assert_eq!(text.matches(&format!("#EXT-X-SESSION-KEY:{tag}")).count(), 1, "{text}");
        for track in ["v1", "a1"] {
            let text = server.get(&format!("films/{asset}/{track}/index.m3u8")).text();
            assert!(text.contains(&format!("#EXT-X-KEY:{tag}")), "{text}");
        }
    }
    let clear = server.get("films/clear.mp4/index.m3u8").text() + &server.get("films/clear.mp4/index.mpd").text();
    assert!(!clear.contains("KEY") && !clear.contains("cenc"), "{clear}");
}

#[test]
fn what_needs_clear_bytes_is_refused_by_name() {
    if !is_made() {
        return;
    }
    let (server, _scratch) = serve(None);
    for (path, expected) in [
        ("films/cenc.mp4/ts/index.m3u8", "encrypted by cenc, mp4a.40.2 encrypted by cenc"),
        ("films/cbcs.mp4/ts/index.m3u8", "encrypted by cbcs"),
        (
            "films/cenc.mp4/index.m3u8",
            "track v1 is encrypted: found cenc with key 01234567-89ab-cdef-0123-456789abcdef",
        ),
    ] {
        let reply = server.get(path);
        assert_eq!((reply.status, reply.header("content-type")), (422, Some("application/problem+json")), "{path}");
        assert!(reply.text().contains(expected), "{path}: {}", reply.text());
    }
    assert_eq!(server.get("films/cenc.mp4/index.mpd").status, 200, "DASH needs no address of keys");
    let reply = Client::new(&server, "films/cenc.mp4").ask("DESCRIBE", "", "Accept: application/sdp\r\n");
    assert_eq!(reply.status, 415);
    assert!(reply.body.contains("v1 (avc1.") && reply.body.contains("encrypted by cenc"), "{}", reply.body);
}
