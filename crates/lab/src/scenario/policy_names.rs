//! The names of policies in the schema of scenario files: the description of a field lists what is registered.
//!
//! They are no enumeration: policies may have parameters, and the loader's messages say which name was meant.

use network::cell::RESOURCE_SCHEDULERS;
use schemars::Schema;
use serde_json::json;
use transport::congestion::CONTROLLERS;
use transport::path_manager::PATH_MANAGERS;
use transport::scheduler::SCHEDULERS;

pub(super) fn controllers(schema: &mut Schema) {
    list(schema, CONTROLLERS.iter().map(|known| (known.name, known.summary)));
}

pub(super) fn schedulers(schema: &mut Schema) {
    list(schema, SCHEDULERS.iter().map(|known| (known.name, known.summary)));
}

pub(super) fn path_managers(schema: &mut Schema) {
    list(schema, PATH_MANAGERS.iter().map(|known| (known.name, known.summary)));
}

pub(super) fn resource_schedulers(schema: &mut Schema) {
    list(schema, RESOURCE_SCHEDULERS.iter().map(|known| (known.name, known.summary)));
}

/// Appends names with what they mean to the description, and offers them as examples.
pub(super) fn list<'a>(schema: &mut Schema, known: impl Iterator<Item = (&'a str, &'a str)> + Clone) {
    let description = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
    let lines = known.clone().map(|(name, summary)| format!("\n- `{name}`: {summary}"));
    let description = format!("{description}\n{}", lines.collect::<String>());
    schema.insert("description".into(), json!(description));
    schema.insert("examples".into(), json!(known.map(|(name, _)| name).collect::<Vec<_>>()));
}

#[cfg(test)]
mod tests {
    use super::super::schema::WHOLE;
    use super::*;

    #[test]
    fn the_schema_lists_every_policy() {
        let lists = |field: &str, name: &str, summary: &str| {
            let property = WHOLE.pointer(field).unwrap_or_else(|| panic!("{field} is not in the schema"));
            let described = property["description"].as_str().unwrap();
            assert!(described.contains(&format!("\n- `{name}`: {summary}")), "{field}: {described}");
            assert!(property["examples"].as_array().unwrap().contains(&json!(name)), "{field}: {name}");
        };
        for known in CONTROLLERS {
            lists("/$defs/Connection/properties/congestion", known.name, known.summary);
            lists("/$defs/LocalTraffic/properties/congestion", known.name, known.summary);
        }
        for known in SCHEDULERS {
            lists("/$defs/Connection/properties/scheduler", known.name, known.summary);
        }
        for known in PATH_MANAGERS {
            lists("/$defs/Connection/properties/path_manager", known.name, known.summary);
        }
        for known in RESOURCE_SCHEDULERS {
            lists("/$defs/Cell/properties/scheduler", known.name, known.summary);
        }
    }
}
