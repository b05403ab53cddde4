//! A week of recordings on a fast clock, in a folder on the disk.

use super::*;
use crate::{events::EventMetrics, recordings::plan::ShelfPlan};
use millpond_settings::{Host, Settings as _, machine::Machine};
use millpond_stream::{FilePlan as _, RecordingEnd, WrittenFile};
use prometheus_client::registry::Registry;
use std::{collections::BTreeSet, fs::File, io::Write as _};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const STREAMS: [&str; 3] = ["cams/door", "cams/yard", "live/talk"];

fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    [&(8 + content.len() as u32).to_be_bytes()[..], kind, content].concat()
}

/// A stream that is recorded: a fragment for each minute, which names the minute.
struct Recorder {
    stream: &'static str,
    plan: ShelfPlan,
    open: Option<(File, WrittenFile)>,
}

/// A server with a clock of its own.
struct Simulation {
    shelf: Arc<Shelf>,
    recorders: Vec<Recorder>,
    now: Duration,
    events: Arc<Events>,
    settings: RecordSettings,
    /// Stream and minute of all fragments that were written, and of those that the bucket has.
    written: BTreeSet<(String, u64)>,
    bucket: BTreeSet<(String, u64)>,
}

fn shelf(folder: &std::path::Path, settings: &RecordSettings, events: &Arc<Events>) -> Arc<Shelf> {
    let metrics = RecordingMetrics::register(&mut Registry::default());
    Arc::new(Shelf::new(folder.to_owned(), settings.clone(), events.clone(), &metrics))
}

/// The minutes in a file.
fn minutes(bytes: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(bytes);
    let found = text.split("minute ").skip(1).filter_map(|rest| rest.split(';').next()?.parse().ok());
    found.collect()
}

impl Simulation {
    fn new(folder: &std::path::Path, change: impl FnOnce(&mut RecordSettings)) -> Self {
        let mut settings = RecordSettings::defaults(&Host { machine: Machine::detect(), variable: &|_| None });
        change(&mut settings);
        let events = Events::new("edge", 100_000, &EventMetrics::register(&mut Registry::default()));
        let shelf = shelf(folder, &settings, &events);
        let now = Duration::from_secs(1_795_305_600) + 20 * MINUTE;
        let (written, bucket) = (BTreeSet::new(), BTreeSet::new());
        let mut simulation = Self { shelf, recorders: Vec::new(), now, events, settings, written, bucket };
        simulation.begin();
        simulation
    }

    fn begin(&mut self) {
        let recorder = |stream| Recorder { stream, plan: ShelfPlan::new(stream, self.shelf.clone()), open: None };
        self.recorders = STREAMS.into_iter().map(recorder).collect();
    }

    /// Each stream records a minute.
    fn minute(&mut self) {
        let now = self.now;
        for Recorder { stream, plan, open } in &mut self.recorders {
            let ends = |(_, file): &mut (File, WrittenFile)| plan.ends(file.began, now, now - file.began);
            if let Some((mut file, written)) = open.take_if(|open| ends(open)) {
                let written = WrittenFile { duration: now - written.began, ..written };
                file.write_all(&plan.tail(&written)).unwrap();
                plan.complete(&written, None).unwrap();
            }
            let (file, written) = open.get_or_insert_with(|| {
                let (mut file, path) = plan.create(now).unwrap();
                let init = [boxed(b"ftyp", b"isom"), boxed(b"moov", &[0; 50]), plan.head(now)].concat();
                file.write_all(&init).unwrap();
                (file, WrittenFile { path, began: now, ..WrittenFile::default() })
            });
            let minute = now.as_secs() / 60;
            let media = boxed(b"mdat", format!("minute {minute};").as_bytes());
            file.write_all(&[boxed(b"moof", &[0; 20]), media].concat()).unwrap();
            // The end of the fragment is the time at which it is written.
            file.set_modified(UNIX_EPOCH + now + MINUTE).unwrap();
            written.frames += 1;
            self.written.insert(((*stream).to_owned(), minute));
        }
        self.now += MINUTE;
        self.shelf.tend_at(self.now);
    }

    /// The process is killed while each stream writes a fragment, and is started again.
    fn kill(&mut self, folder: &std::path::Path) {
        for Recorder { open, .. } in &mut self.recorders {
            if let Some((file, _)) = open {
                file.write_all(&boxed(b"moof", &[0; 20])[..11]).unwrap();
                file.set_modified(UNIX_EPOCH + self.now).unwrap();
            }
        }
        self.recorders.clear();
        self.shelf = shelf(folder, &self.settings, &self.events);
        self.begin();
        self.shelf.tend_at(self.now);
    }

