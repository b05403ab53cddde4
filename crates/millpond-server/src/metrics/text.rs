//! The two text formats of metrics, and which of them a client is given.
//!
//! OpenMetrics 1.0 is what the registry writes. The older text format of Prometheus (0.0.4) differs in the names of
//! counters' families, has neither units nor an end mark, and knows no type `info`.

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextFormat {
    /// Prometheus' own, version 0.0.4: what people and most tools read.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl TextFormat {
    /// The format for a client with these fields `Accept` (RFC 9110 12.5.1): OpenMetrics where it is named and weighs
    /// no less than plain text.
    pub fn accepted<'a>(fields: impl Iterator<Item = &'a str>) -> Self {
        let (mut open, mut plain) = (0.0, 0.0_f64);
        for range in fields.flat_map(|field| field.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let mut weight: f64 = 1.0;
            let mut is_known = true;
            for (key, value) in parts.filter_map(|part| part.split_once('=')) {
                match key.trim().to_ascii_lowercase().as_str() {
                    "q" => weight = value.trim().parse().unwrap_or(0.0),
                    "version" => is_known = matches!(value.trim().trim_matches('"'), "1.0.0" | "0.0.1" | "0.0.4"),
                    _ => {}
                }
            }
            match name.as_str() {
                "application/openmetrics-text" if is_known => open = weight.max(open),
                "text/plain" | "text/*" if is_known => plain = weight.max(plain),
                _ => {}
            }
        }
        if open > 0.0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The same metrics in the text format of Prometheus.
pub(super) fn from_open_metrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // The help of a family comes before its type, and the type decides the name.
    let mut help = None;
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), told) => help = Some((name, told.unwrap_or_default())),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    kind => ("", kind),
                };
                if let Some((_, told)) = help.take().filter(|(of, _)| *of == name) {
                    out.push_str(&format!("# HELP {name}{suffix} {told}\n"));
                }
                out.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
            }
            (Some("#"), ..) => {}
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_the_format_that_they_name() {
        for (accept, format) in [
            ("", TextFormat::Prometheus),
            ("*/*", TextFormat::Prometheus),
            ("text/html, */*;q=0.8", TextFormat::Prometheus),
            ("text/plain", TextFormat::Prometheus),
            ("application/openmetrics-text", TextFormat::OpenMetrics),
            ("application/openmetrics-text; version=1.0.0; charset=utf-8", TextFormat::OpenMetrics),
            ("application/openmetrics-text;q=0", TextFormat::Prometheus),
            ("application/openmetrics-text; version=9.0.0", TextFormat::Prometheus),
            ("text/plain;version=0.0.4, application/openmetrics-text;q=0.5", TextFormat::Prometheus),
            // As Prometheus 2 and 3 ask.
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                TextFormat::OpenMetrics,
            ),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", TextFormat::Prometheus),
        ] {
            assert_eq!(TextFormat::accepted([accept].into_iter()), format, "{accept}");
        }
        let fields = ["text/html", "application/openmetrics-text"];
        assert_eq!(
            TextFormat::accepted(fields.into_iter()),
            TextFormat::OpenMetrics,
            "a list goes on in the next field"
        );
    }

    #[test]
    fn families_of_counters_are_named_as_their_samples() {
        let open = "# HELP a_bytes Bytes sent.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\na_bytes_total 3\n\
                    # HELP build What runs.\n# TYPE build info\nbuild_info{version=\"1\"} 1\n\
                    # HELP t_seconds Time.\n# TYPE t_seconds histogram\nt_seconds_sum 1.0\nt_seconds_count 1\n\
                    t_seconds_bucket{le=\"+Inf\"} 1\n# EOF\n";
        let plain = "# HELP a_bytes_total Bytes sent.\n# TYPE a_bytes_total counter\na_bytes_total 3\n\
                     # HELP build_info What runs.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n\
                     # HELP t_seconds Time.\n# TYPE t_seconds histogram\nt_seconds_sum 1.0\nt_seconds_count 1\n\
                     t_seconds_bucket{le=\"+Inf\"} 1\n";
        assert_eq!(from_open_metrics(open), plain);
    }
}
