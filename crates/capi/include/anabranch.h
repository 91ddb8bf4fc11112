/* Anabranch: a sans-IO Multipath TCP engine. Generated from crates/capi; how to renew it: docs/testing.md.
 *
 * - A function returns an AnabranchStatus: zero when done, positive when there is nothing now, negative on error;
 *   anabranch_last_error() then says what and why, per thread.
 * - A null pointer is ANABRANCH_STATUS_INVALID_ARGUMENT, never a crash. Any other pointer must be valid, as always in C.
 * - Time only moves forward: a now_ns before an earlier one of the same endpoint is ANABRANCH_STATUS_INVALID_ARGUMENT,
 *   and nothing happens.
 * - A bug of the library is ANABRANCH_STATUS_INTERNAL, and the endpoint refuses further work: free it.
 * - One endpoint is used by one thread at a time; different endpoints are independent.
 * - After feeding it or giving a command: anabranch_poll_transmit() and anabranch_poll_event() until they have nothing,
 *   then anabranch_poll_timeout().
 */

#ifndef ANABRANCH_H
#define ANABRANCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Version of this interface. It grows with every incompatible change.
#define ANABRANCH_ABI_VERSION 1

// Octets of a key, private or public.
#define ANABRANCH_KEY_LEN 32

// Maximum number of relays in an event: more than a set has.
#define ANABRANCH_RELAYS_MAX 64

// Octets of the seed of `anabranch_endpoint_new`.
#define ANABRANCH_SEED_LEN 32

// Value of `anabranch_poll_timeout` if no wake-up is needed.
#define ANABRANCH_NEVER UINT64_MAX

// Result of a call: zero on success, positive if there is nothing now, negative on error.
typedef enum AnabranchStatus {
  // Success.
  ANABRANCH_STATUS_OK = 0,
  // Nothing now; try again later.
  ANABRANCH_STATUS_AGAIN = 1,
  // The peer's stream has ended and everything was received.
  ANABRANCH_STATUS_FINISHED = 2,
  // An argument is null, out of range or not understood.
  ANABRANCH_STATUS_INVALID_ARGUMENT = -1,
  // No such connection, listener or subflow.
  ANABRANCH_STATUS_UNKNOWN = -2,
  // Not possible in this state.
  ANABRANCH_STATUS_WRONG_STATE = -3,
  // The connection is over.
  ANABRANCH_STATUS_CLOSED = -4,
  // Address and port are in use.
  ANABRANCH_STATUS_IN_USE = -5,
  // The limit on connections or subflows has been reached.
  ANABRANCH_STATUS_LIMIT = -6,
  // Not an established MPTCP connection.
  ANABRANCH_STATUS_NOT_MPTCP = -7,
  // The packet cannot be read; nothing happened.
  ANABRANCH_STATUS_MALFORMED_PACKET = -8,
  // The buffer is too short; nothing is lost. Try again with a larger one.
  ANABRANCH_STATUS_BUFFER_TOO_SMALL = -9,
  // A bug of the library: the endpoint refuses further work.
  ANABRANCH_STATUS_INTERNAL = -10,
  // The setting cannot change once the connection exists.
  ANABRANCH_STATUS_FIXED = -11,
  // The peer forbids further subflows to that address and port (RFC 8684 section 3.1, flag C).
  ANABRANCH_STATUS_JOINS_FORBIDDEN = -12,
} AnabranchStatus;

