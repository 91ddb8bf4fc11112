//! Requests of applications beside sending and receiving, as they show on the wire: corks, settings that change during
//! the connection, half shutdown for reading.

use transport::error::{ChangeError, CloseReason, ConnectionError, UnusableSetting};
use transport::{ConnectionConfig, Event, Received, SettingsChange, SubflowId};
use units::Duration;
use wire::{Flags, Pattern, Payload};

use crate::script::{Script, config};

fn cork(script: &mut Script, corked: bool) {
    script.command(|endpoint, id, now| endpoint.set_corked(id, corked, now)).unwrap();
}

fn send_more(script: &mut Script, bytes: u32) -> usize {
    let data = Payload::Pattern(Pattern { stream: 5, offset: 0, len: bytes });
    script.command(|endpoint, id, now| endpoint.send_more(id, data, now)).unwrap()
}

fn change(script: &mut Script, change: &SettingsChange) -> Result<(), ChangeError> {
    script.command(|endpoint, id, now| endpoint.change(id, change, now))
}

/// Nagle would send the first 300 octets at once, because nothing is in flight.
#[test]
fn with_a_cork_only_whole_segments_leave() {
    let mut script = Script::ready();
    cork(&mut script, true);
    script.send(300);
    script.silent_until(1000);
    script.send(1900);
    script.expect("A 1+1000 ack 1");
    let last = script.expect("A 1001+1000 ack 1");
    assert!(!last.flags.contains(Flags::PSH), "more will follow");
    script.inject("A 1 ack 2001");
    script.silent_until(60_000);
    cork(&mut script, false);
    assert!(script.expect("A 2001+200 ack 1").flags.contains(Flags::PSH));
}

#[test]
fn more_lasts_until_the_next_data() {
    let mut script = Script::ready();
    assert_eq!(send_more(&mut script, 300), 300);
    script.silent_until(1000);
    assert_eq!(send_more(&mut script, 300), 300);
    script.silent_until(2000);
    script.send(10);
    script.expect("A 1+610 ack 1");
    script.inject("A 1 ack 611");
    send_more(&mut script, 5);
    script.expect_nothing();
    cork(&mut script, false);
    script.expect("A 611+5 ack 1");
}

#[test]
fn the_end_of_the_stream_pulls_the_cork() {
    let mut script = Script::ready();
    cork(&mut script, true);
    script.send(300);
    script.expect_nothing();
    script.shutdown();
    script.expect("FA 1+300 ack 1");
}

/// A buffer smaller than a segment would never fill one, so data that fill three quarters of it leave.
#[test]
fn a_cork_does_not_outwait_a_small_buffer() {
    let mut script = Script::established(ConnectionConfig { send_buffer_bytes: 800, ..config() }, "win 65535 mss 1000");
    cork(&mut script, true);
    script.send(600);
    script.expect_nothing();
    assert_eq!(send_more(&mut script, 500), 200);
    script.expect("A 1+800 ack 1");
    script.inject("A 1 ack 801");
    assert!(script.events.iter().any(|event| matches!(event, Event::Writable(_))));
}

/// Super-segments count as whole segments.
#[test]
fn a_cork_holds_back_the_rest_of_a_super_segment() {
    let offload = ConnectionConfig { offload_max_bytes: 65_000, ..config() };
    let mut script = Script::established(offload, "win 65535 mss 1000");
    cork(&mut script, true);
    script.send(3500);
    script.expect("A 1+3000 ack 1");
    script.expect_nothing();
    cork(&mut script, false);
    script.inject("A 1 ack 3001");
    script.expect("A 3001+500 ack 1");
}

#[test]
fn without_nagle_what_waits_leaves_at_once() {
    let mut script = Script::ready();
    script.send(300);
    script.expect("A 1+300 ack 1");
    script.send(300);
    script.expect_nothing();
    change(&mut script, &SettingsChange { nagle: Some(false), ..SettingsChange::default() }).unwrap();
    script.expect("A 301+300 ack 1");
}

#[test]
fn keep_alive_begins_and_ends_on_request() {
    let keep_alive = |idle| SettingsChange { keep_alive: Some(idle), ..SettingsChange::default() };
    let mut script = Script::ready();
    script.run_until(5_100);
    change(&mut script, &keep_alive(Some(Duration::from_secs(10)))).unwrap();
    // The peer was last heard after 100 ms.
    script.silent_until(10_099);
    script.expect_at(10_100, "A 0 ack 1");
    script.inject("A 1 ack 1");
    script.expect_at(20_100, "A 0 ack 1");
    script.inject("A 1 ack 1");
    change(&mut script, &keep_alive(None)).unwrap();
    script.silent_until(1_000_000);
    change(&mut script, &keep_alive(Some(Duration::from_secs(10)))).unwrap();
    script.expect_at(1_000_000, "A 0 ack 1");
}

