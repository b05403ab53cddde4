//! RTSP as it looks from outside: a client that puts frames together on its own, and tshark, which knows the protocols
//! byte by byte.

mod support;

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
    process::{Command, Output, Stdio},
    sync::Arc,
    time::Duration,
};
use support::{Running, Server, clips, have, wait_for_port};

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

/// A server with all clips that listens for RTSP too: it binds that port last.
fn serve() -> Server {
    let server = Server::start(&[clips::folder().to_str().unwrap()]);
    wait_for_port(server.rtsp, &server.log);
    server
}

/// One frame, of a file or as it came.
struct Frame {
    bytes: Vec<u8>,
    /// Seconds from the beginning of what is played.
    time: f64,
    is_key: bool,
}

/// What came of one track.
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
    packets.iter().map(frame).collect()
}

/// What the client makes of an access unit: parameter sets it keeps for itself, and of all pictures that stand alone only
/// those after which nothing refers back (IDR) are key frames to it. All lengths are of 4 bytes.
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

/// What came is what is stored: every frame, its bytes, its time and whether it is a key frame.
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
        let off = (ours.time - (theirs.time - from)).abs();
        if off > 1.0 / f64::from(track.clock) + 1e-6 {
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
    let wait = Duration::from_millis(if is_over { 300 } else { 20_000 });
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
    // What the description told is enough for a player to begin with.
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
    let torn_down = tokio::time::timeout(Duration::from_secs(10), group.await_teardown()).await;
    torn_down.map_err(text)?.map_err(text)?;
    Ok(tracks.into_values().collect())
}

