//! Files of strangers, in the folder that `MILLPOND_TS_FILES` names. `MILLPOND_TS_REPORT` names the folder of the reports.

use super::{assert_sampled, scanned};
use crate::{Movie, ts_file::packets::find_packets};
use std::{fmt::Write as _, fs, path::Path, time::Instant};

/// A line for each track and each sample: times in ticks of 90 kHz, size, flag, and a checksum of its bytes.
fn report(movie: &Movie, extracted: &[u8]) -> String {
    let mut lines = String::new();
    for track in &movie.tracks {
        let (codec, clock) = (track.codec.parameter(), track.timescale.get());
        let edits: Vec<_> = track.edits.iter().map(|edit| (edit.duration, edit.media_time)).collect();
        let entries = track.descriptions.as_ref().map_or(1, |descriptions| descriptions.entries().len());
        let _ = writeln!(lines, "track {} {codec} {clock} {entries} {edits:?}", track.id);
        for sample in &track.samples {
            let bytes = &extracted[sample.range.start as usize..sample.range.end as usize];
            let (a, b) = bytes.iter().fold((0_u32, 0_u32), |(a, b), byte| {
                let a = (a + u32::from(*byte)) % 65_521;
                (a, (b + a) % 65_521)
            });
            let (dts, pts, size) = (sample.dts, sample.pts(), bytes.len());
            let _ = writeln!(lines, "{dts} {pts} {size} {} {:08x}", u8::from(sample.sync), b << 16 | a);
        }
    }
    for skipped in &movie.skipped {
        let _ = writeln!(lines, "skipped {} {}", skipped.id, skipped.reason);
    }
    lines
}

fn read(path: &Path) -> String {
    let object = fs::read(path).unwrap();
    if find_packets(&object[..object.len().min(64 << 10)], object.len() as u64).is_none() {
        return "refused: no packets\n".to_owned();
    }
    let start = Instant::now();
    match scanned(&object) {
        Err(error) => format!("refused: {error}\n"),
        Ok(found) => {
            let seconds = start.elapsed().as_secs_f64();
            assert_sampled(&object, &found);
            let extraction = found.movie.extraction.as_ref().unwrap().heap_bytes();
            let frames: u32 = found.movie.tracks.iter().map(|track| track.samples.len()).sum();
            let head = format!("bytes {} seconds {seconds} extraction {extraction} frames {frames}\n", object.len());
            head + &report(&found.movie, &found.extracted)
        }
    }
}

#[test]
#[ignore = "reads the files that MILLPOND_TS_FILES names"]
fn files_of_strangers_are_extracted_as_they_were_scanned() {
    let folder = std::env::var("MILLPOND_TS_FILES").expect("a folder of transport streams");
    let reports = std::env::var("MILLPOND_TS_REPORT").ok();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let lines = read(&path);
        if let Some(reports) = &reports {
            fs::write(Path::new(reports).join(path.file_name().unwrap()), lines).unwrap();
        }
    }
}
