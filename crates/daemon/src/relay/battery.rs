//! How much charge this device has left.

use std::fs;
use std::path::Path;

/// Where the kernel tells of batteries and chargers.
pub const FOLDER: &str = "/sys/class/power_supply";

/// The charge of the emptiest battery that supplies this device and is not being charged, in percent; `None` if there is no such
/// battery. Those of mice and headsets do not count.
pub fn percent(folder: &Path) -> Option<u8> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter_map(|supply| discharging(&supply)).min()
}

fn discharging(supply: &Path) -> Option<u8> {
    let read = |name: &str| fs::read_to_string(supply.join(name)).ok().map(|text| text.trim().to_owned());
    let supplies_this = read("scope").is_none_or(|scope| scope != "Device");
    let is_discharging = read("type")? == "Battery" && read("status")? == "Discharging";
    (supplies_this && is_discharging).then(|| read("capacity")?.parse().ok())?
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
        assert_eq!(percent(folder.path()), None);
        supply("AC", &[("type", "Mains"), ("online", "0")]);
        supply("mouse", &[("type", "Battery"), ("status", "Discharging"), ("capacity", "3"), ("scope", "Device")]);
        supply("BAT0", &[("type", "Battery"), ("status", "Charging"), ("capacity", "5")]);
        supply("odd", &[("type", "Battery"), ("status", "Discharging"), ("capacity", "lots")]);
        assert_eq!(percent(folder.path()), None);
        supply("BAT1", &[("type", "Battery"), ("status", "Discharging"), ("capacity", "42")]);
        assert_eq!(percent(folder.path()), Some(42));
        supply("BAT0", &[("status", "Discharging")]);
        assert_eq!(percent(folder.path()), Some(5));
        assert_eq!(percent(&folder.path().join("none")), None);
    }
}
