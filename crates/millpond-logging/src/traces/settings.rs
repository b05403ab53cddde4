//! Settings of traces.

use millpond_settings::{
    At, ConfigError, Host, Network, Setting, Settings, Sources,
    value::{self, BadValue, Form},
};

/// Settings of traces.
#[derive(Debug, Clone, Default)]
pub struct TraceSettings {
    /// Base URL of the collector; `None` switches traces off.
    pub endpoint: Option<String>,
    /// Share of the requests without a parent that are traced, from 0 to 1.
    pub ratio: f64,
    /// Networks of clients whose `traceparent` is continued.
    pub parents: Vec<Network>,
}

impl Settings for TraceSettings {
    const LIST: &'static [Setting<Self>] = LIST;

    fn defaults(_: &Host<'_>) -> Self {
        Self { endpoint: None, ratio: 0.01, parents: Vec::new() }
    }

    fn complete(&mut self, sources: &Sources) -> Vec<ConfigError> {
        let is_refused = self.endpoint.is_some() && !cfg!(feature = "traces");
        is_refused.then(|| sources.absent("trace-endpoint", "traces")).into_iter().collect()
    }
}

const LIST: &[Setting<TraceSettings>] = &[
    Setting {
        name: "trace-endpoint",
        form: Form::Text,
        default: "off",
        help: "URL of the collector of OpenTelemetry traces (OTLP over HTTP), such as http://127.0.0.1:4318, or off",
        applied: At::Restart(|new, old| new.endpoint.clone_from(&old.endpoint)),
        apply: |traces, text| endpoint(text).map(|v| traces.endpoint = v),
        show: |traces| traces.endpoint.as_ref().map(|url| without_secrets(url)),
    },
    Setting {
        name: "trace-ratio",
        form: Form::Text,
        default: "0.01",
        help: "Share of the requests that are traced, from 0 to 1. Clients in trace-parents decide for their own \
               requests",
        applied: At::Restart(|new, old| new.ratio = old.ratio),
        apply: |traces, text| ratio(text).map(|v| traces.ratio = v),
        show: |traces| Some(traces.ratio.to_string()),
    },
    Setting {
        name: "trace-parents",
        form: Form::List,
        default: "none",
        help: "Networks of clients whose traces (traceparent) are continued, such as 10.0.0.0/8",
        applied: At::Restart(|new, old| new.parents.clone_from(&old.parents)),
        apply: |traces, text| networks(text).map(|v| traces.parents = v),
        show: |traces| {
            let shown: Vec<_> = traces.parents.iter().map(ToString::to_string).collect();
            (!shown.is_empty()).then(|| shown.join(","))
        },
    },
];

fn endpoint(text: &str) -> Result<Option<String>, BadValue> {
    if text == "off" {
        return Ok(None);
    }
    let url = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let plain = url.filter(|url| url.query().is_none() && url.fragment().is_none());
    plain.map(|_| Some(text.to_owned())).ok_or_else(|| BadValue::new("a URL such as \"http://127.0.0.1:4318\", or off"))
}

/// The URL without its password.
fn without_secrets(text: &str) -> String {
    let Ok(mut url) = url::Url::parse(text) else { return text.to_owned() };
    if url.password().is_some() {
        let _ = url.set_password(Some("***"));
        return url.to_string();
    }
    text.to_owned()
}

fn ratio(text: &str) -> Result<f64, BadValue> {
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| BadValue::new("a share from 0 to 1 such as \"0.01\""))
}

fn networks(text: &str) -> Result<Vec<Network>, BadValue> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let parsed = value::list(text).iter().map(|text| Network::parse(text)).collect::<Option<Vec<_>>>();
    parsed.ok_or_else(|| BadValue::new("networks such as \"10.0.0.0/8\", or \"none\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        assert_eq!(endpoint("http://127.0.0.1:4318").unwrap().as_deref(), Some("http://127.0.0.1:4318"));
        assert_eq!(endpoint("off").unwrap(), None);
        assert!(["collector:4318", "ftp://a", "http://a?b", ""].iter().all(|text| endpoint(text).is_err()));
        assert_eq!(without_secrets("http://u:secret@h:1/"), "http://u:***@h:1/");
        assert!(ratio("0.5").is_ok() && ratio("1.1").is_err() && ratio("NaN").is_err());
        assert!(networks("none").unwrap().is_empty() && networks("10.0.0.1/8").is_err());
        assert_eq!(networks("10.0.0.0/8,::1").unwrap().len(), 2);
    }
}
