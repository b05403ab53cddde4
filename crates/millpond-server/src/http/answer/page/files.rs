//! Files of the web page: its document, which holds the style and the scripts of the gallery, and the files of the player.

use crate::{
    http::answer::reply::{escaped, source},
    library::fingerprint,
};
use bytes::Bytes;
use std::sync::LazyLock;

/// The document, with empty elements where the style and the script belong. In it, they cost no round trip of their own.
const DOCUMENT: &str = include_str!("../../../../page/index.html");
const STYLE: &str = include_str!("../../../../page/style.css");
const SCRIPT: &str = concat!(
    include_str!("../../../../page/common.js"),
    include_str!("../../../../page/titles.js"),
    include_str!("../../../../page/memory.js"),
    include_str!("../../../../page/artwork.js"),
    include_str!("../../../../page/poster.js"),
    include_str!("../../../../page/unplayable.js"),
    include_str!("../../../../page/gallery.js"),
    include_str!("../../../../page/focus.js"),
    include_str!("../../../../page/list.js"),
    include_str!("../../../../page/app.js")
);
/// Script of the parts that follow when the gallery is shown.
const PLAYER: &str = concat!(
    include_str!("../../../../page/live.js"),
    include_str!("../../../../page/webrtc.js"),
    include_str!("../../../../page/qr.js"),
    include_str!("../../../../page/pictures.js"),
    include_str!("../../../../page/chapters.js"),
    include_str!("../../../../page/seeking.js"),
    include_str!("../../../../page/engines.js"),
    include_str!("../../../../page/icons.js"),
    include_str!("../../../../page/choices.js"),
    include_str!("../../../../page/controls.js"),
    include_str!("../../../../page/touches.js"),
    include_str!("../../../../page/keys.js"),
    include_str!("../../../../page/next.js"),
    include_str!("../../../../page/places.js"),
    include_str!("../../../../page/trouble.js"),
    include_str!("../../../../page/left_out.js"),
    include_str!("../../../../page/outputs.js"),
    include_str!("../../../../page/asset.js")
);
/// Folder of the files, and of the page's data.
const FOLDER: &str = "/.millpond/";
/// Files beside the document: their names, kinds and contents.
const FILES: [(&str, FileKind, &[u8]); 6] = [
    ("player.js", FileKind::Script, PLAYER.as_bytes()),
    ("programmes.js", FileKind::Script, include_bytes!("../../../../page/programmes.js")),
    ("player.css", FileKind::Style, include_bytes!("../../../../page/player.css")),
    ("vendor/hls.min.js", FileKind::Script, include_bytes!("../../../../page/vendor/hls.min.js")),
    ("vendor/dash.all.min.js", FileKind::Script, include_bytes!("../../../../page/vendor/dash.all.min.js")),
    (
        "vendor/shaka-player.compiled.js",
        FileKind::Script,
        include_bytes!("../../../../page/vendor/shaka-player.compiled.js"),
    ),
];

/// Hashes of the files.
static HASHES: LazyLock<[u64; FILES.len()]> = LazyLock::new(|| FILES.map(|(_, _, content)| fingerprint(content)));
/// Folder of the files in this version of Millpond, below the server's root. Browsers may keep its files for ever.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: Vec<u8> = HASHES.iter().flat_map(|hash| hash.to_be_bytes()).collect();
    format!("{:016x}", fingerprint(&all))
});
/// The document, its style and its script as browsers get them.
static SENT: LazyLock<Sent> =
    LazyLock::new(|| Sent { document: compact(DOCUMENT), style: compact(STYLE), script: compact(SCRIPT) });
/// Sources of the script and of the style in the document, for `Content-Security-Policy`.
static SOURCES: LazyLock<(String, String)> = LazyLock::new(|| (source(&SENT.script), source(&SENT.style)));

/// Parts of the document.
struct Sent {
    document: String,
    style: String,
    script: String,
}

