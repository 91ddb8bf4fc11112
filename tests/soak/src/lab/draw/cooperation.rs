//! Which relays carry data, and which modules take part.

use cooperation::relay_selection::{SELECTORS, SelectorSpec};
use lab::scenario::{
    AdaptiveCongestion, BandwidthSharing, BufferedTolerance, Cooperation, Forwarding, Selection, SelectionMethod,
    Target, Watch,
};
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use units::text::Text;
use units::{ByteCount, Duration};

use super::words::word;
use super::{kbps, odd, pick, rarely, share, text_ms};

/// Cooperation, and the values that fit it to a scenario.
#[derive(Clone, Debug)]
pub struct CooperationParts {
    /// All modules that were drawn.
    pub cooperation: Cooperation,
    /// A target; used if a module needs it, or by chance.
    pub target: Target,
    /// Whether there is a target in any case.
    pub has_target: bool,
    /// Relays that carry data if they are fixed, modulo the number of relays.
    pub fixed: Vec<usize>,
    /// A rho for each relay, repeated if there are more relays.
    pub ratios: Vec<f64>,
}

/// Draws each module with some probability.
pub fn cooperation() -> BoxedStrategy<CooperationParts> {
    let modules = (
        weighted(0.25, adaptive_congestion()),
        weighted(0.3, forwarding()),
        weighted(0.2, watch()),
        weighted(0.25, bandwidth_sharing()),
    );
    let fixed = proptest::collection::vec(0..5_usize, 1..4);
    let ratios =
        prop_oneof![3 => Just(Vec::new()), 1 => proptest::collection::vec(pick(&[0.01, 1.0, 0.5, 10.0]), 1..3)];
    (word(), word(), selection(), modules, target(), fixed, ratios)
        .prop_map(|(relays, news, selection, modules, (target, has_target), fixed, ratios)| {
            let (adaptive_congestion, forwarding, watch, bandwidth_sharing) = modules;
            let cooperation =
                Cooperation { relays, news, selection, adaptive_congestion, forwarding, watch, bandwidth_sharing };
            CooperationParts { cooperation, target, has_target, fixed, ratios }
        })
        .boxed()
}

fn target() -> impl Strategy<Value = (Target, bool)> {
    let target = (pick(&[3000_u64, 1000, 300, 20_000]), pick(&[10.0, 1.0, 50.0]), odd(false, 0.3));
    let target =
        target.prop_map(|(rate, tolerance, paced)| Target { bit_rate: kbps(rate), tolerance: share(tolerance), paced });
    (target, odd(false, 0.3))
}

/// Any method, sometimes with explicit parameters.
fn method() -> impl Strategy<Value = SelectionMethod> {
    let selector = (select(SELECTORS), odd(false, 0.3)).prop_map(|(known, written)| {
        let parameters = known.build.parameters().iter().filter(|_| written).map(|parameter| parameter.default);
        SelectionMethod::Selector(SelectorSpec { parameters: parameters.collect(), ..SelectorSpec::named(known.name) })
    });
    prop_oneof![1 => Just(SelectionMethod::All), 1 => Just(SelectionMethod::Fixed), 4 => selector]
}

fn selection() -> BoxedStrategy<Selection> {
    let method = prop_oneof![1 => Just(SelectionMethod::All), 1 => method()];
    let periods = (pick(&[2000_u64, 500, 100]), rarely(0.3, &[2_u32, 0]), rarely(0.3, &[500_u64, 10]));
    let beliefs = (word(), word(), odd(false, 0.3), rarely(0.3, &[10.0, 100.0]));
    let weights = (rarely(0.3, &[1.0, 0.0, 100.0]), weighted(0.2, buffered_tolerance()), pick(&[10.0, 1.0, 50.0]));
    (method, periods, beliefs, weights, word())
        .prop_map(
            |(
                method,
                (period, hold_down_periods, advert),
                beliefs,
                (energy_weight, buffered_tolerance, epsilon),
                mode,
            )| {
                let (trigger, estimator, discount, headroom) = beliefs;
                Selection {
                    method,
                    fixed: Vec::new(),
                    period: Duration::from_millis(period),
                    trigger,
                    estimator,
                    hold_down_periods,
                    advert_period: text_ms(advert.map(|advert| advert.min(period))),
                    headroom: headroom.map(|percent| Text(share(percent))),
                    discount,
                    energy_weight,
                    buffered_tolerance,
                    epsilon: share(epsilon),
                    mode,
                }
            },
        )
        .boxed()
}

fn buffered_tolerance() -> impl Strategy<Value = BufferedTolerance> {
    (pick(&[5000_u64, 100]), pick(&[50.0, 0.0, 100.0]))
        .prop_map(|(full, widest)| BufferedTolerance { full: Duration::from_millis(full), widest: share(widest) })
}

fn adaptive_congestion() -> impl Strategy<Value = AdaptiveCongestion> {
    let bounds = pick(&[(1.0, 3.0), (1.5, 2.0), (1.0, 100.0)]);
    let periods = (pick(&[3_u32, 1, 100]), pick(&[2000_u64, 500, 50]));
    (bounds, word(), odd(false, 0.4), word(), word(), periods).prop_map(
        |((eta_min, eta_max), beyond, relay_delays, mode, acts_on, (reductions_max, period))| AdaptiveCongestion {
            eta_min,
            eta_max,
            beyond,
            relay_delays,
            reductions_max,
            mode,
            acts_on,
            period: Duration::from_millis(period),
        },
    )
}

fn forwarding() -> impl Strategy<Value = Forwarding> {
    let sizes = (rarely(0.5, &[100_u32, 10, 1, 10_000]), rarely(0.3, &[0_u64, 10_000, 1 << 20]));
    (pick(&[95.0, 50.0, 1.0, 100.0]), sizes, word(), word()).prop_map(
        |(threshold, (range_packets, hold_buffer), shares, count)| Forwarding {
            threshold: share(threshold),
            range_packets,
            shares,
            count,
            hold_buffer: hold_buffer.map(|bytes| Text(ByteCount(bytes))),
        },
    )
}

fn watch() -> impl Strategy<Value = Watch> {
    pick(&[3000_u64, 1000, 20_000]).prop_map(|patience| Watch { patience: Duration::from_millis(patience) })
}

fn bandwidth_sharing() -> impl Strategy<Value = BandwidthSharing> {
    (word(), word(), pick(&[2000_u64, 500, 50]), rarely(0.3, &[1000_u64, 0])).prop_map(
        |(rho, demands, period, start)| BandwidthSharing {
            rho,
            demands,
            period: Duration::from_millis(period),
            fixed: Vec::new(),
            start: text_ms(start),
        },
    )
}
