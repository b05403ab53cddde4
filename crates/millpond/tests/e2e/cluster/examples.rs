//! The files of `examples/cluster`: what they say is started as it stands there, each machine in a network namespace.

use crate::support::{
    Running, memory_folder,
    namespaces::{Namespace, is_alone, shell},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const PROGRAMS: [&str; 3] = ["etcd", "versitygw", "curl"];

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A program as an example has it.
#[derive(Debug)]
struct Service {
    name: String,
    address: String,
    command: Vec<String>,
    env: BTreeMap<String, String>,
}

impl Service {
    /// Applies `change` to all arguments and values.
    fn change(&mut self, change: impl Fn(&str) -> String) {
        self.command.iter_mut().chain(self.env.values_mut()).for_each(|text| *text = change(text));
    }

    /// Starts it on its machine.
    fn start(&self, machines: &BTreeMap<String, Namespace>, scratch: &Path) -> Running {
        let (program, args) = self.command.split_first().unwrap();
        let program = match program.rsplit('/').next().unwrap() {
            "millpond" => env!("CARGO_BIN_EXE_millpond"),
            other => other,
        };
        let log = fs::File::create(scratch.join(format!("{}.log", self.name))).unwrap();
        let mut command = machines[&self.address].command(program);
        command.args(args).envs(&self.env).stdout(Stdio::null()).stderr(log);
        Running(command.spawn().unwrap())
    }
}

/// The part of YAML that compose.yaml needs: mappings, lists of texts, and texts.
#[derive(Debug)]
enum Yaml {
    Map(BTreeMap<String, Yaml>),
    List(Vec<String>),
    Text(String),
}

impl Yaml {
    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
        let lines: Vec<_> = lines.map(|line| (line.len() - line.trim_start().len(), line.trim())).collect();
        let mut rest = lines.as_slice();
        let all = Self::block(&mut rest);
        assert!(rest.is_empty(), "not understood: {rest:?}");
        all
    }

    /// Takes the lines that are indented like the first one.
    fn block(rest: &mut &[(usize, &str)]) -> Self {
        let indent = rest[0].0;
        let (mut map, mut list) = (BTreeMap::new(), Vec::new());
        while let Some(((depth, line), after)) = rest.split_first()
            && *depth >= indent
        {
            assert_eq!(*depth, indent, "{line}");
            *rest = after;
            if let Some(item) = line.strip_prefix("- ") {
                list.push(plain(item));
                continue;
            }
            let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("not understood: {line}"));
            let value = match (value.trim(), rest.first()) {
                ("", Some((deeper, _))) if *deeper > indent => Self::block(rest),
                (text, _) => Self::Text(plain(text)),
            };
            assert!(map.insert(key.to_owned(), value).is_none(), "{key} twice");
        }
        assert!(map.is_empty() || list.is_empty());
        if list.is_empty() { Self::Map(map) } else { Self::List(list) }
    }

    fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(map) => map.get(key),
            _ => None,
        }
    }

    fn map(&self) -> impl Iterator<Item = (&String, &Self)> {
        let Self::Map(map) = self else { panic!("no mapping: {self:?}") };
        map.iter()
    }

    fn list(&self) -> &[String] {
        let Self::List(list) = self else { panic!("no list: {self:?}") };
        list
    }

    fn text(&self) -> &str {
        let Self::Text(text) = self else { panic!("no text: {self:?}") };
        text
    }
}

fn plain(text: &str) -> String {
    text.trim_matches('"').to_owned()
}

/// The services of compose.yaml. Names of hosts become addresses, and volumes become folders of `scratch`.
fn composed(scratch: &Path) -> Vec<Service> {
    let all = Yaml::parse(&example("compose.yaml"));
    let services = all.get("services").unwrap();
    let address = |service: &Yaml| {
        let network = service.get("networks").and_then(|all| all.get("default")).unwrap();
        network.get("ipv4_address").unwrap().text().to_owned()
    };
    let hosts: Vec<_> = services.map().map(|(name, service)| (name.clone(), address(service))).collect();
    let service = |(name, service): (&String, &Yaml)| {
        let words = |key| service.get(key).map(Yaml::list).unwrap_or_default();
        let command = [words("entrypoint"), words("command")].concat();
        let env = service.get("environment").into_iter().flat_map(Yaml::map);
        let env = env.map(|(name, value)| (name.clone(), value.text().to_owned())).collect();
        let mut found = Service { name: name.clone(), address: address(service), command, env };
        for volume in words("volumes") {
            let (from, to) = volume.split_once(':').unwrap();
            let folder = scratch.join(from.trim_start_matches("./"));
            fs::create_dir_all(&folder).unwrap();
            found.change(|text| match text.strip_suffix(to) {
                Some(before) if before.is_empty() || before.ends_with('=') => format!("{before}{}", folder.display()),
                _ => text.to_owned(),
            });
        }
        for (host, address) in &hosts {
            found.change(|text| text.replace(&format!("//{host}:"), &format!("//{address}:")));
        }
        found
    };
    services.map().map(service).collect()
}