/// Data outstanding for 5 s are given up after 20 s in all, instead of 300.
#[test]
fn the_user_timeout_holds_for_what_is_outstanding() {
    let mut script = Script::ready();
    script.send(1000);
    script.run_for(5_000);
    let shorter = SettingsChange { user_timeout: Some(Duration::from_secs(20)), ..SettingsChange::default() };
    change(&mut script, &shorter).unwrap();
    script.run_for(14_900);
    assert!(!script.events.iter().any(|event| matches!(event, Event::Closed { .. })));
    script.run_for(200);
    let closed = script.events.iter().any(|event| matches!(event, Event::Closed { reason: CloseReason::TimedOut, .. }));
    assert!(closed, "{:?}", script.events);
}

#[test]
fn a_larger_send_buffer_takes_more_and_a_smaller_one_waits() {
    let send_buffer = |bytes| SettingsChange { send_buffer_bytes: Some(bytes), ..SettingsChange::default() };
    let mut script = Script::established(ConnectionConfig { send_buffer_bytes: 2000, ..config() }, "win 0 mss 1000");
    assert_eq!(send_more(&mut script, 3000), 2000);
    let capacity = |script: &Script| script.endpoint.send_capacity(script.id());
    assert_eq!(capacity(&script), 0);
    change(&mut script, &send_buffer(8000)).unwrap();
    assert_eq!(capacity(&script), 6000);
    assert!(script.events.iter().any(|event| matches!(event, Event::Writable(_))), "there is room again");
    change(&mut script, &send_buffer(500)).unwrap();
    assert_eq!((capacity(&script), send_more(&mut script, 1)), (0, 0));
}

/// Data in flight do not count, so the connection is as fast; only little data wait for transmission.
#[test]
fn no_more_waits_to_be_sent_than_is_asked_for() {
    let little = ConnectionConfig { unsent_max_bytes: 2500, ..config() };
    let mut script = Script::established(little, "win 0 mss 1000");
    assert_eq!(send_more(&mut script, 9000), 2500);
    assert_eq!(send_more(&mut script, 9000), 0);
    let told = |script: &Script| script.events.iter().filter(|event| matches!(event, Event::Writable(_))).count();
    assert_eq!(told(&script), 0);
    script.inject("A 1 ack 1 win 4000");
    script.expect("A 1+1000 ack 1");
    script.expect("A 1001+1000 ack 1");
    script.drain();
    assert_eq!(told(&script), 1, "there is room although nothing is acknowledged");
    assert_eq!(script.endpoint.send_capacity(script.id()), 2000);
    let more = SettingsChange { unsent_max_bytes: Some(10_000), ..SettingsChange::default() };
    change(&mut script, &more).unwrap();
    assert_eq!(send_more(&mut script, 20_000), 9500);
}

/// An application that sends on every notice of room would be kept busy by notices without room.
#[test]
fn nobody_is_told_of_room_for_nothing() {
    let least = ConnectionConfig { unsent_max_bytes: 1, ..config() };
    let mut script = Script::established(least, "win 0 mss 1000");
    assert_eq!(send_more(&mut script, 2), 1);
    script.drain();
    assert!(!script.events.iter().any(|event| matches!(event, Event::Writable(_))));
}

/// An announced window is not taken back; a larger one is announced without delay.
#[test]
fn the_receive_buffer_follows() {
    let receive_buffer = |bytes| SettingsChange { receive_buffer_bytes: Some(bytes), ..SettingsChange::default() };
    let little = ConnectionConfig { receive_buffer_bytes: 4000, ..config() };
    let mut script = Script::established(little, "win 65535 mss 1000 wscale 0");
    change(&mut script, &receive_buffer(40_000)).unwrap();
    assert_eq!(script.expect("A 1 ack 1").window, 40_000);
    change(&mut script, &receive_buffer(1000)).unwrap();
    script.expect_nothing();
    for n in 0..40 {
        script.inject(&format!("A {}+1000 ack 1", 1 + n * 1000));
    }
    assert_eq!(script.endpoint.readable_bytes(script.id()), 40_000, "all of it was promised a place");
    let last = script.drain().pop();
    assert_eq!(last.as_deref(), Some("A 1 ack 40001"));
    assert_eq!(script.recv(usize::MAX), Some(40_000));
    assert_eq!(script.expect("A 1 ack 40001").window, 1000);
}

