//! What is said where finished runs are another build's.

use std::io;

use lab::run::sweep::Journal;

use crate::console;

/// Says that another build of this program has made some of the runs, and what to do if they differ; nothing if it has not. Gives whether it did.
pub fn complain_of_others(journal: &Journal, remedy: &str) -> io::Result<bool> {
    let (others, all) = (journal.of_other_builds(), journal.records().len());
    if others > 0 {
        console::complain(&format!(
            "note: {others} of {all} finished runs were made by another build of this program: if what it computes has changed, {remedy}\n"
        ))?;
    }
    Ok(others > 0)
}
