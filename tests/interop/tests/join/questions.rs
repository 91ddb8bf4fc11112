//! Effects of lost answers.

use std::net::TcpStream;

use super::*;

/// Longer than the looks at a download continue after its last octet, and shorter than the time after which an uplink
/// counts as silent.
const LOST_FOR: Duration = Duration::from_millis(2500);

/// Sends octets to every client, and nothing afterwards.
const GIVER: &str = "
import socket, threading
def give(client):
    client.sendall(bytes(4000000))
    client.recv(1)
server = socket.create_server(('', 8415))
while True:
    threading.Thread(target=give, args=(server.accept()[0],), daemon=True).start()
";

/// The last probes of a download have no answer, as if another program filled the uplink's queue, and nothing is sent
/// afterwards.
#[test]
fn answers_that_are_lost_for_a_moment_make_no_uplink_silent() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let mut command = net.server().command("mptcpize").unwrap();
    let _server = Running(command.args(["run", "python3", "-c", GIVER]).spawn().unwrap());
    let listens = || output(net.server(), "ss", &["-ltnH", "sport", "=", ":8415"]).contains("8415");
    wait_until("the server listens", listens);
    let joined = start(&net, options(&[Tier::Primary; 2]));
    let mut client = net.laptop.run(|| TcpStream::connect(&joined.ready)).unwrap().unwrap();
    client.write_all(b"CONNECT 10.9.9.9:8415 HTTP/1.1\r\nHost: 10.9.9.9:8415\r\n\r\n").unwrap();
    let (mut got, mut piece) = (0, vec![0; 1 << 16]);
    while got < BYTES {
        let len = client.read(&mut piece).unwrap();
        assert!(len > 0, "{got}");
        got += len;
    }
    (0..2).for_each(|number| net.set_link(number, false));
    sleep(LOST_FOR);
    (0..2).for_each(|number| net.set_link(number, true));
    for _ in 0..40 {
        let told = status(&net);
        let unheard = [0, 1].map(|index| told["uplinks"][index]["unheard"].as_u64());
        assert_eq!(unheard, [None; 2], "the one connection is idle, and the uplinks live");
        sleep(Duration::from_millis(250));
    }
    joined.end().unwrap();
}

/// The only connection ends while an uplink is silent, and the uplink then lives again: nothing shows that, since
/// nothing is sent.
#[test]
fn an_uplink_over_which_nothing_is_due_is_not_silent() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(20 * BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    let joined = start(&net, options(&[Tier::Primary; 2]));
    let transfer = curl(&files, &net, &joined.ready);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 200_000));
    let unheard = || status(&net)["uplinks"][1]["unheard"].as_u64();
    net.set_link(1, false);
    wait_until("it is told", || unheard().is_some());
    drop(transfer);
    net.set_link(1, true);
    wait_until("nothing is due any more", || unheard().is_none());
    joined.end().unwrap();
}
