//! Commands to paste into a shell.

/// Quotes `word` for a POSIX shell to read as one word.
pub fn quote(word: &str) -> String {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&octet);
    if !word.is_empty() && word.bytes().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The scenario `file` with ` --variant` and ` --set` options, each as one word.
pub fn scenario<'a>(file: &str, variant: Option<&str>, overrides: impl IntoIterator<Item = &'a String>) -> String {
    // Makes a file name that looks like an option a path in this folder.
    let mut words = if file.starts_with('-') { quote(&format!("./{file}")) } else { quote(file) };
    if let Some(name) = variant {
        // A variant's name may look like an option.
        let equals = if name.starts_with('-') { "=" } else { " " };
        words += &format!(" --variant{equals}{}", quote(name));
    }
    for change in overrides {
        words += &format!(" --set {}", quote(change));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that `sh` reads.
    fn read_by_sh(words: &str) -> Vec<String> {
        let script = format!("for word in {words}; do printf '%s\\0' \"$word\"; done");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\0').map(String::from).collect()
    }

    #[test]
    fn a_shell_reads_what_was_meant() {
        for word in
            ["plain", "", "a b", "it's", "$HOME `x` \\ \"q\"", "*", "~", "a\nb", "#x", "!x", "{a,b}", "größe", "'"]
        {
            assert_eq!(read_by_sh(&quote(word)), [word], "{}", quote(word));
        }
        let sets = ["workload.size=1 MB".to_string(), "relays[*].cellular.loss=1 %".into()];
        let words = read_by_sh(&scenario("my file.toml", Some("a b"), &sets));
        assert_eq!(words, ["my file.toml", "--variant", "a b", "--set", &sets[0], "--set", &sets[1]]);
        assert_eq!(scenario("-x.toml", None, []), "./-x.toml");
    }
}