// Kinds of agents' events, with the meaningful members of `AnabranchAgentEvent` besides `kind` and `at_ns`.
typedef enum AnabranchAgentEventKind {
  // Nothing.
  ANABRANCH_AGENT_EVENT_KIND_NONE = 0,
  // The agent is ready: connections may be opened.
  ANABRANCH_AGENT_EVENT_KIND_READY = 1,
  // Of a relay: measure the link, and call `anabranch_measure`.
  ANABRANCH_AGENT_EVENT_KIND_MEASURE = 2,
  // Of a destination: another set of relays is wanted from now on. `cause`; `from` and `to`, with their numbers of
  // relays; `offered_bps`: what the new ones offer; `flag`: whether that is in the accepted range.
  ANABRANCH_AGENT_EVENT_KIND_MIGRATION = 3,
  // Of a destination: exactly the wanted subflows are established.
  ANABRANCH_AGENT_EVENT_KIND_SETTLED = 4,
  // Of a destination: a period has ended. `offered_bps`: what the relays in use offer; `flag` tells whether another
  // set is ready, which offers `backup_bps`.
  ANABRANCH_AGENT_EVENT_KIND_MONITORED = 5,
  // Of a destination: `count` subflows carry new data.
  ANABRANCH_AGENT_EVENT_KIND_ACTIVE_SET = 6,
  // Of a relay: it made an offer, or of a destination: the offer of `relay` arrived. `capacity_bps`, `local_bps`.
  ANABRANCH_AGENT_EVENT_KIND_OFFERED = 7,
  // Of a destination: `relay` acknowledged data and did not deliver them, and is used no more.
  ANABRANCH_AGENT_EVENT_KIND_GUILTY = 8,
  // Of a destination: octets never arrived, and no relay is left to exclude: the connection was aborted. `flag` tells
  // whether no relay delivered anything any more; the links may be the cause.
  ANABRANCH_AGENT_EVENT_KIND_GAVE_UP = 9,
  // Of a relay or a source: a destination has called and proven its identity.
  ANABRANCH_AGENT_EVENT_KIND_CALLED = 10,
  // Of a relay or a source: the last destination has left.
  ANABRANCH_AGENT_EVENT_KIND_DESERTED = 11,
  // Of a source: a relay reports how crowded its link is. `connection` and `address_id` name the path that leads over
  // it; `ratio`: the rate that its owner's flows want over what is left for each of them (rho).
  ANABRANCH_AGENT_EVENT_KIND_LOAD = 12,
  // Of a source: a relay that acknowledges at once reports how long data take from it to the destination.
  // `connection` and `address_id` name the path that leads over it; `delay_ns`.
  ANABRANCH_AGENT_EVENT_KIND_DELAY = 13,
  // Of a destination: the source forbids further subflows to its address (RFC 8684 section 3.1, flag C). The
  // connection stays on its first subflow, and no more relays are selected.
  ANABRANCH_AGENT_EVENT_KIND_JOINS_FORBIDDEN = 14,
} AnabranchAgentEventKind;

// Why a destination wants another set of relays.
typedef enum AnabranchCause {
  // No reason.
  ANABRANCH_CAUSE_NONE = 0,
  // No set was in use yet.
  ANABRANCH_CAUSE_START = 1,
  // The throughput was out of the accepted range.
  ANABRANCH_CAUSE_THROUGHPUT = 2,
  // The offers were out of the accepted range.
  ANABRANCH_CAUSE_OFFERS = 3,
  // A relay was lost.
  ANABRANCH_CAUSE_LOSS = 4,
  // The application asked for another rate.
  ANABRANCH_CAUSE_GOAL = 5,
} AnabranchCause;

// Kinds of events, with the meaningful members of `AnabranchEvent` besides `kind` and `connection`.
typedef enum AnabranchEventKind {
  // Nothing.
  ANABRANCH_EVENT_KIND_NONE = 0,
  // A connection that the peer opened is established and waits to be accepted: `listener` (and no `connection`). Its
  // own events come after `anabranch_accept`.
  ANABRANCH_EVENT_KIND_INCOMING = 1,
  // A connection that this side opened is established: `flag` tells whether MPTCP was agreed upon.
  ANABRANCH_EVENT_KIND_CONNECTED = 2,
  // Data, or the end of the stream, can be received.
  ANABRANCH_EVENT_KIND_READABLE = 3,
  // The send buffer has room again.
  ANABRANCH_EVENT_KIND_WRITABLE = 4,
  // The peer sent all its data.
  ANABRANCH_EVENT_KIND_PEER_FINISHED = 5,
  // Everything sent, including the end of the stream, is acknowledged.
  ANABRANCH_EVENT_KIND_ALL_ACKNOWLEDGED = 6,
  // MPTCP was given up; the connection continues as plain TCP.
  ANABRANCH_EVENT_KIND_FELL_BACK = 7,
  // A subflow is ready to carry data: `subflow`, `local`, `remote`.
  ANABRANCH_EVENT_KIND_SUBFLOW_ESTABLISHED = 8,
  // A subflow is gone: `subflow`, `reason`.
  ANABRANCH_EVENT_KIND_SUBFLOW_CLOSED = 9,
  // The peer changed a subflow's priority: `subflow`, `flag` tells whether it is a backup now.
  ANABRANCH_EVENT_KIND_PRIORITY_CHANGED = 10,
  // The peer announced an address: `address_id`, `remote`.
  ANABRANCH_EVENT_KIND_ADDRESS_ANNOUNCED = 11,
  // The peer withdrew an address: `address_id`.
  ANABRANCH_EVENT_KIND_ADDRESS_WITHDRAWN = 12,
  // The connection is over: `reason`. Its statistics stay until it is released.
  ANABRANCH_EVENT_KIND_CLOSED = 13,
  // MPTCP is confirmed both ways: from now on subflows can be added and addresses announced.
  ANABRANCH_EVENT_KIND_FULLY_ESTABLISHED = 14,
} AnabranchEventKind;

