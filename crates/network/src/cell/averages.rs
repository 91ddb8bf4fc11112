//! Past throughput of every UE, exponentially averaged, for schedulers to compare.
//!
//! R_i(t) = (1 - 1/t_w) R_i(t-1) + (1/t_w) r_i(t). All averages decay by the same factor, which is stored once: a TTI
//! costs one multiplication, whatever the number of UEs.

/// Below this value, the common factor is multiplied out.
const SCALE_MIN: f64 = 1e-60;

#[derive(Clone, Debug)]
pub(crate) struct Averages {
    /// R_i divided by the common factor.
    stored: Vec<f64>,
    scale: f64,
    /// 1 - 1/t_w.
    decay: f64,
    /// 1/t_w.
    weight: f64,
    tti: u64,
    /// How often the common factor has been multiplied out.
    unit: u64,
}

impl Averages {
    pub(crate) fn new(ues: usize, averaging_ttis: f64) -> Self {
        let weight = 1.0 / averaging_ttis;
        Self { stored: vec![0.0; ues], scale: 1.0, decay: 1.0 - weight, weight, tti: 0, unit: 0 }
    }

    /// Advances to `tti`, without grants.
    pub(crate) fn advance(&mut self, tti: u64) {
        let ttis = tti - self.tti;
        self.tti = tti;
        self.scale *= if ttis == 1 { self.decay } else { libm::pow(self.decay, ttis as f64) };
        if self.scale < SCALE_MIN {
            self.stored.iter_mut().for_each(|stored| *stored *= self.scale);
            self.scale = 1.0;
            self.unit += 1;
        }
    }

    /// Counts a transport block granted to `ue` in the current TTI.
    pub(crate) fn add(&mut self, ue: usize, bytes: u32) {
        self.stored[ue] += self.weight * f64::from(bytes) / self.scale;
    }

    /// R_i, octets per TTI.
    #[inline]
    pub(crate) fn get(&self, ue: usize) -> f64 {
        self.multiplied_out(self.stored[ue])
    }

    /// R_i divided by the common factor; comparable while [`Self::unit`] stays the same.
    #[inline]
    pub(crate) fn stored(&self, ue: usize) -> f64 {
        self.stored[ue]
    }

    /// R_i from a [`Self::stored`] value.
    #[inline]
    pub(crate) fn multiplied_out(&self, stored: f64) -> f64 {
        stored * self.scale
    }

    /// Changes whenever all stored values change.
    #[inline]
    pub(crate) fn unit(&self) -> u64 {
        self.unit
    }

    /// Number of UEs.
    pub(crate) fn len(&self) -> usize {
        self.stored.len()
    }

    /// 1/t_w: how much a grant of one octet adds.
    pub(crate) fn weight(&self) -> f64 {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_decay_and_grow() {
        let mut averages = Averages::new(2, 4.0);
        averages.advance(1);
        averages.add(0, 1000);
        assert_eq!((averages.get(0), averages.get(1)), (250.0, 0.0));
        averages.advance(3);
        averages.add(1, 400);
        // 250 x 0.75 x 0.75.
        assert_eq!((averages.get(0), averages.get(1)), (140.625, 100.0));
        averages.advance(1_000_000);
        assert_eq!(averages.get(0), 0.0);
        averages.add(1, 4);
        assert_eq!(averages.get(1), 1.0);
    }
}