async fn plays_as_stored(port: u16, clip: &str, transport: &str) -> Result<(), String> {
    let tracks = listen(&format!("rtsp://127.0.0.1:{port}/{clip}"), transport).await?;
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
    let server = serve();
    let port = server.rtsp;
    let all = [FRAMES, PACKETS].concat().into_iter().flat_map(|clip| [(clip, "tcp"), (clip, "udp")]);
    let running: Vec<_> = all
        .map(|(clip, transport)| {
            tokio::spawn(async move {
                let result = plays_as_stored(port, clip, transport).await;
                result.map_err(|error| format!("{clip} over {transport}: {error}"))
            })
        })
        .collect();
    let mut wrong = Vec::new();
    for one in running {
        wrong.extend(one.await.unwrap().err());
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
    let server = serve();
    let port = seeking(server.rtsp);
    let all = tokio::join!(
        seeks(port, "h264_aac.mp4", "tcp"),
        seeks(port, "h264_fragmented.mp4", "udp"),
        seeks(port, "hevc_hvc1.mp4", "udp"),
    );
    assert_eq!(all, (Ok(()), Ok(()), Ok(())));
}

/// Set where a test runs in a network of its own.
const ALONE: &str = "MILLPOND_TEST_ALONE";

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Whether the test runs in a network of its own. Where it doesn't, it is run once more in one: what is captured on the
/// loopback there is of nobody else, and packets are as they would be on a wire.
fn is_alone(test: &str) -> bool {
    const NETWORK: [&str; 11] = ["ip", "link", "set", "dev", "lo", "up", "mtu", "1500", "gso_max_segs", "1", "&&"];
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    clips::folder();
    if !["ffmpeg", "tshark", "dumpcap", "unshare", "ip"].into_iter().all(have) {
        return false;
    }
    let prepare = NETWORK.join(" ");
    // Without and with the right to make one.
    let may =
        |flags: &&str| run("unshare", &[flags, "sh", "-c", &format!("{prepare} dumpcap -L -i lo")]).status.success();
    let Some(flags) = ["-rn", "-n"].into_iter().find(may) else {
        eprintln!("SKIPPED: no network of its own, or nothing may be captured in it");
        return false;
    };
    let this = std::env::current_exe().unwrap();
    let again = format!("{prepare} exec {} --exact {test} --nocapture", this.display());
    let output = Command::new("unshare").args([flags, "sh", "-c", &again]).env(ALONE, "1").output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{errors}");
    false
}

/// Players of a presentation, all at once, over both transports.
fn play_everywhere(url: &str) -> usize {
    let mut players = Vec::new();
    for transport in ["udp", "tcp"] {
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-v", "error", "-nostdin", "-rtsp_transport", transport, "-i", url, "-map", "0", "-c", "copy"]);
        ffmpeg.args(["-f", "null", "-"]);
        players.push(ffmpeg);
        if have("gst-launch-1.0") {
            let mut gstreamer = Command::new("gst-launch-1.0");
            gstreamer.args(["rtspsrc", &format!("location={url}"), &format!("protocols={transport}"), "name=s"]);
            gstreamer.args(["s.", "!", "fakesink", "s.", "!", "fakesink"]);
            players.push(gstreamer);
        }
    }
    let quiet = |player: &mut Command| player.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let running: Vec<Running> = players.iter_mut().map(quiet).map(Running).collect();
    let count = running.len();
    for mut player in running {
        player.0.wait().unwrap();
    }
    count
}

/// Captures all that players and server say to each other, up to where every player has come to the end.
fn capture(server: &Server, clip: &str, file: &Path) -> usize {
    let log = file.with_extension("log");
    let filter = format!("tcp port {} or udp", server.rtsp);
    let mut command = Command::new("dumpcap");
    command.args(["-q", "-i", "lo", "-B", "32", "-f", &filter, "-w", file.to_str().unwrap()]);
    let mut dumpcap = Running(command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap());
    let said = || std::fs::read_to_string(&log).unwrap();
    for _ in 0..100 {
        if said().contains("File:") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(300));
    let players = play_everywhere(&format!("rtsp://127.0.0.1:{}/{clip}", server.rtsp));
    std::thread::sleep(Duration::from_millis(300));
    let process = rustix::process::Pid::from_child(&dumpcap.0);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    dumpcap.0.wait().unwrap();
    assert!(said().contains("(pcap:0/dumpcap:0/"), "all of it was captured: {}", said());
    players
}

/// A capture, and what tshark is told about it.
struct Capture {
    args: Vec<String>,
    /// What is of the server.
    ours: String,
}

impl Capture {
    fn new(file: &Path, rtsp: u16, formats: &[&str]) -> Self {
        let mut args = vec!["-r".to_owned(), file.display().to_string(), "-d".into(), format!("tcp.port=={rtsp},rtsp")];
        for format in formats {
            args.extend(["-d".to_owned(), format!("rtp.pt=={format}")]);
        }
        let mut capture = Self { args, ours: String::new() };
        // Its ports are those that its replies tell.
        let mut ports: Vec<String> = Vec::new();
        for line in capture.ask(&["-Y", "rtsp.transport", "-T", "fields", "-e", "rtsp.transport"]).lines() {
            let told = line.split(';').find_map(|part| part.strip_prefix("server_port="));
            ports.extend(told.into_iter().flat_map(|told| told.split('-')).map(str::to_owned));
        }
        assert!(!ports.is_empty(), "ports of the server");
        capture.ours = format!("(tcp.srcport == {rtsp} or udp.srcport in {{{}}})", ports.join(","));
        capture
    }

    fn ask(&self, more: &[&str]) -> String {
        let output = Command::new("tshark").args(&self.args).args(more).output().unwrap();
        assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Fields of the server's packets that a filter lets through, each with as many values as it has in the packet.
    fn fields(&self, filter: &str, names: &[&str]) -> Vec<Vec<Vec<u64>>> {
        let filter = format!("{} and ({filter})", self.ours);
        let mut args = vec!["-Y", &filter, "-T", "fields"];
        names.iter().for_each(|name| args.extend(["-e", name]));
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
            // Times in nanoseconds.
            None => text.replace('.', "").parse().unwrap(),
        };
        let values = |text: &str| text.split(',').filter(|one| !one.is_empty()).map(number).collect();
        self.ask(&args).lines().map(|line| line.split('\t').map(values).collect()).collect()
    }

    /// What tshark takes for wrong in the server's packets. What it has not learnt to read is no error, and TCP, which has
    /// to send again where a player is late to say what it has, is the system's.
    fn complaints(&self) -> Vec<String> {
        let report = self.ask(&["-q", "-z", &format!("expert,warn,{}", self.ours)]);
        let is_wrong = |line: &&str| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [frequency, group, protocol, ..] => {
                frequency.parse::<u32>().is_ok() && group != "Undecoded" && protocol != "TCP"
            }
            _ => false,
        };
        report.lines().filter(is_wrong).map(str::to_owned).collect()
    }
}

