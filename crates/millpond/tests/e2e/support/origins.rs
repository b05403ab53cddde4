//! The same files behind three kinds of storage: a folder, nginx, and an S3-compatible server.

use super::{Running, Server, free_port, have, wait_for_port};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Folder,
    Nginx,
    S3,
}

/// Declares each test of the list once for every kind of storage.
#[allow(unused_macros, reason = "each test uses its part")]
macro_rules! over_every_storage {
    ($($test:ident)*) => {
        mod folder { $(#[test] fn $test() { super::$test($crate::support::origins::Kind::Folder); })* }
        mod nginx { $(#[test] fn $test() { super::$test($crate::support::origins::Kind::Nginx); })* }
        mod s3 { $(#[test] fn $test() { super::$test($crate::support::origins::Kind::S3); })* }
    };
}

/// A server over `folder` by way of one kind of storage.
pub struct Stack {
    pub server: Server,
    /// Where the storage keeps its logs.
    pub scratch: tempfile::TempDir,
    storage: Storage,
    origin: Option<Running>,
}

enum Storage {
    Files(PathBuf),
    Bucket { url: String },
}

impl Stack {
    /// Puts a file into the storage, whole at once, in the place of one that may be there.
    pub fn put(&self, name: &str, file: &Path) {
        match &self.storage {
            Storage::Files(folder) => {
                let part = folder.join(format!("{name}.part"));
                std::fs::copy(file, &part).unwrap();
                std::fs::rename(part, folder.join(name)).unwrap();
            }
            Storage::Bucket { url } => signed(&["-T", file.to_str().unwrap(), &format!("{url}/{name}")]),
        }
    }

    pub fn remove(&self, name: &str) {
        match &self.storage {
            Storage::Files(folder) => std::fs::remove_file(folder.join(name)).unwrap(),
            Storage::Bucket { url } => signed(&["-X", "DELETE", &format!("{url}/{name}")]),
        }
    }
}

/// A signed request to the S3-compatible server.
fn signed(args: &[&str]) {
    let user = format!("tester:{SECRET}");
    let status = Command::new("curl")
        .args(["-sS", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", &user])
        .args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"])
        .args(args)
        .status()
        .unwrap();
    assert!(status.success(), "{args:?}");
}

pub const SECRET: &str = "a-secret-for-tests";

/// Starts the storage and a server before it, as place `name` or without a name; `None` where the storage is not installed.
pub fn start_named(kind: Kind, name: Option<&str>, folder: &Path, args: &[&str]) -> Option<Stack> {
    let scratch = tempfile::tempdir().unwrap();
    let files = Storage::Files(folder.to_owned());
    let (place, env, origin, storage) = match kind {
        Kind::Folder => (folder.display().to_string(), Vec::new(), None, files),
        Kind::Nginx => {
            let (origin, port) = nginx(folder, scratch.path(), "")?;
            (format!("http://127.0.0.1:{port}"), Vec::new(), Some(origin), files)
        }
        Kind::S3 => {
            let (origin, port) = versitygw(folder, scratch.path())?;
            let endpoint = format!("http://127.0.0.1:{port}");
            let bucket = Storage::Bucket { url: format!("{endpoint}/media") };
            ("s3://media".to_owned(), credentials(&endpoint, SECRET), Some(origin), bucket)
        }
    };
    let place = name.map_or(place.clone(), |name| format!("{name}={place}"));
    let mut all = vec![place.as_str()];
    all.extend_from_slice(args);
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Some(Stack { server: Server::start_with(&all, &env), scratch, storage, origin })
}

pub fn start(kind: Kind, folder: &Path, args: &[&str]) -> Option<Stack> {
    start_named(kind, None, folder, args)
}

/// Environment variables of a client of the S3-compatible server.
pub fn credentials(endpoint: &str, secret: &str) -> Vec<(&'static str, String)> {
    [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "tester"),
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ALLOW_HTTP", "true"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

/// nginx over a folder; `extra` goes into its `server` block.
pub fn nginx(folder: &Path, scratch: &Path, extra: &str) -> Option<(Running, u16)> {
    if !have("nginx") {
        return None;
    }
    let port = free_port();
    let dir = scratch.display();
    let config = format!(
        "master_process off; daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log; user root;
         events {{ worker_connections 4096; }}
         http {{ access_log {dir}/access.log combined; sendfile on; client_body_temp_path {dir}; proxy_temp_path {dir};
         fastcgi_temp_path {dir}; uwsgi_temp_path {dir}; scgi_temp_path {dir};
         log_format ranges '$request_uri|$http_range|$status|$body_bytes_sent';
         access_log {dir}/ranges.log ranges;
         server {{ listen 127.0.0.1:{port}; root {}; autoindex on; {extra} }} }}",
        folder.display()
    );
    std::fs::write(scratch.join("nginx.conf"), config).unwrap();
    let child = Command::new("nginx")
        .arg("-c")
        .arg(scratch.join("nginx.conf"))
        .args(["-e", &format!("{dir}/start.log")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(child);
    wait_for_port(port, &scratch.join("start.log"));
    Some((running, port))
}

/// nginx as a cache before a server.
pub fn cdn(port: u16, scratch: &Path) -> Option<(Running, u16)> {
    if !have("nginx") {
        return None;
    }
    let (listen, dir) = (free_port(), scratch.display());
    let config = format!(
        "master_process off; daemon off; pid {dir}/cdn.pid; error_log {dir}/cdn-error.log; user root;
         events {{ worker_connections 256; }}
         http {{ access_log off; client_body_temp_path {dir}; proxy_temp_path {dir}/cdn-temp;
         fastcgi_temp_path {dir}; uwsgi_temp_path {dir}; scgi_temp_path {dir};
         proxy_cache_path {dir}/cdn keys_zone=cdn:1m;
         server {{ listen 127.0.0.1:{listen}; location / {{
             proxy_pass http://127.0.0.1:{port}; proxy_http_version 1.1; proxy_cache cdn;
             add_header X-Cache $upstream_cache_status always; }} }} }}"
    );
    std::fs::write(scratch.join("cdn.conf"), config).unwrap();
    let child = Command::new("nginx")
        .arg("-c")
        .arg(scratch.join("cdn.conf"))
        .args(["-e", &format!("{dir}/cdn-start.log")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(child);
    wait_for_port(listen, &scratch.join("cdn-start.log"));
    Some((running, listen))
}

/// squid as a cache before an HTTP server, with memory only.
pub fn squid(origin: u16, scratch: &Path) -> Option<(Running, u16)> {
    if !have("squid") {
        return None;
    }
    let port = free_port();
    let dir = scratch.display();
    let config = format!(
        "http_port 127.0.0.1:{port} accel defaultsite=127.0.0.1:{origin} no-vhost
         cache_peer 127.0.0.1 parent {origin} 0 no-query originserver
         http_access allow all\ncache_mem 64 MB\nmaximum_object_size_in_memory 32 MB\nrange_offset_limit -1
         pid_filename {dir}/squid.pid\naccess_log stdio:{dir}/squid-access.log\ncache_log {dir}/squid.log
         coredump_dir {dir}\nshutdown_lifetime 0 seconds\nvisible_hostname squid.test
         pinger_enable off\nmemory_cache_shared off\nrefresh_pattern . 60 100% 4320\n"
    );
    std::fs::write(scratch.join("squid.conf"), config).unwrap();
    // It takes the user that Debian's package made for it.
    std::fs::set_permissions(scratch, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let child = Command::new("squid")
        .args(["-N", "-f", scratch.join("squid.conf").to_str().unwrap()])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(child);
    wait_for_port(port, &scratch.join("squid.log"));
    Some((running, port))
}

/// An S3-compatible server over a folder, as bucket `media`.
pub fn versitygw(folder: &Path, scratch: &Path) -> Option<(Running, u16)> {
    if !have("versitygw") {
        return None;
    }
    let port = free_port();
    let root = scratch.join("s3");
    std::fs::create_dir_all(root.join("media")).unwrap();
    copy_folder(folder, &root.join("media"));
    let log = scratch.join("s3.log");
    let child = Command::new("versitygw")
        .args(["--access", "tester", "--secret", SECRET, "--port", &format!("127.0.0.1:{port}"), "posix"])
        .arg(&root)
        .stdout(std::fs::File::create(&log).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(child);
    wait_for_port(port, &log);
    Some((running, port))
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
            // A copy is as old as its file: young files may be unfinished.
            let modified = entry.metadata().unwrap().modified().unwrap();
            std::fs::File::options().write(true).open(target).unwrap().set_modified(modified).unwrap();
        }
    }
}

/// The log of requests that `nginx` writes in its folder, once nothing is added to it any more: a line follows the last
/// byte of its reply, on a busy machine much later.
pub fn settled_log(scratch: &Path) -> String {
    let log = scratch.join("ranges.log");
    let mut text = std::fs::read_to_string(&log).unwrap();
    let mut still = 0;
    while still < 5 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = std::fs::read_to_string(&log).unwrap();
        still = if now == text { still + 1 } else { 0 };
        text = now;
    }
    text
}
