//! RTSP as a client sees it that puts frames together on its own: what comes is what the files have.

use crate::support::{Server, clips};
use futures_util::{Stream, StreamExt as _};
use retina::{
    client::{
        Demuxed, InitialSequenceNumberPolicy, InitialTimestampPolicy, PacketItem, PlayOptions, Playing, Session,
        SessionGroup, SessionOptions, SetupOptions, TeardownPolicy, UnknownRtcpSsrcPolicy,
    },
    codec::{CodecItem, FrameFormat, ParametersRef},
    rtcp::ReceivedCompoundPacket,
};
use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::Arc,
    time::Duration,
};

/// Clips of which the client takes apart at least one track: of `av1.mp4` only the sound.
const FRAMES: &[&str] = &[
    "h264_aac.mp4",
    "h264_moov_first.mp4",
    "h264_open_gop.mp4",
    "h264_long_gop.mp4",
    "h264_rotated.mp4",
    "h264_negative_cts.mp4",
    "h264_fragmented.mp4",
    "h264_fragmented_sidx.mp4",
    "h264_partly_fragmented.mp4",
    "h264_mid_gop.mp4",
    "hevc_hvc1.mp4",
    "hevc_hev1.mp4",
    "av1.mp4",
    "aac_44100.m4a",
];

/// Clips of which it only reads packets: their payload headers are so simple that they are taken off here.
const PACKETS: &[&str] = &["vp9_opus.mp4", "opus.mp4", "mp3.mp4", "ac3.mp4", "eac3.mp4"];

/// Formats that the client takes apart.
const KNOWN: &[&str] = &["h264", "h265", "mpeg4-generic"];

/// One frame, of a file or as it came.
struct Frame {
    bytes: Vec<u8>,
    /// Seconds from the beginning of what is played.
    time: f64,
    is_key: bool,
}

/// The received frames of one track.
#[derive(Default)]
struct Track {
    media: String,
    encoding: String,
    clock: u32,
    frames: Vec<Frame>,
    lost: u64,
    reports: u32,
    has_ended: bool,
}

impl Track {
    fn add(&mut self, bytes: &[u8], timestamp: retina::Timestamp, is_key: bool, lost: u16) {
        self.frames.push(Frame { bytes: bytes.to_vec(), time: timestamp.elapsed_secs(), is_key });
        self.lost += u64::from(lost);
    }

    fn hear(&mut self, rtcp: &ReceivedCompoundPacket) {
        self.reports += u32::from(rtcp.rtp_timestamp().is_some());
        self.has_ended |= rtcp.pkts().any(|packet| packet.payload_type() == 203);
    }
}

/// The frames of a file's track in the order in which they are stored, read from where ffprobe says that they are.
fn stored(file: &Path, media: &str) -> Vec<Frame> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", &format!("{}:0", &media[..1])])
        .args(["-show_entries", "packet=pts_time,size,pos,flags", "-of", "json"])
        .arg(file)
        .output()
        .unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let bytes = std::fs::read(file).unwrap();
    let packets = told["packets"].as_array().unwrap();
    let frame = |packet: &serde_json::Value| {
        let text = |name: &str| packet[name].as_str().unwrap();
        let (at, size): (usize, usize) = (text("pos").parse().unwrap(), text("size").parse().unwrap());
        Frame {
            bytes: bytes[at..at + size].to_vec(),
            time: text("pts_time").parse().unwrap(),
            is_key: text("flags").starts_with('K'),
        }
    };
    // Of sound that an edit list cuts out, the decoder of AAC needs the last frame. Encoder delay is one frame or two.
    let is_cut = |packet: &&serde_json::Value| packet["flags"].as_str().is_some_and(|flags| flags.contains('D'));
    let cut = if media == "audio" { packets.iter().take_while(is_cut).count() } else { 0 };
    packets[if cut > 2 { cut - 1 } else { 0 }..].iter().map(frame).collect()
}

