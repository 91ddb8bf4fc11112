// SPDX-License-Identifier: GPL-2.0-only
// The socket calls of ns-3.
#include "case.h"
#include "network.h"

#include "../module/install.h"
#include "../module/socket.h"

#include "ns3/core-module.h"
#include "ns3/node.h"

#include <algorithm>

using namespace ns3;
using test::Network;

namespace {

uint8_t OctetAt(uint64_t position)
{
    return static_cast<uint8_t>(position * 31 + position / 251);
}

Ptr<ns3::Socket> NewSocket(const Network& network, uint32_t host)
{
    return ns3::Socket::CreateSocket(network.hosts.Get(host), TypeId::LookupByName(anabranch::SOCKETS));
}

InetSocketAddress Service(const Network& network)
{
    return {network.Address(1, 0), test::PORT};
}

// Sends a pattern of `bytes` octets, in packets of all sizes, and ends the stream.
struct Sender {
    Ptr<ns3::Socket> socket;
    uint64_t bytes;
    uint64_t sent = 0;
    int closes = 0, errors = 0, failures = 0;

    void Go()
    {
        while (sent < bytes) {
            std::vector<uint8_t> octets(std::min<uint64_t>(1 + sent % 3000, bytes - sent));
            for (size_t at = 0; at < octets.size(); at++)
                octets[at] = OctetAt(sent + at);
            const auto packet = Create<Packet>(octets.data(), static_cast<uint32_t>(octets.size()));
            if (socket->Send(packet) < 0) {
                EXPECT(socket->GetErrno() == ns3::Socket::ERROR_AGAIN);
                return;
            }
            sent += octets.size();
        }
        socket->ShutdownSend();
    }

    void Connect(const Address& to)
    {
        socket->SetConnectCallback(MakeCallback(&Sender::Connected, this), MakeCallback(&Sender::Failed, this));
        socket->SetSendCallback(MakeCallback(&Sender::HasRoom, this));
        socket->SetCloseCallbacks(MakeCallback(&Sender::Closed, this), MakeCallback(&Sender::Broken, this));
        EXPECT(socket->Connect(to) == 0);
    }

    void Connected(Ptr<ns3::Socket>) {}
    void Failed(Ptr<ns3::Socket>) { failures++; }
    void HasRoom(Ptr<ns3::Socket>, uint32_t) { Go(); }
    void Closed(Ptr<ns3::Socket>) { closes++; }
    void Broken(Ptr<ns3::Socket>) { errors++; }
};

// Accepts connections, checks what arrives, and closes each when the peer has.
struct Receiver {
    Ptr<ns3::Socket> socket;
    uint64_t received = 0;
    bool isIntact = true, accepts = true;
    int accepted = 0, ends = 0, closes = 0, errors = 0;
    std::vector<Ptr<ns3::Socket>> open = {};

    void Listen(uint16_t port)
    {
        EXPECT(socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), port)) == 0);
        EXPECT(socket->Listen() == 0);
        socket->SetAcceptCallback(MakeCallback(&Receiver::Asked, this), MakeCallback(&Receiver::Accepted, this));
    }

    bool Asked(Ptr<ns3::Socket>, const Address&) { return accepts; }

    void Accepted(Ptr<ns3::Socket> connection, const Address& from)
    {
        EXPECT(InetSocketAddress::IsMatchingType(from));
        accepted++;
        open.push_back(connection);
        connection->SetRecvCallback(MakeCallback(&Receiver::Read, this));
        connection->SetCloseCallbacks(MakeCallback(&Receiver::Closed, this), MakeCallback(&Receiver::Broken, this));
    }

    void Read(Ptr<ns3::Socket> connection)
    {
        while (const Ptr<Packet> packet = connection->Recv()) {
            if (packet->GetSize() == 0) {
                ends++;
                connection->Close();
                return;
            }
            std::vector<uint8_t> octets(packet->GetSize());
            packet->CopyData(octets.data(), packet->GetSize());
            for (uint8_t octet : octets)
                isIntact &= octet == OctetAt(received++);
        }
    }

    void Closed(Ptr<ns3::Socket>) { closes++; }
    void Broken(Ptr<ns3::Socket>) { errors++; }
};

