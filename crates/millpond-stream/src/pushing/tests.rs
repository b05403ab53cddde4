use super::*;
use crate::{
    Conflict, Linger, LiveRequest, Manager, Program, Publication, PublishRequest, PublishedMedia, Source,
    reception::TcpConnector, streams::tests::fake::manager,
};
use bytes::{Bytes, BytesMut};
use millpond_rtmp::{Refusal, RtmpEvent, Session};
use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

const URL: &str = "rtmp://127.0.0.1/live/key-secret?pass=secret";

/// Whether ffmpeg is there, as on all machines that run the tests of the program.
fn have_ffmpeg() -> bool {
    Command::new("ffmpeg").arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn ffmpeg(arguments: &[&str]) -> Child {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(arguments).stdout(Stdio::piped()).spawn().unwrap()
}

/// Hashes of the frames of a muxer `framemd5`.
fn hashes(child: Child) -> Vec<String> {
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let frames = lines.lines().filter(|line| !line.starts_with('#'));
    frames.filter_map(|line| line.rsplit(',').next()).map(|hash| hash.trim().to_owned()).collect()
}

/// The tags of an FLV file.
fn tags(file: &Path) -> Vec<Bytes> {
    let mut rest = Bytes::from(std::fs::read(file).unwrap()).slice(9 + 4..);
    let mut tags = Vec::new();
    while let Some([_, a, b, c]) = rest.first_chunk::<4>() {
        let whole = 11 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
        tags.push(rest.split_to(whole));
        rest = rest.slice(rest.len().min(4)..);
    }
    tags
}

/// Milliseconds of a tag.
fn time(tag: &Bytes) -> u64 {
    u32::from_be_bytes([tag[7], tag[4], tag[5], tag[6]]).into()
}

/// Publishes a file of two seconds at the pace of its times. Returns its stream.
async fn published(manager: &Arc<Manager>, file: &Path) -> Program {
    let linger = Linger::For(Duration::from_secs(30));
    let request =
        || LiveRequest { path: "live/cam".into(), source: Source::Published, relayed: None, linger, shift: None };
    let (media, conflict) = (PublishedMedia::Flv, Conflict::Refuse);
    let publication: Publication = manager.publish(PublishRequest { stream: request(), media, conflict }).unwrap();
    let tags = tags(file);
    tokio::spawn(async move {
        let began = tokio::time::Instant::now();
        for tag in tags {
            tokio::time::sleep_until(began + Duration::from_millis(time(&tag))).await;
            publication.push(0, tag).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    });
    let stream = manager.live(request()).unwrap();
    Program::live(&manager.live_feed(&stream, Duration::from_secs(10)).await.unwrap())
}

/// A file of two seconds, and the hashes of its pictures.
fn clip(folder: &Path) -> (std::path::PathBuf, Vec<String>) {
    let file = folder.join("clip.flv");
    let to = file.to_str().unwrap();
    let sources = ["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25", "-f", "lavfi", "-i", "sine=r=44100", "-t", "2"];
    let coding = ["-c:v", "libx264", "-bf", "2", "-g", "25", "-c:a", "aac", to];
    assert!(ffmpeg(&[&sources[..], &coding].concat()).wait().unwrap().success());
    let hashes = hashes(ffmpeg(&["-i", to, "-map", "0:v", "-c", "copy", "-f", "framemd5", "-"]));
    (file, hashes)
}

#[tokio::test]
async fn ffmpeg_receives_what_is_pushed() {
    if !have_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, expected) = clip(folder.path());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("rtmp://127.0.0.1:{port}/live/key-secret");
    let server = ffmpeg(&["-listen", "1", "-i", &address, "-map", "0:v", "-c", "copy", "-f", "framemd5", "-"]);
    let manager = manager();
    let program = published(&manager, &file).await;
    let mut viewing = manager.branch(&program, "push").await.unwrap();
    let url = RtmpUrl::parse(&address).unwrap();
    let connector = TcpConnector::default();
    let mut attempts = 0;
    let mut pusher = loop {
        match RtmpPusher::connect(&url, &connector, viewing.program()).await {
            Ok(pusher) => break pusher,
            // ffmpeg listens a little later.
            Err(PushError::Connection(_)) if attempts < 100 => attempts += 1,
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let mut pictures = 0;
    while pictures < expected.len() {
        let run = viewing.next().await.unwrap();
        pictures += run.iter().filter(|frame| frame.track == 0).count();
        pusher.send(&run).await.unwrap();
    }
    assert!(pusher.sent() > 10_000);
    pusher.finish().await;
    assert_eq!(tokio::task::spawn_blocking(|| hashes(server)).await.unwrap(), expected);
}

/// The server's end of a connection.
struct Peer {
    stream: DuplexStream,
    session: Session,
    input: BytesMut,
}

impl Peer {
    fn new(stream: DuplexStream) -> Self {
        Self { stream, session: Session::default(), input: BytesMut::new() }
    }

    /// Talks until the client does something.
    async fn event(&mut self) -> RtmpEvent {
        loop {
            let event = self.session.receive(&mut self.input).unwrap();
            self.stream.write_all(&self.session.take_output()).await.unwrap();
            if let Some(event) = event {
                return event;
            }
            assert!(self.stream.read_buf(&mut self.input).await.unwrap() > 0);
        }
    }

    async fn flush(&mut self) {
        self.stream.write_all(&self.session.take_output()).await.unwrap();
    }
}

#[tokio::test]
async fn servers_refuse_end_and_leave() {
    if !have_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let manager = manager();
    let program = published(&manager, &clip(folder.path()).0).await;
    let url = RtmpUrl::parse(URL).unwrap();
    // A refusal, without the key.
    let (ours, theirs) = duplex(1 << 16);
    let refusing = tokio::spawn(async move {
        let mut peer = Peer::new(theirs);
        assert!(matches!(peer.event().await, RtmpEvent::Publish(target) if target.path == "live/key-secret"));
        peer.session.refuse(Refusal::Name, "key-secret has another publisher");
        peer.flush().await;
        peer
    });
    let error = RtmpPusher::begin(ours, &url, &program).await.unwrap_err();
    assert_eq!(error.to_string(), "the server refuses publish: NetStream.Publish.BadName, *** has another publisher");
    assert!(error.is_transient());
    drop(refusing.await.unwrap());
    // A server that accepts, and then closes the connection.
    let (ours, theirs) = duplex(1 << 16);
    let accepting = tokio::spawn(async move {
        let mut peer = Peer::new(theirs);
        peer.event().await;
        peer.session.accept();
        peer.flush().await;
        peer
    });
    let mut pusher = RtmpPusher::begin(ours, &url, &program).await.unwrap();
    let peer = accepting.await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), pusher.watch()).await.is_err(), "nothing happens");
    drop(peer);
    assert!(matches!(pusher.watch().await, PushError::Closed));
    // One that says nothing.
    let (ours, _silent) = duplex(1 << 16);
    tokio::time::pause();
    let error = RtmpPusher::begin(ours, &url, &program).await.unwrap_err();
    assert_eq!(error.to_string(), "the handshake: waited for 10.0 s");
}