// Why a connection or subflow ended.
typedef enum AnabranchCloseReason {
  // Nothing ended.
  ANABRANCH_CLOSE_REASON_NONE = 0,
  // Both sides closed normally.
  ANABRANCH_CLOSE_REASON_FINISHED = 1,
  // This side aborted it.
  ANABRANCH_CLOSE_REASON_ABORTED = 2,
  // The peer reset it.
  ANABRANCH_CLOSE_REASON_RESET = 3,
  // The peer sent MP_FASTCLOSE.
  ANABRANCH_CLOSE_REASON_FASTCLOSE = 4,
  // Nothing was acknowledged for too long.
  ANABRANCH_CLOSE_REASON_TIMED_OUT = 5,
  // The peer refused the connection.
  ANABRANCH_CLOSE_REASON_REFUSED = 6,
  // The address was withdrawn.
  ANABRANCH_CLOSE_REASON_ADDRESS_WITHDRAWN = 7,
  // The peer broke the protocol.
  ANABRANCH_CLOSE_REASON_VIOLATION = 8,
} AnabranchCloseReason;

// One host: an engine, and an agent if it has one. The program is its application.
typedef struct AnabranchEndpoint AnabranchEndpoint;

// An IP address and a port.
typedef struct AnabranchAddress {
  // 4, 6, or 0 for no address.
  uint8_t family;
  // Port in the byte order of the machine; 0 for none or any.
  uint16_t port;
  // The address in network byte order; IPv4 uses the first four octets.
  uint8_t octets[16];
} AnabranchAddress;

// An event of an agent. Members that `AnabranchAgentEventKind` does not name for the kind are zero.
typedef struct AnabranchAgentEvent {
  // Kind of the event.
  enum AnabranchAgentEventKind kind;
  // Why another set is wanted.
  enum AnabranchCause cause;
  // Time of the event.
  uint64_t at_ns;
  // Rate that a relay's link could carry.
  uint64_t capacity_bps;
  // Part of it that the owner's traffic takes.
  uint64_t local_bps;
  // Sum of offers.
  uint64_t offered_bps;
  // Sum of the offers of another set.
  uint64_t backup_bps;
  // A number; its meaning depends on the kind.
  uint64_t count;
  // A connection; zero if it is over, or none of the program's.
  uint64_t connection;
  // How long data take.
  uint64_t delay_ns;
  // A ratio; its meaning depends on the kind.
  double ratio;
  // Number of a relay in the destination's list.
  uint16_t relay;
  // A flag; its meaning depends on the kind.
  bool flag;
  // Identifier of the destination's address (RFC 8684 section 3.2).
  uint8_t address_id;
  // Number of relays in `from`.
  uint8_t from_len;
  // Number of relays in `to`.
  uint8_t to_len;
  // Relays that were wanted before and are still there, in ascending order.
  uint16_t from[ANABRANCH_RELAYS_MAX];
  // Relays that are wanted now, in ascending order.
  uint16_t to[ANABRANCH_RELAYS_MAX];
} AnabranchAgentEvent;

// What one flow of a relay's owner receives.
typedef struct AnabranchFlowUse {
  // Octets of packets received so far.
  uint64_t received_bytes;
  // Octets of packets that it asked for so far; `has_demanded` tells whether that is known. Otherwise it counts as a
  // flow that takes all it can get.
  uint64_t demanded_bytes;
  // Whether `demanded_bytes` is known.
  bool has_demanded;
} AnabranchFlowUse;

// Measurements of a relay's link.
typedef struct AnabranchLinkUse {
  // Octets of packets that have arrived over the link so far, for whomever.
  uint64_t delivered_bytes;
  // Those of them for the relay's owner.
  uint64_t local_bytes;
  // Rate that the link would carry now, as the modem reports it, bit/s; `has_granted` tells whether it does.
  uint64_t granted_bps;
  // Whether `granted_bps` is known.
  bool has_granted;
  // Whether more data were waiting for the link all the time since the previous measurement, as far as is known.
  bool backlogged;
  // The owner's flows, `flows_len` of them, for reports on how crowded the link is; null if they are not known. Those
  // that have ended stay in the list.
  const struct AnabranchFlowUse *flows;
  // Number of the owner's flows, always in the same order.
  size_t flows_len;
} AnabranchLinkUse;

// What a relay's agent does with packets in transit.
typedef struct AnabranchTransit {
  // Whether they pass the agent: give them to `anabranch_forward_packet`, and do not forward them. Does not change.
  bool takes_packets;
  // Number of subflows that end at the relay and continue from there.
  size_t splices;
  // Octets that the relay holds until the destination wants them; a packet of less than 64 counts as 64.
  uint64_t held_bytes;
} AnabranchTransit;

