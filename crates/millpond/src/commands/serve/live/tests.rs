use super::*;

fn bases(scheme: &str, port: u16) -> Bases {
    Bases {
        here: format!("{scheme}://localhost:{port}"),
        is_on_loopback: true,
        others: vec![format!("{scheme}://192.0.2.10:{port}")],
    }
}

/// Lines about places, where RTMP and RTMP over TLS are on or off.
fn told(places: &[LiveSummary], (has_rtmp, has_rtmps): (bool, bool)) -> String {
    let [http, rtsp, rtmp, rtmps] =
        [("http", 8080), ("rtsp", 8554), ("rtmp", 1935), ("rtmps", 1936)].map(|(scheme, port)| bases(scheme, port));
    let (rtmp, rtmps) = (has_rtmp.then_some(&rtmp), has_rtmps.then_some(&rtmps));
    let at = Pushing { http: &http, rtsp: &rtsp, rtmp, rtmps, srt: None, has_webrtc: false };
    let mut text = String::new();
    tell(&mut text, places, &at).unwrap();
    text
}

fn place(name: &str, source: &str, publishing: Option<Publishing>) -> LiveSummary {
    LiveSummary { name: name.to_owned(), source: source.to_owned(), ladders: Vec::new(), publishing }
}

fn studio(publishing: Publishing) -> LiveSummary {
    place("studio", "publish:", Some(publishing))
}

#[test]
fn streams_of_cameras_have_their_addresses_and_ladders() {
    let ladders = ["door", "a b", "3", "4", "5", "6"].map(str::to_owned).to_vec();
    let cameras = LiveSummary { ladders, ..place("cams", "rtsp://10.0.0.7/", None) };
    let text = told(&[cameras], (false, false));
    assert!(text.starts_with("  cams/NAME is the live stream NAME of rtsp://10.0.0.7/, opened for its first viewer\n"));
    for line in [
        "    MP4     http://192.0.2.10:8080/cams/NAME/stream.mp4\n",
        "    RTSP    rtsp://192.0.2.10:8554/cams/NAME\n",
        "    ladder  door: http://192.0.2.10:8080/cams/door/index.m3u8\n",
        "    ladder  a b: http://192.0.2.10:8080/cams/a%20b/index.m3u8\n",
        "    and 1 more ladder\n",
    ] {
        assert!(text.contains(line), "no {line:?} in {text}");
    }
    assert!(!text.contains("push"), "{text}");
    let pulled = told(&[place("tv", "hls+https://media.example/a.m3u8", None)], (false, false));
    assert!(
        pulled.starts_with("  tv is the live stream of hls+https://media.example/a.m3u8, opened for its first"),
        "{pulled}"
    );
    assert!(pulled.contains("/tv/index.m3u8\n") && !pulled.contains("NAME"), "{pulled}");
    let called = told(&[place("tv", "whep+https://media.example/whep", None)], (false, false));
    assert!(called.starts_with("  tv is the live stream of whep+https://media.example/whep, opened"), "{called}");
    let tv = told(&[place("tv", "udp://239.1.1.1:5000", None)], (false, false));
    assert!(tv.contains("tv/NAME is the programme with the number NAME of udp://239.1.1.1:5000, opened"), "{tv}");
}

#[test]
fn without_users_commands_are_for_this_machine() {
    let text = told(&[studio(Publishing::ThisMachine)], (true, false));
    let expected = "  studio/NAME is a live stream that is pushed, with any NAME
    push    ffmpeg -re -i film.mp4 -c copy -f rtsp -rtsp_transport tcp rtsp://localhost:8554/studio/NAME
    push    ffmpeg -re -i film.mp4 -c copy -f flv rtmp://localhost:1935/studio/NAME
    push    ffmpeg -re -i film.mp4 -c copy -f mpegts -method PUT http://localhost:8080/studio/NAME
    OBS     Server: rtmp://localhost:1935/studio  Stream key: NAME
    who     this machine only; for other devices set publish-users, a file of name:password lines, or publish-open
    HLS     http://192.0.2.10:8080/studio/NAME/index.m3u8
";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with(
            "    ladder  of all streams studio/FOLDER/NAME: http://192.0.2.10:8080/studio/FOLDER/index.m3u8\n"
        ),
        "{text}"
    );
    let off = told(&[studio(Publishing::ThisMachine)], (false, false));
    assert!(off.contains("    OBS     needs RTMP, which is off; this turns it on: --rtmp 0.0.0.0:1935\n"), "{off}");
}

#[test]
fn open_places_and_those_of_another_server_have_addresses_of_the_network() {
    for (publishing, who) in [(Publishing::Open, "everybody (publish-open)"), (Publishing::External, "auth-url admits")]
    {
        let text = told(&[studio(publishing)], (true, false));
        for part in ["tcp rtsp://192.0.2.10:8554/studio/NAME\n", "flv rtmp://192.0.2.10:1935/studio/NAME\n", who] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }
}

