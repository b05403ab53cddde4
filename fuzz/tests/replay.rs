//! Every fuzz target with its seeds (`fuzz/seed`) and the inputs that fuzzing kept (`fuzz/kept/TARGET/`).
#![cfg(not(feature = "libfuzzer"))]

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};
use tempfile::TempDir;

/// The folder of this crate.
const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Makes a module of each target, and a test that runs its inputs.
macro_rules! targets {
    ($($file:literal $name:ident)*) => {
        $(#[path = $file]
        mod $name;)*
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        mod inputs_of {
            $(#[test]
            fn $name() {
                super::replay(stringify!($name), super::$name::run);
            })*
        }
    };
}

targets! {
    "../fuzz_targets/access_token.rs" access_token
    "../fuzz_targets/announce_sdp.rs" announce_sdp
    "../fuzz_targets/asset.rs" asset
    "../fuzz_targets/avi_file.rs" avi_file
    "../fuzz_targets/captions.rs" captions
    "../fuzz_targets/cluster_view.rs" cluster_view
    "../fuzz_targets/cmcd.rs" cmcd
    "../fuzz_targets/dash_follower.rs" dash_follower
    "../fuzz_targets/depacketizer.rs" depacketizer
    "../fuzz_targets/digest.rs" digest
    "../fuzz_targets/dref.rs" dref
    "../fuzz_targets/feedback.rs" feedback
    "../fuzz_targets/flv.rs" flv
    "../fuzz_targets/flv_file.rs" flv_file
    "../fuzz_targets/forwarded.rs" forwarded
    "../fuzz_targets/fragment_stream.rs" fragment_stream
    "../fuzz_targets/gossip.rs" gossip
    "../fuzz_targets/hls_follower.rs" hls_follower
    "../fuzz_targets/hls_playlist.rs" hls_playlist
    "../fuzz_targets/importance.rs" importance
    "../fuzz_targets/index_page.rs" index_page
    "../fuzz_targets/interim_heads.rs" interim_heads
    "../fuzz_targets/intra_picture.rs" intra_picture
    "../fuzz_targets/key_management.rs" key_management
    "../fuzz_targets/latm.rs" latm
    "../fuzz_targets/listing_keys.rs" listing_keys
    "../fuzz_targets/live_cutter.rs" live_cutter
    "../fuzz_targets/live_directives.rs" live_directives
    "../fuzz_targets/live_route.rs" live_route
    "../fuzz_targets/m3u8.rs" m3u8
    "../fuzz_targets/made_entry.rs" made_entry
    "../fuzz_targets/matroska.rs" matroska
    "../fuzz_targets/movie.rs" movie
    "../fuzz_targets/mp4.rs" mp4
    "../fuzz_targets/object_tags.rs" object_tags
    "../fuzz_targets/outline.rs" outline
    "../fuzz_targets/purge_pattern.rs" purge_pattern
    "../fuzz_targets/range.rs" range
    "../fuzz_targets/recorded_file.rs" recorded_file
    "../fuzz_targets/request_body.rs" request_body
    "../fuzz_targets/request_head.rs" request_head
    "../fuzz_targets/ring_index.rs" ring_index
    "../fuzz_targets/rtcp.rs" rtcp
    "../fuzz_targets/rtmp.rs" rtmp
    "../fuzz_targets/rtmp_client.rs" rtmp_client
    "../fuzz_targets/rtp.rs" rtp
    "../fuzz_targets/rtsp.rs" rtsp
    "../fuzz_targets/rtsp_client.rs" rtsp_client
    "../fuzz_targets/sdp.rs" sdp
    "../fuzz_targets/server_frames.rs" server_frames
    "../fuzz_targets/smil.rs" smil
    "../fuzz_targets/sound_file.rs" sound_file
    "../fuzz_targets/sound_units.rs" sound_units
    "../fuzz_targets/splice_section.rs" splice_section
    "../fuzz_targets/srt_packet.rs" srt_packet
    "../fuzz_targets/srt_peer.rs" srt_peer
    "../fuzz_targets/srtp.rs" srtp
    "../fuzz_targets/stripe_map.rs" stripe_map
    "../fuzz_targets/stripe_sums.rs" stripe_sums
    "../fuzz_targets/subtitles.rs" subtitles
    "../fuzz_targets/teletext.rs" teletext
    "../fuzz_targets/text_samples.rs" text_samples
    "../fuzz_targets/tfrc.rs" tfrc
    "../fuzz_targets/timeline.rs" timeline
    "../fuzz_targets/traces.rs" traces
    "../fuzz_targets/track_receiver.rs" track_receiver
    "../fuzz_targets/transport_stream_file.rs" transport_stream_file
    "../fuzz_targets/ts_demultiplexer.rs" ts_demultiplexer
    "../fuzz_targets/tunnel.rs" tunnel
    "../fuzz_targets/urls.rs" urls
    "../fuzz_targets/webrtc_answer.rs" webrtc_answer
    "../fuzz_targets/webrtc_offer.rs" webrtc_offer
    "../fuzz_targets/webrtc_peer.rs" webrtc_peer
    "../fuzz_targets/window_copy.rs" window_copy
}

/// Returns the files of a folder, of none if it is missing.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Seeds of all targets, made once. Some need ffmpeg.
fn seeds() -> &'static Path {
    static SEEDS: OnceLock<TempDir> = OnceLock::new();
    let made = SEEDS.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let seed = Command::new(Path::new(CRATE).join("seed")).env("CORPUS", folder.path()).output().unwrap();
        if !seed.status.success() {
            assert!(Command::new("ffmpeg").arg("-version").output().is_err(), "{seed:?}");
            skip("ffmpeg is not installed: some seeds are not made");
        }
        folder
    });
    made.path()
}

/// Says that something is left out. `scripts/test` names the file that gathers these lines.
fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("MILLPOND_TEST_SKIPS") {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(file, "SKIPPED: {why}").unwrap();
    }
}

/// Runs a target with all of its inputs. The last line before a panic names the input.
fn replay(name: &str, run: fn(&[u8])) {
    let kept = Path::new(CRATE).join("kept").join(name);
    let inputs = [files(&seeds().join(name)), files(&kept)].concat();
    for input in &inputs {
        println!("{}", input.display());
        run(&std::fs::read(input).unwrap());
    }
    // The smallest inputs have found faults too.
    run(&[]);
    run(&[0]);
    assert!(!inputs.is_empty() || Command::new("ffmpeg").arg("-version").output().is_err(), "{name} has no seed");
}

#[test]
fn every_target_is_replayed_and_listed() {
    let sources = files(&Path::new(CRATE).join("fuzz_targets"));
    let sources: BTreeSet<_> = sources.iter().map(|file| file.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(sources, NAMES.iter().copied().collect(), "tests/replay.rs");
    let manifest = std::fs::read_to_string(Path::new(CRATE).join("Cargo.toml")).unwrap();
    let readme = std::fs::read_to_string(Path::new(CRATE).join("README.md")).unwrap();
    let measured = std::fs::read_to_string(Path::new(CRATE).join("../docs/measured/functions.md")).unwrap();
    for name in sources {
        assert!(manifest.contains(&format!("\nname = \"{name}\"\n")), "Cargo.toml has no program {name}");
        assert!(readme.contains(&format!("\n| `{name}` | ")), "README.md does not say what {name} parses");
        assert!(measured.contains(&format!("| `{name}` | ")), "docs/measured/functions.md has no row of {name}");
    }
}
