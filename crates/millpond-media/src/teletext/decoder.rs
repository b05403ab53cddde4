//! From PES packets to the text that is on the screen.

use super::{
    alphabet::Designation,
    cue::TeletextCue,
    descriptor::TeletextPage,
    packet::{Content, Header, packets},
    page::Page,
};

/// Number of magazines.
const MAGAZINES: usize = 8;
/// Time after the last packet of a page after which it is complete, in ticks of 90 kHz: 120 ms. A header ends a page at once. Changes
/// are usually told within this time.
pub const COMPLETE: i64 = 10_800;
/// Longest time for which a text is shown without being sent again, in ticks of 90 kHz: 30 s. Encoders that fail leave text behind.
const LONGEST: i64 = 30 * 90_000;
/// Most pages that are found without being announced.
const MOST_FOUND: usize = 8;

/// A change of the text of one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeletextChange {
    /// Place of the page in [`TeletextDecoder::pages`].
    pub page: usize,
    /// Time of the change, in ticks of 90 kHz.
    pub at: i64,
    /// The text from then on; none where the screen is cleared.
    pub cues: Vec<TeletextCue>,
}

/// Decodes the subtitle pages of a teletext stream (ETSI EN 300 706, presentation level 1.5).
///
/// Only text between start box and end box is shown. Memory is bounded: each page takes about five kilobytes.
#[derive(Debug)]
pub struct TeletextDecoder {
    slots: Vec<Slot>,
    magazines: [Magazine; MAGAZINES],
    /// Language of pages that are found; `None` where only announced pages are decoded.
    finds: Option<Option<String>>,
}

/// State of one magazine.
#[derive(Clone, Copy, Debug, Default)]
struct Magazine {
    /// Page whose packets follow.
    slot: Option<usize>,
    /// Designation of M/29/0, and the option that it states.
    designation: Option<(Designation, u8)>,
}

/// State of one page.
#[derive(Debug)]
struct Slot {
    page: TeletextPage,
    content: Box<Page>,
    /// Header of the last transmission.
    header: Option<Header>,
    /// Time of that header, and of the last packet behind it.
    times: (i64, i64),
    /// Whether packets came since the text was told.
    has_news: bool,
    /// The text on the screen.
    shown: Vec<TeletextCue>,
}

impl TeletextDecoder {
    /// Creates a decoder of announced pages.
    #[must_use]
    pub fn new(pages: Vec<TeletextPage>) -> Self {
        let slots = pages.into_iter().map(Slot::new).collect();
        Self { slots, magazines: [Magazine::default(); MAGAZINES], finds: None }
    }

    /// Creates a decoder of the pages that the body of a teletext descriptor announces. If it announces none, pages are found by
    /// the control bit of subtitles in their headers.
    #[must_use]
    pub fn of_descriptor(descriptor: &[u8]) -> Self {
        let pages = TeletextPage::announced(descriptor);
        let finds = pages.is_empty().then(|| TeletextPage::first_language(descriptor));
        Self { finds, ..Self::new(pages) }
    }

