//! `millpond cluster roll`: restarts all nodes, one after the other, while the others serve.

use super::{
    LOOK,
    drain::{self, time},
    emptying::Emptying,
    interrupt::Interrupt,
    seen::{SeenCluster, SeenNode},
};
use crate::commands::{Outcome, admin::Admin};
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_settings::value::show_duration;
use millpond_terminal::say;
use reqwest::Method;
use std::{
    process,
    time::{Duration, Instant},
};

/// Interval between two looks at the command that runs.
const STEP: Duration = Duration::from_millis(100);

pub(super) fn command() -> Command {
    Command::new("roll")
        .about(
            "Restarts the nodes one after the other: drains a node, waits for its viewers, runs a command that restarts it, \
             and waits until it is back. The asked node is the last one. Ctrl-C ends it and the drain of the node at hand",
        )
        .arg(Arg::new("run").long("run").required(true).value_name("COMMAND").help(
            "Command of the shell that restarts a node, such as 'ssh {host} systemctl restart millpond'. {node} is the node's \
             name, {host} the host of its addresses",
        ))
        .arg(drain::limit("Longest wait for the sessions of a node. Those that are left then end with its process"))
        .arg(
            Arg::new("return")
                .long("return")
                .value_name("TIME")
                .default_value("2m")
                .help("Longest wait until a node is back after the command"),
        )
        .arg(
            Arg::new("node")
                .long("node")
                .value_name("NAME")
                .action(ArgAction::Append)
                .help("Restarts this node only. Can be given several times"),
        )
        .arg(Arg::new("from").long("from").value_name("NAME").help("Begins with this node, as after a failure"))
}

/// Why a roll ends before its end.
enum RollEnd {
    /// The operator ended it.
    Interrupted,
    /// A step failed, in words.
    Failed(String),
}

impl From<String> for RollEnd {
    fn from(words: String) -> Self {
        Self::Failed(words)
    }
}

impl From<Box<dyn std::error::Error>> for RollEnd {
    fn from(error: Box<dyn std::error::Error>) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A roll under way.
struct Roll<'a> {
    admin: Admin<'a>,
    command: &'a str,
    /// Whether the nodes were named one by one.
    has_named: bool,
    limit: Duration,
    back: Duration,
    interrupt: Interrupt,
    began: Instant,
}

pub(super) fn run(matches: &ArgMatches) -> Outcome {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let only: Vec<_> = matches.get_many::<String>("node").into_iter().flatten().map(String::as_str).collect();
    let roll = Roll {
        has_named: !only.is_empty(),
        admin: Admin::of(matches),
        command: text("run").unwrap_or_default(),
        limit: time(matches, "limit")?,
        back: time(matches, "return")?,
        interrupt: Interrupt::watch()?,
        began: Instant::now(),
    };
    if roll.command.trim().is_empty() {
        return Err("--run: expected a command that restarts a node, such as 'ssh {host} systemctl restart millpond'"
            .to_owned()
            .into());
    }
    let seen = SeenCluster::read(&roll.admin.get("cluster", &[])?)?;
    let order = order(&seen, &only, text("from"))?;
    // A command that can't be made for one of the nodes is told before the first one drains.
    order.iter().try_for_each(|name| made(roll.command, seen.node(name)?).map(drop))?;
    say!("the order: {}", order.join(", "))?;
    for (at, name) in order.iter().enumerate() {
        if let Err(ended) = roll.node(name) {
            return Err(roll.told(ended, &order[at..]).into());
        }
    }
    roll.say("all", "the nodes have been restarted")
}

