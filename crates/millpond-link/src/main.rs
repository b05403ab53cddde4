//! `millpond-link`: a bad network between two namespaces.

use clap::Parser;
use millpond_link::direction::{Direction, Impairments};
use millpond_link::{End, Ends, Link};
use nix::sys::signal::{SigSet, Signal};
use std::error::Error;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Makes two network namespaces and a bad network between them
///
/// Impairments are comma-separated: delay=50ms, jitter=5ms, loss=1%, burst=ENTER/LEAVE[/LOSS] in percent, reorder=1%,
/// reorder-by=10ms, duplicate=1%, rate=4Mbit, queue=100ms or queue=64kB. Prints "ready" when packets can pass. Removes the namespaces
/// at SIGTERM and SIGINT, and prints its counters as JSON.
#[derive(Debug, Parser)]
#[command(name = "millpond-link", version)]
struct Options {
    /// First namespace and its addresses, such as site=10.1.0.1/24
    a: End,
    /// Second namespace and its addresses
    b: End,
    /// Impairments from the first to the second namespace
    #[arg(long, default_value = "")]
    ab: String,
    /// Impairments from the second to the first namespace
    #[arg(long, default_value = "")]
    ba: String,
    /// Impairments of both directions, before those of each
    #[arg(long, default_value = "")]
    both: String,
    /// Seed of all random numbers: one seed gives one sequence of losses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the counters to a file instead of standard output
    #[arg(long)]
    json: Option<PathBuf>,
    /// Read lines "ab IMPAIRMENTS" and "ba IMPAIRMENTS" that replace the impairments; end at the end of the input
    #[arg(long)]
    stdin: bool,
}

enum Event {
    Ended,
    Line(String),
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millpond-link: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let impairments = |own: &str| format!("{},{own}", options.both).parse::<Impairments>();
    // The second direction has other random numbers than the first one.
    let ab = Direction::new(impairments(&options.ab)?, options.seed);
    let ba = Direction::new(impairments(&options.ba)?, !options.seed);
    let (send, events) = channel();
    // Before any thread starts, so that all of them leave the signals to the one that waits.
    watch_signals(send.clone())?;
    let link = Link::start([ab, ba])?;
    let ends = Ends::make(&link, &[options.a.clone(), options.b.clone()])?;
    println!("ready");
    if options.stdin {
        thread::spawn(move || read_lines(&send));
    }
    while let Ok(Event::Line(line)) = events.recv() {
        if let Err(error) = change(&link, &line) {
            eprintln!("millpond-link: {line:?}: {error}");
        }
    }
    finish(link, &ends, options)
}

fn finish(link: Link, ends: &Ends, options: &Options) -> Result<(), Box<dyn Error>> {
    let unread = ends.unread()?;
    let mut report = link.end().ok_or("a thread of the link ended early")?;
    for (direction, unread) in [&mut report.ab, &mut report.ba].into_iter().zip(unread) {
        direction.unread = unread;
    }
    let text = serde_json::to_string(&report)?;
    match &options.json {
        Some(path) => std::fs::write(path, text + "\n")?,
        None => println!("{text}"),
    }
    Ok(())
}

fn watch_signals(send: Sender<Event>) -> Result<(), Box<dyn Error>> {
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    signals.thread_block()?;
    thread::spawn(move || {
        let _ = signals.wait();
        let _ = send.send(Event::Ended);
    });
    Ok(())
}

fn read_lines(send: &Sender<Event>) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let _ = send.send(Event::Line(line));
    }
    let _ = send.send(Event::Ended);
}

fn change(link: &Link, line: &str) -> Result<(), Box<dyn Error>> {
    let (direction, impairments) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let direction = match direction {
        "ab" => 0,
        "ba" => 1,
        _ => return Err("ab or ba is expected".into()),
    };
    link.change(direction, impairments.parse()?);
    Ok(())
}
