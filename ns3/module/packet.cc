// SPDX-License-Identifier: GPL-2.0-only
#include "packet.h"

#include "engine.h"

#include "ns3/node.h"

using namespace ns3;

namespace anabranch {

namespace {

constexpr size_t CHECKSUM_AT = 16;
constexpr size_t TCP_HEADER_MIN = 20;

// The sum of RFC 1071 over octets in pairs, unfolded.
uint32_t Sum(const uint8_t* octets, size_t length)
{
    uint32_t sum = 0;
    for (size_t at = 0; at < length; at++)
        sum += at % 2 == 0 ? octets[at] << 8 : octets[at];
    return sum;
}

// RFC 9293 section 3.1, RFC 8200 section 8.1: over the pseudo-header and the segment.
template <class Header>
uint16_t TcpChecksum(const Header& header, const uint8_t* segment, size_t length)
{
    const AnabranchAddress source = ToEngine(header.GetSource(), 0), destination = ToEngine(header.GetDestination(), 0);
    uint32_t sum = Sum(source.octets, sizeof source.octets) + Sum(destination.octets, sizeof destination.octets);
    sum += PROTOCOL_TCP + static_cast<uint32_t>(length) + Sum(segment, length);
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(~sum);
}

// A packet that was put together from fragments still has the header of the first one.
Ipv4Header WholeHeader(const Ipv4Header& received, uint32_t payload)
{
    Ipv4Header header = received;
    header.SetPayloadSize(static_cast<uint16_t>(payload));
    header.SetLastFragment();
    header.SetFragmentOffset(0);
    header.EnableChecksum();
    return header;
}

// Extension headers are gone from what IPv6 delivers.
Ipv6Header WholeHeader(const Ipv6Header& received, uint32_t payload)
{
    Ipv6Header header = received;
    header.SetPayloadLength(static_cast<uint16_t>(payload));
    header.SetNextHeader(PROTOCOL_TCP);
    return header;
}

template <class Header>
std::vector<uint8_t> Octets(const Packet& segment, const Header& header)
{
    const Ptr<Packet> packet = segment.Copy();
    packet->AddHeader(WholeHeader(header, segment.GetSize()));
    std::vector<uint8_t> octets(packet->GetSize());
    packet->CopyData(octets.data(), static_cast<uint32_t>(octets.size()));
    uint8_t* const tcp = octets.data() + octets.size() - segment.GetSize();
    const bool isLeftOut = segment.GetSize() >= TCP_HEADER_MIN && tcp[CHECKSUM_AT] == 0 && tcp[CHECKSUM_AT + 1] == 0;
    if (isLeftOut && !Node::ChecksumEnabled()) {
        const uint16_t checksum = TcpChecksum(header, tcp, segment.GetSize());
        tcp[CHECKSUM_AT] = static_cast<uint8_t>(checksum >> 8);
        tcp[CHECKSUM_AT + 1] = static_cast<uint8_t>(checksum);
    }
    return octets;
}

} // namespace

std::vector<uint8_t> IpOctets(const Packet& segment, const Ipv4Header& header)
{
    return Octets(segment, header);
}

std::vector<uint8_t> IpOctets(const Packet& segment, const Ipv6Header& header)
{
    return Octets(segment, header);
}

} // namespace anabranch
