//! Programs that are run in a namespace.

use std::os::unix::process::CommandExt as _;

use linux::netns::Namespace;
use linux::{Error, Result};

/// Runs `program` with `arguments`, which are separated by spaces, and returns its output. It gets no Ctrl-C: this
/// process handles it, and ends in good order.
///
/// # Errors
/// If there is no such program, or it fails.
pub fn run(namespace: &Namespace, program: &str, arguments: &str) -> Result<String> {
    let mut command = namespace.command(program)?;
    let command = command.args(arguments.split(' ')).process_group(0);
    let said = command.output().map_err(Error::system(format!("run {program}")))?;
    if said.status.success() {
        return Ok(String::from_utf8_lossy(&said.stdout).into_owned());
    }
    let message = match String::from_utf8_lossy(&said.stderr).trim() {
        "" => said.status.to_string(),
        message => message.to_owned(),
    };
    Err(Error::Command { command: format!("{program} {arguments}"), message })
}

/// Runs `ip`. Its batches do not support MPTCP.
///
/// # Errors
/// As [`run`].
pub fn run_ip(namespace: &Namespace, command: &str) -> Result<()> {
    run(namespace, "ip", command).map(drop)
}
