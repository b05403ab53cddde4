//! The choice of renditions of a source.

use super::rendition::{HlsRendition, Reading, read};
use crate::{
    reception::{
        fetching::{Fetcher, error},
        pulled::PulledSource,
    },
    source_health::{SourceError, SourceErrorKind},
};
use millpond_package::hls_playlist::{self, RenditionKind, StoredMultivariant, StoredPlaylist, StoredVariant};
use std::time::Duration;

/// Most renditions of sound beside the variant.
const MOST_SOUNDS: usize = 4;

/// Reads the playlist of a source, and chooses its renditions: a variant, and the sound beside it.
///
/// # Errors
/// It can't be read.
pub(super) async fn open(source: &PulledSource, fetcher: &Fetcher) -> Result<Vec<HlsRendition>, SourceError> {
    let reading = read(fetcher, source.url().clone(), Duration::ZERO).await?;
    if !hls_playlist::is_multivariant(&reading.text) {
        let url = source.url().clone();
        return Ok(vec![HlsRendition::new((url, None), Some(reading))]);
    }
    let invalid =
        |why: String| error(SourceErrorKind::Protocol, &reading.url, format!("the playlist can't be read: {why}"));
    let found = match hls_playlist::parse(&reading.text).map_err(|why| invalid(why.to_string()))? {
        StoredPlaylist::Multivariant(found) => found,
        StoredPlaylist::Media(_) => return Err(invalid("it has segments and variants".to_owned())),
    };
    let variant = choose(&found, source.most_bandwidth).ok_or_else(|| invalid("it has no variant".to_owned()))?;
    tracing::debug!(%source, bandwidth = variant.bandwidth, uri = variant.uri, "variant of a source");
    let mut chosen = vec![(variant.uri.as_str(), None)];
    for (uri, language) in sounds(&found, variant) {
        if chosen.iter().all(|(known, _)| *known != uri) {
            chosen.push((uri, language));
        }
    }
    renditions(&chosen, &reading, fetcher)
}

fn renditions(
    chosen: &[(&str, Option<String>)],
    reading: &Reading,
    fetcher: &Fetcher,
) -> Result<Vec<HlsRendition>, SourceError> {
    let rendition = |(uri, language): &(&str, Option<String>)| {
        Ok(HlsRendition::new((fetcher.resolve(&reading.url, uri)?, language.clone()), None))
    };
    chosen.iter().map(rendition).collect()
}

/// Chooses the variant with the greatest bandwidth of at most `most`, else the smallest one. Variants with pictures come first.
fn choose(found: &StoredMultivariant, most: Option<u64>) -> Option<&StoredVariant> {
    let has_pictures = found.variants.iter().any(|variant| variant.has_pictures);
    let fitting = || found.variants.iter().filter(|variant| variant.has_pictures || !has_pictures);
    let within = fitting().filter(|variant| most.is_none_or(|most| variant.bandwidth <= most));
    // Of equal ones the first: others are other servers.
    let greatest = within.rev().max_by_key(|variant| variant.bandwidth);
    greatest.or_else(|| fitting().min_by_key(|variant| variant.bandwidth))
}

/// The playlists of sound beside a variant, the default one first, with their languages.
fn sounds<'a>(
    found: &'a StoredMultivariant,
    variant: &'a StoredVariant,
) -> impl Iterator<Item = (&'a str, Option<String>)> {
    let of_group = |rendition: &&hls_playlist::Rendition| {
        rendition.kind == RenditionKind::Audio && Some(&rendition.group) == variant.audio.as_ref()
    };
    let mut all: Vec<_> = found.renditions.iter().filter(of_group).collect();
    all.sort_by_key(|rendition| !rendition.is_default);
    all.into_iter()
        .filter_map(|rendition| Some((rendition.uri.as_deref()?, rendition.language.clone())))
        .take(MOST_SOUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#EXTM3U\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"hi\",NAME=\"fr\",LANGUAGE=\"fr\",URI=\"fr.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"hi\",NAME=\"en\",LANGUAGE=\"en\",DEFAULT=YES,URI=\"en.m3u8\"\n\
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"lo\",NAME=\"in\"\n\
        #EXT-X-STREAM-INF:BANDWIDTH=9000000,CODECS=\"mp4a.40.2\"\nsound.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=1000000,RESOLUTION=640x360,AUDIO=\"lo\"\nlo.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1280x720,AUDIO=\"hi\"\nhi.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1280x720,AUDIO=\"hi\"\nbackup.m3u8\n";

    fn chosen(most: Option<u64>) -> (String, Vec<String>) {
        let StoredPlaylist::Multivariant(found) = hls_playlist::parse(TEXT).unwrap() else { panic!() };
        let variant = choose(&found, most).unwrap();
        let sounds = sounds(&found, variant).map(|(uri, language)| format!("{uri} {}", language.unwrap())).collect();
        (variant.uri.clone(), sounds)
    }

    #[test]
    fn the_greatest_variant_within_the_bandwidth() {
        let sounds = vec!["en.m3u8 en".to_owned(), "fr.m3u8 fr".to_owned()];
        assert_eq!(chosen(None), ("hi.m3u8".to_owned(), sounds.clone()));
        assert_eq!(chosen(Some(5_000_000)), ("hi.m3u8".to_owned(), sounds));
        assert_eq!(chosen(Some(4_999_999)), ("lo.m3u8".to_owned(), Vec::new()));
        assert_eq!(chosen(Some(1)).0, "lo.m3u8", "the smallest one");
    }
}
