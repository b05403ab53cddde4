//! The media of parts, against what playlists say of them.

use super::rules::{Rule, Violation, breaks};
use millpond_media::{
    Timescale,
    fragment_stream::{FragmentEvent, FragmentStream, StreamedSample},
};

/// Rounding of a duration in playlists, in seconds.
const ROUNDING: f64 = 0.001;

/// A part as its playlist lists it, and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPart<'a> {
    /// URI in the playlist.
    pub uri: &'a str,
    /// `DURATION` in seconds.
    pub duration: f64,
    /// Whether it is said to be independent.
    pub is_independent: bool,
    /// Whether its decode times go on from the part before it.
    pub is_continuous: bool,
    /// The part.
    pub bytes: &'a [u8],
}

/// Checks the parts of one media playlist, in their order.
#[derive(Debug, Default)]
pub struct MediaChecker {
    stream: FragmentStream,
    timescale: Option<Timescale>,
    /// Decode time at which the next part begins, in ticks.
    next: Option<i64>,
}

impl MediaChecker {
    /// Takes the init segment of the parts that follow; returns the rules that it breaks.
    pub fn init(&mut self, bytes: &[u8]) -> Vec<Violation> {
        let (mut events, mut found) = (Vec::new(), Vec::new());
        // The stream of another init segment has decode times of its own.
        *self = Self::default();
        match self.stream.push(bytes, &mut events) {
            Ok(()) => {
                let tracks = events.into_iter().find_map(|event| match event {
                    FragmentEvent::Tracks { tracks, .. } => tracks.first().map(|track| track.timescale),
                    _ => None,
                });
                self.timescale = tracks;
                if tracks.is_none() {
                    breaks(&mut found, Rule::MediaBroken, "an init segment without a track".to_owned());
                }
            }
            Err(error) => breaks(&mut found, Rule::MediaBroken, format!("init segment: {error}")),
        }
        found
    }

    /// Takes a part; returns the rules that it breaks.
    pub fn part(&mut self, part: &ReceivedPart<'_>) -> Vec<Violation> {
        let (mut events, mut found) = (Vec::new(), Vec::new());
        if let Err(error) = self.stream.push(part.bytes, &mut events) {
            breaks(&mut found, Rule::MediaBroken, format!("{}: {error}", part.uri));
            return found;
        }
        self.stream.end_piece(&mut events);
        let mut samples = Vec::new();
        for event in events {
            match event {
                FragmentEvent::Sample(sample) => samples.push(sample),
                FragmentEvent::Fault(what) => breaks(&mut found, Rule::MediaBroken, format!("{}: {what}", part.uri)),
                FragmentEvent::Tracks { .. } => {}
            }
        }
        self.samples(part, &samples, &mut found);
        found
    }

