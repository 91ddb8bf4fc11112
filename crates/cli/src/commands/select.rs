//! `anabranch select`: chooses relays.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table, TableComponent};
use cooperation::relay_selection::{
    self, Choice, EXACT_RELAYS_MAX, Exact, Goal, Offer, Reasons, RelayId, RelaySet, SelectorError, SelectorSettings,
    SelectorSpec,
};
use serde_json::json;
use units::{Prng, Probability, Rate};

use crate::arguments::Select;
use crate::console;
use crate::failure::Failure;

const COLUMNS: [&str; 6] = ["set", "relays", "sum", "off the target", "changes", "in range"];

/// Chooses relays, and prints a table or JSON.
pub fn select(arguments: &Select) -> Result<(), Failure> {
    let question = Question::parse(arguments)?;
    let spec: SelectorSpec = arguments.method.parse().map_err(|error| input(format!("--method: {error}")))?;
    let mut selector = relay_selection::build(&spec, settings(arguments)?).map_err(|error| match error {
        SelectorError::UnknownSelector(_) | SelectorError::Parameters(_) => input(format!("--method: {error}")),
        SelectorError::Epsilon { .. } => input(format!("--epsilon: {error}")),
    })?;
    if selector.name() == "exact" && !Exact::is_exact_for(&question.offers) {
        let given = question.offers.len();
        return Err(Failure::Input(format!(
            "--method exact takes at most {EXACT_RELAYS_MAX} relays, not {given}: use --method ssrs"
        )));
    }
    let mut prng = Prng::new(arguments.seed);
    let choice = selector.choose(&question.offers, &question.goal, &question.in_use, &mut prng);
    let choice = choice.map_err(|error| Failure::Failed(error.to_string()))?;
    let text = if arguments.json {
        question.json(&choice)
    } else {
        question.table(&choice, selector.reasons(choice.feasible))
    };
    console::print(&text)?;
    match choice.feasible {
        true => Ok(()),
        false => Err(Failure::Failed(format!("found no set in the accepted range, {}", question.accepted()))),
    }
}

fn settings(arguments: &Select) -> Result<SelectorSettings, Failure> {
    let mode = arguments.mode.parse().map_err(|error| Failure::Input(format!("--mode: {error}")))?;
    let text = arguments.epsilon.trim();
    // A fraction of the target, like --theta; the selector itself refuses values out of range.
    let epsilon = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse().map(|percent: f64| percent / 100.0),
        None => text.parse(),
    };
    let epsilon =
        epsilon.map_err(|_| Failure::Input(format!("--epsilon {text:?} is not a number: write 0.1 or \"10 %\"")))?;
    Ok(SelectorSettings { epsilon, mode })
}

fn input(error: impl ToString) -> Failure {
    Failure::Input(error.to_string())
}

/// The input of a choice.
struct Question {
    offers: Vec<Offer>,
    goal: Goal,
    in_use: Vec<RelayId>,
}

impl Question {
    fn parse(arguments: &Select) -> Result<Self, Failure> {
        let rates = arguments.relays.split(',').map(|text| rate("--relays", text)).collect::<Result<Vec<_>, _>>()?;
        let offer = |(number, available)| {
            let relay =
                u16::try_from(number).map(RelayId).map_err(|_| input("--relays lists more than 65536 relays"))?;
            Ok(Offer { relay, available })
        };
        let offers = rates.into_iter().enumerate().map(offer).collect::<Result<Vec<_>, Failure>>()?;
        if offers.iter().try_fold(0_u64, |sum, offer| sum.checked_add(offer.available.as_bps())).is_none() {
            let most = u64::MAX;
            return Err(Failure::Input(format!(
                "--relays: together they offer more than {most} bit/s: write lower rates"
            )));
        }
        let theta = &arguments.theta;
        let tolerance: Probability = theta.parse().map_err(|_| {
            Failure::Input(format!("--theta: {theta:?} is not a fraction of the target: write 0.1 or \"10 %\""))
        })?;
        let target = rate("--target", &arguments.target)?;
        if target == Rate::ZERO {
            return Err(input("--target: the rate is zero: write a rate above zero, like 3M"));
        }
        let goal = Goal { target, tolerance: tolerance.value() };
        let in_use = match &arguments.active {
            Some(numbers) => {
                let in_use = numbers.split(',').map(|text| relay(text, offers.len())).collect::<Result<_, _>>()?;
                each_once(in_use)?
            }
            None => Vec::new(),
        };
        Ok(Self { offers, goal, in_use })
    }

