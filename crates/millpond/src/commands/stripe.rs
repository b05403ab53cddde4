//! `millpond stripe` and `millpond unstripe`: objects in units on several stores, their scrub, and back.

use super::{Outcome, runtime};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use millpond_place::{PlaceError, PlaceSpec, map_target, stripe_store};
use millpond_settings::value;
use millpond_store::{
    MAP_SUFFIX, MapTarget, ObjectPath, OriginOptions, RemoteOptions, ScrubFault, ScrubOutcome, StripeError, StripeMap,
    StripePlan, StripeStore, remove, scrub, stripe, unstripe,
};
use millpond_terminal::{note, out::progress, say};
use std::{
    error::Error,
    fs::{self, File},
    io::{BufWriter, Write},
    path::PathBuf,
};

/// Length of a unit where none is given.
const UNIT: &str = "1MiB";

pub(crate) fn command() -> Command {
    Command::new("stripe")
        .about(
            "Cuts an object into units, writes them to several stores in turn, and writes a map for places with \
                stripe-over; or verifies all copies of a map's units",
        )
        .arg_required_else_help(true)
        .arg(
            Arg::new("object")
                .required_unless_present("scrub")
                .value_name("OBJECT")
                .help("File to stripe, as a path or a URL"),
        )
        .arg(over())
        .arg(
            Arg::new("factor")
                .long("factor")
                .value_name("N")
                .value_parser(value_parser!(usize))
                .help("Number of stores that get units of this object [default: all]"),
        )
        .arg(
            Arg::new("unit")
                .long("unit")
                .value_name("SIZE")
                .default_value(UNIT)
                .help("Length of a unit, 64KiB to 16MiB"),
        )
        .arg(
            Arg::new("copies")
                .long("copies")
                .value_name("N")
                .value_parser(value_parser!(usize))
                .default_value("1")
                .help("Number of copies of each unit, on different stores"),
        )
        .arg(
            Arg::new("map")
                .long("map")
                .value_name("MAP")
                .help("Map to write, as a path or a URL that ends in .stripe [default: OBJECT.stripe]"),
        )
        .arg(
            Arg::new("remove-former")
                .long("remove-former")
                .action(ArgAction::SetTrue)
                .help("Removes the units of the map that is replaced. Viewers of the replaced version get an error"),
        )
        .arg(
            Arg::new("scrub")
                .long("scrub")
                .value_name("MAP")
                .conflicts_with_all(["object", "factor", "unit", "copies", "map", "remove-former"])
                .help("Reads all copies of this map's units, and verifies their checksums, instead of striping a file"),
        )
        .arg(
            Arg::new("repair")
                .long("repair")
                .action(ArgAction::SetTrue)
                .requires("scrub")
                // A flag that an absent one needs is taken where the other one conflicts with an argument.
                .conflicts_with("object")
                .help("Replaces copies that are damaged or missing by good ones"),
        )
}

pub(crate) fn undo_command() -> Command {
    Command::new("unstripe")
        .about("Reads a striped object back into a file, and verifies its checksum")
        .arg_required_else_help(true)
        .arg(Arg::new("map").required(true).value_name("MAP").help("Map of the object, as a path or a URL"))
        .arg(over())
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("File to write, which must not exist [default: the object's name, in the working folder]"),
        )
        .arg(
            Arg::new("remove")
                .long("remove")
                .action(ArgAction::SetTrue)
                .help("Removes the map and the units after the file is written"),
        )
}

fn over() -> Arg {
    Arg::new("over").long("over").required(true).value_name("STORES").value_delimiter(',').help(
        "Stores: folders, or s3://, gs:// or az:// buckets. A store that the server reaches by another location needs \
         NAME= before it. ?endpoint=URL after a bucket names its own endpoint",
    )
}

/// Returns the stores of `--over`.
fn stores(matches: &ArgMatches) -> Result<Vec<StripeStore>, Box<dyn Error>> {
    let texts = matches.get_many::<String>("over").into_iter().flatten();
    Ok(texts.map(|text| stripe_store(text)).collect::<Result<_, _>>()?)
}

/// Whoever runs the command may name any file.
fn options() -> OriginOptions {
    OriginOptions { hidden_files: true, ..OriginOptions::default() }
}

/// Describes a failure; of a folder that does not exist, with what may have been meant.
fn told(error: StripeError) -> Box<dyn Error> {
    match error {
        StripeError::Location(error) => PlaceError::from(error).into(),
        error => error.into(),
    }
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    match matches.get_one::<String>("scrub") {
        Some(map) => runtime()?.block_on(verify(matches, map)),
        None => runtime()?.block_on(write(matches)),
    }
}

