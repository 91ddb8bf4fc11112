// SPDX-License-Identifier: GPL-2.0-only
// Which connection each subflow belongs to.
#pragma once

#include "anabranch.h"

#include "ns3/ipv4-header.h"
#include "ns3/ipv6-header.h"
#include "ns3/packet.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace anabranch {

// The addresses and ports of this node and of the peer.
struct FourTuple {
    AnabranchAddress local, remote;

    bool operator<(const FourTuple& other) const;
};

// The ports that a segment begins with: of its sender, and of its receiver. Zeros if it is too short.
std::pair<uint16_t, uint16_t> PortsOf(const ns3::Packet& segment);

// Whether the segment begins a subflow, or answers one that does.
bool IsSyn(const ns3::Packet& segment);

// Returns the four-tuple of a segment that this node sends or receives.
FourTuple OfSent(const ns3::Ipv4Header& header, const ns3::Packet& segment);
FourTuple OfSent(const ns3::Ipv6Header& header, const ns3::Packet& segment);
FourTuple OfReceived(const ns3::Ipv4Header& header, const ns3::Packet& segment);
FourTuple OfReceived(const ns3::Ipv6Header& header, const ns3::Packet& segment);

class Subflows {
public:
    void Add(const FourTuple& subflow, uint64_t connection);
    void Forget(uint64_t connection);
    // Returns zero for an unknown subflow.
    uint64_t ConnectionOf(const FourTuple& subflow) const;

private:
    std::map<FourTuple, uint64_t> connections;
    std::map<uint64_t, std::vector<FourTuple>> subflows;
};

} // namespace anabranch
