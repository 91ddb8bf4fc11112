// SPDX-License-Identifier: GPL-2.0-only
// What can be read when a connection has ended before the application read everything.
#include "streams.h"

#include "ns3/internet-module.h"

using namespace ns3;
using test::Network;
using test::NewSocket;
using test::RunFor;
using test::Service;

namespace {

constexpr uint32_t BYTES = 1'000'000;

// Answers each connection with a pattern, and then ends its side: with Close, or with ShutdownSend.
struct Server {
    Ptr<ns3::Socket> socket;
    bool closes;
    Ptr<ns3::Socket> open = nullptr;

    void Listen()
    {
        EXPECT(socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), test::PORT)) == 0);
        EXPECT(socket->Listen() == 0);
        socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<ns3::Socket>, const Address&>(),
                                  MakeCallback(&Server::Accepted, this));
    }

    void Accepted(Ptr<ns3::Socket> connection, const Address&)
    {
        open = connection;
        EXPECT_OF(connection->Send(test::Pattern(0, BYTES)), ==, static_cast<int>(BYTES));
        EXPECT((closes ? connection->Close() : connection->ShutdownSend()) == 0);
    }
};

// Reads in pieces of odd size up to the end of the stream.
void ReadAll(const Ptr<ns3::Socket>& socket)
{
    EXPECT_OF(socket->GetRxAvailable(), ==, BYTES);
    uint64_t received = 0;
    while (const Ptr<Packet> packet = socket->Recv(30'011, 0)) {
        std::vector<uint8_t> octets(packet->GetSize());
        packet->CopyData(octets.data(), packet->GetSize());
        for (const uint8_t octet : octets)
            EXPECT(octet == test::OctetAt(received++));
        EXPECT_OF(socket->GetRxAvailable(), ==, BYTES - received);
        if (packet->GetSize() == 0)
            break;
    }
    EXPECT_OF(received, ==, BYTES);
}

} // namespace

CASE(what_arrived_before_the_peer_closed_is_read_later)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Server server{NewSocket(network, 1), true};
    server.Listen();
    const Ptr<ns3::Socket> client = NewSocket(network, 0);
    EXPECT(client->Connect(Service(network)) == 0);
    EXPECT_OF(client->Send(test::Pattern(0, 100)), ==, 100);
    EXPECT(client->ShutdownSend() == 0);
    RunFor(10);
    ReadAll(client);
    EXPECT(!client->Recv());
    EXPECT(client->Close() == 0);
}

CASE(what_arrived_is_read_after_this_side_has_ended_the_connection)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Server server{NewSocket(network, 1), false};
    server.Listen();
    const Ptr<ns3::Socket> client = NewSocket(network, 0);
    EXPECT(client->Connect(Service(network)) == 0);
    Simulator::Schedule(Seconds(5), [&] { EXPECT(client->ShutdownSend() == 0); });
    RunFor(400);
    ReadAll(client);
    EXPECT(!client->Recv());
    EXPECT(client->GetErrno() == ns3::Socket::ERROR_NOTCONN);
}

CASE(what_nobody_will_read_is_not_kept)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Server server{NewSocket(network, 1), true};
    server.Listen();
    const Ptr<ns3::Socket> client = NewSocket(network, 0);
    EXPECT(client->Connect(Service(network)) == 0);
    EXPECT(client->ShutdownSend() == 0);
    RunFor(400);
    EXPECT_OF(client->GetRxAvailable(), ==, BYTES);
    EXPECT(client->ShutdownRecv() == 0);
    EXPECT_OF(client->GetRxAvailable(), ==, 0U);
    EXPECT(!client->Recv());
}
