//! Streams that play at given times: the frames are those of the assets, whoever watches, and the EPG tells them.

use super::publish::{hashes, push_clip, reader, until_published};
use crate::support::{
    Server,
    api::{api, items},
    clips, get, have,
};
use serde_json::Value;
use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Far more than anything here takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(90);
/// Coding of all assets: 25 pictures a second, key frames a second apart.
const CODING: &str = "-pix_fmt yuv420p -c:v libx264 -preset ultrafast -g 25 -bf 2 -c:a aac -aac_pns 0 -ac 2";
/// Name, test picture, seconds and filter.
const FILMS: [(&str, &str, u32, &str); 4] = [
    ("a.mp4", "testsrc2", 6, "null"),
    ("b.mp4", "testsrc2", 8, "hue=h=90"),
    ("long.mp4", "testsrc2", 60, "hue=h=180"),
    ("wait.mp4", "testsrc", 2, "null"),
];

/// A folder with the assets, and the file of a schedule.
struct Films(tempfile::TempDir);

impl Films {
    fn make(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, picture, seconds, filter) in FILMS.iter().filter(|(name, ..)| names.contains(name)) {
            let args = format!(
                "-f lavfi -i {picture}=size=320x180:rate=25:duration={seconds} -f lavfi -i sine=sample_rate=48000:duration={seconds} \
                 -vf {filter} -metadata title=Film:{name} {CODING}"
            );
            clips::make(&folder.path().join(name), &args);
        }
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes the file of the schedule.
    fn plan(&self, filler: &str, entries: &[String]) {
        let mut text = format!("title = \"Pond & TV\"\nfiller = \"{filler}\"\n");
        for entry in entries {
            write!(text, "\n[[entry]]\n{entry}\n").unwrap();
        }
        fs::write(self.file("tv.toml"), text).unwrap();
    }

    fn serve(&self, more: &[&str]) -> Server {
        let (films, line) =
            (format!("films={}", self.0.path().display()), format!("live/tv={}", self.file("tv.toml").display()));
        Server::start(&[&["live=publish:", &films, "--schedule", &line, "--linger", "0s"], more].concat())
    }

