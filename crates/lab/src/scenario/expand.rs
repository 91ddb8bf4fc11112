//! `count = 10` in a relay's section: ten relays of the same kind.

use toml::{Table, Value};

use super::check::Complaint;

/// Maximum number of relays for one section.
const COUNT_MAX: i64 = 10_000;

/// The section of the file from which each relay comes.
#[derive(Default)]
pub(super) struct Origins(Vec<usize>);

/// Repeats every relay that has a `count`, and removes the field; complains about invalid counts.
pub(super) fn expand_relays(document: &mut Table) -> (Origins, Vec<Complaint>) {
    let mut origins = Origins::default();
    let mut found = Vec::new();
    let Some(relays) = document.get_mut("relays").and_then(Value::as_array_mut) else { return (origins, found) };
    let mut expanded = Vec::new();
    for (index, mut relay) in core::mem::take(relays).into_iter().enumerate() {
        let count = take_count(&mut relay).unwrap_or_else(|given| {
            found.push(refuse(index, &given));
            1
        });
        for number in 1..=count {
            let mut copy = relay.clone();
            number_name(&mut copy, number, count);
            expanded.push(copy);
            origins.0.push(index);
        }
    }
    *relays = expanded;
    (origins, found)
}

fn take_count(relay: &mut Value) -> Result<i64, Value> {
    let Some(count) = relay.as_table_mut().and_then(|table| table.remove("count")) else { return Ok(1) };
    count.as_integer().filter(|count| (1..=COUNT_MAX).contains(count)).ok_or(count)
}

fn refuse(index: usize, given: &Value) -> Complaint {
    let remedy = format!("write a whole number from 1 to {COUNT_MAX}, without quotes");
    Complaint::new(format!("relays[{index}].count"), format!("{given} is not a valid number of relays"), remedy)
}

/// Appends a number to a name that several relays would share.
fn number_name(relay: &mut Value, number: i64, count: i64) {
    if let Some(Value::String(name)) = relay.get_mut("name").filter(|_| count > 1) {
        *name = format!("{name}-{number}");
    }
}

impl Origins {
    /// The field of the file from which `field` of the expanded document comes.
    pub fn in_file(&self, field: &str) -> String {
        let place = || {
            let (index, rest) = field.strip_prefix("relays[")?.split_once(']')?;
            Some(format!("relays[{}]{rest}", self.0.get(index.parse::<usize>().ok()?)?))
        };
        place().unwrap_or_else(|| field.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_repeats_the_relay_and_numbers_its_name() {
        let mut document: Table =
            "[[relays]]\nname = \"near\"\ncount = 2\n[[relays]]\nname = \"far\"\n[[relays]]\ncount = 2"
                .parse()
                .unwrap();
        let (origins, _) = expand_relays(&mut document);
        let names: Vec<_> = document["relays"].as_array().unwrap().iter().map(|relay| relay.get("name")).collect();
        let name = |text: &str| Value::String(text.into());
        assert_eq!(names, [Some(&name("near-1")), Some(&name("near-2")), Some(&name("far")), None, None]);
        assert_eq!(origins.in_file("relays[4].local[0].rate"), "relays[2].local[0].rate");
        assert_eq!(origins.in_file("relays[9]"), "relays[9]");
        assert_eq!(origins.in_file("connection.mtu"), "connection.mtu");
    }

    #[test]
    fn an_absurd_count_is_refused() {
        for count in ["0", "1000000", "\"ten\""] {
            let mut document: Table = format!("[[relays]]\n[[relays]]\ncount = {count}").parse().unwrap();
            let (_, complaints) = expand_relays(&mut document);
            assert_eq!(complaints.iter().map(Complaint::field).collect::<Vec<_>>(), ["relays[1].count"]);
        }
    }
}
