//! `millpond stitch`: writes a server manifest whose items play one after the other.

use super::{Outcome, runtime};
use crate::target;
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_media::{
    Movie, Stitched, Work,
    stitch::{StitchClip, StitchItem, stitch},
};
use millpond_package::smil;
use millpond_terminal::{note, out};
use std::{collections::HashMap, error::Error, path::Path, sync::Arc};

pub(crate) fn command() -> Command {
    Command::new("stitch")
        .about(
            "Writes a server manifest (SMIL) of files, or parts of them, that play one after the other as one title. It \
                checks the files, and copies no media",
        )
        .arg(
            Arg::new("item")
                .value_name("FILE[@FROM-TO]")
                .required(true)
                .action(ArgAction::Append)
                .num_args(1..)
                .help(
                    "Paths below the manifest's folder: film.mp4, film.mp4@10s-40s, film.mp4@1:30- (from there on) or \
                        film.mp4@-90s (the first 90 s)",
                ),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let items = matches.get_many::<String>("item").into_iter().flatten().map(|text| item(text));
    let items: Vec<(String, StitchClip)> = items.collect::<Result<_, _>>()?;
    let text = smil::written(&items);
    // The server reads it by the same rules.
    smil::parse(&text)?;
    let movie = runtime()?.block_on(checked(&items))?;
    let count = if items.len() == 1 { "1 item".to_owned() } else { format!("{} items", items.len()) };
    note!("{count}, {:.3} s", movie.duration as f64 / 1e9);
    if let Some(Stitched { split: Some(split), .. }) = movie.stitched.as_deref() {
        note!("HLS and DASH play it; RTSP does not, as {split}");
    }
    // Several tracks of an item may have one reason.
    let mut reasons: Vec<&str> = movie.skipped.iter().map(|track| &*track.reason).collect();
    reasons.dedup();
    for reason in reasons {
        note!("left out: {reason}");
    }
    out::raw(text.as_bytes())
}

/// Splits an argument into its file and the part of it. A file whose name looks like both is the whole file.
///
/// # Errors
/// The file exists, and the part can't be read.
fn item(text: &str) -> Result<(String, StitchClip), String> {
    let whole = || (text.to_owned(), StitchClip::default());
    let Some((file, part)) = text.rsplit_once('@').filter(|_| !Path::new(text).exists()) else { return Ok(whole()) };
    match smil::range(part) {
        Ok(clip) => Ok((file.to_owned(), clip)),
        Err(error) if Path::new(file).is_file() => Err(format!("{text}: {error}")),
        // The sign may be part of the name of a file that is missing.
        Err(_) => Ok(whole()),
    }
}

/// Indexes each file once, and stitches the items.
async fn checked(items: &[(String, StitchClip)]) -> Result<Movie, Box<dyn Error>> {
    let mut movies: HashMap<&str, (u16, Arc<Movie>)> = HashMap::new();
    let mut all = Vec::with_capacity(items.len());
    for (file, clip) in items {
        if !movies.contains_key(file.as_str()) {
            let opened = target::open(file)?;
            if opened.path.is_root() {
                return Err(format!("{file}: found a folder, expected a media file").into());
            }
            let object = opened.store.open("", &opened.path).await?;
            let movie = Arc::new(target::index(&opened.store, &object).await?.movie);
            movies.insert(file, (u16::try_from(movies.len())?, movie));
        }
        if let Some((object, movie)) = movies.get(file.as_str()) {
            let (movie, label) = (movie.clone(), file.clone());
            all.push(StitchItem { movie, object: *object, label, clip: *clip, is_stretch: false });
        }
    }
    Ok(stitch(&all, &Work::unlimited())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_argument_may_name_a_part() {
        let clip = StitchClip { from: Duration::from_secs(10), to: Some(Duration::from_secs(40)) };
        assert_eq!(item("ads/b.mp4@10s-40s"), Ok(("ads/b.mp4".to_owned(), clip)));
        for text in ["b.mp4", "b@home.mp4"] {
            assert_eq!(item(text), Ok((text.to_owned(), StitchClip::default())));
        }
        // Tests run in the folder of the crate.
        let error = item("Cargo.toml@10s").unwrap_err();
        assert!(error.starts_with("Cargo.toml@10s: found the part \"10s\", expected 10s-"), "{error}");
    }
}
