//! Builds a presentation from the objects of an asset.

mod periods;

use crate::{
    PackageError, flac, language,
    presentation::{
        Presentation, PresentationOptions, Sidecar, SourceObject,
        budget::Budget,
        flac_track::{FlacCut, FlacForm, FlacSegments, FlacTrack},
        selection::{Picked, Selection, family},
        track::{Content, MediaKind, MediaTrack, PresentedTrack, StreamAccess},
        unlisted::Unlisted,
    },
    timeline::{
        bandwidth::Bandwidth,
        grid::Grid,
        loads::{self, Added, added_by_encryption},
        scan::{Facts, sync_points},
        segmentation::{Candidates, Points, Segments, SyncPoint, TimeCut, choose},
    },
};
use millpond_media::{Purpose, Work};
use std::{
    collections::{HashMap, HashSet, hash_map},
    ops::Range,
    sync::{Arc, OnceLock},
};

pub(crate) fn presentation(
    sources: Vec<SourceObject>,
    sidecars: Vec<Sidecar>,
    options: &PresentationOptions,
    work: &Work,
) -> Result<Presentation, PackageError> {
    let target = target(options)?;
    let mut budget = Budget::new(&sources, work);
    let selection = Selection::of(&sources, &budget)?;
    let strands = periods::strands(&selection);
    let Selection { video, audio, text, skipped } = selection;
    if video.is_empty() && audio.is_empty() && text.is_empty() {
        let labels: Vec<&str> = sources.iter().map(|s| s.label.as_str()).collect();
        return Err(PackageError::NoTracks { sources: labels.join(", "), skipped });
    }
    let mut warnings = skipped;
    let as_stored = audio.iter().filter(|picked| !picked.becomes_flac);
    let has_other_sound = !audio.iter().all(Picked::is_pcm);
    warnings.extend(as_stored.filter_map(|picked| unlisted(picked, !video.is_empty(), has_other_sound)));
    warnings.extend(audio.iter().filter_map(rounded));
    let mut scanned = scan(video, &mut budget)?;
    scanned.sort_by_key(|(p, facts)| (p.ladder, p.bandwidth.unwrap_or_else(|| average(p, facts))));
    let (mut tracks, aligned) = videos(scanned, target, &mut warnings, &mut budget)?;
    let grid = Grid::new(tracks.first().map(|t| &t.segments), target);
    for picked in audio {
        tracks.extend(timed(picked, MediaKind::Audio, &grid, &mut budget)?);
    }
    let duration = |t: &PresentedTrack| t.segments.timescale().seconds(t.segments.end());
    let mut duration = tracks.iter().map(duration).fold(0.0, f64::max);
    if tracks.is_empty() {
        duration = text.iter().map(end_of).fold(0.0, f64::max);
    }
    for picked in text {
        if let Err(error) = Budget::text(&picked.timeline) {
            warnings.push(format!("{}: track {}: {error}", picked.label, picked.track().id));
            continue;
        }
        tracks.extend(texts(picked, &grid, 0.0..duration, &mut budget)?);
    }
    for picked in unrepeated(sidecars, &tracks) {
        tracks.push(sidecar(picked, &grid, 0.0..duration, &mut budget)?);
    }
    budget.tracks(tracks.len())?;
    name(&mut tracks);
    let whole = Presentation {
        tracks,
        warnings,
        duration,
        aligned,
        target,
        muxed: OnceLock::new(),
        key_address: None,
        base: String::new(),
        lists_thumbnails: false,
        captions: Arc::default(),
        shown: None,
        table_version: 0,
        periods: Vec::new(),
        so_far: None,
    };
    periods::divided(whole, strands, &mut budget)
}

/// Returns the end of a track's last sample, or of its last edit if that is earlier, in seconds.
fn end_of(picked: &Picked) -> f64 {
    let (track, timeline) = (picked.track(), &picked.timeline);
    let end = timeline.dts_at(&track.samples, timeline.len()).min(timeline.edit_end());
    track.timescale.seconds(end)
}

/// Warns about audio that HLS with fMP4 and DASH don't list.
fn unlisted(picked: &Picked, beside_video: bool, has_other_sound: bool) -> Option<String> {
    let (track, codec) = (picked.track(), &picked.track().codec);
    let (parameter, name) = (codec.parameter(), codec.name());
    let why = Unlisted::of(codec, beside_video)?.words(codec, has_other_sound);
    Some(format!("{}: track {}: '{parameter}' ({name}) {why}", picked.label, track.id))
}

