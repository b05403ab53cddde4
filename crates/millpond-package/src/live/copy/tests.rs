use super::*;
use crate::{
    hls::{
        Container,
        live::{PlaylistView, media},
    },
    live::{
        Continuation, Cut, Cutter, Edge, Extent, Window,
        testing::{LIMITS, audio_track, cut, epoch, film, rules, subtitled, tracks, video_track, with_texts},
    },
};
use bytes::Bytes;
use proptest::prelude::*;
use std::time::Duration;

const RUN: &str = "00112233445566aa";

/// Both ends of a connection.
#[derive(Default)]
struct Pair {
    cursor: CopyCursor,
    reader: CopyReader,
    copy: Option<Window>,
    has_ended: bool,
}

impl Pair {
    /// Sends what the copy lacks, in pieces of `piece` bytes.
    fn send(&mut self, window: &Window, piece: usize) {
        let (mut records, mut bytes) = (Vec::new(), Vec::new());
        while self.cursor.advance(window, RUN, &mut records) {
            records.drain(..).for_each(|record| record.write(&mut bytes));
        }
        records.iter().for_each(|record| record.write(&mut bytes));
        bytes.concat().chunks(piece).for_each(|piece| self.take(piece));
    }

    fn take(&mut self, bytes: &[u8]) {
        self.reader.push(bytes);
        while let Some(record) = self.reader.read().unwrap() {
            match record {
                CopyRecord::Head(head) => {
                    assert_eq!(head.run, RUN);
                    self.copy.get_or_insert_with(|| Window::new(LIMITS, head.tracks, head.discontinuity));
                }
                CopyRecord::Ended => self.has_ended = true,
                record => self.copy.as_mut().unwrap().follow(record),
            }
        }
    }
}

/// Asserts that both windows have the same playlists, init segments and parts.
fn assert_same(a: &Window, b: &Window) {
    let view = PlaylistView { run: RUN, container: Container::Fmp4, skip: false, extent: Extent::Past, query: "" };
    for track in 0..a.tracks().len() {
        assert_eq!(media(a, track, &view), media(b, track, &view));
        for epoch in a.epochs() {
            assert_eq!(a.init(track, epoch.number), b.init(track, epoch.number));
        }
        let parts = |window: &Window| -> Vec<_> {
            let of_track = window.segments().filter_map(|segment| segment.track(track));
            of_track.flat_map(|of_track| of_track.parts().to_vec()).collect()
        };
        assert_eq!(parts(a), parts(b));
    }
    assert_eq!(a.targets(), b.targets());
    assert_eq!((a.hint(0), a.edge(1)), (b.hint(0), b.edge(1)));
}

fn empty() -> Window {
    let mut window = Window::new(LIMITS, tracks(), 7);
    window.begin(epoch(0, Duration::from_secs(10)));
    window
}

#[test]
fn a_copy_has_all_that_the_window_has() {
    for piece in [7, 1000, usize::MAX] {
        let (mut window, mut pair) = (empty(), Pair::default());
        for (number, cut) in cut(rules(), film(12, 50)).into_iter().enumerate() {
            window.push(cut);
            if number % 3 == 0 {
                pair.send(&window, piece);
            }
        }
        pair.send(&window, piece);
        assert_same(&window, pair.copy.as_ref().unwrap());
        let changes = pair.copy.as_ref().unwrap().version();
        // A connection that begins anew tells what is known already.
        (pair.cursor, pair.reader) = Default::default();
        pair.send(&window, piece);
        assert_eq!(pair.copy.as_ref().unwrap().version(), changes);
        assert_same(&window, pair.copy.as_ref().unwrap());
    }
}

#[test]
fn subtitles_are_copied_too() {
    let window = subtitled(cut(rules(), film(8, 50)), &[(900_000, b"\0\0\0\x08vtte")]);
    let mut pair = Pair::default();
    pair.send(&window, 100);
    let copy = pair.copy.unwrap();
    assert_same(&window, &copy);
    assert!(copy.is_text(2) && copy.has_begun_texts());
    assert_eq!(with_texts().tracks(), copy.tracks());
}

