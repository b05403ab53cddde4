//! Objects that are striped over folders, read back, scrubbed and repaired.

use super::*;

/// Folders for three stores, and one for the source and the map.
struct Folders(tempfile::TempDir);

impl Folders {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", "media"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("media/film.mp4"), film()).unwrap();
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn plan(&self, copies: usize) -> StripePlan {
        let store = |name| StripeStore::new(name, OriginLocation::Folder(self.path().join(name)));
        StripePlan { stores: ["a", "b", "c"].map(store).into(), factor: None, unit: UNIT, copies }
    }

    fn target(&self) -> MapTarget {
        MapTarget::new(OriginLocation::Folder(self.path().join("media")), path("film.mp4"))
    }

    fn source(&self) -> Arc<dyn Origin> {
        Arc::new(crate::DiskOrigin::new(&self.path().join("media")).unwrap())
    }

    async fn stripe(&self, copies: usize) -> Result<super::super::Striped, StripeError> {
        let options = RemoteOptions::default();
        stripe(&self.source(), &path("film.mp4"), &self.target(), &self.plan(copies), &options, |_| {}).await
    }

    async fn unstripe(&self) -> Result<Vec<u8>, StripeError> {
        let (mut read, stores) = (Vec::new(), self.plan(1).stores);
        let out = |bytes: &[u8]| {
            read.extend_from_slice(bytes);
            Ok(())
        };
        unstripe(&self.target(), &stores, &RemoteOptions::default(), out).await?;
        Ok(read)
    }

    /// Returns the file of a copy of a unit.
    fn copy(&self, map: &StripeMap, unit: u64, copy: usize) -> PathBuf {
        let store = map.layout().stores_of(unit).nth(copy).unwrap();
        self.path().join(&map.stores()[store]).join(map.unit_path(unit).unwrap().as_str())
    }

    /// Scrubs the film. Returns the outcome, and a line for each fault.
    async fn scrub(&self, repairs: bool) -> Result<(Scrubbed, Vec<String>), StripeError> {
        let (mut lines, mut last, stores) = (Vec::new(), 0, self.plan(1).stores);
        let report = |fault: &super::super::ScrubFault| {
            let outcome = match &fault.outcome {
                ScrubOutcome::Repaired => "repaired",
                ScrubOutcome::Left => "left",
                ScrubOutcome::Lost => "lost",
                ScrubOutcome::Failed(_) => "failed",
            };
            lines.push(format!("{:?} {outcome}: {}", fault.unit, fault.error));
        };
        let options = RemoteOptions::default();
        let scrubbed = scrub(&self.target(), &stores, &options, repairs, |bytes| last = bytes, report).await?;
        assert_eq!(last, 1_000_000, "all bytes are compared");
        Ok((scrubbed, lines))
    }

    /// Returns the number of files below a folder.
    fn files(&self, folder: &str) -> usize {
        let entries = std::fs::read_dir(self.path().join(folder)).unwrap().map(Result::unwrap);
        let files = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
            true => std::fs::read_dir(entry.path()).unwrap().count(),
            false => 1,
        };
        entries.map(files).sum()
    }
}

#[tokio::test]
async fn an_object_is_striped_and_read_back() {
    for copies in [1, 2, 3] {
        let folders = Folders::new();
        let striped = folders.stripe(copies).await.unwrap();
        assert!(striped.former.is_none());
        assert_eq!(striped.map.layout().units(), 16);
        let files = ["a", "b", "c"].map(|name| folders.files(name)).iter().sum::<usize>();
        assert_eq!(files, 16 * copies + 3, "the units, and the checksums on each store");
        assert_eq!(folders.files("media"), 2, "no note is left");
        std::fs::remove_file(folders.path().join("media/film.mp4")).unwrap();
        assert_eq!(folders.unstripe().await.unwrap(), film());
        let (target, stores) = (folders.target(), folders.plan(1).stores);
        remove_striped(&target, &striped.map, &stores, &RemoteOptions::default()).await.unwrap();
        assert_eq!(folders.files("media"), 0);
        assert_eq!(["a", "b", "c"].map(|name| std::fs::read_dir(folders.path().join(name)).unwrap().count()), [0; 3]);
    }
}

/// Writes the map again as one of the first format.
fn without_sums(folders: &Folders) {
    let file = folders.path().join("media/film.mp4.stripe");
    let text = std::fs::read_to_string(&file).unwrap().replace("\"millpond-stripe\": 2", "\"millpond-stripe\": 1");
    let text: String = text.lines().filter(|line| !line.contains("\"sums\"")).collect();
    std::fs::write(file, text).unwrap();
}

