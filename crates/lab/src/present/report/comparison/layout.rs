//! Layout of variants and grid points: along an axis, and in panels.

use crate::present::field_name::field_name;
use crate::run::sweep::{Plan, numbers};

/// Path and value of every field of the grid.
type Point = [(String, String)];

/// The plan as presented to the reader.
pub(super) struct Layout<'a> {
    /// The variants, in the order of the scenario.
    pub variants: Vec<&'a str>,
    /// Index of the variant that the others are compared with.
    pub baseline: usize,
    /// The field on the horizontal axis, which has the most values; `None` without a grid.
    pub axis: Option<String>,
    /// One panel for every combination of the other fields' values.
    pub panels: Vec<Panel<'a>>,
}

/// One combination of the values of all fields except that of the axis.
pub(super) struct Panel<'a> {
    /// The common values of its points.
    pub name: String,
    /// Its points along the axis; without a grid, a single one without a name.
    pub columns: Vec<Column<'a>>,
}

/// One point of the grid.
pub(super) struct Column<'a> {
    /// Value of the axis' field.
    pub value: &'a str,
    /// Index of the case of each variant.
    pub cases: Vec<usize>,
}

impl<'a> Layout<'a> {
    /// Creates the layout of `plan`.
    pub fn new(plan: &'a Plan) -> Self {
        let mut variants: Vec<&str> = Vec::new();
        let mut points: Vec<&Point> = Vec::new();
        for case in &plan.cases {
            if !variants.contains(&case.variant.as_str()) {
                variants.push(&case.variant);
            }
            if points.last() != Some(&case.point.as_slice()) {
                points.push(&case.point);
            }
        }
        let axis = axis(&points);
        let numbers = numbers(plan);
        let mut panels: Vec<Panel<'a>> = Vec::new();
        for point in points {
            let cases = variants.iter().filter_map(|variant| numbers.get(&(*variant, point)).copied()).collect();
            let value = axis.map_or("", |axis| point[axis].1.as_str());
            let name = named(
                point.iter().enumerate().filter(|(index, _)| Some(*index) != axis).map(|(_, field)| field),
                point,
            );
            match panels.iter_mut().find(|panel| panel.name == name) {
                Some(panel) => panel.columns.push(Column { value, cases }),
                None => panels.push(Panel { name, columns: vec![Column { value, cases }] }),
            }
        }
        let baseline = variants.iter().position(|variant| *variant == plan.baseline).unwrap_or(0);
        let first = plan.cases.first().map_or(&[][..], |case| case.point.as_slice());
        Self { variants, baseline, axis: axis.map(|axis| in_words(&first[axis].0, first)), panels }
    }

    /// Number of grid points.
    pub fn points(&self) -> usize {
        self.panels.iter().map(|panel| panel.columns.len()).sum()
    }

    /// Every point with its name, in the order of the panels.
    pub fn columns(&self) -> impl Iterator<Item = (String, &Column<'a>)> {
        self.panels
            .iter()
            .flat_map(move |panel| panel.columns.iter().map(move |column| (self.point_name(panel, column), column)))
    }

    /// The values that distinguish a point from the others; empty without a grid.
    fn point_name(&self, panel: &Panel<'a>, column: &Column<'a>) -> String {
        let Some(axis) = &self.axis else { return String::new() };
        let value = format!("{axis} {}", column.value);
        if panel.name.is_empty() { value } else { format!("{}, {value}", panel.name) }
    }
}

/// The field with the most values; the first of several.
fn axis(points: &[&Point]) -> Option<usize> {
    let paths = points.first().map_or(0, |point| point.len());
    let values = |path: usize| {
        let mut values: Vec<&str> = points.iter().map(|point| point[path].1.as_str()).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    (0..paths).rev().max_by_key(|path| values(*path))
}

fn named<'p>(fields: impl Iterator<Item = &'p (String, String)>, point: &Point) -> String {
    fields.map(|(path, value)| format!("{} {value}", in_words(path, point))).collect::<Vec<_>>().join(", ")
}

/// A readable name of a point's field.
fn in_words(path: &str, point: &Point) -> String {
    field_name(path, point).replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    fn plan(sweep: &str) -> Plan {
        let text = format!(
            "name = \"x\"\nduration = \"1 s\"\nworkload = {{ kind = \"bulk\" }}\n[[relays]]\n\
             cellular = {{ rate = \"3 Mbit/s\", delay = \"5 ms\" }}\n[[variants]]\nname = \"a\"\n[[variants]]\nname = \"b\"\n\
             baseline = true\n{sweep}"
        );
        Plan::new(|overrides| load("x.toml", &text, overrides), &[], None).unwrap()
    }

    #[test]
    fn the_longest_path_becomes_the_axis_and_the_others_panels() {
        let plan = plan(
            "[sweep.grid]\n\"connection.mtu\" = [\"1400 B\", \"1500 B\"]\nduration = [\"1 s\", \"2 s\", \"3 s\"]\n",
        );
        let layout = Layout::new(&plan);
        assert_eq!(
            (layout.variants.as_slice(), layout.baseline, layout.axis.as_deref()),
            (["a", "b"].as_slice(), 1, Some("duration"))
        );
        let names: Vec<&str> = layout.panels.iter().map(|panel| panel.name.as_str()).collect();
        assert_eq!((names, layout.points()), (vec!["mtu 1400 B", "mtu 1500 B"], 6));
        let column = &layout.panels[1].columns[2];
        let case = &plan.cases[column.cases[0]];
        assert_eq!((column.value, case.variant.as_str(), case.point[0].1.as_str()), ("3 s", "a", "1500 B"));
        assert_eq!(layout.columns().last().unwrap().0, "mtu 1500 B, duration 3 s");
    }

    #[test]
    fn without_a_grid_there_is_one_point_without_a_name() {
        let plan = plan("");
        let layout = Layout::new(&plan);
        assert_eq!(
            (layout.axis.as_deref(), layout.points(), layout.panels[0].columns[0].cases.as_slice()),
            (None, 1, [0, 1].as_slice())
        );
        assert_eq!(layout.columns().next().unwrap().0, "");
    }
}