#[test]
fn a_copy_goes_on_with_another_source() {
    let (mut window, mut pair) = (empty(), Pair::default());
    let mut cuts = cut(rules(), film(7, 50));
    // The last segment has pictures, and its sound is not there yet.
    let opened = cuts.iter().rposition(|cut| matches!(cut, Cut::Opened { .. })).unwrap();
    let rest = cuts.split_off(opened + 1);
    let is_picture = |cut: &Cut| matches!(cut, Cut::Part(part) if part.track == 0);
    cuts.extend(rest.into_iter().filter(is_picture).take(2));
    cuts.into_iter().for_each(|cut| window.push(cut));
    pair.send(&window, 999);
    let mut copy = pair.copy.unwrap();
    let last = copy.segments().next_back().unwrap().number;
    let Continuation { segment, epoch: number, end, clock } = copy.continue_anew().unwrap();
    assert_eq!((segment, number), (last.next(), 1));
    let closed = copy.segments().next_back().unwrap();
    assert_eq!(closed.track(0).unwrap().parts().len(), 1, "the first of the two parts ends the segment before");
    assert!(closed.track(0).unwrap().is_closed() && closed.track(1).unwrap().is_gap());
    // The clock of the window: 1 s of wall time is 1 s of stream time.
    let at = |seconds: u64| {
        Continuation { segment, epoch: number, end, clock }.stream_time(clock.1 + Duration::from_secs(seconds))
    };
    assert_eq!((at(0), at(60)), (end, clock.0 + Duration::from_secs(60)));

    // The other source follows as an epoch, at the next number, with the same targets.
    let targets = copy.targets().cloned();
    let mut cutter =
        Cutter::new(rules(), vec![video_track(), audio_track()], number, segment).with_targets(targets.clone());
    let mut more = Vec::new();
    let shift = i64::try_from(end.as_secs()).unwrap() + 2 - 10;
    for (track, mut sample) in film(5, 50) {
        let ticks = shift * if track == 0 { 90_000 } else { 48_000 };
        (sample.dts, sample.pts) = (sample.dts + ticks, sample.pts + ticks);
        cutter.push(track, sample, &mut more);
    }
    copy.begin(epoch(number, end));
    more.into_iter().for_each(|cut| copy.push(cut));
    let view = PlaylistView { run: RUN, container: Container::Fmp4, skip: false, extent: Extent::Past, query: "" };
    let list = media(&copy, 0, &view).unwrap();
    assert!(list.contains("#EXT-X-MEDIA-SEQUENCE:100\n#EXT-X-DISCONTINUITY-SEQUENCE:7\n"), "{list}");
    assert_eq!(list.matches("#EXT-X-DISCONTINUITY\n").count(), 1, "{list}");
    let follows = format!("/v1/{}.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"../~{RUN}/v1/init-1.mp4\"", last.0);
    assert!(list.contains(&follows) && list.contains(&format!("/v1/{}.m4s\n", segment.0)), "{list}");
    assert_eq!(copy.targets().cloned(), targets);
}

/// Goes on in a copy with another source, from its second segment of 4 s on.
fn go_on(copy: &mut Window, seconds: i64) {
    let Continuation { segment, epoch: number, end, .. } = copy.continue_anew().unwrap();
    let tracks = vec![video_track(), audio_track()];
    let mut cutter = Cutter::new(rules(), tracks, number, segment).with_targets(copy.targets().cloned());
    let mut cuts = Vec::new();
    let shift = i64::try_from(end.as_secs()).unwrap() + 2 - 10;
    for (track, mut sample) in film(seconds, 50) {
        let ticks = shift * if track == 0 { 90_000 } else { 48_000 };
        (sample.dts, sample.pts) = (sample.dts + ticks, sample.pts + ticks);
        cutter.push(track, sample, &mut cuts);
    }
    copy.begin(epoch(number, end));
    cuts.into_iter().for_each(|cut| copy.push(cut));
}