impl Roll<'_> {
    /// Prints a step, with the time since the beginning.
    fn say(&self, node: &str, step: &str) -> Outcome {
        say!("{:>7.1} s  {node}: {step}", self.began.elapsed().as_secs_f64())
    }

    /// Restarts a node.
    fn node(&self, name: &str) -> Result<(), RollEnd> {
        let seen = self.seen()?;
        let before = seen.node(name)?.clone();
        if before.run.is_empty() {
            let words =
                format!("{} is of a version that does not tell runs of nodes apart: ask another node", seen.own);
            return Err(RollEnd::Failed(words));
        }
        if !seen.has_other(name) {
            return Err(RollEnd::Failed("no other node takes viewers now: they would have nowhere to go".to_owned()));
        }
        self.pause(Duration::ZERO)?;
        self.admin.send(Method::PUT, &drain::path(name), (&[], None))?;
        self.say(name, &format!("drains; version {}, {} sessions", before.version, before.sessions))?;
        self.empty(name)?;
        self.restart(&before)?;
        let back = self.returned(&before, name == seen.own)?;
        self.say(name, &format!("is back; version {} -> {}", before.version, back.version))?;
        self.admin.send(Method::DELETE, &drain::path(name), (&[], None))?;
        self.resumed(name)?;
        self.pause(seen.lease)?;
        Ok(self.say(name, "takes viewers again")?)
    }

    fn seen(&self) -> Result<SeenCluster, RollEnd> {
        Ok(SeenCluster::read(&self.admin.get("cluster", &[])?)?)
    }

    /// Waits, unless the operator ends the roll.
    fn pause(&self, time: Duration) -> Result<(), RollEnd> {
        let end = Instant::now() + time;
        loop {
            if self.interrupt.is_pressed() {
                return Err(RollEnd::Interrupted);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(STEP));
        }
    }

    /// Waits until a node has no sessions, or the limit is over.
    fn empty(&self, name: &str) -> Result<(), RollEnd> {
        let (began, mut emptying) = (Instant::now(), Emptying::default());
        loop {
            let seen = self.seen()?;
            let node = seen.node(name)?;
            if emptying.is_empty(node, Instant::now()) {
                return Ok(self.say(name, "has no sessions")?);
            }
            if began.elapsed() >= self.limit && node.is_busy() {
                let words = format!("still has {} sessions after {}", node.sessions, show_duration(self.limit));
                return Ok(self.say(name, &words)?);
            }
            self.pause(LOOK)?;
        }
    }

    /// Runs the command for a node.
    fn restart(&self, node: &SeenNode) -> Result<(), RollEnd> {
        let command = made(self.command, node)?;
        self.say(&node.name, &format!("runs {command}"))?;
        let spawned = process::Command::new("sh").args(["-c", &command]).stdin(process::Stdio::null()).spawn();
        let mut child = spawned.map_err(|error| format!("sh: {error}"))?;
        loop {
            match child.try_wait().map_err(|error| format!("{command}: {error}"))? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    // Ctrl-C ends the command too.
                    self.pause(STEP)?;
                    return Err(RollEnd::Failed(format!("{command}: {status}")));
                }
                None => {}
            }
            if let Err(ended) = self.pause(STEP) {
                let _ = (child.kill(), child.wait());
                return Err(ended);
            }
        }
    }

    /// Waits until another run of a node is in the cluster. `is_own` tells that the asked node is meant, which does not answer meanwhile.
    fn returned(&self, before: &SeenNode, is_own: bool) -> Result<SeenNode, RollEnd> {
        let began = Instant::now();
        let mut last = "its former run is still there".to_owned();
        while began.elapsed() < self.back {
            self.pause(LOOK)?;
            let seen = match self.seen() {
                Err(RollEnd::Failed(words)) if is_own => {
                    last = words;
                    continue;
                }
                seen => seen?,
            };
            match seen.node(&before.name) {
                Ok(node) if is_back(node, before) && (!is_own || seen.is_member) => return Ok(node.clone()),
                Ok(node) if node.run == before.run => "its former run is still there".clone_into(&mut last),
                Ok(_) => "it has registered, and does not answer".clone_into(&mut last),
                Err(_) => "it has not registered".clone_into(&mut last),
            }
        }
        Err(RollEnd::Failed(format!("not back after {}: {last}", show_duration(self.back))))
    }

    /// Waits until a node takes viewers.
    fn resumed(&self, name: &str) -> Result<(), RollEnd> {
        let began = Instant::now();
        while self.seen()?.node(name)?.drains {
            if began.elapsed() >= self.back {
                return Err(RollEnd::Failed(format!(
                    "drains still, {} after that was undone",
                    show_duration(self.back)
                )));
            }
            self.pause(LOOK)?;
        }
        Ok(())
    }

    /// Describes an end before the end. `left` are the node at hand and those that follow.
    fn told(&self, ended: RollEnd, left: &[&str]) -> String {
        let name = left.first().copied().unwrap_or_default();
        let again = match self.has_named {
            true => left.iter().map(|name| format!("--node {name}")).collect::<Vec<_>>().join(" "),
            false => format!("--from {name}"),
        };
        let resume = format!("left: {}; resume with {again}", left.join(", "));
        match ended {
            RollEnd::Interrupted => match self.admin.send(Method::DELETE, &drain::path(name), (&[], None)) {
                Ok(_) => format!("interrupted at {name}: its drain is undone. {resume}"),
                Err(error) => format!(
                    "interrupted at {name}, whose drain could not be undone ({error}): millpond cluster drain {name} --undo \
                     does that. {resume}"
                ),
            },
            RollEnd::Failed(words) => format!(
                "{name}: {words}. If it drains, it still does: millpond cluster drain {name} --undo ends that. {resume}"
            ),
        }
    }
}

