//! The console's files, as they are in the folder `console` of this crate.

/// A file of the console.
pub(super) struct File {
    /// Path of its URL.
    pub(super) path: &'static str,
    /// Media type.
    pub(super) kind: &'static str,
    /// Content.
    pub(super) content: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file at its path in the folder.
macro_rules! file {
    ($path:expr, $name:literal, $kind:expr) => {
        File { path: $path, kind: $kind, content: include_bytes!(concat!("../../../console/", $name)) }
    };
}

/// A script.
macro_rules! script {
    ($name:literal) => {
        file!(concat!("/console/", $name), $name, SCRIPT)
    };
}

/// All files.
pub(super) const FILES: &[File] = &[
    file!("/", "index.html", HTML),
    file!("/console/style.css", "style.css", CSS),
    file!("/console/icon.svg", "icon.svg", SVG),
    script!("api.js"),
    script!("app.js"),
    script!("cachemap.js"),
    script!("chart.js"),
    script!("dialogs.js"),
    script!("dom.js"),
    script!("format.js"),
    script!("layout.js"),
    script!("list.js"),
    script!("live.js"),
    script!("plot.js"),
    script!("route.js"),
    script!("runs.js"),
    script!("table.js"),
    script!("theme.js"),
    script!("viewing.js"),
    script!("views/cache.js"),
    script!("views/cluster.js"),
    script!("views/explain.js"),
    script!("views/graph.js"),
    script!("views/logs.js"),
    script!("views/origins.js"),
    script!("views/overview.js"),
    script!("views/sessions.js"),
    script!("views/settings.js"),
    script!("views/simulator.js"),
    script!("views/streams.js"),
];
