//! Settings of the library.

use millpond_package::{CaptionRule, KeyAddress};
use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

/// Settings of a [`Library`](crate::Library).
#[derive(Clone, Debug)]
pub struct LibraryOptions {
    /// Target duration of segments.
    pub segment_duration: Duration,
    /// Folder that keeps indexes across restarts; `None` keeps them in memory only.
    pub index_folder: Option<PathBuf>,
    /// Bytes of the disk cache; index files may take a sixteenth of it.
    pub cache_size: u64,
    /// Whether manifests list thumbnails.
    pub lists_thumbnails: bool,
    /// Settings of places by name. A place that is not named has the defaults.
    pub places: HashMap<Arc<str>, AssetOptions>,
}

/// Settings of the assets of one place.
#[derive(Clone, Debug, Default)]
pub struct AssetOptions {
    /// Address of the keys of encrypted files.
    pub key_address: Option<Arc<KeyAddress>>,
    /// Rule by which manifests announce captions within pictures.
    pub captions: Arc<CaptionRule>,
    /// Which files of a folder are one title.
    pub titles: Titles,
    /// Whether the place has live streams. The library then opens nothing of it.
    pub is_live: bool,
}

/// The rule by which media files of a folder are renditions of one title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Titles {
    /// Files with matching names and content are one title.
    #[default]
    Alike,
    /// All files of a folder are one title.
    Folder,
    /// Each file is a title.
    File,
}

impl Titles {
    /// The names of all rules, as operators write them.
    pub const NAMES: [&'static str; 3] = ["alike", "folder", "file"];

    /// Returns the rule of a name.
    pub fn named(name: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|known| *known == name)?;
        [Self::Alike, Self::Folder, Self::File].get(place).copied()
    }
}
