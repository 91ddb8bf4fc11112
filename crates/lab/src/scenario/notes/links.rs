//! What a link says that does nothing, or something else.

use crate::scenario::{Link, RateModel, Reorder, TextOr};

/// Above the mean that was asked for, what is no longer noise.
const MEAN_NOTED: f64 = 1.02;

/// All of a link that stands at `field`.
pub(super) fn notes(field: &str, link: &Link) -> Vec<String> {
    let mut notes = Vec::new();
    if let TextOr::Table(model) = &link.rate {
        notes.extend(cut(field, model));
        if model.outage_duration.is_some() && model.outage_interval.is_none() {
            notes.push(format!(
                "{field}.rate.outage_duration: does nothing without outage_interval: there are no outages"
            ));
        }
    }
    notes.extend(in_order(&format!("{field}.reorder"), link.reorder));
    notes.extend(in_order(&format!("{field}.uplink.reorder"), link.uplink.reorder));
    notes
}

/// Packets are held back, but none of them or for no time.
fn in_order(field: &str, reorder: Option<Reorder>) -> Option<String> {
    let Reorder { probability, delay } = reorder?;
    let why = match (probability.value() == 0.0, delay.is_zero()) {
        (true, _) => "a probability of 0 %",
        (false, true) => "a delay of 0 s",
        (false, false) => return None,
    };
    Some(format!("{field}: does nothing with {why}"))
}

/// What a generated rate comes to, if that is something else, for it is cut.
fn cut(field: &str, model: &RateModel) -> Option<String> {
    let generator = model.generator()?;
    let (mean, deviation) = generator.after_the_cut();
    (mean >= MEAN_NOTED).then(|| {
        format!(
            "{field}.rate.variation: of {:.0} % comes a mean of {:.0} % of `mean` and a variation of {:.0} % of it, for the rate is cut at \
             5 % and 300 % of `mean`",
            generator.variation * 100.0,
            mean * 100.0,
            deviation * 100.0
        )
    })
}
