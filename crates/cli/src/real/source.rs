//! The source: a Multipath TCP socket of the kernel.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use linux::netns::Namespace;
use simulator::Source;
use socket2::{Domain, Protocol, Socket, Type};

use crate::failure::Failure;

/// Longest time the source waits for the destination to connect or to close.
const PATIENCE: Duration = Duration::from_secs(30);
/// Octets handed to the kernel at once.
const PIECE_BYTES: u32 = 1 << 16;

/// A source that sends in a thread of its own. The thread ends with the connection, or when its patience does.
pub struct Sending {
    outcome: Receiver<io::Result<()>>,
}

impl Sending {
    /// Listens in `namespace` and sends `data` on the first connection.
    pub fn start(namespace: &Namespace, listen_at: SocketAddr, data: Source) -> Result<Self, Failure> {
        let listener = namespace.run(|| listen(listen_at))??;
        let (sender, outcome) = channel();
        std::thread::spawn(move || {
            // Nobody listens when the run was interrupted.
            let _ = sender.send(serve(&listener, &data));
        });
        Ok(Self { outcome })
    }

    /// What went wrong.
    pub fn finish(self) -> Option<String> {
        match self.outcome.recv_timeout(PATIENCE) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("the source: {error}")),
            Err(_) => Some("the source did not end".into()),
        }
    }
}

fn listen(at: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::MPTCP))?;
    socket.bind(&at.into())?;
    socket.listen(1)?;
    // Also the limit of `accept`.
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

fn serve(listener: &Socket, data: &Source) -> io::Result<()> {
    let (socket, _) = listener.accept()?;
    let mut stream = TcpStream::from(socket);
    let mut offset = 0;
    loop {
        let piece = data.slice(offset, PIECE_BYTES).to_bytes();
        if piece.is_empty() {
            break;
        }
        stream.write_all(&piece)?;
        offset += piece.len() as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // The destination sends nothing but its end.
    stream.read(&mut [0]).map(|_| ())
}
