//! `anabranch get`: a file over HTTP over Multipath TCP.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lab::present::quantity;
use linux::get::{GetOptions, GetReport, Output, get as get_file};
use linux::http::Url;
use linux::stop::Stop;
use linux::uplink::{self, Families};
use serde::Serialize;

use crate::arguments;
use crate::commands::engine;
use crate::console::{self, DownloadBar};
use crate::failure::Failure;
use crate::real_path::real_path;

/// Downloads a file, completely or not at all.
pub fn get(arguments: &arguments::Get) -> Result<(), Failure> {
    let url: Url = arguments.url.parse().map_err(Failure::Input)?;
    if arguments.dry_run {
        engine::rehearse(&arguments.engine)?;
        return Ok(console::print(
            &uplink::rehearse(&uplink::discover(&arguments.interfaces)?, Families::OfNow)?.to_string(),
        )?);
    }
    let output = match arguments.output.as_deref() {
        Some(path) if path == Path::new("-") => Output::Stdout,
        Some(path) => Output::File(path.to_owned()),
        None => Output::File(name_of(&url)?),
    };
    check_recordings(&arguments.engine, &output)?;
    let (via, interfaces) = (arguments.via.clone(), arguments.interfaces.clone());
    let (engine, recordings) = engine::options(&arguments.engine, "get")?;
    let options = GetOptions { url, output, via, interfaces, resume: arguments.resume, engine };
    let stop = Stop::on_signals()?;
    let bar = DownloadBar::new();
    let report = get_file(&options, &stop, &mut |progress| bar.show(progress));
    drop(bar);
    let output = options.output.clone();
    drop(options);
    let recorded = recordings.finish();
    let report = match report {
        Err(error) if arguments.json => return Err(fail_json(error.into(), &output)),
        report => report?,
    };
    recorded?;
    if arguments.json {
        return tell_json(&report, &output);
    }
    let place = match &output {
        Output::File(path) => path.display().to_string(),
        Output::Stdout => "standard output".into(),
    };
    tell(&describe(&report, &place), &output)
}

/// Checks that no recording replaces the download.
fn check_recordings(engine: &arguments::Engine, output: &Output) -> Result<(), Failure> {
    let Output::File(path) = output else { return Ok(()) };
    for (option, file, what) in [("--pcap", &engine.pcap, "capture"), ("--qlog", &engine.qlog, "log")] {
        if let Some(file) = file.as_deref().filter(|file| real_path(file) == real_path(path)) {
            let file = file.display();
            return Err(Failure::Input(format!(
                "{option} {file} is also the output file: choose another file for the {what}"
            )));
        }
    }
    Ok(())
}

/// Reports a failure as JSON. If JSON goes to standard error, no other text may follow there.
fn fail_json(failure: Failure, output: &Output) -> Failure {
    let (code, why) = failure.parts();
    match tell_json(&serde_json::json!({ "error": why }), output) {
        Ok(()) if !leaves_stdout(output) => Failure::Said(code),
        _ => failure,
    }
}

fn tell_json(report: &impl Serialize, output: &Output) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(report).map_err(|error| Failure::Failed(error.to_string()))?;
    tell(&format!("{text}\n"), output)
}

fn tell(text: &str, output: &Output) -> Result<(), Failure> {
    let told = if leaves_stdout(output) { console::print(text) } else { console::complain(text) };
    Ok(told?)
}

/// Returns whether the output is certainly not standard output, which it is at /dev/stdout.
fn leaves_stdout(output: &Output) -> bool {
    let Output::File(path) = output else { return false };
    match (fs::metadata(path), fs::metadata("/proc/self/fd/1")) {
        (Ok(file), Ok(stdout)) => (file.dev(), file.ino()) != (stdout.dev(), stdout.ino()),
        (Ok(file), Err(_)) => file.is_file(),
        (Err(_), _) => true,
    }
}

