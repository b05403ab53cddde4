//! Settings of RTSP, those of the stream engine included.

use crate::limits::LimitSettings;
use crate::live::ChannelConfig;
use millpond_access::UserFile;
use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    value::{self, BadValue, Form, show_duration},
};
use millpond_stream::{
    Bounds, Groups, Lateness, NoGroups, NoticeBoard, Options, ROUND, RateRule, broadcast::JOINED, reception::Upstream,
};
use millpond_utc::WallClock;
use std::{
    collections::HashSet,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use url::Url;

/// Settings of RTSP.
#[derive(Debug, Clone)]
pub struct RtspSettings {
    /// Address of RTSP.
    pub address: SocketAddr,
    /// Address of RTSP over TLS, where TLS is on.
    pub rtsps: Option<SocketAddr>,
    /// File of the users.
    pub users_file: Option<PathBuf>,
    /// Users that may play, read from that file; `None` admits everyone.
    pub users: Option<UserFile>,
    /// Silence of a client after which its session ends.
    pub session_timeout: Duration,
    /// Caching window of interval caching.
    pub window: Duration,
    /// How far deadlines move after a missed one.
    pub lateness: Lateness,
    /// Longest time by which a stored title starts later, so that no frame is late over a slow link.
    pub start_wait: Duration,
    /// Rule for the rate of RTP over UDP.
    pub rate_rule: RateRule,
    /// Interval between the rounds in which packets are sent.
    pub round: Duration,
    /// Limits of admission.
    pub bounds: Bounds,
    /// Channels.
    pub channels: Vec<ChannelConfig>,
    /// Multicast groups of channels.
    pub multicast: Option<Groups>,
    /// Server that clients are sent to when this one is full.
    pub overflow: Option<Url>,
}

/// Bounds of `rtsp-session-timeout`: clients report every 5 s and ask twice within the timeout, and lose a packet now and then.
const SESSION_TIMEOUT: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(3600));

/// The longest `rtsp-round`. Packets leave late by one round at most, and receivers that buffer 52 ms (AMPS) see no gap.
const LONGEST_ROUND: Duration = Duration::from_millis(40);

/// The longest `rtsp-start`.
const START_WAIT: Duration = Duration::from_secs(60);

/// The shortest caching window with which viewers can join the phase of a channel.
const LEAST_WINDOW: Duration = Duration::from_secs(2 * JOINED.as_secs());
/// The longest caching window.
const WINDOW: Duration = Duration::from_secs(600);

impl Settings for RtspSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8554)),
            rtsps: None,
            users_file: None,
            users: None,
            // RFC 2326 12.37: 60 s where nothing is said.
            session_timeout: Duration::from_secs(60),
            window: Duration::from_secs(10),
            lateness: Lateness::default(),
            // GStreamer's source gives UDP up after 5 s without a packet, FFmpeg after 10 s.
            start_wait: Duration::from_secs(4),
            rate_rule: RateRule::default(),
            round: ROUND,
            bounds: Bounds {
                sessions: 16_384,
                sessions_per_client: 8192,
                waiting_per_client: 2048,
                bandwidth: None,
                origin_bandwidth: None,
            },
            channels: Vec::new(),
            multicast: None,
            overflow: None,
        }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        if !sources.has("rtsp-sessions-per-client") {
            self.bounds.sessions_per_client = (self.bounds.sessions / 2).max(1);
        }
        let mut errors = self.read_users(sources);
        errors.extend(self.multicast_conflict().map(|reason| sources.conflict("rtsp-multicast", reason)));
        errors.extend(self.window_conflict().map(|reason| sources.conflict("rtsp-window", reason)));
        if self.rate_rule == RateRule::Tfrc && !cfg!(feature = "tfrc") {
            errors.push(sources.absent("rtsp-rate-control", "tfrc"));
        }
        errors
    }
}

