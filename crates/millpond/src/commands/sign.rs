//! `millpond sign`: URLs with a token, for places with `access-tokens`.

use super::Outcome;
use clap::{Arg, ArgMatches, Command};
use millpond_access::{Claims, Parties, keys::Secret, sign};
use millpond_library::uri;
use millpond_package::TrackFilter;
use millpond_settings::{Network, value};
use millpond_terminal::{say, urls};
use std::time::{Duration, SystemTime};

/// Longest time of a token: ten years.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

pub(crate) fn command() -> Command {
    Command::new("sign")
        .about("Prints a signed URL. Players send its token with every playlist and segment")
        .arg_required_else_help(true)
        .arg(
            Arg::new("url")
                .required(true)
                .value_name("URL")
                .help("HTTP or RTSP URL of a playlist, manifest, stream or file"),
        )
        .arg(
            Arg::new("key")
                .long("key")
                .required(true)
                .value_name("FILE")
                .help("File with the secret of access-tokens, at least 32 bytes"),
        )
        .arg(
            Arg::new("for")
                .long("for")
                .value_name("DURATION")
                .default_value("4h")
                .help("Time for which the URL is valid"),
        )
        .arg(Arg::new("path").long("path").value_name("PATH").help(
            "Path that the token admits to, with everything below it. The default is the asset of the URL; \"/\" \
             admits to all paths",
        ))
        .arg(
            Arg::new("network")
                .long("network")
                .value_name("NETWORK")
                .help("Clients that may use the token: an address, or a network such as 10.0.0.0/8"),
        )
        .arg(Arg::new("id").long("id").value_name("NAME").help(
            "Name (jti) of the token, by which access-revoked can \
                                                                revoke it",
        ))
        .arg(Arg::new("subject").long("subject").value_name("NAME").help(
            "Subject (sub) of the token. token-requests and token-streams count all tokens of one subject \
                       together",
        ))
        .arg(
            Arg::new("filter")
                .long("filter")
                .value_name("FILTER")
                .help("Filter (filter) of the token, such as max-height=720: manifests list no other tracks"),
        )
        .arg(Arg::new("issuer").long("issuer").value_name("NAME").help(
            "Issuer (iss) of the token, if access-issuer \
                                                                       requires one",
        ))
        .arg(
            Arg::new("audience")
                .long("audience")
                .value_name("NAME")
                .help("Audience (aud) of the token, if access-audience requires one"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let file = text("key").unwrap_or_default();
    let bytes = std::fs::read(file).map_err(|error| format!("--key {file}: {error}"))?;
    let secret = Secret::parse(&bytes).map_err(|error| format!("--key {file}: {error}"))?;
    let period = value::duration_in(text("for").unwrap_or_default(), Duration::from_secs(1), LONGEST);
    let period = period.map_err(|bad| format!("--for: expected {}", bad.expected))?;
    if let Some(network) = text("network").filter(|text| Network::parse(text).is_none()) {
        return Err(format!("--network {network}: expected an address, or a network such as 10.0.0.0/8").into());
    }
    let filter = text("filter").map(TrackFilter::parse_strictly).transpose();
    let filter = filter.map_err(|bad| format!("--filter: {bad}"))?.map(|filter| filter.to_string());
    let given = text("url").unwrap_or_default();
    let mut url = urls::parse("URL", given, &["https", "http", "rtsp", "rtsps"])?;
    let decoded =
        uri::decode_path(url.path()).ok_or_else(|| format!("{given}: the path is not UTF-8 text"))?.into_owned();
    let path = text("path").unwrap_or_else(|| asset_of(&decoded)).trim_matches('/').to_owned();
    let expires = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)? + period;
    let claims = Claims {
        exp: expires.as_secs(),
        paths: Some(vec![path]),
        net: text("network").map(str::to_owned),
        jti: text("id").map(str::to_owned),
        sub: text("subject").map(str::to_owned),
        filter,
    };
    let parties = Parties { issuer: text("issuer").map(str::to_owned), audience: text("audience").map(str::to_owned) };
    let signed = format!("/~{}{}", sign(&claims, &parties, &secret)?, url.path());
    url.set_path(&signed);
    say!("{url}")?;
    Ok(())
}

/// The path of the asset that a playlist, manifest or stream of a path is made of. For other paths it is the path itself.
fn asset_of(path: &str) -> &str {
    const MADE: [&str; 6] = ["index.m3u8", "index.mpd", "stream.mp4", "stream.ts", "epg.xml", "epg.json"];
    let Some((folder, name)) = path.rsplit_once('/') else { return path };
    if !MADE.contains(&name) {
        return path;
    }
    folder.strip_suffix("/ts").or(folder.strip_suffix("/live")).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_token_is_for_the_asset() {
        for (path, asset) in [
            ("/films/a.mp4/index.m3u8", "/films/a.mp4"),
            ("/films/a.mp4/ts/index.m3u8", "/films/a.mp4"),
            ("/cams/door/index.mpd", "/cams/door"),
            ("/cams/door/stream.mp4", "/cams/door"),
            ("/live/tv/epg.xml", "/live/tv"),
            ("/films/a.mp4/live/index.m3u8", "/films/a.mp4"),
            ("/films/a.mp4", "/films/a.mp4"),
            ("/index.m3u8", ""),
        ] {
            assert_eq!(super::asset_of(path), asset);
        }
    }
}