/// Variables of a file of `NAME=value` lines.
fn variables(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once('=').unwrap()).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A unit of systemd on machine `number`. `%E` is the folder of its files, `%S` and `%C` are folders of `scratch`.
fn unit(name: &str, number: usize, scratch: &Path) -> Service {
    let text = example(&format!("systemd/{name}.service")).replace("\\\n", " ");
    let folder = |kind: &str| scratch.join(format!("machine{number}")).join(kind);
    let mut env = BTreeMap::new();
    let mut command = String::new();
    for line in text.lines().filter(|line| !line.starts_with(['#', '[']) && !line.is_empty()) {
        let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("not understood: {line}"));
        let value = value.replace("%S", folder("state").to_str().unwrap());
        let value = value.replace("%C", folder("cache").to_str().unwrap());
        match key {
            "EnvironmentFile" => {
                let file = value.strip_prefix("%E/millpond/").unwrap();
                let own = if file == "machine.env" { format!("machine{number}/{file}") } else { file.to_owned() };
                env.extend(variables(&example(&format!("systemd/{own}"))));
            }
            "Environment" => env.extend(variables(&value)),
            "ExecStart" => command = value,
            "StateDirectory" => fs::create_dir_all(folder("state").join(value)).unwrap(),
            "CacheDirectory" => fs::create_dir_all(folder("cache").join(value)).unwrap(),
            _ => {}
        }
    }
    let expanded = |word: &str| {
        env.iter().fold(word.to_owned(), |word, (name, value)| word.replace(&format!("${{{name}}}"), value))
    };
    let command: Vec<_> = command.split_whitespace().map(expanded).collect();
    assert!(!command.is_empty() && !command.concat().contains("${"), "{command:?}");
    Service { name: format!("{name}-{number}"), address: env["ADDRESS"].clone(), command, env }
}

/// Namespaces with addresses of one network, which the test's own namespace reaches.
fn network(addresses: impl IntoIterator<Item = String>) -> BTreeMap<String, Namespace> {
    let machines: BTreeMap<_, _> = addresses.into_iter().map(|address| (address, Namespace::new())).collect();
    let network = machines.keys().next().unwrap().rsplit_once('.').unwrap().0;
    shell(&format!("ip link add br0 type bridge; ip addr add {network}.254/24 dev br0; ip link set br0 up"));
    for (number, (address, machine)) in machines.iter().enumerate() {
        let id = machine.id();
        shell(&format!(
            "ip link add v{number} type veth peer name eth0 netns {id}; ip link set v{number} master br0 up
             nsenter -t {id} -n sh -ec 'ip link set lo up; ip addr add {address}/24 dev eth0; ip link set eth0 up'"
        ));
    }
    machines
}

/// Puts a film where the object storage has its bucket.
fn put_film(root: &Path) {
    fs::create_dir_all(root.join("films")).unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/sample/360p.mp4");
    fs::copy(sample, root.join("films/film.mp4")).unwrap();
}

fn wait_for(what: &str, scratch: &Path, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(90), "{what}: {}", logs(scratch));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The ends of all logs.
fn logs(scratch: &Path) -> String {
    let files = fs::read_dir(scratch).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|path| path.extension().is_some_and(|end| end == "log"));
    let end = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let last: Vec<_> = text.lines().rev().take(5).map(|line| line.get(..300).unwrap_or(line)).collect();
        format!("\n{}: {}", path.display(), last.join("\n  "))
    };
    logs.map(end).collect()
}

/// Gets a URL, by way of redirects. Returns the URL that answered, and the body; `None` for an error.
fn fetch(url: &str) -> Option<(String, Vec<u8>)> {
    let args = ["-sSL", "--fail", "--max-time", "20", "-w", "%{stderr}%{url_effective}", url];
    let output = Command::new("curl").args(args).output().unwrap();
    output.status.success().then(|| (String::from_utf8(output.stderr).unwrap(), output.stdout))
}

