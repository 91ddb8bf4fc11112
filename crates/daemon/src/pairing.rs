//! Two devices get to know each other, over TCP on a network that both are on.
//!
//! ```text
//! offer     the relay's end: shows a code, and waits for whoever has it
//! find      where a relay shows a code now
//! accept    the destination's end: a person has typed the code
//! exchange  octets between a stream and either of them
//! ```

mod exchange;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration as StdDuration;

use cooperation::link::pairing::{Borrower, Code, Lender, Pairing, PairingError};
use cooperation::link::{Name, PORT};
use linux::clock::Clock;
use linux::driver::random_seed;
use linux::stop::Stop;
use linux::wait::wait;
use linux::{Error, Result};
use units::Duration;

use crate::discovery::{Announcement, Found, Search};
use crate::sockets;
use crate::store::{Relay, Store};
use exchange::{Broken, Exchange};

/// How long a code is good.
const CODE_LIFE: Duration = Duration::from_secs(300);
/// Wrong codes before it ends: somebody is guessing.
const TRIES: u32 = 5;
/// How long a device may take for its part.
const PATIENCE: Duration = Duration::from_secs(20);
const CONNECT_PATIENCE: StdDuration = StdDuration::from_secs(5);
/// Devices that may wait for their turn.
const BACKLOG: i32 = 4;
/// How long relays are looked for.
const SEARCH: Duration = Duration::from_secs(3);
const SEARCH_STEP: StdDuration = StdDuration::from_millis(250);

/// Shows a code of the relay that lends the interface `shared`, by `say`, and waits until a device has it, or `stop` is triggered. Gives
/// what the device is called here; none: it was stopped.
///
/// # Errors
/// If nobody may listen, all slots are taken, nobody came while the code was good, or somebody guesses.
pub fn offer(
    store: &Store,
    own: &Name,
    shared: &str,
    ipv6: bool,
    stop: &Stop,
    say: &dyn Fn(&str),
) -> Result<Option<Name>> {
    // Better now than when somebody has typed the code.
    store.peers()?.free_slot()?;
    let listener = listen()?;
    let _announcement = Announcement::of_pairing(own, Some(shared)).map_err(|error| say(&error.to_string()));
    let clock = Clock::start();
    let until = clock.now() + CODE_LIFE;
    let (mut code, mut wrong) = (Code::draw(random_seed()?), 0);
    show(code, say);
    let mut ready = Vec::new();
    loop {
        if !wait(&clock, Some(until), stop.as_fd(), [listener.as_fd()], &mut ready)? {
            return Ok(None);
        }
        if clock.now() >= until {
            return Err(Error::Peer(
                "nobody has typed the code in 5 minutes: begin again when the other device is at hand".into(),
            ));
        }
        // Whoever has gone again meanwhile was not serious.
        let Ok((stream, _)) = listener.accept() else { continue };
        match serve(&stream, store, own, ipv6, code, stop) {
            Ok(name) => return Ok(Some(name)),
            Err(Broken::Stopped) => return Ok(None),
            Err(Broken::Own(error)) => return Err(error),
            Err(Broken::Pairing(PairingError::WrongCode)) => {
                wrong += 1;
                if wrong == TRIES {
                    return Err(Error::Peer(format!(
                        "{TRIES} wrong codes: somebody on this network may be guessing; nobody is paired"
                    )));
                }
                code = Code::draw(random_seed()?);
                say("somebody has typed a wrong code, which is no longer good");
                show(code, say);
            }
            Err(Broken::Pairing(error)) => say(&format!("a device was not paired: {error}")),
            Err(Broken::Stream(_)) => {}
        }
    }
}

fn show(code: Code, say: &dyn Fn(&str)) {
    say(&format!(
        "pairing code: {code}   (type it on the other device: anabranch join --pair; if that does not find this one, add its address on \
         the network of both)"
    ));
}

