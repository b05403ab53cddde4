//! The test that keeps the page of commands and their declarations together.

use millpond_terminal::page;
use std::collections::HashSet;

const HEAD: &str = "\
# Commands of millpond-lab

Load generators for servers of all kinds, and simulators of caches and clusters. `millpond load` and `millpond simulate` run this program.
`millpond-lab COMMAND --help` prints the same, `man millpond-lab-COMMAND` too. Exit codes and colours are those of [millpond](commands.md).

`just settings` writes this page from the declarations in the source; a test fails when they differ.

";

#[test]
fn the_page_of_commands_is_that_of_the_declarations() {
    page::compare("lab.md", HEAD, &super::cli(), &HashSet::new());
}