/// Warns about PCM that has fewer bits as FLAC.
fn rounded(picked: &Picked) -> Option<String> {
    picked.flac().filter(|form| flac::is_rounded(form.coding))?;
    let (track, codec) = (picked.track(), &picked.track().codec);
    let (parameter, name) = (codec.parameter(), codec.name());
    let why = "is rounded to 24 bits in HLS and DASH: browsers decode no more";
    Some(format!("{}: track {}: '{parameter}' ({name}) {why}", picked.label, track.id))
}

fn target(options: &PresentationOptions) -> Result<i64, PackageError> {
    let seconds = options.target_duration;
    if !(0.5..=60.0).contains(&seconds) {
        let (found, expected) = (seconds.to_string(), "0.5 to 60 seconds");
        return Err(PackageError::Option { name: "target_duration", found, expected });
    }
    Ok((seconds * 1e9).round() as i64)
}

/// Returns the videos that present a sample, with their facts.
fn scan(picked: Vec<Picked>, budget: &mut Budget<'_>) -> Result<Vec<(Picked, Facts)>, PackageError> {
    let mut scanned: Vec<(Picked, Facts)> = Vec::with_capacity(picked.len());
    for p in picked {
        // One walk each for the facts, the common points, and the track's own points.
        budget.walk(&p.timeline, 3)?;
        if let Some(facts) = Facts::of(p.track(), &p.timeline, |_| {}) {
            let facts = match p.outlined() {
                Some(outlined) => outlined.facts(facts),
                None => facts,
            };
            scanned.push((p, facts));
        }
    }
    Ok(scanned)
}

/// Returns the video tracks in the same order, and whether the main ladder has common boundaries. Videos of one ladder follow
/// each other.
fn videos(
    scanned: Vec<(Picked, Facts)>,
    target: i64,
    warnings: &mut Vec<String>,
    budget: &mut Budget<'_>,
) -> Result<(Vec<PresentedTrack>, bool), PackageError> {
    let (mut aligned, room) = (true, budget.room(scanned.len()));
    let mut chosen: Vec<Vec<SyncPoint>> = Vec::with_capacity(scanned.len());
    for ladder in scanned.chunk_by(|(a, _), (b, _)| a.ladder == b.ladder) {
        let candidates: Vec<Candidates<'_>> = ladder.iter().map(|(p, facts)| candidates(p, facts)).collect();
        let cuts = choose(&candidates, target, room);
        aligned &= cuts.aligned || ladder.iter().any(|(p, _)| p.ladder > 0);
        if !cuts.aligned {
            warnings.push(unaligned(ladder));
        }
        chosen.extend(cuts.chosen);
    }
    warnings.extend(scanned.iter().filter(|(p, _)| p.ladder > 0).map(|(p, _)| alternative(p)));
    budget.fits(chosen.iter().map(Vec::len).sum())?;
    let most_iframes = budget.iframes(scanned.len());
    let mut tracks = Vec::with_capacity(scanned.len());
    for ((picked, facts), chosen) in scanned.into_iter().zip(chosen) {
        tracks.push(video(picked, facts, chosen, most_iframes, budget)?);
    }
    Ok((tracks, aligned))
}

/// Warns about renditions between which players can't switch at every segment.
fn unaligned(ladder: &[(Picked, Facts)]) -> String {
    let labels: Vec<&str> = ladder.iter().map(|(p, _)| p.label.as_str()).collect();
    format!(
        "{}: found no common sync samples at most three target durations apart, so segments of the renditions are not aligned",
        labels.join(", ")
    )
}

/// Warns about a picture that is no rendition of the main one.
fn alternative(picked: &Picked) -> String {
    let id = picked.track().id;
    format!(
        "{}: track {id} is no rendition of the main video: it gets its own adaptation set in DASH, and no variant in HLS",
        picked.label
    )
}

fn candidates<'a>(picked: &'a Picked, facts: &Facts) -> Candidates<'a> {
    let (track, timeline, start) = (picked.track(), &picked.timeline, facts.start);
    Candidates {
        timescale: track.timescale,
        points: Box::new(move || -> Points<'a> {
            match picked.outlined() {
                Some(outlined) => Box::new(outlined.points(start)),
                None => Box::new(sync_points(track, timeline)),
            }
        }),
        end: facts.end,
        frame: i64::from(facts.shortest),
    }
}

fn average(picked: &Picked, facts: &Facts) -> u64 {
    let seconds = picked.track().timescale.seconds(facts.end.saturating_sub(facts.start)).max(1e-6);
    (facts.bytes as f64 * 8.0 / seconds) as u64
}

