//! Clips that ffmpeg makes: one for each codec and each shape of file.

use super::Server;
use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Which outputs carry a clip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Fragmented MP4 only.
    Fmp4,
    /// Fragmented MP4 and TS.
    Everywhere,
}

pub struct Clip {
    pub name: &'static str,
    pub carried: Carried,
    args: &'static str,
}

const VIDEO: &str = "-f lavfi -i testsrc2=size=320x180:rate=25:duration=9";
const SOUND: &str = "-f lavfi -i sine=frequency=440:sample_rate=48000:duration=9";

macro_rules! clip {
    ($name:literal, $carried:ident, $args:literal) => {
        Clip { name: $name, carried: Carried::$carried, args: $args }
    };
}

/// `V` and `S` stand for the test picture and the test sound.
pub const CLIPS: &[Clip] = &[
    // Without noise substitution, which is random: of a cut clip, decoders that begin elsewhere give other noise.
    clip!("h264_aac.mp4", Everywhere, "V S -c:v libx264 -g 50 -bf 3 -c:a aac -aac_pns 0 -ac 2"),
    clip!("h264_moov_first.mp4", Everywhere, "V S -c:v libx264 -g 50 -c:a aac -movflags +faststart"),
    clip!("h264_open_gop.mp4", Everywhere, "V -c:v libx264 -x264-params open-gop=1:keyint=40:bframes=3"),
    clip!("h264_long_gop.mp4", Everywhere, "V S -c:v libx264 -g 1000 -c:a aac"),
    clip!("h264_rotated.mp4", Everywhere, "V -c:v libx264 -g 25 -metadata:s:v:0 rotate=90"),
    clip!("h264_negative_cts.mp4", Everywhere, "V S -c:v libx264 -g 50 -bf 2 -c:a aac -movflags +negative_cts_offsets"),
    clip!(
        "h264_fragmented.mp4",
        Everywhere,
        "V S -c:v libx264 -g 50 -bf 2 -c:a aac -movflags +frag_keyframe+empty_moov+default_base_moof"
    ),
    clip!(
        "h264_fragmented_sidx.mp4",
        Everywhere,
        "V S -c:v libx264 -g 50 -bf 2 -c:a aac -movflags +frag_keyframe+empty_moov+default_base_moof+global_sidx"
    ),
    clip!(
        "h264_delayed_sidx.mp4",
        Everywhere,
        "V S -c:v libx264 -g 50 -bf 2 -c:a aac -movflags +frag_keyframe+delay_moov+default_base_moof+global_sidx"
    ),
    clip!(
        "h264_open_gop_sidx.mp4",
        Everywhere,
        "V -c:v libx264 -x264-params open-gop=1:keyint=40:bframes=3 -movflags +frag_keyframe+dash+global_sidx"
    ),
    clip!(
        "hevc_hev1_sidx.mp4",
        Everywhere,
        "V -c:v libx265 -x265-params log-level=error:keyint=50 -tag:v hev1 -movflags +frag_keyframe+delay_moov+default_base_moof+global_sidx"
    ),
    clip!("aac_sidx.mp4", Everywhere, "S -c:a aac -aac_pns 0 -frag_duration 1000000 -movflags +cmaf+global_sidx"),
    clip!("h264_partly_fragmented.mp4", Everywhere, "V S -c:v libx264 -g 50 -bf 2 -c:a aac -movflags +frag_keyframe"),
    clip!(
        "hevc_hvc1.mp4",
        Everywhere,
        "V S -c:v libx265 -x265-params log-level=error:keyint=50:bframes=3 -tag:v hvc1 -c:a aac"
    ),
    clip!("hevc_hev1.mp4", Everywhere, "V -c:v libx265 -x265-params log-level=error:keyint=50 -tag:v hev1"),
    clip!("av1.mp4", Fmp4, "V S -c:v libsvtav1 -g 50 -preset 12 -c:a aac"),
    clip!("vp9_opus.mp4", Fmp4, "V S -c:v libvpx-vp9 -g 50 -deadline realtime -cpu-used 8 -c:a libopus"),
    clip!("mp3.mp4", Everywhere, "S -c:a libmp3lame -ac 2"),
    clip!("ac3.mp4", Everywhere, "S -c:a ac3 -ac 6"),
    clip!("eac3.mp4", Everywhere, "S -c:a eac3 -ac 6"),
    clip!("opus.mp4", Fmp4, "S -c:a libopus"),
    clip!("flac.mp4", Fmp4, "S -c:a flac -strict -2"),
    clip!("alac.m4a", Fmp4, "S -c:a alac"),
    clip!("aac_44100.m4a", Everywhere, "S -c:a aac -ar 44100"),
    clip!("h264_aac.mkv", Everywhere, "V S -c:v libx264 -g 50 -bf 3 -c:a aac -aac_pns 0 -ac 2"),
    clip!(
        "hevc_open_gop_ac3.mkv",
        Everywhere,
        "V S -c:v libx265 -x265-params log-level=error:keyint=50:min-keyint=50:bframes=3:open-gop=1 -c:a ac3"
    ),
    clip!("h264_eac3_late.mkv", Everywhere, "V -itsoffset 0.5 S -c:v libx264 -g 50 -bf 2 -c:a eac3"),
    // Neither sizes nor cues.
    clip!("h264_mp3_live.mkv", Everywhere, "V S -c:v libx264 -g 50 -bf 2 -c:a libmp3lame -live 1"),
    clip!("vp9_opus.webm", Fmp4, "V S -c:v libvpx-vp9 -g 50 -deadline realtime -cpu-used 8 -c:a libopus"),
    clip!("av1_flac.mkv", Fmp4, "V S -c:v libsvtav1 -g 50 -preset 12 -c:a flac"),
    clip!("vp8.webm", Fmp4, "V -c:v libvpx -g 50 -deadline realtime -cpu-used 8"),
    clip!("aac_44100.mka", Everywhere, "S -c:a aac -ar 44100"),
    clip!("h264_aac.ts", Everywhere, "V S -c:v libx264 -g 50 -bf 3 -c:a aac -aac_pns 0 -ac 2"),
    clip!("h264_latm.ts", Everywhere, "V S -c:v libx264 -g 50 -c:a aac -aac_pns 0 -ac 2 -mpegts_flags latm"),
    clip!(
        "hevc_ac3.m2ts",
        Everywhere,
        "V S -c:v libx265 -x265-params log-level=error:keyint=50:bframes=3 -c:a ac3 -mpegts_m2ts_mode 1"
    ),
    clip!("h264_aac.flv", Everywhere, "V S -c:v libx264 -g 50 -bf 3 -c:a aac -aac_pns 0 -ar 44100 -ac 2"),
    clip!("sound.mp3", Everywhere, "S -c:a libmp3lame -ac 2"),
    clip!("sound.aac", Everywhere, "S -c:a aac -aac_pns 0 -f adts"),
    clip!("sound.flac", Fmp4, "S -c:a flac"),
    clip!("sound.opus", Fmp4, "S -c:a libopus"),
];

