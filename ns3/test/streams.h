// SPDX-License-Identifier: GPL-2.0-only
// Applications for the tests of sockets: one sends a pattern, the other checks it.
#pragma once

#include "case.h"
#include "network.h"

#include "../module/install.h"
#include "../module/socket.h"

#include "ns3/core-module.h"
#include "ns3/inet-socket-address.h"
#include "ns3/inet6-socket-address.h"
#include "ns3/node.h"

#include <algorithm>
#include <vector>

namespace test {

inline uint8_t OctetAt(uint64_t position)
{
    return static_cast<uint8_t>(position * 31 + position / 251);
}

inline ns3::Ptr<ns3::Packet> Pattern(uint64_t position, uint64_t bytes)
{
    std::vector<uint8_t> octets(bytes);
    for (size_t at = 0; at < octets.size(); at++)
        octets[at] = OctetAt(position + at);
    return ns3::Create<ns3::Packet>(octets.data(), static_cast<uint32_t>(bytes));
}

inline ns3::Ptr<ns3::Socket> NewSocket(const Network& network, uint32_t host)
{
    return ns3::Socket::CreateSocket(network.hosts.Get(host), ns3::TypeId::LookupByName(anabranch::SOCKETS));
}

inline ns3::InetSocketAddress Service(const Network& network)
{
    return {network.Address(1, 0), PORT};
}

inline ns3::Inet6SocketAddress Service6(const Network& network)
{
    return {network.Address6(1, 0), PORT};
}

inline void RunFor(double seconds)
{
    ns3::Simulator::Stop(ns3::Seconds(seconds));
    ns3::Simulator::Run();
}

// Sends `bytes` octets, in packets of all sizes, and ends the stream.
struct Sender {
    ns3::Ptr<ns3::Socket> socket;
    uint64_t bytes;
    uint64_t sent = 0;
    int closes = 0, errors = 0, failures = 0;

    void Go()
    {
        while (sent < bytes) {
            const ns3::Ptr<ns3::Packet> packet = Pattern(sent, std::min<uint64_t>(1 + sent % 3000, bytes - sent));
            if (socket->Send(packet) < 0) {
                EXPECT(socket->GetErrno() == ns3::Socket::ERROR_AGAIN);
                return;
            }
            sent += packet->GetSize();
        }
        socket->ShutdownSend();
    }

    void Connect(const ns3::Address& to)
    {
        socket->SetConnectCallback(ns3::MakeCallback(&Sender::Connected, this),
                                   ns3::MakeCallback(&Sender::Failed, this));
        socket->SetSendCallback(ns3::MakeCallback(&Sender::HasRoom, this));
        socket->SetCloseCallbacks(ns3::MakeCallback(&Sender::Closed, this), ns3::MakeCallback(&Sender::Broken, this));
        EXPECT(socket->Connect(to) == 0);
    }

    void Connected(ns3::Ptr<ns3::Socket>) {}
    void Failed(ns3::Ptr<ns3::Socket>) { failures++; }
    void HasRoom(ns3::Ptr<ns3::Socket>, uint32_t) { Go(); }
    void Closed(ns3::Ptr<ns3::Socket>) { closes++; }
    void Broken(ns3::Ptr<ns3::Socket>) { errors++; }
};

// Accepts connections, checks what arrives, and closes each when the peer has.
struct Receiver {
    ns3::Ptr<ns3::Socket> socket;
    uint64_t received = 0;
    bool isIntact = true, accepts = true;
    int asked = 0, accepted = 0, ends = 0, closes = 0, errors = 0;
    std::vector<ns3::Ptr<ns3::Socket>> open = {};

    void Listen(uint16_t port) { Listen(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port)); }

    void Listen(const ns3::Address& at)
    {
        EXPECT(socket->Bind(at) == 0);
        EXPECT(socket->Listen() == 0);
        socket->SetAcceptCallback(ns3::MakeCallback(&Receiver::Asked, this),
                                  ns3::MakeCallback(&Receiver::Accepted, this));
    }

    bool Asked(ns3::Ptr<ns3::Socket>, const ns3::Address&)
    {
        asked++;
        return accepts;
    }

    void Accepted(ns3::Ptr<ns3::Socket> connection, const ns3::Address& from)
    {
        ns3::Address name;
        EXPECT(connection->GetPeerName(name) == 0);
        EXPECT(name == from);
        accepted++;
        open.push_back(connection);
        connection->SetRecvCallback(ns3::MakeCallback(&Receiver::Read, this));
        connection->SetCloseCallbacks(ns3::MakeCallback(&Receiver::Closed, this),
                                      ns3::MakeCallback(&Receiver::Broken, this));
    }

    void Read(ns3::Ptr<ns3::Socket> connection)
    {
        while (const ns3::Ptr<ns3::Packet> packet = connection->Recv()) {
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

    void Closed(ns3::Ptr<ns3::Socket>) { closes++; }
    void Broken(ns3::Ptr<ns3::Socket>) { errors++; }
};

} // namespace test