// An event. Members that `AnabranchEventKind` does not name for the kind are zero.
typedef struct AnabranchEvent {
  // Kind of the event.
  enum AnabranchEventKind kind;
  // Why a connection or subflow ended.
  enum AnabranchCloseReason reason;
  // Number of the connection.
  uint64_t connection;
  // Number of the listener.
  uint64_t listener;
  // Number of the subflow.
  uint16_t subflow;
  // Identifier of an address (RFC 8684 section 3.4).
  uint8_t address_id;
  // A flag; its meaning depends on the kind.
  bool flag;
  // Address of this side.
  struct AnabranchAddress local;
  // Address of the peer.
  struct AnabranchAddress remote;
} AnabranchEvent;

// Takes `len` octets of a log. Called in the middle of other calls on the endpoint, so it must not call any. `context`
// is that of `anabranch_start_log`.
typedef void (*AnabranchWrite)(void *context, const uint8_t *octets, size_t len);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the interface that the library was built with: compare it with `ANABRANCH_ABI_VERSION`.
uint32_t anabranch_abi_version(void);

// Reads an address from text: `10.0.0.1`, `10.0.0.1:80`, `2001:db8::1` or `[2001:db8::1]:80`. Refuses an address with
// a scope (`[fe80::1%3]:80`), because the scope would be lost.
//
// # Safety
// `text` is null or a string; `address` is null or valid for writes.
enum AnabranchStatus anabranch_address_parse(const char *text, struct AnabranchAddress *address);

// Returns in `key` the public key that belongs to the private key `secret`: by it, others know an agent. Both have
// `ANABRANCH_KEY_LEN` octets. Any octets are a private key; on a real network take them from the operating system's
// random numbers.
//
// # Safety
// Pointers are null or point to as many octets.
enum AnabranchStatus anabranch_public_key(const uint8_t *secret, uint8_t *key);

// Gives an endpoint an agent, which begins to cooperate with those of other endpoints. An endpoint has one at most.
// From now on, call `anabranch_poll_agent_event` wherever `anabranch_poll_event` is called.
//
// `peers_json` says who the others are and where, as one of these objects. Keys are public keys, in 64 hexadecimal
// digits; addresses are texts.
//
// ```text
// {"role": "destination", "source": "198.51.100.1:80", "relays": [
//     {"path": "10.1.0.2", "control": "10.1.0.1:40001", "key": "...", "calls_from": "192.168.1.2"}],
//  "source_agent": {"control": "198.51.100.1:40001", "key": "..."}}
// {"role": "relay", "control": "10.1.0.1:40001", "serves": ["..."], "path": "10.1.0.2"}
// {"role": "source", "control": "198.51.100.1:40001", "serves": ["..."]}
// ```
//
// A destination knows relays by their numbers in the list, from 0. `path` is its own address on the path through the
// relay, `control` the address and port of the relay's agent. It calls from `path`, or from `calls_from` where a relay
// lends its own address. A relay answers the destinations whose keys it `serves`, at its address `control`. It needs the
// `path` only if packets pass through it (`anabranch_transit`): with `cooperation.relays` = "fast-ack", it ends the
// subflows that join, and acknowledges at once; with `cooperation.forwarding`, it holds data until the destination wants
// them. If it serves several keys, it believes what a destination says of data only if that calls from where they go.
//
// A source needs an agent if relays report to it (`cooperation.bandwidth_sharing`), or if it adapts windows to delays
// (`cooperation.adaptive_congestion`). It answers as relays do. Destinations call their `source_agent`, which may be
// left out, if there is something to report.
//
// `settings_json` is null for the defaults, or an object with any of `target`, `connection` (`receive_buffer`, which
// `cooperation.forwarding` shares), `cooperation` (`relays`, `news`, `selection`, `adaptive_congestion`,
// `bandwidth_sharing`, `forwarding`, `watch`) and `relay` (`bit_rate_max`, `local_rate`, `exaggerates`,
// `energy_nj_per_bit`, `rho`). The names are those of scenario files (scenarios/README.md), and each
// agent uses what concerns it, so all can get the same settings. One default differs: `bandwidth_sharing.demands` is
// "estimated". `relay.rho` is the fixed value of one relay, `bandwidth_sharing.fixed` of scenario files.
//
// `secret` points to `ANABRANCH_KEY_LEN` octets, the private key of this agent (`anabranch_public_key`), and `seed` to
// `ANABRANCH_SEED_LEN` octets for its randomness, which must never be used twice.
//
// Where a destination selects relays (`cooperation.selection.method` other than "all"), it alone opens subflows of the
// endpoint's first connection to `source`. Open that when `ANABRANCH_AGENT_EVENT_KIND_READY` has come, from an
// unspecified address: it then begins over a chosen relay, the one with the lowest number.
//
// `ANABRANCH_STATUS_IN_USE` if a listener of the program has the address and port at which a relay or source would
// answer: the endpoint then has no agent.
//
// # Safety
// Pointers are null or valid; texts are strings; `secret` and `seed` point to as many octets.
enum AnabranchStatus anabranch_start_agent(struct AnabranchEndpoint *endpoint,
                                           const char *peers_json,
                                           const char *settings_json,
                                           const uint8_t *secret,
                                           const uint8_t *seed,
                                           uint64_t now_ns);

