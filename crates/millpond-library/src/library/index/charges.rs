//! Memory that is charged while an index is built.

use crate::work::{Charge, PoolError, WorkPool};

/// Bytes by which the charge for the tables of a scan grows.
const TABLES: u64 = 1 << 20;

/// Memory of the bytes that were read for an index.
#[derive(Default)]
pub(super) struct ReadCharges {
    pub(super) charges: Vec<Charge>,
    /// Bytes whose charges stay until the end.
    pub(super) bytes: u64,
    /// Number of charges that stay until the end. Their bytes are not scanned.
    kept: usize,
}

impl ReadCharges {
    /// Frees the memory of bytes that were scanned.
    pub(super) fn end_of_scanned(&mut self) {
        self.charges.truncate(self.kept);
    }

    /// Notes the memory of the next read.
    pub(super) fn push(&mut self, charge: Charge, bytes: u64, is_scanned: bool) {
        self.charges.push(charge);
        if !is_scanned {
            self.bytes = self.bytes.saturating_add(bytes);
            self.kept = self.charges.len();
        }
    }
}

/// Memory of the sample tables of a scan.
#[derive(Default)]
pub(super) struct TableCharges {
    pub(super) charges: Vec<Charge>,
    bytes: u64,
}

impl TableCharges {
    /// Returns the bytes that are charged for tables of `held` bytes.
    pub(super) fn rounded(&self, held: u64) -> u64 {
        let more = held.saturating_sub(self.bytes).next_multiple_of(TABLES);
        self.bytes.saturating_add(more)
    }

    /// Charges tables of `held` bytes.
    pub(super) async fn grow(&mut self, pool: &WorkPool, held: u64) -> Result<(), PoolError> {
        let all = self.rounded(held);
        if all > self.bytes {
            self.charges.push(pool.charge(all - self.bytes).await?);
            self.bytes = all;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::PoolOptions;
    use millpond_store::{Store, StoreOptions};

    #[tokio::test]
    async fn memory_of_scanned_bytes_is_given_back() {
        let store = Store::new(&StoreOptions::default()).unwrap();
        let pool = WorkPool::new(PoolOptions { threads: 2 }, store.memory()).unwrap();
        let mut read = ReadCharges::default();
        read.push(pool.charge(1000).await.unwrap(), 1000, false);
        for _ in 0..5 {
            read.end_of_scanned();
            assert_eq!((store.memory().used(), read.bytes), (1000, 1000));
            read.push(pool.charge(5000).await.unwrap(), 5000, true);
        }
        let mut tables = TableCharges::default();
        for held in [0, 1, TABLES] {
            tables.grow(&pool, held).await.unwrap();
        }
        assert_eq!(store.memory().used(), 6000 + TABLES);
        assert_eq!(tables.rounded(TABLES + 1), 2 * TABLES);
    }
}
