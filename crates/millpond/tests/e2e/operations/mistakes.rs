//! Mistakes of users: each is typed as docs/handbook/mistakes.md shows it, and the answer has the words that help.
//!
//! `MILLPOND_WRITE_DOCS=1` writes the page; `MILLPOND_BEFORE=PROGRAM` also fills the column of what an earlier build prints.

mod cases;

use crate::support::{self, Running, free_port, small_disk::SmallDisk, wait_for_port};
use cases::{CASES, Case};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Longest line of an answer on the page, in characters.
const LONGEST: usize = 260;

/// Begin of the page.
const HEAD: &str = "# Mistakes, and what is said\n\n\
    Each row is a mistake in a configuration, a command or a request. An error message says what was given, what is expected and what to do.\n\
    The names of files such as `expired.pem` tell what is wrong with them, and `films` is a folder. The server of the last rows has a place\n\
    `films` and a place `live` with `publish:`. The column `before` is what an earlier build printed. A test types each row into the program,\n\
    and looks for the words that help (`crates/millpond/tests/e2e/operations/mistakes.rs`).\n";

/// A program, a folder with the files of the cases, and a server.
struct Bench {
    folder: tempfile::TempDir,
    ports: [u16; 3],
    _server: Running,
    _disk: Option<SmallDisk>,
}

impl Bench {
    fn new(program: &Path) -> Self {
        let folder = support::memory_folder();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("bin")).unwrap();
        symlink(program, path("bin/millpond")).unwrap();
        fs::create_dir_all(path("films")).unwrap();
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../millpond-server/sample/180p.mp4");
        fs::copy(sample, path("films/a.mp4")).unwrap();
        fs::write(path("films/notes.txt"), "Films to see").unwrap();
        fs::write(path("films/a.wmv"), [b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", &[0; 400][..]].concat()).unwrap();
        fs::write(path("key"), [b'k'; 32]).unwrap();
        certificates(folder.path());
        let disk = SmallDisk::mount();
        if let Some(SmallDisk(disk)) = &disk {
            symlink(disk.path(), path("small")).unwrap();
        }
        let ports = [free_port(), free_port(), free_port()];
        let server = serve(folder.path(), ports);
        Self { folder, ports, _server: server, _disk: disk }
    }

    /// Types all cases for which the files are there. The slow one, which waits for a publisher, runs beside the others.
    fn answers(&self) -> Vec<(&'static Case, String)> {
        let is_slow = |case: &&Case| case.typed.contains("/live/");
        let absent = |case: &Case, file: &str| case.typed.contains(file) && !self.folder.path().join(file).exists();
        let typed = CASES.iter().filter(|case| !absent(case, "version1.pem") && !absent(case, "small"));
        let (slow, quick): (Vec<_>, Vec<_>) = typed.partition(is_slow);
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| slow.into_iter().map(|case| (case, self.answer(case))).collect::<Vec<_>>());
            let mut answers: Vec<_> = quick.into_iter().map(|case| (case, self.answer(case))).collect();
            answers.extend(slow.join().unwrap());
            answers
        })
    }

    /// Types a case. Returns what is printed, with the folder and the ports of the page.
    fn answer(&self, case: &Case) -> String {
        if !case.file.is_empty() {
            fs::write(self.folder.path().join("a.toml"), case.file).unwrap();
        }
        let typed = self.shown_ports().fold(case.typed.to_owned(), |text, (shown, real)| text.replace(&shown, &real));
        let output = command(self.folder.path(), "timeout").args(["60", "sh", "-c", &typed]).output().unwrap();
        let text = [output.stderr, output.stdout].concat();
        let text = String::from_utf8_lossy(&text).replace(&format!("{}/", self.folder.path().display()), "");
        self.shown_ports().fold(text, |text, (shown, real)| text.replace(&real, &shown))
    }

    /// Addresses as the page shows them, and as they are.
    fn shown_ports(&self) -> impl Iterator<Item = (String, String)> {
        let address = |port: u16| format!("127.0.0.1:{port}");
        [8080, 8380, 8554].into_iter().zip(self.ports).map(move |(shown, real)| (address(shown), address(real)))
    }
}

