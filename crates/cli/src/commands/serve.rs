//! `anabranch serve`: a folder over HTTP over Multipath TCP.

use std::io::{self, Write as _};
use std::sync::Arc;

use linux::serve::{Ended, ServeOptions, serve as serve_folder};
use linux::stop::Stop;

use crate::arguments;
use crate::commands::engine;
use crate::failure::Failure;
use crate::outlet::Outlet;

/// Serves until Ctrl-C. The device ends with the process, however it ends.
pub fn serve(arguments: &arguments::Serve) -> Result<(), Failure> {
    let (engine, recordings) = engine::options(&arguments.engine, "serve")?;
    // A reader of the log that pauses or disappears must not stop the service.
    let mut log = Outlet::to(io::stderr());
    let _log = log.drained();
    let results = arguments.json.then(|| Outlet::to(io::stdout()));
    let _results = results.as_ref().map(Outlet::drained);
    let options = ServeOptions {
        engine,
        ended: results.map(tell_json),
        folder: arguments.folder.clone(),
        port: arguments.port,
        via: arguments.via.clone(),
        idle_max: arguments.idle,
    };
    let stop = Stop::on_signals()?;
    let mut say = |line: &str| drop(log.write_all(format!("{line}\n").as_bytes()));
    let ended = serve_folder(&options, &stop, &mut say);
    drop(options);
    let recorded = recordings.finish();
    ended?;
    recorded
}

/// Writes one line for each finished connection.
fn tell_json(results: Outlet) -> Ended {
    Arc::new(move |connection| {
        let line = serde_json::to_string(connection).unwrap_or_default() + "\n";
        let _ = results.clone().write_all(line.as_bytes());
    })
}
