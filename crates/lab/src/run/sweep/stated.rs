//! What a plan's scenario states of the variants: a reader of a sweep's first line has only this.

use std::collections::BTreeMap;

use toml::Value;

use super::axes::changes_of_case;
use super::content::without_sweep;
use super::{Case, Plan};
use crate::scenario::Scenario;

/// Values by path, in the notation of `--set`.
type Settings = BTreeMap<String, Value>;

impl Plan {
    /// Adds to what the variants set in [`Plan::scenario`] those settings of their cases that do not follow from it:
    /// what holds besides in some variants only ([`Plan::under`]), and changes of the cases. It leaves out what only
    /// some of a variant's points have, and fields that only the scenario has.
    pub fn state_variants(&mut self) {
        for index in 0..self.scenario.variants.len() {
            let of_variant = |case: &&Case| case.variant == self.scenario.variants[index].name;
            let mut found = self.cases.iter().filter(of_variant).map(|case| unstated(&self.scenario, case));
            let first = found.next().unwrap_or_default();
            let common = found.fold(first, |mut common, settings| {
                common.retain(|path, value| settings.get(path) == Some(value));
                common
            });
            self.scenario.variants[index].set.extend(common);
        }
    }
}

/// The settings of `case` that do not follow from `scenario`, the variant and the point.
fn unstated(scenario: &Scenario, case: &Case) -> Settings {
    let mut found = Settings::new();
    let stated = scenario.changed(&changes_of_case(scenario, &case.variant, &case.point));
    let both = stated.map(|stated| [&stated, &case.scenario].map(|scenario| Value::try_from(without_sweep(scenario))));
    if let Some([Ok(stated), Ok(had)]) = both {
        add_unequal("", &stated, &had, &mut found);
    }
    found
}

/// Adds the values within `had`, which is at `path`, that `stated` does not have.
fn add_unequal(path: &str, stated: &Value, had: &Value, found: &mut Settings) {
    match (stated, had) {
        (Value::Table(stated), Value::Table(had)) => {
            for (key, value) in had {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match stated.get(key) {
                    Some(stated) => add_unequal(&path, stated, value, found),
                    None => drop(found.insert(path, value.clone())),
                }
            }
        }
        (Value::Array(stated), Value::Array(had)) if stated.len() == had.len() => {
            let both = stated.iter().zip(had).enumerate();
            both.for_each(|(index, (stated, had))| add_unequal(&format!("{path}[{index}]"), stated, had, found));
        }
        // Scenarios state the relays as written, not as many as a case has.
        _ if path == "relays" || stated == had => {}
        _ => drop(found.insert(path.to_owned(), had.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Override, load};

    const TEXT: &str = "name = \"x\"\nduration = \"1 s\"\nworkload = { kind = \"bulk\" }\n[[relays]]\ncount = 2\n\
        cellular = { rate = \"3 Mbit/s\", delay = \"5 ms\" }\n\
        [[variants]]\nname = \"a\"\nset = { \"connection.congestion\" = \"lia\" }\n\
        [[variants]]\nname = \"b\"\nset = { \"connection.congestion\" = \"cubic\" }\n\
        [sweep.grid]\n\"connection.mtu\" = [\"1400 B\", \"1500 B\"]\n";

    #[test]
    fn what_holds_in_a_variant_only_is_set_by_it() {
        // Not with CUBIC, unless the scenario as written has it; and a queue at one point only.
        let besides = |scenario: &Scenario| {
            let mut settings = vec!["relays[1].cellular.delay=7 ms"];
            if scenario.connection.congestion.0.to_string() != "cubic" {
                settings.push("connection.sack=false");
            }
            if scenario.connection.mtu.0 == 1400 {
                settings.push("relays[0].cellular.queue=9000 B");
            }
            settings.iter().map(|text| text.parse().unwrap()).collect::<Vec<Override>>()
        };
        let mut plan = Plan::under(|overrides| load("x.toml", TEXT, overrides), &[], None, besides).unwrap();
        plan.cases.iter_mut().for_each(|case| case.scenario.connection.timestamps = case.variant == "b");
        let cases: Vec<Scenario> = plan.cases.iter().map(|case| case.scenario.clone()).collect();
        plan.state_variants();
        let set = |index: usize| plan.scenario.variants[index].set.keys().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(set(0), ["connection.congestion", "connection.timestamps"]);
        assert_eq!(set(1), ["connection.congestion", "connection.sack"]);
        assert!(plan.cases.iter().zip(cases).all(|(case, before)| case.scenario == before));
        // At the point without a queue of its own, nothing is missing any more.
        assert!(plan.cases[2..].iter().all(|case| unstated(&plan.scenario, case).is_empty()));
    }
}
