//! `millpond serve`: the server.

mod signals;

use super::Outcome;
use crate::out;
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_server::{
    config::{self, Inputs, Loaded, TlsSource, declare::SETTINGS, value::Form},
    logging, priority,
    serve::Server,
};
use std::{collections::HashMap, fmt::Write as _, path::PathBuf};
use tokio::sync::watch;

pub(crate) fn command() -> Command {
    let about = "Serves the media under places; with none, a small sample";
    settings(Command::new("serve").about(about)).after_help(
        "A place is a folder, http(s)://host/base, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix.\n\
         Several places get a name each: films=/data/films cams=s3://bucket/cams",
    )
}

/// The arguments that make up a configuration, made from the table of settings.
pub(super) fn settings(command: Command) -> Command {
    let command = command
        .arg(Arg::new("place").value_name("PLACE").num_args(0..).help("Where media is: [NAME=]FOLDER or [NAME=]URL"))
        .arg(Arg::new("config").long("config").value_name("FILE").help("Reads settings from a TOML file"));
    SETTINGS.iter().fold(command, |command, setting| {
        let help = if setting.default.is_empty() {
            setting.help.to_owned()
        } else {
            format!("{} [default: {}]", setting.help, setting.default)
        };
        let mut arg = Arg::new(setting.name)
            .long(setting.name)
            .value_name(setting.form.placeholder())
            .help(help)
            .action(ArgAction::Set);
        if setting.form == Form::Switch {
            arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
        }
        command.arg(arg)
    })
}

/// The configuration that arguments, environment and file make.
pub(super) fn inputs(matches: &ArgMatches) -> Inputs {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    Inputs {
        flags: SETTINGS.iter().filter_map(|s| Some((s.name.to_owned(), text(s.name)?))).collect(),
        places: matches.get_many::<String>("place").into_iter().flatten().cloned().collect(),
        file: text("config").map(PathBuf::from),
        environment: std::env::vars().collect::<HashMap<_, _>>(),
    }
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    config::machine::raise_open_files();
    let Loaded { config, warnings, .. } = config::load(&inputs(matches))?;
    logging::init(&config.log, config.log_format)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let (stop, stopped) = watch::channel(false);
    let reloads = matches!(config.tls, Some(TlsSource::Files { .. })) || config.rtsp_users.is_some();
    signals::watch(reloads, config.shutdown_grace, stop)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(config.workers).on_thread_start(priority::of_runtime(config.workers)).enable_all();
    let runtime = runtime.build()?;
    let done = runtime.block_on(async {
        let server = Server::bind(config).await?;
        let greeting = greeting(&server).await?;
        // Not on this thread: serving neither waits for who reads this nor ends with it.
        std::thread::spawn(move || out::lines(&greeting).is_ok());
        server.run(stopped).await;
        Ok(())
    });
    // Nothing that still runs is worth waiting for: every response had its grace.
    runtime.shutdown_background();
    logging::flush();
    done
}

/// Tells where to find what.
async fn greeting(server: &Server) -> Result<String, Box<dyn std::error::Error>> {
    let http = server.http_addr()?;
    let host = if http.ip().is_unspecified() { "localhost".to_owned() } else { http.ip().to_string() };
    let base = format!("http://{host}:{}", http.port());
    let mut text = format!("millpond {} serves {base}/\n", env!("CARGO_PKG_VERSION"));
    if let Some(https) = server.https_addr() {
        writeln!(text, "  https    https://{host}:{}/", https.port())?;
    }
    let rtsp = format!("rtsp://{host}:{}", server.rtsp_addr()?.port());
    writeln!(text, "  rtsp     {rtsp}/")?;
    if let Some(rtsps) = server.rtsps_addr() {
        writeln!(text, "  rtsps    rtsps://{host}:{}/", rtsps.port())?;
    }
    writeln!(text, "  metrics  http://{}/metrics", server.admin_addr()?)?;
    for asset in server.some_assets(5).await {
        writeln!(text, "  {asset}")?;
        writeln!(text, "    HLS     {base}/{asset}/index.m3u8")?;
        writeln!(text, "    HLS TS  {base}/{asset}/ts/index.m3u8")?;
        writeln!(text, "    DASH    {base}/{asset}/index.mpd")?;
        writeln!(text, "    RTSP    {rtsp}/{asset}")?;
    }
    Ok(text)
}
