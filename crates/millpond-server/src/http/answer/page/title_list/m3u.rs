//! Lists as M3U with the extensions of Winamp, which VLC and TVs read. Text is UTF-8.
//!
//! `x-tvg-url` and `tvg-id` lead to the programmes of channels: they are the attributes that players of IPTV have agreed on.

use super::{ListEntry, TitleList};
use std::fmt::Write as _;

/// Writes a list. No file is opened for it, so lengths are unknown (`-1`).
pub(super) fn write(list: &TitleList) -> String {
    let mut out = "#EXTM3U".to_owned();
    let guides: Vec<&str> = list.entries.iter().filter_map(|entry| entry.guide.as_ref()).map(|g| &*g.address).collect();
    // Writing to a string can't fail.
    if !guides.is_empty() {
        let _ = write!(out, " x-tvg-url=\"{}\"", guides.join(","));
    }
    out.push('\n');
    if let Some(missing) = list.missing {
        let _ = writeln!(out, "# Not complete: {missing}");
    }
    for ListEntry { address, name, guide } in &list.entries {
        let id = guide.as_ref().map(|guide| format!(" tvg-id=\"{}\"", guide.channel)).unwrap_or_default();
        let _ = writeln!(out, "#EXTINF:-1{id},{name}\n{address}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{super::ListedGuide, *};

    #[test]
    fn each_entry_is_two_lines() {
        let address = |name: &str, file: &str| format!("http://h/{name}/{file}");
        let entry = |name: &str| ListEntry { address: address(name, "index.m3u8"), name: name.to_owned(), guide: None };
        let list = TitleList { entries: vec![entry("a"), entry("b,c")], missing: None };
        let expected = "#EXTM3U\n#EXTINF:-1,a\nhttp://h/a/index.m3u8\n#EXTINF:-1,b,c\nhttp://h/b,c/index.m3u8\n";
        assert_eq!(write(&list), expected);
        let channel = |name: &str| {
            let guide = ListedGuide { address: address(name, "epg.xml"), channel: name.to_owned() };
            ListEntry { guide: Some(guide), ..entry(name) }
        };
        let list = TitleList { entries: vec![channel("tv"), entry("a"), channel("tv2")], missing: None };
        assert_eq!(
            write(&list),
            "#EXTM3U x-tvg-url=\"http://h/tv/epg.xml,http://h/tv2/epg.xml\"\n#EXTINF:-1 tvg-id=\"tv\",tv\n\
             http://h/tv/index.m3u8\n#EXTINF:-1,a\nhttp://h/a/index.m3u8\n#EXTINF:-1 tvg-id=\"tv2\",tv2\n\
             http://h/tv2/index.m3u8\n"
        );
        let cut = TitleList { entries: Vec::new(), missing: Some("there are more") };
        assert_eq!(write(&cut), "#EXTM3U\n# Not complete: there are more\n");
    }
}
