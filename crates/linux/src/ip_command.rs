//! Addresses, routes and rules through iproute2's `ip`, many changes at a time.

use std::io::{ErrorKind, Write as _};
use std::process::{Command, Stdio};

use crate::{Error, Result};

pub(crate) const MISSING_IP: Error = Error::Missing { program: "ip", package: "iproute2" };

/// The address family of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// That of the address each of them names.
    Named,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Runs `commands` (each the arguments of one `ip` call), stopping at the first that fails.
///
/// # Errors
/// What `ip` said, with the command it said it of.
pub(crate) fn batch(namespace: Option<&str>, family: Family, commands: &[String]) -> Result<()> {
    let mut ip = Command::new("ip");
    match family {
        Family::Named => {}
        Family::V4 => drop(ip.arg("-4")),
        Family::V6 => drop(ip.arg("-6")),
    }
    if let Some(name) = namespace {
        ip.args(["-netns", name]);
    }
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ip.spawn().map_err(spawn_error)?;
    // `ip` reads all of its input before it writes more than a line, so this cannot dead-lock; that it may end early,
    // after an error, shows in its status.
    let input = commands.join("\n") + "\n";
    let _ = child.stdin.take().expect("stdin is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().map_err(Error::system("wait for ip"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(Error::Command { command: failed_command(commands, &message, namespace), message })
}

/// `ip` names the line of its input that failed: "Command failed -:3".
fn failed_command(commands: &[String], message: &str, namespace: Option<&str>) -> String {
    let line = message.rsplit_once("-:").and_then(|(_, rest)| rest.trim().parse::<usize>().ok());
    let command = line.and_then(|line| commands.get(line.checked_sub(1)?)).map_or("-batch", String::as_str);
    match namespace {
        Some(name) => format!("ip -netns {name} {command}"),
        None => format!("ip {command}"),
    }
}

fn spawn_error(error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => MISSING_IP,
        _ => Error::system("run ip")(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failed_line_is_named() {
        let commands = ["link add a".to_owned(), "route add b".to_owned()];
        let message = "Error: inet prefix is expected rather than \"b\".; Command failed -:2";
        assert_eq!(failed_command(&commands, message, Some("ns")), "ip -netns ns route add b");
        assert_eq!(failed_command(&commands, "no line here", None), "ip -batch");
    }
}
