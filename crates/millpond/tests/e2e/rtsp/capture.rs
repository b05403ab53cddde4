//! RTSP as it looks on the wire: what server and players say to each other is captured, and read by tshark, which knows
//! the protocols byte by byte.

use crate::support::{self, Running, Server, clips, have, namespaces::in_program};
use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

/// Set where a test runs in a network of its own.
const ALONE: &str = "MILLPOND_TEST_ALONE";

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Whether the test runs in a network namespace of its own. If not, it is run again in one. There the loopback carries
/// no other traffic, and packets are as they would be on a wire.
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
        support::skip("no network of its own, or nothing may be captured in it");
        return false;
    };
    let this = std::env::current_exe().unwrap();
    let again = format!("{prepare} exec {} --exact {}::{test} --nocapture", this.display(), in_program(module_path!()));
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
            gstreamer.args(["rtspsrc", &format!("location={url}"), &format!("protocols={transport}")]);
            // By its own name it is offered RTP/AVPF, whose packets tshark does not find.
            gstreamer.args(["user-agent=player", "name=s", "s.", "!", "fakesink", "s.", "!", "fakesink"]);
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
    for _ in 0..1200 {
        if said().contains("File:") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(said().contains("File:"), "it does not begin: {}", said());
    std::thread::sleep(Duration::from_millis(300));
    let players = play_everywhere(&format!("rtsp://127.0.0.1:{}/{clip}", server.rtsp));
    // The kernel hands blocks of packets over.
    std::thread::sleep(Duration::from_secs(2));
    let process = rustix::process::Pid::from_child(&dumpcap.0);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    dumpcap.0.wait().unwrap();
    assert!(said().contains("(pcap:0/dumpcap:0/"), "all of it was captured: {}", said());
    players
}

/// A capture, and what tshark is told about it.
struct Capture {
    args: Vec<String>,
    /// Filter for the server's packets.
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

    /// Returns tshark's complaints about the server's packets. Protocols that it cannot decode are no errors. TCP
    /// belongs to the system, which repeats segments when a player acknowledges late.
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

/// The packets of one source.
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
        // Packets due with the report may leave before it; on a busy machine, some time before.
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
    let server = Server::of_clips();
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
