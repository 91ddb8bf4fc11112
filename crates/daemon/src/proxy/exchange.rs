//! One plain HTTP request and its answer on their way through the proxy. Sans-IO: octets in, octets out.

use bytes::Bytes;
use linux::http::GrowingHead;

use super::framing::Framing;
use super::head::{ANSWER_HEAD_BYTES_MAX, Asked, Forward, parse_answer};

/// Maximum number of informational answers before the final one.
const INFORMATIONAL_MAX: usize = 100;

/// Progress of a request and its answer.
#[derive(Debug)]
pub struct Exchange {
    /// The request, while it may still be sent again on another connection.
    again: Option<Box<Forward>>,
    request_body: Framing,
    asked: Asked,
    client_keeps: bool,
    server_keeps: bool,
    answer: Answering,
    informational: usize,
}

#[derive(Debug)]
enum Answering {
    /// An incomplete head.
    Head(GrowingHead),
    Body(Framing),
    Done,
}

/// Meaning of the end of the server's stream, or of its reset.
#[derive(Debug)]
pub enum Ended {
    /// The answer is complete.
    Whole,
    /// The server closed a reused connection instead of answering: the request goes on another one.
    Again(Box<Forward>),
    /// There was no answer at all.
    Nothing,
    /// The answer is cut off.
    Cut,
}

impl Exchange {
    /// Starts with a request whose head is on its way. `reused`: the connection has carried an earlier exchange.
    pub fn new(forward: Forward, reused: bool) -> Self {
        Self {
            request_body: forward.body.clone(),
            asked: forward.asked,
            client_keeps: forward.keep_alive,
            server_keeps: true,
            answer: Answering::Head(GrowingHead::default()),
            informational: 0,
            again: (reused && forward.repeatable).then(|| Box::new(forward)),
        }
    }

    /// Whether more of the request must come.
    pub fn wants_request(&self) -> bool {
        !self.request_body.is_done()
    }

