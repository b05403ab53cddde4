//! The heap of the GNU C library.

use std::{io, thread, time::Duration};

/// Interval between two checks of the heap.
const INTERVAL: Duration = Duration::from_secs(5);
/// Least number of free bytes that are returned.
const LEAST: usize = 8 << 20;

/// Bytes of the heap.
#[derive(Clone, Copy, Debug)]
struct Heap {
    /// Bytes that the program uses.
    used: usize,
    /// Bytes that the C library keeps. Bytes that were returned to the system without being unmapped count too.
    free: usize,
}

/// Starts the thread that returns freed memory.
///
/// # Errors
///
/// Where the system has no further thread.
pub(in super::super) fn watch() -> io::Result<()> {
    let look = || {
        let mut returned = None;
        loop {
            thread::sleep(INTERVAL);
            let heap = heap();
            if is_worth(heap, returned) {
                trim();
                returned = Some(heap);
            }
        }
    };
    thread::Builder::new().name("heap".into()).spawn(look).map(drop)
}

/// Whether free memory should be returned: it is a good part of the heap, and something was used or freed since the last
/// return.
fn is_worth(heap: Heap, returned: Option<Heap>) -> bool {
    let has_changed =
        returned.is_none_or(|last| last.used.abs_diff(heap.used) + last.free.abs_diff(heap.free) > LEAST / 8);
    heap.free > LEAST.max(heap.used / 2) && has_changed
}

#[expect(unsafe_code, reason = "the standard library has no statistics of the heap")]
fn heap() -> Heap {
    // SAFETY: it takes no arguments, and takes the locks of the arenas that it counts.
    let counts = unsafe { libc::mallinfo2() };
    Heap { used: counts.uordblks, free: counts.fordblks }
}

#[expect(unsafe_code, reason = "the standard library can't return memory of the heap")]
fn trim() {
    // SAFETY: any thread may call it at any time; it takes the locks of the arenas that it trims.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_returned_where_it_is_much_and_the_heap_has_changed() {
        let heap = |used: usize, free: usize| Heap { used: used << 20, free: free << 20 };
        assert!(is_worth(heap(2, 100), None));
        assert!(!is_worth(heap(2, 7), None), "too little");
        assert!(!is_worth(heap(200, 50), None), "a small part");
        assert!(!is_worth(heap(2, 100), Some(heap(2, 100))), "returned before");
        assert!(is_worth(heap(2, 100), Some(heap(40, 62))));
    }

    #[test]
    fn holes_are_returned() {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let kib = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
            kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
        };
        let mut blocks: Vec<Option<Vec<u8>>> = (0..8192).map(|_| Some(vec![1; 8 << 10])).collect();
        // Blocks that stay keep the arena from shrinking by itself.
        for (n, block) in blocks.iter_mut().enumerate() {
            block.take_if(|_| n % 8 != 0);
        }
        let (before, counted) = (resident(), heap());
        assert!(counted.free > 50 << 20, "{counted:?}");
        trim();
        let after = resident();
        assert!(after + (40 << 20) < before, "{before} {after}");
        assert!(blocks.iter().flatten().all(|block| block.iter().all(|byte| *byte == 1)));
    }
}
