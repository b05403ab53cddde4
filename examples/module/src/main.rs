//! Millpond with a kind of modules of its own.

mod key_frame_log;

use key_frame_log::KeyFrameLog;
use millpond_server::{
    config::{self, Inputs},
    serve::{Orders, Server},
    upgrade::Predecessor,
};
use millpond_stream::AttachableKind;
use std::{env, error::Error, sync::Arc};
use tokio::{runtime::Runtime, sync::watch};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(file), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: key-frame-log CONFIGURATION FOLDER".into());
    };
    let inputs = Inputs { file: Some(file.into()), environment: env::vars().collect(), ..Inputs::default() };
    let loaded = config::load(&inputs)?;
    millpond_logging::init(&loaded.config.log, &loaded.config.traces)?;
    let kinds: Vec<Arc<dyn AttachableKind>> = vec![Arc::new(KeyFrameLog { folder: folder.into() })];
    let ((stop, stopped), (_reload, reload), (_upgrade, upgrade)) =
        (watch::channel(false), watch::channel(0), watch::channel(0));
    let (grace, _) = watch::channel(loaded.config.limits.shutdown_grace);
    let orders = Orders { stop: stopped, reload, upgrade, grace, program: None };
    let inherited = Predecessor::inherit()?;
    Runtime::new()?.block_on(async {
        let server = Server::bind(loaded, inputs, kinds, inherited).await?;
        tokio::spawn(async move {
            let _ = tokio::signal::ctrl_c().await;
            stop.send_replace(true);
        });
        server.run(orders).await;
        Ok(())
    })
}