// Ends the cooperation of an endpoint: its agent says goodbye to the others and begins nothing more; of what happens
// later, no event tells. Connections keep the subflows that they have, and from now on the program may open and close
// some. What passes through a relay still does, and nothing of it is held back. If `ANABRANCH_AGENT_EVENT_KIND_READY` has
// not come by then, it will not: open connections without it.
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_retire_agent(struct AnabranchEndpoint *endpoint,
                                            uint64_t now_ns);

// Returns the next event of the endpoint's agent. `ANABRANCH_STATUS_AGAIN` if there is none, or no agent.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_poll_agent_event(struct AnabranchEndpoint *endpoint, struct AnabranchAgentEvent *event);

// Tells a relay's agent what its link carried so far: the answer to `ANABRANCH_AGENT_EVENT_KIND_MEASURE`.
//
// # Safety
// `endpoint` is null or valid; `measured` is null or points to measurements, and their `flows` to as many as they say.
enum AnabranchStatus anabranch_measure(struct AnabranchEndpoint *endpoint,
                                       const struct AnabranchLinkUse *measured,
                                       uint64_t now_ns);

// Returns what the agent of a relay does with packets in transit. `ANABRANCH_STATUS_WRONG_STATE` if the endpoint has no
// agent of a relay.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_transit(struct AnabranchEndpoint *endpoint, struct AnabranchTransit *transit);

// Passes an IP packet in transit to a relay's agent: of TCP, from or to the destination's `path`, or an ICMP error about
// such a packet. The agent passes it on, keeps it for later, or ends its subflow here. What should travel on,
// `anabranch_poll_transmit` returns among the other packets; those to `path` go to the destination. The time to live
// begins anew, and of the type of service only the congestion marking stays. A damaged packet returns
// `ANABRANCH_STATUS_MALFORMED_PACKET` and changes nothing: drop it and continue.
//
// Packets of the relay's owner go to `anabranch_handle_packet`, even if they have the same address.
//
// # Safety
// `endpoint` is null or valid; `packet` points to `len` octets.
enum AnabranchStatus anabranch_forward_packet(struct AnabranchEndpoint *endpoint,
                                              const uint8_t *packet,
                                              size_t len,
                                              uint64_t now_ns);

// Changes settings of a connection: all that `config_json` names or, on an error, none. It is an object as for
// `anabranch_connect`, with any of `congestion`, `scheduler`, `send_buffer_bytes`, `unsent_max_bytes`,
// `receive_buffer_bytes`, `nagle`, `delayed_ack`, `keep_alive` (null sends none), `user_timeout`, `subflows_max`,
// `remote_addresses_max` and `time_wait`. All other settings were agreed upon with the peer, or used, when the
// connection was opened: `ANABRANCH_STATUS_FIXED`. Allowed immediately after `anabranch_connect`, and after
// `anabranch_accept`.
//
// # Safety
// `endpoint` is null or valid; `config_json` is null or a string.
enum AnabranchStatus anabranch_change(struct AnabranchEndpoint *endpoint,
                                      uint64_t connection,
                                      const char *config_json,
                                      uint64_t now_ns);

// Like `anabranch_send`, but announces that more data will follow at once: data that do not fill a segment wait for
// it. They leave with the next data, with `anabranch_set_corked(..., false, ...)`, or at the end of the stream.
//
// # Safety
// Pointers are null or valid; `data` points to `len` octets.
enum AnabranchStatus anabranch_send_more(struct AnabranchEndpoint *endpoint,
                                         uint64_t connection,
                                         const uint8_t *data,
                                         size_t len,
                                         uint64_t now_ns,
                                         size_t *taken);

// Corks or uncorks a connection. While corked, every segment that the data do not fill waits, without limit, until the
// connection is uncorked, the stream ends, or the waiting data fill three quarters of the send buffer.
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_set_corked(struct AnabranchEndpoint *endpoint,
                                          uint64_t connection,
                                          bool corked,
                                          uint64_t now_ns);

