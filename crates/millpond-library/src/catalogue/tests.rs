use super::*;
use crate::{
    LibraryOptions, RowKind, Titles,
    folder::listed::ListedFolder,
    work::{PoolOptions, WorkPool},
};
use millpond_media::{Work, WorkError};
use millpond_store::{Entry, MemoryOrigin, Store, StoreOptions};

fn names(folder: &str, entries: &[&str]) -> Arc<Names> {
    let entry = |name: &&str| Entry {
        name: name.trim_end_matches('/').to_owned(),
        folder: name.ends_with('/'),
        len: 7,
        modified: None,
    };
    let entries: Vec<Entry> = entries.iter().map(entry).collect();
    let mut names = Names::default();
    names.add(&ListedFolder::of(folder, &entries, Titles::Alike));
    Arc::new(names)
}

fn found(places: &[Arc<Names>], text: &str) -> Vec<String> {
    let query = Query::parse(text).unwrap();
    let found = search(places, &query, 0..100, |_| true, &Work::unlimited()).unwrap();
    assert_eq!(found.total, found.rows.len());
    found.rows.into_iter().map(|row| row.path.into()).collect()
}

#[test]
fn better_matches_come_first() {
    let all = [names(
        "films",
        &[
            "Great Office.mp4",
            "backoffice.mp4",
            "office.mp4",
            "Office party.mp4",
            "other.mp4",
            "office/",
            "party, office.mov",
        ],
    )];
    let expected = [
        "films/office/",
        "films/office.mp4",
        "films/Office party.mp4",
        "films/Great Office.mp4",
        "films/party, office.mov",
        "films/backoffice.mp4",
    ];
    assert_eq!(found(&all, " OFFICE"), expected);
    assert_eq!(found(&all, "party office"), ["films/Office party.mp4", "films/party, office.mov"]);
    assert_eq!(found(&all, "films other"), ["films/other.mp4"], "words of the path count");
    assert_eq!(found(&[names("", &["ÄRGER.mp4"])], "ärger"), ["ÄRGER.mp4"]);
    assert!(found(&all, "nothing").is_empty());
    assert_eq!(Query::parse("  \t "), None);
}

#[test]
fn pages_of_a_result_have_each_row_once() {
    let entries: Vec<String> = (0..1000).map(|n| format!("film {:03}.mp4", 999 - n)).collect();
    let all = [names("a", &entries.iter().map(String::as_str).collect::<Vec<_>>())];
    let query = Query::parse("film").unwrap();
    let mut paths = Vec::new();
    for page in 0..11 {
        let found = search(&all, &query, page * 100..page * 100 + 100, |_| true, &Work::unlimited()).unwrap();
        assert_eq!(found.total, 1000);
        paths.extend(found.rows.into_iter().map(|row| row.path));
    }
    let expected: Vec<Box<str>> = (0..1000).map(|n| format!("a/film {n:03}.mp4").into()).collect();
    assert_eq!(paths, expected);
}

#[test]
fn hidden_rows_are_not_counted() {
    let all = [names("open", &["film.mp4"]), names("closed", &["film.mp4", "film/"])];
    let query = Query::parse("film").unwrap();
    let shown = search(&all, &query, 0..9, |path| path.starts_with("open/"), &Work::unlimited()).unwrap();
    assert_eq!((shown.total, &*shown.rows[0].path), (1, "open/film.mp4"));
    let work = Work::unlimited();
    work.cancel();
    assert_eq!(search(&all, &query, 0..9, |_| true, &work), Err(WorkError::Cancelled));
}

#[test]
fn rows_tell_what_they_are() {
    let all = [names("a", &["E01_360p.mp4", "E01_720p.mp4", "E02.mp4", "x.smil", "cover.jpg", "more/"])];
    let query = Query::parse("a").unwrap();
    let found = search(&all, &query, 0..9, |_| true, &Work::unlimited()).unwrap();
    let kinds: Vec<_> = found.rows.iter().map(|row| (row.kind, row.bytes)).collect();
    assert_eq!(kinds.len(), 6, "{found:?}");
    let list = found.rows.iter().find(|row| row.kind == RowKind::List).unwrap();
    assert_eq!((list.bytes, list.list.clone()), (14, Some((2, "E01".into()))));
    assert!(kinds.contains(&(RowKind::Folder, 0)) && kinds.contains(&(RowKind::Manifest, 7)));
}

fn catalogue(origin: MemoryOrigin, most_folders: usize) -> Arc<Catalogue> {
    let store = Store::new(&StoreOptions::default()).unwrap();
    store.add_place("films", Arc::new(origin));
    let pool = Arc::new(WorkPool::new(PoolOptions { threads: 2 }, store.memory()).unwrap());
    let options = LibraryOptions {
        segment_duration: Duration::from_secs(4),
        index_folder: None,
        cache_size: 0,
        lists_thumbnails: false,
        places: HashMap::new(),
    };
    Catalogue::new(Arc::new(Library::new(store, pool, options)), most_folders)
}

#[tokio::test]
async fn all_folders_of_a_place_are_read_and_read_again_when_they_are_old() {
    let origin = MemoryOrigin::new("films");
    for path in ["a.mp4", "x/b.mp4", "x/y/c.mp4", "z/notes.txt"] {
        origin.put(path, vec![0]);
    }
    let catalogue = catalogue(origin.clone(), 100);
    let place: Arc<str> = "films".into();
    let names = catalogue.names(&place, "films/").await;
    assert_eq!((names.folders, names.failed, names.is_cut, names.is_read), (4, 0, false, true));
    assert_eq!(found(std::slice::from_ref(&names), "mp4"), ["films/a.mp4", "films/x/b.mp4", "films/x/y/c.mp4"]);
    assert_eq!(found(&[names], "x"), ["films/x/", "films/x/b.mp4", "films/x/y/", "films/x/y/c.mp4"]);
    // Old names are used once more, while the new ones are read.
    origin.put("new.mp4", vec![0]);
    let fresh = catalogue.names(&place, "films/").await;
    assert!(found(std::slice::from_ref(&fresh), "new").is_empty());
    let old = Known { names: fresh, read: Instant::now(), lasts: Duration::ZERO };
    catalogue.known.insert(place.clone(), Arc::new(old), 1);
    assert!(found(&[catalogue.names(&place, "films/").await], "new").is_empty());
    while found(&[catalogue.names(&place, "films/").await], "new").is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // After a change of the places nothing old is left.
    let names = catalogue.again(1).names(&place, "films/").await;
    assert_eq!((names.folders, names.is_cut), (1, true));
}

#[tokio::test]
async fn reading_is_bounded() {
    let origin = MemoryOrigin::new("films");
    for n in 0..50 {
        origin.put(&format!("folder {n}/film.mp4"), vec![0]);
    }
    let names = catalogue(origin, 10).names(&"films".into(), "").await;
    assert_eq!((names.folders, names.is_cut, names.is_read), (10, true, true));
    assert!(names.heap_bytes() > 9 * 100, "{}", names.heap_bytes());
}