#[tokio::test]
async fn damaged_units_do_not_pass_the_checksum() {
    let folders = Folders::new();
    let striped = folders.stripe(1).await.unwrap();
    std::fs::write(folders.copy(&striped.map, 4, 0), vec![0; UNIT as usize]).unwrap();
    let error = folders.unstripe().await.unwrap_err();
    assert!(matches!(error, StripeError::Origin(OriginError::Unit { unit: 4, .. })), "{error}");
    without_sums(&folders);
    assert!(matches!(folders.unstripe().await, Err(StripeError::Checksum { .. })));
    let error = folders.scrub(false).await.unwrap_err();
    assert!(matches!(error, StripeError::Unsummed { .. }), "{error}");
}

#[tokio::test]
async fn a_scrub_finds_and_repairs_what_has_a_good_copy() {
    let folders = Folders::new();
    let map = folders.stripe(2).await.unwrap().map;
    let (clean, lines) = folders.scrub(false).await.unwrap();
    assert_eq!((clean.copies, clean.faults, lines.len()), (16 * 2 + 3, 0, 0));
    let hurt = |file: &Path| {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[7] ^= 0x80;
        std::fs::write(file, bytes).unwrap();
    };
    hurt(&folders.copy(&map, 4, 0));
    std::fs::remove_file(folders.copy(&map, 5, 1)).unwrap();
    std::fs::write(folders.copy(&map, 6, 0), "short").unwrap();
    (0..2).for_each(|copy| hurt(&folders.copy(&map, 9, copy)));
    let sums = folders.path().join("a").join(super::super::map::sums_path(map.id()).unwrap().as_str());
    std::fs::write(&sums, &std::fs::read(&sums).unwrap()[1..]).unwrap();

    let (found, lines) = folders.scrub(false).await.unwrap();
    assert_eq!((found.faults, found.repaired), (6, 0), "{lines:?}");
    assert!(lines[0].starts_with("None left: ") && lines[1].starts_with("Some(4) left: "), "{lines:?}");
    assert!(lines[1].contains("block 0 with the CRC32C") && lines[2].contains("not found"), "{lines:?}");
    assert!(lines[4].starts_with("Some(9) lost: ") && lines[5].starts_with("Some(9) lost: "), "{lines:?}");
    let (repaired, lines) = folders.scrub(true).await.unwrap();
    assert_eq!((repaired.faults, repaired.repaired), (6, 4), "{lines:?}");
    let (left, lines) = folders.scrub(true).await.unwrap();
    assert_eq!((left.faults, left.repaired), (2, 0), "{lines:?}");
    assert!(matches!(folders.unstripe().await, Err(StripeError::Origin(OriginError::Unit { unit: 9, .. }))));
    hurt(&folders.copy(&map, 9, 1));
    assert_eq!(folders.unstripe().await.unwrap(), film());
}

#[tokio::test]
async fn a_scrub_fills_a_store_that_was_replaced() {
    let folders = Folders::new();
    let map = folders.stripe(2).await.unwrap().map;
    let before = folders.files("b");
    std::fs::remove_dir_all(folders.path().join("b").join(format!("stripe-{}", map.id()))).unwrap();
    let (repaired, lines) = folders.scrub(true).await.unwrap();
    assert_eq!((repaired.repaired, folders.files("b")), (before as u64, before), "{lines:?}");
    assert_eq!(folders.scrub(false).await.unwrap().0.faults, 0);
}

#[tokio::test]
async fn a_read_repairs_a_damaged_unit_only_where_that_is_allowed() {
    for repair in [false, true] {
        let folders = Folders::new();
        let map = folders.stripe(2).await.unwrap().map;
        let striping = StripingOptions { stores: folders.plan(2).stores, repair, ..StripingOptions::default() };
        let origin = StripedOrigin::new(folders.source(), &striping, &RemoteOptions::default()).unwrap();
        let (file, other) = (folders.copy(&map, 3, 0), folders.copy(&map, 3, 1));
        let good = std::fs::read(&file).unwrap();
        std::fs::write(&file, vec![9; UNIT as usize]).unwrap();
        // One unit alone is read from its first copy.
        assert_eq!(read(&origin, "film.mp4", 3 * UNIT..4 * UNIT).await.unwrap(), good);
        let repaired = || origin.counts().stripes.iter().map(|store| store.repaired_units).sum::<u64>();
        for _ in 0..500 {
            if repaired() > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(if repair { 20 } else { 1 })).await;
        }
        assert_eq!(repaired(), u64::from(repair));
        assert_eq!(std::fs::read(&file).unwrap() == good, repair);
        assert!(std::fs::read(&other).unwrap() == good);
    }
}

