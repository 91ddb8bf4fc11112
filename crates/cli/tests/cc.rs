//! `anabranch cc` as a program: its refusals, and that they help. These tests load nothing.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

fn cc(arguments: &[&str]) -> assert_cmd::assert::Assert {
    Command::new(env!("CARGO_BIN_EXE_anabranch")).arg("cc").args(arguments).assert()
}

/// Names are looked up before anything is done, so nothing is half done.
#[test]
fn names_that_nobody_has_are_refused_with_those_there_are() {
    // No other test loads this one meanwhile: there is only one kernel.
    let mpveno = kernel_cc::Controller::named("mpveno").unwrap();
    let before = kernel_cc::is_loaded(&mpveno);
    for arguments in [&["load", "mpveno", "nosuch"][..], &["unload", "nosuch"], &["status", "nosuch"]] {
        cc(arguments).code(2).stderr(contains("no controller `nosuch`").and(contains("lia, olia, balia")));
    }
    assert_eq!(kernel_cc::is_loaded(&mpveno), before, "the other name was not acted upon");
}

#[test]
fn orders_without_their_words_are_refused() {
    cc(&[]).code(2);
    cc(&["load"]).code(2).stderr(contains("<NAME>"));
    cc(&["load", "lia", "--connections-max", "0"]).code(2).stderr(contains("1..=1048576"));
    cc(&["load", "lia", "--connections-max", "many"]).code(2).stderr(contains("many"));
    cc(&["status", "--json", "--watch"]).code(2).stderr(contains("--watch"));
}

#[test]
fn what_nobody_could_tell_is_refused() {
    cc(&["tell", "token", "1", "--rho", "5"]).code(2).stderr(contains("eight hexadecimal digits"));
    cc(&["tell", "1f2e3d4c", "1", "--way", "0.5"]).code(2).stderr(contains("whole milliseconds"));
    cc(&["tell", "1f2e3d4c", "1", "--for", "5"]).code(2).stderr(contains("--rho"));
    cc(&["adapt", "lia", "--off", "--period", "1"]).code(2).stderr(contains("--period"));
    cc(&["load", "lia", "veno", "lia"]).code(2).stderr(contains("`lia` is named twice"));
    cc(&["tell", "1f2e3d4c", "256", "--rho", "5"]).code(2).stderr(contains("256"));
    cc(&["tell", "1f2e3d4c", "1", "--beta", "0.7"]).code(2).stderr(contains("--rho"));
    cc(&["adapt", "nosuch"]).code(2).stderr(contains("no controller `nosuch`"));
    cc(&["adapt", "lia", "--eta-max", "0.5"]).code(2).stderr(contains("eta_max = 0.5"));
    cc(&["adapt", "lia", "--period", "nan"]).code(2).stderr(contains("the period"));
    cc(&["adapt", "lia", "--beyond", "all"]).code(2).stderr(contains("ignore, cap and spread"));
}

/// With root and without, on kernels with and without support: one line with the reason.
#[test]
fn what_cannot_be_done_is_said_in_one_line() {
    // Nothing is unloaded here: other tests use loaded controllers at this moment.
    for arguments in [&["set", "no-such-controller"][..], &["tell", "0", "1", "--rho", "5"]] {
        let output = cc(arguments).code(1).get_output().clone();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("error: ") && said.trim_end().lines().count() == 1, "{said}");
    }
}

#[test]
fn the_list_is_there_for_everybody() {
    cc(&["list"]).success().stdout(contains("mveno_own_rtt").and(contains("linked increases")));
}
