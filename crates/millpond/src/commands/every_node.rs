//! Requests to all nodes of a cluster, by the admin address of one of them, and the nodes that did not do what they were asked for.

use super::{Outcome, admin::Admin};
use clap::{Arg, ArgAction};
use millpond_terminal::out;
use reqwest::Method;
use serde_json::Value;

/// The flag by which a command of one server is one of all nodes.
pub(super) fn flag() -> Arg {
    let help = "Does it at all nodes of the cluster, and prints the answer of each. Ends with an error if a node has not done it";
    Arg::new("cluster").long("cluster").action(ArgAction::SetTrue).help(help)
}

/// Asks all nodes, and prints their report. Returns the reason why some have not done it; `None` if all have.
pub(super) fn ask(
    admin: &Admin<'_>,
    method: Method,
    path: &str,
    sent: (&[(&str, &str)], Option<Value>),
) -> Result<Option<String>, Box<dyn std::error::Error>> {
    let reply = admin.send(method, &format!("cluster/{path}"), sent)?;
    out::json(&reply)?;
    Ok(undone(&serde_json::from_str(&reply)?))
}

/// The outcome of such requests.
pub(super) fn outcome(undone: Vec<String>) -> Outcome {
    if undone.is_empty() { Ok(()) } else { Err(undone.join("\n").into()) }
}

/// The reason why some nodes have not done it, by their report; `None` if all have.
fn undone(report: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let failed = report["failed"].as_array().into_iter().flatten();
    let mut lines: Vec<_> =
        failed.map(|node| format!("not done by {}: {}", text(&node["name"]), text(&node["error"]))).collect();
    let left_out = report["left-out"].as_u64().unwrap_or(0);
    if left_out > 0 {
        lines.push(format!("{left_out} nodes were not asked: at most 256 are"));
    }
    if lines.is_empty() && report["done"].as_array().is_none_or(Vec::is_empty) {
        lines.push("no node has done it".to_owned());
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_that_fails_and_nodes_that_were_not_asked_are_errors() {
        let done = json!([{ "name": "a", "answer": {} }]);
        assert_eq!(undone(&json!({ "done": done, "failed": [], "left-out": 0 })), None);
        let failed = json!([{ "name": "b", "error": "x" }, { "name": "c", "error": "y" }]);
        let some = undone(&json!({ "done": done, "failed": failed, "left-out": 2 })).unwrap();
        assert_eq!(some, "not done by b: x\nnot done by c: y\n2 nodes were not asked: at most 256 are");
        assert_eq!(undone(&json!({ "done": [], "failed": [], "left-out": 0 })).as_deref(), Some("no node has done it"));
    }
}
