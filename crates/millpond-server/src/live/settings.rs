//! Settings of live sources.

use millpond_settings::{
    At, Host, Setting, Settings,
    value::{self, BadValue, Form, show_duration, show_size},
};
use millpond_stream::{Linger, reception::SourceTransport};
use std::time::Duration;

/// Settings of live sources. A place may have its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSettings {
    /// Time that a source stays open after its last viewer has left.
    pub linger: Linger,
    /// Transport of media from RTSP servers.
    pub transport: SourceTransport,
    /// Whether lost packets of RTSP servers are asked for where the server offers that.
    pub retransmission: bool,
    /// Whether titles of RTSP servers that have an end are stored titles.
    pub stored: bool,
    /// Time limit of a connection, of each request, and of the first frame.
    pub timeout: Duration,
    /// Most bits per second of a variant of an HLS or DASH stream; `None` for the greatest one.
    pub most_bandwidth: Option<u64>,
    /// Duration from which on the next key frame begins another segment.
    pub segment: Duration,
    /// Longest duration of a part; `None` for streams without low latency.
    pub part: Option<Duration>,
    /// Time that playlists list before their end.
    pub window: Duration,
    /// Time for which the past of streams is kept on the disk; zero keeps none.
    pub shift: Duration,
    /// Most bytes on the disk of one stream's past.
    pub shift_size: u64,
}

/// Bounds of `linger`: beyond a day `always` is meant.
const LINGER: (Duration, Duration) = (Duration::ZERO, Duration::from_secs(24 * 3600));
/// Bounds of `source-timeout`: a viewer waits for so long.
const TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(120));
/// Bounds of `live-segment`. Numbers of segments continue those before a restart, because segments last a second or more.
const SEGMENT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Bounds of `live-part`: below them requests outnumber frames, above them parts are as long as segments.
const PART: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Bounds of `playlist-window`: segments are kept in memory for so long.
const WINDOW: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));
/// Longest `time-shift`: a playlist lists all of it.
const SHIFT: Duration = Duration::from_secs(24 * 3600);
/// Least `time-shift-size`: a part may have an eighth of it.
const SHIFT_SIZE: u64 = 16 << 20;
/// Values of `source-transport`.
const TRANSPORTS: [&str; 4] = ["auto", "udp", "tcp", "multicast"];

impl Settings for LiveSettings {
    const LIST: &'static [Setting<Self>] = LIST;
    const OF_PLACES: bool = true;

    fn defaults(_: &Host<'_>) -> Self {
        let seconds = Duration::from_secs(10);
        Self {
            linger: Linger::For(seconds),
            transport: SourceTransport::Auto,
            retransmission: true,
            stored: true,
            timeout: seconds,
            most_bandwidth: None,
            segment: Duration::from_secs(2),
            part: Some(Duration::from_millis(334)),
            window: Duration::from_secs(60),
            shift: Duration::ZERO,
            shift_size: 10 << 30,
        }
    }
}

