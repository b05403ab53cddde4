//! Rows of text with aligned columns.

/// A column, by its title.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Whether its cells are numbers, which end below each other.
    pub(super) is_number: bool,
}

impl Column {
    pub(super) const fn text(title: &'static str) -> Self {
        Self { title, is_number: false }
    }

    pub(super) const fn number(title: &'static str) -> Self {
        Self { title, is_number: true }
    }
}

/// Returns the lines of a table, the titles first. Each column is as wide as its longest cell. Columns without any text are left out.
pub(super) fn table(columns: &[Column], rows: &[Vec<String>]) -> Vec<String> {
    let title = columns.iter().map(|column| column.title.to_owned()).collect();
    let cell = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
    let is_used = |at: &usize| rows.iter().any(|row| !cell(row, *at).is_empty());
    let used: Vec<usize> = (0..columns.len()).filter(is_used).collect();
    let all: Vec<Vec<String>> = std::iter::once(title).chain(rows.iter().cloned()).collect();
    let length = |text: &str| text.chars().count();
    let width = |at: usize| all.iter().map(|row| length(&cell(row, at))).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let cells = used.iter().map(|at| {
            let (text, width) = (cell(row, *at), width(*at));
            let blanks = " ".repeat(width.saturating_sub(length(&text)));
            if columns[*at].is_number { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let columns = [Column::text("NODE"), Column::text("ZONE"), Column::number("LOAD"), Column::text("ROLES")];
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", "", "9.5M", "manager"]), row(["a-name-of-31-characters-and-é-x", "", "12345.5M", ""])];
        assert_eq!(
            table(&columns, &rows),
            [
                "NODE                                 LOAD  ROLES",
                "a                                    9.5M  manager",
                "a-name-of-31-characters-and-é-x  12345.5M",
            ]
        );
    }

    #[test]
    fn a_table_without_rows_has_no_columns() {
        assert_eq!(table(&[Column::text("NODE")], &[]), [""]);
    }
}