/// A program that finds `millpond`, and no settings or keys of this machine.
fn command(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    for (name, _) in std::env::vars()
        .filter(|(name, _)| ["AWS_", "AZURE_", "GOOGLE_", "MILLPOND_"].iter().any(|p| name.starts_with(p)))
    {
        command.env_remove(name);
    }
    for name in ["MILLPOND_HTTP", "MILLPOND_RTSP", "MILLPOND_ADMIN"] {
        command.env(name, "127.0.0.1:0");
    }
    command
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .env("HOME", folder)
        .env("RUST_BACKTRACE", "0");
    command.env("XDG_CACHE_HOME", folder.join("home-cache")).current_dir(folder);
    command
}

fn serve(folder: &Path, [http, admin, rtsp]: [u16; 3]) -> Running {
    let text = format!(
        "http = \"127.0.0.1:{http}\"\nadmin = \"127.0.0.1:{admin}\"\nrtsp = \"127.0.0.1:{rtsp}\"\ncache = \"cache\"\n\
         [places.films]\nurl = \"films\"\n[places.live]\nurl = \"publish:\"\nsource-timeout = \"1s\"\n"
    );
    fs::write(folder.join("server.toml"), text).unwrap();
    let log = fs::File::create(folder.join("log")).unwrap();
    let mut serve = command(folder, "bin/millpond");
    for name in ["MILLPOND_HTTP", "MILLPOND_RTSP", "MILLPOND_ADMIN"] {
        serve.env_remove(name);
    }
    let server = serve.args(["serve", "--config", "server.toml"]).stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let server = Running(server);
    [http, admin, rtsp].iter().for_each(|port| wait_for_port(*port, &folder.join("log")));
    server
}

