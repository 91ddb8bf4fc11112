//! Mean SINR from places and powers.

use units::{Instant, Prng};

use super::config::{CellConfig, RadioConfig};
use super::decibel::{Decibel, from_db, to_db};
use super::place::{Place, Track};
use super::shadowing::ShadowField;

/// Thermal noise at 290 K, dBm/Hz.
const NOISE_DBM_HZ: f64 = -174.0;

/// Bandwidth of a resource block, Hz.
const RESOURCE_BLOCK_HZ: f64 = 180e3;

/// Places of sites and UEs, and the power that each site sends.
#[derive(Clone, Debug)]
pub(crate) struct Propagation {
    radio: RadioConfig,
    sites: Vec<Place>,
    tracks: Vec<Track>,
    /// One for each site; empty without shadowing.
    shadows: Vec<ShadowField>,
}

impl Propagation {
    pub(crate) fn new(config: &CellConfig, prng: &mut Prng) -> Self {
        let sites: Vec<Place> = config.sites.iter().map(|site| site.place).collect();
        let field = |shadowing| sites.iter().map(|_| ShadowField::new(shadowing, prng)).collect();
        Self {
            shadows: config.radio.shadowing.as_ref().map(field).unwrap_or_default(),
            radio: config.radio.clone(),
            sites,
            tracks: config.ues.iter().map(|ue| ue.track.clone()).collect(),
        }
    }

    pub(crate) fn moves(&self, ue: usize) -> bool {
        self.tracks[ue].moves()
    }

    /// Returns the mean SINR in every resource block, without fading.
    pub(crate) fn sinr(&self, ue: usize, site: usize, now: Instant) -> Decibel {
        let place = self.tracks[ue].at(now);
        let noise_dbm = NOISE_DBM_HZ + to_db(RESOURCE_BLOCK_HZ) + self.radio.noise_figure_db;
        let mut disturbance_mw = from_db(noise_dbm);
        if self.radio.interference {
            let others = (0..self.sites.len()).filter(|other| *other != site);
            disturbance_mw += others.map(|other| from_db(self.power_dbm(place, other))).sum::<f64>();
        }
        Decibel::from_db(self.power_dbm(place, site) - to_db(disturbance_mw))
    }

    /// Returns the site that a UE receives most strongly.
    pub(crate) fn strongest(&self, ue: usize, now: Instant) -> usize {
        let place = self.tracks[ue].at(now);
        let power = |site: &usize| self.power_dbm(place, *site);
        // The first of equals.
        (0..self.sites.len()).rev().max_by(|a, b| power(a).total_cmp(&power(b))).unwrap_or(0)
    }

    /// Returns the power that a UE receives from a site in one resource block, without fading, dBm.
    pub(crate) fn received_dbm(&self, ue: usize, site: usize, now: Instant) -> f64 {
        self.power_dbm(self.tracks[ue].at(now), site)
    }

    fn power_dbm(&self, place: Place, site: usize) -> f64 {
        let radio = &self.radio;
        let sent_dbm = radio.tx_power_dbm - to_db(f64::from(radio.resource_blocks));
        let shadow_db = self.shadows.get(site).map_or(0.0, |field| field.loss_db(place));
        sent_dbm - radio.path_loss.loss_db(place.distance_m(self.sites[site]), radio.carrier_hz) - shadow_db
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::{SiteConfig, UeConfig};
    use super::super::shadowing::Shadowing;
    use super::*;

    fn propagation(sites: &[f64], ue_m: f64, interference: bool) -> Propagation {
        let site = |x_m: &f64| SiteConfig { place: Place::flat(*x_m, 0.0) };
        let config = CellConfig {
            sites: sites.iter().map(site).collect(),
            ues: vec![UeConfig::at(Place::flat(ue_m, 0.0))],
            radio: RadioConfig { interference, ..RadioConfig::default() },
            ..CellConfig::default()
        };
        Propagation::new(&config, &mut Prng::new(1))
    }

    #[test]
    fn the_budget_of_table_3_1_at_1000_m() {
        // 30 dBm over 50 blocks: 13.01 dBm; Friis -98.97 dB; noise -174 + 52.55 + 5 = -116.45 dBm: 30.49 dB.
        let sinr_db = propagation(&[0.0], 1000.0, false).sinr(0, 0, Instant::ZERO).db();
        assert!((sinr_db - 30.49).abs() < 0.02, "{sinr_db}");
    }

    #[test]
    fn a_neighbour_as_near_leaves_0_db() {
        let propagation = propagation(&[0.0, 1000.0], 500.0, true);
        assert_eq!([0, 1].map(|site| propagation.sinr(0, site, Instant::ZERO).db().abs() < 0.05), [true, true]);
        assert_eq!(propagation.strongest(0, Instant::ZERO), 0);
    }

    #[test]
    fn shadows_spread_the_sinr() {
        let shadowing = Some(Shadowing { deviation_db: 8.0, decorrelation_m: 10.0 });
        let angle = |ue: i32| f64::from(ue) * 0.01;
        let config = CellConfig {
            ues: (0..600)
                .map(|ue| UeConfig::at(Place::flat(5e3 * libm::cos(angle(ue)), 5e3 * libm::sin(angle(ue)))))
                .collect(),
            radio: RadioConfig { shadowing, ..RadioConfig::default() },
            ..CellConfig::default()
        };
        let propagation = Propagation::new(&config, &mut Prng::new(1));
        // 30.49 dB at 1 km, 13.98 dB less at five times that.
        let off_db = |ue| propagation.sinr(ue, 0, Instant::ZERO).db() - 16.51;
        let deviation_db = ((0..600).map(|ue| off_db(ue) * off_db(ue)).sum::<f64>() / 600.0).sqrt();
        assert!((deviation_db - 8.0).abs() < 1.0, "{deviation_db}");
    }

    #[test]
    fn the_nearest_site_is_the_strongest() {
        assert_eq!(propagation(&[0.0, 1000.0, 2000.0], 1400.0, false).strongest(0, Instant::ZERO), 1);
    }
}