    /// Returns the set in use with the current offers, if there is one.
    fn used(&self) -> Option<RelaySet> {
        let used = self.offers.iter().filter(|offer| self.in_use.contains(&offer.relay));
        let sum_bps = used.clone().fold(0_u64, |sum, offer| sum.saturating_add(offer.available.as_bps()));
        let relays: Vec<RelayId> = used.map(|offer| offer.relay).collect();
        (!relays.is_empty()).then_some(RelaySet { relays, sum_bps })
    }

    fn json(&self, choice: &Choice) -> String {
        let set = |set: &RelaySet| {
            let relays: Vec<u16> = set.relays.iter().map(|relay| relay.0).collect();
            json!({ "relays": relays, "sum_bps": set.sum_bps })
        };
        let mut object = json!({
            "active": set(&choice.active),
            "backup": choice.backup.as_ref().map(set),
            "feasible": choice.feasible,
        });
        if let Some(used) = self.used() {
            object["in_use"] = set(&used);
        }
        format!("{object}\n")
    }

    fn table(&self, choice: &Choice, reasons: Reasons) -> String {
        let mut table = Table::new();
        table.load_preset(NOTHING).set_header(COLUMNS);
        for component in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
            table.set_style(component, '─');
        }
        let used = self.used();
        let sets = [("in use", used.as_ref()), ("active", Some(&choice.active)), ("backup", choice.backup.as_ref())];
        for (name, set) in sets {
            if let Some(set) = set {
                table.add_row(self.row(name, set, used.as_ref().unwrap_or(&choice.active)));
            }
        }
        for index in 2..COLUMNS.len() {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        format!("{}\n\n{table}\n\n{}\n", self.heading(), reason(choice, reasons))
    }

    fn accepted(&self) -> String {
        let range = self.goal.range();
        let [low, high] = [range.low_bps, range.high_bps].map(Rate::from_bps);
        format!("{low} to {high}")
    }

    fn heading(&self) -> String {
        let sum_bps = self.offers.iter().fold(0_u64, |sum, offer| sum.saturating_add(offer.available.as_bps()));
        let sum = Rate::from_bps(sum_bps);
        let offered = match self.offers.len() {
            1 => format!("1 relay offers {sum}"),
            relays => format!("{relays} relays offer {sum} together"),
        };
        format!("target {}, accepted {}; {offered}", self.goal.target, self.accepted())
    }

    /// Formats one set; changes are paths to add or delete, starting from `from`.
    fn row(&self, name: &str, set: &RelaySet, from: &RelaySet) -> [String; COLUMNS.len()] {
        let range = self.goal.range();
        let sign = if set.sum_bps < range.target_bps { "-" } else { "" };
        let kept = set.relays.iter().filter(|relay| from.relays.contains(relay)).count();
        let relays: Vec<String> = set.relays.iter().map(|relay| relay.0.to_string()).collect();
        [
            name.into(),
            if relays.is_empty() { "none".into() } else { relays.join(",") },
            Rate::from_bps(set.sum_bps).to_string(),
            format!("{sign}{}", Rate::from_bps(range.distance(set.sum_bps))),
            (set.relays.len() + from.relays.len() - 2 * kept).to_string(),
            if range.contains(set.sum_bps) { "yes" } else { "no" }.into(),
        ]
    }
}

/// Returns the selector's reasons for these sets; several lines are indented.
fn reason(choice: &Choice, reasons: Reasons) -> String {
    let active = reasons.active.replace('\n', "\n        ");
    let backup = choice.backup.as_ref().map_or("there is no other set to change to", |_| reasons.backup);
    format!("active: {active}\nbackup: {backup}")
}

fn rate(option: &str, text: &str) -> Result<Rate, Failure> {
    crate::rate::rate(text).map_err(|why| Failure::Input(format!("{option}: {why}")))
}

/// Returns `relays` if none is repeated: a repetition is a mistake.
fn each_once(relays: Vec<RelayId>) -> Result<Vec<RelayId>, Failure> {
    let twice = relays.iter().enumerate().find(|(index, relay)| relays[..*index].contains(relay));
    match twice {
        Some((_, RelayId(relay))) => {
            Err(Failure::Input(format!("--active: relay {relay} is listed twice: write it once")))
        }
        None => Ok(relays),
    }
}

/// Parses the number of one of `count` relays.
fn relay(text: &str, count: usize) -> Result<RelayId, Failure> {
    let number: Option<u16> = text.trim().parse().ok();
    let known = number.filter(|number| usize::from(*number) < count);
    known.map(RelayId).ok_or_else(|| {
        let last = count - 1;
        Failure::Input(format!(
            "--active: there is no relay {:?}: write numbers from 0 to {last}, like 0,2",
            text.trim()
        ))
    })
}
