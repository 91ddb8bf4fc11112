//! The runs of a sweep.

use super::axes::{Axis, AxisValue, axes, changes_of, conflicts};
use crate::scenario::{LoadError, Mistake, Override, Scenario, Seeds};

/// Maximum number of runs in a sweep.
const JOBS_MAX: usize = 1_000_000;
/// Maximum number of mistakes to look for.
const MISTAKES_MAX: usize = 20;
/// Name of the only variant of a scenario without variants.
pub const ONLY_VARIANT: &str = "as written";

/// All runs of a sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario to sweep, without variant and grid.
    pub scenario: Scenario,
    /// Every variant at every point of the grid.
    pub cases: Vec<Case>,
    /// The seeds for each case.
    pub seeds: Vec<u64>,
    /// The variant to compare the others with.
    pub baseline: String,
    /// Changes by the command line to all cases.
    pub overrides: Vec<Override>,
    /// Backend of the runs, in the form of the command line (`--backend linux --destination kernel`); empty for the
    /// simulator.
    pub world: String,
}

/// A variant at a point of the grid.
#[derive(Clone, Debug)]
pub struct Case {
    /// The variant.
    pub variant: String,
    /// Path and value of every field of the grid.
    pub point: Vec<(String, String)>,
    /// The scenario with both.
    pub scenario: Scenario,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Index into [`Plan::cases`].
    pub case: usize,
    /// Its seed.
    pub seed: u64,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The scenario, alone or with a variant or a point of the grid, is invalid.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// There are too many runs.
    #[error("{runs} runs are more than {JOBS_MAX}: shrink the grid or the seeds")]
    TooMany {
        /// Number of runs.
        runs: usize,
    },
}

impl Plan {
    /// Creates the plan of the scenario that `load` creates from overrides, changed by `overrides`, over `seeds` or the
    /// scenario's own. An override of a field in the grid replaces that axis.
    ///
    /// # Errors
    /// If the scenario is invalid, alone, with a variant or at a point of the grid, if an override would make rows
    /// contradict their names, or if there are too many runs.
    pub fn new(
        load: impl Fn(&[Override]) -> Result<Scenario, LoadError>,
        overrides: &[Override],
        seeds: Option<Seeds>,
    ) -> Result<Self, PlanError> {
        Self::under(load, overrides, seeds, |_| Vec::new())
    }

    /// Like [`Plan::new`], and also applies `besides` to every case, and to the scenario without a variant or a point: it
    /// returns overrides for such a scenario, which apply unless the variant, the point or an override decides the same.
    ///
    /// # Errors
    /// As for [`Plan::new`], and if the scenario or a case is invalid with the overrides of `besides`.
    pub fn under(
        load: impl Fn(&[Override]) -> Result<Scenario, LoadError>,
        overrides: &[Override],
        seeds: Option<Seeds>,
        besides: impl Fn(&Scenario) -> Vec<Override>,
    ) -> Result<Self, PlanError> {
        let scenario = load(overrides)?;
        let conflicts = conflicts(&scenario, overrides);
        if !conflicts.is_empty() {
            return Err(LoadError::mistakes(conflicts).into());
        }
        let (axes, variants) = (axes(&scenario, overrides), variants(&scenario));
        let seeds: Vec<u64> =
            seeds.unwrap_or_else(|| scenario.sweep.clone().unwrap_or_default().seeds.0).range().collect();
        let points = axes.iter().fold(1_usize, |points, axis| points.saturating_mul(axis.values.len()));
        let runs = points.saturating_mul(variants.len()).saturating_mul(seeds.len());
        if runs > JOBS_MAX {
            return Err(PlanError::TooMany { runs });
        }
        let baseline = variants.iter().find(|variant| variant.baseline).unwrap_or(&variants[0]).name.clone();
        let load = |said: &[Override]| load_under(&load, said, &besides);
        let cases = cases(&load, overrides, &variants, &points_of(&axes))?;
        let scenario = load(overrides)?;
        Ok(Self { scenario, cases, seeds, baseline, overrides: overrides.to_vec(), world: String::new() })
    }

