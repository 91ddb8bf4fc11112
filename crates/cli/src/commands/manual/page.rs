//! One page: those sections of `clap_mangen` that suit, and our own for the others.

use std::io;

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::sections;

/// Section of the manual: commands.
const SECTION: &str = "1";

/// Returns the name of a page, such as `anabranch-get`.
pub fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// Returns the page of a command that has been built.
pub fn render(command: &Command) -> io::Result<Vec<u8>> {
    let version = command.get_version().unwrap_or_default();
    let man = Man::new(command.clone()).source(format!("anabranch {version}")).manual("Anabranch");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    after_help(command, &mut rest);
    sections::add(command, &name(command), &mut rest);
    rest.to_writer(&mut page)?;
    Ok(page)
}

/// Shows all options with their values, what may be left out, and what may be repeated.
fn synopsis(command: &Command) -> Roff {
    let mut line = vec![bold(command.get_bin_name().unwrap_or_else(|| command.get_name()))];
    let shown = |argument: &&Arg| !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version");
    let options: Vec<&Arg> = command.get_opts().chain(flags(command)).filter(shown).collect();
    let (needed, free): (Vec<&Arg>, Vec<&Arg>) = options.into_iter().partition(|option| option.is_required_set());
    for argument in needed.into_iter().chain(free).chain(command.get_positionals().filter(shown)) {
        line.push(roman(" "));
        line.extend(described(argument));
    }
    if command.has_subcommands() {
        let all = if command.is_subcommand_required_set() { ["", ""] } else { ["[", "]"] };
        line.extend([roman(format!(" {}", all[0])), italic("COMMAND"), roman(all[1])]);
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text(line);
    roff
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_positional() && !argument.get_action().takes_values())
}

fn described(argument: &Arg) -> Vec<Inline> {
    let brackets = if argument.is_required_set() { ["", ""] } else { ["[", "]"] };
    let (values, is_list) = (values(argument), is_list(argument));
    let mut parts = vec![roman(brackets[0])];
    if !argument.is_positional() {
        parts.extend(names(argument));
        if !values.is_empty() {
            let may_lack = argument.get_num_args().is_some_and(|count| count.min_values() == 0);
            let around = if may_lack { [" [", "]"] } else { [" ", ""] };
            parts.extend([roman(around[0]), italic(values), roman(around[1])]);
        }
    } else {
        parts.push(italic(values));
    }
    parts.push(roman(brackets[1]));
    parts.extend(is_list.then(|| roman("...")));
    parts
}

/// Returns the names of an option, such as `-o|--output`.
fn names(option: &Arg) -> Vec<Inline> {
    let short = option.get_short().map(|short| format!("-{short}"));
    let long = option.get_long().map(|long| format!("--{long}"));
    let mut names = Vec::new();
    for name in short.into_iter().chain(long) {
        if !names.is_empty() {
            names.push(roman("|"));
        }
        names.push(bold(name));
    }
    names
}

fn values(argument: &Arg) -> String {
    if !argument.is_positional() && !argument.get_action().takes_values() {
        return String::new();
    }
    let names = argument.get_value_names().unwrap_or_default();
    names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns whether an argument may be given more than once.
fn is_list(argument: &Arg) -> bool {
    let takes_several = argument.get_num_args().is_some_and(|count| count.max_values() > 1);
    matches!(argument.get_action(), ArgAction::Append | ArgAction::Count) || takes_several
}

/// Adds what follows the options in the help. Lines below a heading, such as `Examples:`, are to be copied, and stay as
/// they are.
fn after_help(command: &Command, roff: &mut Roff) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut has_notes = false;
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        match first.strip_suffix(':').filter(|_| rest.starts_with("  ")) {
            // They have a section of their own on every page.
            Some(sections::EXIT_CODES) => {}
            Some(heading) => {
                roff.control("SH", [heading.to_uppercase().as_str()]);
                sections::verbatim(rest.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)), roff);
                has_notes = false;
            }
            None => {
                roff.control(if has_notes { "PP" } else { "SH" }, if has_notes { vec![] } else { vec!["NOTES"] });
                roff.text([roman(paragraph.split('\n').collect::<Vec<_>>().join(" "))]);
                has_notes = true;
            }
        }
    }
}

/// Returns the name of a page as others refer to it.
pub fn reference(name: &str) -> [Inline; 2] {
    [bold(name), roman(format!("({SECTION})"))]
}
