//! Every metric is moved by what it counts, through a real server; and Prometheus' own tool finds nothing wrong.
//!
//! [`TABLE`] has a row for each family of `/metrics`. A family without a row fails, and so does a row whose scenario does
//! not move it.

mod format;
mod heavy;
mod live;
pub(crate) mod origin;
mod pushes;
mod recordings;
mod remote;
mod repairs;
mod rtmp;
mod srt;
mod streams;
pub(crate) mod watch;
mod web;
mod webrtc;

use crate::support::{self, Server, get};
use std::collections::BTreeSet;

/// The cause that moves a family: a test of this program, or none because it is constant while a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Requests by HTTP to a folder (`web`).
    Web,
    /// Players that tell of themselves by CMCD (`web`).
    Players,
    /// Broken handshakes of TLS (`web`).
    Tls,
    /// A log that nobody reads (`web`).
    Log,
    /// Movies that are heavy to index (`heavy`).
    Heavy,
    /// An origin by HTTP, and the cache on the disk (`remote`).
    Remote,
    /// A player, ahead of which slices are fetched (`remote`).
    Viewers,
    /// A disk that is full (`remote`).
    FullDisk,
    /// Sibling caches (`remote`).
    Siblings,
    /// Striped objects, a damaged unit, and a store that fails (`remote`).
    Stripes,
    /// A channel by HTTP (`live`).
    Live,
    /// A live source with a bad connection, and a slow viewer (`live`).
    BadSource,
    /// A live source that loses packets and sends them again (`repairs`).
    Repairs,
    /// A viewer that asks for packets again (`repairs`).
    Repeats,
    /// A viewer whose link is too narrow, with rate control (`repairs`).
    Paced,
    /// A live source with more bits than a stream may have (`live`).
    HugeSource,
    /// A live stream whose past is kept (`live`).
    Shift,
    /// One whose past does not fit on the disk (`live`).
    BadShift,
    /// A clip in a live stream (`live`).
    Inserted,
    /// A transport stream with cues (`live`).
    Cues,
    /// RTSP sessions (`streams`).
    Streams,
    /// A viewer by RTMP (`rtmp`).
    Rtmp,
    /// SRT sessions (`srt`).
    Srt,
    /// WebRTC sessions (`webrtc`).
    WebRtc,
    /// An origin that is late for RTSP (`streams`).
    LateOrigin,
    /// More RTSP than the threads can send (`streams`).
    Overload,
    /// A channel that is pushed to a listener, which leaves (`pushes`).
    Pushes,
    /// A recording of a channel (`recordings`).
    Recordings,
    /// A recording onto a full disk (`recordings`).
    FullRecording,
    /// A recording onto a slow disk (`recordings`).
    SlowRecording,
    /// Recorded files that are kept, deleted, and moved to a bucket (`live::continuous`).
    RecordedFiles,
    /// Intercepted connections (`intercept`).
    Intercepted,
    /// Intercepted connections of groups of servers (`intercept-groups`).
    Diverted,
    /// A place that asks for tokens (`access`).
    Access,
    /// Limits of clients and tokens (`access_limits`).
    AccessLimits,
    /// A server that decides (`access_external`).
    AccessExternal,
    /// Nodes of a cluster (`cluster`).
    Cluster,
    /// A node that hangs (`cluster`).
    Silent,
    /// A home of slices that hangs (`cluster`).
    Homes,
    /// Nodes in two zones (`cluster`).
    Zones,
    /// A node whose clock is ahead (`cluster`).
    Clocks,
    /// A node with other settings (`cluster`).
    Differ,
    /// A stranger at an address of a list of nodes (`cluster`).
    Forged,
    /// An origin that states many tags (`cluster`).
    Tags,
    /// A node whose storage has no bandwidth left (`cluster_more`).
    Booked,
    /// A node that passes requests on to one that dies (`cluster`).
    Proxy,
    /// An endpoint of events that fails (`hooks`).
    Hooks,
    /// Reloads of the configuration (`reload`).
    Reload,
    /// Viewers by all protocols (`viewing`).
    Statistics,
    /// Traces (`traces`).
    Traces,
    /// A machine without a network (`streams`).
    NoNetwork,
    /// Nothing: its value is checked (`constants_are_what_they_say`).
    Constant,
}

