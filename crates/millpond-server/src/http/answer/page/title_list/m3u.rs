//! Lists as M3U with the extensions of Winamp, which VLC and TVs read. Text is UTF-8.

use super::{ListEntry, TitleList};
use std::fmt::Write as _;

/// Writes a list. No file is opened for it, so lengths are unknown (`-1`).
pub(super) fn write(list: &TitleList) -> String {
    let mut out = "#EXTM3U\n".to_owned();
    if let Some(missing) = list.missing {
        // Writing to a string can't fail.
        let _ = writeln!(out, "# Not complete: {missing}");
    }
    for ListEntry { address, name } in &list.entries {
        let _ = writeln!(out, "#EXTINF:-1,{name}\n{address}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_two_lines() {
        let entry = |name: &str| ListEntry { address: format!("http://h/{name}/index.m3u8"), name: name.to_owned() };
        let list = TitleList { entries: vec![entry("a"), entry("b,c")], missing: None };
        let expected = "#EXTM3U\n#EXTINF:-1,a\nhttp://h/a/index.m3u8\n#EXTINF:-1,b,c\nhttp://h/b,c/index.m3u8\n";
        assert_eq!(write(&list), expected);
        let cut = TitleList { entries: Vec::new(), missing: Some("there are more") };
        assert_eq!(write(&cut), "#EXTM3U\n# Not complete: there are more\n");
    }
}
