//! Everyday programs, with nginx as the server.

use std::fs;
use std::process::Command;

use interop::available_with;

use super::*;

/// Programs that these figures need besides the common ones, with Debian's packages.
const PROGRAMS: [(&str, &str); 4] = [("nginx", "nginx-light"), ("wget", "wget"), ("git", "git"), ("iperf3", "iperf3")];
const FILE_BYTES: usize = 15_000_000;

/// Measures one program.
type Measured = fn(&Bed, Way) -> f64;

/// Returns octets that git cannot compress (xorshift64).
fn incompressible(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    core::iter::repeat_with(next).take(bytes).collect()
}

/// A network whose server also has nginx and iperf3, with MPTCP.
fn bed_with_files(links: [&str; 2], folder: &std::path::Path) -> Option<Bed> {
    if !available_with(&PROGRAMS) {
        return None;
    }
    let mut bed = Bed::new(links)?;
    fs::write(folder.join("large.bin"), incompressible(FILE_BYTES)).unwrap();
    let repository = folder.join("repo");
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
        assert!(Command::new("git").args(identity).args(arguments).status().unwrap().success());
    };
    let place = repository.to_str().unwrap();
    git(&["init", "-q", place]);
    fs::copy(folder.join("large.bin"), repository.join("large.bin")).unwrap();
    for arguments in [&["add", "."][..], &["commit", "-qm", "one"], &["update-server-info"]] {
        git(&[&["-C", place], arguments].concat());
    }
    bed.serve_folder(folder);
    Some(bed)
}

/// Returns the seconds that a program takes; it must succeed.
fn seconds_of(mut command: Command) -> f64 {
    let begin = now();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    begin.elapsed().as_secs_f64()
}

/// Alone, it uses the uplink with the default route, which is the first one.
fn wget(bed: &Bed, way: Way) -> f64 {
    let mut command = bed.program(way, "wget");
    if way == Way::Join {
        command.env("http_proxy", format!("http://{}", bed.proxy()));
    }
    command.args(["-q", "-t", "1", "-O", "/dev/null", &bed::nginx_url("large.bin")]);
    seconds_of(command)
}

fn git_clone(bed: &Bed, way: Way) -> f64 {
    let target = tempfile::tempdir().unwrap();
    let mut command = bed.program(way, "git");
    if way == Way::Join {
        command.env("http_proxy", format!("socks5h://{}", bed.proxy()));
    }
    command.args(["clone", "-q", &bed::nginx_url("repo/.git"), target.path().join("clone").to_str().unwrap()]);
    seconds_of(command)
}

/// Returns the Mbit/s of a download of 8 s, as iperf3 counts them. iperf3 cannot use proxies, so a forwarder connects
/// it.
fn iperf3(bed: &Bed, way: Way) -> f64 {
    let _forward = (way == Way::Join).then(|| bed.forward(5201));
    let to = if way == Way::Join { "127.0.0.1" } else { "10.9.9.9" };
    let mut command = bed.program(way, "iperf3");
    let output = command.args(["--client", to, "--reverse", "--time", "8", "--json"]).output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{said:#}")) / 1e6
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn programs_with_nginx() {
    let folder = tempfile::tempdir().unwrap();
    let links = [link(20, 20, ""), link(10, 60, "")];
    let Some(bed) = bed_with_files([&links[0], &links[1]], folder.path()) else { return };
    let all: [(&str, &str, Measured); 3] =
        [("wget", "s", wget), ("git clone", "s", git_clone), ("iperf3", "Mbit/s", iperf3)];
    for (name, unit, take) in all {
        if !is_wanted(name) {
            continue;
        }
        let mut rows = [Way::Alone(0), Way::Kernel, Way::Join].map(|way| (way, Vec::new()));
        for _ in 0..rounds() {
            for (way, values) in &mut rows {
                values.push(take(&bed, *way));
            }
        }
        let rows = rows.map(|(way, values)| Row { name: way.name(), values });
        table::print(name, unit, &rows, &[("usb0 alone", rows[0].median())]);
    }
}

/// 4 Mbit/s over two uplinks of 3 Mbit/s each: one uplink is not enough.
#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn a_video_by_range_requests() {
    let folder = tempfile::tempdir().unwrap();
    let links = [link(3, 40, ""), link(3, 80, "")];
    let Some(bed) = bed_with_files([&links[0], &links[1]], folder.path()) else { return };
    for way in [Way::Alone(0), Way::Kernel, Way::Join] {
        for _ in 0..rounds() {
            let said = numbers(bed.video(way, 4_000_000, 30));
            println!("| {} | plays after {} ms | stalls {} | {} ms in all |", way.name(), said[0], said[1], said[2]);
        }
    }
}

#[test]
fn a_browser_shows_a_page_through_the_proxy() {
    if !available_with(&[("chromium", "chromium")]) {
        return;
    }
    let links = [link(10, 20, ""), link(10, 20, "")];
    let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
    for port in [MPTCP, PLAIN] {
        let took = bed.page(Way::Join, port, 20).expect("a page with its images");
        assert!(took < 10_000.0, "{took} ms");
    }
    // The images came through the proxy, and none of its connections broke.
    let totals = &bed.status()["proxy"]["totals"];
    assert!(totals["down_bytes"].as_u64().unwrap() > 2 * 20 * 8000, "{totals}");
    assert!(totals["mptcp"].as_u64() > Some(0), "{totals}");
}
