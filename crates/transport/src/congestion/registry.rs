//! All controllers, by name.

use policy::Build::{Plain, With};
use policy::{BuildError, ParameterError};

use super::{
    Aimd, Balia, Bbr, CongestionController, ControllerSpec, Coupled, Cubic, Ewtcp, Lia, MVeno, MpVeno, MptcpW, NewReno,
    Olia, Veno, WVegas, Westwood, aimd, cubic, ewtcp, gmcc_coop, mcc_coop, mpaimd,
};

/// A controller that can be selected by name.
pub type Registration = policy::Registration<Build>;

/// How to create a controller.
pub type Build = policy::Build<fn() -> Box<dyn CongestionController>, fn(&[f64]) -> Built>;

/// A controller, or which value is wrong and why.
pub type Built = Result<Box<dyn CongestionController>, String>;

/// All controllers.
pub const CONTROLLERS: &[Registration] = &[
    Registration {
        name: "lia",
        summary: "linked increases over all subflows (RFC 6356)",
        build: Plain(|| Box::new(Lia::default())),
    },
    Registration {
        name: "uncoupled",
        summary: "NewReno on every subflow, each on its own",
        build: Plain(|| Box::new(NewReno::new("uncoupled"))),
    },
    Registration {
        name: "newreno",
        summary: "NewReno (RFC 5681, RFC 6582); with several subflows the same as uncoupled",
        build: Plain(|| Box::new(NewReno::new("newreno"))),
    },
    Registration {
        name: "cubic",
        summary: "CUBIC (RFC 9438) on every subflow, each on its own",
        build: With(cubic::PARAMETERS, |values| Ok(Box::new(Cubic::new(values[0])?))),
    },
    Registration {
        name: "aimd",
        summary: "additive increase, multiplicative decrease of any strength",
        build: With(aimd::PARAMETERS, |values| Ok(Box::new(Aimd::new(values[0], values[1])?))),
    },
    Registration {
        name: "olia",
        summary: "opportunistic linked increases: good paths with small windows take from the largest",
        build: Plain(|| Box::new(Olia::default())),
    },
    Registration {
        name: "balia",
        summary: "balanced linked adaptation: between friendly and responsive",
        build: Plain(|| Box::new(Balia)),
    },
    Registration {
        name: "bbr",
        summary: "BBR version 1 on every subflow, each on its own: paces at the bandwidth that it measures",
        build: Plain(|| Box::new(Bbr::default())),
    },
    Registration {
        name: "wvegas",
        summary: "weighted Vegas: keeps ten segments in the queues of all subflows together",
        build: Plain(|| Box::new(WVegas::default())),
    },
    Registration {
        name: "coupled",
        summary: "fully coupled: only the paths with the least loss carry anything",
        build: Plain(|| Box::new(Coupled)),
    },
    Registration {
        name: "ewtcp",
        summary: "equally weighted TCP: NewReno on every subflow, all together as strong as one",
        build: With(ewtcp::PARAMETERS, |values| Ok(Box::new(Ewtcp::new(values[0])?))),
    },
    Registration {
        name: "westwood",
        summary: "Westwood+ on every subflow, each on its own: falls back to the bandwidth it measured",
        build: Plain(|| Box::new(Westwood::default())),
    },
    Registration {
        name: "mptcpw",
        summary: "increases of LIA, decreases of Westwood+",
        build: Plain(|| Box::new(MptcpW::default())),
    },
    Registration {
        name: "veno",
        summary: "Veno on every subflow, each on its own: tells random loss from congestion",
        build: Plain(|| Box::new(Veno)),
    },
    Registration {
        name: "mpveno",
        summary: "increases of OLIA, decreases of Veno",
        build: Plain(|| Box::new(MpVeno::default())),
    },
    Registration {
        name: "mveno",
        summary: "Veno with weights that equalise congestion, not loss, over all subflows",
        build: Plain(|| Box::new(MVeno::new())),
    },
    Registration {
        name: "mveno-proof",
        summary: "mVeno with the extremes that its proof of fairness needs",
        build: Plain(|| Box::new(MVeno::proof())),
    },
    Registration {
        name: "mveno-own-rtt",
        summary: "mVeno that weighs subflows by their shares of the rate, so that unlike round-trip times do no harm",
        build: Plain(|| Box::new(MVeno::own_rtt())),
    },
    Registration {
        name: "mcc-coop",
        summary: "LIA that yields to the TCP flows of relays (thesis, chapter 7)",
        build: With(mcc_coop::PARAMETERS, mcc_coop::mcc_coop),
    },
    Registration {
        name: "gmcc-coop",
        summary: "LIA that grows, falls and yields as the AIMD flows of relays require (thesis, chapter 7)",
        build: With(gmcc_coop::PARAMETERS, gmcc_coop::gmcc_coop),
    },
    Registration {
        name: "mpaimd",
        summary: "LIA that grows and falls as the AIMD flows of relays do, and does not yield (thesis, chapter 7)",
        build: With(mpaimd::PARAMETERS, mpaimd::mpaimd),
    },
];

