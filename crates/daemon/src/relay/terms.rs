//! Decides whether this relay lends now, and how much, from its limits and measurements.

use cooperation::link::{Families, Lends, Renewal, Terms};
use jiff::civil::Date;
use linux::Result;
use tracing::{info, warn};
use units::{Duration, Instant, Rate};

use super::battery::Charge;
use super::volume::Volume;
use crate::calendar;

/// Charge that a battery must gain before the relay lends again, percent.
const BATTERY_GAIN: u8 = 3;
/// Alternatively: number of consecutive looks, one per second, that must find it charging or full.
const CHARGED_LOOKS: u8 = 5;
/// Looks after the announcement of an empty battery for which the relay still forwards; after that it stops, whatever
/// destinations do.
const GRACE_LOOKS: u8 = 10;
/// Looks between attempts to store the used volume after a failure.
const RETRY_LOOKS: u8 = 3;
/// Looks after which a disk that has not stored the volume counts as one that cannot.
const SLOW_LOOKS: u8 = 2;
/// Looks for which the terms leave out a family that begins anew, so that destinations notice even if a message is lost.
const ANEW_LOOKS: u8 = 3;
/// The relay announces the end of the volume in advance, so that connections can leave in good order: this long before,
/// at the present rate, but with at most this part of the volume left, which may stay unused.
const NOTICE: Duration = Duration::from_secs(2);
const NOTICE_PARTS: u64 = 50;

const NONE: Families = Families { v4: false, v6: false };

/// The owner's limits and the measurements.
#[derive(Debug)]
pub struct Lending {
    /// Differs between runs of the relay, and changes when all connections over it have ended.
    pub instance: u32,
    /// Maximum rate of each direction.
    pub rate: Option<Rate>,
    /// The volume that may be lent.
    pub volume: Option<Volume>,
    /// Charge below which the relay does not lend, percent.
    pub battery_min: Option<u8>,
    /// Address families of the shared interface.
    pub families: Families,
    /// Those whose connections have ended, for which the terms leave them out for so many further looks.
    anew: Families,
    anew_looks: u8,
    /// Why the shared interface cannot be used now, as the continuation of a sentence after its name.
    pub lost: Option<String>,
    /// Why the used volume cannot be stored now. A power failure would lose it, so nothing is lent.
    uncounted: Option<String>,
    uncounted_looks: u8,
    /// Consecutive looks that found the used volume not stored yet.
    slow_looks: u8,
    /// Charge, if a battery is discharging.
    pub battery_percent: Option<u8>,
    /// Rate of the owner's own traffic, both ways.
    pub owner: Rate,
    /// Rate that can be lent towards destinations now, if known.
    pub spare: Option<Rate>,
    /// The same in the direction from destinations.
    pub spare_up: Option<Rate>,
    /// Rate expected from the modem's report, until more is known.
    pub expected: Option<Rate>,
    /// Whether the owner has ended the relay.
    pub ended: bool,
    was_empty: bool,
    /// Consecutive looks at the battery that found it too empty, or charging or full.
    empty_looks: u8,
    charged_looks: u8,
    was_spent: bool,
}

