//! `anabranch serve`: a folder over HTTP over Multipath TCP.

use linux::serve::{ServeOptions, serve as serve_folder};
use linux::stop::Stop;

use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Serves until Ctrl-C; the device goes with the process, however it ends.
pub fn serve(arguments: &arguments::Serve) -> Result<(), Failure> {
    let options = ServeOptions {
        folder: arguments.folder.clone(),
        port: arguments.port,
        via: arguments.via.clone(),
        idle_max: arguments.idle,
    };
    let stop = Stop::on_signals()?;
    // What is said is for people, and a log that nobody reads any more must not end the service.
    let mut say = |line: &str| drop(console::complain(&format!("{line}\n")));
    serve_folder(&options, &stop, &mut say)?;
    Ok(())
}