    /// Pictures of the assets, by names.
    fn pictures(&self, names: &[&str]) -> Vec<(String, Vec<String>)> {
        let of = |name: &&str| {
            let pictures = hashes(reader(&["-i", self.file(name).to_str().unwrap()], "0:v", 10_000));
            ((*name).to_owned(), pictures)
        };
        names.iter().map(of).collect()
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// A time of RFC 3339.
fn time(seconds: u64) -> String {
    let output = Command::new("date").args(["-u", "-d", &format!("@{seconds}"), "+%FT%TZ"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Seconds since the Unix epoch of a time of RFC 3339.
fn seconds(time: &str) -> u64 {
    let output = Command::new("date").args(["-u", "-d", time, "+%s"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

/// A time of the day in UTC.
fn of_day(seconds: u64) -> String {
    time(seconds)[11..19].to_owned()
}

/// Some pictures of an asset, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    name: String,
    first: usize,
    count: usize,
}

/// Splits the pictures that a player got. The filler's laps are one stretch. Where an asset is cut off, the last picture may have arrived without those
/// that are shown before it.
#[track_caller]
fn stretches(got: &[String], films: &[(String, Vec<String>)]) -> Vec<Stretch> {
    let place = |hash: &String| {
        let find = |(name, pictures): &(String, Vec<String>)| {
            Some((name.clone(), pictures.iter().position(|of| of == hash)?, pictures.len()))
        };
        films.iter().find_map(find).unwrap_or_else(|| panic!("a picture of no asset: {got:?}"))
    };
    let mut all: Vec<Stretch> = Vec::new();
    for hash in got {
        let (name, at, length) = place(hash);
        let next = all.last().map(|last| last.first + last.count).unwrap_or_default();
        let next = if name == "wait.mp4" { next % length } else { next };
        match all.last_mut() {
            Some(last) if last.name == name && at == next => last.count += 1,
            _ => all.push(Stretch { name, first: at, count: 1 }),
        }
    }
    let is_last_picture = |pair: &[Stretch]| pair[1].count == 1 && pair[0].name == pair[1].name;
    while let Some(place) = all.windows(2).position(is_last_picture) {
        all.remove(place + 1);
    }
    all
}

/// A reader of a stream by HTTP, by RTSP, or by HLS.
fn readers(server: &Server, count: usize) -> [(&'static str, std::process::Child); 3] {
    let rtsp = format!("rtsp://127.0.0.1:{}/live/tv", server.rtsp);
    [
        ("http", reader(&["-i", &server.url("live/tv/stream.ts")], "0:v", count)),
        ("rtsp", reader(&["-rtsp_transport", "tcp", "-i", &rtsp], "0:v", count)),
        ("hls", reader(&["-live_start_index", "0", "-i", &server.url("live/tv/ts/index.m3u8")], "0:v", count)),
    ]
}

/// The only schedule.
fn listed(server: &Server) -> Value {
    items(server.admin, "schedules")[0].take()
}

/// Waits until something is on the air.
#[track_caller]
fn until_plays(server: &Server, path: &str) {
    let began = Instant::now();
    while listed(server)["plays"] != path {
        assert!(began.elapsed() < LONG, "{path} does not play: {} {}", listed(server), server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn entries_play_at_their_times_and_the_filler_between_them() {
    let films = Films::make(&["a.mp4", "b.mp4", "wait.mp4"]);
    let names = ["a.mp4", "b.mp4", "wait.mp4"];
    let pictures = films.pictures(&names);
    let begin = now().as_secs() + 8;
    let at = |after: u64| time(begin + after);
    films.plan(
        "films/wait.mp4",
        &[
            format!("at = {}\nasset = \"films/a.mp4\"\ntitle = \"First\"", at(0)),
            // After 2 s of the filler: cut off by the next one, which begins in the middle.
            format!("at = \"{}\"\nasset = \"films/b.mp4\"", of_day(begin + 8)),
            format!("at = {}\nasset = \"films/a.mp4\"\nfrom = \"2500ms\"", at(11)),
            format!("at = {}\nasset = \"films/none.mp4\"\ntitle = \"Lost\"", at(17)),
            format!("at = {}\nasset = \"films/b.mp4\"\nfor = \"4s\"", at(20)),
        ],
    );
    let server = films.serve(&[]);
    until_plays(&server, "films/wait.mp4");
    for (by, reader) in readers(&server, 800) {
        let got = stretches(&hashes(reader), &pictures);
        println!("{by}: {got:?}");
        let order: Vec<_> = got.iter().map(|stretch| stretch.name.as_str()).collect();
        let expected = ["wait.mp4", "a.mp4", "wait.mp4", "b.mp4", "a.mp4", "wait.mp4", "b.mp4"];
        assert!(order == expected || order == [&expected[..], &["wait.mp4"]].concat(), "{by}: {got:?}");
        let part = |place: usize| (got[place].first, got[place].count);
        assert_eq!(part(1), (0, 150), "{by}: all of the first entry");
        // 3 s, or a little more on a busy machine.
        assert!(part(3).0 == 0 && (60..125).contains(&part(3).1), "{by}: {got:?}");
        assert_eq!(part(4), (50, 100), "{by}: from the key frame before 2.5 s to the end");
        assert_eq!(part(6).0, 0, "{by}");
        assert!([2, 5].iter().all(|place| part(*place).0 == 0), "{by}: the filler begins at its beginning: {got:?}");
    }
    // DASH has a period for each.
    let manifest = get(server.port, "/live/tv/index.mpd", &[]).text();
    assert!(manifest.matches("<Period ").count() >= 3, "{manifest}");
    let log = server.log_text();
    let plays = log.lines().filter(|line| line.contains("a schedule plays an entry"));
    let plays: Vec<Value> = plays.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(plays.len(), 4, "{plays:?}");
    for line in plays {
        let [said, at] = ["timestamp", "at"].map(|key| seconds(line[key].as_str().unwrap()));
        assert!((at..at + 5).contains(&said), "on time: {line}");
    }
    let events = |kind: &str| server.metric("millpond_events_total", kind);
    assert!(events("\"millpond.schedule\"") >= 7.0, "each change is an event");
    assert_eq!(events("\"millpond.source.lost\""), 0.0, "a change is no loss");
    let missing = log.lines().find(|line| line.contains("a schedule plays its filler instead of an entry"));
    assert!(missing.is_some_and(|line| line.contains("none.mp4") && line.contains("\"title\":\"Lost\"")), "{log}");
    let early = log.lines().find(|line| line.contains("an asset of a schedule can't be played"));
    assert!(early.is_some_and(|line| line.contains("films/none.mp4")), "before its time: {log}");
}

#[test]
fn a_server_that_starts_late_plays_from_the_middle_and_follows_its_file() {
    let films = Films::make(&["a.mp4", "long.mp4", "wait.mp4"]);
    let pictures = films.pictures(&["a.mp4", "long.mp4", "wait.mp4"]);
    let at = now().as_secs() - 15;
    let long = format!("at = {}\nasset = \"films/long.mp4\"\ndescription = \"From <15> s on\"", time(at));
    let far = format!("at = {}\nasset = \"films/a.mp4\"\ntitle = \"Tom & Jerry\"", time(at + 3600));
    films.plan("films/wait.mp4", &[long.clone(), far.clone()]);
    let server = films.serve(&[]);
    until_plays(&server, "films/long.mp4");
    let seen = now().as_secs_f64() - at as f64;
    let got = stretches(&hashes(reader(&["-i", &server.url("live/tv/stream.ts")], "0:v", 75)), &pictures);
    // The viewer begins with a key frame; each picture has the time that it has for all.
    let first = got[0].first as f64 / 25.0;
    assert!(got.len() == 1 && got[0].name == "long.mp4" && got[0].first.is_multiple_of(25), "{got:?}");
    assert!((14.0..=seen + 5.0).contains(&first), "{first} s of the film after {seen} s");
    guide(&server, at);

    // A file that is wrong changes nothing.
    fs::write(films.file("tv.toml"), "filler = \"films/wait.mp4\"\n[[entry]]\nat = 8\nasset = \"films/a.mp4\"\n")
        .unwrap();
    let began = Instant::now();
    while listed(&server)["error"].is_null() {
        assert!(began.elapsed() < LONG, "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    let state = listed(&server);
    assert!(state["error"].as_str().unwrap().starts_with("line 3: at: expected a time with its zone"), "{state}");
    assert_eq!((&state["plays"], &state["entries"]), (&"films/long.mp4".into(), &2.into()));
    let admin = format!("127.0.0.1:{}", server.admin);
    let reload = Command::new(env!("CARGO_BIN_EXE_millpond")).args(["reload", "--admin", &admin]).output().unwrap();
    let said = String::from_utf8_lossy(&reload.stderr).into_owned();
    assert!(!reload.status.success() && said.contains("line 3: at: expected"), "{said}");

    // A right one is taken: what plays goes on where its entry stays.
    let plays = listed(&server)["since"].clone();
    films.plan("films/wait.mp4", &[long.clone(), far, format!("at = {}\nasset = \"films/a.mp4\"", time(at + 7200))]);
    let began = Instant::now();
    while listed(&server)["entries"] != 3 {
        assert!(began.elapsed() < LONG, "{}", server.log_text());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!((&listed(&server)["since"], &listed(&server)["error"]), (&plays, &Value::Null));
    films.plan("films/wait.mp4", &[long, format!("at = {}\nasset = \"films/a.mp4\"", time(now().as_secs() + 3))]);
    until_plays(&server, "films/a.mp4");
    until_plays(&server, "films/wait.mp4");
}

#[test]
fn an_asset_that_is_damaged_while_it_plays_leaves_the_air_to_the_filler() {
    let films = Films::make(&["a.mp4", "wait.mp4"]);
    let file = films.file("a.mp4");
    let whole = fs::read(&file).unwrap();
    let began = time(now().as_secs() - 5);
    films.plan("films/wait.mp4", &[format!("at = {began}\nasset = \"films/a.mp4\"\nloop = true")]);
    let server = films.serve(&[]);
    until_plays(&server, "films/a.mp4");
    fs::write(&file, vec![7; whole.len()]).unwrap();
    until_plays(&server, "films/wait.mp4");
    assert!(listed(&server)["why"].is_string(), "{}", listed(&server));
    let played = reader(&["-i", &server.url("live/tv/stream.ts")], "0:v", 50);
    assert_eq!(hashes(played).len(), 50);
    fs::write(&file, whole).unwrap();
    until_plays(&server, "films/a.mp4");
    assert_eq!(listed(&server)["why"], Value::Null);
}

/// Checks the EPG of a film that began at a time.
fn guide(server: &Server, at: u64) {
    let began = Instant::now();
    let json = loop {
        let reply = get(server.port, "/live/tv/epg.json", &[]);
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
        let json: Value = serde_json::from_str(&reply.text()).unwrap();
        // Durations and titles are known once the assets were looked at.
        if json["programmes"][1]["stop"].is_string() {
            break json;
        }
        assert!(began.elapsed() < LONG, "{json}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!((&json["stream"], &json["title"]), (&"live/tv".into(), &"Pond & TV".into()));
    assert_eq!((&json["now"]["title"], &json["next"]["title"]), (&"Film:long.mp4".into(), &"Tom & Jerry".into()));
    let millis = |seconds: u64| time(seconds).replace('Z', ".000Z");
    assert_eq!((&json["now"]["start"], &json["now"]["stop"]), (&millis(at).into(), &millis(at + 60).into()));
    assert_eq!(json["programmes"][1]["start"], millis(at + 3600), "{json}");
    let state = listed(server);
    assert_eq!((&state["now"]["title"], &state["next"]["start"]), (&"Film:long.mp4".into(), &millis(at + 3600).into()));
    assert_eq!(
        (&state["is-filler"], &state["why"], &state["stream"]),
        (&false.into(), &Value::Null, &"live/tv".into())
    );

    let reply = get(server.port, "/live/tv/epg.xml", &[]);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/xml")));
    let file = server.cache.path().join("epg.xml");
    fs::write(&file, &reply.body).unwrap();
    let script = "import sys, xml.etree.ElementTree as xml, datetime\n\
                  for programme in xml.parse(sys.argv[1]).getroot().iter('programme'):\n\
                  \x20 start = datetime.datetime.strptime(programme.get('start'), '%Y%m%d%H%M%S %z')\n\
                  \x20 print(int(start.timestamp()), programme.get('channel'), programme.findtext('title'), programme.findtext('desc'), sep='|')";
    let output = Command::new("python3").args(["-c", script, file.to_str().unwrap()]).output().unwrap();
    let rows = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = format!("{at}|live/tv|Film:long.mp4|From <15> s on\n{}|live/tv|Tom & Jerry|None\n", at + 3600);
    assert_eq!(rows, expected, "{}", String::from_utf8_lossy(&output.stderr));
    if have("xmllint") {
        let lint = Command::new("xmllint").args(["--noout", "--nonet"]).arg(&file).output().unwrap();
        assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stderr));
    }
    assert_eq!(get(server.port, "/live/other/epg.json", &[]).status, 404);
    // The list for players leads to it.
    let list = get(server.port, "/.millpond/all.m3u", &[]).text();
    assert!(list.starts_with("#EXTM3U x-tvg-url=\"http://localhost/live/tv/epg.xml\"\n"), "{list}");
    assert!(list.contains("#EXTINF:-1 tvg-id=\"live/tv\","), "{list}");
}

#[test]
fn a_live_stream_plays_for_a_while_and_the_filler_while_it_is_gone() {
    let films = Films::make(&["a.mp4", "wait.mp4"]);
    let clip = clips::folder().join(super::publish::CLIP);
    fs::copy(&clip, films.file("cam.mp4")).unwrap();
    let pictures = films.pictures(&["a.mp4", "wait.mp4", "cam.mp4"]);
    let begin = now().as_secs() + 8;
    films.plan("films/wait.mp4", &[format!("at = {}\nstream = \"live/cam\"\ntitle = \"Outside\"", time(begin))]);
    let server = films.serve(&[]);
    let url = format!("rtsp://127.0.0.1:{}/live/cam", server.rtsp);
    let camera = push_clip("tcp", &url);
    until_published(&server, "live/cam");
    until_plays(&server, "films/wait.mp4");
    let watching = reader(&["-i", &server.url("live/tv/stream.ts")], "0:v", 350);
    until_plays(&server, "live/cam");
    let seconds = now().as_secs();
    assert!((begin..begin + 30).contains(&seconds), "at its time");
    let guide: Value = serde_json::from_str(&get(server.port, "/live/tv/epg.json", &[]).text()).unwrap();
    assert_eq!((&guide["now"]["live"], &guide["now"]["stop"]), (&true.into(), &Value::Null));
    let got = stretches(&hashes(watching), &pictures);
    println!("{got:?}");
    let order: Vec<_> = got.iter().map(|stretch| stretch.name.as_str()).collect();
    // The clip is pushed round and round.
    assert!(order[0] == "wait.mp4" && order[1..].iter().all(|name| *name == "cam.mp4") && order.len() > 1, "{got:?}");
    assert!(got[1].first.is_multiple_of(50) && got[1].count > 25, "from a key frame on: {got:?}");
    drop(camera);
    until_plays(&server, "films/wait.mp4");
    let state = listed(&server);
    assert!(state["is-filler"] == true && state["why"] == "its pictures do not arrive", "{state}");
    let _camera = push_clip("tcp", &url);
    until_plays(&server, "live/cam");
}

#[test]
fn the_sound_of_an_entry_is_heard_after_a_silent_filler() {
    let films = Films::make(&["a.mp4"]);
    let silent = "-f lavfi -i testsrc=size=320x180:rate=25:duration=2 -pix_fmt yuv420p -c:v libx264 -g 25 -video_track_timescale 90000";
    clips::make(&films.file("silent.mp4"), silent);
    let begin = now().as_secs() + 6;
    films.plan("films/silent.mp4", &[format!("at = {}\nasset = \"films/a.mp4\"\nloop = true", time(begin))]);
    let server = films.serve(&[]);
    until_plays(&server, "films/silent.mp4");
    until_published(&server, "live/tv");
    until_plays(&server, "films/a.mp4");
    let sound = || {
        let mut command = Command::new("ffmpeg");
        command.args([
            "-v",
            "error",
            "-nostdin",
            "-i",
            &server.url("live/tv/stream.ts"),
            "-map",
            "0:a",
            "-frames:a",
            "50",
        ]);
        command.args(["-f", "null", "-"]).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    };
    let began = Instant::now();
    while !sound() {
        assert!(began.elapsed() < LONG, "{}", server.log_text());
    }
}

#[test]
fn the_epg_has_the_rules_of_its_stream() {
    let films = Films::make(&["wait.mp4"]);
    films.plan("films/wait.mp4", &[]);
    fs::write(films.file("users"), "ann:secret\n").unwrap();
    let server = films.serve(&["--access-users", films.file("users").to_str().unwrap()]);
    // The file is read after the start.
    until_plays(&server, "films/wait.mp4");
    for path in ["/live/tv/epg.json", "/live/tv/epg.xml"] {
        assert_eq!(get(server.port, path, &[]).status, 401, "{path}");
        let reply = get(server.port, path, &[("Authorization", "Basic YW5uOnNlY3JldA==")]);
        assert_eq!((reply.status, reply.header("cache-control")), (200, Some("private, max-age=10")), "{path}");
    }
    assert_eq!(api(server.admin, "schedules")["items"][0]["entries"], 0);
}

#[test]
fn bad_schedules_are_refused_with_file_line_and_cure() {
    let films = Films::make(&[]);
    let file = films.file("tv.toml");
    for (entries, words) in [
        (
            "at = \"20:00\"\nasset = \"films/a.mp4\"\nfor = \"2h\"\n[[entry]]\nat = \"21:00\"\nasset = \"films/b.mp4\"",
            "line 2: its for of 7200s",
        ),
        ("at = \"20:00\"\nasset = \"movies/a.mp4\"", "line 2: asset: no place has the path movies/a.mp4: correct it"),
        (
            "at = \"20:00\"\nasset = \"live/cam\"",
            "line 2: asset: live/cam is a live stream: write stream = \"live/cam\"",
        ),
        ("at = \"20:00\"\nstream = \"films/a.mp4\"", "line 2: stream: films/a.mp4 is no live stream: write asset"),
        ("at = \"20:00\"\nstream = \"live/tv\"", "live/tv is the stream of this schedule"),
        ("at = \"20:00\"\nassets = \"films/a.mp4\"", "line 4: unknown key \"assets\"; did you mean asset?"),
    ] {
        fs::write(&file, format!("filler = \"films/w.mp4\"\n[[entry]]\n{entries}\n")).unwrap();
        let line = format!("live/tv={}", file.display());
        let places = ["live=publish:".to_owned(), format!("films={}", films.0.path().display())];
        let output = Command::new(env!("CARGO_BIN_EXE_millpond"))
            .args(["check", &places[0], &places[1], "--schedule", &line])
            .output()
            .unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let is_named = said.contains(words) && said.contains(file.to_str().unwrap());
        assert!(!output.status.success() && is_named, "{entries}: {said}");
    }
}
