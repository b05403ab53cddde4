//! Viewers of a running stream whose link is too narrow: what they lose, and that all the rest is whole.

use crate::{
    live::publish,
    support::{Server, clips, rtsp::Client},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::HashSet,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// About 1.5 Mbit/s, of which pictures that no other needs have a third.
const CLIP: &str = "V S -vf noise=alls=24:allf=t -c:v libx264 -preset veryfast -g 25 -bf 3 -x264-params b-adapt=0:scenecut=0 \
                    -b:v 1500k -maxrate 1500k -bufsize 1500k -c:a aac -b:a 48k";
/// Bytes per second of a reader: about 0.65 of the stream's.
const RATE: f64 = 0.65 * 1_550_000.0 / 8.0;
/// Time of reading.
const READS: Duration = Duration::from_secs(18);

fn serve(folder: &Path, drop: &str) -> Server {
    clips::make(&folder.join("slow.mp4"), CLIP);
    let folder = folder.to_str().unwrap();
    Server::start(&[folder, "--rtsp-channels", "slow.mp4", "--viewer-queue", "3s", "--drop", drop])
}

/// Waits until a reader that has read `bytes` since `began` may read more.
fn pace(began: Instant, bytes: usize) {
    let due = Duration::from_secs_f64(bytes as f64 / RATE);
    std::thread::sleep(due.saturating_sub(began.elapsed()));
}

/// Hashes of the decoded pictures of a file.
fn hashes(path: &Path) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "fatal", "-nostdin", "-i"]).arg(path);
    let command = command.args(["-map", "0:v", "-fps_mode", "passthrough", "-f", "framemd5", "-"]);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let hash = |line: &str| line.rsplit(',').next().unwrap().trim().to_owned();
    text.lines().filter(|line| !line.starts_with('#')).map(hash).collect()
}

/// Numbers of pictures that were received, and of those that are equal to the source's.
fn counts(folder: &Path, received: &Path) -> (usize, usize) {
    let source: HashSet<String> = hashes(&folder.join("slow.mp4")).into_iter().collect();
    let received = hashes(received);
    let whole = received.iter().filter(|hash| source.contains(*hash)).count();
    (received.len(), whole)
}

/// Reads `stream.mp4` slowly into a file.
fn read_http(server: &Server, file: &Path) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 16 << 10).unwrap();
    write!(stream, "GET /slow.mp4/stream.mp4 HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let (began, mut body, mut buffer) = (Instant::now(), Vec::new(), [0; 4096]);
    while began.elapsed() < READS {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "{}", server.log_text());
        body.extend(&buffer[..count]);
        pace(began, body.len());
    }
    let head = body.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(body.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&body[..head]));
    fs::write(file, &body[head..]).unwrap();
}

/// Times of the packets of a file's sound, in seconds.
fn sound(file: &Path) -> Vec<f64> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "fatal", "-select_streams", "a", "-show_entries", "packet=pts_time", "-of", "csv=p=0"]);
    let text = String::from_utf8(command.arg(file).output().unwrap().stdout).unwrap();
    text.lines().filter_map(|line| line.trim_end_matches(',').parse().ok()).collect()
}

#[test]
fn a_slow_viewer_by_http_gets_whole_pictures_and_all_sound() {
    let folder = tempfile::tempdir().unwrap();
    let read = |drop: &str| {
        let (server, file) = (serve(folder.path(), drop), folder.path().join(format!("{drop}.mp4")));
        read_http(&server, &file);
        let lost = server.metric("millpond_live_dropped_frames_total", "");
        let (received, whole) = counts(folder.path(), &file);
        (received, whole, lost, sound(&file))
    };
    let (least, blind) = std::thread::scope(|scope| {
        let blind = scope.spawn(|| read("blind"));
        (read("least-needed"), blind.join().unwrap())
    });
    let (received, whole, lost, sound) = least;
    assert!(lost > 20.0 && received > 60, "{received} received, {lost} lost");
    assert_eq!(whole, received, "all that is sent can be decoded; {lost} lost");
    let gaps: Vec<_> = sound.windows(2).filter(|pair| pair[1] - pair[0] > 0.03).collect();
    assert!(sound.len() > 100 && gaps.is_empty(), "gaps {gaps:?} in {} packets of sound", sound.len());
    let (received_blind, whole_blind, lost_blind, _) = blind;
    assert!(lost_blind > 20.0, "{lost_blind} lost");
    assert!(whole_blind < received_blind, "{whole_blind} of {received_blind}");
}