/// Returns the last part of the URL's path.
fn name_of(url: &Url) -> Result<PathBuf, Failure> {
    url.file_name().map(PathBuf::from).ok_or_else(|| {
        Failure::Input(format!(
            "{url} names no file: write it like http://10.1.0.1/big.iso, or choose the output file with -o"
        ))
    })
}

fn describe(report: &GetReport, place: &str) -> String {
    if report.was_complete {
        return format!("{place}: complete already, and unchanged on the server\n");
    }
    let seconds = report.duration.as_secs_f64();
    let rate = quantity(report.bytes as f64 * 8.0 / seconds.max(f64::MIN_POSITIVE), "bit/s");
    let bytes = quantity(report.bytes as f64, "B");
    let before = match report.resumed_bytes {
        0 => String::new(),
        there => format!(" after {} kept from before", quantity(there as f64, "B")),
    };
    let anew = report.begun_anew.map_or(String::new(), |why| format!("; it began anew: {why}"));
    let protocol = if report.connection.mptcp { "MPTCP" } else { "TCP" };
    let used = report.connection.subflows.iter().filter(|subflow| subflow.received_bytes > 0).count();
    let plural = if used == 1 { "" } else { "s" };
    format!("{place}: {bytes}{before} in {seconds:.3} s, {rate} over {protocol} with {used} subflow{plural}{anew}\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use units::Duration;

    use super::*;

    #[test]
    fn a_file_is_called_as_in_its_url() {
        let name = |url: &str| name_of(&url.parse().unwrap()).ok().map(|path| path.display().to_string());
        assert_eq!(name("http://10.1.0.1/a/big%20one.iso?x=/y#z").as_deref(), Some("big one.iso"));
        assert_eq!(name("10.1.0.1:8080/big.iso").as_deref(), Some("big.iso"));
        assert_eq!([name("http://10.1.0.1/a/"), name("http://10.1.0.1"), name("foo")], [None, None, None]);
    }

    #[test]
    fn a_recording_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let engine = |file: Option<PathBuf>| arguments::Engine {
            congestion: None,
            scheduler: None,
            path_manager: None,
            checksum: false,
            pcap: file.clone().filter(|file| !file.ends_with("log")),
            qlog: file.filter(|file| file.ends_with("log")),
        };
        let check = |file: &str, output: &str| check_recordings(&engine(Some(at(file))), &Output::File(at(output)));
        assert!(matches!(check("f", "f"), Err(Failure::Input(why)) if why.contains("choose another file")));
        fs::write(at("f"), b"").unwrap();
        symlink(at("f"), at("link")).unwrap();
        assert!(check("link", "f").is_err() && check("./f", "link").is_err());
        assert!(check("g", "f").is_ok() && check_recordings(&engine(None), &Output::File(at("f"))).is_ok());
        assert!(matches!(check("log", "log"), Err(Failure::Input(why)) if why.starts_with("--qlog")));
    }

    #[test]
    fn the_report_has_the_units_of_all_others() {
        let report = GetReport {
            bytes: 5_000_000,
            resumed_bytes: 0,
            was_complete: false,
            begun_anew: None,
            duration: Duration::from_millis(2_000),
            connection: Default::default(),
        };
        assert_eq!(describe(&report, "x"), "x: 5.00 MB in 2.000 s, 20.0 Mbit/s over TCP with 0 subflows\n");
        let anew = GetReport { begun_anew: Some("the file on the server has changed"), ..report.clone() };
        assert!(describe(&anew, "x").ends_with("0 subflows; it began anew: the file on the server has changed\n"));
        let report = GetReport { resumed_bytes: 1_000, ..report };
        let again = GetReport { was_complete: true, ..report.clone() };
        assert_eq!(describe(&again, "x"), "x: complete already, and unchanged on the server\n");
        assert!(describe(&report, "x").contains("5.00 MB after 1.00 kB kept from before in 2.000 s"));
    }
}
