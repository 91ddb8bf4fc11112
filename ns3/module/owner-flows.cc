// SPDX-License-Identifier: GPL-2.0-only
#include "owner-flows.h"

using namespace ns3;

namespace anabranch {

namespace {

constexpr uint8_t TCP = 6, UDP = 17;
constexpr uint32_t PORTS_BYTES = 4;

// Both ports in one number; zero where there are none.
uint32_t PortsOf(const Packet& payload, uint8_t protocol)
{
    uint8_t octets[PORTS_BYTES] = {};
    if ((protocol == TCP || protocol == UDP) && payload.GetSize() >= PORTS_BYTES)
        payload.CopyData(octets, PORTS_BYTES);
    return static_cast<uint32_t>(octets[0]) << 24 | octets[1] << 16 | octets[2] << 8 | octets[3];
}

} // namespace

void OwnerFlows::Count(const Packet& payload, const Ipv4Header& header)
{
    const uint8_t protocol = header.GetProtocol();
    const uint32_t ports = header.GetFragmentOffset() == 0 ? PortsOf(payload, protocol) : 0;
    Add({Ipv6Address::MakeIpv4MappedAddress(header.GetSource()),
         Ipv6Address::MakeIpv4MappedAddress(header.GetDestination()), protocol, ports},
        payload.GetSize() + header.GetSerializedSize());
}

void OwnerFlows::Count(const Packet& payload, const Ipv6Header& header)
{
    const uint8_t protocol = header.GetNextHeader();
    Add({header.GetSource(), header.GetDestination(), protocol, PortsOf(payload, protocol)},
        payload.GetSize() + header.GetSerializedSize());
}

void OwnerFlows::Add(const Name& name, uint64_t bytes)
{
    const auto [found, isNew] = places.emplace(name, flows.size());
    if (isNew)
        flows.emplace_back();
    flows[found->second].received_bytes += bytes;
}

} // namespace anabranch
