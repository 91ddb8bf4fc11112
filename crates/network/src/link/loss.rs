//! Random loss of packets.

use units::Prng;

/// A random process that loses packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossModel {
    /// Loses no packet.
    #[default]
    None,
    /// Loses each packet independently with the same probability.
    Uniform {
        /// The probability.
        probability: f64,
    },
    /// Gilbert-Elliott: a chain of two states, good and bad, each with its own probability of loss. The state changes
    /// before each packet.
    GilbertElliott {
        /// Probability of leaving the good state.
        to_bad: f64,
        /// Probability of leaving the bad state.
        to_good: f64,
        /// Probability of loss in the good state.
        loss_good: f64,
        /// Probability of loss in the bad state.
        loss_bad: f64,
        /// The current state.
        bad: bool,
    },
}

impl LossModel {
    /// Loses each packet with `probability`.
    pub const fn uniform(probability: f64) -> Self {
        Self::Uniform { probability }
    }

    /// Gilbert's model: every packet is lost in the bad state, none in the good one. `mean_loss` is the long-run
    /// fraction of packets lost, `mean_burst_packets` (1 or more) the mean length of a run of losses.
    pub fn gilbert(mean_loss: f64, mean_burst_packets: f64) -> Self {
        // The chain's balance gives loss = to_bad / (to_bad + to_good); the geometric runs give burst = 1 / to_good.
        let to_good = 1.0 / mean_burst_packets.max(1.0);
        let to_bad = to_good * mean_loss / (1.0 - mean_loss);
        Self::GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0, bad: false }
    }

    /// Creates the model of four parameters, starting in the good state.
    pub const fn gilbert_elliott(to_bad: f64, to_good: f64, loss_good: f64, loss_bad: f64) -> Self {
        Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad, bad: false }
    }

    /// Draws whether the next packet is lost.
    #[inline]
    pub fn loses(&mut self, prng: &mut Prng) -> bool {
        match self {
            Self::None => false,
            Self::Uniform { probability } => prng.chance(*probability),
            Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad, bad } => {
                *bad ^= prng.chance(if *bad { *to_good } else { *to_bad });
                prng.chance(if *bad { *loss_bad } else { *loss_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(mut model: LossModel, count: usize) -> Vec<bool> {
        let mut prng = Prng::new(1);
        (0..count).map(|_| model.loses(&mut prng)).collect()
    }

    #[test]
    fn uniform_loses_its_share() {
        // 100 000 draws of 2 %: the standard deviation of the count is 44.
        let lost = draws(LossModel::uniform(0.02), 100_000).iter().filter(|lost| **lost).count();
        assert!((1800..2200).contains(&lost), "{lost}");
        assert!(!draws(LossModel::None, 100).contains(&true));
    }

    #[test]
    fn gilbert_loses_its_share_in_bursts() {
        let losses = draws(LossModel::gilbert(0.05, 5.0), 200_000);
        let lost = losses.iter().filter(|lost| **lost).count();
        let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        assert!((9000..11_000).contains(&lost), "{lost}");
        let mean_burst = lost as f64 / bursts as f64;
        assert!((4.6..5.4).contains(&mean_burst), "{mean_burst}");
    }

    #[test]
    fn elliott_loses_in_the_good_state_too() {
        // Never bad: only the 10 % of the good state.
        let lost = draws(LossModel::gilbert_elliott(0.0, 1.0, 0.1, 1.0), 10_000).iter().filter(|lost| **lost).count();
        assert!((850..1150).contains(&lost), "{lost}");
    }
}