/// What was sent of one source.
#[derive(Default)]
struct Source {
    payload_type: u64,
    sequence: Vec<u64>,
    /// When each packet was captured, in nanoseconds.
    at: Vec<u64>,
    octets: u64,
    reports: Vec<SenderReport>,
}

struct SenderReport {
    at: u64,
    /// Seconds of its clock, and the timestamp then.
    clock: f64,
    timestamp: u32,
    packets: u64,
    octets: u64,
}

const PACKET_FIELDS: &[&str] =
    &["frame.time_epoch", "rtp.ssrc", "rtp.seq", "rtp.p_type", "udp.length", "rtsp.channel", "rtsp.length"];
const REPORT_FIELDS: &[&str] = &[
    "frame.time_epoch",
    "rtcp.senderssrc",
    "rtcp.timestamp.ntp.msw",
    "rtcp.timestamp.ntp.lsw",
    "rtcp.timestamp.rtp",
    "rtcp.sender.packetcount",
    "rtcp.sender.octetcount",
];

fn sources(capture: &Capture) -> BTreeMap<u64, Source> {
    let mut sources: BTreeMap<u64, Source> = BTreeMap::new();
    for packet in capture.fields("rtp", PACKET_FIELDS) {
        let [at, ssrcs, sequences, types, udp, channels, lengths] = &packet[..] else { panic!("{packet:?}") };
        // Bytes of each RTP packet: RTCP has the odd channels.
        let on_rtp = channels.iter().zip(lengths).filter(|(channel, _)| *channel % 2 == 0).map(|(_, length)| *length);
        let lengths: Vec<u64> = udp.iter().map(|length| length - 8).chain(on_rtp).collect();
        assert_eq!((ssrcs.len(), ssrcs.len()), (sequences.len(), lengths.len()), "{packet:?}");
        for (place, ssrc) in ssrcs.iter().enumerate() {
            let source = sources.entry(*ssrc).or_default();
            source.payload_type = types[place];
            source.sequence.push(sequences[place]);
            source.at.push(at[0]);
            // Neither extensions nor contributing sources: the header has 12 bytes.
            source.octets += lengths[place] - 12;
        }
    }
    for packet in capture.fields("rtcp.pt == 200", REPORT_FIELDS) {
        let [at, ssrcs, seconds, fractions, timestamps, packets, octets] = &packet[..] else { panic!("{packet:?}") };
        for (place, ssrc) in ssrcs.iter().enumerate() {
            let source = sources.get_mut(ssrc).expect("a source that sends");
            source.reports.push(SenderReport {
                at: at[0],
                clock: seconds[place] as f64 + fractions[place] as f64 / 2_f64.powi(32),
                timestamp: timestamps[place] as u32,
                packets: packets[place],
                octets: octets[place],
            });
        }
    }
    sources
}

