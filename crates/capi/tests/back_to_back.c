/* Two hosts back to back in virtual time: the smallest rig that drives the engine through its C interface.
 *
 * The client connects over one path, opens a second subflow over another, and both sides send SIZE octets; packets
 * take DELAY_NS one way. Exits with 0 if both streams arrive whole and intact, and prints the result. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anabranch.h"
#include "check.h"

#define SIZE ((size_t)300000)
#define DELAY_NS 10000000ULL
#define DEADLINE_NS 240000000000ULL
#define FLIGHT_MAX 4096
#define PACKET_MAX 1500

struct packet {
    uint64_t due_ns;
    size_t len;
    uint8_t octets[PACKET_MAX];
};

/* Packets in flight to one host, in order. */
struct wire {
    struct packet *ring;
    size_t first, count;
};

struct host {
    const char *name;
    AnabranchEndpoint *endpoint;
    uint64_t listener, connection;
    struct wire incoming;
    size_t sent, received;
    unsigned subflows;
    bool ready, tuned, joined, shut, finished, closed;
};

/* Returns the octet that the host named `name` sends at `position`. */
static uint8_t octet_of(const char *name, size_t position) {
    return (uint8_t)(position * 31 + position / 251 + (uint8_t)name[0]);
}

static void start(struct host *host, const char *name, uint8_t seed_octet) {
    uint8_t seed[ANABRANCH_SEED_LEN];
    memset(seed, seed_octet, sizeof seed);
    memset(host, 0, sizeof *host);
    host->name = name;
    host->incoming.ring = calloc(FLIGHT_MAX, sizeof *host->incoming.ring);
    REQUIRE(host->incoming.ring != NULL);
    CHECK(anabranch_endpoint_new(NULL, seed, &host->endpoint));
}

/* Accepts the connection, and checks that its addresses are known at once. */
static void accept_one(struct host *host, uint64_t listener) {
    AnabranchAddress local, remote, expected_local = address("10.0.1.2:80"), expected_remote = address("10.0.1.1");
    uint64_t found;
    size_t pending;
    CHECK(anabranch_pending_accepts(host->endpoint, listener, &pending));
    REQUIRE(pending == 1);
    CHECK(anabranch_accept(host->endpoint, listener, &host->connection));
    CHECK(anabranch_pending_accepts(host->endpoint, listener, &pending));
    REQUIRE(pending == 0);
    CHECK(anabranch_addresses(host->endpoint, host->connection, &local, &remote));
    REQUIRE(local.port == 80 && memcmp(local.octets, expected_local.octets, sizeof local.octets) == 0);
    REQUIRE(remote.port >= 1024 && memcmp(remote.octets, expected_remote.octets, sizeof remote.octets) == 0);
    CHECK(anabranch_connection_of(host->endpoint, &local, &remote, &found));
    REQUIRE(found == host->connection);
    REQUIRE(anabranch_connection_of(host->endpoint, &remote, &local, &found) == ANABRANCH_STATUS_UNKNOWN);
}

static void handle_events(struct host *host) {
    AnabranchEvent event;
    AnabranchStatus status;
    while ((status = anabranch_poll_event(host->endpoint, &event)) == ANABRANCH_STATUS_OK) {
        switch (event.kind) {
        case ANABRANCH_EVENT_KIND_INCOMING:
            accept_one(host, event.listener);
            host->ready = true;
            break;
        case ANABRANCH_EVENT_KIND_CONNECTED:
            REQUIRE(event.flag);
            host->ready = true;
            break;
        case ANABRANCH_EVENT_KIND_SUBFLOW_ESTABLISHED:
            host->subflows++;
            break;
        case ANABRANCH_EVENT_KIND_CLOSED:
            REQUIRE(event.reason == ANABRANCH_CLOSE_REASON_FINISHED);
            host->closed = true;
            break;
        default:
            break;
        }
    }
    REQUIRE(status == ANABRANCH_STATUS_AGAIN);
}

