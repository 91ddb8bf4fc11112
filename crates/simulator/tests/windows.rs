//! The scenario that plots the windows of controllers includes all controllers.

use transport::congestion::CONTROLLERS;

const WINDOWS: &str = include_str!("../../../scenarios/windows.toml");

#[test]
fn every_controller_has_a_window_plot() {
    for controller in CONTROLLERS {
        let variant = format!("set = {{ \"connection.congestion\" = \"{}\" }}", controller.name);
        assert!(WINDOWS.contains(&variant), "scenarios/windows.toml needs a variant for {}", controller.name);
    }
}
