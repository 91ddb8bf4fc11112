//! `anabranch serve`: a folder over HTTP over Multipath TCP.

use linux::serve::{ServeOptions, serve as serve_folder};
use linux::stop::Stop;

use transport::ConnectionStats;

use crate::arguments;
use crate::commands::engine;
use crate::console;
use crate::failure::Failure;

/// Serves until Ctrl-C; the device goes with the process, however it ends.
pub fn serve(arguments: &arguments::Serve) -> Result<(), Failure> {
    let (engine, tape) = engine::options(&arguments.engine)?;
    let options = ServeOptions {
        engine,
        ended: arguments.json.then_some(tell_json),
        folder: arguments.folder.clone(),
        port: arguments.port,
        via: arguments.via.clone(),
        idle_max: arguments.idle,
    };
    let stop = Stop::on_signals()?;
    // What is said is for people, and a log that nobody reads any more must not end the service.
    let mut say = |line: &str| drop(console::complain(&format!("{line}\n")));
    let ended = serve_folder(&options, &stop, &mut say);
    drop(options);
    let captured = tape.finish();
    ended?;
    captured
}

/// One line for a connection that has ended; that nobody reads it any more must not end the service.
fn tell_json(connection: &ConnectionStats) {
    let line = serde_json::to_string(connection).unwrap_or_default();
    let _ = console::print(&format!("{line}\n"));
}
