//! Running streams: a channel by HTTP, and a live source whose connection is bad.

use super::{By, recordings::noise, watch::Watch};
use crate::{
    live::cues::{film, push},
    support::{
        Server,
        api::{body, send},
        have,
        small_disk::SmallDisk,
    },
};
use std::{
    io::{self, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// A connection on which a server sends a stream in one long response.
fn viewer(server: &Server, path: &str) -> TcpStream {
    let mut client = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    write!(client, "GET /{path}/stream.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    client
}

#[test]
fn a_channel_by_http() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample");
    let server = Server::start(&[folder.to_str().unwrap(), "--rtsp-channels", "180p.mp4"]);
    let watch = Watch::begin(&server);
    let mut client = viewer(&server, "180p.mp4");
    watch.until("millpond_http_stream_viewers", || {
        // Nothing may have arrived yet.
        let _ = client.read(&mut [0; 1024]);
    });
    watch.end(By::Live, &server);
}

#[test]
fn a_live_source_with_a_bad_connection() {
    if !have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // 20 Mbit/s: what a viewer may have waiting is soon full.
    noise(&folder.path().join("noise.mp4"), "320x180");
    let upstream = Server::start(&[folder.path().to_str().unwrap(), "--rtsp-channels", "noise.mp4"]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", relay(upstream.rtsp));
    let edge = Server::start(&[&place, "--source-transport", "tcp"]);
    let watch = Watch::begin(&edge);
    let mut reads = viewer(&edge, "cams/noise.mp4");
    let _reads_nothing = viewer(&edge, "cams/noise.mp4");
    for family in ["millpond_live_dropped_frames_total", "millpond_live_reconnections_total"] {
        watch.until(family, || _ = reads.read(&mut [0; 1 << 16]));
    }
    watch.end(By::BadSource, &edge);
}

#[test]
fn a_clip_in_a_live_stream() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample");
    let folder = folder.to_str().unwrap();
    let upstream = Server::start(&[folder, "--rtsp-channels", "180p.mp4"]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", upstream.rtsp);
    let edge = Server::start(&[&place, &format!("films={folder}"), "--source-transport", "tcp"]);
    let watch = Watch::begin(&edge);
    let mut client = viewer(&edge, "cams/180p.mp4");
    let mut status = 409;
    watch.until("millpond_live_insertions_total", || {
        let _ = client.read(&mut [0; 1 << 16]);
        if status == 409 {
            let ask = body("path=cams/180p.mp4&clip=films/180p.mp4");
            status = send(edge.admin, "POST", "insertions", &ask, &[]).status;
        }
    });
    assert_eq!(status, 201);
    watch.end(By::Inserted, &edge);
}

#[test]
fn a_transport_stream_with_cues() {
    if !have("ffmpeg") {
        return;
    }
    let edge = Server::start(&["live=publish:"]);
    let watch = Watch::begin(&edge);
    let publisher = push(edge.port, film());
    let mut client = viewer(&edge, "live/tv");
    watch.until("millpond_live_cues_total", || _ = client.read(&mut [0; 1 << 16]));
    watch.end(By::Cues, &edge);
    drop(edge);
    publisher.join().unwrap();
}

#[test]
fn a_live_source_with_too_many_bits() {
    if !have("ffmpeg") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    noise(&folder.path().join("noise.mp4"), "320x180");
    let upstream = Server::start(&[folder.path().to_str().unwrap(), "--rtsp-channels", "noise.mp4"]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", upstream.rtsp);
    // 8 Mbit/s at most.
    let edge = Server::start(&[&place, "--source-transport", "tcp", "--stream-memory", "4MiB"]);
    let watch = Watch::begin(&edge);
    let mut client = viewer(&edge, "cams/noise.mp4");
    watch.until("millpond_live_refused_total", || _ = client.read(&mut [0; 1 << 16]));
    watch.end(By::HugeSource, &edge);
}

/// Moves a family with a live stream whose past is kept in a folder.
fn keep(past: &Path, family: &str, by: By) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample");
    let upstream = Server::start(&[folder.to_str().unwrap(), "--rtsp-channels", "180p.mp4"]);
    let place = format!("cams=rtsp://127.0.0.1:{}/", upstream.rtsp);
    let shift = ["--time-shift", "1h", "--time-shift-folder", past.to_str().unwrap()];
    let edge = Server::start(&[&[&*place, "--source-transport", "tcp"], &shift[..]].concat());
    let watch = Watch::begin(&edge);
    let mut client = viewer(&edge, "cams/180p.mp4");
    watch.until(family, || _ = client.read(&mut [0; 1 << 16]));
    watch.end(by, &edge);
}

#[test]
fn a_past_that_is_kept() {
    keep(tempfile::tempdir().unwrap().path(), "millpond_live_time_shift_bytes", By::Shift);
}

#[test]
fn a_past_that_does_not_fit() {
    let Some(disk) = SmallDisk::mount() else { return };
    keep(disk.0.path(), "millpond_live_time_shift_failing", By::BadShift);
}

/// Relays RTSP connections to a port, badly. Returns its own port.
fn relay(upstream: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(("127.0.0.1", upstream)) else { return };
            // It ends with one of the connections.
            thread::spawn(move || spoil(client, server));
        }
    });
    port
}

/// Relays one connection for 10 s. Of 1000 packets of media, those of some 10 frames, it leaves out one, and adds one that is none.
fn spoil(mut client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (mut requests, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || io::copy(&mut requests, &mut to));
    let (mut server, began) = (BufReader::new(server), Instant::now());
    for packet in 0.. {
        if began.elapsed() > Duration::from_secs(10) {
            break;
        }
        let message = message(&mut server)?;
        match (message.first(), packet % 1000) {
            (Some(b'$'), 999) => continue,
            (Some(b'$'), 499) => client.write_all(&[b'$', message[1], 0, 1, 0])?,
            _ => {}
        }
        client.write_all(&message)?;
    }
    client.shutdown(Shutdown::Both)
}

/// The next reply or packet of a server (RFC 2326 10.12).
fn message(server: &mut impl io::BufRead) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    let length = if server.fill_buf()?.first() == Some(&b'$') {
        message.resize(4, 0);
        server.read_exact(&mut message)?;
        u16::from_be_bytes([message[2], message[3]]).into()
    } else {
        let mut length = 0;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if server.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            message.extend_from_slice(line.as_bytes());
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        length
    };
    let head = message.len();
    message.resize(head + length, 0);
    server.read_exact(&mut message[head..])?;
    Ok(message)
}
