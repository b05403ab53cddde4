use millpond_library::{DurationCounts, LibraryStats, work::PoolStats};
use millpond_store::{PlaceStats, Stats};

use super::*;
use crate::http::Kind;
use ::http::StatusCode;
use millpond_http::wire::Transport;
use std::time::Duration;

fn metrics(stats: Stats) -> Metrics {
    let places = stats.places.iter().map(|place| place.name.clone()).collect();
    Metrics::with_sources(places, Box::new(move || stats.clone()), Box::new(LibraryStats::default))
}

fn films(origin_bytes: u64) -> Stats {
    let place = PlaceStats {
        name: "films".to_owned(),
        origin_requests: 3,
        origin_bytes,
        slice_hits: 7,
        miss_bytes: 9,
        ..PlaceStats::default()
    };
    Stats { places: vec![place], memory_used: 4096, ..Stats::default() }
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
}

#[test]
fn all_families_are_there_from_the_start() {
    let text = metrics(films(0)).render(TextFormat::OpenMetrics);
    for family in [
        "millpond_build info",
        "millpond_http_requests counter",
        "millpond_http_response_bytes counter",
        "millpond_http_request_duration_seconds histogram",
        "millpond_http_first_byte_seconds histogram",
        "millpond_responses_in_flight gauge",
        "millpond_connections gauge",
        "millpond_connections_refused counter",
        "millpond_index_builds counter",
        "millpond_index_build_duration_seconds histogram",
        "millpond_index_read_bytes counter",
        "millpond_asset_cache_hits counter",
        "millpond_work_jobs_running gauge",
        "millpond_work_jobs_waiting gauge",
        "millpond_work_jobs_refused counter",
        "millpond_work_jobs_cancelled counter",
        "millpond_work_job_duration_seconds histogram",
        "millpond_origin_requests counter",
        "millpond_origin_errors counter",
        "millpond_slice_memory_hit_bytes counter",
        "millpond_conversion_efficiency_ratio gauge",
        "process_open_fds gauge",
        "process_cpu_seconds counter",
        "process_start_time_seconds gauge",
        "process_resident_memory_bytes gauge",
    ] {
        has(&text, &format!("# TYPE {family}"));
    }
    for kind in Kind::ALL {
        has(&text, &format!("millpond_http_requests_total{{kind=\"{}\",status=\"5xx\"}} 0", kind.label()));
    }
    assert!(text.ends_with("# EOF\n"));
    let lines = text.lines().count();
    assert!(lines < 1350, "{lines} lines");
}

#[test]
fn requests_are_told_apart_by_kind_and_class() {
    let metrics = metrics(Stats::default());
    metrics.http.request(Kind::Segment, StatusCode::PARTIAL_CONTENT, Duration::from_millis(3));
    metrics.http.request(Kind::Segment, StatusCode::OK, Duration::from_millis(3));
    metrics.http.request(Kind::Hls, StatusCode::NOT_FOUND, Duration::from_millis(1));
    metrics.http.request(Kind::Hls, StatusCode::from_u16(999).unwrap(), Duration::from_millis(1));
    metrics.http.first_byte(Kind::Segment, Duration::from_micros(300));
    let text = metrics.render(TextFormat::OpenMetrics);
    has(&text, "millpond_http_requests_total{kind=\"segment\",status=\"2xx\"} 2");
    has(&text, "millpond_http_requests_total{kind=\"hls\",status=\"4xx\"} 1");
    has(&text, "millpond_http_requests_total{kind=\"hls\",status=\"5xx\"} 1");
    has(&text, "millpond_http_request_duration_seconds_count{kind=\"segment\"} 2");
    has(&text, "millpond_http_first_byte_seconds_bucket{le=\"0.0005\",kind=\"segment\"} 1");
}

#[test]
fn guards_count_down_when_dropped() {
    let metrics = metrics(Stats::default());
    let response = metrics.http.response_in_flight();
    let connections =
        [metrics.http.connections().connection(Transport::Tls), metrics.http.connections().connection(Transport::Tls)];
    let text = metrics.render(TextFormat::OpenMetrics);
    has(&text, "millpond_responses_in_flight 1");
    has(&text, "millpond_connections{transport=\"tls\"} 2");
    drop((response, connections));
    let text = metrics.render(TextFormat::OpenMetrics);
    has(&text, "millpond_responses_in_flight 0");
    has(&text, "millpond_connections{transport=\"tls\"} 0");
    has(&text, "millpond_connections_accepted_total 2");
}

