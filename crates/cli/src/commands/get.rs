//! `anabranch get`: a file over HTTP over Multipath TCP.

use std::io::IsTerminal;
use std::path::PathBuf;

use linux::get::{GetOptions, GetReport, get as get_file};
use linux::http::Url;
use linux::stop::Stop;

use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Downloads a file, whole or not at all.
pub fn get(arguments: &arguments::Get) -> Result<(), Failure> {
    let url: Url = arguments.url.parse().map_err(Failure::Input)?;
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None => name_of(&arguments.url)?,
    };
    let progress = std::io::stderr().is_terminal();
    let options = GetOptions { url, output: output.clone(), via: arguments.via.clone(), progress };
    let stop = Stop::on_signals()?;
    let report = get_file(&options, &stop)?;
    console::print(&describe(&report, &output))?;
    Ok(())
}

/// The last part of the URL's path.
fn name_of(url: &str) -> Result<PathBuf, Failure> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let place = path.split_once("://").map_or(path, |(_, place)| place);
    let name = place.split_once('/').map_or("", |(_, path)| path);
    match name.rsplit('/').next().filter(|name| !name.is_empty()) {
        Some(name) => Ok(name.into()),
        None => Err(Failure::Input(format!(
            "{url} names no file: write it like http://10.1.0.1/big.iso, or say with -o where to put it"
        ))),
    }
}

fn describe(report: &GetReport, output: &std::path::Path) -> String {
    let seconds = report.duration.as_secs_f64();
    let megabits = report.bytes as f64 * 8e-6 / seconds.max(1e-9);
    let protocol = if report.connection.mptcp { "MPTCP" } else { "TCP" };
    let used = report.connection.subflows.iter().filter(|subflow| subflow.received_bytes > 0).count();
    format!(
        "{}: {} bytes in {seconds:.2} s, {megabits:.1} Mbit/s over {protocol} with {used} subflow{}\n",
        output.display(),
        report.bytes,
        if used == 1 { "" } else { "s" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_as_in_its_url() {
        let name = |url: &str| name_of(url).ok().map(|path| path.display().to_string());
        assert_eq!(name("http://10.1.0.1/a/big.iso?x=/y#z").as_deref(), Some("big.iso"));
        assert_eq!(name("10.1.0.1:8080/big.iso").as_deref(), Some("big.iso"));
        assert_eq!([name("http://10.1.0.1/a/"), name("http://10.1.0.1"), name("foo")], [None, None, None]);
    }
}