// Stops reading: discards data that wait or still arrive, so that the peer is not held up. `anabranch_recv` then
// returns `ANABRANCH_STATUS_FINISHED`. This side may continue to send; the peer is not notified.
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_shutdown_read(struct AnabranchEndpoint *endpoint, uint64_t connection, uint64_t now_ns);

// Returns both addresses of a connection, this side's and the peer's: those of its first subflow, even if that is
// gone.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_addresses(struct AnabranchEndpoint *endpoint,
                                         uint64_t connection,
                                         struct AnabranchAddress *local,
                                         struct AnabranchAddress *remote);

// Returns the connection that has a subflow between these addresses and ports, open or being opened.
// `ANABRANCH_STATUS_UNKNOWN` if there is none, or nobody has accepted it yet.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_connection_of(struct AnabranchEndpoint *endpoint,
                                             const struct AnabranchAddress *local,
                                             const struct AnabranchAddress *remote,
                                             uint64_t *connection);

// Returns the number of octets that `anabranch_send` would take now; zero after `anabranch_shutdown`.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_send_capacity(struct AnabranchEndpoint *endpoint, uint64_t connection, uint64_t *bytes);

// Returns the number of octets that `anabranch_recv` would return now, without taking any.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_readable_bytes(struct AnabranchEndpoint *endpoint, uint64_t connection, uint64_t *bytes);

// Returns the largest payload in octets of one packet of a subflow: the smaller MSS of both sides, less the options.
// It may change during the connection. `ANABRANCH_STATUS_UNKNOWN` for a subflow that is gone.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_mss(struct AnabranchEndpoint *endpoint,
                                   uint64_t connection,
                                   uint16_t subflow,
                                   uint32_t *bytes);

// Returns the congestion window of a subflow, octets. For callers that look often: it costs less than statistics.
// `ANABRANCH_STATUS_UNKNOWN` for a subflow that is gone.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_congestion_window(struct AnabranchEndpoint *endpoint,
                                                 uint64_t connection,
                                                 uint16_t subflow,
                                                 uint64_t *bytes);

// Returns the number of established connections of a listener that wait for `anabranch_accept`.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_pending_accepts(struct AnabranchEndpoint *endpoint, uint64_t listener, size_t *count);

// Waits for connections to `local`; an unspecified address accepts any. `config_json` is null for the defaults, or an
// object of connection settings: see `anabranch_connect`. Returns a number for the listener, never zero.
//
// # Safety
// Pointers are null or valid; `config_json` is null or a string.
enum AnabranchStatus anabranch_listen(struct AnabranchEndpoint *endpoint,
                                      const struct AnabranchAddress *local,
                                      const char *config_json,
                                      uint64_t *listener);

// Stops listening. Accepted connections stay. Those not yet accepted are aborted and released, without an event.
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_close_listener(struct AnabranchEndpoint *endpoint, uint64_t listener, uint64_t now_ns);

// Accepts the next established connection of a listener; `ANABRANCH_STATUS_AGAIN` if there is none. Events of the
// connection begin now, with what has happened before: its first subflow, data that wait to be received, even its end.
// Subflows that are gone again are left out.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_accept(struct AnabranchEndpoint *endpoint, uint64_t listener, uint64_t *connection);

// Opens a connection. Port zero in `local` lets the endpoint choose one; an unspecified address there stands for the
// first of its family among `local_addresses` of `anabranch_endpoint_new`. `config_json` is null for the defaults, or
// an object with any of these, durations written as text ("40 ms"):
// `mptcp`, `checksum`, `congestion`, `scheduler`, `path_manager`, `send_buffer_bytes`, `unsent_max_bytes`,
// `receive_buffer_bytes`, `mtu`,
// `offload_max_bytes`, `initial_window_segments`, `timestamps`, `sack`, `ecn`, `nagle`, `suspension`, `hystart`,
// `delayed_ack`, `rto_min`, `keep_alive` (or null), `user_timeout`, `subflows_max`, `remote_addresses_max`,
// `time_wait`, `receiver_centric` (null, or an object: `{}` turns MPTCP-rec on).
// Returns a number for the connection, never zero and never reused.
//
// # Safety
// Pointers are null or valid; `config_json` is null or a string.
enum AnabranchStatus anabranch_connect(struct AnabranchEndpoint *endpoint,
                                       const struct AnabranchAddress *local,
                                       const struct AnabranchAddress *remote,
                                       const char *config_json,
                                       uint64_t now_ns,
                                       uint64_t *connection);

