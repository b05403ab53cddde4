//! Making an asset: its files are opened and indexed, and one presentation is built over them.

use crate::{
    asset::{Asset, AssetKey, Beginning, Detail, JoinedSegments},
    copying::may_grow,
    error::{IndexError, LibraryError},
    folder::grouping::{Member, Recipe, RecipeItem, cure},
    index_files::{SEED, fnv},
    library::{
        Library, Purpose, folder_path,
        frames::Frames,
        index::{HEAD, MemberPart, SoFar},
        segments::{JoinedPlaylist, JoinedStretch, SegmentKind},
        stitching::missing,
    },
    names,
    options::AssetOptions,
    uri,
    version::AssetVersion,
    work::{Charge, PoolError, WorkPool},
};
use futures_util::stream::{self, StreamExt as _};
use millpond_media::{Extraction, MediaError, Movie, Work, stitch::StitchClip};
use millpond_package::{
    CaptionRule, KeyAddress, Presentation, PresentationOptions, SourceObject, building_bytes, common_clock,
    ladder::{self, Shape},
};
use millpond_store::{Entry, Object, ObjectPath};
use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU64},
};

/// Largest server manifest or subtitle file, in bytes.
pub(super) const MOST_TEXT: u64 = 8 << 20;
/// Bytes of memory for each byte of a server manifest or subtitle file: the text, and its parsed form. A cue of 27 bytes becomes
/// 136 at least.
pub(super) const MEMORY_A_BYTE: u64 = 6;
/// Files of an asset that are opened and indexed at a time: a far storage takes a round trip or more for each.
const FILES_AT_ONCE: usize = 8;
/// Steps that building a presentation may take, of some ten nanoseconds each.
const MOST_STEPS: u64 = 1 << 26;

/// A file of an asset, opened and indexed.
struct OpenedFile {
    source: SourceObject,
    /// The object of its media.
    media: Arc<Object>,
    /// The objects whose change changes it.
    depends: Vec<Arc<Object>>,
    /// The segments, if it is an HLS playlist.
    joined: Option<JoinedSegments>,
    /// Path of the playlist, and the line at which the segments begin.
    stretch: Option<(ObjectPath, u32)>,
}

impl OpenedFile {
    /// Returns the error of a stretch behind a discontinuity, in a title of several files.
    fn beside_others(&self) -> LibraryError {
        let (manifest, line) =
            self.stretch.as_ref().map_or_else(Default::default, |(path, line)| (path.to_string(), *line));
        let why = format!(
            "line {line}: found a discontinuity, expected none in a playlist of a title with others. The playlist is a title by itself"
        );
        LibraryError::Manifest { manifest, why }
    }
}

