//! The command with restricted rights: root with the capabilities of a container, a chroot, a machine without TUN, a
//! user who is not root. Whatever needs no privilege works; everything else says in one line what is missing.

mod jail;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use jail::{Confinement, Jail, leave_out};
use rustix::process::{Pid, Signal, kill_process};

/// Two hosts with a link.
const TOPOLOGY: &str = "[[host]]\nname = 'confined-a'\n[[host]]\nname = 'confined-b'\n\
    [[link]]\nbetween = ['confined-a', 'confined-b']\n";

/// Returns the lines of an output.
fn lines(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(String::from).collect()
}

/// Asserts that the demo succeeds with one line about what it leaves out, which contains all of `words`.
fn assert_demo_leaves_out(jail: &Jail, confinement: &Confinement, words: &[&str]) {
    let output = jail.run(confinement, &["demo", "--out", "out"]);
    assert!(output.status.success(), "{confinement:?}: {output:?}");
    let printed = lines(&output.stdout);
    let left_out: Vec<&String> = printed.iter().filter(|line| line.to_lowercase().contains("left out")).collect();
    assert!(matches!(left_out[..], [line] if words.iter().all(|word| line.contains(word))), "{left_out:?}");
    assert!(jail.path("out/report.html").exists() && jail.path("out/cell/report.html").exists());
    assert!(!lines(&output.stderr).iter().any(|line| line.contains("error")), "{output:?}");
}

