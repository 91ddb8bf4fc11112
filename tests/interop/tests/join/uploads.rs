//! Distance between the octets accepted from a client and the octets sent.

use super::*;

const RATE_BPS: f64 = 4e6;
const SPAN_S: f64 = 2.0;

/// Discards its input.
const SINK: &str = "
import socket, threading
def sink(client):
    while client.recv(1 << 20): pass
server = socket.create_server(('', 8414))
while True:
    threading.Thread(target=sink, args=(server.accept()[0],), daemon=True).start()
";

/// Sends as fast as it can for a while, through a proxy, and prints how many octets were accepted.
const SOURCE: &str = "
import socket, sys, time
host, port, span = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
stream = socket.socket()
# What waits in its own socket is not the proxy's.
stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
stream.connect((host, port))
stream.sendall(b'CONNECT 10.9.9.9:8414 HTTP/1.1\\r\\nHost: 10.9.9.9:8414\\r\\n\\r\\n')
assert b' 200 ' in stream.recv(1000)
until, taken, piece = time.monotonic() + span, 0, bytes(1 << 16)
while (left := until - time.monotonic()) > 0:
    stream.settimeout(left)
    try:
        taken += stream.send(piece)
    except TimeoutError:
        break
print(taken)
";

/// A program that shows progress, or is interrupted, must know how far it is: megabytes that wait here are a minute of
/// a slow uplink.
#[test]
fn a_client_is_not_far_ahead_of_what_has_left() {
    let link = format!("rate = '{RATE_BPS} bit/s'\ndelay = '20 ms'");
    let Some(net) = Tethered::new([&link, &link]) else { return };
    for program in [&["mptcpize", "run", "python3"][..], &["python3"]] {
        let mut command = net.server().command(program[0]).unwrap();
        let _server = Running(command.args(&program[1..]).args(["-c", SINK]).spawn().unwrap());
        let listens = || output(net.server(), "ss", &["-ltnH", "sport", "=", ":8414"]).contains("8414");
        wait_until("the server listens", listens);
        let joined = start(&net, options(&[Tier::Primary; 2]));
        let (host, port) = joined.ready.rsplit_once(':').unwrap();
        let taken = output(&net.laptop, "python3", &["-c", SOURCE, host, port, &SPAN_S.to_string()]);
        let ahead = taken.trim().parse::<f64>().unwrap() - 2.0 * RATE_BPS / 8.0 * SPAN_S;
        assert!(ahead < 1.5e6, "{}: {ahead} octets ahead", program[0]);
        joined.end().unwrap();
    }
}