/// Numbers without a gap, and reports that say what was sent (RFC 3550 6.4.1).
fn check(source: &Source, clock: f64) -> Result<(), String> {
    let gap = source.sequence.windows(2).find(|two| two[1] != (two[0] + 1) % 65_536);
    if let Some(gap) = gap {
        return Err(format!("number {} after {}", gap[1], gap[0]));
    }
    let [first, .., last] = &source.reports[..] else { return Err(format!("{} reports", source.reports.len())) };
    let sent = source.sequence.len() as u64;
    if (last.packets, last.octets) != (sent, source.octets) {
        return Err(format!("told {} and {}, sent {sent} and {}", last.packets, last.octets, source.octets));
    }
    for report in &source.reports {
        // What is due with the report may go out before it; on a machine with much to do, some time before.
        let before = |limit: u64| source.at.iter().filter(|at| **at <= limit).count() as u64;
        let bounds = before(report.at - 250_000_000)..=before(report.at);
        if !bounds.contains(&report.packets) {
            return Err(format!("told {} packets, sent {bounds:?}", report.packets));
        }
        // From the epoch of NTP.
        let off = report.clock - 2_208_988_800.0 - report.at as f64 / 1e9;
        if off.abs() > 0.5 {
            return Err(format!("the clock of a report is off by {off} s"));
        }
        let ticks = f64::from(report.timestamp.wrapping_sub(first.timestamp));
        let drift = ticks / clock - (report.clock - first.clock);
        if drift.abs() > 0.1 {
            return Err(format!("{drift} s between the clock and the timestamps of reports"));
        }
    }
    Ok(())
}

/// Captures a presentation of a picture and a sound track. `formats` are payload types and what they are to tshark;
/// `layers` what it takes them apart as; `clocks` those of picture and sound.
fn captured(clip: &str, formats: &[&str], layers: &[&str]) {
    let server = serve();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capture.pcapng");
    let players = capture(&server, clip, &file);
    let capture = Capture::new(&file, server.rtsp, formats);
    assert_eq!(capture.complaints(), [""; 0]);
    assert!(capture.fields("_ws.malformed", &["frame.number"]).is_empty());
    for layer in layers.iter().copied().chain(["sdp", "rtcp"]) {
        assert!(!capture.fields(layer, &["frame.number"]).is_empty(), "{layer} was looked at");
    }
    let statuses = capture.fields("rtsp.status", &["rtsp.status"]).concat().concat();
    assert!(statuses.len() > 5 * players && statuses.iter().all(|status| *status == 200), "{statuses:?}");
    let sources = sources(&capture);
    assert_eq!(sources.len(), 2 * players, "a picture and a sound track each");
    for (ssrc, source) in &sources {
        let clock = if source.payload_type == 96 { 90_000.0 } else { 48_000.0 };
        check(source, clock).unwrap_or_else(|error| panic!("{clip}, {ssrc:#x}: {error}"));
        let same = sources.values().filter(|other| other.payload_type == source.payload_type);
        assert!(same.clone().count() == players && same.clone().all(|other| other.octets == source.octets), "{clip}");
    }
    // A compound packet begins with a report and names the source (RFC 3550 6.1); each source ends with a BYE.
    let types = capture.fields("rtcp", &["rtcp.pt"]).concat().concat();
    let count = |number: u64| types.iter().filter(|one| **one == number).count();
    assert_eq!((count(200), count(203)), (count(202), sources.len()));
    // tshark comes to the same.
    let streams = capture.ask(&["-q", "-z", "rtp,streams"]);
    let rows: Vec<Vec<&str>> = streams.lines().map(|line| line.split_whitespace().collect()).collect();
    for (ssrc, source) in &sources {
        let name = format!("0x{ssrc:08X}");
        let row = rows.iter().find(|row| row.get(6) == Some(&&*name)).expect("a row of the source");
        assert_eq!(row[8..11], [&*source.sequence.len().to_string(), "0", "(0.0%)"], "{clip}: {row:?}");
    }
}

#[test]
fn h264_and_aac_as_captured() {
    if is_alone("h264_and_aac_as_captured") {
        captured("h264_aac.mp4", &["96,h264"], &["h264"]);
    }
}

#[test]
fn hevc_and_aac_as_captured() {
    if is_alone("hevc_and_aac_as_captured") {
        captured("hevc_hvc1.mp4", &["96,h265"], &["h265"]);
    }
}

#[test]
fn vp9_and_opus_as_captured() {
    if is_alone("vp9_and_opus_as_captured") {
        captured("vp9_opus.mp4", &["97,opus"], &["opus"]);
    }
}
