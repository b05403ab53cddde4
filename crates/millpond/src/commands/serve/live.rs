//! The start's words on places with live streams: where they play, where they are pushed to, and their ladders.

use super::{bases::Bases, found::Escaped};
use millpond_library::uri::encode;
use millpond_server::serve::{LiveSummary, Publishing};
use std::fmt::{self, Write as _};

/// Most places whose addresses are all told. Of the others one is.
const MOST_PLACES: usize = 2;
/// Most ladders of a place that are told.
const MOST_LADDERS: usize = 5;

/// Listeners that take streams, or send them.
pub(super) struct Pushing<'a> {
    pub(super) http: &'a Bases,
    pub(super) rtsp: &'a Bases,
    pub(super) rtmp: Option<&'a Bases>,
    pub(super) rtmps: Option<&'a Bases>,
    pub(super) srt: Option<SrtListener<'a>>,
    /// Whether viewers by WebRTC are served.
    pub(super) has_webrtc: bool,
}

/// The listener of SRT.
#[derive(Clone, Copy)]
pub(super) struct SrtListener<'a> {
    pub(super) bases: &'a Bases,
    /// Whether callers need a passphrase.
    pub(super) is_encrypted: bool,
}

impl SrtListener<'_> {
    /// The end of the URL of a caller.
    fn secret(self) -> &'static str {
        if self.is_encrypted { "&passphrase=PASSPHRASE" } else { "" }
    }
}

/// Appends lines about all places.
pub(super) fn tell(text: &mut String, places: &[LiveSummary], at: &Pushing<'_>) -> fmt::Result {
    for (index, place) in places.iter().enumerate() {
        let path = if has_names(place) { path(place, "NAME") } else { encode(&place.name) };
        let what = what(place);
        if index >= MOST_PLACES {
            writeln!(text, "  {path} is {what}: {}/{path}/index.m3u8", at.http.shared())?;
            continue;
        }
        let opened = if place.publishing.is_some() { "" } else { ", opened for its first viewer" };
        writeln!(text, "  {path} is {what}{opened}")?;
        if let Some(publishing) = place.publishing {
            pushed(text, place, publishing, at)?;
        }
        played(text, &path, at)?;
        ladders(text, place, at.http.shared())?;
    }
    Ok(())
}

/// Returns the path of a name in a place.
fn path(place: &LiveSummary, name: &str) -> String {
    if place.name.is_empty() { name.to_owned() } else { format!("{}/{name}", encode(&place.name)) }
}

/// Whether a place has streams with names, besides the one of the place itself.
fn has_names(place: &LiveSummary) -> bool {
    !["hls+", "whep+"].iter().any(|scheme| place.source.starts_with(scheme))
}

/// Returns words for the streams of a place.
fn what(place: &LiveSummary) -> String {
    if place.publishing.is_some() {
        return "a live stream that is pushed, with any NAME".to_owned();
    }
    if !has_names(place) {
        return format!("the live stream of {}", Escaped(&place.source));
    }
    let is_transport = ["udp:", "rtp:", "ts+"].iter().any(|scheme| place.source.starts_with(scheme));
    let kind = if is_transport { "the programme with the number" } else { "the live stream" };
    format!("{kind} NAME of {}", Escaped(&place.source))
}

fn played(text: &mut String, path: &str, at: &Pushing<'_>) -> fmt::Result {
    let base = at.http.shared();
    writeln!(text, "    HLS     {base}/{path}/index.m3u8")?;
    writeln!(text, "    HLS TS  {base}/{path}/ts/index.m3u8")?;
    writeln!(text, "    DASH    {base}/{path}/index.mpd")?;
    writeln!(text, "    MP4     {base}/{path}/stream.mp4")?;
    writeln!(text, "    TS      {base}/{path}/stream.ts")?;
    writeln!(text, "    RTSP    {}/{path}", at.rtsp.shared())?;
    if at.has_webrtc {
        writeln!(text, "    WebRTC  {base}/{path}/whep")?;
    }
    if let Some(srt) = at.srt {
        writeln!(text, "    SRT     {}?streamid=read:{path}{}", srt.bases.shared(), srt.secret())?;
    }
    Ok(())
}

fn ladders(text: &mut String, place: &LiveSummary, base: &str) -> fmt::Result {
    if place.ladders.is_empty() && place.publishing.is_some() {
        let (stream, ladder) = (path(place, "FOLDER/NAME"), path(place, "FOLDER"));
        return writeln!(text, "    ladder  of all streams {stream}: {base}/{ladder}/index.m3u8");
    }
    for name in place.ladders.iter().take(MOST_LADDERS) {
        let path = path(place, &encode(name));
        writeln!(text, "    ladder  {}: {base}/{path}/index.m3u8", Escaped(name))?;
    }
    match place.ladders.len().saturating_sub(MOST_LADDERS) {
        0 => Ok(()),
        1 => writeln!(text, "    and 1 more ladder"),
        more => writeln!(text, "    and {more} more ladders"),
    }
}