impl Library {
    /// Makes the asset at a place and path. `building` gathers its objects, and keeps its memory charged meanwhile.
    pub(crate) async fn build(&self, key: &AssetKey, building: &mut Building) -> Result<Asset, LibraryError> {
        let AssetKey { place, path, .. } = key;
        let shown = if place.is_empty() { path.to_owned() } else { format!("{place}/{path}") };
        // Read before the origin: a change of the place from here on is seen when the asset is opened again.
        let edition = self.edition(place);
        let bad = |e: &dyn std::fmt::Display| LibraryError::BadPath { path: shown.clone(), why: e.to_string() };
        let object_path = folder_path(path).map_err(|e| bad(&e))?;
        let mut recipe = self.recipe(place, &object_path, building).await?;
        if recipe.members.is_empty() {
            return Err(LibraryError::NoAsset(shown));
        }
        let is_joined = recipe.members.iter().any(|member| names::is_playlist(member.path.file_name()));
        if is_joined || !recipe.items.is_empty() {
            building.detail = Detail::Samples;
        }
        let sources = self.sources(place, &recipe, building).await;
        let (mut sources, mut left_out) = sources.map_err(|error| match recipe.keeps_clock {
            true => missing(&shown, "a playlist", error),
            false if !recipe.items.is_empty() => missing(&shown, "an item", error),
            false => error,
        })?;
        left_out.extend(recipe.left_out.iter().cloned());
        if sources.len() > recipe.members.len() {
            let item = |member| RecipeItem { member, clip: StitchClip::default(), is_stretch: true };
            recipe.items = (0..sources.len()).map(item).collect();
        }
        let mut zero = 0;
        if recipe.keeps_clock {
            (sources, zero) = self.on_one_clock(&shown, &recipe.members, sources, building).await?;
        }
        if !recipe.items.is_empty() {
            sources = vec![self.stitched(&shown, &recipe, &sources, building).await?];
        }
        if recipe.by_name {
            left_out.extend(building.one_title(&shown, &mut sources)?);
        }
        let mut sidecars = Vec::with_capacity(recipe.sidecars.len());
        for file in &recipe.sidecars {
            match self.sidecar(place, file, zero, building).await {
                Ok(sidecar) => sidecars.push(sidecar),
                // A title without some subtitles is better than no title.
                Err(error @ LibraryError::Manifest { .. }) => left_out.push(error.to_string()),
                Err(error) if error.is_not_found() => {
                    left_out.push(format!("{}: not found, expected subtitles", file.path));
                }
                Err(error) if error.is_forbidden() => {
                    left_out.push(format!("{}: the server may not read these subtitles", file.path));
                }
                Err(error) => return Err(error),
            }
        }
        let is_outlined = sources.iter().any(|source| source.movie.outline.is_some());
        let is_indivisible = is_joined || sources.iter().all(|source| source.movie.is_indivisible);
        let mut extractions = sources.iter().filter_map(|source| source.movie.extraction.as_deref());
        let begins_otherwise = extractions.any(Extraction::begins_otherwise);
        let options = PresentationOptions { target_duration: self.options().segment_duration.as_secs_f64() };
        let refused = |error| LibraryError::Refused { asset: shown.clone(), error };
        building.charge(&self.pool, building_bytes(&sources)).await.map_err(refused)?;
        let work = Work::new(MOST_STEPS);
        let job = {
            let work = work.clone();
            let is_so_far = building.so_far.is_some();
            move || {
                let built = Presentation::build(sources, sidecars, &options, &work);
                built.map(|built| if is_so_far { built.so_far() } else { Some(built) })
            }
        };
        let presentation = self.pool.run(&work, job).await.map_err(refused)?;
        let presentation =
            presentation.map_err(|error| LibraryError::Package { asset: shown.clone(), error: Arc::new(error) })?;
        let Some(presentation) = presentation else {
            let what = "its beginning is too short to be played".to_owned();
            return Err(LibraryError::NoResource { asset: shown, what });
        };
        let AssetOptions { key_address, captions, .. } = self.options().places.get(place).cloned().unwrap_or_default();
        for warning in presentation.warnings().iter().filter(|_| building.so_far.is_none()) {
            tracing::warn!(asset = %shown, %warning, "packaging");
        }
        for what in &left_out {
            tracing::warn!(asset = %shown, %what, "the title is not complete");
        }
        let joined = building.joined.iter().map(|joined| &joined.object);
        let depends = building.depends.iter().chain(joined);
        let whole = self.identity(&recipe, depends, key_address.as_deref(), &captions);
        let detail = if is_outlined { Detail::Outline } else { Detail::Samples };
        let identity = match identity_in(whole, detail) {
            // Segments of this version were listed while only the beginning of the file was known, and had other samples.
            identity if begins_otherwise => fnv(b"begins otherwise", identity),
            identity => identity,
        };
        let presentation = presentation.below(format!("{}/", AssetVersion(identity)));
        let so_far = building.so_far.take().map(|so_far| Beginning { whole: identity, read: so_far.read() });
        Ok(Asset {
            path: shown,
            left_out,
            id: so_far.map_or(identity, Beginning::id),
            origin: identity,
            edition,
            modified: building.depends.iter().filter_map(|o| o.meta().modified).max(),
            objects: std::mem::take(&mut building.objects),
            made: presentation.all_tracks().map(|_| AtomicU8::new(0)).collect(),
            presentation: Arc::new(
                presentation
                    .with_key_address(key_address)
                    .with_captions(captions)
                    .with_thumbnails(self.options().lists_thumbnails),
            ),
            depends: std::mem::take(&mut building.depends),
            joined: std::mem::take(&mut building.joined),
            listed: building.listed.take(),
            checked_ms: AtomicU64::new(self.now_ms()),
            doubted_ms: AtomicU64::new(0),
            key: AssetKey { detail, ..key.clone() },
            is_indivisible,
            weight: AtomicU64::new(0),
            so_far,
        })
    }

