//! `millpond cluster roll`: restarts all nodes, one after the other, while the others serve.

use super::{
    LOOK,
    count::counted,
    drain::{self, time},
    emptying::Emptying,
    interrupt::Interrupt,
    order::order,
    seen::{SeenCluster, SeenNode},
};
use crate::commands::{Outcome, admin::Admin, shell_word::shell_word};
use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};
use millpond_settings::value::show_duration;
use millpond_terminal::say;
use reqwest::Method;
use std::{
    cell::Cell,
    process,
    time::{Duration, Instant},
};

/// Interval between two looks at the command that runs.
const STEP: Duration = Duration::from_millis(100);

pub(super) fn command() -> Command {
    Command::new("roll")
        .about(
            "Restarts the nodes one after the other: drains a node, waits for its viewers, runs a command that restarts it, \
             and waits until it is back. The asked node is the last one. Ctrl-C ends it and the drain of the node at hand. A node \
             that drains already is restarted too, and drains on",
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
        .arg(Arg::new("end-drain").long("end-drain").value_name("NAME").action(ArgAction::Append).help(
            "Ends the drain of this node after its restart, though it drains already: a roll that failed began it. Can be given \
             several times",
        ))
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

/// The drain of the node at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RollDrain {
    /// The node does not drain.
    None,
    /// The roll ends it: the roll began it, or was told to end it.
    Own,
    /// It was there before the roll, and stays.
    Former,
}

/// A roll under way.
struct Roll<'a> {
    admin: Admin<'a>,
    command: &'a str,
    /// The flags of this roll that one that goes on with it has too, each after a space.
    flags: String,
    /// Whether the nodes were named one by one.
    has_named: bool,
    /// Nodes that drain already, and whose drains the roll ends.
    ended: Vec<&'a str>,
    drain: Cell<RollDrain>,
    limit: Duration,
    back: Duration,
    interrupt: Interrupt,
    began: Instant,
}

