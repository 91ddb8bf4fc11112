//! `count = 10` in a relay's section: ten relays of a kind.

use toml::{Table, Value};

use super::check::Complaint;

/// Most relays that one section may stand for.
const COUNT_MAX: i64 = 10_000;

/// Which section of the file each relay comes from.
pub(super) struct Origins(Vec<usize>);

/// Repeats every relay that has a `count`, and removes the field.
pub(super) fn expand_relays(document: &mut Table) -> Result<Origins, Complaint> {
    let Some(relays) = document.get_mut("relays").and_then(Value::as_array_mut) else { return Ok(Origins(Vec::new())) };
    let mut expanded = Vec::new();
    let mut origins = Vec::new();
    for (index, mut relay) in core::mem::take(relays).into_iter().enumerate() {
        let count = take_count(&mut relay).map_err(|given| refuse(index, &given))?;
        for number in 1..=count {
            let mut copy = relay.clone();
            number_name(&mut copy, number, count);
            expanded.push(copy);
            origins.push(index);
        }
    }
    *relays = expanded;
    Ok(Origins(origins))
}

fn take_count(relay: &mut Value) -> Result<i64, Value> {
    let Some(count) = relay.as_table_mut().and_then(|table| table.remove("count")) else { return Ok(1) };
    count.as_integer().filter(|count| (1..=COUNT_MAX).contains(count)).ok_or(count)
}

fn refuse(index: usize, given: &Value) -> Complaint {
    let remedy = format!("write a whole number from 1 to {COUNT_MAX}, without quotes");
    Complaint::new(format!("relays[{index}].count"), format!("{given} is no number of relays"), remedy)
}

/// A name that several relays would share gets a number.
fn number_name(relay: &mut Value, number: i64, count: i64) {
    if let Some(Value::String(name)) = relay.get_mut("name").filter(|_| count > 1) {
        *name = format!("{name}-{number}");
    }
}

impl Origins {
    /// The field of the file that `field` of the expanded document comes from.
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
        let origins = expand_relays(&mut document).ok().unwrap();
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
            let complaint = expand_relays(&mut document).err().unwrap();
            assert_eq!(complaint.field(), "relays[1].count");
        }
    }
}