/// Returns an access unit as the client presents it. The client removes parameter sets, and counts only IDR pictures as
/// key frames, after which nothing refers back. All lengths have 4 bytes.
fn as_given(unit: &[u8], encoding: &str) -> (Vec<u8>, bool) {
    let (mut rest, mut kept, mut is_idr) = (unit, Vec::new(), false);
    while let Some((length, _)) = rest.split_first_chunk() {
        let (nal, behind) = rest.split_at(4 + u32::from_be_bytes(*length) as usize);
        let (is_set, idr) = match encoding {
            "h264" => (matches!(nal[4] & 0x1f, 7 | 8), nal[4] & 0x1f == 5),
            _ => (matches!(nal[4] >> 1 & 0x3f, 32..=34), matches!(nal[4] >> 1 & 0x3f, 19 | 20)),
        };
        is_idr |= idr;
        if !is_set {
            kept.extend_from_slice(nal);
        }
        rest = behind;
    }
    (kept, is_idr)
}

/// Half of a picture's duration in seconds.
const HALF: f64 = 0.02;

/// Checks that all stored frames arrived, with their bytes, times and key frame flags.
fn compare(track: &Track, stored: &[Frame], from: f64) -> Result<(), String> {
    let Track { frames, encoding, .. } = track;
    let is_nal = encoding.starts_with("h26");
    if frames.len() != stored.len() {
        return Err(format!("{encoding}: {} frames, the file has {}", frames.len(), stored.len()));
    }
    if track.lost > 0 || !track.has_ended || track.reports == 0 {
        let Track { lost, reports, has_ended, .. } = track;
        return Err(format!("{encoding}: {lost} packets lost, {reports} reports, the end told: {has_ended}"));
    }
    for (number, (ours, theirs)) in frames.iter().zip(stored).enumerate() {
        let (expected, is_idr) =
            if is_nal { as_given(&theirs.bytes, encoding) } else { (theirs.bytes.clone(), theirs.is_key) };
        if ours.bytes != expected {
            return Err(format!("{encoding}: frame {number} of {} bytes differs", theirs.bytes.len()));
        }
        // Times of the file are told in microseconds, RTP's in ticks.
        // Pictures that an edit hides are together at the beginning, and the first one after them may be half a picture late.
        let expected = theirs.time - from;
        let is_preroll = is_nal && stored.first().is_some_and(|first| first.time < from) && expected < HALF;
        let (expected, late) = if is_preroll { (expected.max(0.0), HALF) } else { (expected, 0.0) };
        if (ours.time - expected).abs() > late + 1.0 / f64::from(track.clock) + 1e-6 {
            return Err(format!("{encoding}: frame {number} at {} s, the file's at {} s", ours.time, theirs.time));
        }
        if ours.is_key != is_idr || (ours.is_key && !theirs.is_key) {
            return Err(format!("{encoding}: frame {number} is a key frame: {is_idr}, told {}", ours.is_key));
        }
    }
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The next item; where all sources have ended, only what is still on its way.
async fn next<T>(
    stream: &mut (impl Stream<Item = Result<T, retina::Error>> + Unpin),
    tracks: &BTreeMap<usize, Track>,
) -> Result<Option<T>, String> {
    let is_over = tracks.values().all(|track| track.has_ended);
    let wait = Duration::from_millis(if is_over { 2_000 } else { 20_000 });
    match tokio::time::timeout(wait, stream.next()).await {
        Ok(item) => item.transpose().map_err(text),
        Err(_) if is_over => Ok(None),
        Err(_) => Err("nothing comes any more".into()),
    }
}

async fn frames(mut session: Demuxed, tracks: &mut BTreeMap<usize, Track>) -> Result<(), String> {
    while let Some(item) = next(&mut session, tracks).await? {
        match item {
            CodecItem::VideoFrame(frame) => {
                let track = tracks.get_mut(&frame.stream_id()).unwrap();
                track.add(frame.data(), frame.timestamp(), frame.is_random_access_point(), frame.loss());
            }
            CodecItem::AudioFrame(frame) => {
                let track = tracks.get_mut(&frame.stream_id()).unwrap();
                track.add(frame.data(), frame.timestamp(), true, frame.loss());
            }
            CodecItem::Rtcp(rtcp) => tracks.get_mut(&rtcp.stream_id()).unwrap().hear(&rtcp),
            _ => return Err("neither picture nor sound".into()),
        }
    }
    // The description suffices for a player to begin.
    for stream in session.streams() {
        let is_told = match stream.parameters() {
            Some(ParametersRef::Video(video)) => video.pixel_dimensions() == (320, 180),
            Some(ParametersRef::Audio(audio)) => audio.clock_rate() == stream.clock_rate_hz(),
            _ => stream.encoding_name() == "av1",
        };
        if !is_told {
            return Err(format!("parameters {:?}", stream.parameters()));
        }
    }
    Ok(())
}

/// Bytes in front of the frame in a packet, whether the last packet of a frame has the marker, and whether the frame
/// stands alone.
fn head(encoding: &str, payload: &[u8]) -> Result<(usize, bool, bool), String> {
    match encoding {
        "opus" => Ok((0, false, true)),
        // RFC 2250 3.5, RFC 4184 4.1, RFC 4598 4.1.
        "mpa" => Ok((4, false, true)),
        "ac3" | "eac3" => Ok((2, true, true)),
        // RFC 9628 4.2: no picture ID, layers, flexible mode or structure.
        "vp9" if payload[0] & 0b1011_0010 == 0 => Ok((1, true, payload[0] & 0b0100_0000 == 0)),
        _ => Err(format!("{encoding}: a payload that begins with {:#x}", payload[0])),
    }
}

async fn packets(mut session: Session<Playing>, tracks: &mut BTreeMap<usize, Track>) -> Result<(), String> {
    let mut last = BTreeMap::new();
    while let Some(item) = next(&mut session, tracks).await? {
        match item {
            PacketItem::Rtp(packet) => {
                let track = tracks.get_mut(&packet.stream_id()).unwrap();
                let (length, marks, is_key) = head(&track.encoding, packet.payload())?;
                let body = &packet.payload()[length..];
                let previous = last.insert(packet.stream_id(), (packet.timestamp(), packet.mark()));
                let begins = previous.is_none_or(|(timestamp, _)| timestamp != packet.timestamp());
                if previous.is_some_and(|(_, marked)| marked != (begins && marks)) {
                    return Err(format!("{}: a marker not on the frame's last packet", track.encoding));
                }
                match track.frames.last_mut() {
                    Some(frame) if !begins => frame.bytes.extend_from_slice(body),
                    _ => track.add(body, packet.timestamp(), is_key, 0),
                }
                track.lost += u64::from(packet.loss());
            }
            PacketItem::Rtcp(rtcp) => tracks.get_mut(&rtcp.stream_id()).unwrap().hear(&rtcp),
            _ => return Err("neither RTP nor RTCP".into()),
        }
    }
    Ok(())
}

/// Plays a presentation to its end.
async fn listen(url: &str, transport: &str) -> Result<Vec<Track>, String> {
    let group = Arc::new(SessionGroup::default());
    let options = SessionOptions::default().session_group(group.clone()).teardown(TeardownPolicy::Always);
    let mut session = Session::describe(url.parse().map_err(text)?, options).await.map_err(text)?;
    let is_known = session.streams().iter().any(|stream| KNOWN.contains(&stream.encoding_name()));
    let mut tracks = BTreeMap::new();
    for place in 0..session.streams().len() {
        let stream = &session.streams()[place];
        let (media, encoding) = (stream.media().to_owned(), stream.encoding_name().to_owned());
        if !is_known || KNOWN.contains(&&*encoding) {
            tracks.insert(place, Track { media, encoding, clock: stream.clock_rate_hz(), ..Track::default() });
            let options = SetupOptions::default().transport(transport.parse().map_err(text)?);
            session.setup(place, options.frame_format(FrameFormat::MP4)).await.map_err(text)?;
        }
    }
    let options = PlayOptions::default()
        .initial_timestamp(InitialTimestampPolicy::Require)
        .initial_seq(InitialSequenceNumberPolicy::Respect)
        .unknown_rtcp_ssrc(UnknownRtcpSsrcPolicy::AbortSession);
    let session = session.play(options).await.map_err(text)?;
    match is_known {
        true => frames(session.demuxed().map_err(text)?, &mut tracks).await?,
        false => packets(session, &mut tracks).await?,
    }
    let torn_down = tokio::time::timeout(Duration::from_secs(60), group.await_teardown()).await;
    torn_down.map_err(text)?.map_err(text)?;
    Ok(tracks.into_values().collect())
}

/// Compares what was received with the clip. Reads the clip with ffprobe, which takes a while: not for a thread that receives.
fn as_stored(clip: &str, tracks: &[Track]) -> Result<(), String> {
    let compare = |track: &Track| {
        let stored = stored(&clips::folder().join(clip), &track.media);
        // The client counts a single track's times from the first that it sees, in a report or in a packet.
        let first = track.frames.first().filter(|_| tracks.len() == 1).zip(stored.first());
        compare(track, &stored, first.map_or(0.0, |(ours, theirs)| theirs.time - ours.time)).err()
    };
    let wrong: Vec<String> = tracks.iter().filter_map(compare).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_are_those_of_the_file() {
    let server = Server::of_clips();
    let port = server.rtsp;
    let all = [FRAMES, PACKETS].concat().into_iter().flat_map(|clip| [(clip, "tcp"), (clip, "udp")]);
    let running: Vec<_> = all
        .map(|(clip, transport)| {
            let url = format!("rtsp://127.0.0.1:{port}/{clip}");
            (clip, transport, tokio::spawn(async move { listen(&url, transport).await }))
        })
        .collect();
    let mut wrong = Vec::new();
    for (clip, transport, running) in running {
        let result = running.await.unwrap().and_then(|tracks| as_stored(clip, &tracks));
        wrong.extend(result.err().map(|error| format!("{clip} over {transport}: {error}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A way to the server on which a PLAY of all becomes one from the fifth second on, as the client can't ask for it.
fn seeking(server: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", server)).unwrap());
            let (mut replies, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut replies, &mut back));
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = client.read(&mut buffer) {
                    // Requests are short, and come one at a time.
                    let asked = buffer[..length].windows(9).position(|part| part == b"npt=0.000");
                    if let Some(at) = asked {
                        buffer[at + 4] = b'5';
                    }
                    server.write_all(&buffer[..length]).unwrap();
                }
                let _ = server.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    port
}

async fn seeks(port: u16, clip: &str, transport: &str) -> Result<(), String> {
    let file = clips::folder().join(clip);
    let keys = stored(&file, "video").into_iter().filter(|frame| frame.is_key && frame.time <= 5.0);
    let from = keys.map(|frame| frame.time).fold(0.0, f64::max);
    for track in listen(&format!("rtsp://127.0.0.1:{port}/{clip}"), transport).await? {
        let mut stored = stored(&file, &track.media);
        let stored = stored.split_off(stored.len() - track.frames.len());
        compare(&track, &stored, from)?;
        let off = stored[0].time - from;
        // Sound begins with the frame that is heard then.
        let most = if track.media == "video" { 0.0 } else { 0.025 };
        if from < 3.0 || off.abs() > most {
            return Err(format!("from {from} s, {} begins {off} s later", track.media));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seek_begins_with_the_key_frame_before_it() {
    let server = Server::of_clips();
    let port = seeking(server.rtsp);
    let all = tokio::join!(
        seeks(port, "h264_aac.mp4", "tcp"),
        seeks(port, "h264_fragmented.mp4", "udp"),
        seeks(port, "hevc_hvc1.mp4", "udp"),
    );
    assert_eq!(all, (Ok(()), Ok(()), Ok(())));
}