    /// The bucket takes all files that wait.
    fn upload(&mut self) {
        while let Some(file) = self.shelf.next_upload() {
            let bytes = std::fs::read(self.shelf.folder().path(&file.name)).unwrap();
            self.bucket.extend(minutes(&bytes).into_iter().map(|minute| (file.stream.clone(), minute)));
            self.shelf.uploaded(&file, "s3://media/x");
        }
    }

    /// Stops all recordings.
    fn stop(&mut self) {
        for Recorder { plan, open, .. } in &mut self.recorders {
            let Some((mut file, written)) = open.take() else { continue };
            let written = WrittenFile { duration: self.now - written.began, ..written };
            file.write_all(&plan.tail(&written)).unwrap();
            plan.complete(&written, Some(&RecordingEnd::Stopped)).unwrap();
        }
    }

    /// The minutes in the files of the folder.
    fn kept(&self) -> BTreeSet<(String, u64)> {
        let of = |shelved: ShelvedFile| {
            let bytes = std::fs::read(self.shelf.folder().path(&shelved.file.name)).unwrap();
            minutes(&bytes).into_iter().map(move |minute| (shelved.file.stream.clone(), minute)).collect::<Vec<_>>()
        };
        self.shelf.list().into_iter().filter(|shelved| shelved.state != "uploaded").flat_map(of).collect()
    }

    fn count(&self, kind: Kind) -> usize {
        let (mut position, mut count) = (0, 0);
        while let Some(next) = self.events.after(position) {
            position = next.event.number();
            count += usize::from(next.event.kind() == kind);
        }
        count
    }
}

#[test]
fn a_week_with_a_killed_server_keeps_every_minute_of_the_last_days() {
    let folder = tempfile::tempdir().unwrap();
    let mut week = Simulation::new(folder.path(), |settings| settings.keep = Some(48 * HOUR));
    for minute in 0..7 * 24 * 60 {
        week.minute();
        if minute == 4 * 24 * 60 + 17 || minute == 6 * 24 * 60 + 17 {
            week.kill(folder.path());
        }
    }
    week.stop();
    let newest = week.now.as_secs() / 60;
    let (kept, from) = (week.kept(), newest - 48 * 60);
    let expected: BTreeSet<_> = week.written.iter().filter(|(_, minute)| *minute >= from).cloned().collect();
    assert!(expected.is_subset(&kept), "every minute of the last two days is there");
    assert!(kept.iter().all(|(_, minute)| *minute >= from - 60), "and an hour more at most");
    let files = week.shelf.list();
    assert!(files.iter().any(|shelved| shelved.file.name == "cams/door/2026-11-28/11-00-00Z.mp4"), "{:?}", files.len());
    let listed = files.iter().map(|shelved| (shelved.file.began, shelved.file.tail.duration, &[][..]));
    let times = crate::recordings::timeline(listed);
    assert_eq!(times.len(), 1, "no gap: {times:?}");
    assert_eq!(week.count(Kind::RecordingDropped), 0);
}

#[test]
fn a_week_with_a_bucket_that_is_gone_for_an_hour_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let to = millpond_place::stripe_store("to=s3://media").unwrap();
    let mut week = Simulation::new(folder.path(), |settings| settings.to = Some(to));
    for minute in 0..7 * 24 * 60 {
        week.minute();
        let is_gone = (3 * 24 * 60..3 * 24 * 60 + 60).contains(&minute);
        if minute % 5 == 0 && !is_gone {
            week.upload();
        }
        if minute == 3 * 24 * 60 + 30 {
            week.kill(folder.path());
        }
    }
    week.stop();
    week.upload();
    assert_eq!(week.bucket, week.written);
    assert_eq!((week.count(Kind::RecordingDropped), week.kept().len()), (0, 0));
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "empty folders are removed");
}

#[test]
fn a_spool_that_is_full_loses_the_oldest_files_and_tells_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let to = millpond_place::stripe_store("to=s3://media").unwrap();
    let mut day = Simulation::new(folder.path(), |settings| {
        (settings.to, settings.spool, settings.file_length) = (Some(to), 20_000, 10 * MINUTE);
    });
    for _ in 0..12 * 60 {
        day.minute();
    }
    day.stop();
    let waiting = day.kept();
    day.upload();
    assert_eq!(day.bucket, waiting);
    let lost: BTreeSet<_> = day.written.difference(&day.bucket).cloned().collect();
    let oldest = day.bucket.iter().map(|(_, minute)| *minute).min().unwrap();
    assert!(!lost.is_empty() && lost.iter().all(|(_, minute)| *minute < oldest + 10), "the oldest minutes only");
    let (dropped, complete) = (day.count(Kind::RecordingDropped), day.count(Kind::RecordingComplete));
    assert_eq!(dropped + day.count(Kind::RecordingUploaded), complete, "each file is uploaded or told to be lost");
}