/// Creates the controller that `spec` names; omitted parameters take their defaults.
pub fn build(spec: &ControllerSpec) -> Result<Box<dyn CongestionController>, BuildError> {
    const KIND: &str = "congestion controller";
    let Registration { name, build, .. } = *policy::find(KIND, CONTROLLERS, &spec.name)?;
    let values = spec.values(KIND, name, build.parameters())?;
    match build {
        Plain(build) => Ok(build()),
        With(_, build) => build(&values).map_err(|reason| ParameterError::Bad { kind: KIND, name, reason }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{loss, path};
    use super::super::{LossSample, Paths};
    use super::*;

    fn error(text: &str) -> String {
        build(&text.parse().unwrap()).err().expect("no controller").to_string()
    }

    #[test]
    fn every_controller_goes_by_its_registered_name() {
        for registration in CONTROLLERS {
            assert_eq!(build(&ControllerSpec::named(registration.name)).unwrap().name(), registration.name);
        }
    }

    #[test]
    fn parameters_left_out_take_their_defaults() {
        let threshold = |text: &str| {
            let sample: LossSample = loss(0);
            build(&text.parse().unwrap()).unwrap().on_loss(&sample, Paths(&[path(0, 10)]))
        };
        assert_eq!(threshold("aimd"), 5_000);
        assert_eq!(threshold("aimd(0.7)"), 5_000);
        assert_eq!(threshold("aimd(0.7,0.25)"), 2_500);
    }

    /// The ranges that `anabranch policies` lists are those of the controllers.
    #[test]
    fn controllers_take_all_values_of_their_ranges_and_no_others() {
        for Registration { name, build, .. } in CONTROLLERS {
            let With(parameters, build) = build else { continue };
            let defaults: Vec<f64> = parameters.iter().map(|parameter| parameter.default).collect();
            for (at, parameter) in parameters.iter().enumerate() {
                assert!(parameter.values.contains(parameter.default), "{name}: {}", parameter.name);
                let (lower, upper) = parameter.values.limits();
                for value in [lower - 1.0, lower, lower + 1e-3, lower + 0.5, upper - 1e-3, upper, upper + 1.0] {
                    let mut values = defaults.clone();
                    values[at] = value;
                    assert_eq!(build(&values).is_ok(), parameter.values.contains(value), "{name}: {value}");
                }
            }
        }
    }

    #[test]
    fn errors_name_the_remedy() {
        let unknown = error("cubik");
        assert!(unknown.starts_with("unknown congestion controller \"cubik\"; did you mean cubic? (there are: lia, "));
        assert_eq!(error("lia(1)"), "congestion controller lia takes no parameters: write lia");
        assert!(error("aimd(1,2)").starts_with("congestion controller aimd: beta = 2 must be above 0"));
    }
}
