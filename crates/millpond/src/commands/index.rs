//! `millpond index`: writes index files (dref MP4s) that stand for media elsewhere.

use super::{Outcome, runtime};
use crate::target::{self, Opened};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_library::is_media;
use millpond_media::dref;
use millpond_store::ObjectPath;
use millpond_terminal::{
    note,
    out::{OutputClosed, progress, progress_of},
    say,
};
use std::{error::Error, io::IsTerminal as _, path::PathBuf};

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
    if let [only] = paths.as_slice() {
        return write_one(&opened, only, &output, text("location").unwrap_or(""), matches.get_flag("url")).await;
    }
    let mut failed = 0;
    // On a terminal the lines of the files are the progress.
    let is_told = !std::io::stdout().is_terminal();
    for (number, path) in paths.iter().enumerate() {
        if is_told {
            progress_of(number as u64, paths.len() as u64, path.file_name());
        }
        let written = write_one(&opened, path, &output, text("location").unwrap_or(""), matches.get_flag("url")).await;
        match written {
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

async fn write_one(opened: &Opened, path: &ObjectPath, output: &std::path::Path, prefix: &str, url: bool) -> Outcome {
    let object = opened.store.open("", path).await?;
    let movie = target::index(&opened.store, &object).await?.movie;
    let name = path.file_name();
    let location = format!("{prefix}{name}");
    let written = if url { dref::write(&movie, &location) } else { dref::write_alias(&movie, &location) };
    let bytes = written.map_err(|e| format!("{name}: {e}"))?;
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let file = output.join(format!("{stem}.dref.mp4"));
    std::fs::write(&file, &bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    // Tracks that only end early are written.
    let skipped = movie.skipped.iter().filter(|skipped| movie.tracks.iter().all(|track| track.id != skipped.id));
    for track in skipped.chain(&dref::left_out(&movie)) {
        note!("{name}: track {} left out: {}", track.id, track.reason);
    }
    say!("{}: {} bytes for {} bytes of media", file.display(), bytes.len(), object.meta().len)
}