fn video(
    picked: Picked,
    facts: Facts,
    chosen: Vec<SyncPoint>,
    most_iframes: usize,
    budget: &mut Budget<'_>,
) -> Result<PresentedTrack, PackageError> {
    let access = StreamAccess::of(&chosen, facts.begins_sync);
    let mut first: Vec<u32> = chosen.iter().map(|p| p.ordinal).collect();
    let mut time: Vec<i64> = chosen.iter().map(|p| p.time).collect();
    let befores = chosen.iter().map(|p| p.bytes);
    let bytes: Vec<u64> = befores.clone().zip(befores.skip(1).chain([facts.bytes])).map(|(a, b)| b - a).collect();
    drop(chosen);
    if let Some(start) = time.first_mut() {
        *start = (*start).max(0);
    }
    rising(&mut time);
    time.push(facts.end.max(time.last().map_or(1, |t| t.saturating_add(1))));
    first.push(picked.len());
    let segments = Segments::new(picked.track().timescale, first, time);
    budget.segments(&segments)?;
    Ok(present(picked, facts, MediaKind::Video, segments, &bytes, (access, most_iframes)))
}

/// Keeps times rising where the first boundary was moved up to time 0.
fn rising(time: &mut [i64]) {
    for place in 1..time.len() {
        time[place] = time[place].max(time[place - 1].saturating_add(1));
    }
}

/// Builds an audio track, or a text track that is delivered in fragments: cut where its samples allow.
fn timed(
    picked: Picked,
    kind: MediaKind,
    grid: &Grid,
    budget: &mut Budget<'_>,
) -> Result<Option<PresentedTrack>, PackageError> {
    budget.walk(&picked.timeline, 1)?;
    budget.convert(grid.len())?;
    let timescale = picked.track().timescale;
    if let Some(outlined) = picked.outlined() {
        let Some(facts) = Facts::of(picked.track(), &picked.timeline, |_| {}) else { return Ok(None) };
        let boundaries = grid.boundaries(timescale, outlined.end(), outlined.len() as usize);
        let (segments, bytes) = outlined.cut(&boundaries, facts.start, timescale);
        let facts = outlined.facts(facts);
        budget.segments(&segments)?;
        let (form, stated, early) = (picked.flac(), picked.bandwidth, facts.start.saturating_neg().max(0));
        let mut presented = present(picked, facts, kind, segments, &bytes, (StreamAccess::Closed, 0));
        if let Some(form) = form {
            let sizes = form.sizes_by_time(&presented.segments);
            let track = FlacTrack::loaded(form, early, presented.bandwidth);
            become_flac(&mut presented, track, &sizes, stated);
        }
        return Ok(Some(presented));
    }
    if let Some(form) = picked.flac() {
        return encoded(picked, form, grid, budget);
    }
    let end = picked.timeline.dts_at(&picked.track().samples, picked.timeline.len());
    let most = usize::try_from(picked.timeline.len()).unwrap_or(usize::MAX);
    let boundaries = grid.boundaries(timescale, end.min(picked.timeline.edit_end()), most);
    let mut cut = TimeCut::by_sample(&boundaries);
    let Some(facts) = Facts::of(picked.track(), &picked.timeline, |t| cut.add(t)) else { return Ok(None) };
    let (segments, bytes) = cut.finish(timescale, picked.timeline.len(), facts.end);
    budget.segments(&segments)?;
    Ok(Some(present(picked, facts, kind, segments, &bytes, (StreamAccess::Closed, 0))))
}

/// Builds a track of sound that becomes FLAC. Its segments begin with blocks of the frames of FLAC.
fn encoded(
    picked: Picked,
    form: FlacForm,
    grid: &Grid,
    budget: &mut Budget<'_>,
) -> Result<Option<PresentedTrack>, PackageError> {
    let (timescale, units) = (picked.track().timescale, picked.timeline.len());
    let last = picked.timeline.dts_at(&picked.track().samples, units);
    let most = usize::try_from(units).unwrap_or(usize::MAX);
    let boundaries = grid.boundaries(timescale, last.min(picked.timeline.edit_end()), most);
    let mut cut = FlacCut::new(form, &boundaries);
    let Some(facts) = Facts::of(picked.track(), &picked.timeline, |unit| cut.add(unit)) else { return Ok(None) };
    let Some(made) = cut.finish(timescale, units, (facts.end, last)) else { return Ok(None) };
    let FlacSegments { segments, stored, sizes, mut track } = made;
    budget.segments(&segments)?;
    let stated = picked.bandwidth;
    let mut presented = present(picked, facts, MediaKind::Audio, segments, &stored, (StreamAccess::Closed, 0));
    track.stored = presented.bandwidth;
    become_flac(&mut presented, track, &sizes, stated);
    Ok(Some(presented))
}