pub(super) fn run(matches: &ArgMatches) -> Outcome {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let names = |name: &str| -> Vec<&str> {
        matches.get_many::<String>(name).into_iter().flatten().map(String::as_str).collect()
    };
    let only = names("node");
    let roll = Roll {
        has_named: !only.is_empty(),
        admin: Admin::of(matches),
        command: text("run").unwrap_or_default(),
        flags: flags(matches),
        ended: names("end-drain"),
        drain: Cell::new(RollDrain::None),
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
    let order = order(&seen, (&only, text("from")), |name| roll.again(&[name], &[]))?;
    roll.ended.iter().try_for_each(|name| seen.node(name).map(drop))?;
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

/// The flags that a roll which goes on has too, each after a space.
fn flags(matches: &ArgMatches) -> String {
    let given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
    let flag = |name: &str| matches.get_one::<String>(name).map(|value| format!(" --{name} {}", shell_word(value)));
    ["run", "limit", "return"].into_iter().filter(given).filter_map(flag).collect()
}

impl Roll<'_> {
    /// Prints a step, with the time since the beginning.
    fn say(&self, node: &str, step: &str) -> Outcome {
        say!("{:>7.1} s  {node}: {step}", self.began.elapsed().as_secs_f64())
    }

    /// Restarts a node.
    fn node(&self, name: &str) -> Result<(), RollEnd> {
        self.drain.set(RollDrain::None);
        let seen = self.seen()?;
        let before = seen.node(name)?.clone();
        if before.run.is_empty() {
            let words =
                format!("{} is of a version that does not tell runs of nodes apart: ask another node", seen.own);
            return Err(RollEnd::Failed(words));
        }
        let is_former = before.drains && !self.ended.contains(&name);
        self.drain.set(if is_former { RollDrain::Former } else { RollDrain::None });
        if !is_former && !seen.has_other(name) {
            return Err(RollEnd::Failed(self.without_others(&seen, name)));
        }
        self.pause(Duration::ZERO)?;
        let facts = format!("version {}, {}", before.version, counted(before.sessions, "session"));
        if is_former {
            self.say(name, &format!("drains already, and will drain on; {facts}"))?;
        } else {
            self.drain.set(RollDrain::Own);
            self.admin.send(Method::PUT, &drain::path(name), (&[], None))?;
            self.say(name, &format!("drains; {facts}"))?;
        }
        self.empty(name)?;
        self.restart(&before)?;
        let back = self.returned(&before, name == seen.own)?;
        self.say(name, &format!("is back; version {} -> {}", before.version, back.version))?;
        if is_former {
            return Ok(self.say(name, &format!("drains on; to end that: {}", drain::undo(&self.admin, name)))?);
        }
        self.admin.send(Method::DELETE, &drain::path(name), (&[], None))?;
        self.resumed(name)?;
        self.drain.set(RollDrain::None);
        self.pause(seen.lease)?;
        Ok(self.say(name, "takes viewers again")?)
    }

    /// Describes a cluster in which no other node takes viewers.
    fn without_others(&self, seen: &SeenCluster, name: &str) -> String {
        let mut words = "no other node takes viewers now: they would have nowhere to go".to_owned();
        if let Some(other) = seen.nodes.iter().find(|node| node.name != name && node.drains) {
            let undo = drain::undo(&self.admin, &other.name);
            words.push_str(&format!("; {} drains, to end that: {undo}", other.name));
        }
        words
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
                let sessions = counted(node.sessions, "session");
                let words = format!("still has {sessions} after {}", show_duration(self.limit));
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

    /// The command that goes on with some nodes. `ended` are nodes whose drains it ends.
    fn again(&self, left: &[&str], ended: &[&str]) -> String {
        let flag = |name: &'static str| move |value: &&str| format!(" --{name} {}", shell_word(value));
        let nodes: String = match self.has_named {
            true => left.iter().map(flag("node")).collect(),
            false => left.iter().take(1).map(flag("from")).collect(),
        };
        let ended: String = ended.iter().map(flag("end-drain")).collect();
        self.admin.command(&format!("cluster roll{}{nodes}{ended}", self.flags))
    }

    /// Describes an end before the end. `left` are the node at hand and those that follow.
    fn told(&self, ended: RollEnd, left: &[&str]) -> String {
        let name = left.first().copied().unwrap_or_default();
        let undo = || drain::undo(&self.admin, name);
        let is_failure = matches!(ended, RollEnd::Failed(_));
        let mut is_undone = false;
        let fault = match (ended, self.drain.get()) {
            (RollEnd::Interrupted, RollDrain::None) => format!("interrupted at {name}"),
            (RollEnd::Interrupted, RollDrain::Former) => {
                format!("interrupted at {name}, which drains on as before the roll")
            }
            (RollEnd::Interrupted, RollDrain::Own) => {
                match self.admin.send(Method::DELETE, &drain::path(name), (&[], None)) {
                    Ok(_) => {
                        is_undone = true;
                        format!("interrupted at {name}: its drain is undone")
                    }
                    Err(error) => {
                        format!(
                            "interrupted at {name}, whose drain could not be undone ({error}). To end it: {}",
                            undo()
                        )
                    }
                }
            }
            (RollEnd::Failed(words), RollDrain::Own) => {
                format!("{name}: {words}. If it drains, it still does; to end that: {}", undo())
            }
            (RollEnd::Failed(words), RollDrain::None | RollDrain::Former) => format!("{name}: {words}"),
        };
        let is_own = self.drain.get() == RollDrain::Own || self.ended.contains(&name);
        let mut ended: Vec<_> =
            self.ended.iter().copied().filter(|node| *node != name && left.contains(node)).collect();
        let others = self.again(left.get(1..).unwrap_or_default(), &ended);
        ended.extend(Some(name).filter(|_| is_own && !is_undone));
        let mut lines = vec![fault, format!("left: {}; to resume: {}", left.join(", "), self.again(left, &ended))];
        if is_failure && left.len() > 1 {
            lines.push(format!("to go on without {name}: {others}"));
        }
        lines.join("\n")
    }
}

/// Whether a node is another run than before, and answers.
fn is_back(node: &SeenNode, before: &SeenNode) -> bool {
    node.run != before.run && !node.is_silent
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

    #[test]
    fn a_command_names_its_node() {
        let command = "ssh {host} systemctl restart millpond@{node}";
        assert_eq!(made(command, &node("a", "1")).unwrap(), "ssh a.example systemctl restart millpond@a");
        let strange = SeenNode { host: Some("a;reboot".to_owned()), ..node("a", "1") };
        assert!(made(command, &strange).unwrap_err().contains("no address with a plain host"));
        assert_eq!(made("restart {node}", &strange).unwrap(), "restart a");
    }

    /// A roll of a server that nobody reaches, by its flags.
    fn roll_of(args: &[&str], check: impl Fn(&Roll<'_>)) {
        let matches = command().args(crate::commands::admin::address()).get_matches_from([&["roll"], args].concat());
        let names = |name: &str| -> Vec<&str> {
            matches.get_many::<String>(name).into_iter().flatten().map(String::as_str).collect()
        };
        check(&Roll {
            admin: Admin::of(&matches),
            command: "x",
            flags: flags(&matches),
            has_named: !names("node").is_empty(),
            ended: names("end-drain"),
            drain: Cell::new(RollDrain::None),
            limit: Duration::ZERO,
            back: Duration::ZERO,
            interrupt: Interrupt::default(),
            began: Instant::now(),
        });
    }

    #[test]
    fn a_failure_names_the_commands_that_go_on() {
        roll_of(&["--run", "ssh {host} up", "--limit", "1s", "--admin", "edge:1"], |roll| {
            let failed = || RollEnd::Failed("not back".to_owned());
            roll.drain.set(RollDrain::Own);
            assert_eq!(
                roll.told(failed(), &["c", "d"]),
                "c: not back. If it drains, it still does; to end that: millpond cluster drain c --undo --admin edge:1\n\
                 left: c, d; to resume: millpond cluster roll --run 'ssh {host} up' --limit 1s --from c --end-drain c --admin edge:1\n\
                 to go on without c: millpond cluster roll --run 'ssh {host} up' --limit 1s --from d --admin edge:1"
            );
            // A drain of before the roll is no matter of the roll.
            roll.drain.set(RollDrain::Former);
            let told = roll.told(failed(), &["d"]);
            assert!(told.starts_with("d: not back\nleft: d; to resume: ") && !told.contains("drain"), "{told}");
            let told = roll.told(RollEnd::Interrupted, &["d"]);
            assert!(told.starts_with("interrupted at d, which drains on as before the roll\n"), "{told}");
        });
        roll_of(&["--run", "up", "--node", "b", "--node", "c", "--end-drain", "c"], |roll| {
            assert_eq!(
                roll.told(RollEnd::Interrupted, &["b", "c"]),
                "interrupted at b\nleft: b, c; to resume: millpond cluster roll --run up --node b --node c --end-drain c"
            );
        });
    }

    #[test]
    fn a_node_is_back_as_another_run_that_answers() {
        let before = node("a", "1");
        assert!(!is_back(&before, &before) && is_back(&node("a", "2"), &before));
        assert!(!is_back(&SeenNode { is_silent: true, ..node("a", "2") }, &before));
    }
}
