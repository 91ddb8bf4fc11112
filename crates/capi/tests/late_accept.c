/* What a server that follows the header is told of connections that it has not accepted yet.
 *
 * No packet takes any time. Exits with 0 if each server hears what it must, and prints the names of the cases. */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "anabranch.h"
#include "check.h"

#define PACKET_MAX 1500
#define NOW_NS 1

struct world {
    AnabranchEndpoint *client, *server;
    uint64_t listener, opened;
    /* What the server knows: the connection that it has accepted, how often one came, and what it was told of it. */
    uint64_t accepted;
    unsigned incoming, subflows, closed;
    size_t received;
};

static AnabranchEndpoint *endpoint(uint8_t seed_octet) {
    uint8_t seed[ANABRANCH_SEED_LEN];
    AnabranchEndpoint *made;
    memset(seed, seed_octet, sizeof seed);
    CHECK(anabranch_endpoint_new(NULL, seed, &made));
    return made;
}

/* Passes on all packets of `from`; they are lost if `to` is null. */
static void transmit(AnabranchEndpoint *from, AnabranchEndpoint *to) {
    uint8_t octets[PACKET_MAX];
    size_t len;
    while (anabranch_poll_transmit(from, NOW_NS, octets, sizeof octets, &len) == ANABRANCH_STATUS_OK)
        if (to != NULL) CHECK(anabranch_handle_packet(to, octets, len, NOW_NS));
}

static void begin(struct world *world, const char *name) {
    AnabranchAddress local = address("10.0.1.1"), remote = address("10.0.1.2:80");
    printf("%s\n", name);
    memset(world, 0, sizeof *world);
    world->client = endpoint(1);
    world->server = endpoint(2);
    CHECK(anabranch_listen(world->server, &remote, NULL, &world->listener));
    CHECK(anabranch_connect(world->client, &local, &remote, NULL, NOW_NS, &world->opened));
    transmit(world->client, world->server);
    transmit(world->server, world->client);
}

static void end(struct world *world) {
    anabranch_endpoint_free(world->client);
    anabranch_endpoint_free(world->server);
}

static void accept_one(struct world *world) {
    CHECK(anabranch_accept(world->server, world->listener, &world->accepted));
}

/* Reads only when it is told that there is something. */
static void handle_events(struct world *world, bool accepts) {
    AnabranchEvent event;
    uint8_t data[100];
    size_t len;
    while (anabranch_poll_event(world->server, &event) == ANABRANCH_STATUS_OK) {
        if (event.kind == ANABRANCH_EVENT_KIND_INCOMING) {
            world->incoming++;
            if (accepts) accept_one(world);
            continue;
        }
        REQUIRE(world->accepted != 0 && event.connection == world->accepted);
        switch (event.kind) {
        case ANABRANCH_EVENT_KIND_SUBFLOW_ESTABLISHED:
            world->subflows++;
            break;
        case ANABRANCH_EVENT_KIND_READABLE:
            while (anabranch_recv(world->server, event.connection, data, sizeof data, NOW_NS, &len) ==
                   ANABRANCH_STATUS_OK)
                world->received += len;
            break;
        case ANABRANCH_EVENT_KIND_CLOSED:
            REQUIRE(event.reason == ANABRANCH_CLOSE_REASON_FASTCLOSE);
            world->closed++;
            break;
        default:
            break;
        }
    }
}

/* The third packet of the handshake is lost, so the first data open the connection. */
static void send_opening_data(struct world *world) {
    size_t taken;
    transmit(world->client, NULL);
    CHECK(anabranch_send(world->client, world->opened, (const uint8_t *)"hello", 5, NOW_NS, &taken));
    transmit(world->client, world->server);
}

static void data_that_open_a_connection_can_be_read(void) {
    struct world world;
    begin(&world, "data that open a connection can be read");
    send_opening_data(&world);
    handle_events(&world, true);
    REQUIRE(world.incoming == 1 && world.subflows == 1 && world.received == 5);
    end(&world);
}

/* A server may be busy with something else when a connection comes. */
static void a_connection_that_has_ended_is_told_of_when_it_is_accepted(void) {
    struct world world;
    begin(&world, "a connection that has ended is told of when it is accepted");
    send_opening_data(&world);
    handle_events(&world, false);
    CHECK(anabranch_abort(world.client, world.opened, NOW_NS));
    transmit(world.client, world.server);
    handle_events(&world, false);
    REQUIRE(world.incoming == 1);
    accept_one(&world);
    handle_events(&world, false);
    REQUIRE(world.subflows == 0 && world.closed == 1);
    CHECK(anabranch_release(world.server, world.accepted));
    end(&world);
}

static void a_closed_listener_aborts_what_nobody_has_accepted(void) {
    struct world world;
    AnabranchEvent event = {0};
    begin(&world, "a closed listener aborts what nobody has accepted");
    send_opening_data(&world);
    handle_events(&world, false);
    CHECK(anabranch_close_listener(world.server, world.listener, NOW_NS));
    handle_events(&world, false);
    REQUIRE(world.incoming == 1);
    transmit(world.server, world.client);
    while (event.kind != ANABRANCH_EVENT_KIND_CLOSED) CHECK(anabranch_poll_event(world.client, &event));
    REQUIRE(event.reason == ANABRANCH_CLOSE_REASON_FASTCLOSE);
    end(&world);
}

int main(void) {
    data_that_open_a_connection_can_be_read();
    a_connection_that_has_ended_is_told_of_when_it_is_accepted();
    a_closed_listener_aborts_what_nobody_has_accepted();
    return 0;
}
