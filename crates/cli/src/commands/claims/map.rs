//! `anabranch claims --map`: claims by conditions.

use std::collections::btree_map::Entry;
use std::iter;
use std::ops::RangeInclusive;

use lab::present::claims::conditions::{CONDITIONS, Condition};
use lab::present::claims::map::{Looked, Map, to_html, to_text};
use lab::present::claims::{Claim, Fingerprint, Mode, Needs, Outcome, Runs, Verdict, evaluate, needs, users};
use lab::run::sweep::Record;

use super::{complain_of_gaps, next, runs};
use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// Name in `--ids` of the table of effects that people notice.
pub(super) const USERS: &str = "users";

/// Runs what `claims` need under the chosen conditions, and prints the map; writes its page and its JSON beside the
/// runs. Includes the effects of the modules that people notice, unless only claims were chosen.
pub(super) fn map(claims: &[&'static Claim], arguments: &arguments::Claims, mode: Mode) -> Result<(), Failure> {
    let conditions = choose(&arguments.conditions)?;
    let seeds = Seeds::new(arguments);
    let (mut looked, mut of_users) = (Vec::new(), Vec::new());
    for (index, condition) in conditions.iter().enumerate() {
        let what = format!("{} ({} of {})", condition.name, index + 1, conditions.len());
        let run = |needs: Needs, seeds: &RangeInclusive<u64>| {
            let plan = runs::plan(needs, condition, seeds.clone(), mode)?;
            runs::run(&plan, arguments, &format!("{what}: {}", needs.scenario))
        };
        looked.push(look(claims, &seeds, run, mode)?);
        if arguments.ids.is_empty() || arguments.ids.iter().any(|id| id == USERS) {
            of_users.push(all(users::needs(), |needs| run(needs, &seeds.all()))?);
        }
    }
    let confirmed_on = seeds.confirm.as_ref().map(bounds);
    let mut map = Map::new(claims, &conditions, &looked, bounds(&seeds.look), confirmed_on);
    if !of_users.is_empty() {
        map.users = users::judge(&conditions, &of_users, &seeds.look, seeds.confirm.as_ref());
    }
    let page = arguments.out.join("map.html");
    atomic_file::write(&page, to_html(&map).as_bytes())?;
    atomic_file::write(&arguments.out.join("map.json"), map.to_json().as_bytes())?;
    let text = match arguments.json {
        true => map.to_json() + "\n",
        false => format!("{}\n{}", to_text(&map), next::of_map(arguments, &page)),
    };
    console::print(&text)?;
    complain_of_gaps(looked.iter().flatten().flat_map(|looked| iter::once(&looked.at).chain(&looked.confirmed)))
}

/// Seeds of the first look at conditions, and seeds for confirmation.
struct Seeds {
    look: RangeInclusive<u64>,
    confirm: Option<RangeInclusive<u64>>,
}

impl Seeds {
    fn new(arguments: &arguments::Claims) -> Self {
        let (look, confirm) = (arguments.seeds(), arguments.confirm);
        Self { look: 1..=look, confirm: (confirm > 0).then(|| look + 1..=look + confirm) }
    }

    fn all(&self) -> RangeInclusive<u64> {
        1..=*self.confirm.as_ref().unwrap_or(&self.look).end()
    }
}

const fn bounds(seeds: &RangeInclusive<u64>) -> [u64; 2] {
    [*seeds.start(), *seeds.end()]
}

fn choose(names: &[String]) -> Result<Vec<&'static Condition>, Failure> {
    let unknown = names.iter().find(|name| CONDITIONS.iter().all(|condition| condition.name != name.trim()));
    if let Some(name) = unknown {
        let known: Vec<_> = CONDITIONS.iter().map(|condition| condition.name).collect();
        return Err(Failure::Input(format!(
            "--conditions {name}: there is no such condition\n  help: known: {}",
            known.join(", ")
        )));
    }
    // The other conditions are compared with the scenarios as they ship.
    let wanted = |condition: &&Condition| {
        names.is_empty() || condition.settings.is_empty() || names.iter().any(|name| name.trim() == condition.name)
    };
    Ok(CONDITIONS.iter().filter(wanted).collect())
}

/// Returns the runs of all `needs`.
fn all(
    needs: impl IntoIterator<Item = Needs>,
    run: impl Fn(Needs) -> Result<Vec<Record>, Failure>,
) -> Result<Runs, Failure> {
    let mut runs = Runs::new();
    for needs in needs {
        if let Entry::Vacant(missing) = runs.entry(needs) {
            missing.insert(run(needs)?);
        }
    }
    Ok(runs)
}

/// Judges the claims under one condition. Only the runs of one condition at a time are in memory; of the others only the
/// fingerprints.
fn look(
    claims: &[&'static Claim],
    seeds: &Seeds,
    run: impl Fn(Needs, &RangeInclusive<u64>) -> Result<Vec<Record>, Failure>,
    mode: Mode,
) -> Result<Vec<Looked>, Failure> {
    let of = |claims: &mut dyn Iterator<Item = &&'static Claim>, seeds: &RangeInclusive<u64>| {
        all(claims.flat_map(|claim| needs(claim)), |needs| run(needs, seeds))
    };
    let runs = of(&mut claims.iter(), &seeds.look)?;
    let at: Vec<Outcome> = claims.iter().map(|claim| evaluate(claim, &runs, mode)).collect();
    // A claim that does not hold at the first look needs no confirmation.
    let holds = |index: usize| at[index].verdict == Verdict::Reproduced;
    let holding = claims.iter().enumerate().filter(|(index, _)| holds(*index)).map(|(_, claim)| claim);
    let confirming = seeds.confirm.as_ref().map(|seeds| of(&mut holding.into_iter(), seeds)).transpose()?;
    let look = |(index, claim): (usize, &&'static Claim)| Looked {
        at: at[index].clone(),
        confirmed: confirming.as_ref().filter(|_| holds(index)).map(|runs| evaluate(claim, runs, mode)),
        fingerprint: Fingerprint::of(claim, &runs),
    };
    Ok(claims.iter().enumerate().map(look).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lab::run::sweep::Manifest;

    use super::*;

    /// What the runs of each of the claims' needs depend on, as journals name it.
    fn contents(claims: &[&'static Claim], condition: &Condition) -> Result<BTreeMap<Needs, String>, Failure> {
        let all = claims.iter().flat_map(|claim| needs(claim));
        let content = |needs| Ok((needs, Manifest::new(&runs::plan(needs, condition, 1..=1, Mode::Build)?).content));
        all.map(content).collect()
    }

    /// A condition may not apply to a scenario, but it must not break one. Each of these scenarios represents many
    /// others.
    #[test]
    fn every_condition_suits_every_kind_of_claim() {
        suits(&["C01", "C20", "C34", "C42", "C50", "C60"]);
    }

    #[test]
    #[ignore = "a minute: every condition in every variant of every scenario"]
    fn every_condition_suits_every_claim() {
        let all: Vec<_> = lab::present::claims::claims().map(|claim| claim.id).collect();
        suits(&all);
    }

    fn suits(ids: &[&str]) {
        let claims: Vec<_> = lab::present::claims::claims().filter(|claim| ids.contains(&claim.id)).collect();
        let shipped = contents(&claims, &CONDITIONS[0]).unwrap();
        for condition in &CONDITIONS[1..] {
            let changed = contents(&claims, condition).unwrap_or_else(|error| panic!("{error:?}"));
            let changes = changed.iter().any(|(needs, content)| shipped[needs] != *content);
            assert!(changes, "{} changes nothing", condition.name);
        }
    }
}