/// The NAL units of packets (RFC 6184), as byte stream.
pub(crate) fn byte_stream<'a>(packets: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    const CODE: [u8; 4] = [0, 0, 0, 1];
    let mut bytes = Vec::new();
    for packet in packets {
        let payload = &packet[12..];
        match payload[0] & 0x1f {
            28 => {
                if payload[1] & 0x80 != 0 {
                    bytes.extend(CODE);
                    bytes.push(payload[0] & 0xe0 | payload[1] & 0x1f);
                }
                bytes.extend(&payload[2..]);
            }
            24 => {
                let mut rest = &payload[1..];
                while let [high, low, after @ ..] = rest {
                    let (unit, after) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
                    bytes.extend(CODE);
                    bytes.extend(unit);
                    rest = after;
                }
            }
            _ => {
                bytes.extend(CODE);
                bytes.extend(payload);
            }
        }
    }
    bytes
}

#[test]
fn a_slow_viewer_by_rtsp_gets_whole_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), "least-needed");
    let mut client = Client::new(&server, "slow.mp4");
    rustix::net::sockopt::set_socket_recv_buffer_size(client.stream.get_ref(), 16 << 10).unwrap();
    assert_eq!(client.set_up("v1", "RTP/AVP/TCP;unicast;interleaved=0-1").status, 200);
    assert_eq!(client.ask("PLAY", "/", "").status, 200);
    let (began, mut bytes) = (Instant::now(), 0);
    while began.elapsed() < READS {
        client.packet();
        bytes += client.packets.last().unwrap().1.len() + 4;
        pace(began, bytes);
    }
    let numbers = client.rtp(0);
    assert!(numbers.windows(2).all(|pair| pair[1].0 == pair[0].0.wrapping_add(1)), "no packet is missing");
    let mut pictures: Vec<u32> = numbers.iter().map(|(_, timestamp)| *timestamp).collect();
    pictures.dedup();
    let media = client.packets.iter().filter(|(channel, _)| *channel == 0).map(|(_, packet)| &packet[..]);
    let file = folder.path().join("received.h264");
    fs::write(&file, byte_stream(media)).unwrap();
    let (received, whole) = counts(folder.path(), &file);
    let lost = server.metric("millpond_live_dropped_frames_total", "");
    assert!(lost > 20.0 && received > 60, "{received} received, {lost} lost");
    // The last picture may be cut off.
    assert!(whole + 1 >= received && received + 1 >= pictures.len(), "{whole} of {received} of {}", pictures.len());
}

/// A publisher that stands still and then sends what it missed at once, and a server that has no processor for a while: both give
/// viewers seconds of frames in one burst.
#[test]
fn a_burst_costs_no_viewer_a_picture() {
    clips::folder();
    let server = publish::serve(&[]);
    let url = format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp);
    let publisher = publish::push_clip("tcp", &url);
    publish::until_published(&server, "live/cam");
    let by_http = ["stream.mp4", "stream.ts"].map(|name| server.url(&format!("live/cam/{name}")));
    let mut readers = Vec::from(by_http.map(|url| publish::reader(&["-i", &url], "0:v", 250)));
    readers.push(publish::reader(&["-rtsp_transport", "tcp", "-i", &url], "0:v", 250));
    for process in [&publisher.0, &server.process.0] {
        std::thread::sleep(Duration::from_secs(2));
        kill_process(Pid::from_child(process), Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_secs(2));
        kill_process(Pid::from_child(process), Signal::CONT).unwrap();
    }
    for reader in readers {
        publish::assert_of_clip(&publish::hashes(reader), 250);
    }
    assert_eq!(server.metric("millpond_live_dropped_frames_total", ""), 0.0);
}
