//! Manifests that a thread's players have read, so that the same text is not read a thousand times.
//!
//! Each player fetches its manifests itself, as it would alone; only understanding them is shared, and with it
//! the memory of the segment lists.

use std::cell::RefCell;
use std::collections::HashMap;

use url::Url;

use crate::title::{Document, TitleError};

/// Texts kept at most, in bytes; past that all are forgotten and read anew.
const LIMIT: usize = 64 << 20;

/// The documents read so far.
#[derive(Debug, Default)]
pub(crate) struct Library(RefCell<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    bytes: usize,
    documents: HashMap<Url, (Vec<u8>, Document)>,
}

impl Library {
    /// Returns what `body` says, fetched from `location`.
    pub(crate) fn read(&self, body: Vec<u8>, location: Url) -> Result<Document, TitleError> {
        let mut shelf = self.0.borrow_mut();
        if let Some((known, document)) = shelf.documents.get(&location)
            && *known == body
        {
            return Ok(document.clone());
        }
        let document = Document::read(&body, &location)?;
        if shelf.bytes + body.len() > LIMIT {
            *shelf = Shelf::default();
        }
        shelf.bytes += body.len();
        if let Some((replaced, _)) = shelf.documents.insert(location, (body, document.clone())) {
            shelf.bytes -= replaced.len();
        }
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    fn read(library: &Library, url: &str, body: &str) -> Rc<crate::title::Track> {
        let document = library.read(body.as_bytes().to_vec(), Url::parse(url).unwrap());
        document.and_then(Document::track).expect(body)
    }

    #[test]
    fn the_same_text_is_read_once() {
        let library = Library::default();
        let (one, two) = ("#EXTM3U\n#EXTINF:1,\n1\n#EXT-X-ENDLIST\n", "#EXTM3U\n#EXTINF:2,\n2\n#EXT-X-ENDLIST\n");
        let first = read(&library, "http://h/a", one);
        assert!(Rc::ptr_eq(&first, &read(&library, "http://h/a", one)));
        assert!(!Rc::ptr_eq(&first, &read(&library, "http://h/b", one)), "other URLs resolve otherwise");
        assert_eq!(read(&library, "http://h/a", two).end(), 2.0);
        assert_eq!(library.0.borrow().bytes, one.len() + two.len());
    }
}
