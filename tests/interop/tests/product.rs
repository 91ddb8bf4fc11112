//! The benefit of `anabranch join`, compared with the best uplink alone and the kernel's own MPTCP in the same run.
//!
//! The ignored tests take minutes, and print tables: `scripts/product.sh` runs them.

mod bed;
mod programs;
mod table;

use std::path::Path;
use std::time::{Duration, Instant};

use bed::{Bed, MPTCP, PLAIN, Way, numbers, plug_in_again};
use interop::in_three_tries;
use table::Row;

/// Returns the number of rounds of every measurement.
fn rounds() -> usize {
    std::env::var("PRODUCT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

/// Returns whether a case is selected by a part of its name.
fn is_wanted(case: &str) -> bool {
    std::env::var("PRODUCT_CASE").map_or(true, |part| case.contains(&part))
}

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn sleep(span: Duration) {
    std::thread::sleep(span);
}

/// Two links, Mbit/s and round-trip time in ms: equal; the faster one is nearer; the slower one is nearer.
const UNEQUAL: [[(u32, u32); 2]; 3] = [[(20, 20), (20, 20)], [(20, 20), (10, 60)], [(10, 20), (20, 60)]];

/// Returns the fields of a link, from Mbit/s and the round-trip time in ms.
fn link(mbit: u32, rtt_ms: u32, more: &str) -> String {
    format!("rate = '{mbit} Mbit/s'\ndelay = '{} ms'\n{more}", rtt_ms / 2)
}

/// Returns the Mbit/s of a download that would take `seconds` at `expected` Mbit/s.
fn download(bed: &Bed, way: Way, port: u16, expected: f64, seconds: f64) -> f64 {
    let bytes = (expected * 125_000.0 * seconds) as u64;
    let watched = bed.curl(way, port, &format!("/bytes/{bytes}"), &[]);
    if way == Way::Join && std::env::var_os("PRODUCT_TRACE").is_some() {
        trace(bed, seconds);
    }
    let [_, total] = numbers(watched)[..] else { return 0.0 };
    bytes as f64 * 8.0 / total / 1e6
}

/// Prints the state of the connections, for finding a cause.
fn trace(bed: &Bed, seconds: f64) {
    for _ in 0..(seconds * 4.0) as usize {
        sleep(Duration::from_millis(250));
        let status = bed.status();
        for client in status["proxy"]["clients"].as_array().unwrap() {
            let connection = &client["connection"];
            eprintln!(
                "{} received {} ooo {} peak {} dup {}",
                status["at"],
                connection["received_bytes"],
                connection["out_of_order_bytes"],
                connection["out_of_order_peak_bytes"],
                connection["duplicate_bytes"]
            );
            for subflow in connection["subflows"].as_array().into_iter().flatten() {
                let fields = [
                    "local",
                    "state",
                    "backup",
                    "received_bytes",
                    "duplicate_bytes",
                    "srtt",
                    "acked_bytes",
                    "cwnd_bytes",
                    "in_flight_bytes",
                    "retransmitted_bytes",
                    "timeouts",
                ];
                let line: Vec<String> = fields.iter().map(|field| format!("{field} {}", subflow[field])).collect();
                eprintln!("    {}", line.join(" "));
            }
        }
    }
}

/// Downloads by every way in turns; returns rows in the order of `ways`.
fn downloads(bed: &Bed, ways: &[(Way, f64)], port: u16, seconds: f64) -> Vec<Row> {
    let mut rows: Vec<Row> = ways.iter().map(|(way, _)| Row { name: way.name(), values: Vec::new() }).collect();
    for _ in 0..rounds() {
        for ((way, expected), row) in ways.iter().zip(&mut rows) {
            row.values.push(download(bed, *way, port, *expected, seconds));
            sleep(Duration::from_millis(500));
        }
    }
    rows
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn clean_uplinks() {
    for [(rate, rtt), (other_rate, other_rtt)] in
        [[(20, 20), (20, 20)], [(20, 20), (5, 60)], [(50, 15), (10, 80)], [(20, 60), (20, 20)]]
    {
        let case = format!("{rate}+{other_rate} Mbit/s, {rtt}/{other_rtt} ms");
        if !is_wanted(&case) {
            continue;
        }
        let links = [link(rate, rtt, ""), link(other_rate, other_rtt, "")];
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
        let [one, other] = [rate, other_rate].map(|mbit| f64::from(mbit) * 0.95);
        let sum = one + other;
        let ways = [(Way::Alone(0), one), (Way::Alone(1), other), (Way::Kernel, sum), (Way::Join, sum)];
        let rows = downloads(&bed, &ways, MPTCP, 8.0);
        let [best, sum] = [f64::max(rows[0].median(), rows[1].median()), rows[0].median() + rows[1].median()];
        table::print(&case, "Mbit/s", &rows, &[("best", best), ("sum", sum)]);
    }
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn one_bad_uplink() {
    let good = link(30, 20, "");
    for (case, bad) in [
        ("5 % loss, 600 ms, 10 Mbit/s", link(10, 600, "loss = '5 %'")),
        ("1 Mbit/s, 100 ms and 1 s of queue", link(1, 100, "queue = '128 kB'")),
    ] {
        for (place, links) in [("second", [&good, &bad]), ("first", [&bad, &good])] {
            if !is_wanted(&format!("{case}; {place}")) {
                continue;
            }
            let Some(bed) = Bed::new(links.map(String::as_str)) else { return };
            let best = usize::from(place == "first");
            let ways = [(Way::Alone(best), 28.0), (Way::Kernel, 20.0), (Way::Join, 28.0)];
            let rows = downloads(&bed, &ways, MPTCP, 8.0);
            table::print(&format!("{case}; {place}"), "Mbit/s", &rows, &[("best", rows[0].median())]);
        }
    }
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn get_over_two_uplinks() {
    let bad = link(5, 600, "loss = '5 %'");
    let slow = link(1, 100, "queue = '128 kB'");
    for (case, links, expected) in [
        ("20+20 Mbit/s, 20/20 ms", [link(20, 20, ""), link(20, 20, "")], 38.0),
        ("20+5 Mbit/s, 20/60 ms", [link(20, 20, ""), link(5, 60, "")], 23.0),
        ("20 Mbit/s, 40 ms beside 5 Mbit/s, 600 ms, 5 % loss", [link(20, 40, ""), bad], 19.0),
        (
            "30 Mbit/s, 20 ms beside 10 Mbit/s, 600 ms, 5 % loss",
            [link(30, 20, ""), link(10, 600, "loss = '5 %'")],
            28.0,
        ),
        ("30 Mbit/s, 20 ms beside 1 Mbit/s, 100 ms, 1 s of queue", [link(30, 20, ""), slow], 28.0),
    ] {
        if !is_wanted(case) {
            continue;
        }
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
        let bytes = |seconds: f64| (expected * 125_000.0 * seconds) as u64;
        let mut rows =
            ["usb0 alone", "get", "get, usb1 named first"].map(|name| Row { name: name.into(), values: Vec::new() });
        for _ in 0..rounds() {
            rows[0].values.push(download(&bed, Way::Alone(0), MPTCP, 19.0, 4.0));
            rows[1].values.push(bed.get(0, bytes(4.0)));
            rows[2].values.push(bed.get(1, bytes(4.0)));
        }
        table::print(case, "Mbit/s", &rows, &[("usb0", rows[0].median())]);
    }
}

/// Ways in which an uplink dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// Packets vanish without notice.
    Silent,
    /// The interface is gone.
    Unplugged,
}

/// Returns the ms of the longest stall of a stream whose busier uplink dies during the transfer.
fn stall(bed: &Bed, way: Way, death: Death) -> f64 {
    let stream = bed.stream(way, "/paced/4000000/8");
    sleep(Duration::from_secs(2));
    let before = [0, 1].map(|number| bed.net.received_bytes(number));
    sleep(Duration::from_secs(1));
    let carried = [0, 1].map(|number| bed.net.received_bytes(number) - before[number]);
    let busier = usize::from(carried[1] > carried[0]);
    match death {
        Death::Silent => bed.net.set_link(busier, false),
        Death::Unplugged => bed.net.unplug(busier),
    }
    let said = numbers(stream);
    match death {
        Death::Silent => bed.net.set_link(busier, true),
        Death::Unplugged => plug_in_again(&bed.net, busier),
    }
    let whole = said.get(1).is_some_and(|bytes| *bytes > 3_900_000.0);
    if whole { said[0] } else { f64::INFINITY }
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn a_dying_uplink() {
    for (rtt, other_rtt) in [(40, 40), (30, 80)] {
        for death in [Death::Silent, Death::Unplugged] {
            let case = format!("{death:?}, {rtt}/{other_rtt} ms");
            if !is_wanted(&case) {
                continue;
            }
            let mut rows = [Way::Kernel, Way::Join].map(|way| (way, Row { name: way.name(), values: Vec::new() }));
            for _ in 0..rounds() {
                for (way, row) in &mut rows {
                    let links = [link(10, rtt, ""), link(10, other_rtt, "")];
                    let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
                    row.values.push(stall(&bed, *way, death));
                }
            }
            let rows = rows.map(|(_, row)| row);
            table::print(&case, "ms", &rows, &[("bound", 300.0)]);
        }
    }
}

/// Returns the ms until the first octet of each of `count` requests.
fn first_octets(bed: &Bed, way: Way, port: u16, count: usize) -> Vec<f64> {
    let first = |_| numbers(bed.curl(way, port, "/bytes/1000", &[]))[0] * 1000.0;
    (0..count).map(first).collect()
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn first_octet() {
    for (rtt, other_rtt) in [(20, 20), (20, 60), (60, 20)] {
        let links = [link(20, rtt, ""), link(20, other_rtt, "")];
        let Some(mut bed) = Bed::new([&links[0], &links[1]]) else { return };
        let best = Way::Alone(usize::from(other_rtt < rtt));
        for (port, protocol) in [(MPTCP, "MPTCP"), (PLAIN, "plain")] {
            let mut cold = Row { name: "join, cold".into(), values: Vec::new() };
            for _ in 0..10 {
                bed.join_anew();
                cold.values.extend(first_octets(&bed, Way::Join, port, 1));
            }
            let row = |way: Way| Row { name: way.name(), values: first_octets(&bed, way, port, 50) };
            let rows = [row(best), row(Way::Kernel), cold, row(Way::Join)];
            let reference = rows[0].median();
            table::print(&format!("{protocol} server, {rtt}/{other_rtt} ms"), "ms", &rows, &[("best", reference)]);
            println!("  nine of ten: {:?}", rows.iter().map(|row| row.most_of_ten().round()).collect::<Vec<_>>());
        }
    }
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn servers_without_mptcp() {
    for [(rate, rtt), (other_rate, other_rtt)] in UNEQUAL {
        if !is_wanted(&format!("{rate}+{other_rate} Mbit/s")) {
            continue;
        }
        let links = [link(rate, rtt, ""), link(other_rate, other_rtt, "")];
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
        let [one, other] = [rate, other_rate].map(|mbit| f64::from(mbit) * 0.95);
        let most = one.max(other);
        let ways = [(Way::Alone(0), one), (Way::Alone(1), other), (Way::Kernel, one), (Way::Join, most)];
        let rows = downloads(&bed, &ways, PLAIN, 8.0);
        let [best, sum] = [f64::max(rows[0].median(), rows[1].median()), rows[0].median() + rows[1].median()];
        let case = format!("one download, {rate}+{other_rate} Mbit/s, {rtt}/{other_rtt} ms");
        table::print(&case, "Mbit/s", &rows, &[("best", best), ("sum", sum)]);
        println!("  round by round: {:?}", rows[3].values);
        let rows = [Way::Alone(0), Way::Kernel, Way::Join].map(|way| Row {
            name: way.name(),
            values: (0..rounds()).map(|_| eight_at_once(&bed, way, one + other)).collect(),
        });
        let case = format!("eight at once, {rate}+{other_rate} Mbit/s, {rtt}/{other_rtt} ms");
        table::print(&case, "Mbit/s", &rows, &[("best", best), ("sum", sum)]);
        println!("  round by round: {:?}", rows[2].values);
    }
}

/// Each finished download makes room for the next: 24 in all, eight at a time, from servers without MPTCP.
#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn eight_at_a_time() {
    for [(rate, rtt), (other_rate, other_rtt)] in UNEQUAL {
        if !is_wanted(&format!("{rate}+{other_rate} Mbit/s")) {
            continue;
        }
        let links = [link(rate, rtt, ""), link(other_rate, other_rtt, "")];
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
        let rows = [Way::Alone(0), Way::Alone(1), Way::Join].map(|way| Row {
            name: way.name(),
            values: (0..rounds()).map(|_| some_at_a_time(&bed, way, PLAIN, EIGHT)).collect(),
        });
        let [best, sum] = [f64::max(rows[0].median(), rows[1].median()), rows[0].median() + rows[1].median()];
        let case = format!("24, eight at a time, {rate}+{other_rate} Mbit/s, {rtt}/{other_rtt} ms");
        table::print(&case, "Mbit/s", &rows, &[("best", best), ("sum", sum)]);
        println!("  round by round: {:?}", rows[2].values);
    }
}

/// The same from servers with MPTCP, also beside an uplink that brings nothing.
#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn four_at_a_time_with_mptcp() {
    let good = link(30, 20, "");
    let bad = link(10, 600, "loss = '5 %'");
    let (near, other) = (link(20, 30, ""), link(10, 60, ""));
    for (case, links) in
        [("20+10 Mbit/s, 30/60 ms", [&near, &other]), ("beside 5 % loss, 600 ms, 10 Mbit/s", [&good, &bad])]
    {
        if !is_wanted(case) {
            continue;
        }
        let Some(bed) = Bed::new(links.map(String::as_str)) else { return };
        let mut rows = [Way::Alone(0), Way::Kernel, Way::Join].map(|way| (way, Vec::new()));
        for _ in 0..rounds() {
            rows.iter_mut().for_each(|(way, values)| values.push(some_at_a_time(&bed, *way, MPTCP, FOUR)));
        }
        let rows = rows.map(|(way, values)| Row { name: way.name(), values });
        table::print(&format!("40, four at a time, {case}"), "Mbit/s", &rows, &[("best", rows[0].median())]);
        rows.iter().for_each(|row| println!("  {}, round by round: {:?}", row.name, row.values));
    }
}

/// A number of downloads, of which some run at a time.
#[derive(Clone, Copy)]
struct Several {
    count: u32,
    at_a_time: u32,
    bytes: u32,
}

const EIGHT: Several = Several { count: 24, at_a_time: 8, bytes: 1_500_000 };
const FOUR: Several = Several { count: 40, at_a_time: 4, bytes: 2_000_000 };

/// Returns the Mbit/s of all downloads together.
fn some_at_a_time(bed: &Bed, way: Way, port: u16, Several { count, at_a_time, bytes }: Several) -> f64 {
    let begin = now();
    let at_a_time = at_a_time.to_string();
    // Otherwise curl may wait for each transfer to end, in case the next could share its connection: one at a time.
    let parallel = ["--parallel", "--parallel-immediate", "--parallel-max", &at_a_time];
    let more = [&parallel[..], &["--no-progress-meter", "--header", "Connection: close"]].concat();
    let curl = bed.curl(way, port, &format!("/bytes/{bytes}?[1-{count}]"), &more);
    assert_eq!(numbers(curl).len(), 2 * count as usize);
    f64::from(count) * f64::from(bytes) * 8e-6 / begin.elapsed().as_secs_f64()
}

/// Returns the Mbit/s of eight downloads together, until the last one is complete.
fn eight_at_once(bed: &Bed, way: Way, expected: f64) -> f64 {
    let bytes = (expected * 125_000.0) as u64;
    let all: Vec<_> = (0..8).map(|_| bed.curl(way, PLAIN, &format!("/bytes/{bytes}"), &[])).collect();
    let slowest = all.into_iter().map(|one| numbers(one)[1]).fold(0.0, f64::max);
    8.0 * bytes as f64 * 8.0 / slowest / 1e6
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn flapping_uplinks() {
    let seconds = 60;
    for (case, both) in [("one flaps, the other stays", false), ("they take turns", true)] {
        let links = [link(20, 30, ""), link(20, 50, "")];
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
        let mut rows = Vec::new();
        for way in [Way::Alone(0), Way::Kernel, Way::Join] {
            let values = (0..rounds()).map(|_| {
                let limit = seconds.to_string();
                let format = ["--max-time", &limit, "--write-out", "%{size_download} %{time_total}\n"];
                let curl = bed.curl(way, MPTCP, "/bytes/2000000000", &format);
                for turn in 0..seconds / 2 {
                    bed.net.set_link(1, turn % 2 == 0);
                    bed.net.set_link(0, !both || turn % 2 == 1);
                    sleep(Duration::from_secs(2));
                }
                let said = numbers(curl);
                (0..2).for_each(|number| bed.net.set_link(number, true));
                sleep(Duration::from_secs(2));
                said[0] * 8.0 / said[1] / 1e6
            });
            rows.push(Row { name: way.name(), values: values.collect() });
        }
        table::print(case, "Mbit/s", &rows, &[("usb0 alone", rows[0].median())]);
    }
}

#[test]
#[ignore = "more than ten minutes"]
fn ten_minutes_of_flapping() {
    const SECONDS: u64 = 600;
    const RATE: usize = 4_000_000;
    let links = [link(20, 30, ""), link(20, 50, "")];
    let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    let limit = (2 * SECONDS).to_string();
    let more = ["--max-time", &limit, "--output", &path];
    let mut curl = bed.curl(Way::Join, MPTCP, &format!("/paced/{RATE}/{SECONDS}"), &more);
    let mut turns = 0;
    while curl.0.try_wait().unwrap().is_none() {
        turns += 1;
        (0..2).for_each(|number| bed.net.set_link(number, turns % 2 == number));
        sleep(Duration::from_secs(2));
    }
    let took = numbers(curl);
    let octets = std::fs::read(&path).unwrap();
    println!("{} octets in {took:?} s, in which uplinks took turns {turns} times", octets.len());
    // The octets of a tick begin with its number, and all continue in the same way.
    let tick_bytes = RATE / 50 / 8;
    assert_eq!(octets.len(), tick_bytes * 50 * SECONDS as usize);
    for (number, tick) in octets.chunks(tick_bytes).enumerate() {
        assert_eq!(tick[..8], (number as u64).to_be_bytes(), "what comes {number}th");
        assert!(tick[8..] == octets[8..tick_bytes], "tick {number} is not what was sent");
    }
}

/// Prints tables for a page of small files: the `milliseconds` it takes by each way from a port of the server, if it
/// loads.
fn pages(milliseconds: impl Fn(&Bed, Way, u16) -> Option<f64>) {
    for [(rate, rtt), (other_rate, other_rtt)] in [[(10, 40), (10, 40)], [(10, 40), (5, 80)]] {
        if !is_wanted(&format!("{rate}+{other_rate} Mbit/s")) {
            continue;
        }
        let links = [link(rate, rtt, ""), link(other_rate, other_rtt, "")];
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
        for (port, protocol) in [(MPTCP, "MPTCP"), (PLAIN, "plain")] {
            let mut rows = [Way::Alone(0), Way::Kernel, Way::Join].map(|way| (way, Vec::new()));
            for _ in 0..rounds() {
                for (way, values) in &mut rows {
                    values.extend(milliseconds(&bed, *way, port));
                }
            }
            let rows = rows.map(|(way, values)| Row { name: way.name(), values });
            let case = format!("{protocol} server, {rate}+{other_rate} Mbit/s, {rtt}/{other_rtt} ms");
            table::print(&case, "ms", &rows, &[("best", rows[0].median())]);
        }
    }
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn page_of_a_hundred_images() {
    pages(|bed, way, port| bed.page(way, port, 100));
}

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn now() -> Instant {
    Instant::now()
}

/// As a browser fetches them: over six connections, each for many files.
#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn a_hundred_small_files() {
    pages(|bed, way, port| {
        let begin = now();
        let more = ["--parallel", "--parallel-max", "6", "--no-progress-meter"];
        assert_eq!(numbers(bed.curl(way, port, "/image/[0-99]", &more)).len(), 200);
        Some(begin.elapsed().as_secs_f64() * 1000.0)
    });
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn uploads() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(20_000_000).unwrap();
    let path = file.path().display().to_string();
    let cases = [
        ("20+20 Mbit/s, 20/20 ms", [link(20, 20, ""), link(20, 20, "")]),
        ("20+5 Mbit/s, 20/60 ms", [link(20, 20, ""), link(5, 60, "")]),
        ("30 Mbit/s beside 5 % loss, 600 ms, 10 Mbit/s", [link(30, 20, ""), link(10, 600, "loss = '5 %'")]),
    ];
    for (case, links) in cases {
        if !is_wanted(case) {
            continue;
        }
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
        let mut rows = [Way::Alone(0), Way::Kernel, Way::Join].map(|way| (way, Vec::new()));
        for _ in 0..rounds() {
            for (way, values) in &mut rows {
                let curl = bed.curl(*way, MPTCP, "/", &["--upload-file", &path]);
                if *way == Way::Join && std::env::var_os("PRODUCT_TRACE").is_some() {
                    trace(&bed, 5.0);
                }
                let took = numbers(curl)[1];
                values.push(160.0 / took);
            }
        }
        let rows = rows.map(|(way, values)| Row { name: way.name(), values });
        table::print(case, "Mbit/s", &rows, &[("best", rows[0].median())]);
    }
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn carriers_that_strip_mptcp() {
    let strip = "middleboxes = [{ strip = { options = ['mptcp'] } }]";
    let (clean, far) = (link(20, 20, ""), link(20, 60, ""));
    let (stripped, near) = (link(20, 20, strip), link(5, 20, strip));
    for (case, links) in [
        ("usb0", [&stripped, &clean]),
        ("usb1", [&clean, &stripped]),
        ("both", [&stripped, &stripped]),
        ("usb0, nearer and slower,", [&near, &far]),
    ] {
        if !is_wanted(case) {
            continue;
        }
        let Some(bed) = Bed::new(links.map(String::as_str)) else { return };
        let ways = [(Way::Alone(0), 19.0), (Way::Alone(1), 19.0), (Way::Kernel, 19.0), (Way::Join, 19.0)];
        let rows = downloads(&bed, &ways, MPTCP, 5.0);
        let best = f64::max(rows[0].median(), rows[1].median());
        table::print(&format!("{case} strips"), "Mbit/s", &rows, &[("best", best)]);
        println!("  round by round: {:?}", rows[3].values);
    }
}

#[test]
#[ignore = "as fast as it goes: run it with a release build"]
fn one_core() {
    let Some(direct) = bed::Direct::new() else { return };
    for port in [MPTCP, PLAIN] {
        let mut gbit = Row { name: "join".into(), values: Vec::new() };
        let mut per_core = Row { name: "join, a second of one core".into(), values: Vec::new() };
        for _ in 0..rounds() {
            let (rate, core) = direct.download(port, 1_000_000_000);
            gbit.values.push(rate);
            per_core.values.push(core);
        }
        let protocol = if port == MPTCP { "MPTCP" } else { "plain" };
        table::print(&format!("{protocol} server"), "Gbit/s", &[gbit, per_core], &[("bound", 1.0)]);
    }
}

#[test]
fn a_bad_uplink_does_little_harm() {
    let links = [link(20, 20, ""), link(5, 600, "loss = '5 %'")];
    let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
    in_three_tries(|| {
        let [alone, joined] = [Way::Alone(0), Way::Join].map(|way| download(&bed, way, MPTCP, 19.0, 6.0));
        // It was half as much without the remedy, and should be 95 % (docs/product.md).
        let got = bed.get(0, 9_500_000);
        let is_enough = joined.min(got) > 0.8 * alone;
        let found = || format!("{joined} Mbit/s through the proxy, {got} by get, {alone} without");
        is_enough.then_some(()).ok_or_else(found)
    })
    .unwrap();
}

/// Twelve files of 1 MB at once from a server without MPTCP that is known for such files.
#[test]
fn downloads_that_begin_at_once_use_both_uplinks() {
    let links = [link(20, 20, ""), link(10, 40, "")];
    in_three_tries(|| {
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return Ok(()) };
        let several = |count, at_a_time| Several { count, at_a_time, bytes: 1_000_000 };
        // The rates of the uplinks become known.
        some_at_a_time(&bed, Way::Join, PLAIN, several(18, 4));
        let alone = some_at_a_time(&bed, Way::Alone(0), PLAIN, several(12, 12));
        let before = bed.net.received_bytes(1);
        let joined = some_at_a_time(&bed, Way::Join, PLAIN, several(12, 12));
        let far_mb = (bed.net.received_bytes(1) - before) / 1_000_000;
        // Eight and four take two thirds of the time that the nearer uplink takes for all.
        let is_spread = (2..=6).contains(&far_mb) && joined > 1.15 * alone;
        is_spread.then_some(()).ok_or_else(|| format!("{far_mb} MB, {joined} Mbit/s, {alone} over the nearer alone"))
    })
    .unwrap();
}

/// The nearer uplink is the slower one, and a plain TCP connection stays on its first uplink: without MPTCP at the
/// server, and with a middlebox that removes it.
#[test]
fn downloads_that_cannot_spread_begin_where_they_end_soonest() {
    let strip = "middleboxes = [{ strip = { options = ['mptcp'] } }]";
    let (near, stripped, far) = (link(5, 20, ""), link(5, 20, strip), link(20, 60, ""));
    for (links, port) in [([&near, &far], PLAIN), ([&stripped, &far], MPTCP)] {
        let Some(bed) = Bed::new(links.map(String::as_str)) else { return };
        in_three_tries(|| {
            // A connection to an unknown server starts on the uplink that answers first.
            let rates = [3.0, 4.0, 4.0].map(|seconds| download(&bed, Way::Join, port, 10.0, seconds));
            let is_enough = rates[1..].iter().all(|rate| *rate > 14.0);
            is_enough.then_some(()).ok_or_else(|| format!("{rates:?} Mbit/s from port {port}"))
        })
        .unwrap();
    }
}

#[test]
fn a_stream_hardly_stalls_when_its_uplink_dies_without_a_word() {
    let links = [link(10, 40, ""), link(10, 40, "")];
    in_three_tries(|| {
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return Ok(()) };
        let stalled = stall(&bed, Way::Join, Death::Silent);
        // Nearly 800 ms without the remedy, and about 200 now.
        (stalled < 500.0).then_some(()).ok_or_else(|| format!("{stalled} ms"))
    })
    .unwrap();
}

/// Writes a trace in the mahimahi format: 4 Mbit/s for two seconds, then nothing for 0.6 s, repeatedly.
fn pausing_link(directory: &Path) -> String {
    let trace = directory.join("pausing");
    let times_ms = (0..2000).step_by(3).chain([2600]).map(|at| format!("{at}\n"));
    std::fs::write(&trace, times_ms.collect::<String>()).unwrap();
    format!("rate = {{ trace = '{}' }}\ndelay = '20 ms'\nqueue = '100 kB'\n", trace.display())
}

/// Returns the largest number of successive subflows over usb1 that a download of `seconds` had.
fn joins_over_usb1(bed: &Bed, seconds: u64) -> usize {
    let curl = bed.curl(Way::Join, MPTCP, "/bytes/2000000000", &["--max-time", &seconds.to_string()]);
    let mut joins = 0;
    for _ in 1..2 * seconds {
        sleep(Duration::from_millis(500));
        let status = bed.status();
        let subflows = status.pointer("/proxy/clients/0/connection/subflows").and_then(serde_json::Value::as_array);
        let is_of_usb1 = |it: &&serde_json::Value| {
            it["local"].as_str().unwrap().starts_with("10.99.0.3:") && !it["established_at"].is_null()
        };
        joins = joins.max(subflows.map_or(0, |subflows| subflows.iter().filter(is_of_usb1).count()));
    }
    // By now it has ended with an error.
    drop(numbers(curl));
    joins
}

#[test]
fn an_uplink_that_pauses_is_given_up_once() {
    let directory = tempfile::tempdir().unwrap();
    let links = [link(8, 40, ""), pausing_link(directory.path())];
    let mut tries = 0;
    in_three_tries(|| {
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return Ok(()) };
        // At first a pause counts as death. Each such mistake doubles the patience, until the pauses of 0.6 s fit into it:
        // after one mistake. There may be two on a busy machine, or none, also in three tries: it judges nobody while it
        // looks too late.
        let (mut joins, mut brought_mb) = (vec![joins_over_usb1(&bed, 6)], 0);
        while joins.len() == 1 || *joins.last().unwrap() > 1 && joins.len() < 4 {
            let before = bed.net.received_bytes(1);
            joins.push(joins_over_usb1(&bed, 7));
            brought_mb = (bed.net.received_bytes(1) - before) / 1_000_000;
        }
        let found = format!("{joins:?} subflows, {brought_mb} MB over usb1 at last");
        println!("{found}");
        let mistakes: usize = joins.iter().map(|count| count.saturating_sub(1)).sum();
        tries += 1;
        // 2.7 MB could come.
        ((1..=2).contains(&mistakes) || mistakes == 0 && tries == 3)
            .then_some(())
            .filter(|()| joins.last() == Some(&1) && brought_mb >= 1)
            .ok_or(found)
    })
    .unwrap();
}