/// Gives a track its form as FLAC, in segments of at most `sizes`. A manifest may have stated a peak of its bit rate.
fn become_flac(presented: &mut PresentedTrack, flac: FlacTrack, sizes: &[u64], stated: Option<u64>) {
    presented.bandwidth = Bandwidth::of(&loads::of_fragments(&presented.segments, sizes, 0, 0));
    presented.bandwidth.peak = presented.bandwidth.peak.max(stated.unwrap_or(0));
    if let Content::Media(media) = &mut presented.content {
        media.flac = Some(Box::new(flac));
    }
}

/// Builds a text track. Delivered as WebVTT, it has a segment between any two boundaries.
fn texts(
    picked: Picked,
    grid: &Grid,
    shown: Range<f64>,
    budget: &mut Budget<'_>,
) -> Result<Option<PresentedTrack>, PackageError> {
    if family(&picked.track().codec) == "stpp" {
        return timed(picked, MediaKind::Text, grid, budget);
    }
    budget.walk(&picked.timeline, 1)?;
    budget.convert(grid.len())?;
    let timescale = picked.track().timescale;
    let (start, end) = (seconds_to(shown.start, timescale.get()), seconds_to(shown.end, timescale.get()));
    let boundaries = grid.boundaries(timescale, end, usize::MAX);
    let mut cut = TimeCut::by_time(&boundaries, start);
    let Some(facts) = Facts::of(picked.track(), &picked.timeline, |t| cut.add(t)) else { return Ok(None) };
    let (segments, bytes) = cut.finish(timescale, picked.timeline.len(), end);
    budget.segments(&segments)?;
    Ok(Some(present(picked, facts, MediaKind::Text, segments, &bytes, (StreamAccess::Closed, 0))))
}

fn sidecar(
    sidecar: Sidecar,
    grid: &Grid,
    shown: Range<f64>,
    budget: &mut Budget<'_>,
) -> Result<PresentedTrack, PackageError> {
    budget.convert(grid.len())?;
    let timescale = grid.timescale();
    let (start, end) = (seconds_to(shown.start, timescale.get()), seconds_to(shown.end, timescale.get()));
    let boundaries = grid.boundaries(timescale, end, usize::MAX);
    let (segments, _) = TimeCut::by_time(&boundaries, start).finish(timescale, 0, end);
    budget.segments(&segments)?;
    Ok(PresentedTrack {
        name: String::new(),
        kind: MediaKind::Text,
        language: language::tag(&sidecar.language),
        label: sidecar.name.clone(),
        default: sidecar.default,
        forced: sidecar.forced,
        bandwidth: Bandwidth::of(&loads::of_cues(&segments, &sidecar.cues)),
        content: Content::Sidecar(sidecar),
        segments,
        ladder: 0,
    })
}

fn seconds_to(seconds: f64, timescale: u32) -> i64 {
    (seconds * f64::from(timescale)).round() as i64
}

fn present(
    picked: Picked,
    facts: Facts,
    kind: MediaKind,
    segments: Segments,
    bytes: &[u64],
    (access, most_iframes): (StreamAccess, usize),
) -> PresentedTrack {
    let track = picked.track();
    let is_webvtt = family(&track.codec) == "webvtt";
    let loads = match is_webvtt {
        true => loads::of_text(&segments, bytes),
        false => {
            let Added { fragment, row } = added_by_encryption(track.protection.as_deref());
            // The bytes of fragments include a row for each sample.
            let is_outlined = picked.outlined().is_some();
            let row = if is_outlined { 0 } else { row + facts.row_bytes(segments.count()) };
            loads::of_fragments(&segments, bytes, fragment, row)
        }
    };
    let mut bandwidth = Bandwidth::of(&loads);
    // The bit rate of a manifest may raise the peak but never lowers it (RFC 8216 4.3.4.2).
    bandwidth.peak = bandwidth.peak.max(picked.bandwidth.unwrap_or(0));
    PresentedTrack {
        name: picked.name.clone(),
        kind,
        language: picked.language.clone(),
        label: track.name.clone().unwrap_or_default(),
        default: false,
        forced: kind == MediaKind::Text
            && (track.purposes.has(Purpose::Forced) || is_webvtt && all_forced(&track.sample_entry)),
        bandwidth,
        segments,
        ladder: picked.ladder,
        content: Content::Media(Box::new(MediaTrack {
            object: picked.object,
            movie: picked.movie,
            index: picked.index,
            timeline: picked.timeline,
            facts,
            access,
            most_iframes,
            iframes: OnceLock::new(),
            fits_ts: OnceLock::new(),
            ts: OnceLock::new(),
            flac: None,
        })),
    }
}