/* Joins over the second path; only possible after the peer has acknowledged data of the first (RFC 8684 section 3.1). */
static void join(struct host *host, uint64_t now_ns) {
    AnabranchAddress local = address("10.0.2.1"), remote = address("10.0.1.2:80");
    uint16_t subflow;
    AnabranchStatus status =
        anabranch_add_subflow(host->endpoint, host->connection, &local, &remote, false, now_ns, &subflow);
    host->joined = status == ANABRANCH_STATUS_OK;
    REQUIRE(host->joined || status == ANABRANCH_STATUS_NOT_MPTCP);
}

static void send_some(struct host *host, uint64_t now_ns) {
    uint8_t data[20000];
    size_t taken = 1;
    while (host->sent < SIZE && taken > 0) {
        uint64_t capacity;
        size_t len = SIZE - host->sent < sizeof data ? SIZE - host->sent : sizeof data;
        for (size_t i = 0; i < len; i++) data[i] = octet_of(host->name, host->sent + i);
        CHECK(anabranch_send_capacity(host->endpoint, host->connection, &capacity));
        CHECK(anabranch_send(host->endpoint, host->connection, data, len, now_ns, &taken));
        REQUIRE(taken == (capacity < len ? capacity : len));
        host->sent += taken;
    }
    if (host->sent == SIZE && !host->shut) {
        CHECK(anabranch_shutdown(host->endpoint, host->connection, now_ns));
        host->shut = true;
    }
}

static void receive_some(struct host *host, const struct host *peer, uint64_t now_ns) {
    uint8_t data[20000];
    size_t len, before = host->received;
    uint64_t readable;
    AnabranchStatus status;
    CHECK(anabranch_readable_bytes(host->endpoint, host->connection, &readable));
    while ((status = anabranch_recv(host->endpoint, host->connection, data, sizeof data, now_ns, &len)) ==
           ANABRANCH_STATUS_OK) {
        for (size_t i = 0; i < len; i++) REQUIRE(data[i] == octet_of(peer->name, host->received + i));
        host->received += len;
    }
    REQUIRE(host->received - before == readable);
    /* The server stops reading before it is told of the end. */
    if (host->received == SIZE && host->listener != 0) {
        CHECK(anabranch_shutdown_read(host->endpoint, host->connection, now_ns));
        status = anabranch_recv(host->endpoint, host->connection, data, sizeof data, now_ns, &len);
        REQUIRE(status == ANABRANCH_STATUS_FINISHED);
    }
    if (status == ANABRANCH_STATUS_FINISHED) host->finished = true;
    else REQUIRE(status == ANABRANCH_STATUS_AGAIN);
}

/* Puts all packets that `host` sends in flight to `peer`. */
static void transmit(struct host *host, struct host *peer, uint64_t now_ns) {
    struct wire *wire = &peer->incoming;
    for (;;) {
        REQUIRE(wire->count < FLIGHT_MAX);
        struct packet *packet = &wire->ring[(wire->first + wire->count) % FLIGHT_MAX];
        AnabranchStatus status =
            anabranch_poll_transmit(host->endpoint, now_ns, packet->octets, PACKET_MAX, &packet->len);
        if (status == ANABRANCH_STATUS_AGAIN) break;
        REQUIRE(status == ANABRANCH_STATUS_OK);
        packet->due_ns = now_ns + DELAY_NS;
        wire->count++;
    }
}

static void require_silence(struct host *host, uint64_t now_ns) {
    uint8_t octets[PACKET_MAX];
    size_t len;
    REQUIRE(anabranch_poll_transmit(host->endpoint, now_ns, octets, sizeof octets, &len) == ANABRANCH_STATUS_AGAIN);
}

/* A few octets wait for more data, or until the connection is uncorked. */
static void hold_back(struct host *host, struct host *peer, uint64_t now_ns) {
    uint8_t data[20];
    size_t taken, in_flight;
    for (size_t i = 0; i < sizeof data; i++) data[i] = octet_of(host->name, i);
    transmit(host, peer, now_ns);
    in_flight = peer->incoming.count;
    CHECK(anabranch_send_more(host->endpoint, host->connection, data, 10, now_ns, &taken));
    require_silence(host, now_ns);
    CHECK(anabranch_set_corked(host->endpoint, host->connection, true, now_ns));
    CHECK(anabranch_send(host->endpoint, host->connection, data + 10, 10, now_ns, &taken));
    require_silence(host, now_ns);
    CHECK(anabranch_set_corked(host->endpoint, host->connection, false, now_ns));
    transmit(host, peer, now_ns);
    REQUIRE(peer->incoming.count == in_flight + 1);
    host->sent += sizeof data;
}

