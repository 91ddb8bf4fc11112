//! This device's remaining charge.

use std::fs;
use std::path::{Path, PathBuf};

/// Folder in which the kernel describes batteries and chargers.
pub const FOLDER: &str = "/sys/class/power_supply";

/// The result of a look at the batteries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Charge {
    /// A battery is discharging, with this charge in percent.
    Emptying(u8),
    /// Unknown: many drivers report nothing for a moment after a charger was plugged in or out.
    Unknown,
    /// No battery is discharging, or there is none.
    Kept,
}

/// Returns the charge of the emptiest battery that powers this device. Batteries of mice and headsets do not count.
pub fn charge(folder: &Path) -> Charge {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let supplies: Vec<PathBuf> = entries.collect();
    match supplies.iter().filter_map(|supply| of(supply)).min() {
        // Some drivers have no status for a full battery on a charger.
        Some(Charge::Unknown) if supplies.iter().any(|supply| is_charger(supply)) => Charge::Kept,
        found => found.unwrap_or(Charge::Kept),
    }
}

/// Returns `None` if this is no battery of this device.
fn of(supply: &Path) -> Option<Charge> {
    let supplies_this = read(supply, "scope").is_none_or(|scope| scope != "Device");
    if !supplies_this || read(supply, "type")? != "Battery" {
        return None;
    }
    Some(match read(supply, "status").as_deref() {
        Some("Discharging") => {
            let percent = read(supply, "capacity").and_then(|text| text.parse().ok());
            percent.map_or(Charge::Unknown, Charge::Emptying)
        }
        Some("Charging" | "Full" | "Not charging") => Charge::Kept,
        _ => Charge::Unknown,
    })
}

/// Returns whether this is a charger that is plugged in: 1, or 2 if its voltage is programmable.
fn is_charger(supply: &Path) -> bool {
    read(supply, "type").is_some_and(|kind| kind != "Battery") && read(supply, "online").is_some_and(|text| text != "0")
}

fn read(supply: &Path, name: &str) -> Option<String> {
    fs::read_to_string(supply.join(name)).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_batteries_that_are_being_emptied_count() {
        let folder = tempfile::tempdir().unwrap();
        let supply = |name: &str, files: &[(&str, &str)]| {
            let folder = folder.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|(name, text)| fs::write(folder.join(name), format!("{text}\n")).unwrap());
        };
        assert_eq!(charge(folder.path()), Charge::Kept);
        supply("AC", &[("type", "Mains"), ("online", "0")]);
        supply("mouse", &[("type", "Battery"), ("status", "Discharging"), ("capacity", "3"), ("scope", "Device")]);
        supply("BAT0", &[("type", "Battery"), ("status", "Charging"), ("capacity", "5")]);
        assert_eq!(charge(folder.path()), Charge::Kept);
        for odd in [("Discharging", "lots"), ("Unknown", "42")] {
            supply("odd", &[("type", "Battery"), ("status", odd.0), ("capacity", odd.1)]);
            assert_eq!(charge(folder.path()), Charge::Unknown, "{odd:?}");
        }
        for online in ["1", "2"] {
            supply("AC", &[("online", online)]);
            assert_eq!(charge(folder.path()), Charge::Kept, "it is charged, and its driver has no word for that");
        }
        supply("BAT1", &[("type", "Battery"), ("status", "Discharging"), ("capacity", "42")]);
        assert_eq!(charge(folder.path()), Charge::Emptying(42));
        supply("BAT0", &[("status", "Discharging")]);
        assert_eq!(charge(folder.path()), Charge::Emptying(5));
        assert_eq!(charge(&folder.path().join("none")), Charge::Kept);
    }
}
