//! Places of sites and UEs.

use units::Instant;

/// A point, in metres.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Place {
    /// Eastwards.
    pub x_m: f64,
    /// Northwards.
    pub y_m: f64,
    /// Upwards.
    pub z_m: f64,
}

impl Place {
    /// Place of the first eNB by default.
    pub const ORIGIN: Self = Self::flat(0.0, 0.0);

    /// Creates a point on the ground.
    pub const fn flat(x_m: f64, y_m: f64) -> Self {
        Self { x_m, y_m, z_m: 0.0 }
    }

    /// Returns the distance to `other`, metres.
    pub fn distance_m(self, other: Self) -> f64 {
        let [x, y, z] = [self.x_m - other.x_m, self.y_m - other.y_m, self.z_m - other.z_m];
        (x * x + y * y + z * z).sqrt()
    }

    pub(crate) fn is_finite(self) -> bool {
        [self.x_m, self.y_m, self.z_m].iter().all(|coordinate| coordinate.is_finite())
    }

    /// The point at fraction `share` of the way to `other`.
    fn towards(self, other: Self, share: f64) -> Self {
        let between = |from: f64, to: f64| from + (to - from) * share;
        Self { x_m: between(self.x_m, other.x_m), y_m: between(self.y_m, other.y_m), z_m: between(self.z_m, other.z_m) }
    }
}

/// A movement in straight lines at constant speed between way points. It stands still before the first and after the
/// last.
#[derive(Clone, Debug, PartialEq)]
pub struct Track(Vec<(Instant, Place)>);

impl Track {
    /// Creates a track without movement.
    pub fn fixed(place: Place) -> Self {
        Self(vec![(Instant::ZERO, place)])
    }

    /// Creates a track through way points, each with its time. Returns `None` unless there is at least one point, times
    /// rise and places are finite.
    pub fn through(points: Vec<(Instant, Place)>) -> Option<Self> {
        let rises = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let sane = !points.is_empty() && rises && points.iter().all(|(_, place)| place.is_finite());
        sane.then_some(Self(points))
    }

    /// Returns whether the track contains any movement.
    pub fn moves(&self) -> bool {
        self.0.len() > 1
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.0.iter().all(|(_, place)| place.is_finite())
    }

    /// Returns the place at a time.
    pub fn at(&self, now: Instant) -> Place {
        let next = self.0.partition_point(|(time, _)| *time <= now);
        let Some(&(begin, from)) = next.checked_sub(1).and_then(|last| self.0.get(last)) else { return self.0[0].1 };
        let Some(&(end, to)) = self.0.get(next) else { return from };
        from.towards(to, (now - begin).as_secs_f64() / (end - begin).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn movement_is_linear_between_way_points() {
        let track = Track::through(vec![
            (Instant::from_secs(10), Place::flat(0.0, 0.0)),
            (Instant::from_secs(20), Place::flat(100.0, 50.0)),
            (Instant::from_secs(30), Place::flat(100.0, 0.0)),
        ])
        .unwrap();
        let places = [0, 10, 14, 20, 25, 99].map(|second| track.at(Instant::from_secs(second)));
        let expected = [(0.0, 0.0), (0.0, 0.0), (40.0, 20.0), (100.0, 50.0), (100.0, 25.0), (100.0, 0.0)];
        assert_eq!(places, expected.map(|(x, y)| Place::flat(x, y)));
    }

    #[test]
    fn absurd_tracks_are_refused() {
        let at = |second| (Instant::from_secs(second), Place::ORIGIN);
        assert_eq!(Track::through(vec![]), None);
        assert_eq!(Track::through(vec![at(1), at(1)]), None);
        assert_eq!(Track::through(vec![(Instant::ZERO, Place::flat(f64::NAN, 0.0))]), None);
        assert_eq!(Place::flat(3.0, 0.0).distance_m(Place { x_m: 0.0, y_m: 4.0, z_m: 12.0 }), 13.0);
    }
}