/// Verifies all copies of a map's units.
async fn verify(matches: &ArgMatches, map: &str) -> Outcome {
    let target = map_target(map)?;
    let (stores, options) = (stores(matches)?, RemoteOptions::default());
    let shown = |bytes: u64| progress(&format!("{} verified", value::show_size(bytes)));
    let mut unsaid = Ok(());
    let report = |fault: &ScrubFault| {
        progress("");
        if unsaid.is_ok() {
            unsaid = tell(fault);
        }
    };
    let scrubbed = scrub(&target, &stores, &options, matches.get_flag("repair"), shown, report).await;
    progress("");
    let scrubbed = scrubbed.map_err(told)?;
    unsaid?;
    let (faults, repaired) = (scrubbed.faults, scrubbed.repaired);
    say!("{target}: {} copies verified, {faults} at fault, {repaired} repaired", scrubbed.copies)?;
    match faults - repaired {
        0 => Ok(()),
        1 => Err(format!("{target}: 1 copy is still at fault").into()),
        left => Err(format!("{target}: {left} copies are still at fault").into()),
    }
}

/// Prints a copy at fault.
fn tell(fault: &ScrubFault) -> Outcome {
    let part = fault.unit.map_or_else(|| "the checksums".to_owned(), |unit| format!("unit {unit}"));
    let outcome = match &fault.outcome {
        ScrubOutcome::Repaired => "repaired".to_owned(),
        ScrubOutcome::Left => "another copy is good".to_owned(),
        ScrubOutcome::Lost => "no copy is good".to_owned(),
        ScrubOutcome::Failed(error) => format!("not repaired: {error}"),
    };
    say!("{part} on {}: {}: {outcome}", fault.store, fault.error)?;
    Ok(())
}

async fn write(matches: &ArgMatches) -> Outcome {
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let object = text("object");
    let map = matches.get_one::<String>("map").cloned().unwrap_or_else(|| format!("{object}{MAP_SUFFIX}"));
    let target = map_target(&map)?;
    let unit =
        value::size(text("unit")).map_err(|bad| format!("--unit {}: expected {}", text("unit"), bad.expected))?;
    let plan = StripePlan {
        stores: stores(matches)?,
        factor: matches.get_one("factor").copied(),
        unit,
        copies: matches.get_one("copies").copied().unwrap_or(1),
    };
    // The object's folder is a place, as the map's is.
    let (folder, name) = crate::target::split(object);
    let source = PlaceSpec::parse(&folder)?.origin(&options(), None)?;
    let path = ObjectPath::parse(&name)?;
    let shown = |bytes: u64| progress(&format!("{} read", value::show_size(bytes)));
    let striped = stripe(&source, &path, &target, &plan, &RemoteOptions::default(), shown).await;
    progress("");
    let striped = striped.map_err(told)?;
    let layout = striped.map.layout();
    say!(
        "{target}: {} bytes in {} units of {} on {} ({})",
        layout.length(),
        layout.units(),
        value::show_size(layout.unit()),
        striped.map.stores().join(", "),
        if layout.copies() == 1 { "one copy".to_owned() } else { format!("{} copies", layout.copies()) },
    )?;
    match striped.former {
        Some(former) if matches.get_flag("remove-former") => {
            remove(&former, &plan.stores, &RemoteOptions::default()).await.map_err(told)?;
        }
        Some(former) => note!("millpond: the units of the former map stay, as stripe-{} in each store", former.id()),
        None => {}
    }
    Ok(())
}

pub(crate) fn undo(matches: &ArgMatches) -> Outcome {
    let target = map_target(matches.get_one::<String>("map").map_or("", String::as_str))?;
    let output = matches.get_one::<PathBuf>("output").cloned().unwrap_or_else(|| PathBuf::from(target.name()));
    if output.exists() {
        return Err(
            format!("{}: the file exists: remove it, or choose another file with --output", output.display()).into()
        );
    }
    let part = output.with_added_extension("part");
    let read = runtime()?.block_on(read(matches, &target, &part));
    progress("");
    let map = match read {
        Ok(map) => map,
        Err(error) => {
            let _ = fs::remove_file(&part);
            return Err(error);
        }
    };
    fs::rename(&part, &output)?;
    say!("{}: {} bytes, SHA-256 {}", output.display(), map.layout().length(), map.sha256())?;
    if matches.get_flag("remove") {
        let (stores, options) = (stores(matches)?, RemoteOptions::default());
        runtime()?.block_on(millpond_store::remove_striped(&target, &map, &stores, &options)).map_err(told)?;
    }
    Ok(())
}

/// Reads a striped object into a file.
async fn read(matches: &ArgMatches, target: &MapTarget, file: &PathBuf) -> Result<StripeMap, Box<dyn Error>> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut out = BufWriter::new(File::create(file).map_err(failed)?);
    let mut bytes = 0;
    let written = |piece: &[u8]| {
        bytes += piece.len() as u64;
        progress(&format!("{} written", value::show_size(bytes)));
        out.write_all(piece)
    };
    let map = unstripe(target, &stores(matches)?, &RemoteOptions::default(), written).await.map_err(told)?;
    out.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
    Ok(map)
}