    /// Every run, in the order of cases and seeds.
    pub fn jobs(&self) -> impl Iterator<Item = Job> + '_ {
        (0..self.cases.len()).flat_map(|case| self.seeds.iter().map(move |seed| Job { case, seed: *seed }))
    }
}

/// The scenario with `said`, and with those overrides of `besides` that `said` does not decide.
fn load_under(
    load: &impl Fn(&[Override]) -> Result<Scenario, LoadError>,
    said: &[Override],
    besides: &impl Fn(&Scenario) -> Vec<Override>,
) -> Result<Scenario, LoadError> {
    let scenario = load(said)?;
    let undecided = |more: &Override| !said.iter().any(|change| change.decides(more));
    let besides: Vec<Override> = besides(&scenario).into_iter().filter(undecided).collect();
    if besides.is_empty() {
        return Ok(scenario);
    }
    load(&[said, &besides].concat())
}

struct NamedVariant {
    name: String,
    overrides: Vec<Override>,
    baseline: bool,
}

fn variants(scenario: &Scenario) -> Vec<NamedVariant> {
    let variants = scenario.variants.iter().enumerate().map(|(index, variant)| NamedVariant {
        name: variant.name.clone(),
        overrides: changes_of(index, variant),
        baseline: variant.baseline,
    });
    let mut variants: Vec<_> = variants.collect();
    if variants.is_empty() {
        variants.push(NamedVariant { name: ONLY_VARIANT.into(), overrides: Vec::new(), baseline: true });
    }
    variants
}

/// One value for each axis, by axis.
type Point<'a> = Vec<(&'a str, &'a AxisValue)>;

/// Every combination of the axes' values; one empty point without a grid.
fn points_of(axes: &[Axis]) -> Vec<Point<'_>> {
    let mut points = vec![Vec::new()];
    for axis in axes {
        let extended = points.iter().flat_map(|point: &Point<'_>| {
            axis.values.iter().map(move |value| {
                let mut point = point.clone();
                point.push((axis.key.as_str(), value));
                point
            })
        });
        points = extended.collect();
    }
    points
}

