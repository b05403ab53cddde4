//! `millpond index`: writes index files (dref MP4s) that stand for media elsewhere.

use super::{Outcome, runtime};
use crate::target::{self, Opened};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_library::is_media;
use millpond_media::{Movie, dref, foreign::copying_command};
use millpond_store::ObjectPath;
use millpond_terminal::{
    note,
    out::{OutputClosed, progress, progress_of},
    say,
};
use std::{
    collections::HashMap,
    error::Error,
    io::IsTerminal as _,
    path::{Path, PathBuf},
};

pub(crate) fn command() -> Command {
    Command::new("index")
        .about(
            "Writes dref MP4 files. A dref MP4 file has all metadata of a media file, and refers to the file for \
                the media itself",
        )
        .arg(
            Arg::new("target")
                .value_name("FILE|PREFIX")
                .required(true)
                .help("A media file or a folder of media files, as a path or a URL"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("DIR")
                .help("Folder for NAME.dref.mp4 [default: the file's folder, or the working folder for URLs]"),
        )
        .arg(Arg::new("location").long("location").value_name("PREFIX").help(
            "Prefix of the references, before the file's name [default: none, for media files in the same \
                       folder]",
        ))
        .arg(
            Arg::new("url").long("url").action(ArgAction::SetTrue).help(
                "References the media by a URL entry (ISO/IEC 14496-12) instead of the alias that ffmpeg follows",
            ),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    runtime()?.block_on(write_all(matches))
}

async fn write_all(matches: &ArgMatches) -> Outcome {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let target = text("target").unwrap_or_default();
    let opened = target::open(target)?;
    let output = match text("output") {
        Some(folder) => PathBuf::from(folder),
        None if target.contains("://") => PathBuf::from("."),
        None if opened.path.is_root() => PathBuf::from(target),
        None => PathBuf::from(target).parent().map(PathBuf::from).unwrap_or_default(),
    };
    std::fs::create_dir_all(&output).map_err(|e| format!("{}: {e}", output.display()))?;
    let paths = media(&opened).await?;
    if paths.is_empty() {
        return Err(format!("{target}: no media file there (MP4, MOV, MKV, WebM ...)").into());
    }
    let names: Vec<&str> = paths.iter().map(ObjectPath::file_name).collect();
    let indexing = Indexing {
        opened: &opened,
        outputs: index_names(&names).into_iter().map(|name| output.join(name)).collect(),
        prefix: text("location").unwrap_or(""),
        is_url: matches.get_flag("url"),
    };
    if paths.len() == 1 {
        return indexing.write_one(0, &paths[0]).await;
    }
    let mut failed = 0;
    // On a terminal the lines of the files are the progress.
    let is_told = !std::io::stdout().is_terminal();
    for (number, path) in paths.iter().enumerate() {
        if is_told {
            progress_of(number as u64, paths.len() as u64, path.file_name());
        }
        match indexing.write_one(number, path).await {
            Err(error) if !error.is::<OutputClosed>() => {
                note!("millpond: {error}");
                failed += 1;
            }
            // The files are written; only their names have no reader any more.
            _ => {}
        }
    }
    progress("");
    if failed > 0 { Err(format!("{failed} of {} files could not be indexed", paths.len()).into()) } else { Ok(()) }
}

/// The files to index: the one that was named, or those of the folder.
async fn media(opened: &Opened) -> Result<Vec<ObjectPath>, Box<dyn Error>> {
    if !opened.path.is_root() {
        return Ok(vec![opened.path.clone()]);
    }
    let wanted = |name: &str| is_media(name) && !name.to_ascii_lowercase().ends_with(".dref.mp4");
    let entries = opened.store.list("", &opened.path).await?;
    let names = entries.iter().filter(|e| !e.folder && wanted(&e.name));
    names.map(|e| Ok(ObjectPath::parse(&e.name)?)).collect()
}

/// Returns the names of the index files of media files. A name has the media file's extension only if two files share a stem.
fn index_names(names: &[&str]) -> Vec<String> {
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    for name in names {
        *wanted.entry(stem(name)).or_default() += 1;
        // `film.mkv` may need its whole name, which is the stem of `film.mkv.mp4`.
        *wanted.entry(name).or_default() += 1;
    }
    let is_alone = |stem: &str| wanted.get(stem) == Some(&1);
    let kept = names.iter().map(|name| if is_alone(stem(name)) { stem(name) } else { *name });
    kept.map(|name| format!("{name}.dref.mp4")).collect()
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Returns why a file can't have an index file: it is an index file itself, or its samples are no ranges of it.
fn refusal(name: &str, movie: &Movie) -> Option<String> {
    if let Some(media) = &movie.external_media {
        return Some(format!("{name}: is an index file of {media}, expected a media file"));
    }
    movie.extraction.is_some().then(|| {
        let command = copying_command(name);
        format!(
            "{name}: its samples lie in pieces, or without their beginning, as in transport streams, AVI and Matroska with header \
             stripping. An index file needs samples that are ranges of the file; to make such a file without encoding: {command}"
        )
    })
}

/// The writing of index files.
struct Indexing<'a> {
    opened: &'a Opened,
    /// Files to write, in the order of the media files.
    outputs: Vec<PathBuf>,
    /// Text before the name of a media file in references.
    prefix: &'a str,
    is_url: bool,
}

impl Indexing<'_> {
    /// Writes the index file of the media file `number`.
    async fn write_one(&self, number: usize, path: &ObjectPath) -> Outcome {
        let store = &self.opened.store;
        let object = store.open("", path).await?;
        let movie = target::index(store, &object).await?.movie;
        let name = path.file_name();
        if let Some(why) = refusal(name, &movie) {
            return Err(why.into());
        }
        let location = format!("{}{name}", self.prefix);
        let written = if self.is_url { dref::write(&movie, &location) } else { dref::write_alias(&movie, &location) };
        let bytes = written.map_err(|e| format!("{name}: {e}"))?;
        let file = &self.outputs[number];
        may_replace(file, name).await?;
        std::fs::write(file, &bytes).map_err(|e| format!("{}: {e}", file.display()))?;
        // Tracks that only end early are written.
        let skipped = movie.skipped.iter().filter(|skipped| movie.tracks.iter().all(|track| track.id != skipped.id));
        for track in skipped.chain(&dref::left_out(&movie)) {
            note!("{name}: track {} left out: {}", track.id, track.reason);
        }
        say!("{}: {} bytes for {} bytes of media", file.display(), bytes.len(), object.meta().len)
    }
}

/// Refuses to overwrite a file that is no index file of the media file `name`.
async fn may_replace(file: &Path, name: &str) -> Outcome {
    if !file.exists() {
        return Ok(());
    }
    let cure = "it is kept as it is: rename or remove it, or choose another folder with --output";
    let shown = file.display();
    match referenced(file).await {
        Some(media) if media.rsplit('/').next() == Some(name) => Ok(()),
        Some(media) => Err(format!("{shown}: is the index file of {media}, not of {name}; {cure}").into()),
        None => Err(format!("{shown}: exists, and is no index file of {name}; {cure}").into()),
    }
}

/// Returns the media that an index file refers to; `None` for other files.
async fn referenced(file: &Path) -> Option<String> {
    let opened = target::open(file.to_str()?).ok()?;
    let object = opened.store.open("", &opened.path).await.ok()?;
    target::index(&opened.store, &object).await.ok()?.movie.external_media
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_media_file_has_an_index_file_of_its_own() {
        let of = |names: &[&str]| index_names(names).iter().map(|n| n.replace(".dref.mp4", "")).collect::<Vec<_>>();
        assert_eq!(of(&["a.mp4"]), ["a"]);
        assert_eq!(of(&["a.mkv", "a.mp4", "b.mp4", "c"]), ["a.mkv", "a.mp4", "b", "c"]);
        assert_eq!(of(&["a.mkv", "a.mkv.mp4", "a.mp4"]), ["a.mkv", "a.mkv.mp4", "a.mp4"]);
        assert_eq!(of(&["a", "a.mp4"]), ["a", "a.mp4"]);
    }
}
