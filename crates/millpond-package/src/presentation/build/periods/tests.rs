use crate::{
    Presentation, PresentationOptions, Sidecar, SourceObject, dash,
    delivery::{container::Container, text_track, transport},
    fmp4, hls,
    testing::{self, clips, frames, movie, presentation, reordered, table},
    text::Cue,
};
use millpond_media::{
    Movie, Track, Work, index_bytes,
    stitch::{StitchClip, StitchItem, stitch},
};
use std::sync::Arc;

/// The lines of a media playlist that are no tags of its head.
fn entries(p: &Presentation, track: &str, container: Container) -> Vec<String> {
    let text = hls::media(p, p.track(track).unwrap(), container).unwrap();
    let is_entry = |line: &&str| !line.starts_with('#') || line.contains("DISCONTINUITY") || line.contains("MAP");
    text.lines().filter(is_entry).map(str::to_owned).collect()
}

#[test]
fn playlists_have_a_discontinuity_and_another_map() {
    let p = presentation(vec![clips()]);
    let lines = |track: &str, counts: [u32; 2]| {
        let mut all = Vec::new();
        for (period, count) in (1..).zip(counts) {
            if period > 1 {
                all.push("#EXT-X-DISCONTINUITY".to_owned());
            }
            all.push(format!("#EXT-X-MAP:URI=\"../{track}p{period}/init.mp4\""));
            all.extend((1..=count).map(|number| format!("../{track}p{period}/{number}.m4s")));
        }
        all
    };
    // Sound changes at 4.992 s, the nearest key frame is at 5.04 s.
    assert_eq!(entries(&p, "v1", Container::Fmp4), lines("v1", [2, 2]));
    assert_eq!(entries(&p, "a1", Container::Fmp4), lines("a1", [2, 2]));
    let mut ts = lines("v1", [2, 2]);
    ts.retain(|line| !line.contains("MAP"));
    assert_eq!(entries(&p, "v1", Container::Ts), ts.iter().map(|l| l.replace(".m4s", ".ts")).collect::<Vec<_>>());
    let iframes = hls::iframes(&p, p.track("v1").unwrap(), Container::Fmp4).unwrap();
    let count = |period: &str| iframes.lines().filter(|line| line.contains(period) && line.ends_with(".m4s")).count();
    assert_eq!((count("v1p1/i"), count("v1p2/i")), (5, 5));
}

#[test]
fn each_period_has_its_own_init_segment_and_times_go_on() {
    let p = presentation(vec![clips()]);
    let mut ends = Vec::new();
    for (name, rate) in [("a1p1", 48_000_u32), ("a1p2", 44_100)] {
        let track = p.track(name).unwrap();
        let mut file = fmp4::init(&p, track).to_vec();
        for number in 1..=track.segment_count() {
            file.extend(testing::bytes(fmp4::segment(&p, track, number).unwrap()));
        }
        let movie = index_bytes(&file).unwrap();
        assert_eq!(track.source_track().unwrap().samples.len(), 234);
        assert_eq!(movie.tracks[0].samples.len(), 234, "{name}");
        ends.push((movie.tracks[0].samples.start_dts(), movie.tracks[0].samples.end_dts()));
        let millpond_media::TrackKind::Audio { sample_rate, .. } = track.source_track().unwrap().kind else { panic!() };
        assert_eq!(sample_rate, rate);
    }
    assert_eq!(ends, [(0, 234 * 1024), (234 * 1024, 468 * 1024)]);
    let counts = ["v1p1", "v1p2"].map(|name| p.track(name).unwrap().sample_count());
    assert_eq!(counts, [125, 125]);
    assert!(p.track("v1p3").is_none() && p.track("a1p0").is_none());
}

