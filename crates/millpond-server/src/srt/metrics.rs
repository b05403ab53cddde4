//! Metrics of SRT.

use millpond_srt::Counts;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Why a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reason {
    /// Its client ended it.
    Client,
    /// An operator ended it.
    Operator,
    /// No packet, or no media, of its client arrived for long.
    Silent,
    /// Another publisher took its place.
    Replaced,
    /// The media of a publisher can't be received, or a key was used up.
    Failed,
    /// The stream ended, or can't be played.
    Stream,
    /// The rights of its client ended.
    Rights,
    /// The server ended.
    Shutdown,
}

impl Reason {
    const ALL: [Self; 8] = [
        Self::Client,
        Self::Operator,
        Self::Silent,
        Self::Replaced,
        Self::Failed,
        Self::Stream,
        Self::Rights,
        Self::Shutdown,
    ];

    /// The value of the label `reason`.
    const fn label(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Operator => "operator",
            Self::Silent => "silent",
            Self::Replaced => "replaced",
            Self::Failed => "failed",
            Self::Stream => "stream",
            Self::Rights => "rights",
            Self::Shutdown => "shutdown",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabels {
    mode: &'static str,
}

/// Two numbers of each kind: of publishers and of viewers.
#[derive(Clone, Debug)]
struct ByMode<T> {
    publish: T,
    play: T,
}

/// The metrics of SRT.
#[derive(Clone, Debug)]
pub(crate) struct SrtMetrics {
    open: ByMode<Gauge>,
    begun: ByMode<Counter>,
    ended: [Counter; Reason::ALL.len()],
    /// Requests that were refused.
    pub(super) refused: Counter,
    /// Datagrams of no session that were no handshake.
    pub(super) foreign: Counter,
    received: Traffic,
    sent: Traffic,
    lost: Counter,
    undecrypted: Counter,
    repeated: Counter,
    dropped: Counter,
}

#[derive(Clone, Debug)]
struct Traffic {
    packets: Counter,
    bytes: Counter,
}

impl SrtMetrics {
    /// Registers the metrics.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let open = Family::<ModeLabels, Gauge>::default();
        registry.register("srt_sessions", "SRT sessions that have not ended, by what the client does", open.clone());
        let begun = Family::<ModeLabels, Counter>::default();
        registry.register(
            "srt_sessions_begun",
            "SRT sessions that were accepted, by what the client does",
            begun.clone(),
        );
        let reasons = Family::<ReasonLabels, Counter>::default();
        registry.register("srt_sessions_ended", "SRT sessions that have ended, by reason", reasons.clone());
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let received = Traffic {
            packets: counter("srt_received_packets", "Packets with media that publishers sent by SRT"),
            bytes: counter("srt_received_bytes", "Bytes of media that publishers sent by SRT"),
        };
        let sent = Traffic {
            packets: counter("srt_sent_packets", "Packets with media sent by SRT, repetitions included"),
            bytes: counter("srt_sent_bytes", "Bytes of media sent by SRT, repetitions included"),
        };
        let of_mode = |mode| ModeLabels { mode };
        Self {
            open: ByMode {
                publish: open.get_or_create_owned(&of_mode("publish")),
                play: open.get_or_create_owned(&of_mode("play")),
            },
            begun: ByMode {
                publish: begun.get_or_create_owned(&of_mode("publish")),
                play: begun.get_or_create_owned(&of_mode("play")),
            },
            ended: Reason::ALL.map(|of| reasons.get_or_create_owned(&ReasonLabels { reason: of.label() })),
            refused: counter("srt_refused", "SRT connections that were refused"),
            foreign: counter("srt_foreign_datagrams", "Datagrams at the SRT port that belong to no session"),
            received,
            sent,
            lost: counter("srt_lost_packets", "Packets of publishers by SRT that came too late, or never"),
            undecrypted: counter("srt_undecrypted_packets", "Packets of publishers by SRT whose key is not known"),
            repeated: counter("srt_repeated_packets", "Packets sent again by SRT because they were lost"),
            dropped: counter(
                "srt_dropped_packets",
                "Packets for viewers by SRT that were dropped because they were too late",
            ),
        }
    }

    /// Counts a session that begins.
    pub(super) fn begin(&self, publishes: bool) {
        self.open.of(publishes).inc();
        self.begun.of(publishes).inc();
    }

    /// Counts a session that ends.
    pub(super) fn end(&self, publishes: bool, reason: Reason) {
        self.open.of(publishes).dec();
        for (of, counter) in Reason::ALL.iter().zip(&self.ended) {
            if *of == reason {
                counter.inc();
            }
        }
    }

    /// Adds what a connection has counted since `before`.
    pub(super) fn add(&self, before: &Counts, now: &Counts) {
        self.received.add(before.received, now.received);
        self.sent.add(before.sent, now.sent);
        self.lost.inc_by(now.lost - before.lost);
        self.undecrypted.inc_by(now.undecrypted - before.undecrypted);
        self.repeated.inc_by(now.repeated - before.repeated);
        self.dropped.inc_by(now.dropped - before.dropped);
    }
}

impl<T> ByMode<T> {
    fn of(&self, publishes: bool) -> &T {
        if publishes { &self.publish } else { &self.play }
    }
}

impl Traffic {
    fn add(&self, before: (u64, u64), now: (u64, u64)) {
        self.packets.inc_by(now.0 - before.0);
        self.bytes.inc_by(now.1 - before.1);
    }
}
