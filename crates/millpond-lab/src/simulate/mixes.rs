//! Workloads of a delivery network, generated at random: segments, playlists, small files, news and scans, most of them without
//! viewers that a cache could follow through an object.

use super::generate::{Zipf, ZipfOptions, sproxy, zipf};
use super::workload::{Visit, Workload};
use fastrand::Rng;

/// The workloads of [`mix`], in the order of tables. The first three have streams, the last one has some.
pub const MIXES: &[&str] = &["sproxy", "early", "crowd", "segments", "live", "files", "scans", "loop", "news", "mixed"];

/// Objects of one kind have names of their own.
const PLAYLISTS: u64 = 1 << 40;
const SEGMENTS: u64 = 2 << 40;
const FILES: u64 = 3 << 40;
const STREAMS: u64 = 4 << 40;
const BACKUPS: u64 = 5 << 40;

/// Seconds of a segment, and bytes of one as a rule.
const SEGMENT: f64 = 6.0;
const SEGMENT_BYTES: f64 = 750e3;
const PLAYLIST_BYTES: u64 = 12_000;
/// Seconds that the other workloads last.
const TIME: f64 = 40_000.0;

/// A workload of [`MIXES`], `None` for another name. `size` multiplies visits and objects: 1 is 20,000 to 300,000 requests.
pub fn mix(name: &str, size: f64, seed: u64) -> Option<Workload> {
    let count = |number: f64| (number * size).ceil() as usize;
    let usual = ZipfOptions { visits: count(20_000.0), objects: count(2000.0), ..ZipfOptions::default() };
    let mut maker = Maker { rng: Rng::with_seed(seed), visits: Vec::new() };
    match name {
        "sproxy" if size >= 1.0 => return Some(sproxy(seed)),
        "sproxy" => {
            let mut workload = sproxy(seed);
            workload.visits.truncate(count(workload.visits.len() as f64));
            return Some(workload);
        }
        "early" => return Some(zipf(name, usual, seed)),
        "crowd" => return Some(zipf(name, ZipfOptions { crowd: 0.3, ..usual }, seed)),
        "segments" => maker.segments(count(3000.0), count(400.0)),
        "live" => maker.live(count(3000.0), count(20.0)),
        "files" => maker.files(count(200_000.0), count(40_000.0)),
        "scans" => {
            maker.files(count(150_000.0), count(40_000.0));
            // A crawler that reads each file once, three times.
            for scan in 0..3 {
                maker.walk(FILES, count(40_000.0), TIME * (0.2 + 0.3 * f64::from(scan)), TIME * 0.1);
            }
        }
        "loop" => {
            maker.files(count(60_000.0), count(20_000.0));
            // Something is copied again and again, from its first file to its last.
            for turn in 0..6 {
                maker.walk(BACKUPS, count(15_000.0), TIME * f64::from(turn) / 6.0, TIME / 6.0);
            }
        }
        "news" => maker.news(count(200_000.0), count(60_000.0)),
        "mixed" => {
            maker.segments(count(1500.0), count(200.0));
            maker.live(count(500.0), count(5.0));
            maker.files(count(80_000.0), count(20_000.0));
            maker.walk(FILES, count(20_000.0), TIME * 0.6, TIME * 0.1);
            let options = ZipfOptions {
                visits: count(2000.0),
                objects: count(300.0),
                arrivals: count(2000.0) as f64 / TIME,
                ..ZipfOptions::default()
            };
            let streams = zipf(name, options, seed).visits.into_iter();
            maker.visits.extend(streams.map(|visit| Visit { object: STREAMS + visit.object, ..visit }));
        }
        _ => return None,
    }
    maker.visits.sort_by(|a, b| a.at.total_cmp(&b.at));
    Some(Workload { name: name.to_owned(), visits: maker.visits })
}

struct Maker {
    rng: Rng,
    visits: Vec<Visit>,
}

/// A number that is always the same for the same thing, from 0 to 1.
fn fixed(object: u64) -> f64 {
    Rng::with_seed(object).f64()
}

