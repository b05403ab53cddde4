//! The test that keeps the page of commands and their declarations together.

use super::cli;
use millpond_server::config::Config;
use millpond_terminal::page;

const HEAD: &str = "\
# Commands

`millpond COMMAND --help` prints the same, `man millpond-COMMAND` too. The exit code is 0 after success, 1 after a failure, and 2 for a command line that can't be
read. Colours and progress are shown on terminals only; `NO_COLOR` switches colours off.

`load` and `simulate` run another program, [millpond-lab](lab.md), which is installed beside this one.

`just settings` writes this page from the declarations in the source; a test fails when they differ.

";

#[test]
fn the_page_of_commands_is_that_of_the_declarations() {
    let declarations = Config::settings();
    page::compare("commands.md", HEAD, &cli(), &declarations.iter().map(|setting| setting.name).collect());
}