impl Lending {
    /// Creates a state with these limits and no measurements.
    pub const fn new(rate: Option<Rate>, volume: Option<Volume>, battery_min: Option<u8>) -> Self {
        Self {
            instance: 0,
            rate,
            volume,
            battery_min,
            families: NONE,
            anew: NONE,
            anew_looks: 0,
            lost: None,
            uncounted: None,
            uncounted_looks: 0,
            slow_looks: 0,
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

    /// Declares the connections with IPv4, with IPv6 or both dead: destinations open new ones. If none remain, they
    /// react as to a restart. Otherwise the family seems gone for a moment, and those of the other family go on.
    pub const fn forget_connections(&mut self, [v4, v6]: [bool; 2]) {
        let anew = Families { v4: v4 || self.anew.v4, v6: v6 || self.anew.v6 };
        if self.families.v4 && !anew.v4 || self.families.v6 && !anew.v6 {
            (self.anew, self.anew_looks) = (anew, ANEW_LOOKS);
        } else {
            (self.anew, self.anew_looks) = (NONE, 0);
            self.instance = self.instance.wrapping_add(1);
        }
    }

    /// Notes the address families of the shared interface. If the one that went on is gone, no connection remains.
    pub const fn set_families(&mut self, families: Families) {
        self.families = families;
        let Families { v4, v6 } = self.offered();
        if (families.v4 || families.v6) && !v4 && !v6 {
            self.forget_connections([families.v4, families.v6]);
        }
    }

    /// Returns the families that the terms name.
    const fn offered(&self) -> Families {
        Families { v4: self.families.v4 && !self.anew.v4, v6: self.families.v6 && !self.anew.v6 }
    }

    /// Handles a look at the battery, one second after the last.
    pub fn handle_battery(&mut self, charge: Charge) {
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

    /// Handles the present lent rate, both directions together. Once the volume is almost spent it counts as spent until
    /// it renews.
    pub fn handle_rate(&mut self, lent: Rate) {
        let Some(volume) = &self.volume else { return };
        let notice_bytes = lent.bytes_in(NOTICE).min(volume.limit().bytes / NOTICE_PARTS);
        let left_bytes = volume.left_bytes();
        // A clock that was ahead or behind may have shown another period's use for a while.
        let is_still_spent = self.was_spent && left_bytes <= volume.limit().bytes / NOTICE_PARTS;
        self.was_spent = left_bytes <= notice_bytes || is_still_spent;
    }

    /// Returns whether and how the relay lends.
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

    /// Returns whether packets may still pass, also for a moment after destinations were told to stop.
    pub fn admits(&mut self) -> bool {
        if self.uncounted.is_none() && !self.is_recorded() {
            self.count(0);
        }
        let has_charge = self.empty_looks <= GRACE_LOOKS;
        let has_volume = self.volume.as_ref().is_none_or(|volume| volume.left_bytes() > 0);
        let may_lend = self.lost.is_none() && self.uncounted.is_none() && !self.ended;
        may_lend && has_charge && has_volume && self.is_recorded()
    }

    /// Returns whether the volume file shows everything that was lent. A disk that is too slow makes it wait.
    fn is_recorded(&self) -> bool {
        self.volume.as_ref().is_none_or(Volume::is_recorded)
    }

    /// Counts forwarded octets.
    pub fn count(&mut self, bytes: usize) {
        let Some(volume) = &mut self.volume else { return };
        if self.uncounted.is_some() {
            return volume.add(bytes as u64);
        }
        let counted = volume.count(bytes as u64);
        self.handle_counted(counted);
    }

    /// Handles a second's look on the day `today`: the volume may renew, or can be stored again.
    pub fn handle_date(&mut self, today: Date) {
        self.anew_looks = self.anew_looks.saturating_sub(1);
        if self.anew_looks == 0 {
            self.anew = NONE;
        }
        let Some(volume) = &mut self.volume else { return };
        volume.roll(today);
        self.uncounted_looks = self.uncounted_looks.saturating_sub(1);
        if self.uncounted_looks == 0 {
            let counted = volume.count(0);
            self.handle_counted(counted);
        }
        self.judge_disk();
    }

    /// A disk that hangs reports no error.
    fn judge_disk(&mut self) {
        self.slow_looks = if self.is_recorded() { 0 } else { self.slow_looks.saturating_add(1) };
        if self.slow_looks >= SLOW_LOOKS && self.uncounted.is_none() {
            let error = "the disk does not answer";
            self.uncounted = Some(format!("is not lent while the volume file cannot be written ({error})"));
            warn!("nothing is lent for now: the volume file cannot be written ({error})");
        }
    }

    fn handle_counted(&mut self, counted: Result<()>) {
        let is_open = self.volume.as_ref().is_some_and(Volume::is_being_stored);
        match counted {
            Ok(()) if is_open => {}
            Ok(()) if self.uncounted.take().is_some() => info!("the volume file can be written again"),
            Ok(()) => {}
            Err(error) => {
                let why = format!("is not lent while the volume file cannot be written ({error})");
                let before = self.uncounted.replace(why);
                self.uncounted_looks = RETRY_LOOKS;
                if before.is_none() {
                    warn!("nothing is lent for now: the volume file cannot be written ({error})");
                }
            }
        }
    }

    /// Returns why the shared interface is not lent now, as the continuation of a sentence, if the reason is neither
    /// volume nor battery.
    pub fn why_not(&self) -> Option<&str> {
        self.lost.as_deref().or(self.uncounted.as_deref())
    }

    /// Returns when the volume renews, if there is one.
    pub fn renewal(&self) -> Option<Renewal> {
        self.volume.as_ref().and_then(Volume::renews).and_then(calendar::renewal)
    }

    /// Returns the terms for destinations.
    pub fn terms(&self) -> Terms {
        let lends = self.lends();
        let spare = self.spare.or(self.rate).unwrap_or(Terms::UNLIMITED);
        let spare = if lends.carries() { spare } else { Rate::ZERO };
        let left_bytes = self.volume.as_ref().map_or(u64::MAX, Volume::left_bytes);
        let (instance, families, owner) = (self.instance, self.offered(), self.owner);
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

    /// Waits until the volume file shows everything.
    fn recorded(lending: &mut Lending) {
        let volume = lending.volume.as_mut().unwrap();
        volume.wait();
        volume.count(0).unwrap();
        volume.wait();
    }

    #[test]
    fn the_volume_ends_in_good_order() {
        let folder = tempfile::tempdir().unwrap();
        let limit = Limit { bytes: 1_000_000, period: Period::Day };
        let volume = Volume::open(limit, folder.path().join("volume.json"), date(2026, 5, 9)).unwrap();
        let mut lending = Lending::new(None, Some(volume), None);
        recorded(&mut lending);
        assert_eq!(lending.lends(), Lends::Fully);
        lending.count(800_000);
        assert_eq!((lending.lends(), lending.terms().left_bytes), (Lends::AsBackup, 200_000));
        lending.handle_rate(Rate::from_bps(8_000_000));
        assert_eq!(lending.lends(), Lends::AsBackup, "2 % at most stay unused");
        lending.count(180_000);
        lending.handle_rate(Rate::from_bps(79_000));
        assert_eq!(lending.lends(), Lends::AsBackup, "20 kB are two seconds of 80 kbit/s");
        lending.handle_rate(Rate::from_bps(80_000));
        assert_eq!(lending.lends(), Lends::NoVolume);
        lending.handle_rate(Rate::ZERO);
        assert_eq!(lending.lends(), Lends::NoVolume, "it does not flutter");
        recorded(&mut lending);
        assert!(lending.admits(), "what is under way still goes");
        lending.count(19_999);
        recorded(&mut lending);
        assert!(lending.admits());
        lending.count(1);
        assert!(!lending.admits());
        lending.volume.as_mut().unwrap().roll(date(2026, 5, 10));
        lending.handle_rate(Rate::ZERO);
        assert_eq!(lending.lends(), Lends::Fully);
    }

    #[test]
    fn a_volume_that_only_a_wrong_clock_has_spent_is_not_spent() {
        let folder = tempfile::tempdir().unwrap();
        let open = |day| {
            let limit = Limit { bytes: 1_000_000, period: Period::Month { reset_day: 1 } };
            Volume::open(limit, folder.path().join("volume.json"), day).unwrap()
        };
        let mut lending = Lending::new(None, Some(open(date(2026, 4, 9))), None);
        lending.count(990_000);
        lending.handle_rate(Rate::ZERO);
        recorded(&mut lending);
        lending.handle_date(date(2026, 5, 9));
        lending.count(850_000);
        recorded(&mut lending);
        drop(lending);
        // The clock is a month behind at the next start.
        let mut lending = Lending::new(None, Some(open(date(2026, 4, 10))), None);
        lending.handle_rate(Rate::ZERO);
        assert_eq!(lending.lends(), Lends::NoVolume);
        lending.volume.as_mut().unwrap().roll(date(2026, 5, 10));
        lending.handle_rate(Rate::ZERO);
        let left_bytes = lending.terms().left_bytes;
        assert_eq!(lending.lends(), Lends::AsBackup, "{left_bytes}");
    }

    #[test]
    fn a_disk_that_hangs_is_one_that_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let (limit, today) = (Limit { bytes: 1_000_000, period: Period::Day }, date(2026, 5, 9));
        let volume = Volume::open(limit, folder.path().join("volume.json"), today).unwrap();
        let mut lending = Lending::new(None, Some(volume), None);
        let permit = lending.volume.as_mut().unwrap().hang();
        lending.count(1_000);
        lending.handle_date(today);
        assert_eq!((lending.lends(), lending.admits()), (Lends::Fully, false), "a moment is no matter");
        lending.handle_date(today);
        assert_eq!(lending.lends(), Lends::NoUplink);
        assert!(lending.why_not().unwrap().contains("the disk does not answer"));
        drop(permit);
        lending.volume.as_mut().unwrap().wait();
        lending.handle_date(today);
        assert_eq!((lending.lends(), lending.admits()), (Lends::Fully, true));
    }

    #[test]
    fn what_cannot_be_written_down_is_not_lent() {
        let folder = tempfile::tempdir().unwrap();
        let (limit, path) = (Limit { bytes: 1_000_000, period: Period::Day }, folder.path().join("volume.json"));
        let today = date(2026, 5, 9);
        let mut lending = Lending::new(None, Some(Volume::open(limit, path.clone(), today).unwrap()), None);
        recorded(&mut lending);
        let heard = Heard::default();
        let _listening = heard.listen();
        // Nobody can write there now, not even root.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        lending.count(6_000);
        assert!(lending.admits(), "the advance is not used up");
        let refused = lending.volume.as_mut().unwrap().wait_in_vain();
        lending.handle_counted(refused);
        assert_eq!((lending.lends(), lending.admits()), (Lends::NoUplink, false));
        assert!(lending.why_not().unwrap().contains("volume.json (a folder is in its place: move it away)"));
        // Packets in transit still count, and the warning comes once.
        lending.count(500);
        lending.handle_date(today);
        assert_eq!(lending.volume.as_ref().unwrap().used_bytes(), 6_500);
        assert_eq!(heard.take().matches("nothing is lent for now").count(), 1);
        fs::remove_dir(&path).unwrap();
        (0..RETRY_LOOKS).for_each(|_| lending.handle_date(today));
        assert_eq!(lending.lends(), Lends::NoUplink, "it is not stored yet");
        lending.volume.as_mut().unwrap().wait();
        lending.handle_date(today);
        assert_eq!((lending.lends(), lending.admits(), lending.why_not()), (Lends::Fully, true, None));
        assert!(heard.take().contains("the volume file can be written again"));
        drop(lending);
        assert!(Volume::open(limit, path, today).unwrap().used_bytes() >= 6_500);
    }

    #[test]
    fn what_goes_on_over_the_other_family_is_not_cut() {
        let both = Families { v4: true, v6: true };
        let (of_v4, of_v6) = (Families { v4: true, v6: false }, Families { v4: false, v6: true });
        for (families, moved, instance, told) in [
            (both, [false, true], 0, of_v4),
            (both, [true, false], 0, of_v6),
            (both, [true, true], 1, both),
            (of_v4, [true, false], 1, of_v4),
            (of_v6, [false, true], 1, of_v6),
        ] {
            let mut lending = Lending { families, ..Lending::new(None, None, None) };
            let shown = |lending: &Lending| (lending.terms().instance, lending.terms().families);
            lending.forget_connections(moved);
            assert_eq!(shown(&lending), (instance, told), "{moved:?}");
            (1..ANEW_LOOKS).for_each(|_| lending.handle_date(date(2026, 5, 9)));
            assert_eq!(shown(&lending), (instance, told), "{moved:?}");
            lending.handle_date(date(2026, 5, 9));
            assert_eq!(shown(&lending), (instance, families), "{moved:?}");
        }
        let mut lending = Lending { families: both, ..Lending::new(None, None, None) };
        lending.forget_connections([false, true]);
        lending.forget_connections([true, false]);
        assert_eq!((lending.terms().instance, lending.terms().families), (1, both), "one after the other");
        lending.forget_connections([false, true]);
        lending.set_families(of_v6);
        assert_eq!((lending.terms().instance, lending.terms().families), (2, of_v6), "the other one is gone");
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
            lending.handle_battery(charge);
            assert_eq!(lending.lends(), lends, "{charge:?}");
        }
        // A charger with a loose contact does not count.
        for charge in [Charge::Kept, Charge::Kept, Charge::Kept, Charge::Unknown] {
            lending.handle_battery(charge);
        }
        assert_eq!(lending.lends(), Lends::NoBattery);
        assert!(lending.admits(), "what is under way still goes");
        (0..3).for_each(|_| lending.handle_battery(Charge::Emptying(28)));
        assert!(lending.admits());
        lending.handle_battery(Charge::Emptying(28));
        assert!(!lending.admits(), "nor does what a destination goes on sending");
        (0..4).for_each(|_| lending.handle_battery(Charge::Kept));
        assert_eq!((lending.lends(), lending.admits()), (Lends::NoBattery, false));
        lending.handle_battery(Charge::Kept);
        assert_eq!((lending.lends(), lending.admits()), (Lends::Fully, true));
        assert_eq!(lending.terms().spare, Rate::from_mbps(5));
        lending.lost = Some("is down".into());
        assert_eq!((lending.lends(), lending.terms().spare), (Lends::NoUplink, Rate::ZERO));
        assert!(!lending.admits());
        lending.ended = true;
        assert_eq!(lending.lends(), Lends::Ended);
    }
}
