//! Writes the catalogue of hostile movies into a folder: `millpond-hostile FOLDER`.

use std::{path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("millpond-hostile: no argument given, expected a folder");
        return ExitCode::from(2);
    };
    match millpond_hostile::catalogue::write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millpond-hostile: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}