const NOISE: &str = "-f lavfi -i anoisesrc=color=pink:sample_rate=96000:duration=4:seed=7";

/// Clips with PCM: names and arguments. `N` stands for noise in which no bit is silent.
pub const PCM: &[(&str, &str)] = &[
    ("sowt.mov", "S -t 4 -ac 2 -c:a pcm_s16le"),
    ("twos.mov", "S -t 4 -ac 2 -c:a pcm_s16be"),
    ("in24_le.mov", "N -ar 48000 -ac 2 -c:a pcm_s24le"),
    ("in24_be.mov", "N -ar 44100 -c:a pcm_s24be"),
    ("lpcm.mov", "N -ac 6 -c:a pcm_s24le"),
    ("ulaw.mov", "N -ar 8000 -c:a pcm_mulaw"),
    ("alaw.mov", "N -ar 48000 -ac 2 -c:a pcm_alaw"),
    ("raw8.mov", "N -ar 48000 -c:a pcm_u8"),
    ("sowt8.mov", "N -ar 48000 -c:a pcm_s8"),
    (
        "sowt_fragmented.mov",
        "N -ar 48000 -ac 2 -c:a pcm_s16le -movflags +frag_keyframe+empty_moov+default_base_moof \
            -frag_duration 500000",
    ),
    ("h264_sowt.mov", "V N -t 4 -ar 48000 -ac 2 -c:v libx264 -g 50 -bf 2 -c:a pcm_s16le"),
];