/// Asserts that a program fails with one line that contains all of `words`.
fn assert_fails_in_one_line(output: &Output, words: &[&str]) {
    let printed = lines(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(matches!(&printed[..], [line] if words.iter().all(|word| line.contains(word))), "{printed:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// Asserts that everything that needs the machine fails in one line, with `words` for devices and `more` words for
/// namespaces.
fn assert_all_refuse(jail: &Jail, confinement: &Confinement, words: &[&str], more: &[&str]) {
    std::fs::write(jail.path("topology.toml"), TOPOLOGY).unwrap();
    for arguments in [&["serve", "."][..], &["get", "http://10.99.0.9/file", "-o", "file", "--via", "10.99.0.2"]] {
        assert_fails_in_one_line(&jail.run(confinement, arguments), words);
    }
    assert_fails_in_one_line(&jail.run(confinement, &["emulate", "topology.toml"]), &[words, more].concat());
}

#[test]
fn root_without_capabilities() {
    let container = Confinement::WithoutCapabilities;
    let Some(jail) = Jail::new(&container, &[]) else { return };
    let (namespaces, devices) = (["--cap-add SYS_ADMIN"], ["CAP_NET_ADMIN", "--cap-add NET_ADMIN"]);
    assert_demo_leaves_out(&jail, &container, &[&namespaces[..], &devices].concat());
    assert_all_refuse(&jail, &container, &devices, &namespaces);
}

#[test]
fn a_machine_without_tun() {
    let Some(jail) = Jail::new(&Confinement::WithoutTun, &[]) else { return };
    let words = ["there is no /dev/net/tun", "modprobe tun", "--device"];
    assert_demo_leaves_out(&jail, &Confinement::WithoutTun, &words);
    assert_all_refuse(&jail, &Confinement::WithoutTun, &words, &[]);
}

#[test]
fn somebody_who_is_not_root() {
    let Some(jail) = Jail::new(&Confinement::NotRoot, &[]) else { return };
    assert_demo_leaves_out(&jail, &Confinement::NotRoot, &["need root"]);
    assert_all_refuse(&jail, &Confinement::NotRoot, &["need root"], &[]);
}

/// A missing prerequisite is named before anything is measured.
#[test]
fn claims_on_linux_say_what_is_lacking() {
    let judge = ["claims", "--backend", "linux", "--ids", "C50"];
    let Some(jail) = Jail::new(&Confinement::NotRoot, &[]) else { return };
    assert_fails_in_one_line(&jail.run(&Confinement::NotRoot, &judge), &["need root"]);
    let Some(jail) = Jail::new(&Confinement::WithoutTun, &[]) else { return };
    assert_fails_in_one_line(&jail.run(&Confinement::WithoutTun, &judge), &["there is no /dev/net/tun"]);
}

#[test]
fn a_path_without_ip() {
    let Some(jail) = Jail::new(&Confinement::WithoutPrograms, &[]) else { return };
    let words = ["`ip` is missing", "install the package iproute2"];
    assert_demo_leaves_out(&jail, &Confinement::WithoutPrograms, &words);
    assert_all_refuse(&jail, &Confinement::WithoutPrograms, &words, &[]);
}

#[test]
fn a_bare_chroot() {
    let Some(jail) = Jail::new(&Confinement::BareChroot, &["chroot", "ldd"]) else { return };
    jail.furnish(&[]);
    let words = ["`ip` is missing", "/proc is not mounted", "there is no /dev/net/tun"];
    assert_demo_leaves_out(&jail, &Confinement::BareChroot, &words);
    assert_all_refuse(&jail, &Confinement::BareChroot, &words[2..], &words[..2]);
}

/// In a chroot `/` is not a mount point, and `ip -netns` and `ip netns exec` require one.
#[test]
fn an_emulation_runs_in_a_chroot() {
    let Some(jail) = Jail::new(&Confinement::Chroot, &["chroot", "ldd"]) else { return };
    jail.furnish(&["ip", "sh", "tr"]);
    std::fs::write(jail.path("topology.toml"), TOPOLOGY).unwrap();
    let mut child = jail
        .command(&Confinement::Chroot, &["emulate", "topology.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The suggested command works here, too; `ip netns exec` does not.
    let hint = printed.any(|line| line == "try: nsenter --net=/run/netns/confined-a ping 10.1.1.1");
    let runs = printed.any(|line| line.contains("Ctrl-C ends it"));
    if runs {
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    }
    let counted = printed.any(|line| line.contains("confined-a -> confined-b"));
    let output = child.wait_with_output().unwrap();
    assert!(hint && runs && counted && output.status.success(), "{output:?}");
    assert!(!std::path::Path::new("/run/netns/confined-a").exists());
}

#[test]
fn a_folder_that_cannot_be_written() {
    let Some(jail) = Jail::new(&Confinement::ReadOnly, &[]) else { return };
    let output = jail.run(&Confinement::ReadOnly, &["demo"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let printed = lines(&output.stderr);
    let [error, help] = &printed[..] else { panic!("{printed:?}") };
    assert!(error.contains("out/demo: Read-only file system") && help.contains("that you may write to"), "{printed:?}");
}

/// The environment is empty: no `HOME`, nothing else.
#[test]
fn a_run_needs_no_environment() {
    let directory = tempfile::tempdir().unwrap();
    let program = assert_cmd::cargo::cargo_bin!("anabranch");
    let output =
        Command::new(program).env_clear().current_dir(directory.path()).args(["run", "demo"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Finished results are shown, and no file is left that looks complete.
#[test]
fn a_full_disk() {
    let disk = Confinement::FullDisk;
    let Some(jail) = Jail::new(&disk, &[]) else { return };
    for arguments in [
        &["run", "demo", "--pcap", "full", "--out", "out"][..],
        &["run", "demo", "--pcap", "full", "--out", "full"],
        &["fading", "-o", "full/x.fad"],
    ] {
        let output = jail.run(&disk, arguments);
        let (printed, said) = (lines(&output.stdout).join("\n"), lines(&output.stderr).join("\n"));
        let left = printed.lines().last().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert!(said.contains("cannot write full/") && said.contains("No space left"), "{arguments:?}: {said}");
        assert!(
            (arguments[0] == "fading" || said.contains("  help: "))
                && !left.contains(".pcapng")
                && !left.contains("fad"),
            "{arguments:?}: {printed}\n{said}"
        );
        assert!(arguments[0] == "fading" || printed.contains("goodput"), "{arguments:?}: {printed}");
    }
    assert!(jail.path("out/report.html").exists());
}

/// Whether this build has programs for the kernel; otherwise the test is left out.
fn has_controllers() -> bool {
    match kernel_cc::check() {
        Err(why @ (kernel_cc::Error::NotBuilt | kernel_cc::Error::Btf | kernel_cc::Error::Links)) => {
            leave_out::<()>(why).is_some()
        }
        _ => true,
    }
}

#[test]
fn a_look_at_controllers_mounts_nothing() {
    let Some(jail) = Jail::new(&Confinement::WithoutBpf, &["unshare", "umount"]).filter(|_| has_controllers()) else {
        return;
    };
    for arguments in [&["cc", "status", "lia"][..], &["cc", "tell", "1f2e3d4c", "1", "--rho", "5"]] {
        let output = jail.run(&Confinement::WithoutBpf, arguments);
        assert_eq!(lines(&output.stdout), ["mounted: 0"], "{output:?}");
        assert_eq!((output.status.code(), lines(&output.stderr).len()), (Some(1), 1), "{output:?}");
    }
}

#[test]
fn a_controller_that_cannot_be_read_is_not_taken_for_one_without_connections() {
    let Some(jail) = Jail::new(&Confinement::WithoutMaps, &["unshare", "mount"]).filter(|_| has_controllers()) else {
        return;
    };
    let output = jail.run(&Confinement::WithoutMaps, &["cc", "tell", "1f2e3d4c", "1", "--rho", "5"]);
    assert_fails_in_one_line(&output, &["`lia` was loaded by another version", "/sys/fs/bpf/anabranch-cc/lia"]);
}