const TABLE: &[(&str, By)] = &[
    ("millpond_access_asked_total", By::AccessExternal),
    ("millpond_access_key_failures_total", By::Access),
    ("millpond_access_limited_total", By::AccessLimits),
    ("millpond_access_refusals_total", By::Access),
    ("millpond_asset_cache_hits_total", By::Web),
    ("millpond_asset_cache_misses_total", By::Web),
    ("millpond_build_info", By::Constant),
    ("millpond_cluster_changes_total", By::Cluster),
    ("millpond_cluster_clock_offset_seconds", By::Clocks),
    ("millpond_cluster_differences", By::Differ),
    ("millpond_cluster_etcd_failures_total", By::Cluster),
    ("millpond_cluster_following", By::Cluster),
    ("millpond_cluster_forged_answers_total", By::Forged),
    ("millpond_cluster_homes_failing", By::Homes),
    ("millpond_cluster_lost_leases_total", By::Cluster),
    ("millpond_cluster_member", By::Cluster),
    ("millpond_cluster_nodes", By::Cluster),
    ("millpond_cluster_passed_total", By::Proxy),
    ("millpond_cluster_problems", By::Cluster),
    ("millpond_cluster_puts_total", By::Cluster),
    ("millpond_cluster_redirects_total", By::Cluster),
    ("millpond_cluster_refused_total", By::Booked),
    ("millpond_cluster_resumed_total", By::Proxy),
    ("millpond_cluster_unreachable_nodes", By::Silent),
    ("millpond_cluster_unreachable_total", By::Cluster),
    ("millpond_cmcd_buffer_seconds", By::Players),
    ("millpond_cmcd_buffer_starvations_total", By::Players),
    ("millpond_cmcd_invalid_total", By::Players),
    ("millpond_cmcd_measured_throughput_bytes_per_second", By::Players),
    ("millpond_cmcd_requested_throughput_bytes_per_second", By::Players),
    ("millpond_cmcd_requests_total", By::Players),
    ("millpond_cmcd_startups_total", By::Players),
    ("millpond_collapsed_requests_total", By::Remote),
    ("millpond_config_last_reload_success_timestamp_seconds", By::Reload),
    ("millpond_config_last_reload_successful", By::Reload),
    ("millpond_config_reloads_total", By::Reload),
    ("millpond_config_settings_waiting_for_restart", By::Reload),
    ("millpond_connections", By::Web),
    ("millpond_connections_accepted_total", By::Web),
    ("millpond_connections_refused_total", By::Web),
    ("millpond_conversion_efficiency_ratio", By::Web),
    ("millpond_cut_tags_total", By::Tags),
    ("millpond_disk_bytes", By::Remote),
    ("millpond_disk_damaged_total", By::Remote),
    ("millpond_disk_errors_total", By::FullDisk),
    ("millpond_disk_evictions_total", By::Remote),
    ("millpond_disk_failed", By::FullDisk),
    ("millpond_disk_hits_total", By::Remote),
    ("millpond_disk_limit_bytes", By::Constant),
    ("millpond_disk_misses_total", By::Remote),
    ("millpond_disk_pinned_bytes", By::Remote),
    ("millpond_disk_slices", By::Remote),
    ("millpond_disk_untagged_total", By::Tags),
    ("millpond_disk_verified_total", By::Remote),
    ("millpond_disk_writes_passed_over_total", By::Remote),
    ("millpond_disk_writes_total", By::Remote),
    ("millpond_events_total", By::Hooks),
    ("millpond_file_bytes_total", By::Web),
    ("millpond_hook_attempts_total", By::Hooks),
    ("millpond_hook_dropped_events_total", By::Hooks),
    ("millpond_hook_waiting_events", By::Hooks),
    ("millpond_http_first_byte_seconds", By::Web),
    ("millpond_http_request_duration_seconds", By::Web),
    ("millpond_http_requests_total", By::Web),
    ("millpond_http_response_bytes_total", By::Web),
    ("millpond_http_stream_viewers", By::Live),
    ("millpond_index_build_duration_seconds", By::Web),
    ("millpond_index_builds_total", By::Web),
    ("millpond_index_read_bytes_total", By::Web),
    ("millpond_intercepted_bytes_total", By::Intercepted),
    ("millpond_intercepted_connections_total", By::Intercepted),
    ("millpond_intercepted_diverted_total", By::Diverted),
    ("millpond_intercepted_open", By::Intercepted),
    ("millpond_live_asked_packets_total", By::Repairs),
    ("millpond_live_broken_frames_total", By::BadSource),
    ("millpond_live_cues_total", By::Cues),
    ("millpond_live_dropped_frames_total", By::BadSource),
    ("millpond_live_epochs_total", By::BadSource),
    ("millpond_live_frame_age_seconds", By::BadSource),
    ("millpond_live_insertions_total", By::Inserted),
    ("millpond_live_lost_packets_total", By::BadSource),
    ("millpond_live_received_bytes_total", By::BadSource),
    ("millpond_live_received_frames_total", By::BadSource),
    ("millpond_live_reconnections_total", By::BadSource),
    ("millpond_live_refused_total", By::HugeSource),
    ("millpond_live_repaired_packets_total", By::Repairs),
    ("millpond_live_streams", By::BadSource),
    ("millpond_live_time_shift_bytes", By::Shift),
    ("millpond_live_time_shift_failing", By::BadShift),
    ("millpond_live_too_late_packets_total", By::Repairs),
    ("millpond_live_unused_packets_total", By::BadSource),
    ("millpond_log_failing", By::Log),
    ("millpond_log_lines_lost_total", By::Log),
    ("millpond_log_lines_total", By::Log),
    ("millpond_memory_bytes", By::Web),
    ("millpond_memory_entries", By::Web),
    ("millpond_memory_evictions_total", By::Remote),
    ("millpond_memory_hits_total", By::Web),
    ("millpond_memory_kind_bytes", By::Web),
    ("millpond_memory_limit_bytes", By::Constant),
    ("millpond_memory_misses_total", By::Web),
    ("millpond_origin_bandwidth_bytes_per_second", By::Remote),
    ("millpond_origin_bytes_total", By::Remote),
    ("millpond_origin_errors_total", By::Remote),
    ("millpond_origin_requests_in_flight", By::Remote),
    ("millpond_origin_requests_total", By::Remote),
    ("millpond_origin_retries_total", By::Remote),
    ("millpond_place_sent_bytes_total", By::Web),
    ("millpond_prefetched_bytes_total", By::Viewers),
    ("millpond_prefetched_unused_bytes", By::Viewers),
    ("millpond_pushed_bytes_total", By::Pushes),
    ("millpond_pushed_frames_total", By::Pushes),
    ("millpond_pushes", By::Pushes),
    ("millpond_pushes_failed_total", By::Pushes),
    ("millpond_recorded_bytes_total", By::Recordings),
    ("millpond_recorded_file_bytes", By::RecordedFiles),
    ("millpond_recorded_files", By::RecordedFiles),
    ("millpond_recorded_files_completed_total", By::RecordedFiles),
    ("millpond_recorded_files_deleted_total", By::RecordedFiles),
    ("millpond_recorded_frames_total", By::Recordings),
    ("millpond_recording_lost_frames_total", By::SlowRecording),
    ("millpond_recording_uploaded_bytes_total", By::RecordedFiles),
    ("millpond_recording_uploads_failed_total", By::RecordedFiles),
    ("millpond_recording_uploads_total", By::RecordedFiles),
    ("millpond_recordings", By::Recordings),
    ("millpond_recordings_failed_total", By::FullRecording),
    ("millpond_responses_broken_total", By::Web),
    ("millpond_responses_in_flight", By::Web),
    ("millpond_responses_unfinished_total", By::Web),
    ("millpond_rtcp_foreign_feedback_total", By::Repeats),
    ("millpond_rtcp_jitter_seconds", By::Streams),
    ("millpond_rtcp_lost_packets_total", By::Streams),
    ("millpond_rtcp_reports_total", By::Streams),
    ("millpond_rtcp_round_trip_seconds", By::Streams),
    ("millpond_rtmp_connections_refused_total", By::Streams),
    ("millpond_rtmp_sent_bytes_total", By::Rtmp),
    ("millpond_rtmp_viewers", By::Rtmp),
    ("millpond_rtmp_viewers_begun_total", By::Rtmp),
    ("millpond_rtmp_viewers_ended_total", By::Rtmp),
    ("millpond_rtp_bytes_total", By::Streams),
    ("millpond_rtp_dropped_frames_total", By::Streams),
    ("millpond_rtp_failed_sends_total", By::NoNetwork),
    ("millpond_rtp_frames_total", By::Streams),
    ("millpond_rtp_held_frames_total", By::Paced),
    ("millpond_rtp_lagging_frames_total", By::Streams),
    ("millpond_rtp_late_frames_total", By::Streams),
    ("millpond_rtp_loss_events_total", By::Paced),
    ("millpond_rtp_missed_deadlines_total", By::LateOrigin),
    ("millpond_rtp_packets_total", By::Streams),
    ("millpond_rtp_refused_repeats_total", By::Repeats),
    ("millpond_rtp_repeated_packets_total", By::Repeats),
    ("millpond_rtp_sender_seconds_total", By::Streams),
    ("millpond_rtsp_connections_refused_total", By::Streams),
    ("millpond_rtsp_interval_hits_total", By::Streams),
    ("millpond_rtsp_interval_misses_total", By::Streams),
    ("millpond_rtsp_overloaded", By::Overload),
    ("millpond_rtsp_playing", By::Streams),
    ("millpond_rtsp_refused_total", By::Streams),
    ("millpond_sibling_bytes_total", By::Siblings),
    ("millpond_sibling_failures_total", By::Siblings),
    ("millpond_sibling_hits_total", By::Siblings),
    ("millpond_sibling_misses_total", By::Siblings),
    ("millpond_sibling_zone_bytes_total", By::Zones),
    ("millpond_slice_disk_hit_bytes_total", By::Remote),
    ("millpond_slice_hits_total", By::Remote),
    ("millpond_slice_lookup_duration_seconds", By::Remote),
    ("millpond_slice_memory_hit_bytes_total", By::Remote),
    ("millpond_slice_miss_bytes_total", By::Remote),
    ("millpond_slice_miss_duration_seconds", By::Remote),
    ("millpond_slice_misses_total", By::Remote),
    ("millpond_srt_dropped_packets_total", By::Srt),
    ("millpond_srt_foreign_datagrams_total", By::Srt),
    ("millpond_srt_lost_packets_total", By::Srt),
    ("millpond_srt_received_bytes_total", By::Srt),
    ("millpond_srt_received_packets_total", By::Srt),
    ("millpond_srt_refused_total", By::Srt),
    ("millpond_srt_repeated_packets_total", By::Srt),
    ("millpond_srt_sent_bytes_total", By::Srt),
    ("millpond_srt_sent_packets_total", By::Srt),
    ("millpond_srt_sessions", By::Srt),
    ("millpond_srt_sessions_begun_total", By::Srt),
    ("millpond_srt_sessions_ended_total", By::Srt),
    ("millpond_srt_undecrypted_packets_total", By::Srt),
    ("millpond_stale_opens_total", By::Remote),
    ("millpond_stripe_bytes_total", By::Stripes),
    ("millpond_stripe_damaged_reads_total", By::Stripes),
    ("millpond_stripe_failures_total", By::Stripes),
    ("millpond_stripe_repaired_units_total", By::Stripes),
    ("millpond_stripe_requests_in_flight", By::Stripes),
    ("millpond_stripe_requests_total", By::Stripes),
    ("millpond_stripe_resting", By::Stripes),
    ("millpond_tls_certificate_expiry_timestamp_seconds", By::Constant),
    ("millpond_tls_handshakes_failed_total", By::Tls),
    ("millpond_trace_exports_total", By::Traces),
    ("millpond_viewer_seconds_total", By::Statistics),
    ("millpond_viewer_starts_total", By::Statistics),
    ("millpond_viewers", By::Statistics),
    ("millpond_watched_tracks", By::Viewers),
    ("millpond_webrtc_foreign_datagrams_total", By::WebRtc),
    ("millpond_webrtc_sessions", By::WebRtc),
    ("millpond_webrtc_sessions_begun_total", By::WebRtc),
    ("millpond_webrtc_sessions_ended_total", By::WebRtc),
    ("millpond_work_job_duration_seconds", By::Web),
    ("millpond_work_jobs_cancelled_total", By::Heavy),
    ("millpond_work_jobs_refused_total", By::Heavy),
    ("millpond_work_jobs_running", By::Heavy),
    ("millpond_work_jobs_waiting", By::Heavy),
    ("process_cpu_seconds_total", By::Web),
    ("process_max_fds", By::Constant),
    ("process_open_fds", By::Web),
    ("process_resident_memory_bytes", By::Web),
    ("process_start_time_seconds", By::Constant),
    ("process_threads", By::Constant),
];