/// Every variant at every point, or all mistakes in any of them.
fn cases(
    load: &impl Fn(&[Override]) -> Result<Scenario, LoadError>,
    overrides: &[Override],
    variants: &[NamedVariant],
    points: &[Point<'_>],
) -> Result<Vec<Case>, LoadError> {
    let mut cases = Vec::new();
    let mut found: Vec<Mistake> = Vec::new();
    for point in points {
        let named: Vec<(String, String)> =
            point.iter().map(|(key, value)| ((*key).into(), value.label.clone())).collect();
        for variant in variants {
            // The command line takes precedence.
            let mut all = variant.overrides.clone();
            all.extend(point.iter().filter_map(|(_, value)| value.change.clone()));
            all.extend_from_slice(overrides);
            let context = format!("variant \"{}\"{}", variant.name, described(&named));
            match load(&all) {
                Ok(scenario) => cases.push(Case { variant: variant.name.clone(), point: named.clone(), scenario }),
                Err(LoadError::Mistakes(mistakes)) => {
                    found.extend(mistakes.into_iter().map(|mistake| Mistake { context: context.clone(), ..mistake }));
                }
                Err(other) => return Err(other),
            }
            if found.len() >= MISTAKES_MAX {
                return Err(LoadError::mistakes(found));
            }
        }
    }
    if found.is_empty() { Ok(cases) } else { Err(LoadError::mistakes(found)) }
}

pub(crate) fn described(point: &[(String, String)]) -> String {
    point.iter().map(|(path, value)| format!(", {path} = {value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    const TEXT: &str = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\n\
        cellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n\
        [[variants]]\nname = \"a\"\nset = { \"connection.congestion\" = \"lia\" }\n\
        [[variants]]\nname = \"b\"\nbaseline = true\nset = { \"connection.congestion\" = \"cubic\" }\n\
        [sweep]\nseeds = \"3..4\"\n[sweep.grid]\n\"connection.mtu\" = [\"1400 B\", \"1500 B\", \"9000 B\"]\n";

    fn plan(text: &str, overrides: &[&str]) -> Result<Plan, PlanError> {
        let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
        Plan::new(|overrides| load("x.toml", text, overrides), &overrides, None)
    }

    #[test]
    fn every_variant_at_every_point_with_every_seed() {
        let plan = plan(TEXT, &[]).unwrap();
        assert_eq!((plan.cases.len(), plan.seeds.as_slice(), plan.baseline.as_str()), (6, [3, 4].as_slice(), "b"));
        let jobs: Vec<Job> = plan.jobs().collect();
        assert_eq!((jobs.len(), jobs[3]), (12, Job { case: 1, seed: 4 }));
        assert_eq!(plan.cases[1].scenario.connection.congestion.0.to_string(), "cubic");
        assert_eq!(plan.cases[2].point, [("connection.mtu".to_string(), "1500 B".to_string())]);
        assert_eq!(plan.cases[2].scenario.connection.mtu.0, 1500);
    }

    #[test]
    fn what_holds_besides_leaves_variants_and_points_what_they_are_called() {
        let besides = |scenario: &Scenario| {
            let controller = scenario.connection.congestion.0.to_string();
            let settings = [
                "connection.congestion=olia".to_owned(),
                "connection.mtu=576 B".to_owned(),
                format!("connection.sack={}", controller == "lia"),
            ];
            settings.iter().map(|text| text.parse().unwrap()).collect()
        };
        let plan = Plan::under(|overrides| load("x.toml", TEXT, overrides), &[], None, besides).unwrap();
        let plain = Plan::new(|overrides| load("x.toml", TEXT, overrides), &[], None).unwrap();
        for (case, plain) in plan.cases.iter().zip(&plain.cases) {
            let (connection, plain) = (&case.scenario.connection, &plain.scenario.connection);
            assert_eq!((&connection.congestion, connection.mtu), (&plain.congestion, plain.mtu));
            assert_eq!(connection.sack, case.variant == "a");
        }
        // As written it has the scenario's controller, and no point.
        let (written, plain) = (&plan.scenario.connection, &plain.scenario.connection);
        assert_eq!((written.mtu.0, written.congestion.0.to_string()), (576, "olia".into()));
        assert_ne!(written.congestion, plain.congestion);
    }

    #[test]
    fn an_override_of_an_axis_takes_its_place() {
        let plan = plan(TEXT, &["connection.mtu=1300 B"]).unwrap();
        assert_eq!(plan.cases.len(), 2);
        for case in &plan.cases {
            assert_eq!(case.scenario.connection.mtu.0, 1300);
            assert_eq!(case.point, [("connection.mtu".to_string(), "1300 B".to_string())]);
        }
    }

    /// Expects a refusal with these words, and a plan after following the help, which replaces or adds overrides.
    #[track_caller]
    fn refused(text: &str, change: &str, words: &[&str], helps: &[&str]) {
        let error = plan(text, &[change]).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{word:?} is missing in:\n{error}");
        }
        if let Some((_, help)) = error.rsplit_once("--set '") {
            let remedy = help.trim_end_matches('\'');
            plan(text, &[&[change, remedy], helps].concat()).unwrap_or_else(|error| panic!("{remedy}: {error}"));
        }
    }

    #[test]
    fn an_override_that_would_make_rows_lie_is_refused() {
        let named = ["the variants \"a\", \"b\" set this themselves", "--set connection.congestion=bbr"];
        refused(TEXT, "connection.congestion=bbr", &named, &[]);
        refused(
            TEXT,
            "connection={ mtu = \"1400 B\" }",
            &["set this themselves", "the grid varies connection.mtu"],
            &["variants=[]"],
        );
        refused(TEXT, "seed=3", &["every run of a sweep has its own seed", "--seeds 1..30"], &[]);
        let relays = TEXT.replace(
            "\"connection.mtu\" = [\"1400 B\", \"1500 B\", \"9000 B\"]",
            "\"relays[*].cellular.loss\" = [\"1 %\", \"2 %\"]",
        );
        refused(&relays, "relays[0].cellular.loss=3 %", &["the grid varies relays[*].cellular.loss"], &[]);
        let whole = TEXT.replace(
            "\"connection.congestion\" = \"lia\"",
            "\"relays[0].cellular\" = { rate = \"1 Mbit/s\", delay = \"1 ms\" }",
        );
        refused(&whole, "relays[0].cellular.delay=3 ms", &["the variant \"a\" sets this itself"], &[]);
        // Settings that do not appear in any name may change.
        assert_eq!(plan(TEXT, &["connection.scheduler=random"]).unwrap().cases.len(), 6);
    }

    #[test]
    fn the_structure_of_a_sweep_may_be_changed() {
        assert_eq!(plan(TEXT, &["variants=[]"]).unwrap().cases.len(), 3);
        assert_eq!(plan(TEXT, &["sweep.grid={}"]).unwrap().cases.len(), 2);
        assert_eq!(plan(TEXT, &["sweep.seeds=1..5"]).unwrap().seeds.len(), 5);
        let narrowed = plan(TEXT, &["sweep.grid.connection.mtu=[\"1500 B\", \"1300 B\"]"]).unwrap();
        assert_eq!(
            narrowed.cases.iter().map(|case| case.scenario.connection.mtu.0).collect::<Vec<_>>(),
            [1500, 1500, 1300, 1300]
        );
        let other = plan(TEXT, &["variants[0].set.connection.congestion=olia"]).unwrap();
        assert_eq!(other.cases[0].scenario.connection.congestion.0.to_string(), "olia");
        let error = plan(TEXT, &["extends=other.toml"]).unwrap_err().to_string();
        assert!(error.contains("files are merged before") && error.contains("write a file that extends"), "{error}");
    }

    #[test]
    fn a_case_is_run_again_by_a_command_that_a_shell_reads() {
        let case = |plan: &Plan| plan.command(&plan.cases[1], 4);
        let wanted =
            "anabranch run x.toml --variant b --set 'connection.mtu=1400 B' --set connection.scheduler=random --seed 4";
        assert_eq!(case(&plan(TEXT, &["connection.scheduler=random"]).unwrap()), wanted);
        let wanted = "anabranch run x.toml --variant b --set 'connection.mtu=1300 B' --seed 4";
        assert_eq!(case(&plan(TEXT, &["connection.mtu=1300 B"]).unwrap()), wanted);
    }

    #[test]
    fn all_mistakes_of_variants_come_at_once_with_their_lines() {
        let text =
            TEXT.replace("\"lia\"", "\"lai\"").replace("\"cubic\"", "\"vegan\"").replace("\"9000 B\"", "\"90 B\"");
        let error = plan(&text, &[]).unwrap_err().to_string();
        for part in [
            "x.toml:8:9: connection.congestion",
            "x.toml:12:9: connection.congestion",
            "x.toml:16:41: connection.mtu",
            "(variant \"a\"",
        ] {
            assert!(error.contains(part), "{part:?} is missing in:\n{error}");
        }
    }

    #[test]
    fn mistakes_name_the_variant_and_the_point() {
        let text = TEXT.replace("\"cubic\"", "\"vegan\"");
        let error = plan(&text, &[]).unwrap_err().to_string();
        assert!(error.contains("(variant \"b\", connection.mtu = 1400 B)") && error.contains("vegan"), "{error}");
        let twice = TEXT.replace("name = \"b\"", "name = \"a\"");
        assert!(plan(&twice, &[]).unwrap_err().to_string().contains("twice"));
        let sizes: Vec<String> = (0..9).map(|more| format!("\"{} B\",", 1300 + more)).collect();
        let many = TEXT.replace("3..4", "1..99999").replace("\"1400 B\",", &sizes.concat());
        assert!(plan(&many, &[]).unwrap_err().to_string().contains("more than"));
    }
}
