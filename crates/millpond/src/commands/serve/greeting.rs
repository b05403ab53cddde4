//! The first words to the user: addresses, assets and live places.

use super::{
    bases::Bases,
    found,
    live::{self, Pushing, SrtListener},
};
use millpond_server::{config::AdminAddress, serve::Server};
use std::{
    fmt::{self, Write as _},
    time::Duration,
};

/// Returns the first words of a server that listens. `elapsed` tells the time since its start.
pub(super) async fn greeting(
    server: &Server,
    elapsed: impl Fn() -> Duration,
) -> Result<String, Box<dyn std::error::Error>> {
    let none = "a listener has no address";
    let http = Bases::of("http", server.http_addr().ok_or(none)?);
    let rtsp = Bases::of("rtsp", server.rtsp_addr().ok_or(none)?);
    let (rtmp, rtmps) = server.rtmp_addrs();
    let rtmp = rtmp.map(|address| Bases::of("rtmp", address));
    let rtmps = rtmps.map(|address| Bases::of("rtmps", address));
    let surveys = server.surveys(found::MOST_ASSETS).await;
    let mut text =
        format!("millpond {} serves {}/ (up after {})\n", env!("CARGO_PKG_VERSION"), http.here, Short(elapsed()));
    network(&mut text, &http)?;
    if let Some(https) = server.https_addr() {
        address(&mut text, "https", &Bases::of("https", https))?;
    }
    address(&mut text, "rtsp", &rtsp)?;
    if let Some(rtsps) = server.rtsps_addr() {
        address(&mut text, "rtsps", &Bases::of("rtsps", rtsps))?;
    }
    for (name, bases) in [("rtmp", &rtmp), ("rtmps", &rtmps)] {
        if let Some(bases) = bases {
            address(&mut text, name, bases)?;
        }
    }
    let webrtc = server.webrtc_addr();
    if let Some(webrtc) = webrtc {
        // Media alone: the URLs are those of HTTP.
        writeln!(text, "  webrtc   {}", Bases::of("udp", webrtc).shared())?;
    }
    let srt = server.srt_addr().map(|address| Bases::of("srt", address));
    if let Some(srt) = &srt {
        address(&mut text, "srt", srt)?;
    }
    match server.admin_addr().ok_or(none)? {
        AdminAddress::Tcp(address) => {
            let admin = Bases::of("http", address);
            writeln!(text, "  console  {}/", admin.shared())?;
            writeln!(text, "  metrics  {}/metrics", admin.shared())?;
        }
        address @ AdminAddress::Unix(_) => writeln!(text, "  admin    {address}")?,
    }
    found::tell(&mut text, &surveys, http.shared(), rtsp.shared())?;
    let (rtmp, rtmps) = (rtmp.as_ref(), rtmps.as_ref());
    let srt = srt.as_ref().map(|bases| SrtListener { bases, is_encrypted: server.has_srt_passphrase() });
    let pushing = Pushing { http: &http, rtsp: &rtsp, rtmp, rtmps, srt, has_webrtc: webrtc.is_some() };
    live::tell(&mut text, &server.live_places(), &pushing)?;
    Ok(text)
}

/// Appends the addresses of HTTP for other devices, where the first line has another one.
fn network(text: &mut String, http: &Bases) -> fmt::Result {
    let others = http.others.iter().filter(|base| **base != http.here);
    for (label, base) in std::iter::once("network").chain(std::iter::repeat("")).zip(others) {
        writeln!(text, "  {label:<8} {base}/")?;
    }
    Ok(())
}

/// Appends the address of another listener.
fn address(text: &mut String, name: &str, bases: &Bases) -> fmt::Result {
    writeln!(text, "  {name:<8} {}/", bases.shared())
}

/// A duration with its unit, in few digits.
struct Short(Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            millis @ 0..1000 => write!(f, "{millis} ms"),
            _ => write!(f, "{:.1} s", self.0.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_their_units() {
        let short = |millis| Short(Duration::from_millis(millis)).to_string();
        assert_eq!([41, 999, 1000, 3250].map(short), ["41 ms", "999 ms", "1.0 s", "3.2 s"]);
    }
}