const LIST: &[Setting<RtspSettings>] = &[
    Setting {
        name: "rtsp",
        form: Form::Address,
        default: "0.0.0.0:8554",
        help: "Address of RTSP. RTP packets are sent from free ports of its host",
        applied: At::Reload,
        apply: |rtsp, text| value::address(text).map(|v| rtsp.address = v),
        show: |rtsp| Some(rtsp.address.to_string()),
    },
    Setting {
        name: "rtsps",
        form: Form::Address,
        default: "0.0.0.0:8322 with TLS on, else off",
        help: "Address of RTSP over TLS",
        applied: At::Reload,
        apply: |rtsp, text| value::address(text).map(|v| rtsp.rtsps = Some(v)),
        show: |rtsp| rtsp.rtsps.map(|address| address.to_string()),
    },
    Setting {
        name: "rtsp-users",
        form: Form::Path,
        default: "none: no password",
        help: "File of RTSP users in lines of name:password, for Digest authentication",
        applied: At::Reload,
        apply: |rtsp, text| value::path(text).map(|v| rtsp.users_file = Some(v)),
        show: |rtsp| rtsp.users_file.as_ref().map(|path| path.display().to_string()),
    },
    Setting {
        name: "rtsp-session-timeout",
        form: Form::Duration,
        default: "60s",
        help: "An RTSP session ends after this time without a request or report of its client. Media that the client \
               takes on the RTSP connection keeps the session",
        applied: At::Reload,
        apply: |rtsp, text| {
            value::duration_in(text, SESSION_TIMEOUT.0, SESSION_TIMEOUT.1).map(|v| rtsp.session_timeout = v)
        },
        show: |rtsp| Some(show_duration(rtsp.session_timeout)),
    },
    Setting {
        name: "rtsp-window",
        form: Form::Duration,
        default: "10s",
        help: "An RTSP session that starts within this time after another session of the same asset is served from \
               memory. 0s switches this off",
        applied: At::Restart(|new, old| new.window = old.window),
        apply: |rtsp, text| value::duration_in(text, Duration::ZERO, WINDOW).map(|v| rtsp.window = v),
        show: |rtsp| Some(show_duration(rtsp.window)),
    },
    Setting {
        name: "rtsp-deadlines",
        form: Form::Choice(&Lateness::NAMES),
        default: "none",
        help: "How far RTSP playback shifts, in periods of 200 ms, when the origin is late; \"all\" shifts by the whole delay",
        applied: At::Reload,
        apply: |rtsp, text| lateness(text).map(|v| rtsp.lateness = v),
        show: |rtsp| Some(rtsp.lateness.name().to_owned()),
    },
    Setting {
        name: "rtsp-start",
        form: Form::Duration,
        default: "4s",
        help: "Longest time by which an RTSP stream starts later, so that no frame is late over a slow link to its origin; \
               0 starts at once",
        applied: At::Reload,
        apply: |rtsp, text| value::duration_in(text, Duration::ZERO, START_WAIT).map(|v| rtsp.start_wait = v),
        show: |rtsp| Some(show_duration(rtsp.start_wait)),
    },
    Setting {
        name: "rtsp-rate-control",
        form: Form::Choice(&RateRule::NAMES),
        default: "off",
        help: "Rate control of RTP over UDP: \"tfrc\" sends to each viewer no more than TCP would (RFC 5348) and drops frames that would be late",
        applied: At::Reload,
        apply: |rtsp, text| rate_rule(text).map(|v| rtsp.rate_rule = v),
        show: |rtsp| Some(rtsp.rate_rule.name().to_owned()),
    },
    Setting {
        name: "rtsp-round",
        form: Form::Duration,
        default: "5ms",
        help: "Interval between the rounds in which RTP packets are sent, 5ms to 40ms. Longer rounds take less CPU, \
               and packets leave up to one round later",
        applied: At::Restart(|new, old| new.round = old.round),
        apply: |rtsp, text| value::duration_in(text, ROUND, LONGEST_ROUND).map(|v| rtsp.round = v),
        show: |rtsp| Some(show_duration(rtsp.round)),
    },
    Setting {
        name: "rtsp-mbps",
        form: Form::Count,
        default: "0: no limit",
        help: "Total media rate of playing RTSP sessions, in Mbit/s; above it new sessions are refused (453)",
        applied: At::Reload,
        apply: |rtsp, text| value::count(text, 0).map(|v| rtsp.bounds.bandwidth = bits(v)),
        show: |rtsp| Some((rtsp.bounds.bandwidth.unwrap_or(0) / 1_000_000).to_string()),
    },
    Setting {
        name: "rtsp-origin-mbps",
        form: Form::Count,
        default: "0: no limit",
        help: "Total media rate, in Mbit/s for each place, of the RTSP sessions whose media is in no cache and is \
               read from the origin. Above it new sessions are refused (453)",
        applied: At::Reload,
        apply: |rtsp, text| value::count(text, 0).map(|v| rtsp.bounds.origin_bandwidth = bits(v)),
        show: |rtsp| Some((rtsp.bounds.origin_bandwidth.unwrap_or(0) / 1_000_000).to_string()),
    },
    Setting {
        name: "rtsp-sessions",
        form: Form::Count,
        default: "16384",
        help: "Highest number of RTSP sessions",
        applied: At::Reload,
        apply: |rtsp, text| value::count(text, 1).map(|v| rtsp.bounds.sessions = v),
        show: |rtsp| Some(rtsp.bounds.sessions.to_string()),
    },
    Setting {
        name: "rtsp-sessions-per-client",
        form: Form::Count,
        default: "half of rtsp-sessions",
        help: "Highest number of RTSP sessions of one client address (IPv6: of one /64 network)",
        applied: At::Reload,
        apply: |rtsp, text| value::count(text, 1).map(|v| rtsp.bounds.sessions_per_client = v),
        show: |rtsp| Some(rtsp.bounds.sessions_per_client.to_string()),
    },
    Setting {
        name: "rtsp-waiting-per-client",
        form: Form::Count,
        default: "2048",
        help: "Highest number of RTSP sessions of one client address that have not begun to play",
        applied: At::Reload,
        apply: |rtsp, text| value::count(text, 1).map(|v| rtsp.bounds.waiting_per_client = v),
        show: |rtsp| Some(rtsp.bounds.waiting_per_client.to_string()),
    },
    Setting {
        name: "rtsp-channels",
        form: Form::List,
        default: "none",
        help: "Channels: assets that play in a loop, at the same position for all viewers. A channel is the path of \
               an asset, or a named list such as news=films/a.mp4 films/b.mp4. A name with one asset and a number of \
               phases, such as movie=films/a.mp4 phases=4, plays the title several times, at equal distances",
        applied: At::Reload,
        apply: |rtsp, text| channels(text).map(|v| rtsp.channels = v),
        show: |rtsp| Some(rtsp.channels.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")),
    },
    Setting {
        name: "rtsp-multicast",
        form: Form::Text,
        default: "none",
        help: "Multicast group, port and hop limit of the first channel, such as 239.192.0.1:5004/16. Further \
               channels have the next addresses",
        applied: At::Restart(|new, old| new.multicast = old.multicast),
        apply: |rtsp, text| groups(text).map(|v| rtsp.multicast = Some(v)),
        show: |rtsp| rtsp.multicast.map(|groups| groups.to_string()),
    },
    Setting {
        name: "rtsp-overflow",
        form: Form::Text,
        default: "none: clients are refused",
        help: "RTSP server to which clients are redirected when this one is full, such as rtsp://other:8554",
        applied: At::Reload,
        apply: |rtsp, text| rtsp_url(text).map(|v| rtsp.overflow = Some(v)),
        show: |rtsp| rtsp.overflow.as_ref().map(Url::to_string),
    },
];

fn lateness(text: &str) -> Result<Lateness, BadValue> {
    Lateness::named(text).ok_or_else(|| Form::Choice(&Lateness::NAMES).into())
}

fn rate_rule(text: &str) -> Result<RateRule, BadValue> {
    RateRule::named(text).ok_or_else(|| Form::Choice(&RateRule::NAMES).into())
}

fn channels(text: &str) -> Result<Vec<ChannelConfig>, BadValue> {
    let parse = |text: String| ChannelConfig::parse(&text);
    let channels: Vec<_> = value::list(text).into_iter().map(parse).collect::<Result<_, _>>()?;
    let mut names = HashSet::new();
    let phased = channels.iter().filter(|channel| channel.phases.is_some()).map(|channel| channel.name.clone());
    let mut all = channels.iter().flat_map(ChannelConfig::streams).chain(phased);
    all.all(|name| names.insert(name)).then_some(channels).ok_or_else(ChannelConfig::expected)
}

fn groups(text: &str) -> Result<Groups, BadValue> {
    text.parse().map_err(|error: NoGroups| BadValue::new(error.to_string()))
}

fn rtsp_url(text: &str) -> Result<Url, BadValue> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "rtsp" | "rtsps") && url.has_host());
    url.ok_or_else(|| BadValue::new("a URL such as \"rtsp://other:8554\""))
}

