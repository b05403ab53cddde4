//! `millpond probe FOLDER`: the titles of a folder, files that stand alone or are left out, and the reasons.

use crate::{
    commands::Outcome,
    target::{self, Opened},
};
use millpond_library::{FolderContent, Title, Titles, is_playlist};
use millpond_package::ladder::{self, Difference, Shape};
use millpond_terminal::say;
use serde_json::{Value, json};
use std::error::Error;

/// Most files that are opened: as many as one title may have.
const MOST_FILES: usize = 256;

/// The titles of a folder. Titles of several files are compared by their content too.
pub(super) async fn report(name: &str, opened: &Opened) -> Result<Value, Box<dyn Error>> {
    let entries = opened.store.list("", &opened.path).await?;
    let content = FolderContent::of(&entries, Titles::Alike);
    let mut left = MOST_FILES;
    let mut titles = Vec::with_capacity(content.titles.len());
    for title in &content.titles {
        let (compared, verdict) = match title.files.len() {
            2.. if title.files.len() <= left => {
                left -= title.files.len();
                (true, compare(opened, title).await)
            }
            _ => (false, Ok(Vec::new())),
        };
        titles.push(told(title, compared, verdict));
    }
    Ok(json!({
        "folder": name,
        "is-asset": content.is_asset,
        "titles": titles,
        "manifests": content.manifests,
        "subtitles": content.subtitles,
        "left-out": content.left_out.iter().map(|file| json!({
            "file": file.name,
            "format": file.format.name(),
            "command": file.format.command(&file.name),
        })).collect::<Vec<_>>(),
        "folders": content.folders,
        "other-files": content.others,
    }))
}

/// Why each file of a title by name is another one by content, where it is.
async fn compare(opened: &Opened, title: &Title) -> Result<Vec<Option<Difference>>, String> {
    let mut shapes = Vec::with_capacity(title.files.len());
    for name in &title.files {
        let path = opened.path.join(name).map_err(|error| error.to_string())?;
        let object = opened.store.open("", &path).await.map_err(|error| error.to_string())?;
        let indexed = target::index(&opened.store, &object).await.map_err(|error| error.to_string())?;
        shapes.push((name.as_str(), Shape::of(&indexed.movie)));
    }
    ladder::title(&shapes).map_err(|error| error.to_string())
}

fn told(title: &Title, compared: bool, verdict: Result<Vec<Option<Difference>>, String>) -> Value {
    let (why, apart) = match (&title.files[..], verdict) {
        ([_], _) => {
            ("no other file has its name but for size, bitrate, codec, kind or language".to_owned(), Vec::new())
        }
        (_, Err(error)) => (format!("one title by name, not by content: {error}"), Vec::new()),
        (_, Ok(_)) if !compared => {
            ("one title by name; not compared by content, as there are many files".to_owned(), Vec::new())
        }
        (_, Ok(apart)) => ("one title by name and content".to_owned(), apart),
    };
    let alone = title
        .files
        .iter()
        .zip(&apart)
        .filter_map(|(name, why)| Some(json!({ "file": name, "why": why.as_ref()?.to_string() })));
    json!({
        "path": title.path,
        "files": title.files,
        "why": why,
        "standing-alone": alone.collect::<Vec<_>>(),
    })
}

pub(super) fn print_text(report: &Value) -> Outcome {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let list = |v: &Value| v.as_array().cloned().unwrap_or_default();
    let titles = list(&report["titles"]);
    let is_asset = report["is-asset"] == true;
    let form = match (titles.len(), is_asset) {
        (_, true) => "one title".to_owned(),
        (0, false) => "no title".to_owned(),
        (count, false) => format!("{count} titles, so no asset by itself"),
    };
    say!("{}: {form}", text(&report["folder"]))?;
    for title in &titles {
        let files: Vec<String> = list(&title["files"]).iter().map(text).collect();
        let path = match title["path"].as_str() {
            Some("") => ".".to_owned(),
            Some(path) => path.to_owned(),
            None => "needs a .smil file (names with commas, or too many)".to_owned(),
        };
        say!("  {path}")?;
        if files.len() > 1 {
            say!("    files: {}", files.join(", "))?;
        }
        say!("    {}", text(&title["why"]))?;
        for alone in list(&title["standing-alone"]) {
            say!("    {} stands alone: {}", text(&alone["file"]), text(&alone["why"]))?;
        }
    }
    for (key, what) in [("manifests", "server manifest"), ("subtitles", "subtitles")] {
        for name in list(&report[key]) {
            let name = text(&name);
            let what = if is_playlist(&name) { "HLS playlist" } else { what };
            say!("  {what}: {name}")?;
        }
    }
    for file in list(&report["left-out"]) {
        say!("  left out: {} is {}", text(&file["file"]), text(&file["format"]))?;
        if let Some(command) = file["command"].as_str() {
            say!("    to make an MP4 file of it: {command}")?;
        }
    }
    let folders = list(&report["folders"]).len();
    if folders > 0 {
        say!("  folders that were not looked into: {folders}")?;
    }
    match report["other-files"].as_u64() {
        Some(0) | None => Ok(()),
        Some(others) => say!("  other files: {others}"),
    }
}
