// SPDX-License-Identifier: GPL-2.0-only
#include "subflows.h"

#include "engine.h"

using namespace ns3;

namespace anabranch {

namespace {

template <class Header>
FourTuple FromSource(const Header& header, const Packet& segment)
{
    const auto [from, to] = PortsOf(segment);
    return {ToEngine(header.GetSource(), from), ToEngine(header.GetDestination(), to)};
}

FourTuple Reversed(const FourTuple& subflow)
{
    return {subflow.remote, subflow.local};
}

} // namespace

// RFC 9293 section 3.1. Not by ns3::TcpHeader, which also reads what is not there.
std::pair<uint16_t, uint16_t> PortsOf(const Packet& segment)
{
    uint8_t octets[4] = {};
    segment.CopyData(octets, sizeof octets);
    return {static_cast<uint16_t>(octets[0] << 8 | octets[1]), static_cast<uint16_t>(octets[2] << 8 | octets[3])};
}

bool IsSyn(const Packet& segment)
{
    constexpr size_t FLAGS_AT = 13;
    constexpr uint8_t SYN = 2;
    uint8_t octets[FLAGS_AT + 1] = {};
    segment.CopyData(octets, sizeof octets);
    return octets[FLAGS_AT] & SYN;
}

bool FourTuple::operator<(const FourTuple& other) const
{
    const int order = Compare(local, other.local);
    return order == 0 ? Compare(remote, other.remote) < 0 : order < 0;
}

FourTuple OfSent(const Ipv4Header& header, const Packet& segment)
{
    return FromSource(header, segment);
}

FourTuple OfSent(const Ipv6Header& header, const Packet& segment)
{
    return FromSource(header, segment);
}

FourTuple OfReceived(const Ipv4Header& header, const Packet& segment)
{
    return Reversed(FromSource(header, segment));
}

FourTuple OfReceived(const Ipv6Header& header, const Packet& segment)
{
    return Reversed(FromSource(header, segment));
}

void Subflows::Add(const FourTuple& subflow, uint64_t connection)
{
    uint64_t& known = connections[subflow];
    if (known != connection)
        subflows[connection].push_back(subflow);
    known = connection;
}

void Subflows::Forget(uint64_t connection)
{
    const auto known = subflows.find(connection);
    if (known == subflows.end())
        return;
    for (const FourTuple& subflow : known->second) {
        const auto found = connections.find(subflow);
        // A later connection may use the same ports.
        if (found != connections.end() && found->second == connection)
            connections.erase(found);
    }
    subflows.erase(known);
}

uint64_t Subflows::ConnectionOf(const FourTuple& subflow) const
{
    const auto found = connections.find(subflow);
    return found == connections.end() ? 0 : found->second;
}

} // namespace anabranch