/// Removes comments of whole lines, indentation and empty lines. They are a fifth of the bytes that a browser loads before the
/// first row. No string literal of the scripts may span lines.
fn compact(text: &str) -> String {
    let is_comment = |line: &str| line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"));
    let lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !is_comment(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Kind of a file beside the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// A script.
    Script,
    /// A style sheet.
    Style,
}

/// A file of the page.
pub(super) struct PageFile {
    /// Kind.
    pub(super) kind: FileKind,
    /// Content.
    pub(super) content: Bytes,
    /// Hash of the content.
    pub(super) hash: u64,
    /// Whether the path names this version of the file.
    pub(super) is_versioned: bool,
}

/// Returns a file by its path, with or without a version. Where another version is named, an old page asks a new server, or the
/// other way round: it gets the file that is here.
pub(super) fn file(path: &str) -> Option<PageFile> {
    let name = path.strip_prefix(FOLDER)?;
    let is_version = |first: &str| first.len() == 16 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (version, name) = match name.split_once('/') {
        Some((first, rest)) if is_version(first) => (Some(first), rest),
        _ => (None, name),
    };
    let index = FILES.iter().position(|(known, ..)| *known == name)?;
    let (_, kind, content) = FILES[index];
    let (content, hash) = (Bytes::from_static(content), HASHES[index]);
    Some(PageFile { kind, content, hash, is_versioned: version == Some(&**VERSION) })
}

/// View that the page opens with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// View that the fragment (`#...`) of the page's URL names.
    Fragment,
    /// A folder, by its path with its place.
    Folder(String),
    /// A live stream, by its path with its place.
    Stream(String),
}

/// Returns the document of the page at an address from which `root` leads to the server's root.
pub(super) fn document(root: &str, shown: &Shown) -> String {
    let (folder, stream) = match shown {
        Shown::Fragment => (String::new(), String::new()),
        Shown::Folder(path) => (format!("{}/", path.trim_matches('/')), String::new()),
        Shown::Stream(path) => (String::new(), path.trim_matches('/').to_owned()),
    };
    let facts = format!(
        "data-root=\"{root}\" data-version=\"{}\" data-folder=\"{}\" data-stream=\"{}\"",
        &**VERSION,
        escaped(&folder),
        escaped(&stream),
    );
    let Sent { document, style, script } = &*SENT;
    document
        .replacen("data-root=\"\"", &facts, 1)
        .replacen("<style></style>", &format!("<style>{style}</style>"), 1)
        .replacen("<script></script>", &format!("<script>{script}</script>"), 1)
}

/// Returns the sources of scripts and of styles that the document has in it.
pub(super) fn sources() -> (&'static str, &'static str) {
    (&SOURCES.0, &SOURCES.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_its_style_and_script_in_it() {
        let page = document("../", &Shown::Folder("Movies/\"><script>".to_owned()));
        assert!(page.contains("data-root=\"../\" ") && page.contains("data-stream=\"\""));
        assert!(page.contains("data-folder=\"Movies/&quot;&gt;&lt;script&gt;/\""));
        // The hashes in the policy are those of the whole elements.
        let between =
            |open: &str, close: &str| page.split_once(open).unwrap().1.split_once(close).unwrap().0.to_owned();
        let (script, style) = sources();
        assert_eq!(source(&between("<script>", "</script>")), script);
        assert_eq!(source(&between("<style>", "</style>")), style);
        assert_eq!(page.matches("<script").count(), 1, "no script that must be fetched first");
        let stream = document("./", &Shown::Stream("/cams/door/".to_owned()));
        assert!(stream.contains("data-folder=\"\" data-stream=\"cams/door\""));
    }

    #[test]
    fn the_document_is_sent_without_comments_and_indentation() {
        assert_eq!(compact("a\n\n  // b\n  c // d\n/* e */\n  f /* g */\n"), "a\nc // d\nf /* g */");
        let page = document("./", &Shown::Fragment);
        assert!(page.lines().all(|line| !line.starts_with([' ', '/']) && !line.is_empty()));
        // A template literal over several lines would lose its indentation. The one exception breaks lines within an expression.
        let is_within = |line: &str| line.ends_with("${[") || line.starts_with("].join(");
        let mut open = SCRIPT.lines().filter(|line| line.matches('`').count() % 2 == 1);
        assert!(open.all(is_within));
    }

    #[test]
    fn files_have_a_version_in_their_path() {
        let known = |path: &str| file(path).map(|file| file.is_versioned);
        let version: &str = &VERSION;
        assert_eq!(known(&format!("/.millpond/{version}/vendor/hls.min.js")), Some(true));
        assert_eq!(known("/.millpond/0123456789abcdef/player.js"), Some(false), "of another version");
        assert_eq!(known("/.millpond/vendor/hls.min.js"), Some(false));
        let kind = |path: &str| file(path).map(|file| file.kind);
        assert_eq!(kind("/.millpond/player.css"), Some(FileKind::Style));
        assert_eq!(kind("/.millpond/player.js"), Some(FileKind::Script));
        for path in
            ["/.millpond/", "/.millpond/none.js", "/player.js", "/.millpond/012/player.js", "/.millpond/asset.js"]
        {
            assert_eq!(known(path), None, "{path}");
        }
    }
}