/// Certificates that are expired, not valid yet, of version 1, cut short and damaged.
fn certificates(folder: &Path) {
    for (name, from, to) in [("expired", 2020, 2021), ("early", 2090, 2091)] {
        let mut params = rcgen::CertificateParams::new(vec!["media.example".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(to, 1, 1));
        let key = rcgen::KeyPair::generate().unwrap();
        let text = params.self_signed(&key).unwrap().pem();
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
        fs::write(folder.join(format!("{name}.pem")), &text).unwrap();
        if name == "expired" {
            fs::write(folder.join("cut.pem"), &text[..text.len() / 2]).unwrap();
            fs::write(folder.join("damaged.pem"), text.replacen('M', "!", 3)).unwrap();
        }
    }
    if support::have("openssl") {
        let script = "openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out version1.key; \
                      openssl req -new -key version1.key -subj /CN=media.example -out request.pem; \
                      openssl x509 -req -in request.pem -signkey version1.key -days 30 -out version1.pem";
        let made = command(folder, "sh").args(["-c", script]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

#[test]
fn each_mistake_gets_an_answer_that_helps() {
    if !support::have("curl") {
        return;
    }
    let bench = Bench::new(Path::new(env!("CARGO_BIN_EXE_millpond")));
    let mut page = Page::read();
    let mut faults = Vec::new();
    for (case, answer) in bench.answers() {
        page.now.insert(key(case), lines(&answer, case));
        let missing = case.now.iter().filter(|words| !answer.contains(**words));
        let wrong = case.never.iter().filter(|words| answer.contains(**words));
        let told = lines(&answer, case);
        faults.extend(missing.map(|words| format!("{}{}\n  lacks {words:?}: {told}", case.file, case.typed)));
        faults.extend(wrong.map(|words| format!("{}{}\n  has {words:?}: {told}", case.file, case.typed)));
        faults.extend(
            (!page.has(case)).then(|| format!("{}: no row of docs/handbook/mistakes.md has these words", case.typed)),
        );
    }
    drop(bench);
    if std::env::var_os("MILLPOND_WRITE_DOCS").is_some() {
        page.write();
        faults.retain(|fault| !fault.ends_with("has these words"));
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// The page, by the first cells of its rows.
struct Page {
    text: String,
    before: BTreeMap<String, String>,
    now: BTreeMap<String, String>,
}

impl Page {
    fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/handbook/mistakes.md")
    }

    fn read() -> Self {
        let text = fs::read_to_string(Self::path()).unwrap_or_default();
        let cells = |line: &str| {
            let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
            let mut cells = line.split(" | ").map(str::to_owned);
            Some((cells.next()?, cells.next()?))
        };
        let before = text.lines().filter_map(cells).collect();
        Self { text, before, now: BTreeMap::new() }
    }

    /// Whether a row shows a case with the words of its answer.
    fn has(&self, case: &Case) -> bool {
        let begin = format!("| {} | ", key(case));
        let row = self.text.lines().find(|line| line.starts_with(&begin));
        let now = row.and_then(|row| row.rsplit(" | ").next()).unwrap_or_default();
        !now.is_empty() && case.now.iter().all(|words| now.contains(&cell(words)))
    }

    fn write(mut self) {
        if let Some(program) = std::env::var_os("MILLPOND_BEFORE") {
            let bench = Bench::new(Path::new(&program));
            self.before = bench.answers().iter().map(|(case, answer)| (key(case), lines(answer, case))).collect();
        }
        let mut page = HEAD.to_owned();
        let mut section = "";
        for case in CASES {
            if case.section != section {
                section = case.section;
                write!(page, "\n## {section}\n\n| typed | before | now |\n|---|---|---|\n").unwrap();
            }
            let told = |of: &BTreeMap<String, String>| of.get(&key(case)).cloned().unwrap_or_default();
            writeln!(page, "| {} | {} | {} |", key(case), told(&self.before), told(&self.now)).unwrap();
        }
        fs::write(Self::path(), page).unwrap();
    }
}

/// The first cell of a case.
fn key(case: &Case) -> String {
    let file = case.file.lines().map(|line| format!("`{}`<br>", cell(line)));
    let typed = format!("`{}`", cell(case.typed));
    file.chain([typed]).collect()
}

/// The lines of an answer that count: those with words that help or should not be there, else the first two.
fn lines(answer: &str, case: &Case) -> String {
    let is_value = |line: &str| {
        let name = line.split(" = ").next().unwrap_or_default();
        let is_place = line.starts_with(['[', ']', '"']) || line.trim_start().starts_with('"') || name == "places";
        (line.contains(" = ") && !name.contains(' '))
            || is_place
            || line.starts_with("# read")
            || line.ends_with(" is off")
    };
    // Where a value is what helps, its line counts.
    let counts = |line: &str, words: &str| line.contains(words) && (words.contains(['=', '[', ':']) || !is_value(line));
    let has = |line: &&str| case.now.iter().chain(case.never).any(|words| counts(line, words));
    let mut kept: Vec<&str> = answer.lines().filter(has).collect();
    if kept.is_empty() {
        kept = answer.lines().filter(|line| !line.trim().is_empty() && !is_value(line)).take(2).collect();
    }
    kept.dedup();
    let shown = kept.iter().take(3).map(|line| {
        let words =
            || case.now.iter().filter_map(|words| line.find(words).map(|at| at + words.len())).max().unwrap_or(0);
        let end = LONGEST.max(line[..words()].chars().count());
        let text: String = line.trim().chars().take(end).collect();
        format!("`{}`", cell(&scrubbed(&text)))
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() { "nothing".to_owned() } else { shown.join("<br>") }
}

/// A line without the time and the folders of the machine that built the program.
fn scrubbed(line: &str) -> String {
    let mut line = line.to_owned();
    if let (Some(begin), Some(end)) = (line.find("\"timestamp\":"), line.find("\"level\":")) {
        line.replace_range(begin..end, "");
    }
    while let Some(at) = line.find("/registry/src/") {
        let begin = line[..at].rfind([' ', '"']).map_or(0, |quote| quote + 1);
        let name = at + "/registry/src/".len();
        let end = line[name..].find('/').map_or(line.len(), |slash| name + slash + 1);
        line.replace_range(begin..end, "");
    }
    line
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('`', "'")
}
