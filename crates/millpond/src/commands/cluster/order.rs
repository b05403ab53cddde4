//! The order in which a roll restarts nodes.

use super::seen::SeenCluster;

/// Returns the names of the nodes in the order of their restarts: by name, the asked node last. `only` are the nodes that were named, and
/// `from` is the first one. `command` makes the command that begins with a node.
///
/// # Errors
/// A name is that of no node, or no node is there, in words.
pub(super) fn order<'a>(
    seen: &'a SeenCluster,
    (only, from): (&[&str], Option<&str>),
    command: impl Fn(&str) -> String,
) -> Result<Vec<&'a str>, String> {
    if seen.nodes.is_empty() {
        return Err("the cluster has no node now: neither the asked one nor another one is registered".to_owned());
    }
    if !only.is_empty() && from.is_some() {
        return Err("--node and --from exclude each other: --node names all nodes that are restarted".to_owned());
    }
    only.iter().try_for_each(|name| seen.node(name).map(drop))?;
    let (own, others): (Vec<_>, Vec<_>) = seen.names().into_iter().partition(|name| *name == seen.own);
    let all = others.into_iter().chain(own).filter(|name| only.is_empty() || only.contains(name));
    let Some(from) = from else { return Ok(all.collect()) };
    let order: Vec<_> = all.clone().skip_while(|name| *name != from).collect();
    match order.is_empty() {
        true => Err(absent(seen, from, &all.collect::<Vec<_>>(), command)),
        false => Ok(order),
    }
}

/// Describes a first node that is not there, and the ways to go on.
fn absent(seen: &SeenCluster, from: &str, order: &[&str], command: impl Fn(&str) -> String) -> String {
    let fault = seen.node(from).err().unwrap_or_default();
    // The asked node is the last one, whatever its name is.
    let next = order.iter().find(|name| **name > from && **name != seen.own).or(order.last());
    let next = next.map(|next| format!(". To go on without it: {}", command(next))).unwrap_or_default();
    format!("--from {from}: {fault}. If {from} is down, start it, and repeat the command{next}")
}

#[cfg(test)]
mod tests {
    use super::super::seen::SeenNode;
    use super::*;
    use std::time::Duration;

    fn seen() -> SeenCluster {
        let nodes = ["a", "b", "c", "d"].map(|name| SeenNode { name: name.to_owned(), ..SeenNode::default() });
        SeenCluster { own: "b".to_owned(), is_member: true, lease: Duration::from_secs(5), nodes: nodes.into() }
    }

    #[test]
    fn the_asked_node_is_the_last_one() {
        let seen = seen();
        let order = |only: &[&str], from| order(&seen, (only, from), str::to_owned);
        assert_eq!(order(&[], None).unwrap(), ["a", "c", "d", "b"]);
        assert_eq!(order(&[], Some("d")).unwrap(), ["d", "b"]);
        assert_eq!(order(&["b", "a"], None).unwrap(), ["a", "b"]);
        assert!(order(&["a"], Some("c")).unwrap_err().contains("exclude each other"));
        assert_eq!(order(&["x"], None).unwrap_err(), "the cluster has no node x: there are a, b, c, d");
        let empty = SeenCluster { nodes: Vec::new(), ..self::seen() };
        assert!(super::order(&empty, (&[], None), str::to_owned).unwrap_err().contains("no node now"));
    }

    #[test]
    fn a_first_node_that_is_gone_is_told_with_the_next_one() {
        let seen = seen();
        let command = |name: &str| format!("millpond cluster roll --from {name}");
        let told = |from: &str| order(&seen, (&[], Some(from)), command).unwrap_err();
        assert_eq!(
            told("bb"),
            "--from bb: the cluster has no node bb: there are a, b, c, d. If bb is down, start it, and repeat the command. To go on \
             without it: millpond cluster roll --from c"
        );
        assert!(told("aa").ends_with("--from c"), "b is the asked node");
        assert!(told("x").ends_with("--from b"));
    }
}
