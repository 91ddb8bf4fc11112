//! Manual: the application decides everything (RFC 6897).

use super::{PathCommand, PathEvent, PathManager, PathManagerView};

/// Does nothing by itself. Subflows and announcements come only from the endpoint's commands.
#[derive(Debug, Default)]
pub struct Manual;

impl PathManager for Manual {
    fn name(&self) -> &'static str {
        "manual"
    }

    fn handle_event(&mut self, _event: &PathEvent, _view: &PathManagerView<'_>, _commands: &mut Vec<PathCommand>) {}
}
