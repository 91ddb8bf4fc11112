//! Figures of several rounds, as rows of a table.

/// Results of one way, one per round.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub values: Vec<f64>,
}

impl Row {
    /// Returns the median.
    pub fn median(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    /// Returns the value that nine of ten results do not exceed.
    pub fn most_of_ten(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[(sorted.len() - 1) * 9 / 10]
    }

    fn span(&self) -> (f64, f64) {
        self.values.iter().fold((f64::MAX, 0.0), |(least, most), value| (value.min(least), value.max(most)))
    }
}

/// Prints the rows of a case: `| case | way | median | least-most | ratios |`.
pub fn print(case: &str, unit: &str, rows: &[Row], against: &[(&str, f64)]) {
    for row in rows {
        let (least, most) = row.span();
        let ratio = |(name, reference): &(&str, f64)| format!("{:.2} of {name}", row.median() / reference);
        let ratios: Vec<String> = against.iter().map(ratio).collect();
        let median = row.median();
        println!("| {case} | {} | {median:.1} {unit} | {least:.1}-{most:.1} | {} |", row.name, ratios.join(", "));
    }
}
