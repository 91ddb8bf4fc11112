// SPDX-License-Identifier: GPL-2.0-only
#include "medium.h"

#include <cstring>

using namespace ns3;

namespace radio {

namespace {

constexpr uint32_t HEADERS_BYTES = 20 + 8;

struct Label {
    uint32_t from;
    uint64_t number;
} __attribute__((packed));

void Read(char medium, uint32_t gate, Listener* listener, Ptr<Socket> socket)
{
    while (const Ptr<Packet> packet = socket->Recv()) {
        Label label;
        NS_ABORT_MSG_UNLESS(packet->CopyData(reinterpret_cast<uint8_t*>(&label), sizeof label) == sizeof label,
                            "a packet lost its label");
        listener->Arrive({medium, label.from, gate, label.number});
    }
}

} // namespace

Ptr<Packet> MakePacket(uint32_t from, uint64_t number, uint32_t wireBytes)
{
    const Label label = {from, number};
    const Ptr<Packet> packet = Create<Packet>(reinterpret_cast<const uint8_t*>(&label), sizeof label);
    if (wireBytes > HEADERS_BYTES + sizeof label)
        packet->AddAtEnd(Create<Packet>(wireBytes - HEADERS_BYTES - sizeof label));
    return packet;
}

Ptr<Socket> OpenSocket(Ptr<Node> node, char medium, uint32_t gate, Listener* listener)
{
    const Ptr<Socket> socket = Socket::CreateSocket(node, TypeId::LookupByName("ns3::UdpSocketFactory"));
    socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    socket->SetRecvCallback(MakeBoundCallback(&Read, medium, gate, listener));
    return socket;
}

} // namespace radio
