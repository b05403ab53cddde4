//! Inverse transforms (8.5.10, 8.5.12.2 and 8.5.13.2). Blocks are row by row.

/// Transforms the DC coefficients of luma.
pub(crate) fn hadamard(block: &mut [i32; 16]) {
    let one = |[a, b, c, d]: [i32; 4]| [a + b + c + d, a + b - c - d, a - b - c + d, a - b + c - d];
    both(block, one);
}

/// Transforms a block of 4 by 4. The result is 64 times too large.
pub(crate) fn four(block: &mut [i32; 16]) {
    let one = |[a, b, c, d]: [i32; 4]| {
        let (e, f, g, h) = (a + c, a - c, (b >> 1) - d, b + (d >> 1));
        [e + h, f + g, f - g, e - h]
    };
    both(block, one);
}

/// Applies a transform to each row, then to each column.
fn both(block: &mut [i32; 16], one: impl Fn([i32; 4]) -> [i32; 4]) {
    for row in block.chunks_exact_mut(4) {
        row.copy_from_slice(&one([row[0], row[1], row[2], row[3]]));
    }
    for x in 0..4 {
        let column = one([block[x], block[x + 4], block[x + 8], block[x + 12]]);
        for (y, value) in column.into_iter().enumerate() {
            block[x + 4 * y] = value;
        }
    }
}

/// Transforms a block of 8 by 8. The result is 64 times too large.
pub(crate) fn eight(block: &mut [i32; 64]) {
    for row in block.as_chunks_mut::<8>().0 {
        *row = eight_once(*row);
    }
    for x in 0..8 {
        let column = eight_once(std::array::from_fn(|y| block[x + 8 * y]));
        for (y, value) in column.into_iter().enumerate() {
            block[x + 8 * y] = value;
        }
    }
}

fn eight_once(v: [i32; 8]) -> [i32; 8] {
    let a = [
        v[0] + v[4],
        -v[3] + v[5] - v[7] - (v[7] >> 1),
        v[0] - v[4],
        v[1] + v[7] - v[3] - (v[3] >> 1),
        (v[2] >> 1) - v[6],
        -v[1] + v[7] + v[5] + (v[5] >> 1),
        v[2] + (v[6] >> 1),
        v[3] + v[5] + v[1] + (v[1] >> 1),
    ];
    let b = [
        a[0] + a[6],
        a[1] + (a[7] >> 2),
        a[2] + a[4],
        a[3] + (a[5] >> 2),
        a[2] - a[4],
        (a[3] >> 2) - a[5],
        a[0] - a[6],
        a[7] - (a[1] >> 2),
    ];
    [b[0] + b[7], b[2] + b[5], b[4] + b[3], b[6] + b[1], b[6] - b[1], b[4] - b[3], b[2] - b[5], b[0] - b[7]]
}
