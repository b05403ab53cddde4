//! `millpond serve`: the server.

use super::Outcome;
use clap::{Arg, ArgAction, ArgMatches, Command};
use millpond_server::{
    config::{self, Inputs, Loaded, declare::SETTINGS, value::Form},
    logging,
    serve::Server,
};
use std::{collections::HashMap, path::PathBuf};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

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
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(config.workers).enable_all().build()?;
    let done = runtime.block_on(async {
        let (stop, stopped) = watch::channel(false);
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let server = Server::bind(config).await?;
        greet(&server).await?;
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: responses under way are finished");
            let _ = stop.send(true);
            // A second signal is from somebody who won't wait.
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            std::process::exit(130);
        });
        server.run(stopped).await;
        Ok(())
    });
    // Nothing that still runs is worth waiting for: every response had its grace.
    runtime.shutdown_background();
    done
}

/// Tells where to find what.
async fn greet(server: &Server) -> Result<(), Box<dyn std::error::Error>> {
    let http = server.http_addr()?;
    let host = if http.ip().is_unspecified() { "localhost".to_owned() } else { http.ip().to_string() };
    let base = format!("http://{host}:{}", http.port());
    println!("millpond {} serves {base}/", env!("CARGO_PKG_VERSION"));
    if let Some(https) = server.https_addr() {
        println!("  https    https://{host}:{}/", https.port());
    }
    let rtsp = format!("rtsp://{host}:{}", server.rtsp_addr()?.port());
    println!("  rtsp     {rtsp}/");
    if let Some(rtsps) = server.rtsps_addr() {
        println!("  rtsps    rtsps://{host}:{}/", rtsps.port());
    }
    println!("  metrics  http://{}/metrics", server.admin_addr()?);
    for asset in server.some_assets(5).await {
        println!("  {asset}");
        println!("    HLS     {base}/{asset}/index.m3u8");
        println!("    HLS TS  {base}/{asset}/ts/index.m3u8");
        println!("    DASH    {base}/{asset}/index.mpd");
        println!("    RTSP    {rtsp}/{asset}");
    }
    Ok(())
}
