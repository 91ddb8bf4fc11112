//! Addresses, routes and rules through iproute2's `ip`, many changes at a time.

use std::io::{ErrorKind, Write as _};
use std::process::Stdio;

use crate::lack::Lack;
use crate::program::program;
use crate::{Error, Result};

pub(crate) const MISSING_IP: Lack = Lack::Program { program: "ip", package: "iproute2" };

/// Address family of a batch of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// That of the address in each command.
    Named,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Runs `commands` (each the arguments of one `ip` call) in the calling thread's network namespace, stopping at the
/// first that fails. `namespace` is that namespace's name, for error messages.
///
/// # Errors
/// The failed command and the message of `ip`, in clearer words.
pub(crate) fn batch(namespace: Option<&str>, family: Family, commands: &[String]) -> Result<()> {
    let mut ip = program("ip");
    match family {
        Family::Named => {}
        Family::V4 => drop(ip.arg("-4")),
        Family::V6 => drop(ip.arg("-6")),
    }
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ip.spawn().map_err(spawn_error)?;
    // `ip` reads all of its input before it writes more than a line, so this cannot deadlock. If it ends early, after
    // an error, its status shows that.
    let input = commands.join("\n") + "\n";
    let _ = child.stdin.take().expect("stdin is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().map_err(Error::system("wait for ip"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(Error::Command { command: failed_command(commands, &message, namespace), message: explain(&message) })
}

/// Explains a message of `ip` and the kernel, with the remedy.
pub(crate) fn explain(message: &str) -> String {
    let said = message.split("; Command failed").next().unwrap_or_default();
    let said =
        said.trim_start_matches("RTNETLINK answers: ").trim_start_matches("Error: ").trim_end_matches(['.', ' ']);
    let meaning = match said {
        m if m.contains("File exists") => {
            "it exists already: another program uses it; choose another name, or end that program"
        }
        m if m.contains("ddress already assigned") => "this host has the address already: name another one",
        m if m.contains("Operation not permitted") => {
            "not permitted: it needs root with CAP_NET_ADMIN, which containers often lack"
        }
        m if m.contains("IPv6 is disabled") || m.contains("Permission denied") => {
            "IPv6 is switched off: switch it on (sysctl -w net.ipv6.conf.all.disable_ipv6=0), or leave out IPv6 \
             addresses"
        }
        m if m.contains("Address family not supported") => {
            "this kernel has no IPv6: leave out IPv6 addresses, or boot without ipv6.disable=1"
        }
        m if m.contains("No such device") || m.contains("Cannot find device") => {
            "there is no such device, or it was removed meanwhile"
        }
        m if m.contains("unreachable") || m.contains("invalid gateway") => {
            "there is no route to the next hop: give this host an address of its network first"
        }
        m if m.contains("Device or resource busy") => "it is in use: end the program that uses it",
        m if m.contains("Invalid argument") => "the kernel rejects the value: is it a plain unicast address?",
        m if m.contains("not supported") => "this kernel lacks the feature: load its module, or use another kernel",
        "" => "it failed without a message",
        other => return format!("the kernel or `ip` refuses it: {other}"),
    };
    meaning.into()
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
        ErrorKind::NotFound => MISSING_IP.into(),
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

    #[test]
    fn nobody_reads_netlink() {
        for (message, help) in [
            ("RTNETLINK answers: File exists; Command failed -:1", "exists already"),
            ("RTNETLINK answers: Operation not permitted; Command failed -:1", "CAP_NET_ADMIN"),
            ("RTNETLINK answers: Permission denied; Command failed -:2", "disable_ipv6"),
            ("RTNETLINK answers: Address family not supported by protocol; Command failed -:1", "has no IPv6"),
            ("Error: Nexthop has invalid gateway.; Command failed -:1", "no route"),
            ("Cannot find device \"anabranch7\"; Command failed -:1", "no such device"),
            ("RTNETLINK answers: Something new; Command failed -:1", "refuses it: Something new"),
            ("Error: inet prefix is expected rather than \"b\".; Command failed -:2", "inet prefix"),
        ] {
            let said = explain(message);
            assert!(said.contains(help) && !said.contains("RTNETLINK") && !said.contains("Command failed"), "{said}");
        }
    }
}
