//! Maps of objects: which of their slices are cached.

use super::{super::AdminState, Outcome, bad, cache::failed, request::ApiRequest, show};
use crate::{http::objects_at, problem::Problem};
use http::StatusCode;
use millpond_store::{Object, Store, Whence};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Cells of a map, unless the client says otherwise, and the most.
const CELLS: (u64, u64) = (512, 4096);
/// Most objects of a map.
const OBJECTS: usize = 256;
/// Most slices of an object in a map: each of them is looked up in the cache.
const SLICES: u64 = 4 << 20;

/// The object of a map.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct MapQuery {
    /// Path of a file or asset, as in URLs.
    path: String,
    /// Most cells of a map, 1 to 4096.
    #[param(minimum = 1, maximum = 4096, default = 512)]
    cells: Option<u64>,
}

/// Maps of the objects of a file or asset.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct CacheMap {
    /// Path of the file or asset.
    path: String,
    /// Size of a slice.
    slice_bytes: u64,
    /// Its objects.
    objects: Vec<ObjectMap>,
}

/// The map of one object.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ObjectMap {
    /// Path inside the place.
    path: String,
    /// Length.
    bytes: u64,
    /// Number of slices.
    slices: u64,
    /// Slices of each cell; the last cell may have fewer.
    slices_per_cell: u64,
    /// One character a cell: `m` in memory, `d` cached, `p` cached in part, `c` coming, `.` absent, `f` a local file.
    cells: String,
    /// Bytes in memory.
    memory_bytes: u64,
    /// Bytes on the disk, and not in memory.
    disk_bytes: u64,
}

/// Slices of one cell by their location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    memory: u64,
    disk: u64,
    coming: u64,
    file: u64,
    absent: u64,
}

impl Cell {
    fn count(&mut self, whence: Whence, slices: u64) {
        *match whence {
            Whence::Memory => &mut self.memory,
            Whence::Disk => &mut self.disk,
            Whence::Coming => &mut self.coming,
            Whence::File => &mut self.file,
            Whence::Origin => &mut self.absent,
        } += slices;
    }

    fn character(self) -> char {
        let Self { memory, disk, coming, file, absent } = self;
        match (memory + disk, coming + absent) {
            _ if file > 0 => 'f',
            (_, 0) if disk == 0 => 'm',
            (_, 0) => 'd',
            (1.., _) => 'p',
            _ if coming > 0 => 'c',
            _ => '.',
        }
    }
}

/// Shows which slices of a file or asset are cached.
#[utoipa::path(get, path = "/api/v1/cache/map", tag = "cache", params(MapQuery), responses((status = 200, body = CacheMap)))]
pub(super) async fn get_map(request: &ApiRequest, state: &Arc<AdminState>) -> Outcome {
    let MapQuery { path, cells } = request.query()?;
    let cells = cells.unwrap_or(CELLS.0);
    if !(1..=CELLS.1).contains(&cells) {
        return Err(bad("cells: 1 to 4096"));
    }
    let path = path.trim_matches('/').to_owned();
    let objects = objects_at(&state.front, &path).await.map_err(|error| failed(&error))?;
    let store = state.front.store().clone();
    let slice_bytes = store.slice_size();
    let slices: u64 = objects.iter().take(OBJECTS).map(|object| object.meta().len.div_ceil(slice_bytes)).sum();
    if slices > SLICES {
        let why = format!("{path} has {slices} slices: maps have {SLICES} at most");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY).detail(why));
    }
    let map = move || objects.iter().take(OBJECTS).map(|object| map(&store, object, cells)).collect();
    let objects = tokio::task::spawn_blocking(map).await;
    let objects = objects.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR).detail(error.to_string()))?;
    Ok(show(&CacheMap { path, slice_bytes, objects }))
}

/// The map of an object, with at most `most` cells.
fn map(store: &Store, object: &Arc<Object>, most: u64) -> ObjectMap {
    let (length, slice) = (object.meta().len, store.slice_size());
    let slices = length.div_ceil(slice);
    let slices_per_cell = slices.div_ceil(most).max(1);
    let mut cells = vec![Cell::default(); slices.div_ceil(slices_per_cell) as usize];
    let (mut memory_bytes, mut disk_bytes) = (0, 0);
    for (range, whence) in store.whence(object, 0..length) {
        match whence {
            Whence::Memory => memory_bytes += range.end - range.start,
            Whence::Disk => disk_bytes += range.end - range.start,
            Whence::Coming | Whence::File | Whence::Origin => {}
        }
        count(&mut cells, slices_per_cell, (range.start / slice, range.end.div_ceil(slice)), whence);
    }
    let path = object.path().to_string();
    let cells = cells.into_iter().map(Cell::character).collect();
    ObjectMap { path, bytes: length, slices, slices_per_cell, cells, memory_bytes, disk_bytes }
}

/// Counts slices of one location in their cells.
fn count(cells: &mut [Cell], per_cell: u64, (mut first, end): (u64, u64), whence: Whence) {
    while first < end {
        let number = first / per_cell;
        let next = ((number + 1) * per_cell).min(end);
        if let Some(cell) = cells.get_mut(number as usize) {
            cell.count(whence, next - first);
        }
        first = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_tell_the_location_of_their_slices() {
        let text = |per_cell: u64, runs: &[(u64, Whence)]| -> String {
            let all: u64 = runs.iter().map(|(slices, _)| slices).sum();
            let mut cells = vec![Cell::default(); all.div_ceil(per_cell) as usize];
            let mut first = 0;
            for (slices, whence) in runs {
                count(&mut cells, per_cell, (first, first + slices), *whence);
                first += slices;
            }
            cells.into_iter().map(Cell::character).collect()
        };
        use Whence::{Coming, Disk, File, Memory, Origin};
        assert_eq!(text(1, &[(2, Memory), (1, Disk), (1, Origin), (1, Coming)]), "mmd.c");
        assert_eq!(text(2, &[(2, Memory), (1, Memory), (1, Disk), (1, Disk), (1, Origin), (1, Coming)]), "mdpc");
        assert_eq!(text(100, &[(250, Origin), (1, Coming)]), "..c");
        assert_eq!(text(3, &[(7, File)]), "fff");
    }
}
