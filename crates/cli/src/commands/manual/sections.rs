//! Sections at the end of pages: exit codes, environment, files, other pages.

use clap::Command;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use super::page::reference;

/// The heading of the exit codes in the help of the main command.
pub const EXIT_CODES: &str = "Exit codes";

/// The same for all commands (docs/exit-codes.md).
pub(super) const CODES: [(&str, &str); 3] = [
    ("0", "It worked, or the answer is yes."),
    ("1", "What was asked for could work, but failed or is not there now; or the answer is no."),
    ("2", "It cannot work as it is written: an argument is wrong, or a file or folder that it names."),
];

/// What code 1 means for commands that answer a question.
const ANSWERS: [(&str, &str); 4] = [
    ("compare", "Code 1: nothing can be compared."),
    ("doctor", "Code 1: `anabranch join` would not work now."),
    ("select", "Code 1: no set of relays is in range; the nearest one is printed."),
    ("status", "Code 1: nothing runs in this network namespace, or it does not answer."),
];

/// Variables that no option stands for, with their commands.
const VARIABLES: [(&str, &str, &[&str]); 1] =
    [(ns3_radio::PROGRAM_VARIABLE, "With --backend ns3: the program that runs ns-3.", &["run", "sweep", "claims"])];

/// Files, with the commands that use them.
const FILES: [(&str, &str, &[&str]); 5] = [
    (
        "/var/lib/anabranch/identity",
        "The key of this device (--state names another folder).",
        &["join", "relay", "peers"],
    ),
    ("/var/lib/anabranch/peers.json", "The paired devices.", &["join", "relay", "peers", "doctor"]),
    ("/var/lib/anabranch/volume.json", "The volume that was lent.", &["relay"]),
    (
        "/run/anabranch/*.undo",
        "How to undo what was changed on this host, written before each change.",
        &["join", "relay", "get", "clean", "doctor"],
    ),
    ("/run/anabranch/*.sock", "Sockets of running daemons.", &["join", "relay", "status", "clean"]),
];

/// Pages that belong together, and those of other programs.
const RELATED: [(&str, &[&str], &[&str]); 9] = [
    ("join", &["relay", "status", "doctor", "clean"], &["ip(8)", "nft(8)", "mptcpize(8)"]),
    ("relay", &["join", "peers", "status", "clean"], &["ip(8)", "nft(8)"]),
    ("get", &["serve", "join", "doctor", "clean"], &["curl(1)"]),
    ("serve", &["get"], &[]),
    ("status", &["join", "relay"], &[]),
    ("peers", &["join", "relay"], &[]),
    ("doctor", &["join"], &["ip(8)", "ip-mptcp(8)"]),
    ("run", &["sweep", "check", "compare", "scenarios", "policies"], &[]),
    ("sweep", &["run", "compare"], &[]),
];

/// Adds the sections to the page `name` of `command`.
pub fn add(command: &Command, name: &str, roff: &mut Roff) {
    let short = name.strip_prefix("anabranch-").unwrap_or_default();
    roff.control("SH", ["EXIT STATUS"]);
    terms(CODES.into_iter(), roff);
    if let Some((_, answer)) = ANSWERS.iter().find(|(of, _)| *of == short) {
        roff.control("PP", []);
        roff.text([roman(*answer)]);
    }
    let variables = environment(command, short);
    if !variables.is_empty() {
        roff.control("SH", ["ENVIRONMENT"]);
        terms(variables.iter().map(|(name, what)| (name.as_str(), what.as_str())), roff);
    }
    let files: Vec<_> = FILES.iter().filter(|(.., of)| of.contains(&short)).collect();
    if !files.is_empty() {
        roff.control("SH", ["FILES"]);
        terms(files.into_iter().map(|(path, what, _)| (*path, *what)), roff);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text(others(command, name, short));
}

/// Returns the variables of the environment that matter to a command.
fn environment(command: &Command, short: &str) -> Vec<(String, String)> {
    let of_options = command.get_arguments().filter_map(|option| {
        let (variable, long) = (option.get_env()?.to_string_lossy().into_owned(), option.get_long()?);
        Some((variable, format!("The default of --{long}.")))
    });
    let more = VARIABLES.iter().filter(|(.., of)| of.contains(&short));
    of_options.chain(more.map(|(name, what, _)| ((*name).to_owned(), (*what).to_owned()))).collect()
}

fn others(command: &Command, name: &str, short: &str) -> Vec<Inline> {
    let mut pages: Vec<String> = Vec::new();
    // The page above, and those below.
    pages.extend(name.rsplit_once('-').map(|(above, _)| above.to_owned()));
    pages.extend(command.get_subcommands().filter(|below| !below.is_hide_set()).map(super::page::name));
    let (related, programs) = RELATED
        .iter()
        .find(|(of, ..)| *of == short)
        .map_or((&[][..], &[][..]), |(_, pages, programs)| (*pages, *programs));
    pages.extend(related.iter().map(|page| format!("anabranch-{page}")));
    let mut line: Vec<Inline> = Vec::new();
    for page in pages {
        line.extend((!line.is_empty()).then(|| roman(", ")));
        line.extend(reference(&page));
    }
    for program in programs {
        let (program, section) = program.split_at(program.find('(').unwrap_or(program.len()));
        line.extend([roman(", "), bold(program), roman(section)]);
    }
    line
}

/// Adds a list of terms with their explanations.
fn terms<'a>(terms: impl Iterator<Item = (&'a str, &'a str)>, roff: &mut Roff) {
    for (term, what) in terms {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(what)]);
    }
}

/// Adds lines that are neither filled nor wrapped.
pub fn verbatim<'a>(lines: impl Iterator<Item = &'a str>, roff: &mut Roff) {
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}