// Sends `len` octets of data, which are copied. `taken` gets the number of octets taken from the front. If it is less
// than `len`, the send buffer is full; `ANABRANCH_EVENT_KIND_WRITABLE` reports when it has room again.
//
// # Safety
// Pointers are null or valid; `data` points to `len` octets.
enum AnabranchStatus anabranch_send(struct AnabranchEndpoint *endpoint,
                                    uint64_t connection,
                                    const uint8_t *data,
                                    size_t len,
                                    uint64_t now_ns,
                                    size_t *taken);

// Receives at most `capacity` octets, as many as are available. `ANABRANCH_STATUS_AGAIN` if there are none now,
// `ANABRANCH_STATUS_FINISHED` if the peer's stream has ended; `len` is zero in both cases.
//
// # Safety
// Pointers are null or valid; `out` points to `capacity` octets.
enum AnabranchStatus anabranch_recv(struct AnabranchEndpoint *endpoint,
                                    uint64_t connection,
                                    uint8_t *out,
                                    size_t capacity,
                                    uint64_t now_ns,
                                    size_t *len);

// Ends this side's stream; the other direction stays open.
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_shutdown(struct AnabranchEndpoint *endpoint, uint64_t connection, uint64_t now_ns);

// Ends this side's stream and discards data that still arrive. The connection lingers until the peer has all data, and
// is aborted if the peer acknowledges nothing more for `user_timeout`.
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_close(struct AnabranchEndpoint *endpoint, uint64_t connection, uint64_t now_ns);

// Ends the connection at once: MP_FASTCLOSE, or RST for plain TCP.
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_abort(struct AnabranchEndpoint *endpoint, uint64_t connection, uint64_t now_ns);

// Releases a connection with its statistics; its number is invalid from then on. The connection must have closed
// (event `ANABRANCH_EVENT_KIND_CLOSED`): `ANABRANCH_STATUS_WRONG_STATE` otherwise.
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_release(struct AnabranchEndpoint *endpoint, uint64_t connection);

// Creates an endpoint. `config_json` is null for the defaults, or an object with any of `local_addresses` (a list of
// `{"ip": "10.0.0.1", "backup": false}`), `ephemeral_port_first`, `connections_max`, `backlog` and `reset_unknown`.
// `seed` points to `ANABRANCH_SEED_LEN` octets from which all keys and initial sequence numbers are derived: on a real
// network take them from the operating system's random numbers, in a simulation from the scenario.
//
// # Safety
// `config_json` is null or a string, `seed` is null or points to 32 octets, `endpoint` is null or valid for writes.
enum AnabranchStatus anabranch_endpoint_new(const char *config_json,
                                            const uint8_t *seed,
                                            struct AnabranchEndpoint **endpoint);

// Frees an endpoint; null is allowed. Peers are not notified: close or abort connections first.
//
// # Safety
// `endpoint` is null or comes from `anabranch_endpoint_new` and is freed once.
void anabranch_endpoint_free(struct AnabranchEndpoint *endpoint);

// Tells the endpoint the time: `now_ns`, in nanoseconds since any fixed moment. Harmless before the wake-up.
//
// # Safety
// `endpoint` is null or comes from `anabranch_endpoint_new` and was not freed.
enum AnabranchStatus anabranch_handle_timeout(struct AnabranchEndpoint *endpoint, uint64_t now_ns);

// Returns when to call `anabranch_handle_timeout` next, in nanoseconds of the same clock; `ANABRANCH_NEVER` if nothing
// is due. May be early, never late.
//
// # Safety
// `endpoint` is null or comes from `anabranch_endpoint_new` and was not freed; `at_ns` is null or valid for writes.
enum AnabranchStatus anabranch_poll_timeout(struct AnabranchEndpoint *endpoint, uint64_t *at_ns);

// Tells the endpoint that a local address became usable; path managers may open subflows from it. The port is
// ignored.
//
// # Safety
// `endpoint` is null or comes from `anabranch_endpoint_new` and was not freed; `address` is null or points to an
// address.
enum AnabranchStatus anabranch_add_local_address(struct AnabranchEndpoint *endpoint,
                                                 const struct AnabranchAddress *address,
                                                 bool backup,
                                                 uint64_t now_ns);

// Tells the endpoint that a local address is gone: its subflows fail. The port is ignored.
//
// # Safety
// Those of `anabranch_add_local_address`.
enum AnabranchStatus anabranch_remove_local_address(struct AnabranchEndpoint *endpoint,
                                                    const struct AnabranchAddress *address,
                                                    uint64_t now_ns);

// Returns the next event; leaves out events about released connections. `ANABRANCH_STATUS_AGAIN` if there is none.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_poll_event(struct AnabranchEndpoint *endpoint, struct AnabranchEvent *event);

