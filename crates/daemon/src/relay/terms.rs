//! Whether this relay lends now, and how much: from its limits and what it knows of itself.

use cooperation::link::{Families, Lends, Renewal, Terms};
use jiff::civil::Date;
use linux::Result;
use tracing::{info, warn};
use units::{Duration, Instant, Rate};

use super::battery::Charge;
use super::volume::Volume;
use crate::calendar;

/// A battery that was too empty has to gain so much before the relay lends again, in percent.
const BATTERY_GAIN: u8 = 3;
/// Or so many looks in a row, one a second, must have found it charged.
const CHARGED_LOOKS: u8 = 5;
/// So many looks after it was said that the battery is too empty, nothing is carried any more, whether destinations have heeded that or not.
const GRACE_LOOKS: u8 = 10;
/// So many looks after what was lent could not be written down, it is tried again.
const RETRY_LOOKS: u8 = 3;
/// Before the volume is spent the relay says so, so that connections can leave it in good order: so long before, at the rate of now, and with one
/// part in so many of the volume left at most, which is what may stay unused.
const NOTICE: Duration = Duration::from_secs(2);
const NOTICE_PARTS: u64 = 50;

/// What the owner allows, and what was found.
#[derive(Debug)]
pub struct Lending {
    /// What tells this run of the relay from the one before, and the time after its own address has changed from that before.
    pub instance: u32,
    /// The highest rate of each direction.
    pub rate: Option<Rate>,
    /// How much may be lent.
    pub volume: Option<Volume>,
    /// Below so much charge it does not lend, in percent.
    pub battery_min: Option<u8>,
    /// What the shared interface carries.
    pub families: Families,
    /// Why the shared interface cannot be used now, to follow its name in a sentence.
    pub lost: Option<String>,
    /// Why what is lent cannot be written down now, if there is a volume. A power failure would make it forgotten, so nothing is lent.
    uncounted: Option<String>,
    uncounted_looks: u8,
    /// Charge, if a battery is being emptied.
    pub battery_percent: Option<u8>,
    /// What the owner's own traffic takes, both ways.
    pub owner: Rate,
    /// What can be lent towards destinations now, as far as that is known.
    pub spare: Option<Rate>,
    /// What can be lent from destinations now, likewise.
    pub spare_up: Option<Rate>,
    /// What the modem lets expect, until more is known.
    pub expected: Option<Rate>,
    /// The owner has ended it.
    pub ended: bool,
    was_empty: bool,
    /// Looks at the battery since it was too empty, and since it was not charged.
    empty_looks: u8,
    charged_looks: u8,
    was_spent: bool,
}

impl Lending {
    /// With these limits, and nothing found yet.
    pub const fn new(rate: Option<Rate>, volume: Option<Volume>, battery_min: Option<u8>) -> Self {
        Self {
            instance: 0,
            rate,
            volume,
            battery_min,
            families: Families { v4: false, v6: false },
            lost: None,
            uncounted: None,
            uncounted_looks: 0,
            battery_percent: None,
            owner: Rate::ZERO,
            spare: None,
            spare_up: None,
            expected: None,
            ended: false,
            was_empty: false,
            empty_looks: 0,
            charged_looks: 0,
            was_spent: false,
        }
    }

    /// What was translated is forgotten, as after a restart: destinations take it for one, and make their connections anew.
    pub const fn forget_connections(&mut self) {
        self.instance = self.instance.wrapping_add(1);
    }

    /// The battery was looked at, a second after the time before.
    pub fn heed_battery(&mut self, charge: Charge) {
        self.battery_percent = match charge {
            Charge::Emptying(percent) => Some(percent),
            Charge::Unknown | Charge::Kept => None,
        };
        self.charged_looks = if charge == Charge::Kept { self.charged_looks.saturating_add(1) } else { 0 };
        let least = self.battery_min.unwrap_or(0);
        let enough = if self.was_empty { least.saturating_add(BATTERY_GAIN) } else { least };
        self.was_empty = match charge {
            Charge::Emptying(percent) => percent < enough,
            // A look that shows nothing changes nothing.
            Charge::Unknown | Charge::Kept => self.was_empty && self.charged_looks < CHARGED_LOOKS,
        };
        self.empty_looks = if self.was_empty { self.empty_looks.saturating_add(1) } else { 0 };
    }

