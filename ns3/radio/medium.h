// SPDX-License-Identifier: GPL-2.0-only
// What both media have in common: numbered packets between gates.
#pragma once

#include "ns3/network-module.h"

#include <cstdint>
#include <vector>

namespace radio {

// A packet of the other simulator, at the gate where it leaves.
struct Arrival {
    char medium;
    uint32_t from;
    uint32_t to;
    uint64_t number;
};

// Hears of arrivals.
class Listener {
public:
    virtual ~Listener() = default;
    virtual void Arrive(const Arrival& arrival) = 0;
};

constexpr uint16_t PORT = 9;

// A datagram whose IP packet has `wireBytes` octets, with the sender's gate and the number at its beginning.
ns3::Ptr<ns3::Packet> MakePacket(uint32_t from, uint64_t number, uint32_t wireBytes);

// Opens a socket on a node that reports what arrives at `gate`.
ns3::Ptr<ns3::Socket> OpenSocket(ns3::Ptr<ns3::Node> node, char medium, uint32_t gate, Listener* listener);

} // namespace radio