    fn samples(&mut self, part: &ReceivedPart<'_>, samples: &[StreamedSample], found: &mut Vec<Violation>) {
        let ReceivedPart { uri, duration, is_independent, is_continuous, .. } = *part;
        let Some((first, timescale)) = samples.first().zip(self.timescale) else {
            return breaks(found, Rule::MediaBroken, format!("{uri}: no samples"));
        };
        let ticks: i64 = samples.iter().map(|sample| i64::from(sample.duration)).sum();
        let seconds = ticks as f64 / f64::from(timescale.get());
        if (seconds - duration).abs() > ROUNDING {
            breaks(found, Rule::MediaDuration, format!("{uri}: {seconds} s, listed with {duration} s"));
        }
        if is_independent && !samples.iter().any(|sample| sample.is_sync) {
            breaks(found, Rule::MediaDependent, uri.to_owned());
        }
        if let Some(next) = self.next.filter(|next| is_continuous && first.dts.abs_diff(*next) > 1) {
            breaks(found, Rule::DecodeTimes, format!("{uri}: {} ticks, expected {next}", first.dts));
        }
        self.next = Some(first.dts.saturating_add(ticks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bx(kind: &[u8; 4], content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [&(content.len() as u32 + 8).to_be_bytes()[..], kind, &content].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// An init segment with one track of 1,000 ticks a second.
    fn init() -> Vec<u8> {
        let config = bx(b"vpcC", &[&[1, 0, 0, 0, 0, 10, 0x82, 1, 1, 1, 0, 0]]);
        let entry = bx(b"vp09", &[&[0, 0, 0, 0, 0, 0, 0, 1], &[0; 16], &[0, 16, 0, 16], &[0; 50], &config]);
        let stsd = bx(b"stsd", &[&words(&[0, 1]), &entry]);
        let empty = |kind| bx(kind, &[&words(&[0, 0])]);
        let stsz = bx(b"stsz", &[&words(&[0, 0, 0])]);
        let stbl = bx(b"stbl", &[&stsd, &empty(b"stts"), &empty(b"stsc"), &stsz, &empty(b"stco")]);
        let hdlr = bx(b"hdlr", &[&words(&[0, 0]), b"vide", &[0; 13]]);
        let minf = bx(b"minf", &[&stbl]);
        let mdhd = bx(b"mdhd", &[&words(&[0, 0, 0, 1000, 0, 0x55c4_0000])]);
        let mdia = bx(b"mdia", &[&mdhd, &hdlr, &minf]);
        let tkhd = bx(b"tkhd", &[&words(&[7, 0, 0, 1]), &[0; 60], &words(&[16 << 16, 16 << 16])]);
        let trex = bx(b"trex", &[&words(&[0, 1, 1, 0, 0, 0])]);
        let mvhd = bx(b"mvhd", &[&words(&[0, 0, 0, 1000, 0]), &[0; 80]]);
        let moov = bx(b"moov", &[&mvhd, &bx(b"trak", &[&tkhd, &mdia]), &bx(b"mvex", &[&trex])]);
        [bx(b"ftyp", &[b"iso6", &[0; 4]]), moov].concat()
    }

    /// A part of two samples of 100 ticks each, from a decode time on.
    fn part(decode_time: u32, flags: u32) -> Vec<u8> {
        let build = |offset: u32| {
            let tfhd = bx(b"tfhd", &[&words(&[0x02_0000, 1])]);
            let tfdt = bx(b"tfdt", &[&words(&[0, decode_time])]);
            let trun = bx(b"trun", &[&words(&[0x701, 2, offset, 100, 4, flags, 100, 4, flags])]);
            bx(b"moof", &[&bx(b"mfhd", &[&words(&[0, 1])]), &bx(b"traf", &[&tfhd, &tfdt, &trun])])
        };
        let offset = build(0).len() as u32 + 8;
        [build(offset), bx(b"mdat", &[&[7; 8]])].concat()
    }

    fn received(bytes: &[u8]) -> ReceivedPart<'_> {
        ReceivedPart { uri: "8.0.m4s", duration: 0.2, is_independent: true, is_continuous: true, bytes }
    }

    fn rules(found: Vec<Violation>) -> Vec<Rule> {
        found.into_iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn parts_follow_each_other() {
        let mut checker = MediaChecker::default();
        assert_eq!(checker.init(&init()), []);
        for time in [1000, 1200, 1400] {
            assert_eq!(checker.part(&received(&part(time, 0))), [], "{time}");
        }
        assert_eq!(rules(checker.part(&received(&part(1700, 0)))), [Rule::DecodeTimes]);
        let after_gap = part(2500, 0);
        assert_eq!(checker.part(&ReceivedPart { is_continuous: false, ..received(&after_gap) }), []);
    }

    #[test]
    fn each_fault_of_a_part_breaks_its_rule() {
        let good = part(1000, 0);
        let dependent = part(1000, 0x01_0000);
        for (part, rule) in [
            (ReceivedPart { duration: 0.21, ..received(&good) }, Rule::MediaDuration),
            (received(&dependent), Rule::MediaDependent),
            (received(&good[..good.len() - 1]), Rule::MediaBroken),
            (received(&good[4..]), Rule::MediaBroken),
            (received(&[]), Rule::MediaBroken),
        ] {
            let mut checker = MediaChecker::default();
            checker.init(&init());
            let found = rules(checker.part(&part));
            assert!(found.contains(&rule), "{part:?}: {found:?}");
        }
        assert_eq!(rules(MediaChecker::default().part(&received(&good))), [Rule::MediaBroken]);
        assert_eq!(rules(MediaChecker::default().init(b"not a box")), [Rule::MediaBroken]);
    }
}
