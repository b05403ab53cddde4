//! Access to RTSP: passwords, TLS and tunnels through HTTP with real players, and clients that misbehave.

use crate::support::{self, Running, Server, clips, have, rtsp::head};
use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

const CLIP: &str = "h264_aac.mp4";
/// Pictures alone: with a second stream gst-launch may fail to link what comes of it in time.
const SILENT: &str = "h264_open_gop.mp4";

fn serve(args: &[&str]) -> Server {
    let server = Server::start(&[&[clips::folder().to_str().unwrap()], args].concat());
    support::wait_for_port(server.rtsp, &server.log);
    server
}

/// With users in a file.
fn guarded() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "# who may play\nann:pass\nbob:a:b\n").unwrap();
    (serve(&["--rtsp-users", users.to_str().unwrap()]), folder)
}

/// Has it look at its files.
fn hang_up(server: &Server) {
    let pid = server.process.0.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
}

/// One that doesn't play for ever.
fn player(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", program]);
    command
}

/// Returns ffmpeg's hashes of all pictures or pieces of sound, or its complaints.
fn hashes(args: &[&str]) -> Result<Vec<String>, String> {
    let mut command = player("ffmpeg");
    command.args(["-v", "error", "-nostdin"]).args(args).args(["-f", "framemd5", "-"]);
    let output = command.output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let frames = lines.lines().filter(|line| !line.starts_with('#'));
    let hashes: Vec<String> = frames.filter_map(|line| Some(line.split(',').nth(5)?.trim().to_owned())).collect();
    match output.status.success() && !hashes.is_empty() {
        true => Ok(hashes),
        false => Err(format!("{args:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// All pictures of a clip, decoded, and all sound as it is coded: the same as those of the file.
fn ffmpeg_plays(input: &[&str], clip: &str) -> Result<(), String> {
    let file = &*clips::folder().join(clip).display().to_string();
    let maps: [&[&str]; 2] = [&["-map", "0:v", "-fps_mode", "passthrough"], &["-map", "0:a", "-c", "copy"]];
    std::thread::scope(|scope| {
        let both = maps.map(|map| {
            scope.spawn(move || {
                let got = hashes(&[input, map].concat())?;
                let expected = hashes(&[&["-i", file][..], map].concat())?;
                let first = got.iter().zip(&expected).position(|(a, b)| a != b);
                let told =
                    || format!("{input:?}: {} of {} of {file}, first other {first:?}", got.len(), expected.len());
                if got == expected { Ok(()) } else { Err(told()) }
            })
        });
        both.into_iter().try_for_each(|one| one.join().unwrap())
    })
}

/// All pictures of an H.264 clip without sound as GStreamer receives them, decoded: the same as those of the file.
fn gstreamer_plays(url: &str, properties: &[&str], clip: &str) -> Result<(), String> {
    if !have("gst-launch-1.0") {
        return Ok(());
    }
    let folder = tempfile::tempdir().unwrap();
    let got = folder.path().join("got.h264").display().to_string();
    let (location, target) = (format!("location={url}"), format!("location={got}"));
    // "no-fault": without its own handler GStreamer ends when it crashes, instead of spinning.
    let mut command = player("gst-launch-1.0");
    command.args(["--no-fault", "rtspsrc", &location]).args(properties).args(["!", "rtph264depay", "!", "h264parse"]);
    command.args(["!", "video/x-h264,stream-format=byte-stream,alignment=au", "!", "filesink", &target]);
    let mut output = command.output().unwrap();
    // GStreamer 1.22 reads and writes one TLS connection in two threads, which crashes it now and then on a busy machine.
    if has_crashed(output.status) {
        output = command.output().unwrap();
    }
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // When it has played all, rtspsrc sometimes takes the PAUSE that it breaks off itself for an error.
    if !output.status.success() && !said.contains("Got EOS from element") {
        return Err(format!("{url}: {said}"));
    }
    let pictures = ["-map", "0:v", "-fps_mode", "passthrough"];
    let file = clips::folder().join(clip).display().to_string();
    let of = |file: &str| hashes(&[&["-i", file][..], &pictures].concat());
    let (got, expected) = (of(&got).map_err(|error| error + &said)?, of(&file)?);
    if got == expected { Ok(()) } else { Err(format!("{url}: {} of {} pictures", got.len(), expected.len())) }
}

/// Whether a program under `timeout` died of a segmentation fault.
fn has_crashed(status: ExitStatus) -> bool {
    status.signal() == Some(11) || status.code() == Some(128 + 11)
}

fn mpv_plays(url: &str) -> Result<(), String> {
    if !have("mpv") {
        return Ok(());
    }
    let mut command = player("mpv");
    command.args(["--no-config", "--vo=null", "--ao=null", "--untimed", "--rtsp-transport=tcp", url]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{url}: {said}")) }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn ask(stream: &mut TcpStream, method: &str, url: &str, headers: &str) -> String {
    write!(stream, "{method} {url} RTSP/1.0\r\nCSeq: 1\r\n{headers}\r\n").unwrap();
    head(stream)
}

/// Whether the server closes a connection, and after which time.
fn closed(stream: &mut TcpStream) -> Duration {
    let began = Instant::now();
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return began.elapsed(),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return began.elapsed(),
            Err(error) => panic!("still open: {error}"),
        }
    }
}

#[test]
fn players_with_a_password_play() {
    let (server, _folder) = guarded();
    let at = format!("127.0.0.1:{}/{CLIP}", server.rtsp);
    let tcp = ["-rtsp_transport", "tcp", "-i"];
    let silent = format!("rtsp://127.0.0.1:{}/{SILENT}", server.rtsp);
    let results = std::thread::scope(|scope| {
        let ffmpeg = scope.spawn(|| ffmpeg_plays(&[&tcp[..], &[&format!("rtsp://ann:pass@{at}")]].concat(), CLIP));
        let mpv = scope.spawn(|| mpv_plays(&format!("rtsp://ann:pass@{at}")));
        let gst = scope.spawn(|| gstreamer_plays(&silent, &["protocols=tcp", "user-id=bob", "user-pw=a:b"], SILENT));
        [ffmpeg, mpv, gst].map(|one| one.join().unwrap())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn players_with_a_wrong_password_are_refused() {
    let (server, _folder) = guarded();
    let at = format!("127.0.0.1:{}/{CLIP}", server.rtsp);
    for who in ["ann:guess@", "eve:pass@", ""] {
        let url = format!("rtsp://{who}{at}");
        let error = hashes(&["-rtsp_transport", "tcp", "-i", &url]).unwrap_err();
        assert!(error.contains("401"), "{error}");
        assert!(mpv_plays(&url).is_err() || !have("mpv"));
    }
    let url = format!("rtsp://127.0.0.1:{}/{SILENT}", server.rtsp);
    let error = gstreamer_plays(&url, &["protocols=tcp", "user-id=ann", "user-pw=guess"], SILENT);
    assert!(!have("gst-launch-1.0") || error.unwrap_err().contains("Unauthorized"));
    assert_eq!(server.metric("millpond_rtp_frames_total", ""), 0.0);
    assert!(server.log_text().contains("wrong user or password"), "{}", server.log_text());
}

#[test]
fn every_method_but_options_needs_a_password() {
    let (server, _folder) = guarded();
    let url = format!("rtsp://127.0.0.1:{}/{CLIP}", server.rtsp);
    let mut client = connect(server.rtsp);
    assert!(ask(&mut client, "OPTIONS", &url, "").starts_with("RTSP/1.0 200"));
    for method in ["DESCRIBE", "SETUP", "PLAY", "PAUSE", "TEARDOWN", "GET_PARAMETER", "SET_PARAMETER", "RECORD"] {
        let reply = ask(&mut client, method, &url, "Transport: RTP/AVP/TCP\r\n");
        assert!(reply.starts_with("RTSP/1.0 401 Unauthorized\r\n"), "{reply}");
        let challenges: Vec<&str> =
            reply.lines().filter(|line| line.starts_with("WWW-Authenticate: Digest ")).collect();
        assert_eq!(challenges.len(), 2, "{reply}");
        assert!(challenges[0].contains("algorithm=SHA-256") && challenges[1].contains("algorithm=MD5"), "{reply}");
        assert!(!reply.contains("Basic") && !reply.contains("stale"), "{reply}");
    }
    // Who guesses has to connect again and again.
    let guess = r#"Authorization: Digest username="ann", realm="millpond", nonce="0", uri="/", response="00000000000000000000000000000000""#;
    for _ in 0..8 {
        assert!(ask(&mut client, "DESCRIBE", &url, &format!("{guess}\r\n")).starts_with("RTSP/1.0 401"));
    }
    assert!(closed(&mut client) < Duration::from_secs(20));
}

#[test]
fn the_file_of_users_is_checked_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:pass\nhush\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    let output = command.args(["check", "--rtsp-users"]).arg(&users).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(!output.status.success());
    assert!(said.contains(&format!("{}: line 2: expected name:password", users.display())), "{said}");
    assert!(!said.contains("hush"), "{said}");
}

#[test]
fn users_that_change_take_over() {
    let (server, folder) = guarded();
    let is_let_in = |password: &str| {
        let url = format!("rtsp://ann:{password}@127.0.0.1:{}/{CLIP}", server.rtsp);
        let mut probe = player("ffprobe");
        probe.args(["-v", "error", "-rtsp_transport", "tcp", &url]).status().unwrap().success()
    };
    assert!(is_let_in("pass") && !is_let_in("other"));
    std::fs::write(folder.path().join("users"), "ann:other\n").unwrap();
    hang_up(&server);
    let began = Instant::now();
    while !is_let_in("other") {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
    }
    assert!(!is_let_in("pass"));
}

#[test]
fn players_play_over_tls() {
    let server = serve(&["--tls-self-signed"]);
    let url = format!("rtsps://127.0.0.1:{}/{CLIP}", server.rtsps);
    let other = format!("rtsps://127.0.0.1:{}/hevc_hvc1.mp4", server.rtsps);
    let silent = format!("rtsps://127.0.0.1:{}/{SILENT}", server.rtsps);
    let lenient = |protocols| ["tls-validation-flags=0", protocols];
    std::thread::scope(|scope| {
        let ffmpeg = scope.spawn(|| ffmpeg_plays(&["-i", &url], CLIP));
        let hevc = scope.spawn(|| ffmpeg_plays(&["-i", &other], "hevc_hvc1.mp4"));
        // Both as SRTP.
        let udp = scope.spawn(|| gstreamer_plays(&silent, &lenient("protocols=udp"), SILENT));
        let tcp = scope.spawn(|| gstreamer_plays(&silent, &lenient("protocols=tcp"), SILENT));
        [ffmpeg, hevc, udp, tcp].into_iter().for_each(|one| one.join().unwrap().unwrap());
    });
    assert_eq!(server.metric("millpond_rtsp_playing", ""), 0.0);
    if have("gst-launch-1.0") {
        // GStreamer seals its reports too.
        assert!(server.metric("millpond_rtcp_reports_total", "") > 0.0);
    }
}

/// `openssl s_client`: what is written goes over TLS.
fn tls(server: &Server) -> Child {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-connect", &format!("127.0.0.1:{}", server.rtsps)]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn media_of_a_tls_connection_goes_nowhere_else() {
    if !have("openssl") {
        return;
    }
    let server = serve(&["--tls-self-signed"]);
    let mut client = Running(tls(&server));
    let (mut to, mut from) = (client.0.stdin.take().unwrap(), client.0.stdout.take().unwrap());
    let mut set_up = |transport: &str| {
        let url = format!("rtsps://127.0.0.1/{CLIP}/v1");
        write!(to, "SETUP {url} RTSP/1.0\r\nCSeq: 1\r\nTransport: {transport}\r\n\r\n").unwrap();
        head(&mut from)
    };
    let udp = set_up("RTP/AVP;unicast;client_port=5000-5001");
    assert!(udp.starts_with("RTSP/1.0 461"), "{udp}");
    let tcp = set_up("RTP/AVP;unicast;client_port=5000-5001,RTP/AVP/TCP;unicast;interleaved=0-1");
    assert!(tcp.starts_with("RTSP/1.0 200") && tcp.contains("interleaved=0-1"), "{tcp}");
}

/// A certificate for a name.
fn certificate(folder: &Path, name: &str) {
    let path = |file: &str| folder.join(file).display().to_string();
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "30",
    ]);
    command.args(["-subj", &format!("/CN={name}"), "-keyout", &path("new.key"), "-out", &path("new.pem")]);
    assert!(command.output().unwrap().status.success());
    std::fs::rename(path("new.key"), path("tls.key")).unwrap();
    std::fs::rename(path("new.pem"), path("tls.pem")).unwrap();
}

#[test]
fn a_new_certificate_takes_over() {
    if !have("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "first.test");
    let path = |file: &str| folder.path().join(file).display().to_string();
    let server = serve(&["--tls-cert", &path("tls.pem"), "--tls-key", &path("tls.key")]);
    let subject = || {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &format!("127.0.0.1:{}", server.rtsps)]).stdin(Stdio::null());
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    assert!(subject().contains("first.test"), "{}", subject());
    certificate(folder.path(), "second.test");
    hang_up(&server);
    let began = Instant::now();
    while !subject().contains("second.test") {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_client_over_tls_that_reads_nothing_is_let_go() {
    if !have("openssl") {
        return;
    }
    let server = serve(&["--tls-self-signed", "--request-timeout", "2s", "--log", "millpond_server=debug"]);
    // A handshake that isn't finished.
    let mut silent = connect(server.rtsps);
    silent.write_all(b"\x16\x03\x01").unwrap();
    assert!((1.5..30.0).contains(&closed(&mut silent).as_secs_f64()));
    // Replies that nobody reads wait until they are too many.
    let mut client = Running(tls(&server));
    let (mut to, from) = (client.0.stdin.take().unwrap(), client.0.stdout.take().unwrap());
    let asks = format!("DESCRIBE rtsps://127.0.0.1/{CLIP} RTSP/1.0\r\nCSeq: 2\r\n\r\n").repeat(100);
    let asking = std::thread::spawn(move || while to.write_all(asks.as_bytes()).is_ok() {});
    let began = Instant::now();
    while !server.log_text().contains("a client that reads no replies") {
        assert!(began.elapsed() < Duration::from_secs(60), "the server takes all of it");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop((client, from));
    asking.join().unwrap();
}

#[test]
fn players_play_through_http() {
    let server = serve(&["--tls-self-signed"]);
    let at = |scheme: &str, port: u16, clip: &str| format!("{scheme}://127.0.0.1:{port}/{clip}");
    let plain = at("rtsp", server.rtsp, CLIP);
    let (tunnel, secure) = (at("rtsph", server.rtsp, SILENT), at("rtspsh", server.rtsps, SILENT));
    std::thread::scope(|scope| {
        let ffmpeg = scope.spawn(|| ffmpeg_plays(&["-rtsp_transport", "http", "-i", &plain], CLIP));
        let gst = scope.spawn(|| gstreamer_plays(&tunnel, &[], SILENT));
        let both = scope.spawn(|| gstreamer_plays(&secure, &["tls-validation-flags=0"], SILENT));
        [ffmpeg, gst, both].into_iter().for_each(|one| one.join().unwrap().unwrap());
    });
    assert_eq!(server.metric("millpond_rtsp_playing", ""), 0.0);
}

const GET: &str = "GET /a HTTP/1.0\r\nAccept: application/x-rtsp-tunnelled\r\nx-sessioncookie: ";
const POST: &str = "POST /a HTTP/1.0\r\nContent-Type: application/x-rtsp-tunnelled\r\nx-sessioncookie: ";

fn opened(port: u16, text: &str) -> TcpStream {
    let mut stream = connect(port);
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

#[test]
fn broken_tunnels_leave_nothing_behind() {
    let server = serve(&["--max-connections", "8", "--request-timeout", "5s"]);
    let port = server.rtsp;
    for round in 0..2 {
        // A POST without a GET.
        let mut post = opened(port, &format!("{POST}nobody{round}\r\n\r\n"));
        assert!(head(&mut post).starts_with("HTTP/1.0 404"));
        closed(&mut post);
        // HTTP that is no tunnel.
        let mut page = opened(port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut said = String::new();
        page.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.0 400"), "{said}");
        assert!(said.contains(&format!("HTTP is served on port {}", server.port)), "{said}");
        // A GET without a POST, a second one with its cookie, a POST that says nothing, one that isn't base64.
        let mut lonely = opened(port, &format!("{GET}lonely\r\n\r\n"));
        assert!(head(&mut lonely).starts_with("HTTP/1.0 200"));
        let mut twice = opened(port, &format!("{GET}lonely\r\n\r\n"));
        assert!(head(&mut twice).starts_with("HTTP/1.0 409"));
        closed(&mut twice);
        let mut silent = opened(port, &format!("{GET}silent\r\n\r\n"));
        assert!(head(&mut silent).starts_with("HTTP/1.0 200"));
        let mut half = opened(port, &format!("{POST}silent\r\n\r\n"));
        let mut wrong = opened(port, &format!("{GET}wrong\r\n\r\n"));
        assert!(head(&mut wrong).starts_with("HTTP/1.0 200"));
        let mut letters = opened(port, &format!("{POST}wrong\r\n\r\nT1BUSU9OUyA!"));
        for stream in [&mut lonely, &mut silent, &mut half, &mut wrong, &mut letters] {
            assert!(closed(stream) < Duration::from_secs(20));
        }
    }
    // All eight places are free a moment later: four tunnels, each a GET and a POST that comes in bytes.
    let open = || {
        let open = |number| {
            let mut get = opened(port, &format!("{GET}c{number}\r\n\r\n"));
            let is_open = head(&mut get).starts_with("HTTP/1.0 200");
            let mut post = opened(port, &format!("{POST}c{number}\r\n\r\n"));
            // OPTIONS * RTSP/1.0, CSeq: 1
            for letter in b"T1BUSU9OUyAqIFJUU1AvMS4wDQpDU2VxOiAxDQoNCg==" {
                let _ = post.write_all(&[*letter]).and_then(|()| post.flush());
            }
            (is_open && head(&mut get).starts_with("RTSP/1.0 200")).then_some((get, post))
        };
        std::thread::sleep(Duration::from_millis(1_500));
        (0..4).map(open).collect::<Option<Vec<_>>>()
    };
    let tunnels = (0..10).find_map(|_| open()).expect("eight places");
    // Over the bound there is no room for another.
    let mut ninth = opened(port, &format!("{GET}more\r\n\r\n"));
    assert!(closed(&mut ninth) < Duration::from_secs(20));
    drop(tunnels);
    let is_free = |_| {
        std::thread::sleep(Duration::from_millis(500));
        head(&mut opened(port, &format!("{GET}c0\r\n\r\n"))).starts_with("HTTP/1.0 200")
    };
    assert!((0..20).any(is_free), "its cookie is free again");
}

#[test]
fn requests_that_come_in_too_slowly_end_their_connection() {
    let server = serve(&["--max-connections", "8", "--request-timeout", "1s", "--tls-self-signed"]);
    let slow = |text: &str| {
        let mut stream = opened(server.rtsp, "");
        let began = Instant::now();
        for byte in text.bytes().chain(std::iter::repeat(b'a')) {
            if stream.write_all(&[byte]).is_err() {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(40), "{text}: still open");
            std::thread::sleep(Duration::from_millis(50));
        }
        began.elapsed()
    };
    std::thread::scope(|scope| {
        let begun = ["DESCRIBE rtsp://127.0.0.1/", "GET /", "POST /", "$\0\u{7f}\u{7f}"];
        let all = begun.map(|text| scope.spawn(move || (text, slow(text))));
        for one in all {
            let (text, took) = one.join().unwrap();
            assert!((1.0..30.0).contains(&took.as_secs_f64()), "{text:?}: {took:?}");
        }
    });
    // Who is silent between requests stays.
    let mut idle = connect(server.rtsp);
    assert!(ask(&mut idle, "OPTIONS", "*", "").starts_with("RTSP/1.0 200"));
    std::thread::sleep(Duration::from_millis(1500));
    assert!(ask(&mut idle, "OPTIONS", "*", "").starts_with("RTSP/1.0 200"));
}