    /// Opens and indexes the files of an asset, some at a time, and notes their objects in the order of the files. A playlist with
    /// discontinuities is several sources, if it is the only file. Also returns warnings of files that can't be read or are cut short.
    async fn sources(
        &self,
        place: &str,
        recipe: &Recipe,
        building: &mut Building,
    ) -> Result<(Vec<SourceObject>, Vec<String>), LibraryError> {
        let members = &recipe.members;
        if let Some(so_far) = building.so_far.clone() {
            let OpenedFile { source, media, depends, .. } = self.beginning_of(members, &so_far)?;
            building.depends.extend(depends);
            building.objects.push(media);
            return Ok((vec![source], Vec::new()));
        }
        let (purpose, detail) = (building.purpose, building.detail);
        let opening: Vec<_> = members.iter().map(|member| self.source(place, member, (purpose, detail))).collect();
        let mut opened = stream::iter(opening).buffered(FILES_AT_ONCE);
        let mut sources = Vec::with_capacity(members.len());
        let (mut left_out, mut first_error) = (Vec::new(), None);
        let is_alone = members.len() == 1 && recipe.items.is_empty() && !recipe.keeps_clock;
        let mut all = members.iter();
        while let Some((files, member)) = opened.next().await.zip(all.next()) {
            let files = match files {
                Ok(files) => files,
                // A title without a rendition is better than no title.
                Err(error) if recipe.by_name && error.is_of_media() => {
                    building.depends.push(self.store.open(place, &member.path).await?);
                    left_out.push(error.to_string());
                    first_error.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let (false, [_, second, ..]) = (is_alone, &files[..]) {
                return Err(second.beside_others());
            }
            for OpenedFile { source, media, depends, joined, .. } in files {
                // Tracks that are cut short say so themselves.
                if source.movie.cut_short && source.movie.skipped.is_empty() {
                    left_out.push(format!(
                        "{}: its end is missing, expected more media: the file is cut short",
                        source.label
                    ));
                }
                building.depends.extend(depends);
                building.joined.extend(joined);
                building.objects.push(media);
                sources.push(source);
            }
        }
        match first_error {
            Some(error) if sources.is_empty() => Err(error),
            _ => Ok((sources, left_out)),
        }
    }

    /// Returns the beginning of the only file of an asset.
    fn beginning_of(&self, members: &[Member], so_far: &SoFar) -> Result<OpenedFile, LibraryError> {
        let object = so_far.object.clone();
        let [member] = members else { return Err(LibraryError::NoAsset(object.path().to_string())) };
        if member.path != *object.path() || member.programme != so_far.programme {
            return Err(LibraryError::NoAsset(object.path().to_string()));
        }
        let media = match Frames::of(&so_far.movie, member.programme) {
            Some(frames) => self.store.derived(&object, Arc::new(frames)),
            None => object.clone(),
        };
        let source = member.source(so_far.movie.clone());
        Ok(OpenedFile { source, media, depends: vec![object], joined: None, stretch: None })
    }

    /// Presents the renditions of a multivariant playlist at their times on one clock. Also returns the timestamp of time 0.
    async fn on_one_clock(
        &self,
        shown: &str,
        members: &[Member],
        mut sources: Vec<SourceObject>,
        building: &mut Building,
    ) -> Result<(Vec<SourceObject>, u64), LibraryError> {
        let refused = |error| LibraryError::Refused { asset: shown.to_owned(), error };
        let names: Vec<Option<String>> = members.iter().map(|member| member.name.clone()).collect();
        // Indexes that change are copied.
        let bytes = sources.iter().map(|source| source.movie.heap_bytes() as u64).fold(0, u64::saturating_add);
        building.charge(&self.pool, bytes).await.map_err(refused)?;
        let job = move || {
            let zero = common_clock::align(&mut sources, &names);
            (sources, zero)
        };
        self.pool.run(&Work::unlimited(), job).await.map_err(refused)
    }

    /// Opens and indexes one file. A playlist is a file for each of its stretches.
    async fn source(
        &self,
        place: &str,
        member: &Member,
        need: (Purpose, Detail),
    ) -> Result<Vec<OpenedFile>, LibraryError> {
        if names::is_playlist(member.path.file_name()) {
            return self.segments(place, member, need.0).await;
        }
        let object = self.store.open_head(place, &member.path, HEAD).await?;
        let movie = self.movie(&object, need, MemberPart::of(member)).await?;
        has_programme(member, &movie)?;
        let mut depends = vec![object.clone()];
        let media = match (&movie.external_media, Frames::of(&movie, member.programme)) {
            (Some(location), _) => {
                let media = self.store.open(place, &external(&member.path, location)?).await?;
                depends.push(media.clone());
                media
            }
            (None, Some(frames)) => self.store.derived(&object, Arc::new(frames)),
            (None, None) => object,
        };
        Ok(vec![OpenedFile { source: member.source(movie), media, depends, joined: None, stretch: None }])
    }

    /// Opens the segments of an HLS playlist, and indexes each stretch as one object.
    async fn segments(&self, place: &str, member: &Member, purpose: Purpose) -> Result<Vec<OpenedFile>, LibraryError> {
        let wrong = |why: String| LibraryError::Manifest { manifest: member.path.to_string(), why };
        let JoinedPlaylist { playlist, stretches } = self.joined(place, &member.path, SegmentKind::Tracks).await?;
        let are_several = stretches.len() > 1;
        let mut files = Vec::with_capacity(stretches.len());
        for JoinedStretch { line, object, starts, heap_bytes } in stretches {
            let part = MemberPart { joints: starts, ..MemberPart::of(member) };
            let movie = self.movie(&object, (purpose, Detail::Samples), part).await?;
            has_programme(member, &movie)?;
            if movie.external_media.is_some() {
                let why = "found segments that refer to another file for their media, expected the media in them";
                return Err(wrong(format!("line {line}: {why}")));
            }
            let media = match Frames::of(&movie, member.programme) {
                Some(frames) => self.store.derived(&object, Arc::new(frames)),
                None => object.clone(),
            };
            let mut source = member.source(movie);
            if are_several {
                source.label = format!("{}, line {line}", source.label);
            }
            let depends = if files.is_empty() { vec![playlist.clone()] } else { Vec::new() };
            let joined = Some(JoinedSegments { object, heap_bytes });
            files.push(OpenedFile { source, media, depends, joined, stretch: Some((member.path.clone(), line)) });
        }
        Ok(files)
    }

    /// Returns the index of a part of an object. An object that ends too early and may still grow is an error.
    async fn movie(
        &self,
        object: &Arc<Object>,
        (purpose, detail): (Purpose, Detail),
        part: MemberPart,
    ) -> Result<Arc<Movie>, LibraryError> {
        let meta = object.meta();
        let movie = self.indexes.get_part(object, (purpose, detail), part).await;
        let cut_short = match &movie {
            Ok(movie) => movie.cut_short,
            Err(error) => error.is_cut_short(meta.len),
        };
        if cut_short && may_grow(object) {
            return Err(LibraryError::BeingCopied { path: object.path().to_string(), len: meta.len });
        }
        movie.map_err(|error| match error {
            IndexError::Media { object, error: error @ MediaError::NoProgramme { .. } } => {
                LibraryError::NoResource { asset: object, what: error.to_string() }
            }
            other => other.into(),
        })
    }

    /// Whether the file at `path` is still being copied into its place.
    pub(crate) async fn is_being_copied(&self, place: &str, path: &ObjectPath) -> bool {
        let Ok(object) = self.store.open(place, path).await else { return false };
        matches!(
            self.movie(&object, (Purpose::Listing, Detail::Outline), MemberPart::default()).await,
            Err(LibraryError::BeingCopied { .. })
        )
    }

    /// Returns a hash of everything that bytes made of an asset depend on.
    fn identity<'a>(
        &self,
        recipe: &Recipe,
        depends: impl Iterator<Item = &'a Arc<Object>>,
        keys: Option<&KeyAddress>,
        captions: &CaptionRule,
    ) -> u64 {
        let mut hash = fnv(env!("CARGO_PKG_VERSION").as_bytes(), SEED);
        hash = fnv(format!("{recipe:?}").as_bytes(), hash);
        hash = fnv(&self.options().segment_duration.as_secs_f64().to_le_bytes(), hash);
        if self.options().lists_thumbnails {
            hash = fnv(b"thumbnails", hash);
        }
        if let Some(address) = keys {
            hash = fnv(format!("{address:?}").as_bytes(), hash);
        }
        if *captions != CaptionRule::Auto {
            hash = fnv(format!("captions {captions}").as_bytes(), hash);
        }
        for object in depends {
            hash = fnv(object.path().as_str().as_bytes(), hash);
            hash = fnv(object.meta().version.as_str().as_bytes(), hash);
            hash = fnv(&object.meta().len.to_le_bytes(), hash);
        }
        hash
    }

    /// Reads a server manifest or subtitle file.
    pub(crate) async fn read_text(
        &self,
        place: &str,
        path: &ObjectPath,
        building: &mut Building,
    ) -> Result<bytes::Bytes, LibraryError> {
        let object = self.store.open(place, path).await?;
        let len = object.meta().len;
        if len > MOST_TEXT {
            let why = format!("it has {len} bytes, expected at most {MOST_TEXT}");
            return Err(LibraryError::Manifest { manifest: path.to_string(), why });
        }
        let refused = |error| LibraryError::Refused { asset: path.to_string(), error };
        building.charge(&self.pool, len * MEMORY_A_BYTE).await.map_err(refused)?;
        let bytes = self.store.read_all(&object, 0..len).await?;
        building.depends.push(object);
        Ok(bytes)
    }
}

impl MemberPart {
    /// Returns the part of an object that a member uses.
    fn of(member: &Member) -> Self {
        Self { programme: member.programme, ..Self::default() }
    }
}

/// Refuses the programme that was chosen for a member, if its media has none.
fn has_programme(member: &Member, movie: &Movie) -> Result<(), LibraryError> {
    match member.programme {
        Some(number) if movie.programmes.is_empty() => {
            let what = format!("no programme {number}: the media is no transport stream");
            Err(LibraryError::NoResource { asset: member.path.to_string(), what })
        }
        _ => Ok(()),
    }
}

/// Objects and warnings of an asset that is being made.
#[derive(Default)]
pub(crate) struct Building {
    purpose: Purpose,
    detail: Detail,
    objects: Vec<Arc<Object>>,
    depends: Vec<Arc<Object>>,
    joined: Vec<JoinedSegments>,
    pub(crate) listed: Option<(ObjectPath, Vec<Entry>)>,
    /// The index of the beginning of its only file, if the asset is made of the beginning.
    so_far: Option<Arc<SoFar>>,
    /// Memory of the work, until the asset itself is counted.
    charges: Vec<Charge>,
}

impl Building {
    /// Begins an asset that is made for a purpose, in a detail.
    pub(crate) fn new(purpose: Purpose, detail: Detail) -> Self {
        Self { purpose, detail, ..Self::default() }
    }

