//! QR codes.

use std::io::IsTerminal as _;

use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};

/// White on black, whatever the terminal's own colours: scanners want dark squares on a light background.
const BEGIN: &str = "\u{1b}[97;40m";
const END: &str = "\u{1b}[0m";

/// Draws `text` as a QR code for standard output, two rows of squares per line; empty if the text is too long.
pub fn draw(text: &str) -> String {
    let Ok(code) = QrCode::with_error_correction_level(text, EcLevel::L) else { return String::new() };
    // The drawn characters are light: blocks are light squares, and spaces are dark ones.
    let squares = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    let colours = if std::io::stdout().is_terminal() { [BEGIN, END] } else { [""; 2] };
    squares.lines().map(|line| format!("{}{line}{}\n", colours[0], colours[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the code with an independent scanner.
    fn scan(drawn: &str) -> String {
        let lines: Vec<Vec<char>> = drawn.lines().map(|line| line.chars().collect()).collect();
        let is_light = |x: usize, y: usize| match lines[y / 2][x] {
            '█' => true,
            '▀' => y % 2 == 0,
            '▄' => y % 2 == 1,
            _ => false,
        };
        // A camera needs more than one dot per square.
        const DOTS: usize = 4;
        let size = (lines[0].len() * DOTS, lines.len() * 2 * DOTS);
        let mut image = rqrr::PreparedImage::prepare_from_greyscale(size.0, size.1, |x, y| {
            if is_light(x / DOTS, y / DOTS) { 255 } else { 0 }
        });
        let grids = image.detect_grids();
        grids[0].decode().unwrap().1
    }

    #[test]
    fn a_scanner_reads_what_was_drawn() {
        for text in [
            "anabranch:pair?address=192.168.43.1&port=8684&code=042117",
            "anabranch:pair?address=192.168.43.1&address=10.42.0.1&address=2001:db8:1111:2222:3333:4444:5555:6666&address=fd00::1&\
             port=8684&code=000000",
        ] {
            let drawn = draw(text);
            assert_eq!(scan(&drawn), text);
            assert!(drawn.lines().all(|line| line.chars().count() <= 80), "it fits a terminal");
        }
        assert_eq!(draw(&"x".repeat(10_000)), "");
    }
}
