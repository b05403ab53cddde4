//! Settings of SRT.

use millpond_settings::{
    At, ConfigError, Host, Setting, Settings, Sources,
    value::{self, Form, show_duration},
};
use millpond_srt::Passphrase;
use std::{net::SocketAddr, time::Duration};

/// Latency where no setting has another one: that of libsrt.
const LATENCY: Duration = Duration::from_millis(120);
/// Bounds of the latency: handshakes have 16 bits for its milliseconds.
const LATENCIES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(60));

/// Settings of SRT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrtSettings {
    /// Address of the UDP port; `None` where SRT is off.
    pub address: Option<SocketAddr>,
    /// The passphrase of all streams, which may be too short; `None` where nothing is encrypted.
    passphrase: Option<Secret>,
    /// Least time for which payloads are held for lost ones.
    pub latency: Duration,
}

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl SrtSettings {
    /// The passphrase of all streams; `None` where nothing is encrypted.
    pub fn passphrase(&self) -> Option<Passphrase> {
        self.passphrase.as_ref().and_then(|Secret(text)| Passphrase::new(text).ok())
    }
}

impl Settings for SrtSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { address: None, passphrase: None, latency: LATENCY }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        match &self.passphrase {
            // The value is in no error: it may be a part of the real one.
            Some(Secret(text)) => {
                let bad = Passphrase::new(text).err();
                bad.map(|bad| sources.conflict("srt-passphrase", bad.to_string())).into_iter().collect()
            }
            None => Vec::new(),
        }
    }
}

const LIST: &[Setting<SrtSettings>] = &[
    Setting {
        name: "srt",
        form: Form::Address,
        default: "off",
        help: "Address of SRT, such as :9710: one UDP port for all publishers and viewers",
        applied: At::Restart(|new, old| new.address = old.address),
        apply: |srt, text| value::address(text).map(|v| srt.address = Some(v)),
        show: |srt| srt.address.map(|address| address.to_string()),
    },
    Setting {
        name: "srt-passphrase",
        form: Form::Text,
        default: "none: nothing is encrypted",
        help: "Passphrase of 10 to 79 characters that publishers and viewers by SRT must have. Media is encrypted with it. Other users of \
               the machine can read it on the command line, but not in a file or the environment",
        applied: At::Reload,
        apply: |srt, text| {
            srt.passphrase = Some(Secret(text.to_owned()));
            Ok(())
        },
        show: |srt| srt.passphrase.as_ref().map(|_| "***".to_owned()),
    },
    Setting {
        name: "srt-latency",
        form: Form::Duration,
        default: "120ms",
        help: "Time for which SRT holds payloads for lost ones, from 20ms to 60s. The longer one of both sides holds",
        applied: At::Reload,
        apply: |srt, text| value::duration_in(text, LATENCIES.0, LATENCIES.1).map(|v| srt.latency = v),
        show: |srt| Some(show_duration(srt.latency)),
    },
];
