use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;

fn request(text: &str) -> Result<Request, Refusal> {
    parse_request(text.as_bytes()).map(|request| request.expect("a whole request").0)
}

fn forwarded(text: &str) -> Forward {
    match request(text) {
        Ok(Request::Forward(forward)) => *forward,
        other => panic!("{other:?}"),
    }
}

fn head_of(forward: &Forward) -> String {
    String::from_utf8(forward.head.clone()).unwrap()
}

fn status(text: &str) -> u16 {
    request(text).unwrap_err().status.0
}

#[test]
fn a_request_is_passed_on_in_origin_form_without_what_is_ours() {
    let forward = forwarded(
        "GET http://Server.test/a?b=1#c HTTP/1.1\r\nHost: elsewhere\r\nProxy-Connection: keep-alive\r\nConnection: X-Own, close\r\n\
         X-Own: 1\r\nAccept: */*\r\nTE: trailers\r\nUpgrade: h2c\r\nProxy-Authorization: Basic x\r\n\r\n",
    );
    assert_eq!(
        head_of(&forward),
        "GET /a?b=1 HTTP/1.1\r\nHost: Server.test\r\nAccept: */*\r\nVia: 1.1 anabranch\r\n\r\n"
    );
    assert_eq!(forward.target.to_string(), "server.test:80");
    assert!(!forward.keep_alive && forward.repeatable && forward.body.is_done());
}

#[test]
fn what_may_be_passed_on_a_number_of_times_is() {
    let ask = |method: &str, fields: &str| format!("{method} http://h/ HTTP/1.1\r\n{fields}\r\n");
    for method in ["OPTIONS", "TRACE"] {
        let left = |count: &str| head_of(&forwarded(&ask(method, &format!("Max-forwards: {count}\r\n"))));
        assert!(left("2").contains("\r\nMax-Forwards: 1\r\n") && !left("2").contains(": 2"), "{}", left("2"));
        assert!(left("1").contains("\r\nMax-Forwards: 0\r\n"));
        assert!(left("99999999999999999999").contains(&format!("\r\nMax-Forwards: {}\r\n", u64::MAX - 1)));
        assert_eq!(status(&ask(method, "Max-Forwards: 0\r\n")), 501);
        for odd in ["Max-Forwards: +1\r\n", "Max-Forwards:\r\n", "Max-Forwards: 1\r\nMax-Forwards: 2\r\n"] {
            assert_eq!(status(&ask(method, odd)), 400, "{odd}");
        }
        assert!(!head_of(&forwarded(&ask(method, ""))).contains("Max"));
    }
    assert!(head_of(&forwarded(&ask("GET", "Max-Forwards: 0\r\n"))).contains("\r\nMax-Forwards: 0\r\n"));
}