#[test]
fn the_mpd_has_a_period_for_each() {
    let p = presentation(vec![clips()]).below("~1/");
    let mpd = dash::mpd(&p).unwrap();
    assert!(
        mpd.contains("<Period id=\"1\" start=\"PT0S\">") && mpd.contains("<Period id=\"2\" start=\"PT5.04S\">"),
        "{mpd}"
    );
    let (first, second) = mpd.split_once("<Period id=\"2\"").unwrap();
    assert!(!first.contains("presentationTimeOffset") && first.contains("audioSamplingRate=\"48000\""), "{mpd}");
    assert!(
        second.contains("presentationTimeOffset=\"64512\"") && second.contains("audioSamplingRate=\"44100\""),
        "{mpd}"
    );
    assert!(
        second.contains("id=\"v1p2\"") && second.contains("initialization=\"~1/$RepresentationID$/init.mp4\""),
        "{mpd}"
    );
    assert!(!mpd.contains("id=\"v1\""), "{mpd}");
}

#[test]
fn cues_are_in_the_periods_in_which_they_are_shown() {
    let cue = |start, end, text: &str| Cue { start, end, text: text.to_owned(), ..Cue::default() };
    let cues = Arc::new(vec![cue(1000, 2000, "one"), cue(4500, 5500, "two"), cue(7000, 8000, "three")]);
    let (language, name) = ("en".to_owned(), String::new());
    let sidecar = Sidecar { language, name, cues, default: false, forced: false };
    let build = |sidecar| {
        let sources = vec![SourceObject::new(clips(), "a.mp4".into())];
        Presentation::build(sources, vec![sidecar], &PresentationOptions::default(), &Work::unlimited()).unwrap()
    };
    let p = build(sidecar.clone());
    // Periods share the cues, which count once.
    let long = Arc::new(vec![Cue { text: "x".repeat(1 << 20), ..Cue::default() }]);
    let [few, many] = [p.heap_bytes(), build(Sidecar { cues: long, ..sidecar }).heap_bytes()];
    assert!(((1 << 20) - 4096..1 << 21).contains(&(many - few)), "{few}, {many}");
    let text = |name: &str| {
        let track = p.track(name).unwrap();
        let plans =
            (1..=track.segment_count()).map(|n| text_track::segment(&p, track, n, Container::Fmp4).unwrap().unwrap());
        String::from_utf8(plans.flat_map(testing::bytes).collect()).unwrap()
    };
    let shown = |text: &str| ["one", "two", "three"].map(|cue| text.contains(cue));
    assert_eq!(shown(&text("s1p1")), [true, true, false]);
    assert_eq!(shown(&text("s1p2")), [false, true, true]);
}

#[test]
fn transport_streams_have_the_periods_that_they_carry() {
    let p = presentation(vec![clips()]);
    assert_eq!(transport::periods(&p).len(), 2);
    let second = p.of_track("v1p2");
    let segment = transport::segment(second, second.track("v1p2").unwrap(), 1);
    assert!(segment.unwrap().is_some());
    assert!(std::ptr::eq(p.of_track("v1"), &p));
}

/// A title of three items of 10 s, of which one has no sound.
fn title_without_sound_in(lacking: usize) -> Presentation {
    let pictures = testing::video(table(&reordered(250, 25, 900), 48, 0), 12_800, Vec::new());
    let sound = testing::audio(table(&frames(469), 1 << 24, 0), "eng", Vec::new());
    let (film, silent) = (movie(vec![pictures.clone(), sound]), movie(vec![pictures]));
    let item = |(place, object): (usize, u16)| StitchItem {
        movie: if place == lacking { silent.clone() } else { film.clone() },
        object,
        label: format!("{object}.mp4"),
        clip: StitchClip::default(),
        is_stretch: false,
    };
    let items: Vec<StitchItem> = (0..3).zip(0..3).map(item).collect();
    let title: Movie = stitch(&items, &Work::unlimited()).unwrap();
    presentation(vec![Arc::new(title)])
}