/// Whether a node is another run than before, and answers.
fn is_back(node: &SeenNode, before: &SeenNode) -> bool {
    node.run != before.run && !node.is_silent
}

/// The names of the nodes in the order of their restarts: by name, the asked node last.
///
/// # Errors
/// A name is that of no node, in words.
fn order<'a>(seen: &'a SeenCluster, only: &[&str], from: Option<&str>) -> Result<Vec<&'a str>, String> {
    only.iter().copied().chain(from).try_for_each(|name| seen.node(name).map(drop))?;
    let names = seen.nodes.iter().map(|node| node.name.as_str());
    let (own, others): (Vec<_>, Vec<_>) = names.partition(|name| *name == seen.own);
    let all = others.into_iter().chain(own).skip_while(|name| from.is_some_and(|from| from != *name));
    let order: Vec<_> = all.filter(|name| only.is_empty() || only.contains(name)).collect();
    match order.is_empty() {
        true => Err("no node is left to restart: --node and --from exclude each other".to_owned()),
        false => Ok(order),
    }
}

/// The command for a node.
///
/// # Errors
/// It needs a host, and the node has none that a shell takes as one word.
fn made(command: &str, node: &SeenNode) -> Result<String, String> {
    let made = command.replace("{node}", &node.name);
    if !made.contains("{host}") {
        return Ok(made);
    }
    let is_plain = |host: &&String| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte));
    let host = node.host.as_ref().filter(is_plain);
    let host = host.ok_or_else(|| format!("node {} has no address with a plain host: use {{node}}", node.name))?;
    Ok(made.replace("{host}", host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, run: &str) -> SeenNode {
        let host = Some(format!("{name}.example"));
        SeenNode { name: name.to_owned(), run: run.to_owned(), host, ..SeenNode::default() }
    }

    fn seen() -> SeenCluster {
        let nodes = ["a", "b", "c", "d"].map(|name| node(name, "1")).into();
        SeenCluster { own: "b".to_owned(), is_member: true, lease: Duration::from_secs(5), nodes }
    }

    #[test]
    fn the_asked_node_is_the_last_one() {
        let seen = seen();
        assert_eq!(order(&seen, &[], None).unwrap(), ["a", "c", "d", "b"]);
        assert_eq!(order(&seen, &[], Some("d")).unwrap(), ["d", "b"]);
        assert_eq!(order(&seen, &["b", "a"], None).unwrap(), ["a", "b"]);
        assert!(order(&seen, &["a"], Some("c")).unwrap_err().contains("no node is left"));
        assert_eq!(order(&seen, &["x"], None).unwrap_err(), "the cluster has no node x: there are a, b, c, d");
    }

    #[test]
    fn a_command_names_its_node() {
        let command = "ssh {host} systemctl restart millpond@{node}";
        assert_eq!(made(command, &node("a", "1")).unwrap(), "ssh a.example systemctl restart millpond@a");
        let strange = SeenNode { host: Some("a;reboot".to_owned()), ..node("a", "1") };
        assert!(made(command, &strange).unwrap_err().contains("no address with a plain host"));
        assert_eq!(made("restart {node}", &strange).unwrap(), "restart a");
    }

    #[test]
    fn a_node_is_back_as_another_run_that_answers() {
        let before = node("a", "1");
        assert!(!is_back(&before, &before) && is_back(&node("a", "2"), &before));
        assert!(!is_back(&SeenNode { is_silent: true, ..node("a", "2") }, &before));
    }
}
