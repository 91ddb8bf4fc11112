//! A modem's report about its link before any traffic: a first guess, if ModemManager runs.
//!
//! The relay asks ModemManager's `mmcli` once, in JSON. Without it, or without a modem behind the interface, there is
//! no guess.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use units::Rate;

/// Time limit: `mmcli` answers at once or not at all; on a bus without the service it may wait.
const PATIENCE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(10);
/// Typical rate of an access technology at full signal, Mbit/s; not its maximum. The names are ModemManager's.
const TYPICAL_MBPS: [(&str, f64); 8] = [
    ("5gnr", 100.0),
    ("lte", 20.0),
    ("hspa-plus", 8.0),
    ("hspa", 4.0),
    ("hsdpa", 4.0),
    ("umts", 0.3),
    ("edge", 0.1),
    ("gprs", 0.04),
];

/// Returns the expected rate of the modem behind `interface`, if there is one and it reports its signal.
pub fn expected(interface: &str) -> Option<Rate> {
    expected_by("mmcli", interface)
}

fn expected_by(mmcli: &str, interface: &str) -> Option<Rate> {
    let list = ask(mmcli, &["-L", "-J"])?;
    let modems = list.get("modem-list")?.as_array()?.iter().filter_map(Value::as_str);
    modems.filter_map(|modem| ask(mmcli, &["-m", modem, "-J"])).find_map(|modem| rate(&modem, interface))
}

/// Parses the output of `mmcli -m N -J`.
fn rate(modem: &Value, interface: &str) -> Option<Rate> {
    let generic = modem.get("modem")?.get("generic")?;
    let is_own = |port: &Value| port.as_str().is_some_and(|port| port.split(' ').eq([interface, "(net)"]));
    generic.get("ports")?.as_array()?.iter().find(|port| is_own(port))?;
    let used = generic.get("access-technologies")?.as_array()?;
    let is_used = |name: &str| used.iter().any(|used| used.as_str() == Some(name));
    let (_, mbps) = TYPICAL_MBPS.into_iter().find(|(name, _)| is_used(name))?;
    let quality = generic.get("signal-quality")?.get("value")?.as_str()?.parse::<u32>().ok()?.min(100);
    Some(Rate::from_bps((mbps * 1e4 * f64::from(quality.max(1))) as u64))
}

#[expect(clippy::disallowed_methods, reason = "another program works in real time")]
fn ask(mmcli: &str, arguments: &[&str]) -> Option<Value> {
    let mut command = Command::new(mmcli);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    // The output fits in a pipe, so the child never blocks on it.
    let since = Instant::now();
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if since.elapsed() < PATIENCE => thread::sleep(STEP),
            None => {
                let _ = child.kill();
                child.wait().ok()?;
                return None;
            }
        }
    };
    let mut answer = String::new();
    child.stdout.take()?.read_to_string(&mut answer).ok()?;
    status.success().then(|| serde_json::from_str(&answer).ok())?
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Output of ModemManager 1.20, shortened.
    fn answer(technologies: &str, quality: &str) -> String {
        format!(
            r#"{{"modem":{{"3gpp":{{"operator-name":"x"}},"generic":{{"access-technologies":[{technologies}],"model":"EM7455",
               "ports":["cdc-wdm0 (qmi)","ttyUSB0 (at)","wwan0 (net)"],"signal-quality":{{"recent":"yes","value":"{quality}"}}}}}}}}"#
        )
    }

    fn fake(folder: &tempfile::TempDir, modem: &str) -> String {
        let path = folder.path().join("mmcli");
        let list = r#"{"modem-list":["/org/freedesktop/ModemManager1/Modem/3"]}"#;
        fs::write(folder.path().join("modem.json"), modem).unwrap();
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in '-L -J') echo '{list}';; '-m /org/freedesktop/ModemManager1/Modem/3 -J') cat {}/modem.json;; *) exit 1;; esac\n",
            folder.path().display()
        );
        // Another process writes it: a program that any process has open for writing cannot be started, and a process
        // that another test starts meanwhile would inherit it open.
        let mut writer = Command::new("sh");
        writer.args(["-c", "printf %s \"$2\" >\"$1\"; chmod 755 \"$1\"", "sh"]).arg(&path).arg(script);
        assert!(writer.status().unwrap().success());
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_modem_tells_what_can_be_expected() {
        let folder = tempfile::tempdir().unwrap();
        let mmcli = fake(&folder, &answer(r#""lte""#, "68"));
        assert_eq!(expected_by(&mmcli, "wwan0"), Some(Rate::from_bps(13_600_000)));
        assert_eq!(expected_by(&mmcli, "usb0"), None, "another interface");
        assert_eq!(expected_by("/nowhere/mmcli", "wwan0"), None);
        for (modem, mbps) in [
            (answer(r#""lte", "5gnr""#, "50"), Some(50)),
            (answer(r#""hspa-plus""#, "100"), Some(8)),
            (answer("", "68"), None),
            (answer(r#""lte""#, "--"), None),
            ("{".into(), None),
        ] {
            assert_eq!(expected_by(&fake(&folder, &modem), "wwan0"), mbps.map(Rate::from_mbps), "{modem}");
        }
    }
}
