// SPDX-License-Identifier: GPL-2.0-only
// A server that sends for ever, and a client that reads.
#pragma once

#include "../module/install.h"

#include "ns3/core-module.h"
#include "ns3/network-module.h"

#include <vector>

namespace download {

constexpr uint16_t PORT = 80;
constexpr uint32_t PIECE_BYTES = 1400;

// Sends as much as it can on every connection that it accepts.
class Server {
public:
    explicit Server(ns3::Ptr<ns3::Node> node)
        : socket(ns3::Socket::CreateSocket(node, ns3::TypeId::LookupByName(anabranch::SOCKETS)))
    {
        socket->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), PORT));
        socket->Listen();
        socket->SetAcceptCallback(ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
                                  ns3::MakeCallback(&Server::Accept, this));
    }

    std::vector<ns3::Ptr<ns3::Socket>> accepted;

private:
    void Accept(ns3::Ptr<ns3::Socket> connection, const ns3::Address&)
    {
        accepted.push_back(connection);
        connection->SetSendCallback(ns3::MakeCallback(&Server::Send, this));
        Send(connection, connection->GetTxAvailable());
    }

    void Send(ns3::Ptr<ns3::Socket> connection, uint32_t)
    {
        while (connection->Send(ns3::Create<ns3::Packet>(PIECE_BYTES)) > 0)
            ;
    }

    ns3::Ptr<ns3::Socket> socket;
};

// Opens a connection and reads.
class Client {
public:
    // `from`: the address from which the connection begins, if not by the routes.
    Client(ns3::Ptr<ns3::Node> node, ns3::Ipv4Address server, ns3::Ipv4Address from = ns3::Ipv4Address::GetAny())
        : server(server), socket(ns3::Socket::CreateSocket(node, ns3::TypeId::LookupByName(anabranch::SOCKETS)))
    {
        socket->Bind(ns3::InetSocketAddress(from, 0));
        socket->SetRecvCallback(ns3::MakeCallback(&Client::Read, this));
    }

    void Connect() { socket->Connect(ns3::InetSocketAddress(server, PORT)); }

    uint64_t receivedBytes = 0;

private:
    void Read(ns3::Ptr<ns3::Socket> connection)
    {
        for (auto packet = connection->Recv(); packet && packet->GetSize() > 0; packet = connection->Recv())
            receivedBytes += packet->GetSize();
    }

    const ns3::Ipv4Address server;
    ns3::Ptr<ns3::Socket> socket;
};

} // namespace download
