//! `anabranch policies`: the policies that settings can name.

use cooperation::relay_selection::{SELECTORS, SHORT_NAMES};
use network::cell::{CellConfig, RESOURCE_SCHEDULERS};
use serde_json::{Value, json};
use transport::ConnectionConfig;
use transport::congestion::{CONTROLLERS, Parameter, Values};
use transport::path_manager::PATH_MANAGERS;
use transport::scheduler::SCHEDULERS;

use crate::arguments;
use crate::console;
use crate::failure::Failure;

/// All policies of a kind.
struct Kind {
    /// Its name as a field of JSON.
    key: &'static str,
    /// What they are, and where they are named.
    heading: &'static str,
    policies: Vec<Policy>,
    /// The one that is used if none is named.
    default: Option<String>,
}

struct Policy {
    name: &'static str,
    short: Option<&'static str>,
    summary: &'static str,
    parameters: &'static [Parameter],
}

impl Policy {
    const fn plain(name: &'static str, summary: &'static str) -> Self {
        Self { name, short: None, summary, parameters: &[] }
    }

    const fn with(name: &'static str, summary: &'static str, parameters: &'static [Parameter]) -> Self {
        Self { name, short: None, summary, parameters }
    }
}

/// Lists the policies.
pub fn policies(arguments: &arguments::Policies) -> Result<(), Failure> {
    let kinds = kinds();
    Ok(console::print(&if arguments.json { json(&kinds) } else { text(&kinds) })?)
}

fn kinds() -> [Kind; 5] {
    let usual = ConnectionConfig::default();
    let controllers = CONTROLLERS.iter().map(|known| Policy::with(known.name, known.summary, known.build.parameters()));
    let schedulers = SCHEDULERS.iter().map(|known| Policy::with(known.name, known.summary, known.build.parameters()));
    let short = |full| SHORT_NAMES.iter().find(|(_, known)| *known == full).map(|(short, _)| *short);
    let selectors = SELECTORS.iter().map(|known| Policy {
        short: short(known.name),
        ..Policy::with(known.name, known.summary, known.build.parameters())
    });
    [
        Kind {
            key: "controllers",
            heading: "congestion controllers: connection.congestion in scenarios, --congestion",
            policies: controllers.collect(),
            default: Some(usual.congestion.name),
        },
        Kind {
            key: "schedulers",
            heading: "schedulers: connection.scheduler, --scheduler",
            policies: schedulers.collect(),
            default: Some(usual.scheduler),
        },
        Kind {
            key: "path_managers",
            heading: "path managers: connection.path_manager; --path-manager, which is one-per-address if not given",
            policies: PATH_MANAGERS.iter().map(|known| Policy::plain(known.name, known.summary)).collect(),
            default: Some(usual.path_manager),
        },
        Kind {
            key: "relay_selectors",
            heading: "relay selectors: cooperation.selection.method, select --method",
            policies: selectors.collect(),
            default: None,
        },
        Kind {
            key: "resource_schedulers",
            heading: "resource schedulers of cells: cell.scheduler",
            policies: RESOURCE_SCHEDULERS.iter().map(|known| Policy::plain(known.name, known.summary)).collect(),
            default: Some(CellConfig::default().scheduler),
        },
    ]
}

fn text(kinds: &[Kind]) -> String {
    let kinds: String = kinds.iter().map(|kind| kind.text() + "\n").collect();
    kinds
        + "Parameters follow a name in this order: aimd(0.7,0.625), random(10). Those left out have the values above.\n"
}

impl Kind {
    fn text(&self) -> String {
        let width = self.policies.iter().map(|policy| policy.name.len()).max().unwrap_or(0);
        let mut text = format!("{}\n", self.heading);
        for policy in &self.policies {
            let short = policy.short.map(|short| format!("; in short {short}")).unwrap_or_default();
            let is_default = self.default.as_deref() == Some(policy.name);
            let default = if is_default { "; the default" } else { "" };
            text += &format!("  {:<width$}  {}{short}{default}\n", policy.name, policy.summary);
            for Parameter { name, default, values, meaning } in policy.parameters {
                text += &format!("  {:<width$}    {name} = {default}  {meaning} ({values})\n", "");
            }
        }
        text
    }
}

fn json(kinds: &[Kind]) -> String {
    let parameter = |known: &Parameter| {
        json!({
            "name": known.name,
            "default": known.default,
            "values": values(known.values),
            "meaning": known.meaning,
        })
    };
    let policy = |known: &Policy, default: Option<&str>| {
        let parameters: Vec<Value> = known.parameters.iter().map(parameter).collect();
        let mut object = json!({ "name": known.name, "summary": known.summary, "parameters": parameters });
        object["default"] = json!(default == Some(known.name));
        object["short"] = json!(known.short);
        object
    };
    let list = |kind: &Kind| -> Vec<Value> {
        kind.policies.iter().map(|known| policy(known, kind.default.as_deref())).collect()
    };
    let object: serde_json::Map<String, Value> =
        kinds.iter().map(|kind| (kind.key.into(), json!(list(kind)))).collect();
    format!("{}\n", Value::Object(object))
}

/// Returns the limits of a parameter's values, whether these are among them, and whether only whole numbers are.
fn values(values: Values) -> Value {
    let (lower, upper) = values.limits();
    json!({
        "lower": lower,
        "lower_included": values.contains(lower),
        "upper": upper,
        "upper_included": values.contains(upper),
        "whole": matches!(values, Values::Whole(..)),
    })
}