/// Drops a run where it has read half of the object, as if its process had ended.
fn interrupt(folders: &Folders) {
    // The end of this runtime waits for the writes that have begun.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = RemoteOptions::default();
    let (plan, target, source) = (folders.plan(1), folders.target(), folders.source());
    let film_path = path("film.mp4");
    let (tell, told) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    let progress = |bytes| {
        if bytes > 500_000 {
            tell.take().map(|tell| tell.send(()));
        }
    };
    let run = stripe(&source, &film_path, &target, &plan, &options, progress);
    runtime.block_on(async {
        tokio::select! {
            biased;
            _ = told => {}
            _ = run => panic!("it ended first"),
        }
    });
}

#[tokio::test]
async fn an_interrupted_run_leaves_no_map_and_is_cleaned_up_by_the_next() {
    let folders = Arc::new(Folders::new());
    let interrupted = folders.clone();
    tokio::task::spawn_blocking(move || interrupt(&interrupted)).await.unwrap();
    let left = ["a", "b", "c"].map(|name| folders.files(name)).iter().sum::<usize>();
    assert!(left > 0, "units of the interrupted run");
    assert!(!folders.path().join("media/film.mp4.stripe").exists());
    assert!(folders.unstripe().await.is_err());
    let first = folders.stripe(1).await.unwrap();
    assert_eq!(["a", "b", "c"].map(|name| folders.files(name)).iter().sum::<usize>(), 16 + 3, "only those of this run");
    // Another run leaves the units of the first map alone.
    let second = folders.stripe(1).await.unwrap();
    assert_eq!(second.former.unwrap().id(), first.map.id());
    assert_eq!(["a", "b", "c"].map(|name| folders.files(name)).iter().sum::<usize>(), 32 + 6);
    assert_eq!(folders.unstripe().await.unwrap(), film());
}

#[tokio::test]
async fn a_source_that_changes_is_not_striped() {
    let folders = Folders::new();
    let options = RemoteOptions::default();
    let file = folders.path().join("media/film.mp4");
    let (plan, target, source) = (folders.plan(1), folders.target(), folders.source());
    let mut changed = false;
    let progress = |bytes| {
        if bytes > 300_000 && !std::mem::replace(&mut changed, true) {
            let mut other = film();
            other[999_999] ^= 1;
            std::fs::write(&file, other).unwrap();
        }
    };
    let error = stripe(&source, &path("film.mp4"), &target, &plan, &options, progress).await.unwrap_err();
    assert!(error.to_string().contains("changed"), "{error}");
    assert!(!folders.path().join("media/film.mp4.stripe").exists());
    assert_eq!(["a", "b", "c"].map(|name| folders.files(name)), [0; 3], "its units are removed");
    assert_eq!(folders.files("media"), 1);
}

#[tokio::test]
async fn two_runs_at_the_same_time_make_one_map() {
    let folders = Folders::new();
    let (first, second) = tokio::join!(folders.stripe(1), folders.stripe(1));
    assert!(first.is_ok() || second.is_ok());
    assert_eq!(folders.unstripe().await.unwrap(), film());
}

#[tokio::test]
async fn plans_and_targets_are_checked() {
    let folders = Folders::new();
    let mut plan = folders.plan(1);
    plan.stores.push(plan.stores[0].clone());
    let options = RemoteOptions::default();
    let run = |plan: StripePlan| {
        let (folders, options) = (&folders, &options);
        async move {
            let (source, target, film) = (folders.source(), folders.target(), path("film.mp4"));
            stripe(&source, &film, &target, &plan, options, |_| {}).await.unwrap_err().to_string()
        }
    };
    assert!(run(plan).await.contains("named twice"));
    let mut plan = folders.plan(4);
    assert!(run(plan.clone()).await.contains("copies is 4, expected 1 to 3"));
    plan.factor = Some(4);
    assert!(run(plan.clone()).await.contains("factor is 4, expected 1 to 3"));
    plan = folders.plan(1);
    plan.stores[1] = StripeStore::new("b", OriginLocation::Folder("/no/such/folder".into()));
    assert!(run(plan.clone()).await.contains("does not exist"));
    plan.stores[1] = StripeStore::new("b", OriginLocation::Http("http://127.0.0.1:1/".parse().unwrap()));
    assert!(run(plan).await.contains("folders and buckets only"));
}

#[test]
fn stores_have_their_own_endpoint_and_region() {
    let location = OriginLocation::Folder("/data".into());
    let store = StripeStore::new("a", location.clone()).with_endpoint("http://10.0.0.7:9000".to_owned());
    let mut options = RemoteOptions::default();
    options.bucket.endpoint = Some("http://minio:9000".to_owned());
    options.bucket.region = Some("eu".to_owned());
    let own = store.with_region("us".to_owned()).remote(&options).bucket;
    assert_eq!((own.endpoint.as_deref(), own.region.as_deref()), (Some("http://10.0.0.7:9000"), Some("us")));
    assert_eq!(StripeStore::new("b", location).remote(&options), options);
}
