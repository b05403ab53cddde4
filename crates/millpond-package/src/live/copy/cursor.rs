//! The part of a window that a copy has.

use super::record::{CopyHead, CopyRecord};
use crate::live::{Cut, SegmentNumber, TrackSegment, Window};
use std::collections::BTreeMap;

/// Most records of one look at a window: those who change it wait for the look.
const MOST: usize = 256;

/// The part of a window that was sent.
#[derive(Debug, Default)]
pub struct CopyCursor {
    has_head: bool,
    has_targets: bool,
    /// Numbers of epochs that were sent.
    epochs: Vec<u32>,
    /// All segments before this one were sent.
    next: SegmentNumber,
    /// Of later ones, the parts of each track that were sent, and whether its end was.
    open: BTreeMap<SegmentNumber, Vec<(usize, bool)>>,
}

impl CopyCursor {
    /// Appends what the copy of a window lacks, in the order in which it must be followed. Nothing is sent before the window has a
    /// segment. Returns whether there may be more.
    pub fn advance(&mut self, window: &Window, run: &str, out: &mut Vec<CopyRecord>) -> bool {
        let Some(first) = window.with_parts().next() else { return false };
        if !self.has_head {
            self.has_head = true;
            let (run, tracks) = (run.to_owned(), window.tracks().to_vec());
            out.push(CopyRecord::Head(CopyHead { run, discontinuity: first.discontinuity, tracks }));
        }
        let known = |number: u32| window.epochs().any(|epoch| epoch.number == number);
        self.epochs.retain(|number| known(*number));
        for epoch in window.epochs() {
            if !self.epochs.contains(&epoch.number) {
                self.epochs.push(epoch.number);
                out.push(CopyRecord::Epoch(epoch.clone()));
            }
        }
        if let Some(targets) = window.targets().filter(|_| !self.has_targets) {
            self.has_targets = true;
            out.push(CopyRecord::Cut(Cut::Targets(targets.clone())));
        }
        self.next = self.next.max(first.number);
        self.open.retain(|number, _| *number >= first.number);
        for segment in window.with_parts().filter(|segment| segment.number >= self.next) {
            if out.len() >= MOST {
                return true;
            }
            let number = segment.number;
            let sent = self.open.entry(number).or_insert_with(|| {
                out.push(CopyRecord::Cut(Cut::Opened {
                    segment: number,
                    epoch: segment.epoch,
                    start: segment.start,
                    is_independent: segment.is_independent,
                }));
                vec![(0, false); window.tracks().len()]
            });
            for (index, sent) in sent.iter_mut().enumerate() {
                if let Some(of_track) = segment.track(index) {
                    send((index, number), of_track, sent, out);
                }
            }
        }
        while let Some(entry) = self.open.first_entry()
            && entry.get().iter().all(|(_, is_closed)| *is_closed)
        {
            self.next = entry.remove_entry().0.next();
        }
        false
    }
}

/// Appends what is new of a segment of one track.
fn send(
    (track, segment): (usize, SegmentNumber),
    of_track: &TrackSegment,
    (parts, is_closed): &mut (usize, bool),
    out: &mut Vec<CopyRecord>,
) {
    let new = of_track.parts().get(*parts..).unwrap_or_default();
    out.extend(new.iter().map(|part| CopyRecord::Cut(Cut::Part(part.clone()))));
    *parts += new.len();
    if of_track.is_closed() && !*is_closed {
        *is_closed = true;
        let (start, duration) = (of_track.start().unwrap_or(0), of_track.duration());
        out.push(CopyRecord::Cut(Cut::Closed { track, segment, start, duration }));
    }
}
