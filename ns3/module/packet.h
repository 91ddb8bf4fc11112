// SPDX-License-Identifier: GPL-2.0-only
// Packets of ns-3 as octets.
#pragma once

#include "ns3/ipv4-header.h"
#include "ns3/ipv6-header.h"
#include "ns3/packet.h"

#include <vector>

namespace anabranch {

// Returns the octets of an IP packet with this TCP segment. ns-3 leaves checksums out unless `ChecksumEnabled` is
// set; those that are zero for this reason are filled in, because the engine checks them.
std::vector<uint8_t> IpOctets(const ns3::Packet& segment, const ns3::Ipv4Header& header);
std::vector<uint8_t> IpOctets(const ns3::Packet& segment, const ns3::Ipv6Header& header);

} // namespace anabranch