#[test]
fn where_two_servers_go_on_in_one_run_the_segments_of_the_followed_one_count() {
    let mut cuts = cut(rules(), film(12, 50));
    let rest = cuts.split_off(cuts.len() / 2);
    let (mut paused, mut next, mut third) = (empty(), Pair::default(), Pair::default());
    cuts.into_iter().for_each(|cut| paused.push(cut));
    [&mut next, &mut third].into_iter().for_each(|pair| pair.send(&paused, 999));
    let mut next = next.copy.unwrap();
    go_on(&mut next, 9);
    // The first server wakes, and a third one still follows it.
    rest.into_iter().for_each(|cut| paused.push(cut));
    third.send(&paused, 999);
    assert_same(&paused, third.copy.as_ref().unwrap());
    (third.cursor, third.reader) = Default::default();
    third.send(&next, 999);
    let copy = third.copy.as_ref().unwrap();
    let numbers =
        |window: &Window| window.segments().map(|segment| (segment.number, segment.epoch)).collect::<Vec<_>>();
    assert_eq!(numbers(copy), numbers(&next));
    assert_eq!((copy.init(0, 1), copy.heap_bytes()), (next.init(0, 1), next.heap_bytes()));
    let last = next.segments().next_back().unwrap();
    let parts = |window: &Window| window.segment(last.number).unwrap().track(0).unwrap().parts().to_vec();
    assert_eq!(parts(copy), parts(&next));

    // Both had begun an epoch of the same number.
    let mut other = third.copy.take().unwrap();
    go_on(&mut other, 5);
    let mut fourth = Pair::default();
    fourth.send(&other, 999);
    go_on(&mut next, 7);
    (fourth.cursor, fourth.reader) = Default::default();
    fourth.send(&next, 999);
    let copy = fourth.copy.as_ref().unwrap();
    assert_eq!(numbers(copy), numbers(&next));
}

#[test]
fn a_segment_that_has_only_begun_is_cut_by_the_next_source() {
    let mut window = empty();
    cut(rules(), film(7, 50)).into_iter().for_each(|cut| window.push(cut));
    let last = window.segments().next_back().unwrap().number;
    window.push(Cut::Opened { segment: last.next(), epoch: 0, start: Duration::from_secs(20), is_independent: true });
    assert_eq!(window.continue_anew().unwrap().segment, last.next());
    assert_eq!(empty().continue_anew(), None);
    let hint = window.hint(0).unwrap();
    let part = |segment, part| Edge { segment, part };
    assert!(!window.is_ahead(0, hint) && window.is_ahead(0, part(hint.segment, hint.part + 1)));
    assert!(
        window.is_ahead(0, part(hint.segment.next(), 0)) && !window.is_ahead(0, part(hint.segment.next().next(), 0))
    );
}

#[test]
fn what_is_no_copy_is_refused() {
    let read = |bytes: &[u8]| {
        let mut reader = CopyReader::default();
        reader.push(bytes);
        reader.read().map(|record| record.is_some())
    };
    assert_eq!(read(b""), Ok(false));
    assert_eq!(read(&[7, 0, 0, 0, 0]), Ok(true));
    assert_eq!(read(&[1, 0, 0, 0, 2, 9, 9]), Err(CopyError::Version(9)));
    assert_eq!(read(&[7, 255, 255, 255, 255]), Err(CopyError::Long { record: 0, length: 0xffff_ffff }));
    let text = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(text(&[5, 0, 0, 0, 0]).contains("expected the head before other records"));
    assert!(text(&[7, 0, 0, 0, 1, 0]).contains("expected no more fields"));
    let (mut records, mut bytes) = (Vec::new(), Vec::new());
    let mut window = empty();
    cut(rules(), film(5, 50)).into_iter().for_each(|cut| window.push(cut));
    CopyCursor::default().advance(&window, "no run", &mut records);
    records[0].write(&mut bytes);
    assert!(text(&bytes.concat()).contains("16 hexadecimal digits"));
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(mut bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0_usize..3000, piece in 1_usize..64) {
        let (mut records, mut written) = (Vec::new(), Vec::<Bytes>::new());
        let mut window = empty();
        cut(rules(), film(3, 25)).into_iter().for_each(|cut| window.push(cut));
        CopyCursor::default().advance(&window, RUN, &mut records);
        records.iter().for_each(|record| record.write(&mut written));
        let mut whole = written.concat();
        let at = at.min(whole.len());
        whole.splice(at..(at + bytes.len()).min(whole.len()), bytes.drain(..));
        let mut reader = CopyReader::default();
        let mut copy = Window::new(LIMITS, tracks(), 0);
        'all: for piece in whole.chunks(piece) {
            reader.push(piece);
            loop {
                match reader.read() {
                    Ok(Some(record)) => copy.follow(record),
                    Ok(None) => break,
                    Err(_) => break 'all,
                }
            }
        }
        let _ = copy.continue_anew();
        prop_assert!(copy.segments().len() <= LIMITS.segments + 1);
    }
}
