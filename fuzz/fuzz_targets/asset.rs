//! Server manifests to the asset they describe, and to its manifests. The bundled sample stands for each named file.
#![cfg_attr(feature = "libfuzzer", no_main)]

use millpond_fuzz::fuzz_target;
use millpond_media::Movie;
use std::sync::{Arc, LazyLock};

static MOVIE: LazyLock<Arc<Movie>> = LazyLock::new(|| {
    let sample = include_bytes!("../../assets/sample/180p.mp4");
    Arc::new(millpond_media::index_bytes(sample).expect("the bundled sample is an MP4 file"))
});

fuzz_target!(|text: &str| {
    let _ = millpond_library::fuzzing::manifest_asset(text, &MOVIE);
});
