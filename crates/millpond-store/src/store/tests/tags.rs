//! Purges by tag: objects are known by the tags that the origin stated last, after a restart too.

use super::disk::{on_disk, written};
use super::*;
use crate::selection::{Purge, Selection};
use crate::tags::{PurgeTag, StatedTags};

const LENGTH: u64 = SLICE * 4;

fn purge(tag: &str, is_soft: bool) -> Purge {
    Purge { selection: Selection::Tagged { place: None, tag: PurgeTag::parse(tag).unwrap() }, is_soft }
}

/// Other bytes of the same length.
fn others() -> Vec<u8> {
    bytes(LENGTH).into_iter().map(|byte| !byte).collect()
}

async fn all(store: &Store) -> Vec<u8> {
    let object = store.open("p", &path()).await.unwrap();
    read(store, &object, 0..LENGTH).await.unwrap()
}

/// A store before an origin, after the folder of an earlier one has been released.
async fn start(options: &StoreOptions, origin: &Arc<Watched>) -> Store {
    for _ in 0..10_000 {
        if let Ok(store) = Store::new(options) {
            store.add_place("p", Arc::new(Handle(origin.clone())));
            return store;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("the folder stays locked");
}

/// Waits until the disk knows that an object has a tag.
async fn tagged_on_disk(store: &Store, tag: &str) {
    for _ in 0..10_000 {
        let held = store.slices().disk().unwrap().objects();
        if held.iter().any(|held| held.name.tags.iter().any(|other| other == tag)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("no object on the disk has the tag {tag}");
}

#[tokio::test]
async fn a_purge_of_a_tag_removes_the_slices_of_its_objects() {
    let dir = tempfile::tempdir().unwrap();
    for options in [options(), on_disk(dir.path())] {
        let has_disk = options.disk.is_some();
        let rig = Rig::new(LENGTH, false, options);
        rig.origin.inner.tag("a", "film-7 season-2");
        assert!(all(&rig.store).await == rig.content);
        if has_disk {
            written(&rig.store, 4).await;
        }
        rig.origin.inner.replace("a", others());
        assert_eq!(rig.store.purge(&[purge("film", false), purge("season-20", false)]), 0);
        assert!(all(&rig.store).await == rig.content, "from the cache");
        assert_eq!(rig.store.purge(&[purge("season-2", true)]), 0, "a soft one removes nothing");
        assert!(all(&rig.store).await == rig.content, "the version is the same");
        assert_eq!(rig.store.purge(&[purge("season-2", false)]), 4);
        assert!(all(&rig.store).await == others());
    }
}

#[tokio::test]
async fn tags_of_objects_on_the_disk_outlive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (options, origin) = (on_disk(dir.path()), Watched::new(false));
    origin.inner.put("a", bytes(LENGTH));
    origin.inner.tag("a", "film-7");
    let store = start(&options, &origin).await;
    assert!(all(&store).await == bytes(LENGTH));
    written(&store, 4).await;
    drop(store);
    let store = start(&options, &origin).await;
    // Nobody has opened the object since.
    assert_eq!(store.purge(&[purge("film-8", false)]), 0);
    assert_eq!(store.purge(&[purge("film-7", false)]), 4);
    assert!(store.cached().is_empty());
    drop(store);
    assert!(start(&options, &origin).await.cached().is_empty());
}

#[tokio::test]
async fn tags_that_the_origin_changes_under_the_same_version_count() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { freshness: Some(Duration::ZERO), ..on_disk(dir.path()) };
    let origin = Watched::new(false);
    origin.inner.put("a", bytes(LENGTH));
    let store = start(&options, &origin).await;
    assert!(all(&store).await == bytes(LENGTH));
    written(&store, 4).await;
    origin.inner.tag("a", "film-7");
    origin.reads();
    assert!(all(&store).await == bytes(LENGTH));
    assert_eq!(origin.reads(), [], "its slices stay");
    tagged_on_disk(&store, "film-7").await;
    drop(store);
    // Its tags reach the disk, where its slices have been written without them.
    let store = start(&options, &origin).await;
    assert_eq!(store.purge(&[purge("film-7", false)]), 4);
    assert!(all(&store).await == bytes(LENGTH));
    origin.inner.tag("a", "film-8");
    store.open("p", &path()).await.unwrap();
    assert!(store.purge(&[purge("film-8", false)]) > 0, "slices in memory have the tags of before");
    assert!(store.cached().is_empty());
}

#[tokio::test]
async fn a_request_from_before_a_purge_of_its_tag_serves_nobody_after_it() {
    let rig = Rig::new(LENGTH, true, options());
    rig.origin.inner.tag("a", "film-7");
    let object = rig.open().await;
    let mut early = rig.store.read(&object, 0..LENGTH);
    rig.origin.let_go(1);
    early.next().await.unwrap().unwrap();
    rig.origin.inner.replace("a", others());
    rig.store.purge(&[purge("film-7", false)]);
    rig.origin.let_go(10_000);
    while let Some(chunk) = early.next().await {
        chunk.unwrap();
    }
    settle().await;
    assert!(all(&rig.store).await == others(), "nothing of before was kept");
}

#[tokio::test]
async fn a_tag_of_one_place_leaves_the_others_and_cut_tags_are_counted() {
    let rig = Rig::new(LENGTH, false, options());
    let many = (0..70).map(|number| format!("t{number}")).collect::<Vec<_>>().join(" ");
    rig.origin.inner.tag("a", &many);
    rig.store.add_place("q", Arc::new(Handle(rig.origin.clone())));
    assert!(all(&rig.store).await == rig.content);
    let other = rig.store.open("q", &path()).await.unwrap();
    assert!(read(&rig.store, &other, 0..LENGTH).await.unwrap() == rig.content);
    assert_eq!(rig.stats().cut_tags, 6);
    let tag = PurgeTag::parse("t7").unwrap();
    let here = Purge { selection: Selection::Tagged { place: Some("p".into()), tag }, is_soft: false };
    assert_eq!(rig.store.purge(&[here, purge("t69", false)]), 4, "the last tags are cut");
    let left: Vec<_> = rig.store.cached().into_iter().map(|object| object.place).collect();
    assert_eq!(left, ["q"]);
    assert_eq!(StatedTags::of_fields(Some(&many), None).cut, 6);
}