/// The folder with all clips, made once a run.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clips-4");
        std::fs::create_dir_all(&folder).unwrap();
        for clip in CLIPS {
            make(&folder.join(clip.name), clip.args);
        }
        for (name, args) in PCM {
            make(&folder.join(name), args);
        }
        let (ipcm, part) = (folder.join("ipcm.mp4"), folder.join(format!("part.{}", std::process::id())));
        if !ipcm.exists() {
            std::fs::write(&part, as_ipcm(std::fs::read(folder.join("sowt.mov")).unwrap())).unwrap();
            std::fs::rename(part, ipcm).unwrap();
        }
        // A cut by copying leaves a start in the middle of a group of pictures, told by the edit list.
        let source = folder.join("h264_aac.mp4").display().to_string();
        make(&folder.join("h264_mid_gop.mp4"), &format!("-ss 2.9 -i {source} -c copy"));
        folder
    })
}

/// The same PCM as ISO/IEC 23003-5 has it, which ffmpeg doesn't write before version 6: what says the channels' layout makes
/// room for what says the coding.
fn as_ipcm(mut file: Vec<u8>) -> Vec<u8> {
    let place = |file: &[u8], kind: &[u8]| file.windows(4).rposition(|four| four == kind).unwrap();
    let entry = place(&file, b"sowt");
    file[entry..entry + 4].copy_from_slice(b"ipcm");
    let chan = place(&file, b"chan") - 4;
    assert_eq!(file[chan..chan + 4], [0, 0, 0, 24]);
    file[chan..chan + 24].copy_from_slice(b"\0\0\0\x0epcmC\0\0\0\0\x01\x10\0\0\0\x0afree\0\0");
    file
}

/// Clips made from other clips.
pub const DERIVED: &[Clip] = &[clip!("h264_mid_gop.mp4", Everywhere, "")];

/// Makes clips of names and arguments in a folder, and serves it with segments of two seconds. `None` where ffmpeg is missing.
pub fn served(clips: impl IntoIterator<Item = (&'static str, &'static str)>) -> Option<(tempfile::TempDir, Server)> {
    if !super::have("ffmpeg") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, args) in clips {
        make(&folder.path().join(name), args);
    }
    let server = Server::start(&[folder.path().to_str().unwrap(), "--segment-duration", "2"]);
    Some((folder, server))
}

/// Makes a clip where the file does not exist yet. Tests that want the same clip get copies: ffmpeg makes it once.
pub fn make(file: &Path, args: &str) {
    // Tests of one binary run side by side and share clips.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    if file.exists() {
        return;
    }
    let args = expanded(args);
    match kept(file, &args) {
        None => encode(file, &args),
        Some(kept) => {
            if !kept.exists() {
                encode(&kept, &args);
            }
            let part = part_of(file);
            std::fs::copy(kept, &part).unwrap();
            std::fs::rename(part, file).unwrap();
        }
    }
}

/// Words of arguments.
fn expanded(args: &str) -> Vec<&str> {
    let words = args.split(' ').flat_map(|word| match word {
        "V" => VIDEO.split(' ').collect::<Vec<_>>(),
        "S" => SOUND.split(' ').collect(),
        "N" => NOISE.split(' ').collect(),
        other => vec![other],
    });
    words.filter(|word| !word.is_empty()).collect()
}

/// The file where a clip of these arguments is kept. `None` where the clip is made of another file, or is kept itself.
fn kept(file: &Path, args: &[&str]) -> Option<PathBuf> {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if file.starts_with(all) || args.iter().any(|arg| arg.starts_with('/')) {
        return None;
    }
    let folder = all.join("clips-by-arguments-1");
    std::fs::create_dir_all(&folder).unwrap();
    let mut hasher = DefaultHasher::new();
    args.hash(&mut hasher);
    Some(folder.join(format!("{:016x}", hasher.finish())).with_extension(file.extension().unwrap_or_default()))
}

/// The name under which a clip is written before it is renamed: a test run that is stopped leaves no half clip.
fn part_of(file: &Path) -> PathBuf {
    file.with_file_name(format!("part.{}", file.file_name().unwrap().to_str().unwrap()))
}

fn encode(file: &Path, args: &[&str]) {
    let part = part_of(file);
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-y"])
        .args(args)
        .args(["-fflags", "+bitexact", "-threads", "2"])
        .arg(&part)
        .status()
        .unwrap();
    assert!(status.success(), "ffmpeg can't make {}", file.display());
    std::fs::rename(part, file).unwrap();
}
