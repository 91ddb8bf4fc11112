//! `anabranch manual` and `anabranch completions`: files for the system, generated from the command's arguments.

use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::arguments::{self, Arguments};
use crate::console;
use crate::failure::Failure;

/// Writes pages for all commands into a folder, or the main page to standard output.
pub fn manual(arguments: &arguments::Manual) -> Result<(), Failure> {
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        Man::new(Arguments::command()).render(&mut page)?;
        return Ok(console::print(&String::from_utf8_lossy(&page))?);
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    written.map_err(|error| Failure::Failed(format!("cannot write the manual to {}: {error}", folder.display())))
}

/// Writes the shell's completion script.
pub fn completions(arguments: &arguments::Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "anabranch", &mut script);
    Ok(console::print(&String::from_utf8_lossy(&script))?)
}