/// Appends the commands that push into a place, the fields of OBS, and the clients that may push.
fn pushed(text: &mut String, place: &LiveSummary, publishing: Publishing, at: &Pushing<'_>) -> fmt::Result {
    let path = path(place, "NAME");
    let input = "ffmpeg -re -i film.mp4 -c copy -f";
    let has_users = publishing == Publishing::Users;
    if let Some(base) = open_to(publishing, at.rtsp) {
        let url = in_shell(format!("{}/{path}", with_user(base, has_users)));
        writeln!(text, "    push    {input} rtsp -rtsp_transport tcp {url}")?;
    }
    let rtmp: Vec<&str> = [rtmp_base(publishing, at), rtmps_base(publishing, at)].into_iter().flatten().collect();
    for base in &rtmp {
        let query = if has_users { format!("?{QUERY}") } else { String::new() };
        let url = in_shell(format!("{base}/{path}{query}"));
        writeln!(text, "    push    {input} flv {url}")?;
    }
    if let Some(base) = open_to(publishing, at.http) {
        let url = in_shell(format!("{}/{path}", with_user(base, has_users)));
        writeln!(text, "    push    {input} mpegts -method PUT {url}")?;
    }
    if let Some((srt, base)) = at.srt.and_then(|srt| Some((srt, open_to(publishing, srt.bases)?))) {
        let (user, secret) = (if has_users { ":USER:PASSWORD" } else { "" }, srt.secret());
        writeln!(text, "    push    {input} mpegts '{base}?streamid=publish:{path}{user}{secret}'")?;
    }
    match rtmp.last() {
        Some(base) => {
            let (server, query) = (encode(&place.name), if has_users { format!("?{QUERY}") } else { String::new() });
            writeln!(text, "    OBS     Server: {base}/{server}  Stream key: NAME{query}")?;
        }
        None if at.rtmp.is_none() && at.rtmps.is_none() && !at.has_webrtc => {
            writeln!(text, "    OBS     needs RTMP, which is off; this turns it on: --rtmp 0.0.0.0:1935")?;
        }
        None => {}
    }
    if let Some(base) = open_to(publishing, at.http).filter(|_| at.has_webrtc) {
        let token = if has_users { "  Bearer token: USER:PASSWORD" } else { "" };
        writeln!(text, "    OBS     Service: WHIP  Server: {base}/{path}/whip{token}")?;
    }
    writeln!(text, "    who     {}", who(publishing, at))
}

/// Credentials of RTMP.
const QUERY: &str = "user=USER&pass=PASSWORD";

/// Quotes a URL that a shell would change: it matches the brackets of an IPv6 address with files, and an ampersand ends the command.
fn in_shell(url: String) -> String {
    if url.contains(['[', ']', '&', '?', '*', '\'']) { format!("'{}'", url.replace('\'', "'\\''")) } else { url }
}

fn with_user(base: &str, has_users: bool) -> String {
    if has_users { base.replacen("://", "://USER:PASSWORD@", 1) } else { base.to_owned() }
}

/// Returns the base by which clients that may push reach a listener; `None` where none of them can.
fn open_to(publishing: Publishing, bases: &Bases) -> Option<&str> {
    match publishing {
        Publishing::ThisMachine => bases.is_on_loopback.then_some(&bases.here),
        Publishing::Open | Publishing::Users | Publishing::External => Some(bases.shared()),
    }
}

/// Returns the base of RTMP. Passwords of `publish-users` are taken without TLS from this machine only.
fn rtmp_base<'a>(publishing: Publishing, at: &Pushing<'a>) -> Option<&'a str> {
    match publishing {
        Publishing::Users => open_to(Publishing::ThisMachine, at.rtmp?),
        _ => open_to(publishing, at.rtmp?),
    }
}

fn rtmps_base<'a>(publishing: Publishing, at: &Pushing<'a>) -> Option<&'a str> {
    open_to(publishing, at.rtmps?)
}

/// Returns words for the clients that may push.
fn who(publishing: Publishing, at: &Pushing<'_>) -> String {
    let users = "publish-users, a file of name:password lines";
    let is_plain = at.rtmp.is_some() && at.rtmps.is_none();
    match publishing {
        Publishing::ThisMachine => format!("this machine only; for other devices set {users}, or publish-open"),
        Publishing::Open => format!("everybody (publish-open); to admit users only set {users}"),
        Publishing::Users if is_plain => {
            "users of publish-users; by RTMP this machine only, other devices need rtmps".into()
        }
        Publishing::Users => "users of publish-users".into(),
        Publishing::External => "those whom the server of auth-url admits".into(),
    }
}

#[cfg(test)]
mod tests;
