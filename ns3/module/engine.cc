// SPDX-License-Identifier: GPL-2.0-only
#include "engine.h"

#include "ns3/fatal-error.h"
#include "ns3/simulator.h"

using namespace ns3;

namespace anabranch {

AnabranchAddress ToEngine(Ipv4Address address, uint16_t port)
{
    AnabranchAddress converted = {};
    converted.family = 4;
    converted.port = port;
    address.Serialize(converted.octets);
    return converted;
}

InetSocketAddress FromEngine(const AnabranchAddress& address)
{
    return {Ipv4Address::Deserialize(address.octets), address.port};
}

uint64_t NowNs()
{
    return static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
}

void Require(AnabranchStatus status, const char* call)
{
    if (status < 0)
        NS_FATAL_ERROR(call << ": " << anabranch_last_error());
}

void RequireSettings(AnabranchStatus status, const std::string& settings)
{
    if (status == ANABRANCH_STATUS_INVALID_ARGUMENT)
        NS_FATAL_ERROR("the settings " << settings << " are wrong: " << anabranch_last_error());
}

} // namespace anabranch
