//! Controllers that a process loads for itself.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use interop::{available_unless, one_at_a_time, wait_until};
use kernel_cc::{Controller, Error};

use super::Loaded;

/// Variable by which this program knows that it is the one to be killed.
const TO_BE_KILLED: &str = "ANABRANCH_TEST_HOLDS";
const NAME: &str = "congestion_in_kernel::held::goes_with_a_process_that_is_killed";

/// Returns the controller after making sure that it is not loaded.
fn veno() -> Option<Controller> {
    if !available_unless("controllers in the kernel", kernel_cc::check().err()) {
        return None;
    }
    Some(Loaded::new("veno", 16).0)
}

fn is_registered(controller: &Controller) -> bool {
    kernel_cc::available().unwrap().iter().any(|name| name == controller.kernel_name)
}

#[test]
fn is_there_for_as_long_as_it_is_held() {
    let _turn = one_at_a_time();
    let Some(veno) = veno() else { return };
    let held = kernel_cc::hold(&veno, 16).unwrap();
    assert!(kernel_cc::is_loaded(&veno) && kernel_cc::connections(&veno).unwrap().is_empty());
    assert!(matches!(kernel_cc::unload(&veno), Err(Error::Held { .. })));
    assert!(matches!(kernel_cc::load(&veno, 16), Err(Error::Loaded { .. })));
    assert!(matches!(kernel_cc::hold(&veno, 16), Err(Error::Loaded { .. })));
    drop(held);
    assert!(!kernel_cc::is_loaded(&veno) && !veno.folder().exists() && !is_registered(&veno));
}

/// Its pinned objects are of no use afterwards, and do no harm.
#[test]
fn goes_with_a_process_that_is_killed() {
    let _turn = one_at_a_time();
    if env::var_os(TO_BE_KILLED).is_some() {
        return hold_until_killed();
    }
    let Some(veno) = veno() else { return };
    let mut child = Command::new(env::current_exe().unwrap());
    child.args([NAME, "--exact", "--nocapture"]).env(TO_BE_KILLED, "").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("it is held")), "the child has ended");
    assert!(kernel_cc::is_loaded(&veno));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the kernel has taken it back", || !is_registered(&veno));
    assert!(!kernel_cc::is_loaded(&veno));
    assert!(matches!(kernel_cc::unload(&veno), Err(Error::NotLoaded { .. })));
    drop(kernel_cc::hold(&veno, 16).unwrap());
    assert!(!veno.folder().exists());
}

/// Waits until standard input ends, too: with the test that started this.
fn hold_until_killed() {
    let veno = Controller::named("veno").unwrap();
    let _held = kernel_cc::hold(&veno, 16).unwrap();
    println!("it is held");
    let _ = std::io::stdin().read_line(&mut String::new());
}
