//! Reports in a browser: their sections, no errors on the console, and visible content in both themes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lab::present::report;
use lab::run::sweep::{Journal, Plan};
use lab::run::{Run, run};
use lab::scenario::{Override, load};

/// A screenshot of an empty page of this size takes less than half as many bytes.
const BYTES_MIN: u64 = 30_000;

const SECTIONS: [&str; 4] =
    ["<h2>Topology</h2>", "<h2>Monitor points</h2>", "<h2>Relays</h2>", "<h2>Metrics of the papers</h2>"];

/// The report on `relays` relays of one cell, three of which may carry data.
fn cell(relays: u32) -> String {
    let count = format!("relays[0].count={relays}");
    let overrides =
        ["duration=8 s", "cooperation.selection.method=fixed", "cooperation.selection.fixed=[0,1,2]", count.as_str()];
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    let scenario = load("thesis.toml", include_str!("../../../scenarios/base/thesis.toml"), &overrides).unwrap();
    let Run { results, .. } = run(&scenario, None, &mut |_| {}).unwrap();
    report::render(&results)
}

fn demo() -> String {
    let scenario = load("demo.toml", include_str!("../../../scenarios/demo.toml"), &[]).unwrap();
    report::render(&run(&scenario, None, &mut |_| {}).unwrap().results)
}

/// Returns whether there is a browser. Without one, these tests print a note and end; in continuous integration they
/// fail.
fn has_browser() -> bool {
    let found = Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        left_out::leave_out("reports in a browser", "chromium is missing");
    }
    found
}

fn page(directory: &Path, html: &str) -> PathBuf {
    let path = directory.join("report.html");
    std::fs::write(&path, html).unwrap();
    path
}