impl Maker {
    /// A file is fetched whole, at once.
    fn fetch(&mut self, at: f64, object: u64, len: u64) {
        self.visits.push(Visit { at, object, len, from: 0, to: len, rate: f64::INFINITY });
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.rng.f64()).ln()
    }

    /// Segments `from..to` of a title, one after the other at the pace of the media, behind its playlist.
    fn watch(&mut self, at: f64, title: u64, from: u64, to: u64) {
        self.fetch(at, PLAYLISTS + title, PLAYLIST_BYTES);
        for segment in from..to {
            let object = SEGMENTS + (title << 20) + segment;
            let len = (SEGMENT_BYTES * (0.5 + fixed(object))) as u64;
            self.fetch(at + (segment - from) as f64 * SEGMENT, object, len);
        }
    }

    /// Titles in files of segments; viewers leave after 40 % on average, a tenth begins in the middle.
    fn segments(&mut self, viewers: usize, titles: usize) {
        let popularity = Zipf::new(titles, 0.9);
        for _ in 0..viewers {
            let title = popularity.draw(&mut self.rng) as u64;
            let segments = 40 + (fixed(title) * 160.0) as u64;
            let from = if self.rng.f64() < 0.1 { self.rng.u64(..segments) } else { 0 };
            let lasts = self.exponential(0.4 * segments as f64) as u64 + 1;
            let at = self.rng.f64() * TIME;
            self.watch(at, title, from, (from + lasts).min(segments));
        }
    }

    /// Channels: most viewers are at the newest segment, some up to an hour behind it.
    fn live(&mut self, viewers: usize, channels: usize) {
        let popularity = Zipf::new(channels, 1.0);
        for _ in 0..viewers {
            let channel = (1 << 16) + popularity.draw(&mut self.rng) as u64;
            let at = self.rng.f64() * TIME;
            let behind = if self.rng.f64() < 0.15 { self.rng.f64() * 3600.0 } else { 6.0 + 12.0 * self.rng.f64() };
            let from = ((at - behind).max(0.0) / SEGMENT) as u64;
            let lasts = self.exponential(300.0) / SEGMENT;
            self.watch(at, channel, from, from + 1 + lasts as u64);
        }
    }

    /// Files of all sizes, 30 kB as a rule, asked for by their popularity.
    fn files(&mut self, requests: usize, files: usize) {
        let popularity = Zipf::new(files, 0.9);
        for _ in 0..requests {
            let file = popularity.draw(&mut self.rng) as u64;
            let at = self.rng.f64() * TIME;
            self.fetch(at, FILES + file, file_bytes(file));
        }
    }

    /// All files of a kind in their order, within some time.
    fn walk(&mut self, kind: u64, files: usize, at: f64, lasts: f64) {
        for file in 0..files as u64 {
            self.fetch(at + lasts * file as f64 / files as f64, kind + file, file_bytes(file));
        }
    }

    /// Files that come out one after the other, and are asked for ever less: half as often after a hundredth of the time.
    fn news(&mut self, requests: usize, files: usize) {
        let popularity = Zipf::new(1000, 0.7);
        for _ in 0..requests {
            let at = self.rng.f64() * TIME;
            let age = self.exponential(TIME / 100.0) + self.exponential(TIME / 2000.0);
            let newest = ((at - age).max(0.0) / TIME * files as f64) as u64;
            // Of those of one time some are read by all, most by few.
            let file = newest.saturating_sub(newest % 100) + (popularity.draw(&mut self.rng) / 10) as u64;
            self.fetch(at, FILES + file, file_bytes(file));
        }
    }
}

/// Sizes spread as those of the Web: most are small, the largest is 20 MB.
fn file_bytes(file: u64) -> u64 {
    let mut rng = Rng::with_seed(file ^ 0x5eed);
    let normal: f64 = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    (30e3 * (1.5 * normal).exp()).clamp(200.0, 20e6) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_the_same_each_time_and_in_order() {
        for name in MIXES {
            let workload = mix(name, 0.05, 7).unwrap();
            assert!(workload.visits.len() > 500, "{name}: {}", workload.visits.len());
            assert!(workload.visits.is_sorted_by(|a, b| a.at <= b.at), "{name}");
            assert!(workload.visits.iter().all(|visit| visit.from < visit.to && visit.to <= visit.len), "{name}");
            assert_eq!(workload, mix(name, 0.05, 7).unwrap(), "{name}");
            assert_ne!(workload, mix(name, 0.05, 8).unwrap(), "{name}");
        }
        assert_eq!(mix("other", 1.0, 1), None);
    }
}