/// Starts all, and plays the film by every node, before and after the node that serves it ends.
fn plays(services: &[Service], scratch: &Path) {
    let machines = network(services.iter().map(|service| service.address.clone()));
    let mut running: Vec<_> = services.iter().map(|service| (service, service.start(&machines, scratch))).collect();
    let is_node = |service: &Service| service.command.iter().any(|word| word == "serve");
    let mut nodes: Vec<&Service> = services.iter().filter(|service| is_node(service)).collect();
    assert_eq!(nodes.len(), 3);
    let sees = |node: &Service, count: usize| {
        let mut command = machines[&node.address].command(env!("CARGO_BIN_EXE_millpond"));
        let output = command.args(["cluster", "status"]).stderr(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        services.iter().filter_map(|node| node.env.get("MILLPOND_NODE")).filter(|name| text.contains(*name)).count()
            >= count
            && text.contains(": member; etcd: following")
    };
    wait_for("three nodes", scratch, || nodes.iter().all(|node| sees(node, 3)));
    let film = |node: &Service| {
        let (url, list) = fetch(&format!("http://{}:8080/films/film.mp4/index.m3u8", node.address))?;
        let (_, segment) = fetch(&url.replace("index.m3u8", "v1/1.m4s"))?;
        list.starts_with(b"#EXTM3U").then(|| (url.split('/').nth(2).unwrap().to_owned(), segment))
    };
    let mut found = Vec::new();
    wait_for("the film plays", scratch, || {
        found = nodes.iter().filter_map(|node| film(node)).collect();
        // A node whose view is older may name another one.
        found.len() == 3 && found.iter().all(|one| *one == found[0])
    });
    assert!(found[0].1.len() > 10_000, "{}", found[0].0);

    // SIGTERM, as both ways to stop a service have it.
    let owner = nodes.iter().position(|node| found[0].0.starts_with(&node.address)).unwrap();
    let owner = nodes.remove(owner);
    let (_, ending) = running.iter_mut().find(|(service, _)| service.name == owner.name).unwrap();
    let id = rustix::process::Pid::from_child(&ending.0);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    // Until the others know that it leaves, it still serves those that they send.
    for node in &nodes {
        wait_for("another node serves the film", scratch, || {
            // A player that was sent to the node just before it left finds nobody there, and asks again.
            let Some((address, segment)) = film(node) else { return false };
            assert!(segment == found[0].1, "{address}");
            !address.starts_with(&owner.address)
        });
    }
    assert!(ending.0.wait().unwrap().success(), "{}", logs(scratch));
}

#[test]
fn the_compose_file_starts_a_cluster() {
    if !is_alone((module_path!(), "the_compose_file_starts_a_cluster"), &PROGRAMS) {
        return;
    }
    let scratch = memory_folder();
    let services = composed(scratch.path());
    put_film(&scratch.path().join("media"));
    plays(&services, scratch.path());
}

#[test]
fn the_units_of_systemd_start_a_cluster() {
    if !is_alone((module_path!(), "the_units_of_systemd_start_a_cluster"), &PROGRAMS) {
        return;
    }
    let scratch = memory_folder();
    let storage = scratch.path().join("media");
    put_film(&storage);
    let units = (1..=3).flat_map(|number| ["millpond-etcd", "millpond"].map(|name| unit(name, number, scratch.path())));
    let mut services: Vec<_> = units.collect();
    // The object storage is not of the example; its address and keys are.
    let shared = variables(&example("systemd/cluster.env"));
    let endpoint = shared["AWS_ENDPOINT_URL"].strip_prefix("http://").unwrap();
    let (address, port) = endpoint.split_once(':').unwrap();
    let keys = [("--access", "AWS_ACCESS_KEY_ID"), ("--secret", "AWS_SECRET_ACCESS_KEY")];
    let keys = keys.into_iter().flat_map(|(flag, name)| [flag.to_owned(), shared[name].clone()]);
    let command = ["versitygw".into(), "--port".into(), format!(":{port}")].into_iter().chain(keys);
    let command = command.chain(["posix".into(), storage.display().to_string()]).collect();
    services.push(Service { name: "s3".into(), address: address.into(), command, env: BTreeMap::new() });
    plays(&services, scratch.path());
}
