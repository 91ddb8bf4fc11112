//! The warning about runs of another build.

use std::io;

use lab::run::sweep::Journal;

use crate::console;

/// Warns if another build of this program made some of the runs, and says what to do if they differ. Returns whether
/// there are such runs.
pub fn complain_of_others(journal: &Journal, remedy: &str) -> io::Result<bool> {
    let (others, all) = (journal.of_other_builds(), journal.records().len());
    if others > 0 {
        console::complain(&format!(
            "note: {others} of {all} finished runs come from another build of this program: if its results have \
             changed, {remedy}\n"
        ))?;
    }
    Ok(others > 0)
}
