//! Settings of links without effect, or with an unexpected one.

use units::Duration;

use crate::scenario::{Link, RateModel, Reorder, TextOr};

/// Threshold for the mean over the requested mean; anything less is noise.
const MEAN_NOTED: f64 = 1.02;

/// Notes on the link at `field` in a run that lasts at least `lasts`.
pub(super) fn notes(field: &str, link: &Link, lasts: Duration) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, rate) in link.rates() {
        let TextOr::Table(model) = rate else { continue };
        let field = format!("{field}.{name}");
        notes.extend(cut(&field, model));
        notes.extend(repeated(&field, model, lasts));
        if model.outage_duration.is_some() && model.outage_interval.is_none() {
            notes.push(format!("{field}.outage_duration: does nothing without outage_interval: there are no outages"));
        }
    }
    notes.extend(in_order(&format!("{field}.reorder"), link.reorder));
    notes.extend(in_order(&format!("{field}.uplink.reorder"), link.uplink.reorder));
    notes
}

/// Notes a setting that holds back no packets, or holds them for no time.
fn in_order(field: &str, reorder: Option<Reorder>) -> Option<String> {
    let Reorder { probability, delay } = reorder?;
    let why = match (probability.value() == 0.0, delay.is_zero()) {
        (true, _) => "a probability of 0 %",
        (false, true) => "a delay of 0 s",
        (false, false) => return None,
    };
    Some(format!("{field}: does nothing with {why}"))
}

/// Notes a generated rate at `field` that repeats within the run, which then learns nothing new.
fn repeated(field: &str, model: &RateModel, lasts: Duration) -> Option<String> {
    let generator = model.generator()?;
    let varies = generator.variation > 0.0 || generator.outage_interval.is_some();
    let period = generator.duration;
    (varies && period < lasts)
        .then(|| format!("{field}.period: the rate repeats every {period}, and the run lasts {lasts}"))
}

/// Notes a generated rate at `field` whose mean differs from the setting because the rate is cut off.
fn cut(field: &str, model: &RateModel) -> Option<String> {
    let generator = model.generator()?;
    let (mean, deviation) = generator.after_the_cut();
    (mean >= MEAN_NOTED).then(|| {
        format!(
            "{field}.variation: {:.0} % gives a mean of {:.0} % of `mean` and a variation of {:.0} % of it, because \
             the rate is limited to 5 % to 300 % of `mean`",
            generator.variation * 100.0,
            mean * 100.0,
            deviation * 100.0
        )
    })
}