/// Until the peer has answered, the SYN's window scale remains that of the buffer with which it was first sent.
#[test]
fn the_window_scale_of_a_syn_does_not_change() {
    let mut script = Script::connect(ConnectionConfig { receive_buffer_bytes: 60_000, ..config() });
    assert_eq!(script.expect("S 0").options.window_scale, Some(0));
    let larger = SettingsChange { receive_buffer_bytes: Some(4 << 20), ..SettingsChange::default() };
    change(&mut script, &larger).unwrap();
    assert_eq!(script.expect_at(1000, "S 0").options.window_scale, Some(0));
    script.inject("SA 0 ack 1 win 65535 mss 1000 wscale 0");
    assert_eq!(script.expect("A 1 ack 1").window, 0xffff, "as much as the field can say");
}

#[test]
fn what_no_connection_can_run_with_changes_nothing() {
    let mut script = Script::ready();
    let unusable = SettingsChange { nagle: Some(false), send_buffer_bytes: Some(0), ..SettingsChange::default() };
    let expected =
        UnusableSetting { field: "send_buffer_bytes", value: 0.into(), least: 1.into(), most: (1 << 30).into() };
    assert_eq!(change(&mut script, &unusable), Err(ChangeError::UnusableSetting(expected)));
    let at_once = SettingsChange { keep_alive: Some(Some(Duration::ZERO)), ..SettingsChange::default() };
    let refusal = change(&mut script, &at_once).unwrap_err().to_string();
    assert_eq!(refusal, "keep_alive cannot be 0 ns: set 100 ms or more");
    let unknown = SettingsChange { nagle: Some(false), scheduler: Some("best".into()), ..SettingsChange::default() };
    let refusal = change(&mut script, &unknown).unwrap_err().to_string();
    assert!(
        refusal.starts_with("unknown scheduler \"best\"; did you mean blest? (there are: lowest-rtt, "),
        "{refusal}"
    );
    let unknown = SettingsChange { congestion: Some("lia(7)".parse().unwrap()), ..unknown };
    let refusal = change(&mut script, &unknown).unwrap_err().to_string();
    assert_eq!(refusal, "congestion controller lia takes no parameters: write lia");
    assert!(script.endpoint.config(script.id()).unwrap().nagle);
    script.abort();
    let nothing = SettingsChange::default();
    assert_eq!(change(&mut script, &nothing), Err(ChangeError::Closed(CloseReason::Aborted)));
    let corked = script.command(|endpoint, id, now| endpoint.set_corked(id, true, now));
    assert_eq!(corked, Err(ConnectionError::Closed(CloseReason::Aborted)));
}

/// Discarded data do not hold up the peer, and the other direction continues.
#[test]
fn half_shutdown_for_reading() {
    let little = ConnectionConfig { receive_buffer_bytes: 4000, ..config() };
    let mut script = Script::established(little, "win 65535 mss 1000");
    script.inject("A 1+1000 ack 1");
    script.drain();
    assert_eq!(script.endpoint.readable_bytes(script.id()), 1000);
    script.command(|endpoint, id, now| endpoint.shutdown_read(id, now)).unwrap();
    assert_eq!(script.endpoint.readable_bytes(script.id()), 0);
    script.events.clear();
    for n in 1..20 {
        script.inject(&format!("A {}+1000 ack 1", 1 + n * 1000));
    }
    script.run_for(100);
    assert_eq!(script.drain().pop().as_deref(), Some("A 1 ack 20001"));
    let read = script.command(|endpoint, id, now| endpoint.recv(id, 10, now));
    assert_eq!(read, Ok(Received::Finished));
    assert_eq!(script.events, []);
    script.send(1000);
    script.expect("A 1+1000 ack 20001");
    script.inject("A 20001 ack 1001");
    // No hurry: only `close` limits the wait for the peer's end.
    script.shutdown();
    script.expect("FA 1001 ack 20001");
    script.inject("A 20001 ack 1002");
    script.run_for(250_000);
    assert_eq!(script.state(), "FIN-WAIT-2");
}

#[test]
fn addresses_and_mss_are_known_without_statistics() {
    let script = Script::established(ConnectionConfig { timestamps: true, ..config() }, "mss 900 ts 1 0");
    let [local, remote] = ["10.0.0.1:4000", "10.0.0.2:80"].map(|address| address.parse().unwrap());
    assert_eq!(script.endpoint.addresses(script.id()), Some((local, remote)));
    // RFC 7323 appendix A: timestamps take ten octets and two of padding.
    assert_eq!(script.endpoint.mss(script.id(), SubflowId(0)), Some(888));
    assert_eq!(script.endpoint.mss(script.id(), SubflowId(1)), None);
}