void Run(double seconds)
{
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
}

} // namespace

CASE(a_stream_arrives_octet_for_octet_and_ends_in_good_order)
{
    Network network{{"10Mbps", "10ms", 0.005}, {"5Mbps", "30ms", 0.005}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    Sender sender{NewSocket(network, 0), 2'000'000};
    sender.Connect(Service(network));
    Run(60);
    EXPECT_OF(receiver.received, ==, 2'000'000U);
    EXPECT(receiver.isIntact);
    EXPECT_OF(receiver.ends, ==, 1);
    EXPECT_OF(receiver.closes, ==, 1);
    EXPECT_OF(sender.closes, ==, 1);
    EXPECT_OF(sender.errors + receiver.errors + sender.failures, ==, 0);
    Address from;
    EXPECT(receiver.open.front()->GetPeerName(from) == 0);
    EXPECT(InetSocketAddress::ConvertFrom(from).GetIpv4() == network.Address(0, 0));
    const std::string statistics = DynamicCast<anabranch::Socket>(sender.socket)->GetStatistics();
    EXPECT(!statistics.empty());
}

CASE(a_closed_port_refuses)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    // The peer's engine begins with its first packet.
    Sender sender{NewSocket(network, 0), 1000};
    sender.Connect(Service(network));
    Run(60);
    EXPECT_OF(sender.failures, ==, 1);
    EXPECT_OF(sender.closes + sender.errors, ==, 0);
}

CASE(a_refused_request_ends_with_a_reset)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.accepts = false;
    receiver.Listen(test::PORT);
    Sender sender{NewSocket(network, 0), 1000};
    sender.Connect(Service(network));
    Run(60);
    EXPECT_OF(receiver.accepted, ==, 0);
    EXPECT_OF(sender.errors, ==, 1);
}

CASE(two_hundred_connections_come_and_go)
{
    Network network{{"100Mbps", "5ms"}, {"100Mbps", "5ms"}};
    anabranch::Install(network.hosts);
    Receiver receiver{NewSocket(network, 1)};
    receiver.Listen(test::PORT);
    std::vector<Sender> senders;
    for (int number = 0; number < 200; number++)
        senders.push_back({NewSocket(network, 0), 10'000});
    for (size_t number = 0; number < senders.size(); number++)
        Simulator::Schedule(MilliSeconds(10 * number), &Sender::Connect, &senders[number], Address(Service(network)));
    Run(120);
    EXPECT_OF(receiver.received, ==, 2'000'000U);
    EXPECT_OF(receiver.ends, ==, 200);
    for (const Sender& sender : senders)
        EXPECT_OF(sender.closes, ==, 1);
}

CASE(calls_at_the_wrong_time_are_errors)
{
    Network network{{"10Mbps", "10ms"}};
    anabranch::Install(network.hosts);
    const Ptr<ns3::Socket> socket = NewSocket(network, 0);
    EXPECT(socket->Send(Create<Packet>(10)) == -1);
    EXPECT(socket->GetErrno() == ns3::Socket::ERROR_NOTCONN);
    EXPECT(!socket->Recv());
    EXPECT(socket->Bind6() == -1);
    EXPECT(socket->Connect(InetSocketAddress(Ipv4Address("192.0.2.1"), 80)) == -1);
    EXPECT(socket->GetErrno() == ns3::Socket::ERROR_NOROUTETOHOST);
    EXPECT(socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), test::PORT)) == 0);
    EXPECT(socket->Listen() == 0);
    EXPECT(socket->Connect(Service(network)) == -1);
    const Ptr<ns3::Socket> other = NewSocket(network, 0);
    EXPECT(other->Bind(InetSocketAddress(Ipv4Address::GetAny(), test::PORT)) == 0);
    EXPECT(other->Listen() == -1);
    EXPECT(other->GetErrno() == ns3::Socket::ERROR_ADDRINUSE);
    EXPECT(socket->Close() == 0);
    EXPECT(other->Listen() == 0);
}
