//! `millpond export`: clips of the past of a running server's live streams, as MP4 files.

use super::{Outcome, runtime};
use clap::{Arg, ArgMatches, Command};
use millpond_settings::value;
use millpond_terminal::{
    out::{progress, progress_of},
    say, urls,
};
use reqwest::{Response, Url};
use std::{
    error::Error,
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

pub(crate) fn command() -> Command {
    let time =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("TIME").required(true).help(help);
    Command::new("export")
        .about("Writes a part of a live stream's past (time-shift) from a running server into an MP4 file")
        .arg_required_else_help(true)
        .arg(Arg::new("path").required(true).value_name("PATH").help("Path of the live stream, as its URL has it"))
        .arg(time(
            "start",
            "Start time, such as 2026-11-22T10:00:00Z. The file begins with the last key frame before it",
        ))
        .arg(time("end", "End time, such as 2026-11-22T10:05:00Z, which must not lie in the future"))
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("File to write, which must not exist. The default is the last part of PATH, with .mp4"),
        )
        .arg(
            Arg::new("server")
                .long("server")
                .value_name("URL")
                .default_value("http://127.0.0.1:8080")
                .help("Address of the server for players (its setting `http` or `https`)"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let path = text("path").trim_matches('/');
    let output = matches.get_one::<PathBuf>("output").cloned();
    let name = path.rsplit('/').next().unwrap_or_default();
    let output = output.unwrap_or_else(|| PathBuf::from(format!("{name}.mp4")));
    if output.exists() {
        return Err(
            format!("{}: the file exists: remove it, or choose another file with --output", output.display()).into()
        );
    }
    let url = clip_url(text("server"), path, (text("start"), text("end")))?;
    let part = output.with_added_extension("part");
    let written = runtime()?.block_on(async { write(clip(url).await?, &part).await });
    progress("");
    let finished = written.and_then(|bytes| {
        fs::rename(&part, &output)?;
        Ok(bytes)
    });
    match finished {
        Ok(bytes) => say!("{}: {bytes} bytes", output.display())?,
        Err(error) => {
            let _ = fs::remove_file(&part);
            return Err(error);
        }
    }
    Ok(())
}

/// Returns the URL of a clip.
fn clip_url(server: &str, path: &str, (start, end): (&str, &str)) -> Result<Url, Box<dyn Error>> {
    let mut url = urls::parse("--server", server, &["http", "https"])?;
    let segments = path.split('/').chain(["stream.mp4"]);
    url.path_segments_mut()
        .map_err(|()| format!("--server {server}: expected http or https"))?
        .pop_if_empty()
        .extend(segments);
    url.query_pairs_mut().extend_pairs([("start", start), ("end", end)]);
    Ok(url)
}

/// Asks the server for a clip.
async fn clip(url: Url) -> Result<Response, Box<dyn Error>> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let server = url.authority().to_owned();
    let sent = client.get(url).send().await;
    let reply = sent.map_err(|error| format!("{server}: {}", error.source().unwrap_or(&error)))?;
    let status = reply.status();
    if status.is_success() {
        return Ok(reply);
    }
    let problem: serde_json::Value = serde_json::from_str(&reply.text().await?).unwrap_or_default();
    Err(problem["detail"].as_str().map_or_else(|| status.to_string(), str::to_owned).into())
}

/// Writes the body of a reply into a file. Returns its bytes.
async fn write(mut reply: Response, file: &Path) -> Result<u64, Box<dyn Error>> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut out = BufWriter::new(File::create(file).map_err(failed)?);
    let all = reply.content_length().unwrap_or(0);
    let mut bytes = 0;
    while let Some(chunk) = reply.chunk().await? {
        out.write_all(&chunk).map_err(failed)?;
        bytes += chunk.len() as u64;
        progress_of(bytes, all, &format!("{} written", value::show_size(bytes)));
    }
    out.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
    Ok(bytes)
}