    /// The pages, those that were found last.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = &TeletextPage> {
        self.slots.iter().map(|slot| &slot.page)
    }

    /// Takes the payload of a PES packet that is presented `at` a time, in ticks of 90 kHz that never wrap. Appends the changes that
    /// it completes.
    pub fn push(&mut self, data: &[u8], at: i64, out: &mut Vec<TeletextChange>) {
        self.advance(at, out);
        for packet in packets(data) {
            let magazine = packet.magazine;
            match packet.content {
                Content::Header(header) => self.header(magazine, header, at, out),
                Content::Row(number, bytes) => self.pass(magazine, at, |page| page.take_row(number, &bytes)),
                Content::Enhancement(designation, triplets) => {
                    self.pass(magazine, at, |page| page.take_enhancement(designation, &triplets));
                }
                Content::Designation { of_page: true, triplet } => {
                    self.pass(magazine, at, |page| page.take_designation(triplet));
                }
                Content::Designation { of_page: false, triplet } => {
                    if let Some(magazine) = self.magazines.get_mut(magazine) {
                        magazine.designation = Some(Designation::of_triplet(triplet));
                    }
                }
            }
        }
    }

    /// Notes that the stream has reached a time: pages whose packets ended are complete, and texts that were not sent again for long
    /// are removed.
    pub fn advance(&mut self, at: i64, out: &mut Vec<TeletextChange>) {
        for place in 0..self.slots.len() {
            let Some(slot) = self.slots.get(place) else { continue };
            if slot.has_news && at.saturating_sub(slot.times.1) >= COMPLETE {
                self.complete(place, out);
            }
            let Some(slot) = self.slots.get_mut(place) else { continue };
            let end = slot.times.1.saturating_add(LONGEST);
            if !slot.shown.is_empty() && at >= end {
                slot.shown = Vec::new();
                out.push(TeletextChange { page: place, at: end, cues: Vec::new() });
            }
        }
    }

    /// Completes the pages that have begun: the stream ends, or its time goes on elsewhere. Subtitles are removed at `at`. A page that
    /// was not repeated within `LONGEST` loses its subtitles at the end of that time.
    pub fn finish(&mut self, at: i64, out: &mut Vec<TeletextChange>) {
        for place in 0..self.slots.len() {
            self.complete(place, out);
            let Some(slot) = self.slots.get_mut(place) else { continue };
            let at = at.min(slot.times.1.saturating_add(LONGEST));
            if !slot.shown.is_empty() {
                out.push(TeletextChange { page: place, at, cues: Vec::new() });
            }
            *slot = Slot::new(slot.page.clone());
        }
        self.magazines.iter_mut().for_each(|magazine| magazine.slot = None);
    }

    /// Takes the header of a page, which ends the page before it.
    fn header(&mut self, magazine: usize, header: Header, at: i64, out: &mut Vec<TeletextChange>) {
        let ended = match header.is_serial {
            true => 0..MAGAZINES,
            false => magazine..magazine + 1,
        };
        for ended in ended {
            let slot = self.magazines.get_mut(ended).and_then(|magazine| magazine.slot.take());
            slot.into_iter().for_each(|slot| self.complete(slot, out));
        }
        let known = self.slots.iter().position(|slot| slot.page.number() == header.number);
        let Some(place) = known.or_else(|| self.find(&header)) else { return };
        if let Some(magazine) = self.magazines.get_mut(magazine) {
            magazine.slot = Some(place);
        }
        if let Some(slot) = self.slots.get_mut(place) {
            if header.erases {
                *slot.content = Page::new();
            }
            (slot.header, slot.times, slot.has_news) = (Some(header), (at, at), true);
        }
    }

    /// Returns the place of a page that was not announced.
    fn find(&mut self, header: &Header) -> Option<usize> {
        let language = self.finds.as_ref().filter(|_| header.is_subtitle && self.slots.len() < MOST_FOUND)?;
        self.slots.push(Slot::new(TeletextPage::found(header.number, language.clone())));
        Some(self.slots.len() - 1)
    }

    /// Passes a packet to the page of its magazine.
    fn pass(&mut self, magazine: usize, at: i64, take: impl FnOnce(&mut Page)) {
        let place = self.magazines.get(magazine).and_then(|magazine| magazine.slot);
        if let Some(slot) = place.and_then(|place| self.slots.get_mut(place)) {
            take(&mut slot.content);
            (slot.times.1, slot.has_news) = (at, true);
        }
    }

    /// Tells the text of a page, if it changed.
    fn complete(&mut self, place: usize, out: &mut Vec<TeletextChange>) {
        let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.has_news) else { return };
        slot.has_news = false;
        let Some(header) = &slot.header else { return };
        let magazine = self.magazines.get(usize::from(slot.page.number() >> 8 & 7));
        let designation = magazine.and_then(|magazine| magazine.designation);
        let usual = match designation {
            Some((designation, option)) => (designation, Some(option)),
            None => (Designation::of_language(slot.page.language.as_deref().unwrap_or_default()), None),
        };
        let cues = TeletextCue::of_lines(&slot.content.lines(header, usual));
        if cues != slot.shown {
            slot.shown.clone_from(&cues);
            out.push(TeletextChange { page: place, at: slot.times.0, cues });
        }
    }
}

impl Slot {
    fn new(page: TeletextPage) -> Self {
        Self { page, content: Box::new(Page::new()), header: None, times: (0, 0), has_news: false, shown: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
