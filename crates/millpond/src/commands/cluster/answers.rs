//! `millpond cluster status --ask`: the state of each node, by its own answer.

use crate::commands::{Outcome, admin::Admin};
use millpond_terminal::{out, say};
use serde_json::Value;

/// Prints a line for each node. Ends with an error if one does not answer.
pub(super) fn run(admin: &Admin<'_>, is_json: bool) -> Outcome {
    let fleet = admin.get("cluster/fleet", &[])?;
    if is_json {
        out::json(&format!("{fleet:#}"))?;
    } else {
        say!(
            "{:<20} {:<10} {:>10} {:>8} {:>8} {:>10} {:>8} {:>6} STATE",
            "NODE",
            "VERSION",
            "UPTIME",
            "VIEWERS",
            "SESSIONS",
            "SENT",
            "ERRORS/S",
            "CPU"
        )?;
        fleet["nodes"].as_array().into_iter().flatten().try_for_each(|node| say!("{}", line(node)))?;
    }
    silent(&fleet).map_or(Ok(()), |why| Err(why.into()))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The line of a node.
fn line(node: &Value) -> String {
    let (name, report) = (text(&node["name"]), &node["report"]);
    if let Some(error) = node["error"].as_str() {
        return format!("{name:<20} no answer: {error}");
    }
    let whole = |field: &str| report[field].as_u64().unwrap_or(0);
    let number = |field: &str| report[field].as_f64().unwrap_or(0.0);
    let waiting: Vec<_> = report["waiting-for"].as_array().into_iter().flatten().map(text).collect();
    let state = if waiting.is_empty() { "ready".to_owned() } else { format!("waits for {}", waiting.join(", ")) };
    format!(
        "{name:<20} {:<10} {:>9.0}s {:>8} {:>8} {:>9.1}M {:>8.1} {:>6.2} {state}",
        text(&report["version"]),
        number("uptime-seconds"),
        whole("viewers"),
        whole("sessions"),
        number("sent-bps") / 1e6,
        number("errors-per-second"),
        number("cpu"),
    )
}

/// The reason why the state of some nodes is unknown; `None` if all have answered.
fn silent(fleet: &Value) -> Option<String> {
    let nodes = fleet["nodes"].as_array().into_iter().flatten();
    let names: Vec<_> = nodes.filter(|node| !node["error"].is_null()).map(|node| text(&node["name"])).collect();
    let left_out = fleet["left-out"].as_u64().unwrap_or(0);
    match (names.is_empty(), left_out) {
        (false, _) => Some(format!("no answer of {}", names.join(", "))),
        (true, 0) => None,
        (true, _) => Some(format!("{left_out} nodes were not asked: at most 256 are")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_has_a_line_and_a_silent_one_its_reason() {
        let report = json!({
            "version": "0.1.0", "uptime-seconds": 61.4, "viewers": 3, "sessions": 1, "sent-bps": 2_500_000,
            "errors-per-second": 0.5, "cpu": 0.25, "waiting-for": [],
        });
        let a = json!({ "name": "a", "error": null, "report": report });
        let told = line(&a);
        let words: Vec<_> = told.split_whitespace().collect();
        assert_eq!(words, ["a", "0.1.0", "61s", "3", "1", "2.5M", "0.5", "0.25", "ready"]);
        let b = json!({ "name": "b", "error": "node b has not answered within 1 s", "report": null });
        assert!(line(&b).ends_with("no answer: node b has not answered within 1 s"), "{}", line(&b));
        assert_eq!(silent(&json!({ "nodes": [a, b], "left-out": 0 })).as_deref(), Some("no answer of b"));
        assert_eq!(silent(&json!({ "nodes": [a], "left-out": 0 })), None);
        assert!(silent(&json!({ "nodes": [a], "left-out": 1 })).unwrap().starts_with("1 nodes were not asked"));
    }
}
