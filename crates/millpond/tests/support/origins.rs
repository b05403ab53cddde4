//! The same files behind three kinds of storage: a folder, nginx, and an S3-compatible server.

use super::{Running, Server, free_port, have, wait_for_port};
use std::{
    path::Path,
    process::{Command, Stdio},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Folder,
    Nginx,
    S3,
}

/// A server over `folder` by way of one kind of storage.
pub struct Stack {
    pub server: Server,
    pub origin: Option<Running>,
    pub scratch: tempfile::TempDir,
}

pub const SECRET: &str = "a-secret-for-tests";

/// Starts the storage and a server before it; `None` where the storage is not installed.
pub fn start(kind: Kind, folder: &Path, args: &[&str]) -> Option<Stack> {
    let scratch = tempfile::tempdir().unwrap();
    let with = |place: String, env: &[(&str, &str)], origin: Option<Running>, scratch| {
        let mut all = vec![place.as_str()];
        all.extend_from_slice(args);
        Some(Stack { server: Server::start_with(&all, env), origin, scratch })
    };
    match kind {
        Kind::Folder => with(folder.display().to_string(), &[], None, scratch),
        Kind::Nginx => {
            let (origin, port) = nginx(folder, scratch.path(), "")?;
            with(format!("http://127.0.0.1:{port}"), &[], Some(origin), scratch)
        }
        Kind::S3 => {
            let (origin, port) = versitygw(folder, scratch.path())?;
            let endpoint = format!("http://127.0.0.1:{port}");
            let env = [
                ("AWS_ENDPOINT_URL", endpoint.as_str()),
                ("AWS_ACCESS_KEY_ID", "tester"),
                ("AWS_SECRET_ACCESS_KEY", SECRET),
                ("AWS_REGION", "us-east-1"),
                ("AWS_ALLOW_HTTP", "true"),
            ];
            with("s3://media".to_owned(), &env, Some(origin), scratch)
        }
    }
}

/// nginx over a folder; `extra` goes into its `server` block.
pub fn nginx(folder: &Path, scratch: &Path, extra: &str) -> Option<(Running, u16)> {
    if !have("nginx") {
        return None;
    }
    let port = free_port();
    let dir = scratch.display();
    let config = format!(
        "worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log; user root;
         events {{ worker_connections 4096; }}
         http {{ access_log {dir}/access.log combined; sendfile on; client_body_temp_path {dir}; proxy_temp_path {dir};
         fastcgi_temp_path {dir}; uwsgi_temp_path {dir}; scgi_temp_path {dir};
         log_format ranges '$request_uri|$http_range|$status|$body_bytes_sent';
         access_log {dir}/ranges.log ranges;
         server {{ listen 127.0.0.1:{port}; root {}; {extra} }} }}",
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
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