    /// Returns how many of the client's next octets belong to the request.
    ///
    /// # Errors
    /// If its chunks are malformed.
    pub fn pass_request(&mut self, octets: &[u8]) -> Result<usize, &'static str> {
        self.request_body.pass(octets).map_err(|_| "the chunks of the request are malformed")
    }

    /// Returns what the client gets for the server's next octets.
    ///
    /// # Errors
    /// Says what is wrong with them.
    pub fn pass_answer(&mut self, octets: Bytes) -> Result<Bytes, &'static str> {
        let mut out = Vec::new();
        let mut rest = octets;
        if let Answering::Head(head) = &mut self.answer {
            if !rest.is_empty() {
                self.again = None;
            }
            let Some(inbox) = head.push(&rest) else { return Ok(Bytes::new()) };
            rest = self.pass_heads(inbox, &mut out)?;
        }
        let Answering::Body(framing) = &mut self.answer else {
            // Octets that were not requested: the connection cannot be used again.
            self.server_keeps &= rest.is_empty() || matches!(self.answer, Answering::Head(_));
            return Ok(out.into());
        };
        let by_old = self.asked.by_old;
        let passed = if by_old { framing.take_content(&rest, &mut out) } else { framing.pass(&rest) };
        let passed = passed.map_err(|_| "the chunks of its answer are malformed")?;
        self.server_keeps &= passed == rest.len();
        if framing.is_done() {
            self.answer = Answering::Done;
        }
        if by_old {
            return Ok(out.into());
        }
        rest.truncate(passed);
        if out.is_empty() {
            return Ok(rest);
        }
        out.extend_from_slice(&rest);
        Ok(out.into())
    }

    /// Reads heads up to the final one. Returns what follows it.
    fn pass_heads(&mut self, mut inbox: Vec<u8>, out: &mut Vec<u8>) -> Result<Bytes, &'static str> {
        loop {
            let Some((answer, len)) = parse_answer(&inbox, self.asked)? else {
                self.answer = Answering::Head(GrowingHead::read(inbox, ANSWER_HEAD_BYTES_MAX));
                return Ok(Bytes::new());
            };
            inbox.drain(..len);
            if answer.is_informational {
                self.informational += 1;
                if self.informational > INFORMATIONAL_MAX {
                    return Err("it sends informational answers without end");
                }
                if !self.asked.by_old {
                    out.extend(answer.finish(false));
                }
                continue;
            }
            self.server_keeps &= answer.keep_alive;
            self.client_keeps &= answer.body != Framing::UntilClose && self.request_body.is_done();
            self.answer = Answering::Body(answer.body.clone());
            out.extend(answer.finish(!self.client_keeps));
            return Ok(inbox.into());
        }
    }

    /// Handles the end of the server's stream. `orderly`: the server has not reset the connection.
    pub fn server_ended(&mut self, orderly: bool) -> Ended {
        self.server_keeps = false;
        match &self.answer {
            Answering::Done => Ended::Whole,
            Answering::Body(Framing::UntilClose) if orderly => {
                self.answer = Answering::Done;
                Ended::Whole
            }
            Answering::Body(framing) if framing.is_done() => Ended::Whole,
            Answering::Body(_) => Ended::Cut,
            Answering::Head(inbox) if inbox.is_empty() => self.again.take().map_or(Ended::Nothing, Ended::Again),
            Answering::Head(_) => Ended::Nothing,
        }
    }

    /// Whether the answer is complete. The rest of the request is then no longer needed.
    pub fn is_answered(&self) -> bool {
        match &self.answer {
            Answering::Done => true,
            Answering::Body(framing) => framing.is_done(),
            Answering::Head(_) => false,
        }
    }

    /// Whether no part of an answer has been passed on, so the proxy can give another one.
    pub fn is_silent(&self) -> bool {
        matches!(self.answer, Answering::Head(_)) && (self.informational == 0 || self.asked.by_old)
    }

    /// Whether the request may go on another connection if this one ends now.
    pub fn can_begin_again(&self) -> bool {
        self.again.is_some()
    }

    /// Whether the client's and the server's connection can be used again.
    pub fn keeps(&self) -> (bool, bool) {
        let request_done = self.request_body.is_done();
        (self.client_keeps && request_done, self.server_keeps && request_done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::{Request, parse_request};
    use super::*;

    fn exchange(request: &str, reused: bool) -> Exchange {
        match parse_request(request.as_bytes()).unwrap().unwrap().0 {
            Request::Forward(forward) => Exchange::new(*forward, reused),
            Request::Connect(target) => panic!("{target}"),
        }
    }

    const GET: &str = "GET http://h/ HTTP/1.1\r\n\r\n";
    const ANSWER: &[u8] =
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        5\r\nhello\r\n0\r\n\r\n";

    const GET_OLD: &str = "GET http://h/ HTTP/1.0\r\n\r\n";
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\nContent-Length: 3\r\n\r\n\
        2\r\nhe\r\n3;x\r\nllo\r\n0\r\nX: 1\r\n\r\n";

    fn pass_all(exchange: &mut Exchange, octets: &[u8], size: usize) -> Vec<u8> {
        octets.chunks(size).flat_map(|piece| exchange.pass_answer(Bytes::copy_from_slice(piece)).unwrap()).collect()
    }

    #[test]
    fn an_answer_passes_however_it_is_cut() {
        let expected = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
            Via: 1.1 anabranch\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        for size in 1..=ANSWER.len() {
            let mut exchange = exchange(GET, false);
            let passed = pass_all(&mut exchange, ANSWER, size);
            assert_eq!(String::from_utf8(passed).unwrap(), expected, "{size}");
            assert!(exchange.is_answered());
            assert_eq!(exchange.keeps(), (true, true));
        }
    }

    #[test]
    fn a_client_without_chunks_gets_what_they_hold() {
        let expected = "HTTP/1.1 200 OK\r\nVia: 1.1 anabranch\r\nConnection: close\r\n\r\nhello";
        for size in 1..=CHUNKED.len() {
            let mut exchange = exchange(GET_OLD, false);
            let passed = pass_all(&mut exchange, CHUNKED, size);
            assert_eq!(String::from_utf8(passed).unwrap(), expected, "{size}");
            assert!(exchange.is_answered() && !exchange.keeps().0);
        }
        // The client takes every end of the stream but a reset for the end of the answer.
        for cut in 0..CHUNKED.len() {
            let mut exchange = exchange(GET_OLD, false);
            pass_all(&mut exchange, &CHUNKED[..cut], 1000);
            assert!(matches!(exchange.server_ended(true), Ended::Nothing | Ended::Cut), "{cut}");
        }
    }

    #[test]
    fn a_client_that_knows_no_informational_answers_gets_none() {
        let mut exchange = exchange(GET_OLD, false);
        let hints = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
        assert!(pass_all(&mut exchange, hints, 1000).is_empty() && exchange.is_silent());
        assert!(pass_all(&mut exchange, ANSWER, 1000).starts_with(b"HTTP/1.1 200 OK\r\n"));
    }

    #[test]
    fn what_follows_an_answer_is_not_passed_on() {
        let mut exchange = exchange(GET, false);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n";
        let passed = pass_all(&mut exchange, answer, answer.len());
        assert!(passed.ends_with(b"\r\n\r\nok"));
        assert_eq!(exchange.keeps(), (true, false));
    }

    #[test]
    fn an_answer_until_the_end_ends_both_connections() {
        let mut exchange = exchange(GET, false);
        let passed = pass_all(&mut exchange, b"HTTP/1.0 200 OK\r\n\r\nabc", 1000);
        assert!(String::from_utf8(passed).unwrap().contains("Connection: close"));
        assert!(!exchange.is_answered());
        assert!(matches!(exchange.server_ended(true), Ended::Whole));
        assert_eq!(exchange.keeps(), (false, false));
    }

    #[test]
    fn ends_are_told_apart() {
        let ended = |request: &str, reused: bool, octets: &[u8]| {
            let mut exchange = exchange(request, reused);
            pass_all(&mut exchange, octets, 1000);
            exchange.server_ended(true)
        };
        assert!(matches!(ended(GET, true, b""), Ended::Again(_)));
        assert!(matches!(ended(GET, false, b""), Ended::Nothing));
        assert!(matches!(ended(GET, true, b"HTTP/1.1"), Ended::Nothing));
        let of_method =
            |method: &str, body: &str| ended(&format!("{method} http://h/ HTTP/1.1\r\n{body}\r\n"), true, b"");
        for method in ["HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
            assert!(matches!(of_method(method, ""), Ended::Again(_)), "{method}");
        }
        assert!(matches!(of_method("PUT", "Content-Length: 0\r\n"), Ended::Again(_)));
        assert!(matches!(of_method("PUT", "Content-Length: 1\r\n"), Ended::Nothing));
        assert!(matches!(of_method("PUT", "Transfer-Encoding: chunked\r\n"), Ended::Nothing));
        assert!(matches!(of_method("POST", "Content-Length: 1\r\n"), Ended::Nothing));
        assert!(matches!(of_method("POST", ""), Ended::Nothing));
        assert!(matches!(of_method("PATCH", ""), Ended::Nothing));
        assert!(matches!(ended(GET, false, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), Ended::Cut));
    }

    #[test]
    fn an_answer_before_the_whole_request_ends_the_connection() {
        let mut exchange = exchange("POST http://h/ HTTP/1.1\r\nContent-Length: 9\r\n\r\n", false);
        assert_eq!(exchange.pass_request(b"abc"), Ok(3));
        let passed = pass_all(&mut exchange, b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", 1000);
        assert!(String::from_utf8(passed).unwrap().contains("Connection: close"));
        assert!(exchange.is_answered() && exchange.keeps() == (false, false));
    }

    #[test]
    fn faults_of_servers_are_errors() {
        assert!(exchange(GET, false).pass_answer(Bytes::from_static(b"SSH-2.0\r\n\r\n")).is_err());
        let hints = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(200);
        assert!(exchange(GET, false).pass_answer(hints.into()).is_err());
    }
}