#[test]
fn users_push_with_passwords_which_rtmp_takes_from_other_devices_over_tls_only() {
    let plain = told(&[studio(Publishing::Users)], (true, false));
    for part in [
        "tcp rtsp://USER:PASSWORD@192.0.2.10:8554/studio/NAME\n",
        "-method PUT http://USER:PASSWORD@192.0.2.10:8080/studio/NAME\n",
        "flv 'rtmp://localhost:1935/studio/NAME?user=USER&pass=PASSWORD'\n",
        "OBS     Server: rtmp://localhost:1935/studio  Stream key: NAME?user=USER&pass=PASSWORD\n",
        "by RTMP this machine only, other devices need rtmps\n",
    ] {
        assert!(plain.contains(part), "no {part:?} in {plain}");
    }
    let secure = told(&[studio(Publishing::Users)], (true, true));
    assert!(secure.contains("OBS     Server: rtmps://192.0.2.10:1936/studio  Stream key: NAME?user="), "{secure}");
    assert!(secure.contains("who     users of publish-users\n"), "{secure}");
}

#[test]
fn no_command_is_told_that_would_be_refused() {
    // Clients that connect to an address of the network don't come by the loopback.
    let one = |scheme: &str| {
        let base = format!("{scheme}://192.0.2.10:80");
        Bases { here: base.clone(), is_on_loopback: false, others: vec![base] }
    };
    let (http, rtsp, rtmp) = (one("http"), one("rtsp"), one("rtmp"));
    let at = Pushing { http: &http, rtsp: &rtsp, rtmp: Some(&rtmp), rtmps: None, srt: None, has_webrtc: false };
    let mut text = String::new();
    tell(&mut text, &[studio(Publishing::ThisMachine)], &at).unwrap();
    assert!(!text.contains("ffmpeg") && !text.contains("OBS"), "{text}");
    assert!(text.contains("    who     this machine only"), "{text}");
}

#[test]
fn a_place_without_a_name_and_many_places_have_few_lines() {
    let alone = told(&[place("", "publish:", Some(Publishing::Open))], (true, false));
    assert!(alone.contains("flv rtmp://192.0.2.10:1935/NAME\n"), "{alone}");
    assert!(alone.contains("OBS     Server: rtmp://192.0.2.10:1935/  Stream key: NAME\n"), "{alone}");
    let many: Vec<_> = ["a", "b", "c"].map(|name| place(name, "rtsp://10.0.0.7/", None)).to_vec();
    let text = told(&many, (false, false));
    let last = "  c/NAME is the live stream NAME of rtsp://10.0.0.7/: http://192.0.2.10:8080/c/NAME/index.m3u8\n";
    assert!(text.ends_with(last), "{text}");
}

#[test]
fn addresses_that_a_shell_would_change_are_quoted() {
    let plain = "rtsp://localhost:8554/studio/NAME";
    assert_eq!(in_shell(plain.to_owned()), plain);
    for (url, quoted) in [
        ("http://[::1]:8080/studio/NAME", "'http://[::1]:8080/studio/NAME'"),
        ("rtmp://h/a?user=USER&pass=PASSWORD", "'rtmp://h/a?user=USER&pass=PASSWORD'"),
        ("http://h/it's?", "'http://h/it'\\''s?'"),
    ] {
        assert_eq!(in_shell(url.to_owned()), quoted);
    }
    let on_six = |scheme: &str| Bases { here: format!("{scheme}://[::1]:1"), is_on_loopback: true, others: Vec::new() };
    let [http, rtsp] = [on_six("http"), on_six("rtsp")];
    let mut text = String::new();
    let at = Pushing { http: &http, rtsp: &rtsp, rtmp: None, rtmps: None, srt: None, has_webrtc: false };
    tell(&mut text, &[studio(Publishing::ThisMachine)], &at).unwrap();
    assert!(text.contains(" -method PUT 'http://[::1]:1/studio/NAME'\n"), "{text}");
    assert!(text.contains(" -rtsp_transport tcp 'rtsp://[::1]:1/studio/NAME'\n"), "{text}");
}

#[test]
fn webrtc_has_an_address_where_it_is_on() {
    let (http, rtsp) = (bases("http", 8080), bases("rtsp", 8554));
    let cameras = [place("cams", "rtsp://10.0.0.7/", None)];
    for has_webrtc in [true, false] {
        let at = Pushing { http: &http, rtsp: &rtsp, rtmp: None, rtmps: None, srt: None, has_webrtc };
        let mut text = String::new();
        tell(&mut text, &cameras, &at).unwrap();
        let line = "    WebRTC  http://192.0.2.10:8080/cams/NAME/whep\n";
        assert_eq!(text.contains(line), has_webrtc, "{text}");
    }
}
