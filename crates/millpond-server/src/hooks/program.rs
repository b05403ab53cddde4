//! A program that is started for an event.

use super::target::Outcome;
use crate::events::Event;
use rustix::{
    fs::{OFlags, fcntl_setfl},
    process::{Pid, Signal, kill_process_group},
};
use std::{
    io::{self, ErrorKind, PipeReader, Read as _, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// Most bytes of a program's output that are logged.
const OUTPUT: usize = 4 << 10;
/// Interval between looks at the program.
const LOOK: Duration = Duration::from_millis(10);
/// Variables of the server that the program gets. Others may be secrets.
const KEPT: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR"];

/// Starts a program for an event, and waits until it ends. Blocks the thread for `limit` at most; the program and those that it has started
/// are then killed. Returns the outcome, and the beginning of its output.
pub(super) fn run(words: &[String], limit: Duration, event: &Event) -> (Outcome, String) {
    let mut output = Output::default();
    let outcome = match start(words, event) {
        Ok((child, reader)) => outcome(child, limit, || output.read(&reader)),
        Err(error) => Outcome::Refused(format!("it can't be started: {error}")),
    };
    (outcome, String::from_utf8_lossy(&output.kept).trim_end().to_owned())
}

/// Starts the program, and gives it the event. Its output comes by the pipe.
fn start(words: &[String], event: &Event) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    fcntl_setfl(&reader, OFlags::NONBLOCK)?;
    let [program, arguments @ ..] = words else { return Err(io::Error::other("no program is named")) };
    let kept = KEPT.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(kept)
        .envs([
            ("EVENT_ID", event.id()),
            ("EVENT_TYPE", event.kind().name()),
            ("EVENT_TIME", event.time()),
            ("EVENT_SOURCE", event.source()),
        ])
        // A variable has no NUL; the path of a stream may have one.
        .env("EVENT_SUBJECT", event.subject().replace('\0', ""))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // An event is shorter than the buffer of a pipe. A program that does not read it is no failure.
        let _ = input.write_all(event.json());
    }
    Ok((child, reader))
}

/// Waits for the end of the program. `read` is called meanwhile.
fn outcome(mut child: Child, limit: Duration, mut read: impl FnMut()) -> Outcome {
    let began = Instant::now();
    let ended = loop {
        let ended = child.try_wait();
        read();
        match ended {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if began.elapsed() > limit => break Err(format!("it was killed: it took more than {limit:?}")),
            Ok(None) => std::thread::sleep(LOOK),
            Err(error) => break Err(error.to_string()),
        }
    };
    match ended {
        Ok(status) if status.success() => Outcome::Delivered,
        Ok(status) => Outcome::Refused(told(status)),
        Err(why) => {
            // It may have ended by itself meanwhile.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            Outcome::Refused(why)
        }
    }
}

fn told(status: ExitStatus) -> String {
    format!("it failed: {status}")
}

/// The beginning of a program's output.
#[derive(Default)]
struct Output {
    kept: Vec<u8>,
}

impl Output {
    /// Reads the output in the pipe. Bytes beyond the limit are read and dropped, so that the program does not wait for room.
    fn read(&mut self, mut reader: &PipeReader) {
        let mut bytes = [0; 4096];
        // At most a buffer of a pipe: a program that writes without an end must not hold this thread.
        for _ in 0..16 {
            match reader.read(&mut bytes) {
                Ok(0) => return,
                Ok(count) => {
                    let room = OUTPUT.saturating_sub(self.kept.len());
                    self.kept.extend(bytes.iter().take(count.min(room)));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventMetrics, Events, Kind};
    use prometheus_client::registry::Registry;
    use serde_json::json;
    use std::sync::Arc;

    fn event() -> Arc<Event> {
        let events = Events::new("edge", 10, &EventMetrics::register(&mut Registry::default()));
        events.emit(Kind::SourceLost, "cams/a\0b $(date)", json!({ "why": "it left" }));
        events.after(0).unwrap().event
    }

    fn shell(script: &str, limit: Duration) -> (Outcome, String) {
        run(&["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()], limit, &event())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_program_gets_the_event_and_no_secrets() {
        let (outcome, output) = shell("cat; echo; env | sort; pwd", LONG);
        assert_eq!(outcome, Outcome::Delivered, "{output}");
        let lines: Vec<&str> = output.lines().collect();
        let body: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(body["data"]["why"], "it left");
        for line in ["EVENT_TYPE=millpond.source.lost", "EVENT_SUBJECT=cams/ab $(date)", "EVENT_SOURCE=millpond://edge"]
        {
            assert!(lines.contains(&line), "{output}");
        }
        assert!(!output.contains("CARGO") && lines.last() == Some(&"/"), "{output}");
    }

    #[test]
    fn failures_are_told() {
        let (outcome, output) = shell("echo oops >&2; exit 3", LONG);
        assert!(matches!(&outcome, Outcome::Refused(why) if why.contains('3')) && output == "oops", "{outcome:?}");
        let (outcome, _) = run(&["/nowhere/at/all".to_owned()], LONG, &event());
        assert!(matches!(&outcome, Outcome::Refused(why) if why.contains("started")), "{outcome:?}");
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("late");
        let began = Instant::now();
        let script = format!("(sleep 3; touch {}) & sleep 600", file.display());
        let (outcome, _) = shell(&script, Duration::from_millis(300));
        assert!(matches!(&outcome, Outcome::Refused(why) if why.contains("killed")), "{outcome:?}");
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(3500));
        assert!(!file.exists());
    }

    #[test]
    fn output_without_an_end_is_bounded() {
        let (outcome, output) = shell("exec yes", Duration::from_millis(300));
        assert!(matches!(outcome, Outcome::Refused(_)) && output.len() <= OUTPUT && output.starts_with("y\n"));
        // A child that keeps the pipe open does not hold the hook.
        let (outcome, output) = shell("sleep 5 & echo done", LONG);
        assert_eq!((outcome, output.as_str()), (Outcome::Delivered, "done"));
    }
}