/* Checks which settings of an existing connection can change. */
static void tune(struct host *host, struct host *peer, uint64_t now_ns) {
    AnabranchEndpoint *endpoint = host->endpoint;
    uint64_t connection = host->connection, capacity, cwnd;
    uint32_t mss;
    CHECK(anabranch_mss(endpoint, connection, 0, &mss));
    REQUIRE(mss > 1380 && mss < 1460);
    REQUIRE(anabranch_mss(endpoint, connection, 7, &mss) == ANABRANCH_STATUS_UNKNOWN);
    CHECK(anabranch_congestion_window(endpoint, connection, 0, &cwnd));
    REQUIRE(cwnd >= mss);
    REQUIRE(anabranch_congestion_window(endpoint, connection, 7, &cwnd) == ANABRANCH_STATUS_UNKNOWN);
    CHECK(anabranch_change(endpoint, connection,
                           "{\"congestion\": \"bbr\", \"scheduler\": \"ecf\", \"keep_alive\": \"20 s\", \"nagle\": false, "
                           "\"user_timeout\": \"30 s\", \"send_buffer_bytes\": 70000, \"receive_buffer_bytes\": 8000000}",
                           now_ns));
    CHECK(anabranch_send_capacity(endpoint, connection, &capacity));
    REQUIRE(capacity == 70000);
    REQUIRE(anabranch_change(endpoint, connection, "{\"mtu\": 1400}", now_ns) == ANABRANCH_STATUS_FIXED);
    REQUIRE(strstr(anabranch_last_error(), "mtu") != NULL);
    REQUIRE(anabranch_change(endpoint, connection, "{\"scheduler\": \"best\"}", now_ns) ==
            ANABRANCH_STATUS_INVALID_ARGUMENT);
    REQUIRE(anabranch_change(endpoint, connection, NULL, now_ns) == ANABRANCH_STATUS_INVALID_ARGUMENT);
    hold_back(host, peer, now_ns);
    host->tuned = true;
}

static void deliver(struct host *host, uint64_t now_ns) {
    struct wire *wire = &host->incoming;
    while (wire->count > 0 && wire->ring[wire->first].due_ns <= now_ns) {
        struct packet *packet = &wire->ring[wire->first];
        CHECK(anabranch_handle_packet(host->endpoint, packet->octets, packet->len, now_ns));
        wire->first = (wire->first + 1) % FLIGHT_MAX;
        wire->count--;
    }
    CHECK(anabranch_handle_timeout(host->endpoint, now_ns));
}

static void serve(struct host *host, struct host *peer, uint64_t now_ns) {
    deliver(host, now_ns);
    handle_events(host);
    if (host->ready && !host->tuned) tune(host, peer, now_ns);
    if (host->ready && !host->finished) {
        if (host->listener == 0 && !host->joined) join(host, now_ns);
        send_some(host, now_ns);
        receive_some(host, peer, now_ns);
    }
    transmit(host, peer, now_ns);
    handle_events(host);
}

static uint64_t next_ns(struct host *host) {
    uint64_t at_ns;
    CHECK(anabranch_poll_timeout(host->endpoint, &at_ns));
    if (host->incoming.count > 0 && host->incoming.ring[host->incoming.first].due_ns < at_ns)
        at_ns = host->incoming.ring[host->incoming.first].due_ns;
    return at_ns;
}

static void report(struct host *host) {
    char *json;
    CHECK(anabranch_stats_json(host->endpoint, host->connection, &json));
    REQUIRE(strstr(json, "\"received_bytes\":300000") != NULL);
    printf("%s: received %zu octets intact over %u subflows\n%s\n", host->name, host->received, host->subflows, json);
    anabranch_string_free(json);
}

