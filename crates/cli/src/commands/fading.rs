//! `anabranch fading`: a trace of block fading for ns-3.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use atomic_file::AtomicFile;
use network::cell::{Fading, Profile};

use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Permitted speeds, km/h.
const SPEEDS_KMH: core::ops::RangeInclusive<f64> = 0.3..=500.0;
/// Carriers of LTE, Hz.
const CARRIERS_HZ: core::ops::RangeInclusive<f64> = 1e8..=1e11;

/// Slowest fading of which ten seconds show a whole cycle, Hz, and fastest fading of which samples of 1 ms do.
const DOPPLER_MIN_HZ: f64 = 0.1;
const DOPPLER_MAX_HZ: f64 = 500.0;

/// Writes a trace in the format of `TraceFadingLossModel`.
pub fn fading(arguments: &arguments::Fading) -> Result<(), Failure> {
    let speed = quantity("--speed", &arguments.speed, &[("km/h", 1.0), ("m/s", 3.6)])?;
    let speed_kmh = within("--speed", &arguments.speed, speed, &SPEEDS_KMH, "0.3 km/h to 500 km/h")?;
    let carrier = quantity("--carrier", &arguments.carrier, &[("GHz", 1e9), ("MHz", 1e6)])?;
    let carrier_hz = within("--carrier", &arguments.carrier, carrier, &CARRIERS_HZ, "100 MHz to 100 GHz")?;
    let profile = match arguments.profile {
        arguments::Profile::Epa => Profile::ExtendedPedestrianA,
        arguments::Profile::Eva => Profile::ExtendedVehicularA,
        arguments::Profile::Etu => Profile::ExtendedTypicalUrban,
    };
    let fading = Fading { profile, speed_kmh };
    let doppler_hz = fading.doppler_hz(carrier_hz);
    if doppler_hz < DOPPLER_MIN_HZ {
        return Err(Failure::Input(format!(
            "at {speed_kmh} km/h a carrier of {:.0} MHz does not fade within the 10 s of a trace (Doppler frequency {doppler_hz:.2} Hz): write a --speed of at least {:.1} km/h",
            carrier_hz / 1e6,
            speed_kmh * DOPPLER_MIN_HZ / doppler_hz + 0.05
        )));
    }
    let mut trace = String::new();
    fading.write_fad(carrier_hz, arguments.seed, &mut trace).map_err(|error| Failure::Failed(error.to_string()))?;
    let fast = if doppler_hz > DOPPLER_MAX_HZ { "; too fast for samples of this length" } else { "" };
    let done = format!("100 resource blocks, 10000 samples of 1 ms, Doppler frequency {doppler_hz:.2} Hz{fast}\n");
    if arguments.out == Path::new("-") {
        console::print(&trace)?;
        return Ok(console::complain(&done)?);
    }
    let out = &arguments.out;
    let cannot = |error: io::Error| {
        let path = out.display();
        let what = format!("cannot write {path}: {error}: name a file in a directory that you may write to");
        Failure::of_place(&error, what)
    };
    write(out, trace.as_bytes()).map_err(cannot)?;
    Ok(console::print(&format!("{}: {done}", out.display()))?)
}

/// Writes the file completely or not at all, unless it is a device or a pipe.
fn write(out: &Path, trace: &[u8]) -> io::Result<()> {
    if atomic_file::is_special(out) {
        return fs::write(out, trace);
    }
    let mut file = AtomicFile::create(out).map_err(|error| error.source)?;
    file.write_all(trace)?;
    file.commit().map_err(|error| error.source)
}

/// Parses a number with one of the units, as a multiple of the first unit's base.
fn quantity(option: &str, text: &str, units: &[(&str, f64)]) -> Result<f64, Failure> {
    let parsed = units.iter().find_map(|(unit, factor)| {
        let number: f64 = text.trim().strip_suffix(unit)?.trim_end().parse().ok()?;
        Some(number * factor)
    });
    parsed.ok_or_else(|| {
        let known: Vec<&str> = units.iter().map(|(unit, _)| *unit).collect();
        Failure::Input(format!(
            "{option} {text:?} is not a number with a unit: write it like {:?} (units: {})",
            format!("3 {}", known[0]),
            known.join(", ")
        ))
    })
}

fn within(
    option: &str,
    text: &str,
    value: f64,
    range: &core::ops::RangeInclusive<f64>,
    remedy: &str,
) -> Result<f64, Failure> {
    match range.contains(&value) {
        true => Ok(value),
        false => Err(Failure::Input(format!("{option} {text:?} is out of range: write {remedy}"))),
    }
}
