//! Checks names: of the scenario, which is also the name of a folder, of variants and of relays.

use std::collections::BTreeMap;

use super::Complaint;
use crate::scenario::Scenario;

/// Longest name in octets: file systems allow at most 255.
const NAME_BYTES_MAX: usize = 100;

pub(super) fn check_names(scenario: &Scenario, found: &mut Vec<Complaint>) {
    let mut refuse = |field: &str, problem: Option<&str>, remedy: &str| {
        found.extend(problem.map(|problem| Complaint::new(field, problem, remedy)));
    };
    let remedy = "write a plain name, like \"my-scenario\"; a sweep writes to a folder of that name";
    refuse("name", of_a_label(&scenario.name).or_else(|| of_a_folder(&scenario.name)), remedy);
    for (index, relay) in scenario.relays.iter().enumerate() {
        let remedy = "write a plain name, like \"amber\", or remove it";
        refuse(&format!("relays[{index}].name"), of_a_label(&relay.name), remedy);
    }
    let mut earlier = BTreeMap::new();
    for (index, variant) in scenario.variants.iter().enumerate() {
        let field = format!("variants[{index}].name");
        refuse(&field, of_a_label(&variant.name), "write a plain name, like \"LIA\"");
        if let Some(same) = earlier.insert(variant.name.to_lowercase(), &variant.name) {
            let problem = format!("\"{}\" is used twice: an earlier variant is called \"{same}\"", variant.name);
            refuse(&field, Some(&problem), "choose another name");
        }
    }
}

/// Explains what is wrong with a name that people read in tables and write after options.
fn of_a_label(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() {
        return Some("is empty");
    }
    if name.trim() != name {
        return Some("begins or ends with a blank");
    }
    if name.chars().any(|character| character.is_control() || is_unseen(character)) {
        return Some("has characters that cannot be printed");
    }
    (name.len() > NAME_BYTES_MAX).then_some("is longer than 100 octets")
}

/// Returns whether a character is invisible. One that changes the direction of writing makes the rest of a line read
/// differently, and one without width makes two different names look the same. These are the characters of Unicode's
/// category Cf that draw nothing, and the separators of lines and paragraphs.
fn is_unseen(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
        | '\u{e0020}'..='\u{e007f}')
}

/// Explains what is wrong with the name of a folder inside another folder.
fn of_a_folder(name: &str) -> Option<&'static str> {
    let leads_out = name == "." || name == ".." || name.contains(['/', '\\']);
    leads_out.then_some("leads out of the output folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_folders_stay_where_they_are() {
        for name in [
            "",
            " ",
            "x ",
            "\0",
            "a\nb",
            "\u{7f}",
            "a\u{202e}b",
            "a\u{200b}",
            "\u{2066}a",
            "a\u{2028}b",
            "a\u{e0041}b",
            &"x".repeat(101),
        ] {
            assert!(of_a_label(name).is_some(), "{name:?}");
        }
        for name in [".", "..", "/", "/tmp", "a/b", "../../x", "a\\b", "a/"] {
            assert!(of_a_folder(name).is_some(), "{name:?}");
        }
        for name in ["thesis-4.5a", "...", "a b", ".x", "Größe", "losses weigh 3%"] {
            assert_eq!((of_a_label(name), of_a_folder(name)), (None, None), "{name:?}");
        }
        assert_eq!(of_a_label("losses weigh 3/4"), None);
    }
}