/* Misuse returns an error, never a crash. */
static void misuse(struct host *host, uint64_t now_ns) {
    const uint8_t garbage[ANABRANCH_SEED_LEN] = {0x45, 0, 0, 9};
    uint8_t little[10];
    size_t len;
    AnabranchEndpoint *none = NULL;
    REQUIRE(anabranch_handle_timeout(NULL, now_ns) == ANABRANCH_STATUS_INVALID_ARGUMENT);
    REQUIRE(strstr(anabranch_last_error(), "endpoint") != NULL);
    REQUIRE(anabranch_handle_packet(host->endpoint, garbage, sizeof garbage, now_ns) ==
            ANABRANCH_STATUS_MALFORMED_PACKET);
    REQUIRE(anabranch_handle_packet(host->endpoint, NULL, 20, now_ns) == ANABRANCH_STATUS_INVALID_ARGUMENT);
    REQUIRE(anabranch_handle_timeout(host->endpoint, now_ns - 1) == ANABRANCH_STATUS_INVALID_ARGUMENT);
    REQUIRE(anabranch_poll_transmit(host->endpoint, now_ns, little, sizeof little, &len) ==
            ANABRANCH_STATUS_BUFFER_TOO_SMALL);
    REQUIRE(len > sizeof little && len < PACKET_MAX);
    REQUIRE(anabranch_close(host->endpoint, 12345, now_ns) == ANABRANCH_STATUS_UNKNOWN);
    REQUIRE(anabranch_release(host->endpoint, host->connection) == ANABRANCH_STATUS_WRONG_STATE);
    REQUIRE(strstr(anabranch_last_error(), "has not closed") != NULL);
    REQUIRE(anabranch_set_corked(host->endpoint, 12345, true, now_ns) == ANABRANCH_STATUS_UNKNOWN);
    REQUIRE(anabranch_pending_accepts(host->endpoint, 12345, &len) == ANABRANCH_STATUS_UNKNOWN);
    REQUIRE(anabranch_readable_bytes(host->endpoint, host->connection, NULL) == ANABRANCH_STATUS_INVALID_ARGUMENT);
    REQUIRE(anabranch_recv(host->endpoint, host->connection, NULL, 5, now_ns, &len) ==
            ANABRANCH_STATUS_INVALID_ARGUMENT);
    REQUIRE(anabranch_endpoint_new("{\"mtu\": 3}", garbage, &none) == ANABRANCH_STATUS_INVALID_ARGUMENT);
    REQUIRE(none == NULL && strstr(anabranch_last_error(), "mtu") != NULL);
}

int main(void) {
    struct host client, server;
    AnabranchAddress local = address("10.0.1.1"), remote = address("10.0.1.2:80");
    uint64_t now_ns = 1;

    REQUIRE(anabranch_abi_version() == ANABRANCH_ABI_VERSION);
    start(&client, "client", 1);
    start(&server, "server", 2);
    CHECK(anabranch_listen(server.endpoint, &remote, NULL, &server.listener));
    CHECK(anabranch_connect(client.endpoint, &local, &remote, "{\"nagle\": false, \"rto_min\": \"300 ms\"}", now_ns,
                            &client.connection));
    misuse(&client, now_ns);

    while (!(client.finished && server.finished && client.closed && server.closed)) {
        serve(&client, &server, now_ns);
        serve(&server, &client, now_ns);
        uint64_t client_ns = next_ns(&client), server_ns = next_ns(&server);
        uint64_t at_ns = client_ns < server_ns ? client_ns : server_ns;
        if (at_ns == ANABRANCH_NEVER) break;
        if (at_ns > now_ns) now_ns = at_ns;
        REQUIRE(now_ns < DEADLINE_NS);
    }

    REQUIRE(client.finished && client.received == SIZE && client.sent == SIZE);
    REQUIRE(server.finished && server.received == SIZE && server.sent == SIZE);
    REQUIRE(client.subflows == 2 && server.subflows == 2);
    report(&client);
    report(&server);
    CHECK(anabranch_release(client.endpoint, client.connection));
    REQUIRE(anabranch_shutdown(client.endpoint, client.connection, now_ns) == ANABRANCH_STATUS_UNKNOWN);
    anabranch_endpoint_free(client.endpoint);
    anabranch_endpoint_free(server.endpoint);
    free(client.incoming.ring);
    free(server.incoming.ring);
    printf("done after %.3f s of virtual time\n", (double)now_ns / 1e9);
    return 0;
}
