//! The parts that playlists list, by their places, and playlists that many viewers get.

use super::playlist::{LivePlaylist, Part};
use std::{cell::RefCell, collections::VecDeque, rc::Rc};

/// Playlists that are remembered: viewers of one stream get the same within a moment.
const REMEMBERED: usize = 8;

/// Playlists that a thread's viewers have read last, so that the same text is not read a thousand times.
#[derive(Debug, Default)]
pub(crate) struct KnownPlaylists(RefCell<VecDeque<(Vec<u8>, Rc<LivePlaylist>)>>);

impl KnownPlaylists {
    /// Returns what `body` says.
    ///
    /// # Errors
    /// The first line that can't be read.
    pub(crate) fn read(&self, body: Vec<u8>) -> Result<Rc<LivePlaylist>, String> {
        let mut known = self.0.borrow_mut();
        if let Some((_, list)) = known.iter().find(|(other, _)| *other == body) {
            return Ok(list.clone());
        }
        let text = std::str::from_utf8(&body).map_err(|error| error.to_string())?;
        let list = Rc::new(LivePlaylist::read(text)?);
        known.truncate(REMEMBERED - 1);
        known.push_front((body, list.clone()));
        Ok(list)
    }
}

/// Number of a segment, and of a part within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) part: u64,
}

/// A part of a playlist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedPart<'a> {
    pub(crate) place: Place,
    /// Place of the part after it.
    pub(crate) next: Place,
    pub(crate) part: &'a Part,
    /// URI of its init segment, where the playlist tells it.
    pub(crate) map: Option<&'a str>,
    /// Whether a discontinuity stands before it.
    pub(crate) discontinuity: bool,
    /// Wall time of its end, in seconds since the Unix epoch.
    pub(crate) date: Option<f64>,
}

impl LivePlaylist {
    /// Listed parts, in their order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = ListedPart<'_>> {
        let first = self.end() - self.segments.len() as u64;
        let complete = (first..).zip(&self.segments).flat_map(|(number, segment)| {
            let count = segment.parts.len();
            let map = segment.map.as_deref();
            listed(number, (&segment.parts, map), (segment.discontinuity, segment.date)).map(move |part| {
                let is_last = part.place.part + 1 == count as u64;
                ListedPart { next: if is_last { Place { segment: number + 1, part: 0 } } else { part.next }, ..part }
            })
        });
        let map = self.map.as_deref();
        complete.chain(listed(self.end(), (&self.open, map), (self.open_discontinuity, self.open_date)))
    }

    pub(crate) fn first_part(&self) -> Option<Place> {
        self.parts().next().map(|listed| listed.place)
    }

    /// The last independent part as far from the end as players must keep (`PART-HOLD-BACK`), or the first one listed.
    pub(crate) fn start(&self) -> Place {
        let least = self.control.part_hold_back.unwrap_or_default();
        let mut left: f64 = self.parts().map(|listed| listed.part.duration).sum();
        let mut start = self.first_part().unwrap_or(Place { segment: self.end(), part: 0 });
        for ListedPart { place, part, .. } in self.parts() {
            if part.independent && left >= least {
                start = place;
            }
            left -= part.duration;
        }
        start
    }
}

/// Returns the parts of a segment that begins at a wall time, each as if another one followed in it.
fn listed<'a>(
    segment: u64,
    (parts, map): (&'a [Part], Option<&'a str>),
    (discontinuity, mut date): (bool, Option<f64>),
) -> impl Iterator<Item = ListedPart<'a>> {
    (0..).zip(parts).map(move |(index, part)| {
        date = date.map(|date| date + part.duration);
        let place = Place { segment, part: index };
        let next = Place { segment, part: index + 1 };
        ListedPart { place, next, part, map, discontinuity: discontinuity && index == 0, date }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n\
        #EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:1,\n7.m4s\n\
        #EXT-X-PART:DURATION=0.5,URI=\"8.0.m4s\",INDEPENDENT=YES\n#EXT-X-PART:DURATION=0.5,URI=\"8.1.m4s\"\n#EXTINF:1,\n8.m4s\n\
        #EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:01:00Z\n\
        #EXT-X-PART:DURATION=0.5,URI=\"9.0.m4s\",INDEPENDENT=YES\n#EXT-X-PART:DURATION=0.5,URI=\"9.1.m4s\"\n";

    #[test]
    fn parts_have_places() {
        let list = LivePlaylist::read(LIST).expect("a playlist");
        let place = |segment, part| Place { segment, part };
        let found: Vec<_> = list.parts().map(|listed| (listed.place, listed.next)).collect();
        let expected = [
            (place(8, 0), place(8, 1)),
            (place(8, 1), place(9, 0)),
            (place(9, 0), place(9, 1)),
            (place(9, 1), place(9, 2)),
        ];
        assert_eq!(found, expected);
        assert!(list.parts().all(|listed| listed.map == Some("init.mp4")));
        assert_eq!(list.parts().map(|listed| listed.date).collect::<Vec<_>>(), [None, None, Some(60.5), Some(61.0)]);
        // The last key frame has a second before the end, less than the distance that players keep.
        assert_eq!(list.start(), place(8, 0));
        let closer = LivePlaylist::read(&LIST.replace("HOLD-BACK=1.5", "HOLD-BACK=1")).expect("a playlist");
        assert_eq!(closer.start(), place(9, 0));
    }

    #[test]
    fn equal_texts_are_read_once() {
        let known = KnownPlaylists::default();
        let read = |body: &str| known.read(body.as_bytes().to_vec());
        let first = read(LIST).expect("a playlist");
        assert!(Rc::ptr_eq(&first, &read(LIST).expect("a playlist")));
        for number in 0..REMEMBERED {
            read(&LIST.replace("SEQUENCE:7", &format!("SEQUENCE:{number}0"))).expect("a playlist");
        }
        assert!(!Rc::ptr_eq(&first, &read(LIST).expect("a playlist")) && read("#EXTM3U8").is_err());
        assert_eq!(known.0.borrow().len(), REMEMBERED);
    }
}