    /// So much is lent now. Once the volume is as good as spent, it is, until the next one begins.
    pub fn heed_rate(&mut self, lent: Rate) {
        let Some(volume) = &self.volume else { return };
        let notice_bytes = lent.bytes_in(NOTICE).min(volume.limit().bytes / NOTICE_PARTS);
        let is_ending = volume.left_bytes() <= notice_bytes;
        self.was_spent = volume.is_low() && (self.was_spent || is_ending);
    }

    /// Whether it lends.
    pub fn lends(&self) -> Lends {
        match &self.volume {
            _ if self.ended => Lends::Ended,
            _ if self.lost.is_some() || self.uncounted.is_some() => Lends::NoUplink,
            _ if self.was_empty => Lends::NoBattery,
            Some(_) if self.was_spent => Lends::NoVolume,
            Some(volume) if volume.is_low() => Lends::AsBackup,
            _ => Lends::Fully,
        }
    }

    /// Whether packets may still go: also for a moment after it was said that none shall.
    pub fn admits(&self) -> bool {
        let has_charge = self.empty_looks <= GRACE_LOOKS;
        let has_volume = self.volume.as_ref().is_none_or(|volume| volume.left_bytes() > 0);
        self.lost.is_none() && self.uncounted.is_none() && !self.ended && has_charge && has_volume
    }

    /// Octets have gone.
    pub fn count(&mut self, bytes: usize) {
        let Some(volume) = &mut self.volume else { return };
        if self.uncounted.is_some() {
            return volume.add(bytes as u64);
        }
        let counted = volume.count(bytes as u64);
        self.heed_counted(counted);
    }

    /// A second has passed since the look before, and it is `today`: perhaps the volume begins anew, or can be written down again.
    pub fn heed_date(&mut self, today: Date) {
        let Some(volume) = &mut self.volume else { return };
        volume.roll(today);
        self.uncounted_looks = self.uncounted_looks.saturating_sub(1);
        if self.uncounted_looks == 0 {
            let counted = volume.count(0);
            self.heed_counted(counted);
        }
    }

    fn heed_counted(&mut self, counted: Result<()>) {
        match counted {
            Ok(()) if self.uncounted.take().is_some() => info!("what is lent can be written down again"),
            Ok(()) => {}
            Err(error) => {
                let why = format!("is lent to nobody while what is lent cannot be written down ({error})");
                let before = self.uncounted.replace(why);
                self.uncounted_looks = RETRY_LOOKS;
                if before.is_none() {
                    warn!("nothing is lent for now: what is lent cannot be written down ({error})");
                }
            }
        }
    }

    /// Why the shared interface is not lent now, to follow its name in a sentence, if that is neither its volume nor its battery.
    pub fn why_not(&self) -> Option<&str> {
        self.lost.as_deref().or(self.uncounted.as_deref())
    }

    /// When the volume begins anew, if there is one.
    pub fn renewal(&self) -> Option<Renewal> {
        self.volume.as_ref().and_then(Volume::renews).and_then(calendar::renewal)
    }

