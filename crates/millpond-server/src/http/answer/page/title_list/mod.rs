//! Lists of titles and live streams for players and TVs: M3U and XSPF.

mod addresses;
mod line;
mod m3u;
mod xspf;

use super::{
    super::{Context, client::sights, target::ListFormat},
    listing::is_folder,
    seen::{SeenPlace, sees},
    streams::paths,
};
use crate::library::{LibraryError, Names, PlacePath, playable_titles};
use addresses::Addresses;
use futures_util::future::join_all;
use millpond_media::Work;
use std::{collections::HashMap, sync::Arc};

/// Titles and streams of a list, at most.
const MOST: usize = 10_000;

/// A title or live stream in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListEntry {
    /// Address of its HLS.
    address: String,
    /// Name for viewers.
    name: String,
    /// The programmes of a stream with a schedule.
    guide: Option<ListedGuide>,
}

/// Programmes of a stream, as XMLTV.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListedGuide {
    address: String,
    /// Id of the channel in it.
    channel: String,
}

/// A list before it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TitleList {
    entries: Vec<ListEntry>,
    /// Reason why the list is not complete.
    missing: Option<&'static str>,
}

/// Lists the titles and live streams of a folder and of all folders in it, or of all places where `folder` is empty.
pub(super) async fn list(context: &Context<'_>, folder: &str, format: ListFormat) -> Result<String, LibraryError> {
    let front = context.front;
    let seen = seen(context, folder).await?;
    let is_seen = |path: &str| is_within(folder, path) && sees(&seen, path);
    let streams = paths(front, is_seen, MOST);
    let (live, stored): (Vec<SeenPlace>, Vec<SeenPlace>) =
        seen.into_iter().partition(|place| front.sources.is_live(&place.name));
    let names = join_all(stored.iter().map(|place| front.catalogue.names(&place.name, &place.prefix))).await;
    let missing = missing(&names);
    let addresses = Addresses::new(context, live.iter().chain(&stored));
    let has_guide = |path: &&Arc<str>| front.schedules().of(path).is_some();
    let guides: HashMap<Arc<str>, ListedGuide> =
        streams.iter().filter(has_guide).map(|path| (path.clone(), guide(&addresses, path))).collect();
    let work = Work::unlimited();
    let spent = work.clone();
    let owned = folder.to_owned();
    let job = move || {
        let most = MOST.saturating_sub(streams.len());
        // The job is cancelled only when nobody waits for it.
        let found = playable_titles(&names, &owned, most, |path| sees(&stored, path), &spent).unwrap_or_default();
        let streams = streams.iter().map(|path| (&**path, name_of_stream(&owned, path)));
        let titles = found.titles.iter().map(|title| (&*title.path, &*title.name));
        let entry = |(path, name): (&str, &str)| ListEntry {
            address: addresses.of_hls(path),
            name: line::of(name),
            guide: guides.get(path).cloned(),
        };
        let missing = found.is_cut.then_some("there are more titles: ask for a folder, ?folder=PATH").or(missing);
        let list = TitleList { entries: streams.chain(titles).map(entry).collect(), missing };
        match format {
            ListFormat::M3u => m3u::write(&list),
            ListFormat::Xspf => xspf::write(&list),
        }
    };
    let refused = |error| LibraryError::Refused { asset: folder.to_owned(), error };
    front.library.pool().run(&work, job).await.map_err(refused)
}

/// The programmes of a stream with a schedule.
fn guide(addresses: &Addresses, path: &str) -> ListedGuide {
    // A comma separates addresses, and a quotation mark ends the id.
    let (address, channel) = (addresses.of_guide(path).replace(',', "%2C"), line::of(path).replace('"', "'"));
    ListedGuide { address, channel }
}

/// Returns the places of a list. The rules of the place of `folder` have admitted the viewer.
async fn seen(context: &Context<'_>, folder: &str) -> Result<Vec<SeenPlace>, LibraryError> {
    let front = context.front;
    if folder.is_empty() {
        return Ok(SeenPlace::all(front, &sights(context)));
    }
    let absent = || LibraryError::NoAsset(folder.to_owned());
    let PlacePath { name, inside, .. } = front.place(folder).ok_or_else(absent)?;
    let is_known = inside.is_empty() || front.sources.is_live(name) || is_folder(front, folder).await;
    if is_known { Ok(vec![SeenPlace::admitted(name)]) } else { Err(absent()) }
}

/// Returns why names are missing; `None` where none are.
fn missing(names: &[Arc<Names>]) -> Option<&'static str> {
    if names.iter().any(|names| !names.is_read) {
        return Some("folders are still being read: ask again for the rest");
    }
    let is_cut = names.iter().any(|names| names.is_cut || names.failed > 0);
    is_cut.then_some("some folders could not be read, or are more than search-folders")
}

/// Tells whether a path is that of a folder or lies in it.
fn is_within(folder: &str, path: &str) -> bool {
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the name of a stream below a folder.
fn name_of_stream<'a>(folder: &str, path: &'a str) -> &'a str {
    let below = path.strip_prefix(folder).unwrap_or_default().trim_matches('/');
    if below.is_empty() { path.rsplit('/').next().unwrap_or_default() } else { below }
}
