//! What ns-3 needs to know of a scenario, as the lines with which `ns3/radio/main.cc` begins.

use core::fmt::Write as _;
use std::io::Write as _;

use lab::scenario::{Cell, DEFAULT_DISTANCE_M, Fading, PathLoss, Queue, RelayMode, Scenario, Wlan};
use network::cell::Profile;
use tempfile::NamedTempFile;
use units::ByteCount;

use crate::Error;
use crate::refusal::scheduler;

/// Carrier of ns-3's cell, Hz.
const CARRIER_HZ: f64 = 2.12e9;
/// The largest packet, for queues that are counted in packets.
const PACKET_BYTES: u64 = 1500;

/// The settings of a radio. The file must exist until ns-3 has read it.
pub struct Settings {
    /// One per line.
    pub lines: String,
    /// The trace of block fading, if there is any.
    pub fading: Option<NamedTempFile>,
}

impl Settings {
    /// Returns the settings for a scenario whose values are drawn.
    ///
    /// # Errors
    /// If the fading trace cannot be written.
    pub fn of(scenario: &Scenario) -> Result<Self, Error> {
        let mut settings = Self { lines: format!("seed {}\n", scenario.seed), fading: None };
        if let Some(cell) = &scenario.cell {
            settings.fading = fading(scenario, cell)?;
            settings.add_cell(scenario, cell);
        }
        let is_multi_homed = scenario.cooperation.relays == RelayMode::MultiHomed;
        if let Some(wlan) = scenario.wlan.as_ref().filter(|_| !is_multi_homed) {
            settings.add_wlan(scenario, wlan);
        }
        Ok(settings)
    }

    fn add_cell(&mut self, scenario: &Scenario, cell: &Cell) {
        let (exponent, reference_db) = match cell.path_loss {
            PathLoss::LogDistance => (lab::run::LOG_DISTANCE_EXPONENT, lab::run::LOG_DISTANCE_REFERENCE_DB),
            PathLoss::Friis | PathLoss::Macro => (0.0, 0.0),
        };
        let file = self.fading.as_ref().map(|file| file.path().display().to_string()).unwrap_or_default();
        let _ = writeln!(
            self.lines,
            "cell {} {} {} {} {exponent} {reference_db} {} {} {} {file}",
            scheduler(&cell.scheduler).unwrap_or_default(),
            cell.resource_blocks,
            cell.transmit_power_dbm,
            cell.noise_figure_db,
            queue_bytes(cell.queue),
            cell.core_rate.as_bps(),
            cell.core_delay.as_nanos(),
        );
        for relay in &scenario.relays {
            let _ = writeln!(self.lines, "ue {}", relay.distance_m().unwrap_or(DEFAULT_DISTANCE_M));
        }
    }

    fn add_wlan(&mut self, scenario: &Scenario, wlan: &Wlan) {
        let packets = match wlan.queue {
            Queue::Packets(packets) => u64::from(packets),
            Queue::Bytes(ByteCount(bytes)) => (bytes / PACKET_BYTES).max(1),
        };
        let (stations, mbps) = (scenario.relays.len() + 1, wlan.rate.as_bps() / 1_000_000);
        let _ = writeln!(self.lines, "wlan {stations} {mbps} {packets} {}", wlan.rts_threshold.0);
    }
}

fn queue_bytes(queue: Queue) -> u64 {
    match queue {
        Queue::Packets(packets) => u64::from(packets) * PACKET_BYTES,
        Queue::Bytes(ByteCount(bytes)) => bytes,
    }
}

fn fading(scenario: &Scenario, cell: &Cell) -> Result<Option<NamedTempFile>, Error> {
    let profile = match cell.fading {
        Fading::None => return Ok(None),
        Fading::Epa => Profile::ExtendedPedestrianA,
        Fading::Eva => Profile::ExtendedVehicularA,
        Fading::Etu => Profile::ExtendedTypicalUrban,
    };
    let mut trace = String::new();
    let fading = network::cell::Fading { profile, speed_kmh: cell.speed_kmh };
    // Writing to a string cannot fail.
    let _ = fading.write_fad(CARRIER_HZ, scenario.seed, &mut trace);
    let mut file = NamedTempFile::with_suffix(".fad").map_err(Error::Fading)?;
    file.write_all(trace.as_bytes()).map_err(Error::Fading)?;
    Ok(Some(file))
}
