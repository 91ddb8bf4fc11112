//! The tapped delay lines of TS 36.104 annex B.2.

/// A multipath delay profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// EPA: low delay spread, pedestrians.
    ExtendedPedestrianA,
    /// EVA: medium delay spread, vehicles.
    ExtendedVehicularA,
    /// ETU: high delay spread, urban areas.
    ExtendedTypicalUrban,
}

/// One tap: excess delay in ns, relative power in dB.
pub(crate) type Tap = (u16, f64);

/// TS 36.104 table B.2-1.
const EPA: [Tap; 7] = [(0, 0.0), (30, -1.0), (70, -2.0), (90, -3.0), (110, -8.0), (190, -17.2), (410, -20.8)];

/// TS 36.104 table B.2-2.
const EVA: [Tap; 9] = [
    (0, 0.0),
    (30, -1.5),
    (150, -1.4),
    (310, -3.6),
    (370, -0.6),
    (710, -9.1),
    (1090, -7.0),
    (1730, -12.0),
    (2510, -16.9),
];

/// TS 36.104 table B.2-3.
const ETU: [Tap; 9] =
    [(0, -1.0), (50, -1.0), (120, -1.0), (200, 0.0), (230, 0.0), (500, 0.0), (1600, -3.0), (2300, -5.0), (5000, -7.0)];

impl Profile {
    pub(crate) const fn taps(self) -> &'static [Tap] {
        match self {
            Self::ExtendedPedestrianA => &EPA,
            Self::ExtendedVehicularA => &EVA,
            Self::ExtendedTypicalUrban => &ETU,
        }
    }
}