/// Families that a scenario has to move.
fn rows(by: By) -> Vec<&'static str> {
    TABLE.iter().filter(|(_, row)| *row == by).map(|(family, _)| *family).collect()
}

#[test]
fn every_family_has_a_row() {
    // Families of hooks have samples where there is a hook.
    let server = Server::start(&["--hooks", "http://127.0.0.1:9/"]);
    let began = std::time::Instant::now();
    let mut text = get(server.admin, "/metrics", &[]).text();
    while !text.contains("millpond_hook_attempts_total{") && began.elapsed().as_secs() < 30 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        text = get(server.admin, "/metrics", &[]).text();
    }
    let families: BTreeSet<&str> = watch::families(&text).into_keys().collect();
    let rows: BTreeSet<&str> = TABLE.iter().map(|(family, _)| *family).collect();
    let without: Vec<_> = families.difference(&rows).collect();
    let gone: Vec<_> = rows.difference(&families).collect();
    assert!(without.is_empty() && gone.is_empty(), "no row: {without:?}; no such family: {gone:?}");
    assert_eq!(TABLE.len(), rows.len(), "a family has two rows");
}

#[test]
fn constants_are_what_they_say() {
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let origin = format!("http://127.0.0.1:{}", support::free_port());
    let args = [origin.as_str(), "--memory", "48MiB", "--cache-size", "96MiB", "--tls-self-signed"];
    let server = Server::start(&args);
    let value = |name: &str| server.metric(name, "");
    let started = value("process_start_time_seconds");
    let proc = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", server.process.0.id())).unwrap();
    let after = |text: &str, name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let checks = [
        ("millpond_build_info", server.metric("millpond_build_info", env!("CARGO_PKG_VERSION")) == 1.0),
        // The files' own records take a little of it.
        (
            "millpond_disk_limit_bytes",
            (f64::from(90 << 20)..=f64::from(96 << 20)).contains(&value("millpond_disk_limit_bytes")),
        ),
        ("millpond_memory_limit_bytes", value("millpond_memory_limit_bytes") == f64::from(48 << 20)),
        (
            "millpond_tls_certificate_expiry_timestamp_seconds",
            value("millpond_tls_certificate_expiry_timestamp_seconds") > before,
        ),
        ("process_max_fds", value("process_max_fds") == after(&proc("limits"), "Max open files")),
        ("process_start_time_seconds", started > before - 1.0 && started < before + 120.0),
        // Threads that read files come and go.
        ("process_threads", (value("process_threads") - after(&proc("status"), "Threads:")).abs() <= 16.0),
    ];
    for (name, is_right) in checks {
        assert!(is_right, "{name}: {}", value(name));
    }
    assert_eq!(checks.map(|(name, _)| name).to_vec(), rows(By::Constant));
}

#[test]
fn the_page_of_metrics_has_every_family() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let missing: Vec<_> = TABLE.iter().filter(|(name, _)| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "docs/reference/metrics.md: {missing:?}");
}