    /// What destinations are told.
    pub fn terms(&self) -> Terms {
        let lends = self.lends();
        let spare = self.spare.or(self.rate).unwrap_or(Terms::UNLIMITED);
        let spare = if lends.carries() { spare } else { Rate::ZERO };
        let left_bytes = self.volume.as_ref().map_or(u64::MAX, Volume::left_bytes);
        let (instance, families, owner) = (self.instance, self.families, self.owner);
        Terms { echo: Instant::ZERO, instance, lends, families, spare, owner, left_bytes }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::civil::date;

    use super::super::volume::{Limit, Period};
    use super::*;
    use crate::heard::Heard;

    #[test]
    fn the_volume_ends_in_good_order() {
        let folder = tempfile::tempdir().unwrap();
        let limit = Limit { bytes: 1_000_000, period: Period::Day };
        let volume = Volume::open(limit, folder.path().join("volume.json"), date(2026, 5, 9)).unwrap();
        let mut lending = Lending::new(None, Some(volume), None);
        assert_eq!(lending.lends(), Lends::Fully);
        lending.count(800_000);
        assert_eq!((lending.lends(), lending.terms().left_bytes), (Lends::AsBackup, 200_000));
        lending.heed_rate(Rate::from_bps(8_000_000));
        assert_eq!(lending.lends(), Lends::AsBackup, "2 % at most stay unused");
        lending.count(180_000);
        lending.heed_rate(Rate::from_bps(79_000));
        assert_eq!(lending.lends(), Lends::AsBackup, "20 kB are two seconds of 80 kbit/s");
        lending.heed_rate(Rate::from_bps(80_000));
        assert_eq!(lending.lends(), Lends::NoVolume);
        lending.heed_rate(Rate::ZERO);
        assert_eq!(lending.lends(), Lends::NoVolume, "it does not flutter");
        assert!(lending.admits(), "what is under way still goes");
        lending.count(19_999);
        assert!(lending.admits());
        lending.count(1);
        assert!(!lending.admits());
        lending.volume.as_mut().unwrap().roll(date(2026, 5, 10));
        lending.heed_rate(Rate::ZERO);
        assert_eq!(lending.lends(), Lends::Fully);
    }

    #[test]
    fn what_cannot_be_written_down_is_not_lent() {
        let folder = tempfile::tempdir().unwrap();
        let (limit, path) = (Limit { bytes: 1_000_000, period: Period::Day }, folder.path().join("volume.json"));
        let today = date(2026, 5, 9);
        let mut lending = Lending::new(None, Some(Volume::open(limit, path.clone(), today).unwrap()), None);
        let heard = Heard::default();
        let _listening = heard.listen();
        // Nobody can write there, not even root.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        lending.count(1_000);
        assert_eq!((lending.lends(), lending.admits()), (Lends::NoUplink, false));
        assert!(lending.why_not().unwrap().contains("volume.json (a folder is in its place: move that away)"));
        // What was under way is not forgotten, and it is said once.
        lending.count(500);
        lending.heed_date(today);
        assert_eq!(lending.volume.as_ref().unwrap().used_bytes(), 1_500);
        assert_eq!(heard.take().matches("nothing is lent for now").count(), 1);
        fs::remove_dir(&path).unwrap();
        (0..RETRY_LOOKS).for_each(|_| lending.heed_date(today));
        assert_eq!((lending.lends(), lending.admits(), lending.why_not()), (Lends::Fully, true, None));
        assert!(heard.take().contains("can be written down again"));
        drop(lending);
        assert!(Volume::open(limit, path, today).unwrap().used_bytes() >= 1_500);
    }

    #[test]
    fn a_battery_that_was_empty_does_not_flutter() {
        let mut lending = Lending::new(Some(Rate::from_mbps(5)), None, Some(30));
        for (charge, lends) in [
            (Charge::Unknown, Lends::Fully),
            (Charge::Emptying(30), Lends::Fully),
            (Charge::Emptying(29), Lends::NoBattery),
            (Charge::Emptying(32), Lends::NoBattery),
            (Charge::Emptying(33), Lends::Fully),
            (Charge::Emptying(29), Lends::NoBattery),
            (Charge::Unknown, Lends::NoBattery),
            (Charge::Kept, Lends::NoBattery),
        ] {
            lending.heed_battery(charge);
            assert_eq!(lending.lends(), lends, "{charge:?}");
        }
        // A charger with a loose contact is none.
        for charge in [Charge::Kept, Charge::Kept, Charge::Kept, Charge::Unknown] {
            lending.heed_battery(charge);
        }
        assert_eq!(lending.lends(), Lends::NoBattery);
        assert!(lending.admits(), "what is under way still goes");
        (0..3).for_each(|_| lending.heed_battery(Charge::Emptying(28)));
        assert!(lending.admits());
        lending.heed_battery(Charge::Emptying(28));
        assert!(!lending.admits(), "nor does what a destination goes on sending");
        (0..4).for_each(|_| lending.heed_battery(Charge::Kept));
        assert_eq!((lending.lends(), lending.admits()), (Lends::NoBattery, false));
        lending.heed_battery(Charge::Kept);
        assert_eq!((lending.lends(), lending.admits()), (Lends::Fully, true));
        assert_eq!(lending.terms().spare, Rate::from_mbps(5));
        lending.lost = Some("is down".into());
        assert_eq!((lending.lends(), lending.terms().spare), (Lends::NoUplink, Rate::ZERO));
        assert!(!lending.admits());
        lending.ended = true;
        assert_eq!(lending.lends(), Lends::Ended);
    }
}
