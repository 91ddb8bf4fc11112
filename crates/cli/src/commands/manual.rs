//! `anabranch manual` and `anabranch completions`: files for the system, generated from the command's arguments.

mod page;
mod sections;

use std::io::{self, Write as _};
use std::path::Path;

use clap::{Command, CommandFactory as _};

use crate::arguments::{self, Arguments};
use crate::console;
use crate::failure::Failure;

/// Writes pages for all commands into a folder, or the main page to standard output.
pub fn manual(arguments: &arguments::Manual) -> Result<(), Failure> {
    let mut pages = Vec::new();
    collect(&command(), &mut pages)?;
    let Some(folder) = &arguments.folder else {
        let main = pages.first().map_or(&[][..], |(_, page)| page.as_slice());
        return Ok(console::print(&String::from_utf8_lossy(main))?);
    };
    write_all(folder, &pages).map_err(|error| {
        let what = format!("cannot write the manual to {}: {error}", folder.display());
        Failure::of_place(&error, what)
    })
}

fn write_all(folder: &Path, pages: &[(String, Vec<u8>)]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, page) in pages {
        std::fs::File::create(folder.join(format!("{name}.1")))?.write_all(page)?;
    }
    Ok(())
}

fn command() -> Command {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    command
}

/// Adds the pages of a command and of those below it, each with its name.
fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    pages.push((page::name(command), page::render(command)?));
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| collect(below, pages))
}

/// Writes the shell's completion script.
pub fn completions(arguments: &arguments::Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "anabranch", &mut script);
    Ok(console::print(&String::from_utf8_lossy(&script))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Vec<(String, String)> {
        let mut pages = Vec::new();
        collect(&command(), &mut pages).unwrap();
        pages.into_iter().map(|(name, page)| (name, String::from_utf8(page).unwrap())).collect()
    }

    fn page(name: &str) -> String {
        pages().into_iter().find(|(known, _)| known == name).expect(name).1
    }

    /// Returns the words of a synopsis, without fonts.
    fn synopsis(name: &str) -> String {
        let page = page(name);
        let section = page.split(".SH SYNOPSIS\n").nth(1).unwrap().lines().next().unwrap().to_owned();
        ["\\fB", "\\fI", "\\fR"].iter().fold(section, |text, font| text.replace(font, "")).replace("\\-", "-")
    }

    #[test]
    fn every_page_belongs_to_the_program_and_ends_with_its_exit_codes_and_others() {
        for (name, page) in pages() {
            let version = env!("CARGO_PKG_VERSION");
            assert!(page.contains(&format!("\"anabranch {version}\" Anabranch")), "{name}: {page}");
            for heading in ["NAME", "SYNOPSIS", "\"EXIT STATUS\"", "\"SEE ALSO\""] {
                assert!(page.contains(&format!(".SH {heading}\n")), "{name}: {heading}: {page}");
            }
            assert!(!page.contains("EXTRA"), "{name}");
        }
    }

    #[test]
    fn exit_codes_are_the_same_everywhere() {
        let page = include_str!("../../../../docs/exit-codes.md");
        let help = Arguments::command().render_help().to_string();
        for (code, meaning) in sections::CODES {
            let meaning = meaning[..1].to_lowercase() + meaning[1..].trim_end_matches('.');
            assert!(page.contains(&format!("| {code} | {meaning} |\n")), "{meaning}");
            assert!(
                help.contains(&format!("  {code}  {meaning}\n")) || help.ends_with(&format!("  {code}  {meaning}")),
                "{help}"
            );
        }
    }

    #[test]
    fn a_synopsis_shows_values_and_what_may_be_repeated() {
        let get = synopsis("anabranch-get");
        assert!(get.starts_with("anabranch get ") && get.ends_with(" URL"), "{get}");
        for part in ["[-o|--output FILE]", "[--interface NAME]...", "[-C|--continue]", "[--json]"] {
            assert!(get.contains(part), "{part}: {get}");
        }
        assert!(
            synopsis("anabranch-check").contains("anabranch check SCENARIOS..."),
            "{}",
            synopsis("anabranch-check")
        );
        assert!(synopsis("anabranch-select").contains(" --relays RATE,... --target RATE "));
        assert!(synopsis("anabranch-join").contains("[--pair [ADDR|URI]]"));
        assert!(synopsis("anabranch-doctor").ends_with("[SERVER[:PORT]]..."));
        assert!(synopsis("anabranch-peers").contains("[COMMAND]"));
    }

    #[test]
    fn examples_stay_as_they_are_so_that_they_can_be_copied() {
        let get = page("anabranch-get");
        let examples = get.split(".SH EXAMPLES\n.nf\n").nth(1).unwrap().split("\n.fi").next().unwrap();
        let lines: Vec<String> = examples.lines().map(|line| line.replace("\\-", "-")).collect();
        assert_eq!(lines[1], "anabranch get http://10.1.0.1/big.iso -C");
        assert!(get.contains(".SH NOTES\nWith \\-\\-interface, routing tables"), "{get}");
        assert!(page("anabranch-join").contains(".SH ENVIRONMENT") && page("anabranch-join").contains("ANABRANCH_LOG"));
        assert!(page("anabranch-relay").contains("/var/lib/anabranch"));
    }
}
