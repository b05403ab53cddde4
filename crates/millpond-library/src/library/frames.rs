//! Frames of transport stream files, AVI files and Matroska files with header stripping, as objects of their own.

use bytes::Bytes;
use millpond_media::{ByteRange, Extraction, Extractor, Movie};
use millpond_store::{Derivation, Making};
use std::{ops::Range, sync::Arc};

/// The frames of a file that has them scattered over packets, in chunks of another form, or without their common beginning.
#[derive(Debug)]
pub(super) struct Frames {
    movie: Arc<Movie>,
    /// Name of the object, with the number of the programme where one was chosen.
    name: String,
}

impl Frames {
    /// Returns the frames of a file, or of the programme that was chosen in it; `None` where frames are ranges of the file itself.
    pub(super) fn of(movie: &Arc<Movie>, programme: Option<u16>) -> Option<Self> {
        let name = programme.map_or_else(|| "frames".to_owned(), |number| format!("frames-{number}"));
        movie.extraction.as_ref().map(|_| Self { movie: movie.clone(), name })
    }

    fn extraction(&self) -> Result<&Extraction, String> {
        self.movie.extraction.as_deref().ok_or_else(|| "no frames".to_owned())
    }
}

impl Derivation for Frames {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.movie.extraction.as_ref().map_or(0, |extraction| extraction.len())
    }

    fn needs(&self, range: &Range<u64>) -> Result<Range<u64>, String> {
        let source = self.extraction()?.source(ByteRange::new(range.start, range.end));
        source.map(|source| source.start..source.end).map_err(|error| error.to_string())
    }

    fn begin(&self, range: &Range<u64>) -> Result<Box<dyn Making>, String> {
        let extractor = Extractor::new(self.extraction()?, ByteRange::new(range.start, range.end));
        Ok(Box::new(ExtractedRange(extractor.map_err(|error| error.to_string())?)))
    }
}

/// A range of the frames that is being extracted.
struct ExtractedRange(Extractor);

impl Making for ExtractedRange {
    fn memory(&self) -> u64 {
        self.0.memory()
    }

    fn supply(&mut self, part: &[u8]) {
        self.0.supply(part);
    }

    fn finish(self: Box<Self>) -> Result<Bytes, String> {
        self.0.finish().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_media::index_bytes;
    use millpond_store::{MemoryOrigin, ObjectPath, Store, StoreOptions};

    fn element(id: &[u8], body: &[u8]) -> Vec<u8> {
        [id, &[0x80 | body.len() as u8], body].concat()
    }

    /// A Matroska file with frames of AAC that lack their first two bytes.
    fn stripped(prefix: &[u8], frames: &[&[u8]]) -> Vec<u8> {
        let compression = [element(b"\x42\x54", &[3]), element(b"\x42\x55", prefix)].concat();
        let encoding = element(b"\x62\x40", &element(b"\x50\x34", &compression));
        let fields = [element(&[0xd7], &[1]), element(&[0x83], &[2]), element(&[0x86], b"A_AAC")];
        let entry = element(&[0xae], &[fields.concat(), element(b"\x6d\x80", &encoding)].concat());
        let block = |frame: &&[u8]| element(&[0xa3], &[&b"\x81\0\0\x80"[..], frame].concat());
        let parts = [
            element(b"\x1a\x45\xdf\xa3", &element(b"\x42\x82", b"matroska")),
            b"\x18\x53\x80\x67\xff".to_vec(),
            element(b"\x16\x54\xae\x6b", &entry),
            b"\x1f\x43\xb6\x75\xff".to_vec(),
            element(&[0xe7], &[0]),
            frames.iter().flat_map(block).collect(),
        ];
        parts.concat()
    }

    #[tokio::test]
    async fn frames_get_their_common_beginning_back() {
        let file = stripped(b"\x21\x10", &[b"one", b"two", b"three"]);
        let store = Store::new(&StoreOptions { memory: 64 << 20, ..StoreOptions::default() }).unwrap();
        let origin = MemoryOrigin::new("films");
        origin.put("a.mkv", Bytes::copy_from_slice(&file));
        store.add_place("films", Arc::new(origin));
        let source = store.open("films", &ObjectPath::parse("a.mkv").unwrap()).await.unwrap();
        // Index files have this form.
        let movie: Movie = postcard::from_bytes(&postcard::to_stdvec(&index_bytes(&file).unwrap()).unwrap()).unwrap();
        let ranges: Vec<_> = movie.tracks[0].samples.iter().map(|sample| sample.range).collect();
        let frames = Frames::of(&Arc::new(movie), None).expect("frames that are no ranges of the file");
        let object = store.derived(&source, Arc::new(frames));
        let expected: [&[u8]; 3] = [b"\x21\x10one", b"\x21\x10two", b"\x21\x10three"];
        assert_eq!(ranges.len(), expected.len());
        for (range, expected) in ranges.into_iter().zip(expected) {
            assert_eq!(store.read_all(&object, range.start..range.end).await.unwrap(), expected);
        }
    }
}
