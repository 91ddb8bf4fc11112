//! What `anabranch join` is worth, beside the best uplink alone and the kernel's own MPTCP in the same run.
//!
//! Those that are ignored take minutes, and print tables: `scripts/product.sh` runs them.

mod bed;
mod table;

use std::time::Duration;

use bed::{Bed, MPTCP, PLAIN, Way, numbers, plug_in_again};
use table::Row;

/// Rounds of every measurement.
fn rounds() -> usize {
    std::env::var("PRODUCT_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

#[expect(clippy::disallowed_methods, reason = "other programs work in real time")]
fn sleep(span: Duration) {
    std::thread::sleep(span);
}

/// Fields of a link, from Mbit/s and the round-trip time in ms.
fn link(mbit: u32, rtt_ms: u32, more: &str) -> String {
    format!("rate = '{mbit} Mbit/s'\ndelay = '{} ms'\n{more}", rtt_ms / 2)
}

/// Mbit/s of a download that would take `seconds` at `expected` Mbit/s.
fn download(bed: &Bed, way: Way, port: u16, expected: f64, seconds: f64) -> f64 {
    let bytes = (expected * 125_000.0 * seconds) as u64;
    let watched = bed.curl(way, port, &format!("/bytes/{bytes}"), &[]);
    if way == Way::Join && std::env::var_os("PRODUCT_TRACE").is_some() {
        trace(bed, seconds);
    }
    let [_, total] = numbers(watched)[..] else { return 0.0 };
    bytes as f64 * 8.0 / total / 1e6
}

/// Prints what the connections do, for whoever looks for a cause.
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
                eprintln!(
                    "    {} {} backup {} received {} dup {} srtt {}",
                    subflow["local"],
                    subflow["state"],
                    subflow["backup"],
                    subflow["received_bytes"],
                    subflow["duplicate_bytes"],
                    subflow["srtt"]
                );
            }
        }
    }
}

/// Downloads by every way in turns: rows for each, in the order of `ways`.
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
        let links = [link(rate, rtt, ""), link(other_rate, other_rtt, "")];
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
        let [one, other] = [rate, other_rate].map(|mbit| f64::from(mbit) * 0.95);
        let sum = one + other;
        let ways = [(Way::Alone(0), one), (Way::Alone(1), other), (Way::Kernel, sum), (Way::Join, sum)];
        let rows = downloads(&bed, &ways, MPTCP, 8.0);
        let [best, sum] = [f64::max(rows[0].median(), rows[1].median()), rows[0].median() + rows[1].median()];
        let case = format!("{rate}+{other_rate} Mbit/s, {rtt}/{other_rtt} ms");
        table::print(&case, "Mbit/s", &rows, &[("best", best), ("sum", sum)]);
    }
}

#[test]
#[ignore = "minutes; a table of docs/product.md"]
fn one_bad_uplink() {
    let good = link(30, 20, "");
    for (case, bad) in [
        ("5 % loss, 600 ms, 10 Mbit/s", link(10, 600, "loss = '5 %'")),
        ("5 % loss, 600 ms, 2 Mbit/s", link(2, 600, "loss = '5 %'")),
        ("1 Mbit/s, 100 ms and 1 s of queue", link(1, 100, "queue = '128 kB'")),
    ] {
        for (place, links) in [("second", [&good, &bad]), ("first", [&bad, &good])] {
            if std::env::var("PRODUCT_CASE").is_ok_and(|wanted| !format!("{case}; {place}").contains(&wanted)) {
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

/// How an uplink dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// Packets vanish, and nobody is told.
    Silent,
    /// The interface is gone.
    Unplugged,
}

/// ms of the longest stall of a stream whose busier uplink dies in the middle.
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
            let mut rows = [Way::Kernel, Way::Join].map(|way| (way, Row { name: way.name(), values: Vec::new() }));
            for _ in 0..rounds() {
                for (way, row) in &mut rows {
                    let links = [link(10, rtt, ""), link(10, other_rtt, "")];
                    let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
                    row.values.push(stall(&bed, *way, death));
                }
            }
            let rows = rows.map(|(_, row)| row);
            table::print(&format!("{death:?}, {rtt}/{other_rtt} ms"), "ms", &rows, &[("bound", 300.0)]);
        }
    }
}

/// ms until the first octet of each of `count` requests.
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
    for [(rate, rtt), (other_rate, other_rtt)] in [[(20, 20), (20, 20)], [(20, 20), (10, 60)]] {
        let links = [link(rate, rtt, ""), link(other_rate, other_rtt, "")];
        let Some(bed) = Bed::new([&links[0], &links[1]]) else { return };
        let [one, other] = [rate, other_rate].map(|mbit| f64::from(mbit) * 0.95);
        let ways = [(Way::Alone(0), one), (Way::Alone(1), other), (Way::Kernel, one), (Way::Join, one)];
        let rows = downloads(&bed, &ways, PLAIN, 8.0);
        let [best, sum] = [f64::max(rows[0].median(), rows[1].median()), rows[0].median() + rows[1].median()];
        let case = format!("one download, {rate}+{other_rate} Mbit/s, {rtt}/{other_rtt} ms");
        table::print(&case, "Mbit/s", &rows, &[("best", best), ("sum", sum)]);
        let rows = [Way::Alone(0), Way::Kernel, Way::Join].map(|way| Row {
            name: way.name(),
            values: (0..rounds()).map(|_| eight_at_once(&bed, way, one + other)).collect(),
        });
        let case = format!("eight at once, {rate}+{other_rate} Mbit/s, {rtt}/{other_rtt} ms");
        table::print(&case, "Mbit/s", &rows, &[("best", best), ("sum", sum)]);
    }
}

/// Mbit/s of eight downloads together, until the last one is there.
fn eight_at_once(bed: &Bed, way: Way, expected: f64) -> f64 {
    let bytes = (expected * 125_000.0) as u64;
    let all: Vec<_> = (0..8).map(|_| bed.curl(way, PLAIN, &format!("/bytes/{bytes}"), &[])).collect();
    let slowest = all.into_iter().map(|one| numbers(one)[1]).fold(0.0, f64::max);
    8.0 * bytes as f64 * 8.0 / slowest / 1e6
}
