//! Bytes of samples and covers, which are those of the extracted object where a movie has one.

use millpond_media::{ByteRange, Extractor, Movie};

/// Returns the bytes of a range that a sample or cover of a movie names.
pub(crate) fn media_bytes(file: &[u8], movie: &Movie, range: ByteRange) -> Vec<u8> {
    let Some(extraction) = movie.extraction.as_deref() else {
        return file[range.start as usize..range.end as usize].to_vec();
    };
    let mut extractor = Extractor::new(extraction, range).unwrap();
    let source = extractor.source();
    file[source.start as usize..source.end as usize].chunks(999).for_each(|piece| extractor.supply(piece));
    extractor.finish().unwrap().to_vec()
}
