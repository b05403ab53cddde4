//! `millpond cluster assign`: the nodes that serve an object, as lines of text.

use super::count::counted;
use serde_json::Value;

/// Returns the lines on the nodes that serve an object, and on room for a stream of it.
pub(super) fn lines(answer: &Value) -> Vec<String> {
    let text = |name: &str| answer[name].as_str().unwrap_or("").to_owned();
    let homes: Vec<_> = list(&answer["homes"]).filter_map(Value::as_str).collect();
    let mut lines =
        vec![format!("{} ({}, {}, revision {})", text("object"), text("kind"), text("assignment"), answer["revision"])];
    lines.extend(list(&answer["candidates"]).enumerate().map(|(at, candidate)| candidate_line(at + 1, candidate)));
    lines.push(compared(answer));
    lines.extend(order(answer));
    lines.push(format!(
        "homes of its first bytes: {}",
        if homes.is_empty() { "none".to_owned() } else { homes.join(", ") }
    ));
    lines.extend(answer["zone-home"].as_str().map(|home| format!("home of them in this node's zone: {home}")));
    lines.extend(list(&answer["book"]).map(room_line));
    lines
}

fn candidate_line(rank: usize, candidate: &Value) -> String {
    let text = |name: &str| candidate[name].as_str().unwrap_or("");
    let [load, bound] = ["load-bps", "bound-bps"].map(|name| mbps(&candidate[name]).unwrap_or_default());
    let zone = candidate["zone"].as_str().map(|zone| format!(", zone {zone}")).unwrap_or_default();
    format!("{rank}. {}: {}{zone}, load {load} of at most {bound}", text("name"), text("standing"))
}

/// The line with the number of nodes that were compared.
fn compared(answer: &Value) -> String {
    match (list(&answer["candidates"]).next(), answer["kind"].as_str()) {
        (None, Some("pushed")) => "no node has the stream: nobody pushes it".to_owned(),
        (None, _) => "no dispenser takes streams".to_owned(),
        (Some(_), _) => format!("of {}", counted(answer["dispensers"].as_u64().unwrap_or(0), "dispenser")),
    }
}

/// The line with the rule of the order; `None` where there is nothing to order.
fn order(answer: &Value) -> Option<String> {
    list(&answer["candidates"]).nth(1)?;
    let by_hash = "by hash and capacity: each path has an order of its own";
    let words = match (answer["kind"].as_str(), answer["assignment"].as_str()) {
        (Some("live"), _) => format!("a node that has the stream already, then {by_hash}"),
        (_, Some("rr")) => "nodes with room in turn, then full ones".to_owned(),
        _ => {
            let zone = answer["zone"].as_str().map(|zone| format!(" (those of zone {zone} first)")).unwrap_or_default();
            format!("nodes with room{zone}, then those above their bound, then full ones; among these {by_hash}")
        }
    };
    Some(format!("the order: {words}"))
}

/// A line of the book: the part of a node or a storage that a stream would have.
fn room_line(room: &Value) -> String {
    let of = |name: &str| mbps(&room[name]);
    let [wanted, booked] = ["wanted-bps", "booked-bps"].map(|name| of(name).unwrap_or_default());
    let resource = room["resource"].as_str().unwrap_or("");
    let fits = if room["fits"] == true { "fits" } else { "does not fit" };
    match (of("bound-bps"), of("free-bps")) {
        (Some(bound), Some(free)) => {
            format!("{resource}: {booked} booked of {bound}, {free} free; a stream of {wanted} {fits}")
        }
        _ => format!("{resource}: {booked} booked, not limited; a stream of {wanted} {fits}"),
    }
}

fn mbps(value: &Value) -> Option<String> {
    value.as_f64().map(|bps| format!("{:.1}M", bps / 1e6))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_is_told_with_its_zones() {
        let candidate = |name: &str, zone: Option<&str>, standing: &str| json!({ "name": name, "zone": zone, "standing": standing, "load-bps": 1_000_000, "bound-bps": 125_000_000, "score": 0.5 });
        let answer = |zone: Option<&str>, count: u64| {
            let all = [candidate("a", zone, "has room"), candidate("b", None, "full")];
            json!({
                "object": "films/a.mp4", "kind": "stored", "assignment": "sosd", "revision": 7, "dispensers": count, "zone": zone,
                "candidates": &all[..usize::try_from(count.min(2)).unwrap()], "homes": ["b"], "zone-home": "a",
            })
        };
        assert_eq!(
            lines(&answer(Some("east"), 2)),
            [
                "films/a.mp4 (stored, sosd, revision 7)",
                "1. a: has room, zone east, load 1.0M of at most 125.0M",
                "2. b: full, load 1.0M of at most 125.0M",
                "of 2 dispensers",
                "the order: nodes with room (those of zone east first), then those above their bound, then full ones; among these by \
                 hash and capacity: each path has an order of its own",
                "homes of its first bytes: b",
                "home of them in this node's zone: a",
            ]
        );
        assert!(lines(&answer(None, 2))[4].starts_with("the order: nodes with room, then those above"));
        assert_eq!(lines(&answer(None, 1))[2], "of 1 dispenser");
        assert_eq!(lines(&answer(None, 0))[1], "no dispenser takes streams");
        let live = json!({ "kind": "live", "assignment": "sosd", "candidates": [{}, {}] });
        let pushed = json!({ "kind": "pushed", "dispensers": 3 });
        assert_eq!(compared(&pushed), "no node has the stream: nobody pushes it");
        assert!(order(&live).unwrap().starts_with("the order: a node that has the stream already"));
    }

    #[test]
    fn a_line_of_the_book_tells_the_free_part() {
        let room = |bound: Option<u64>, free: Option<u64>, fits| {
            room_line(&json!({
                "resource": "storage:films/a", "wanted-bps": 2_000_000, "booked-bps": 9_500_000, "bound-bps": bound, "free-bps": free, "fits": fits
            }))
        };
        let line = room(Some(10_000_000), Some(500_000), false);
        assert_eq!(line, "storage:films/a: 9.5M booked of 10.0M, 0.5M free; a stream of 2.0M does not fit");
        assert_eq!(room(None, None, true), "storage:films/a: 9.5M booked, not limited; a stream of 2.0M fits");
    }
}
