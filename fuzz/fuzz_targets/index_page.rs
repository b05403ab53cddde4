//! Index pages of web servers: every entry is a single component of a path.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millpond_store::ObjectPath;
use url::Url;

#[path = "../../crates/millpond-store/src/origin/index_page.rs"]
#[allow(dead_code, missing_docs, reason = "the module as it is, without the origin around it")]
mod index_page;

fuzz_target!(|page: &str| {
    let folder = Url::parse("http://host.example/media/a%20b/").expect("a URL");
    for (name, _) in index_page::entries(&folder, page) {
        let path = ObjectPath::parse(&name).expect("a path");
        assert_eq!(path.components().count(), 1);
    }
});