/// Runs Chromium; returns its output, with the page's console on stderr.
fn chromium(directory: &Path, page: &Path, arguments: &[&str]) -> Output {
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let common = ["--headless=new", "--no-sandbox", "--enable-logging=stderr", "--window-size=1100,1600", &profile];
    let url = format!("file://{}", page.display());
    let output = Command::new("chromium").args(common).args(arguments).arg(url).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The document after its script ran, and the errors of script and page.
fn opened(html: &str) -> (String, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let output = chromium(directory.path(), &page(directory.path(), html), &["--dump-dom"]);
    let complaints = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .map(String::from)
        .collect();
    (String::from_utf8(output.stdout).unwrap(), complaints)
}

#[test]
fn a_complaint_on_the_console_is_seen() {
    if has_browser() {
        assert_eq!(opened("<script>nothing.here()</script>").1.len(), 1);
    }
}

#[test]
fn a_cell_of_any_size_shows_all_its_sections() {
    if !has_browser() {
        return;
    }
    for relays in [3, 10, 100] {
        let (document, complaints) = opened(&cell(relays));
        assert_eq!(complaints, [""; 0]);
        for section in SECTIONS {
            assert_eq!(document.matches(section).count(), 1, "{section} with {relays} relays");
        }
        assert_eq!(document.matches("class=\"phone ").count(), relays as usize);
        assert_eq!(document.matches("class=\"relay-card\"").count(), relays.min(24) as usize);
        assert_eq!(document.contains("The 24 of 100 that carried most."), relays == 100);
    }
}

#[test]
fn several_sites_are_on_a_map_and_over_time() {
    if !has_browser() {
        return;
    }
    let scenario = load("handover.toml", include_str!("../../../scenarios/handover.toml"), &[]).unwrap();
    let (document, complaints) = opened(&report::render(&run(&scenario, None, &mut |_| {}).unwrap().results));
    assert_eq!(complaints, [""; 0]);
    let figure = document.split("<h2>eNBs</h2>").nth(1).unwrap().split("</figure>").next().unwrap();
    for (part, times) in [("<svg", 2), ("class=\"site ", 2), ("class=\"phone ", 2), ("class=\"served still ", 1)] {
        assert_eq!(figure.matches(part).count(), times, "{part} in {figure}");
    }
    assert!(!cell(3).contains("<h2>eNBs</h2>"));
}

#[test]
fn links_without_a_cell_keep_the_short_report() {
    if !has_browser() {
        return;
    }
    let (document, complaints) = opened(&demo());
    assert_eq!(complaints, [""; 0]);
    assert!(document.contains("<h2>Share per path</h2>"));
    for section in SECTIONS {
        assert!(!document.contains(section), "{section}");
    }
}

/// The report on a shortened scenario without variants.
fn short(name: &str, text: &str) -> String {
    let scenario = load(name, text, &["duration=12 s".parse().unwrap()]).unwrap();
    report::render(&run(&scenario, None, &mut |_| {}).unwrap().results)
}

#[test]
fn what_users_noticed_is_told_where_there_are_users() {
    if !has_browser() {
        return;
    }
    let video = short("video.toml", include_str!("../../../scenarios/video.toml"));
    let pages = short("pages.toml", include_str!("../../../scenarios/pages.toml"));
    for (html, rows) in
        [(video, &["destination", "birch", "cedar, short flows"][..]), (pages, &["destination, answers"])]
    {
        let (document, complaints) = opened(&html);
        assert_eq!(complaints, [""; 0]);
        let section = document.split("<h2>What users noticed</h2>").nth(1).unwrap().split("</section>").next().unwrap();
        assert_eq!(section.matches("<th scope=\"row\">").count(), rows.len());
        for row in rows {
            assert!(section.contains(&format!("<th scope=\"row\">{row}</th>")), "{row} in {section}");
        }
    }
    assert!(!demo().contains("What users noticed"));
}

/// A sweep of two variants over a grid of two points, three seeds each.
fn swept() -> String {
    swept_with("")
}

/// That sweep with further variants.
fn swept_with(variants: &str) -> String {
    swept_over(variants, "\"1000 B\", \"1500 B\"")
}

/// That sweep over other sizes of packets.
fn swept_over(variants: &str, mtus: &str) -> String {
    let text = format!(
        "name = \"swept\"\nduration = \"3 s\"\nworkload = {{ kind = \"bulk\" }}\n\
         [[relays]]\ncount = 2\ncellular = {{ rate = {{ mean = \"3 Mbit/s\" }}, delay = \"20 ms\" }}\n\
         [[variants]]\nname = \"LIA\"\nset = {{ \"connection.congestion\" = \"lia\" }}\n\
         [[variants]]\nname = \"apart\"\nset = {{ \"connection.congestion\" = \"cubic\" }}\n{variants}\
         [sweep]\nseeds = \"1..3\"\n[sweep.grid]\n\"connection.mtu\" = [{mtus}]\n"
    );
    let plan = Plan::new(|overrides| load("swept.toml", &text, overrides), &[], None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&directory.path().join("runs.jsonl"), &plan, false).unwrap();
    lab::run::sweep::run(&plan, &mut journal, 2, &mut |_| {}).unwrap();
    report::render_sweep(&plan, journal.records())
}

#[test]
fn a_sweep_shows_verdicts_pictures_and_courses_on_screen_and_paper() {
    if !has_browser() {
        return;
    }
    let html = swept();
    let (document, complaints) = opened(&html);
    assert_eq!(complaints, [""; 0]);
    assert_eq!(document.matches("<h2>What the seeds say</h2>").count(), 1);
    assert_eq!(document.matches("<h2>Goodput in order over time</h2>").count(), 2);
    assert!(document.contains("class=\"dots wide\"") && document.contains("class=\"ribbon "));
    let directory = tempfile::tempdir().unwrap();
    let page = page(directory.path(), &html);
    // Chromium's values for `prefers-color-scheme`: 0 dark, 1 light.
    let shots = ["0", "1"].map(|scheme| {
        let shot = directory.path().join(format!("{scheme}.png"));
        let (scheme, to) =
            (format!("--blink-settings=preferredColorScheme={scheme}"), format!("--screenshot={}", shot.display()));
        chromium(directory.path(), &page, &[&scheme, &to]);
        std::fs::read(shot).unwrap()
    });
    assert!(shots.iter().all(|shot| shot.len() as u64 > BYTES_MIN) && shots[0] != shots[1]);
    let pdf = directory.path().join("report.pdf");
    chromium(directory.path(), &page, &[&format!("--print-to-pdf={}", pdf.display())]);
    assert!(std::fs::metadata(pdf).unwrap().len() > BYTES_MIN);
}

#[test]
fn both_themes_show_something_else() {
    if !has_browser() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let page = page(directory.path(), &cell(10));
    // Chromium's values for `prefers-color-scheme`: 0 dark, 1 light.
    let shots = ["0", "1"].map(|scheme| {
        let shot = directory.path().join(format!("{scheme}.png"));
        let (scheme, to) =
            (format!("--blink-settings=preferredColorScheme={scheme}"), format!("--screenshot={}", shot.display()));
        chromium(directory.path(), &page, &[&scheme, &to]);
        std::fs::read(shot).unwrap()
    });
    assert!(shots.iter().all(|shot| shot.len() as u64 > BYTES_MIN), "{:?}", shots.each_ref().map(Vec::len));
    assert!(shots[0] != shots[1], "dark and light look the same");
}

/// On a screen of usual width, all columns are visible; content that scrolls sideways is cut off in pictures and on
/// paper.
#[test]
fn wide_tables_fit_a_screen() {
    if !has_browser() {
        return;
    }
    let variant =
        |name: &&str| format!("[[variants]]\nname = \"{name}\"\nset = {{ \"connection.congestion\" = \"{name}\" }}\n");
    let wide: String =
        ["olia", "balia", "wvegas", "mpveno", "mveno", "mveno-own-rtt", "bbr"].iter().map(variant).collect();
    let told = "<script>document.querySelectorAll('details').forEach(folded => folded.open = true); for (const box of document.querySelectorAll('.scroll')) \
        if (box.clientWidth > 0) box.dataset.spill = box.scrollWidth - box.clientWidth;</script></body>";
    for html in [demo(), cell(10), swept_with(&wide)] {
        let (document, _) = opened(&html.replace("</body>", told));
        let spills: Vec<&str> =
            document.split("data-spill=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(!spills.is_empty() && spills.iter().all(|spill| *spill == "0"), "{spills:?}");
    }
}

/// On a phone, signs that wrapped differently in every column could not be matched with the points of the grid.
#[test]
fn on_a_phone_signs_stay_in_one_line_and_the_page_in_its_width() {
    if !has_browser() {
        return;
    }
    let told = "<script>addEventListener('load', () => { const page = document.documentElement; \
        const cells = [...document.querySelectorAll('.overview td')]; \
        const lines = cells.map(cell => new Set([...cell.querySelectorAll('.sign')].map(sign => sign.offsetTop)).size); \
        page.dataset.lines = Math.max(...lines); page.dataset.spill = page.scrollWidth - page.clientWidth; \
        page.dataset.width = page.clientWidth; })</script></body>";
    let mtus: Vec<String> = (0..20).map(|index| format!("\"{} B\"", 1400 + index)).collect();
    let html = swept_over("", &mtus.join(", ")).replace("</body>", told);
    let directory = tempfile::tempdir().unwrap();
    let page = page(directory.path(), &html);
    let output = chromium(directory.path(), &page, &["--window-size=500,1600", "--dump-dom"]);
    let document = String::from_utf8(output.stdout).unwrap();
    let said = |name: &str| document.split(&format!("data-{name}=\"")).nth(1)?.split('"').next()?.parse::<i64>().ok();
    let [width, lines, spill] = ["width", "lines", "spill"].map(said);
    assert!(width.is_some_and(|width| width <= 640), "{width:?}");
    assert_eq!((lines, spill), (Some(1), Some(0)));
}
