//! Pages of listings of buckets. Of a page that the keys in the input make, exactly the keys that no path can name are left out.
//! An input is also a page itself: what is left of it has no more to leave out.
#![cfg_attr(feature = "libfuzzer", no_main)]

use bytes::Bytes;
use millpond_fuzz::fuzz_target;
use millpond_store::without_odd_keys;
use object_store::path::Path;

const ELEMENTS: [(&str, &str); 4] =
    [("Contents", "Key"), ("CommonPrefixes", "Prefix"), ("Blob", "Name"), ("BlobPrefix", "Name")];

fn is_odd(key: &str) -> bool {
    key.starts_with('/') || key.contains('\\') || Path::parse(key).is_err()
}

fn page<'a>(keys: impl Iterator<Item = (usize, &'a str)>) -> Bytes {
    let escaped = |key: &str| key.chars().map(|c| format!("&#{};", u32::from(c))).collect::<String>();
    let mut page = "<?xml version=\"1.0\"?><List><Prefix>a//</Prefix>".to_owned();
    for (number, key) in keys {
        let (element, name) = ELEMENTS[number % 4];
        // Every other key as a person would write it.
        let is_plain = number % 2 == 0 && !key.contains(['<', '&', '\r']);
        let key = if is_plain { key.to_owned() } else { escaped(key) };
        page.push_str(&format!("<{element}><Owner><{name}>//</{name}></Owner><{name}>{key}</{name}></{element}>\n"));
    }
    (page + "</List>").into()
}

fuzz_target!(|text: &str| {
    let keys = || text.split('\0').take(64).enumerate();
    let (left, odd) = without_odd_keys(page(keys()));
    assert!(odd.iter().map(String::as_str).eq(keys().map(|(_, key)| key).filter(|key| is_odd(key))), "{odd:?}");
    let expected = page(keys().filter(|(_, key)| !is_odd(key)));
    let without_lines = |page: &[u8]| String::from_utf8_lossy(page).replace('\n', "");
    assert_eq!(without_lines(&left), without_lines(&expected));

    let whole = Bytes::copy_from_slice(text.as_bytes());
    let (left, odd) = without_odd_keys(whole.clone());
    assert!(odd.iter().all(|key| is_odd(key)));
    assert_eq!(odd.is_empty(), left == whole);
    let (again, more) = without_odd_keys(left.clone());
    assert!(again == left && more.is_empty(), "{more:?}");
});
