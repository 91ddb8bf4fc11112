// SPDX-License-Identifier: GPL-2.0-only
// What the owner of a relay receives, flow by flow.
#pragma once

#include "anabranch.h"

#include "ns3/ipv4-header.h"
#include "ns3/ipv6-header.h"
#include "ns3/packet.h"

#include <map>
#include <tuple>
#include <vector>

namespace anabranch {

// A flow is all packets with the same addresses, protocol and ports. It keeps its place when it has ended.
class OwnerFlows {
public:
    // Counts a packet, given without its header. All later fragments of two hosts are one flow: they have no ports.
    void Count(const ns3::Packet& payload, const ns3::Ipv4Header& header);
    void Count(const ns3::Packet& payload, const ns3::Ipv6Header& header);
    const std::vector<AnabranchFlowUse>& Get() const { return flows; }

private:
    // Peer, own address (IPv4 mapped into IPv6), protocol, and both ports.
    using Name = std::tuple<ns3::Ipv6Address, ns3::Ipv6Address, uint8_t, uint32_t>;

    void Add(const Name& name, uint64_t bytes);

    std::map<Name, size_t> places;
    std::vector<AnabranchFlowUse> flows;
};

} // namespace anabranch
