//! Marks of variants: a combination of colour and shape each, which can also be distinguished without colours.

use std::fmt::Write;

use super::super::COLOURS;
use super::super::html::escape;

/// Number of shapes. It is coprime to the number of colours: 56 variants look different.
const SHAPES: usize = 7;
/// Half of a mark's width.
const SIZE: f64 = 5.0;

/// CSS classes of a variant: its colour, and the dash pattern of its line.
pub(super) fn class(variant: usize) -> String {
    format!("p{} d{}", variant % COLOURS, variant % SHAPES)
}

/// The mark of `variant` at a position.
pub(super) fn draw(variant: usize, x: f64, y: f64, title: &str) -> String {
    // Corners on a circle: their number, the angle of the first, and the radius; 0 corners mean the circle itself.
    let (corners, turn, size) = [
        (0, 0.0, 1.0),
        (4, 45.0, 1.3),
        (3, -90.0, 1.4),
        (4, 0.0, 1.4),
        (3, 90.0, 1.4),
        (5, -90.0, 1.25),
        (6, 0.0, 1.2),
    ][variant % SHAPES];
    let class = class(variant);
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
    if corners == 0 {
        return format!("<circle class=\"mark {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{SIZE}\">{title}</circle>");
    }
    let mut path = String::new();
    for corner in 0..corners {
        let angle = f64::from(corner) * std::f64::consts::TAU / f64::from(corners) + f64::to_radians(turn);
        let command = if corner == 0 { 'M' } else { 'L' };
        let _ = write!(
            path,
            "{command}{:.1} {:.1}",
            x + size * SIZE * libm::cos(angle),
            y + size * SIZE * libm::sin(angle)
        );
    }
    format!("<path class=\"mark {class}\" d=\"{path}Z\">{title}</path>")
}

/// The mark for use beside a name.
pub(super) fn swatch(variant: usize) -> String {
    format!("<svg class=\"swatch\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">{}</svg>", draw(variant, 8.0, 8.0, ""))
}

/// All variants with their marks.
pub(super) fn legend(variants: &[&str]) -> String {
    let item = |(index, name): (usize, &&str)| format!("<li>{}{}</li>", swatch(index), escape(name));
    format!("<ul class=\"legend\">{}</ul>", variants.iter().enumerate().map(item).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_six_variants_look_different() {
        let marks: std::collections::BTreeSet<String> = (0..56).map(|variant| draw(variant, 0.0, 0.0, "")).collect();
        assert_eq!(marks.len(), 56);
        assert!(
            draw(1, 0.0, 0.0, "").contains("d=\"M4.6 4.6L-4.6 4.6L-4.6 -4.6L4.6 -4.6Z\""),
            "{}",
            draw(1, 0.0, 0.0, "")
        );
    }
}