fn serve(stream: &TcpStream, store: &Store, own: &Name, ipv6: bool, code: Code, stop: &Stop) -> Result<Name, Broken> {
    let lender = Lender { name: own.clone() };
    let mut pairing = Pairing::relay(store.identity()?, lender, code, random_seed()?);
    let exchange = Exchange::new(stream, stop, PATIENCE)?;
    let destination = exchange.run(&mut pairing, Pairing::take_octets, Pairing::<Lender>::handle_octets)?;
    let (name, slot) = store.change_peers(|peers| peers.add_destination(destination.name, destination.key))?;
    pairing.confirm(slot, ipv6);
    // It is paired, whether the device hears so or not; if not, it can be paired again.
    let _ = exchange.send(&pairing.take_octets());
    Ok(name)
}

/// Where a relay shows a code now; it must be the only one that is found.
///
/// # Errors
/// If there is none, or there are several: their names and addresses.
pub fn find(stop: &Stop) -> Result<(String, IpAddr)> {
    let search = Search::for_pairing()?;
    let mut found: Vec<(String, IpAddr)> = Vec::new();
    let clock = Clock::start();
    let until = clock.now() + SEARCH;
    while clock.now() < until {
        if stop.is_triggered() {
            return Err(Error::Interrupted);
        }
        let Some(Found { name, addresses, .. }) = search.next(SEARCH_STEP) else { continue };
        if let Some(address) = addresses.first().filter(|_| found.iter().all(|(known, _)| *known != name)) {
            found.push((name, *address));
        }
    }
    match found.as_slice() {
        [] => Err(Error::Peer(
            "no relay that shows a code is found on the networks of this device: run `anabranch relay --pair` there, or name its \
             address (anabranch join --pair ADDRESS)"
                .into(),
        )),
        [one] => Ok(one.clone()),
        several => {
            let list: Vec<String> = several.iter().map(|(name, address)| format!("{name} at {address}")).collect();
            Err(Error::Usage(format!(
                "several relays show a code: {}; name one's address (anabranch join --pair ADDRESS)",
                list.join(", ")
            )))
        }
    }
}

/// Pairs with the relay at `address`, which shows `code`. Gives what it is called here.
///
/// # Errors
/// If nobody pairs there, the code is wrong, or it cannot be written down.
pub fn accept(store: &Store, own: &Name, address: IpAddr, code: Code, stop: &Stop) -> Result<Name> {
    let place = SocketAddr::new(address, PORT);
    let stream = TcpStream::connect_timeout(&place, CONNECT_PATIENCE).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::ConnectionRefused => "it does not pair now: run `anabranch relay --pair` there".into(),
            io::ErrorKind::TimedOut => "nobody answers: is the address right, and no firewall in between?".into(),
            _ => error.to_string(),
        };
        Error::Peer(format!("cannot reach {address} on TCP port {PORT}: {why}"))
    })?;
    // A code is good for one try: first see that what comes of it can be written down.
    store.change_peers(|_| Ok(()))?;
    let mut pairing = Pairing::destination(store.identity()?, own.clone(), code, random_seed()?);
    let paired = Exchange::new(&stream, stop, PATIENCE)
        .and_then(|exchange| exchange.run(&mut pairing, Pairing::take_octets, Pairing::<Borrower>::handle_octets));
    let relay = paired.map_err(|broken| match broken {
        Broken::Stopped => Error::Interrupted,
        Broken::Own(error) => error,
        Broken::Pairing(error) => Error::Peer(error.to_string()),
        Broken::Stream(error) => {
            Error::Peer(format!("the relay breaks off ({error}): look at what it says, and start anew"))
        }
    })?;
    let relay = Relay { name: relay.name, key: relay.key, slot: relay.slot, address, ipv6: relay.ipv6 };
    store.change_peers(|peers| Ok(peers.add_relay(relay)))
}

fn listen() -> Result<TcpListener> {
    // The last pairing's connections may still be dying.
    let bound = sockets::bind_all(socket2::Type::STREAM, PORT, |socket| socket.set_reuse_address(true));
    let listening = bound.and_then(|socket| socket.listen(BACKLOG).map(|()| socket.into()));
    listening
        .map_err(Error::system(format!("listen on TCP port {PORT} (does another `anabranch relay --pair` run here?)")))
}
