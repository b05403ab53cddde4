//! Jobs of heavy work: those that run, wait, are refused, and are cancelled.

use super::{By, watch::Watch};
use crate::support::Server;
use millpond_hostile::catalogue;
use std::{io::Write as _, net::TcpStream};

#[test]
fn movies_that_are_heavy_to_index() {
    let folder = tempfile::tempdir().unwrap();
    catalogue::write(folder.path()).unwrap();
    let server = Server::start(&[folder.path().to_str().unwrap(), "--memory", "16MiB", "--workers", "1"]);
    let watch = Watch::begin(&server);
    let ask = |name: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        write!(stream, "GET /{name}/index.m3u8 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        stream
    };
    // Some hang up while their movies are indexed, sooner or later; the budget refuses others.
    let mut patience = (1..=20).cycle().map(|step| std::time::Duration::from_millis(10 * step));
    for family in [
        "millpond_work_jobs_running",
        "millpond_work_jobs_waiting",
        "millpond_work_jobs_cancelled_total",
        "millpond_work_jobs_refused_total",
    ] {
        watch.until(family, || {
            let asked: Vec<TcpStream> = catalogue::ALL.iter().map(|(name, _)| ask(name)).collect();
            patience.next().into_iter().for_each(std::thread::sleep);
            drop(asked);
        });
    }
    watch.end(By::Heavy, &server);
}