/// Sum of the durations of the entries of a playlist, in seconds.
fn seconds(stretch: &str) -> f64 {
    let durations =
        stretch.lines().filter_map(|line| line.strip_prefix("#EXTINF:")?.trim_end_matches(',').parse::<f64>().ok());
    durations.sum()
}

#[test]
fn a_track_that_an_item_lacks_has_gaps_of_the_items_duration() {
    for lacking in 0..3 {
        let p = title_without_sound_in(lacking);
        let playlist = |track: &str| hls::media(&p, p.track(track).unwrap(), Container::Fmp4).unwrap();
        let (video, sound) = (playlist("v1"), playlist("a1"));
        let joint = "#EXT-X-DISCONTINUITY\n";
        let (video, sound): (Vec<&str>, Vec<&str>) = (video.split(joint).collect(), sound.split(joint).collect());
        assert_eq!((video.len(), sound.len()), (3, 3), "{lacking}");
        for (place, (video, sound)) in video.iter().zip(&sound).enumerate() {
            let is_gap = place == lacking;
            assert!(!video.contains("#EXT-X-GAP") && video.contains("#EXT-X-MAP"), "{video}");
            assert_eq!((sound.contains("#EXT-X-GAP"), sound.contains("#EXT-X-MAP")), (is_gap, !is_gap), "{sound}");
            assert!((seconds(video) - seconds(sound)).abs() < 0.1, "{lacking}: {video} {sound}");
            let entries = |mark: &str| sound.lines().filter(|line| line.starts_with(mark)).count();
            assert!(!is_gap || entries("#EXT-X-GAP") == entries("#EXTINF"), "{sound}");
        }
        let mpd = dash::mpd(&p).unwrap();
        assert!(mpd.contains("maxSegmentDuration=\"PT4S\"") || mpd.contains("maxSegmentDuration=\"PT5S\""), "{mpd}");
        let periods: Vec<&str> = mpd.split("<Period ").skip(1).collect();
        assert_eq!(periods.len(), 3);
        for (place, period) in periods.iter().enumerate() {
            assert!(period.contains("contentType=\"video\""), "{period}");
            assert_eq!(period.contains("contentType=\"audio\""), place != lacking, "{period}");
        }
        assert!(p.track(&format!("a1p{}", lacking + 1)).is_none());
    }
}

#[test]
fn transport_streams_have_gaps_where_an_item_has_fewer_sound_tracks() {
    let pictures = testing::video(table(&reordered(250, 25, 900), 48, 0), 12_800, Vec::new());
    let sound = |language: &str| testing::audio(table(&frames(469), 1 << 24, 0), language, Vec::new());
    let second = Track { id: 3, ..sound("deu") };
    let (both, one) = (movie(vec![pictures.clone(), sound("eng"), second]), movie(vec![pictures, sound("eng")]));
    let item = |(movie, object): (&Arc<Movie>, u16)| StitchItem {
        movie: movie.clone(),
        object,
        label: format!("{object}.mp4"),
        clip: StitchClip::default(),
        is_stretch: false,
    };
    let items: Vec<StitchItem> = [&both, &one, &both].into_iter().zip(0..3).map(item).collect();
    let p = presentation(vec![Arc::new(stitch(&items, &Work::unlimited()).unwrap())]);
    assert!(hls::multivariant(&p, Container::Ts).is_ok());
    let playlist = |track: &str| hls::media(&p, p.track(track).unwrap(), Container::Ts).unwrap();
    let gaps = |track: &str| {
        let playlist = playlist(track);
        playlist.split("#EXT-X-DISCONTINUITY\n").map(|item| item.contains("#EXT-X-GAP")).collect::<Vec<_>>()
    };
    assert_eq!((gaps("v1"), gaps("a1"), gaps("a2")), (vec![false; 3], vec![false; 3], vec![false, true, false]));
    let second = p.of_track("a1p2");
    assert!(transport::segment(second, second.track("a1p2").unwrap(), 1).unwrap().is_some());
}