const LIST: &[Setting<LiveSettings>] = &[
    Setting {
        name: "linger",
        form: Form::Text,
        default: "10s",
        help: "Time that a live source stays open after its last viewer has left, or \"always\"",
        applied: At::Reload,
        apply: |live, text| linger(text).map(|v| live.linger = v),
        show: |live| {
            Some(match live.linger {
                Linger::For(time) => show_duration(time),
                Linger::Always => "always".to_owned(),
            })
        },
    },
    Setting {
        name: "source-transport",
        form: Form::Choice(&TRANSPORTS),
        default: "auto",
        help: "Transport of media from RTSP servers; \"auto\" tries UDP, then TCP if no packet arrives",
        applied: At::Reload,
        apply: |live, text| transport(text).map(|v| live.transport = v),
        show: |live| Some(transport_name(live.transport).to_owned()),
    },
    Setting {
        name: "source-retransmission",
        form: Form::Switch,
        default: "true",
        help: "Request lost packets again from RTSP servers that offer retransmission. After a loss the stream is \
               delayed by the time that retransmission takes",
        applied: At::Reload,
        apply: |live, text| value::switch(text).map(|v| live.retransmission = v),
        show: |live| Some(live.retransmission.to_string()),
    },
    Setting {
        name: "stored-titles",
        form: Form::Switch,
        default: "true",
        help: "Serve what an RTSP server describes with an end as a stored title: whole, with seeking, and from the cache. \
               Media comes by TCP. If false, it is a live stream",
        applied: At::Reload,
        apply: |live, text| value::switch(text).map(|v| live.stored = v),
        show: |live| Some(live.stored.to_string()),
    },
    Setting {
        name: "source-timeout",
        form: Form::Duration,
        default: "10s",
        help: "Time limit for the connection to a live source, for each of its replies, and for its first frame",
        applied: At::Reload,
        apply: |live, text| value::duration_in(text, TIMEOUT.0, TIMEOUT.1).map(|v| live.timeout = v),
        show: |live| Some(show_duration(live.timeout)),
    },
    Setting {
        name: "source-kbps",
        form: Form::Count,
        default: "0",
        help: "Highest BANDWIDTH, in kbit/s, of the variant that is received of an HLS stream, or of the pictures of a DASH stream; 0 \
               takes the highest one. If all are higher, the lowest one is received",
        applied: At::Reload,
        apply: |live, text| value::count(text, 0).map(|v| live.most_bandwidth = bits(v)),
        show: |live| Some((live.most_bandwidth.unwrap_or(0) / 1000).to_string()),
    },
    Setting {
        name: "live-segment",
        form: Form::Duration,
        default: "2s",
        help: "Shortest duration of a live stream's segments. A segment ends at the first key frame after this time",
        applied: At::Reload,
        apply: |live, text| value::duration_in(text, SEGMENT.0, SEGMENT.1).map(|v| live.segment = v),
        show: |live| Some(show_duration(live.segment)),
    },
    Setting {
        name: "live-part",
        form: Form::Text,
        default: "334ms",
        help: "Longest duration of the parts of live segments; \"off\" switches low latency off",
        applied: At::Reload,
        apply: |live, text| part(text).map(|v| live.part = v),
        show: |live| Some(live.part.map_or_else(|| "off".to_owned(), show_duration)),
    },
    Setting {
        name: "playlist-window",
        form: Form::Duration,
        default: "60s",
        help: "Duration of the media that playlists of live streams list. They list six segments or more",
        applied: At::Reload,
        apply: |live, text| value::duration_in(text, WINDOW.0, WINDOW.1).map(|v| live.window = v),
        show: |live| Some(show_duration(live.window)),
    },
    Setting {
        name: "time-shift",
        form: Form::Duration,
        default: "0s",
        help: "Duration of the past of each live stream that is kept on the disk, at most 24h; 0s keeps none",
        applied: At::Reload,
        apply: |live, text| value::duration_in(text, Duration::ZERO, SHIFT).map(|v| live.shift = v),
        show: |live| Some(show_duration(live.shift)),
    },
    Setting {
        name: "time-shift-size",
        form: Form::Size,
        default: "10GiB",
        help: "Limit of the disk space for the past of one live stream",
        applied: At::Reload,
        apply: |live, text| shift_size(text).map(|v| live.shift_size = v),
        show: |live| Some(show_size(live.shift_size)),
    },
];

/// Bits per second of kbit/s; 0 is no limit.
fn bits(kbps: usize) -> Option<u64> {
    (kbps > 0).then(|| (kbps as u64).saturating_mul(1000))
}

fn shift_size(text: &str) -> Result<u64, BadValue> {
    match value::size(text)? {
        bytes if bytes < SHIFT_SIZE => Err(BadValue::new("a size of at least 16MiB such as \"10GiB\"")),
        bytes => Ok(bytes),
    }
}

fn linger(text: &str) -> Result<Linger, BadValue> {
    match text {
        "always" => Ok(Linger::Always),
        text => match value::duration_in(text, LINGER.0, LINGER.1) {
            Ok(time) => Ok(Linger::For(time)),
            Err(_) => Err(BadValue::new("a time of at most a day such as 10s, or \"always\"")),
        },
    }
}

fn part(text: &str) -> Result<Option<Duration>, BadValue> {
    match text {
        "off" => Ok(None),
        text => match value::duration_in(text, PART.0, PART.1) {
            Ok(time) => Ok(Some(time)),
            Err(_) => Err(BadValue::new("a time from 100ms to 1s such as 334ms, or \"off\"")),
        },
    }
}

fn transport(text: &str) -> Result<SourceTransport, BadValue> {
    let known = [SourceTransport::Auto, SourceTransport::Udp, SourceTransport::Tcp, SourceTransport::Multicast];
    let found = known.into_iter().find(|transport| transport_name(*transport) == text);
    found.ok_or_else(|| BadValue::from(Form::Choice(&TRANSPORTS)))
}

fn transport_name(transport: SourceTransport) -> &'static str {
    let [auto, udp, tcp, multicast] = TRANSPORTS;
    match transport {
        SourceTransport::Auto => auto,
        SourceTransport::Udp => udp,
        SourceTransport::Tcp => tcp,
        SourceTransport::Multicast => multicast,
    }
}