#[test]
fn efficiency_is_bytes_out_over_bytes_in() {
    let metrics = metrics(films(2_000));
    let place = metrics.http.place("films");
    metrics.http.sent(Kind::Segment, Some(&place), 1_000);
    metrics.http.sent(Kind::Hls, Some(&place), 500);
    metrics.http.sent(Kind::Page, None, 70);
    let text = metrics.render(TextFormat::OpenMetrics);
    has(&text, "millpond_conversion_efficiency_ratio{place=\"films\"} 0.75");
    has(&text, "millpond_place_sent_bytes_total{place=\"films\"} 1500");
    has(&text, "millpond_http_response_bytes_total{kind=\"page\"} 70");
    has(&text, "millpond_origin_requests_total{place=\"films\"} 3");
    has(&text, "millpond_slice_hits_total{place=\"films\"} 7");
    has(&text, "millpond_memory_bytes 4096");
    metrics.http.place("nowhere").add(1);
    assert!(!metrics.render(TextFormat::Prometheus).contains("nowhere"), "a new place is listed once it is in force");
    metrics.set_places([metrics.http.place("films"), metrics.http.place("news")]);
    assert!(metrics.render(TextFormat::Prometheus).contains("place=\"news\""));
}

#[test]
fn efficiency_is_left_out_while_nothing_came_in() {
    let text = metrics(films(0)).render(TextFormat::OpenMetrics);
    assert!(!text.contains("conversion_efficiency_ratio{"), "{text}");
}

#[test]
fn a_name_with_quotes_stays_one_label() {
    let mut stats = films(1);
    stats.places[0].name = "a\"b\\c\nd".to_owned();
    has(&metrics(stats).render(TextFormat::OpenMetrics), r#"millpond_origin_requests_total{place="a\"b\\c\nd"} 3"#);
}

#[test]
fn indexes_and_assets() {
    let mut index_time = DurationCounts { total: Duration::from_millis(20), ..DurationCounts::default() };
    index_time.counts[4] = 1;
    let work = PoolStats { running: 2, refused: 3, ..PoolStats::default() };
    let stats = LibraryStats {
        asset_misses: 1,
        indexes_built: 1,
        indexes_failed: 1,
        index_bytes: 65_536,
        index_time,
        work,
        ..LibraryStats::default()
    };
    let metrics = Metrics::with_sources(Vec::new(), Box::new(Stats::default), Box::new(move || stats.clone()));
    let text = metrics.render(TextFormat::OpenMetrics);
    has(&text, "millpond_index_builds_total{outcome=\"ok\"} 1");
    has(&text, "millpond_index_builds_total{outcome=\"failed\"} 1");
    has(&text, "millpond_index_read_bytes_total 65536");
    has(&text, "millpond_asset_cache_misses_total 1");
    has(&text, "# UNIT millpond_index_build_duration_seconds seconds");
    has(&text, "millpond_index_build_duration_seconds_sum 0.02");
    has(&text, "millpond_index_build_duration_seconds_bucket{le=\"0.01\"} 0");
    has(&text, "millpond_index_build_duration_seconds_bucket{le=\"0.025\"} 1");
    has(&text, "millpond_work_jobs_running 2");
    has(&text, "millpond_work_jobs_refused_total 3");
    has(&text, "millpond_work_job_duration_seconds_count 0");
}

/// The text before the table of metrics.
const PAGE_HEAD: &str = "\
# Metrics

`/metrics` on the admin address has these families. Histograms have the samples `_bucket`, `_sum` and `_count` of their name. [Logs and metrics](../handbook/operations.md) says which
are the most useful.

`just settings` writes this page from the declarations in the source; a test fails when they differ.

| family | type | is |
|---|---|---|
";

/// The families of a text of metrics: name as it is scraped, type, help.
fn families(text: &str) -> Vec<(String, String, String)> {
    let mut helps = std::collections::HashMap::new();
    let mut families = Vec::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ').skip(1);
        match (words.next(), words.next(), words.next()) {
            (Some("HELP"), Some(name), help) => {
                helps.insert(name.to_owned(), help.unwrap_or_default().to_owned());
            }
            (Some("TYPE"), Some(name), Some(kind)) => families.push((name.to_owned(), kind.to_owned())),
            _ => {}
        }
    }
    let named = families.into_iter().map(|(name, kind)| {
        let help = helps.get(&name).cloned().unwrap_or_default();
        (name, kind, help)
    });
    let mut families: Vec<_> = named.collect();
    families.sort();
    families.dedup();
    families
}

#[test]
fn the_page_of_metrics_is_that_of_the_declarations() {
    use std::fmt::Write as _;
    let metrics = metrics(films(1));
    // Without a hook, these families have no samples.
    drop(metrics.hooks.of("app.example"));
    let text = metrics.render(TextFormat::Prometheus);
    let mut page = PAGE_HEAD.to_owned();
    let families = families(&text);
    assert!(families.len() > 100, "{} families", families.len());
    for (name, kind, help) in families {
        assert!(!help.is_empty(), "{name} has no help");
        writeln!(page, "| `{name}` | {kind} | {} |", help.trim_end_matches('.').replace('|', "\\|")).unwrap();
    }
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os("MILLPOND_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/reference/metrics.md differs from the declarations: run `just settings`");
}
