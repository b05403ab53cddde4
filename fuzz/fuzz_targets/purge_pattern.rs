//! Patterns of purges: with stars behind it a pattern matches no less, and a pattern without stars is a path. An input is a pattern and a
//! path, which a line feed separates.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_store::Glob;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (pattern, path) = text.split_once('\n').unwrap_or((&text, &text));
    let Ok(glob) = Glob::parse(pattern) else { return };
    assert_eq!(glob.as_str(), pattern);
    let path = path.chars().take(4096).collect::<String>();
    let is_plain = !pattern.contains(['*', '?']);
    let is_below = path.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    assert!(!is_plain || glob.matches(&path) == is_below, "{pattern:?} {path:?}");
    if glob.matches(&path)
        && let Ok(wider) = Glob::parse(&format!("{pattern}**"))
    {
        assert!(wider.matches(&path), "{pattern:?} {path:?}");
    }
});
