//! Short names of grid fields: the shortest end of a path that distinguishes it from the others.

/// Returns the shortest end of `path` with which no other path of `grid` ends; only the last name, if that is enough.
pub fn field_name<'p>(path: &'p str, grid: &[(String, String)]) -> &'p str {
    let ends_in =
        |other: &str, name: &str| other.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let is_shared = |name: &str| grid.iter().any(|(other, _)| other != path && ends_in(other, name));
    let starts = path.rmatch_indices('.').map(|(dot, _)| dot + 1);
    starts.map(|start| &path[start..]).find(|name| !is_shared(name)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_named_as_tells_it_from_the_others() {
        let paths = ["relays[0].cellular.loss", "relays[1].cellular.loss", "relays[0].wifi.delay", "loss", "duration"];
        let grid: Vec<_> = paths.iter().map(|path| ((*path).to_owned(), String::new())).collect();
        let names = paths.map(|path| field_name(path, &grid));
        assert_eq!(names, ["relays[0].cellular.loss", "relays[1].cellular.loss", "delay", "loss", "duration"]);
        assert_eq!(field_name(paths[0], &grid[2..3]), "loss");
        assert_eq!(field_name("relays[*].wifi.loss", &grid[..1]), "wifi.loss");
    }
}
