//! Index pages of web servers: every entry is a single component of a path.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_store::{ObjectPath, index_page_entries};
use url::Url;

fuzz_target!(|page: &[u8]| {
    let folder = Url::parse("http://host.example/media/a%20b/").expect("a URL");
    for (name, _) in index_page_entries(&folder, page) {
        let path = ObjectPath::parse(&name).expect("a path");
        assert_eq!(path.components().count(), 1);
    }
});