    /// Notes an object whose change changes the asset.
    pub(super) fn depend(&mut self, object: Arc<Object>) {
        self.depends.push(object);
    }

    /// Notes the segments of a playlist.
    pub(super) fn join(&mut self, segments: JoinedSegments) {
        self.joined.push(segments);
    }

    /// Begins an asset that is made of the beginning of its only file.
    pub(super) fn of_beginning(so_far: Arc<SoFar>, detail: Detail) -> Self {
        Self { so_far: Some(so_far), ..Self::new(Purpose::Playback, detail) }
    }

    pub(super) async fn charge(&mut self, pool: &WorkPool, bytes: u64) -> Result<(), PoolError> {
        self.charges.push(pool.charge(bytes).await?);
        Ok(())
    }

    /// Removes files that belong to another title than most of their folder. Returns each with the reason.
    fn one_title(&mut self, folder: &str, sources: &mut Vec<SourceObject>) -> Result<Vec<String>, LibraryError> {
        let shapes: Vec<(&str, Shape)> = sources.iter().map(|s| (s.label.as_str(), Shape::of(&s.movie))).collect();
        let verdicts = ladder::title(&shapes).map_err(|other| LibraryError::NotOneTitle {
            folder: folder.to_owned(),
            found: format!("files of different titles ({other})"),
            cure: sources.first().map_or_else(String::new, |source| cure(&source.label)),
        })?;
        let told = sources.iter().zip(&verdicts);
        let left_out = told.filter_map(|(source, why)| Some(format!("{}: {}", source.label, why.as_ref()?))).collect();
        let mut keep = verdicts.iter().map(Option::is_none);
        sources.retain(|_| keep.next().unwrap_or(true));
        let mut keep = verdicts.iter().map(Option::is_none);
        self.objects.retain(|_| keep.next().unwrap_or(true));
        Ok(left_out)
    }
}

/// Returns the identity of an asset in a detail. `whole` is that in all detail. Segments of the two have other boundaries.
pub(crate) fn identity_in(whole: u64, detail: Detail) -> u64 {
    match detail {
        Detail::Samples => whole,
        Detail::Outline => fnv(b"outline", whole),
    }
}

/// Returns the object that a data reference names: relative to the index file's folder, never outside the place.
fn external(index: &ObjectPath, location: &str) -> Result<ObjectPath, LibraryError> {
    let found = uri::beside(index, location, "the index file");
    found.map_err(|why| LibraryError::Manifest { manifest: index.to_string(), why: format!("data reference {why}") })
}