// Starts a log of what the engine decides and why: windows, states, losses, timers, reinjection, events. It consists
// of JSON records in the qlog format (docs/qlog.md), and `write` gets one whole record in each call, the first at
// once. Write them into a file as they are. Times are those of the caller's clock, in milliseconds. `host` names the
// host in the log. The log ends with the endpoint, or when another one is started, which goes on with the connections
// of this one. Of connections that are older than the first log, only events are in it.
//
// # Safety
// `endpoint` is null or valid; `host` is null or a string; `write` is null or a function as described, and it and
// `context` remain valid until the endpoint is freed or another log is started.
enum AnabranchStatus anabranch_start_log(struct AnabranchEndpoint *endpoint,
                                         const char *host,
                                         AnabranchWrite write,
                                         void *context);

// Passes in an IP packet from the network: TCP over IPv4 or IPv6, or an ICMP error about a packet that was too big for
// its path. Any other or damaged packet returns `ANABRANCH_STATUS_MALFORMED_PACKET` and changes nothing: drop it and
// continue.
//
// # Safety
// `endpoint` is null or valid; `packet` points to `len` octets.
enum AnabranchStatus anabranch_handle_packet(struct AnabranchEndpoint *endpoint,
                                             const uint8_t *packet,
                                             size_t len,
                                             uint64_t now_ns);

// Writes the next IP packet to send into `out` and its length into `len`; `ANABRANCH_STATUS_AGAIN` if there is none.
// If the packet is larger than `capacity`, returns `ANABRANCH_STATUS_BUFFER_TOO_SMALL`, and `len` is the required
// capacity: the MTU is always enough without offload, 65535 octets with it.
//
// # Safety
// Pointers are null or valid; `out` points to `capacity` octets.
enum AnabranchStatus anabranch_poll_transmit(struct AnabranchEndpoint *endpoint,
                                             uint64_t now_ns,
                                             uint8_t *out,
                                             size_t capacity,
                                             size_t *len);

// Returns the statistics of a connection, open or closed, as a JSON object; free it with `anabranch_string_free`.
// Names end in their unit (`_bytes`, `_segments`, `_ns`); `subflows` lists every subflow, including closed ones.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_stats_json(struct AnabranchEndpoint *endpoint, uint64_t connection, char **json);

// Frees a string that the library returned; null is allowed.
//
// # Safety
// `string` is null or comes from a function that says so, and is freed once.
void anabranch_string_free(char *string);

// Returns the message of this thread's last failed call; empty if none failed. Valid until this thread's next failed
// call.
const char *anabranch_last_error(void);

// Opens a subflow (RFC 6897 TCP_MULTIPATH_ADD). Port zero in `local` lets the endpoint choose one. Returns the number
// of the subflow within its connection, in order of creation from zero. Also returns `ANABRANCH_STATUS_NOT_MPTCP`
// until the peer has acknowledged data of a connection that this side opened (RFC 8684 section 3.1): try again then.
// `ANABRANCH_STATUS_JOINS_FORBIDDEN` if the peer takes no further subflows at `remote`: join an address that it
// announces.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_add_subflow(struct AnabranchEndpoint *endpoint,
                                           uint64_t connection,
                                           const struct AnabranchAddress *local,
                                           const struct AnabranchAddress *remote,
                                           bool backup,
                                           uint64_t now_ns,
                                           uint16_t *subflow);

// Closes a subflow (RFC 6897 TCP_MULTIPATH_REMOVE); other subflows carry its unacknowledged data.
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_remove_subflow(struct AnabranchEndpoint *endpoint,
                                              uint64_t connection,
                                              uint16_t subflow,
                                              uint64_t now_ns);

// Makes a subflow a backup, or regular again, and asks the peer to do the same (MP_PRIO).
//
// # Safety
// `endpoint` is null or valid.
enum AnabranchStatus anabranch_set_priority(struct AnabranchEndpoint *endpoint,
                                            uint64_t connection,
                                            uint16_t subflow,
                                            bool backup,
                                            uint64_t now_ns);

// Announces an address to the peer of a connection (ADD_ADDR); port zero announces no port.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_announce_address(struct AnabranchEndpoint *endpoint,
                                                uint64_t connection,
                                                const struct AnabranchAddress *address,
                                                uint64_t now_ns);

// Withdraws an address from a connection (REMOVE_ADDR) and closes its subflows. The port is ignored.
//
// # Safety
// Pointers are null or valid.
enum AnabranchStatus anabranch_withdraw_address(struct AnabranchEndpoint *endpoint,
                                                uint64_t connection,
                                                const struct AnabranchAddress *address,
                                                uint64_t now_ns);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ANABRANCH_H */