/// Whether a `tx3g` sample entry marks all samples as forced: bit 31 of `displayFlags`, as in QuickTime files
/// ("Subtitle Sample Description").
fn all_forced(sample_entry: &[u8]) -> bool {
    sample_entry.get(4..8) == Some(b"tx3g") && sample_entry.get(16).is_some_and(|flags| flags & 0x80 != 0)
}

/// Returns the sidecars whose language and name differ from those of all text tracks and earlier sidecars.
fn unrepeated(sidecars: Vec<Sidecar>, tracks: &[PresentedTrack]) -> Vec<Sidecar> {
    let text = tracks.iter().filter(|t| t.kind == MediaKind::Text);
    let mut seen: HashSet<(Option<String>, String, bool)> =
        text.map(|t| (t.language.clone(), t.label.clone(), t.forced)).collect();
    sidecars.into_iter().filter(|s| seen.insert((language::tag(&s.language), s.name.clone(), s.forced))).collect()
}

/// Gives each track its name in URLs, and a label that is unique among the tracks offered with it. Makes one audio
/// track of each group the default: the first in the language of the very first. Commentaries and descriptions are the
/// default only of groups without other tracks.
fn name(tracks: &mut [PresentedTrack]) {
    let mut counts = [0_u32; 3];
    // For each label, the next number to append.
    let mut labels: HashMap<(MediaKind, &'static str, String), u32> = HashMap::new();
    let is_audio = |t: &&PresentedTrack| t.kind == MediaKind::Audio;
    let first = tracks.iter().filter(is_audio).find(|t| t.is_usual()).or(tracks.iter().find(is_audio));
    let first_language = first.and_then(|t| t.language.clone());
    for track in tracks.iter_mut() {
        let count = &mut counts[track.kind as usize];
        *count += 1;
        track.name = format!("{}{count}", track.kind.letter());
        let group = group(track);
        let plain = label(track, *count);
        track.label = unique(&mut labels, (track.kind, group, plain));
    }
    let mut done = HashSet::new();
    for (same_language, usual) in [(true, true), (false, true), (false, false)] {
        for track in tracks.iter_mut().filter(|t| t.kind == MediaKind::Audio && (t.is_usual() || !usual)) {
            if (!same_language || track.language == first_language) && done.insert(group(track)) {
                track.default = true;
            }
        }
    }
    let mut defaults = tracks.iter_mut().filter(|t| t.kind == MediaKind::Text && t.default);
    defaults.next();
    defaults.for_each(|t| t.default = false);
}

/// Returns the label, with a number appended where another track has it.
fn unique(
    labels: &mut HashMap<(MediaKind, &'static str, String), u32>,
    wanted: (MediaKind, &'static str, String),
) -> String {
    let (kind, group, plain) = wanted.clone();
    let mut next = match labels.entry(wanted) {
        hash_map::Entry::Vacant(new) => {
            new.insert(2);
            return plain;
        }
        hash_map::Entry::Occupied(known) => *known.get(),
    };
    let label = loop {
        let label = format!("{plain} ({next})");
        next += 1;
        if let hash_map::Entry::Vacant(new) = labels.entry((kind, group, label.clone())) {
            new.insert(2);
            break label;
        }
    };
    labels.insert((kind, group, plain), next);
    label
}

fn group(track: &PresentedTrack) -> &'static str {
    match track.kind {
        MediaKind::Audio => track.delivered_codec().map_or("", family),
        _ => "",
    }
}

/// Whether subtitles tell sounds too.
fn is_for_deaf(track: &PresentedTrack) -> bool {
    track.source_track().is_some_and(|source| source.purposes.has(Purpose::Captions))
}

/// Returns the name of a track for menus: its name in the file, else its language, else its kind and number. Control
/// characters and quotation marks are removed, because playlists can't contain them.
fn label(track: &PresentedTrack, number: u32) -> String {
    let clean: String = track.label.chars().filter(|c| !c.is_control() && *c != '"').collect();
    let clean = clean.trim();
    if !clean.is_empty() {
        return clean.to_owned();
    }
    match (&track.language, track.kind) {
        (Some(tag), _) if track.forced => format!("{} (forced)", language::display_name(tag)),
        (Some(tag), MediaKind::Text) if is_for_deaf(track) => {
            format!("{}{}", language::display_name(tag), language::FOR_DEAF)
        }
        (Some(tag), _) => language::display_name(tag),
        (None, MediaKind::Video) => format!("Video {number}"),
        (None, MediaKind::Audio) => format!("Audio {number}"),
        (None, MediaKind::Text) => format!("Subtitles {number}"),
    }
}