/// Bits a second of Mbit/s; 0 is no limit.
fn bits(mbps: usize) -> Option<u64> {
    (mbps > 0).then(|| (mbps as u64).saturating_mul(1_000_000))
}

impl RtspSettings {
    /// Settings of the stream engine, which connects to sources by `upstream`, and numbers runs by `clock`.
    pub(crate) fn engine(
        &self,
        limits: &LimitSettings,
        clock: WallClock,
        upstream: Upstream,
        notices: Option<Arc<dyn NoticeBoard>>,
        on_thread_start: fn(),
    ) -> Options {
        Options {
            address: self.address.ip(),
            threads: limits.workers,
            on_thread_start,
            bounds: self.bounds,
            round: self.round,
            window: self.window,
            lateness: self.lateness,
            start_wait: self.start_wait,
            rate_rule: self.rate_rule,
            channels: self.channels.iter().flat_map(ChannelConfig::streams).collect(),
            max_streams: limits.max_streams,
            stream_memory: limits.stream_memory,
            viewer_queue: limits.viewer_queue,
            dropping: limits.dropping,
            clock,
            upstream,
            notices,
            groups: self.multicast,
        }
    }

    /// Reads the file of users; returns everything that is wrong with it.
    fn read_users(&mut self, sources: &Sources) -> Vec<ConfigError> {
        let Some(path) = self.users_file.clone() else { return Vec::new() };
        match UserFile::read(path, "rtsp-users", sources) {
            Ok(users) => {
                self.users = Some(users);
                Vec::new()
            }
            Err(errors) => errors,
        }
    }

    fn window_conflict(&self) -> Option<String> {
        let phased = self.channels.iter().find(|channel| channel.phases.is_some())?;
        let why = || {
            format!(
                "viewers of {} join a phase within rtsp-window: at least {}",
                phased.name,
                show_duration(LEAST_WINDOW)
            )
        };
        (self.window < LEAST_WINDOW).then(why)
    }

    fn multicast_conflict(&self) -> Option<String> {
        let groups = self.multicast?;
        let channels: usize = self.channels.iter().map(|channel| channel.streams().len()).sum();
        match channels.checked_sub(1) {
            _ if self.address.is_ipv6() => Some(format!("rtsp-multicast is over IPv4, but rtsp is {}", self.address)),
            None => Some("rtsp-multicast is for channels: name assets in rtsp-channels".to_owned()),
            Some(last) if groups.address(last).is_none() => {
                Some(format!("the group of channel {channels} lies behind 239.255.255.255: begin lower"))
            }
            Some(_) => None,
        }
    }
}
