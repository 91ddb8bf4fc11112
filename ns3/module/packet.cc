// SPDX-License-Identifier: GPL-2.0-only
#include "packet.h"

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

// RFC 9293 section 3.1: over the pseudo-header and the segment.
uint16_t TcpChecksum(const Ipv4Header& header, const uint8_t* segment, size_t length)
{
    uint8_t addresses[8];
    header.GetSource().Serialize(addresses);
    header.GetDestination().Serialize(addresses + 4);
    uint32_t sum = Sum(addresses, sizeof addresses) + header.GetProtocol() + static_cast<uint32_t>(length);
    sum += Sum(segment, length);
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

} // namespace

std::vector<uint8_t> IpOctets(const Packet& segment, const Ipv4Header& header)
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

} // namespace anabranch
