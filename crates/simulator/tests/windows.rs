//! The scenario that plots the windows of controllers includes all controllers.

use transport::congestion::CONTROLLERS;

const WINDOWS: &str = include_str!("../../../scenarios/windows.toml");

#[test]
fn every_controller_has_a_window_plot() {
    let is_missing = |name: &&str| !WINDOWS.contains(&format!("set = {{ \"connection.congestion\" = \"{name}\" }}"));
    let missing: Vec<&str> = CONTROLLERS.iter().map(|controller| controller.name).filter(is_missing).collect();
    assert!(missing.is_empty(), "scenarios/windows.toml needs variants, written like the others, for: {missing:?}");
}