/// RFC 9112 section 5.1.
#[test]
fn a_space_before_a_colon_is_removed_from_an_answer_and_refused_in_a_request() {
    let text = "HTTP/1.1 200 OK\r\nContent-Type : text/html\r\nContent-Length \t: 4\r\n\r\n";
    let (answer, _) = parse_answer(text.as_bytes(), ASKED).unwrap().unwrap();
    assert_eq!(answer.body, Framing::Length(4));
    let head = String::from_utf8(answer.head).unwrap();
    assert!(head.contains("\r\nContent-Type: text/html\r\nContent-Length: 4\r\n"), "{head}");
    assert_eq!(status("GET http://h/ HTTP/1.1\r\nContent-Length : 4\r\n\r\n"), 400);
    // A continued line is neither.
    assert!(parse_answer(b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", ASKED).is_err());
}

#[test]
fn paths_are_completed() {
    let line = |text: &str| head_of(&forwarded(text)).lines().next().unwrap().to_owned();
    assert_eq!(line("GET http://h HTTP/1.1\r\n\r\n"), "GET / HTTP/1.1");
    assert_eq!(line("GET http://h:81?q HTTP/1.1\r\n\r\n"), "GET /?q HTTP/1.1");
    assert_eq!(line("OPTIONS http://h HTTP/1.1\r\n\r\n"), "OPTIONS * HTTP/1.1");
    assert_eq!(line("GET HTTP://h/ HTTP/1.0\r\n\r\n"), "GET / HTTP/1.0");
    let old = forwarded("GET http://h/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(!old.keep_alive && old.asked.by_old && head_of(&old).contains("\r\nConnection: close\r\n"));
}

#[test]
fn bodies_are_told_by_length_or_chunks() {
    let forward = forwarded("POST http://h/ HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
    assert_eq!(forward.body, Framing::Length(5));
    assert!(!forward.repeatable && head_of(&forward).contains("Content-Length: 5\r\nExpect: 100-continue\r\n"));
    let chunked =
        forwarded("PUT http://h/ HTTP/1.1\r\nTransfer-Encoding: Chunked\r\nConnection: transfer-encoding\r\n\r\n");
    assert_eq!(chunked.body, Framing::chunked());
    assert!(head_of(&chunked).contains("Transfer-Encoding: Chunked"), "nobody may take the framing away");
    let measured = forwarded("PUT http://h/ HTTP/1.1\r\nContent-Length: 5\r\nConnection: Content-length, host\r\n\r\n");
    assert!(head_of(&measured).contains("\r\nHost: h\r\nContent-Length: 5\r\n"), "{}", head_of(&measured));
}

#[test]
fn what_is_ambiguous_or_no_proxy_request_is_refused() {
    assert_eq!(status("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    assert!(request("GET / HTTP/1.1\r\n\r\n").unwrap_err().why.contains("not a web server"));
    assert_eq!(status("GET https://h/ HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(status("GET ftp://h/ HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(status("GET http://u:p@h/ HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(status("GET http:///x HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(status("CONNECT h HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(status("CONNECT h:0 HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(status("POST http://h/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"), 400);
    assert_eq!(status("POST http://h/ HTTP/1.1\r\nContent-Length: +5\r\n\r\n"), 400);
    assert_eq!(status("POST http://h/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
    assert_eq!(status("POST http://h/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), 501);
    assert_eq!(status("POST http://h/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
    assert_eq!(status("\x16\x03\x01 TLS\r\n\r\n"), 400);
    assert_eq!(status("GET http://h/ HTTP/2.0\r\n\r\n"), 505);
    assert_eq!(status("GET http://h/a b HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    assert_eq!(status(&format!("GET http://h/{} HTTP/1.1\r\n", "a".repeat(HEAD_BYTES_MAX))), 431);
}

#[test]
fn as_many_fields_are_taken_as_servers_take() {
    let with_fields = |line: &str, count: usize| format!("{line}\r\n{}\r\n", "X: 1\r\n".repeat(count));
    let to_server = |count| request(&with_fields("GET http://h/ HTTP/1.1", count));
    assert!(to_server(FIELDS_MAX).is_ok());
    let refusal = to_server(FIELDS_MAX + 1).unwrap_err();
    assert_eq!((refusal.status.0, refusal.why.as_str()), (431, "the request's head has more than 256 fields"));
    let to_client = |count| answer(&with_fields("HTTP/1.1 200 OK", count));
    assert!(to_client(FIELDS_MAX).is_ok());
    assert_eq!(to_client(FIELDS_MAX + 1).unwrap_err(), format!("its answer has more than {FIELDS_MAX} fields"));
}

#[test]
fn an_answer_may_have_a_longer_head_than_a_request() {
    let long = |bytes: usize| parse_answer(format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(bytes)).as_bytes(), ASKED);
    assert_eq!(long(200 << 10), Ok(None));
    assert_eq!(long(256 << 10), Err("its answer's head is longer than 256 KiB"));
}

#[test]
fn a_websocket_is_told_how_it_gets_through() {
    let refusal =
        request("GET http://h/chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c, WebSocket\r\n\r\n")
            .unwrap_err();
    assert!(refusal.status.0 == 501 && refusal.why.contains("CONNECT"), "{refusal:?}");
}

#[test]
fn requests_arrive_in_pieces() {
    let text = b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n";
    for cut in 0..text.len() {
        assert_eq!(parse_request(&text[..cut]), Ok(None), "{cut}");
    }
    let longer = [&text[..], b"\x16\x03"].concat();
    let (request, len) = parse_request(&longer).unwrap().unwrap();
    assert_eq!((request, len), (Request::Connect(Target::parse("[2001:db8::1]:443", None).unwrap()), text.len()));
}

const ASKED: Asked = Asked { for_head: false, by_old: false };
const ASKED_BY_OLD: Asked = Asked { by_old: true, ..ASKED };

fn answer(text: &str) -> Result<Answer, &'static str> {
    parse_answer(text.as_bytes(), ASKED).map(|answer| answer.unwrap().0)
}

#[test]
fn answers_are_passed_on_without_what_is_the_server_s() {
    let text = "HTTP/1.1 200 OK\r\nConnection: keep-alive, x-hop\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\nServer: s\r\n\
        Content-Length: 3\r\n\r\nabc";
    let (answer, len) = parse_answer(text.as_bytes(), ASKED).unwrap().unwrap();
    assert!(answer.keep_alive && answer.body == Framing::Length(3) && &text[len..] == "abc");
    let head = String::from_utf8(answer.finish(true)).unwrap();
    let expected =
        "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nVia: 1.1 anabranch\r\nConnection: close\r\n\r\n";
    assert_eq!(head, expected);
}

#[test]
fn a_repeated_length_reaches_the_client_once() {
    let repeated = ["Content-Length: 3, 3", "Content-Length: 3\r\nX: 1\r\ncontent-length: 3", "Content-Length: 3 , 03"];
    for fields in repeated {
        for asked in [ASKED, Asked { for_head: true, ..ASKED }, ASKED_BY_OLD] {
            let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\nServer: s\r\n\r\n");
            let (answer, _) = parse_answer(text.as_bytes(), asked).unwrap().unwrap();
            assert_eq!(answer.body, if asked.for_head { Framing::NONE } else { Framing::Length(3) });
            let head = String::from_utf8(answer.finish(false)).unwrap();
            let lengths: Vec<&str> = head.lines().filter(|line| line.to_lowercase().contains("length")).collect();
            assert_eq!(lengths, ["Content-Length: 3"], "{head}");
        }
    }
}

#[test]
fn a_server_cannot_take_the_framing_away() {
    for field in ["Content-Length: 3", "Transfer-Encoding: chunked"] {
        let text = format!("HTTP/1.1 200 OK\r\n{field}\r\nConnection: content-length, TRANSFER-ENCODING\r\n\r\n");
        let head = String::from_utf8(answer(&text).unwrap().finish(false)).unwrap();
        assert_eq!(head, format!("HTTP/1.1 200 OK\r\n{field}\r\nVia: 1.1 anabranch\r\n\r\n"));
    }
}

#[test]
fn how_answers_end() {
    let body = |text: &str| answer(text).map(|answer| answer.body);
    assert_eq!(body("HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n"), Ok(Framing::NONE));
    assert_eq!(body("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n"), Ok(Framing::NONE));
    assert_eq!(
        body("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nContent-Length: 3\r\n\r\n"),
        Ok(Framing::chunked())
    );
    assert_eq!(body("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"), Ok(Framing::UntilClose));
    assert_eq!(body("HTTP/1.0 200 OK\r\n\r\n"), Ok(Framing::UntilClose));
    assert!(body("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
    assert!(body("HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\n").is_err());
    assert!(body("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n").is_err());
    assert!(body("HTTP/1.1 101 Switching Protocols\r\n\r\n").is_err());
    assert!(body("SSH-2.0-OpenSSH\r\n").is_err());
    let asked = Asked { for_head: true, ..ASKED };
    let (to_head, _) = parse_answer(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", asked).unwrap().unwrap();
    assert_eq!(to_head.body, Framing::NONE);
}

#[test]
fn clients_without_chunks_hear_of_none() {
    let answer = |text: &str, asked| parse_answer(text.as_bytes(), asked).map(|answer| answer.unwrap().0);
    let text = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nTrailer: X\r\nContent-Length: 3\r\n\r\n";
    let to_old = answer(text, ASKED_BY_OLD).unwrap();
    assert_eq!(to_old.body, Framing::chunked());
    assert_eq!(to_old.finish(true), b"HTTP/1.1 200 OK\r\nVia: 1.1 anabranch\r\nConnection: close\r\n\r\n");
    let to_head = answer(text, Asked { for_head: true, ..ASKED_BY_OLD }).unwrap();
    assert_eq!(to_head.finish(true), b"HTTP/1.1 200 OK\r\nVia: 1.1 anabranch\r\nConnection: close\r\n\r\n");
    for coding in ["gzip", "gzip, chunked"] {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n");
        assert!(answer(&text, ASKED_BY_OLD).unwrap_err().contains("HTTP/1.0"));
    }
}

#[test]
fn informational_answers_stay_as_they_are() {
    let answer = answer("HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    assert!(answer.is_informational && answer.keep_alive);
    assert_eq!(answer.finish(true), b"HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn own_answers_have_their_length() {
    let text = String::from_utf8(own_answer((502, "Bad Gateway"), "no")).unwrap();
    assert!(text.starts_with("HTTP/1.1 502 Bad Gateway\r\n") && text.contains("Content-Length: 14\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\nanabranch: no\n"));
}

proptest! {
    #[test]
    fn any_octets_are_taken_calmly(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_request(&octets);
        let _ = parse_answer(&octets, ASKED);
        let _ = parse_request(&[b"GET http://h/ HTTP/1.1\r\n", &octets[..], b"\r\n\r\n"].concat());
    }
}

/// Fields that concern the framing of messages, and how the names may be written.
const DANGEROUS: [&str; 8] =
    ["Content-Length", "Transfer-Encoding", "Host", "Trailer", "Upgrade", "Keep-Alive", "Proxy-Authorization", "X-Own"];

fn in_any_case(name: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![Just(name.to_owned()), Just(name.to_ascii_lowercase()), Just(name.to_ascii_uppercase())]
}

fn dangerous_name() -> impl Strategy<Value = String> {
    proptest::sample::select(&DANGEROUS[..]).prop_flat_map(in_any_case)
}

/// One field, usually valid; those of Connection name other fields.
fn field() -> impl Strategy<Value = String> {
    let options = proptest::collection::vec(prop_oneof![3 => dangerous_name(), 1 => in_any_case("Close")], 1..4);
    let connection = prop_oneof![3 => in_any_case("Connection"), 1 => in_any_case("Proxy-Connection")];
    let length = proptest::sample::select(vec!["0", "5", " 17 ", "5, 5", "+5"]);
    let coding = proptest::sample::select(vec!["chunked", "Chunked", "gzip", "gzip, chunked"]);
    prop_oneof![
        6 => (connection, options).prop_map(|(name, options)| format!("{name}: {}", options.join(" , "))),
        3 => (in_any_case("Content-Length"), length).prop_map(|(name, length)| format!("{name}:{length}")),
        3 => (in_any_case("Transfer-Encoding"), coding).prop_map(|(name, coding)| format!("{name}: {coding}")),
        2 => (dangerous_name(), "[ -~]{0,9}").prop_map(|(name, value)| format!("{name}: {value}")),
        1 => "[!-~][ -~]{0,19}",
    ]
}

/// Runs `check`, which returns whether a head was taken that has a body, with many lists of fields.
fn with_many_fields(check: impl Fn(&str) -> Result<bool, TestCaseError>) {
    let with_body = core::cell::Cell::new(0);
    let config = ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() };
    let tried = TestRunner::new(config).run(&proptest::collection::vec(field(), 0..5), |fields| {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        with_body.set(with_body.get() + u32::from(check(&fields)?));
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
    assert!(with_body.get() > 50, "only {} of 1000 heads were taken and have a body", with_body.get());
}

/// Whatever a client sends, the octets after the proxy's head are what the proxy takes for its body.
#[test]
fn heads_hold_one_request() {
    with_many_fields(|fields| {
        let text = format!("POST http://h/ HTTP/1.1\r\n{fields}\r\n");
        let Ok(Some((Request::Forward(forward), len))) = parse_request(text.as_bytes()) else { return Ok(false) };
        prop_assert_eq!(len, text.len());
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut parsed = httparse::Request::new(&mut fields);
        prop_assert_eq!(parsed.parse(&forward.head), Ok(httparse::Status::Complete(forward.head.len())));
        prop_assert_eq!(request_body(1, parsed.headers), Ok(forward.body.clone()));
        let hosts = parsed.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
        prop_assert_eq!(hosts.map(|field| field.value).collect::<Vec<_>>(), [b"h"]);
        Ok(!forward.body.is_done())
    });
}

/// Whatever a server sends, the client finds the end of the answer where the proxy does.
#[test]
fn heads_hold_one_answer() {
    with_many_fields(|fields| {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let Ok(Some((answer, len))) = parse_answer(text.as_bytes(), ASKED) else { return Ok(false) };
        prop_assert_eq!(len, text.len());
        let (body, head) = (answer.body.clone(), answer.finish(false));
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut parsed = httparse::Response::new(&mut fields);
        prop_assert_eq!(parsed.parse(&head), Ok(httparse::Status::Complete(head.len())));
        prop_assert_eq!(answer_body(1, false, parsed.headers), Ok(body.clone()));
        prop_assert!(coding(parsed.headers).is_none() || length(parsed.headers).is_none());
        Ok(!body.is_done() && body != Framing::UntilClose)
    });
}
