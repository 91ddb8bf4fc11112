// SPDX-License-Identifier: GPL-2.0-only
#include "engine.h"

#include "ns3/fatal-error.h"
#include "ns3/inet-socket-address.h"
#include "ns3/inet6-socket-address.h"
#include "ns3/simulator.h"

#include <cstring>
#include <iomanip>
#include <sstream>

using namespace ns3;

namespace anabranch {

namespace {

template <class Ip>
AnabranchAddress Converted(uint8_t family, const Ip& address, uint16_t port)
{
    AnabranchAddress converted = {};
    converted.family = family;
    converted.port = port;
    address.Serialize(converted.octets);
    return converted;
}

} // namespace

AnabranchAddress ToEngine(Ipv4Address address, uint16_t port)
{
    return Converted(4, address, port);
}

AnabranchAddress ToEngine(Ipv6Address address, uint16_t port)
{
    return Converted(6, address, port);
}

AnabranchAddress ToEngine(const Address& address)
{
    if (InetSocketAddress::IsMatchingType(address)) {
        const InetSocketAddress at = InetSocketAddress::ConvertFrom(address);
        return ToEngine(at.GetIpv4(), at.GetPort());
    }
    if (!Inet6SocketAddress::IsMatchingType(address))
        return {};
    const Inet6SocketAddress at = Inet6SocketAddress::ConvertFrom(address);
    const Ipv6Address ip = at.GetIpv6();
    return ip.IsIpv4MappedAddress() ? ToEngine(ip.GetIpv4MappedAddress(), at.GetPort()) : ToEngine(ip, at.GetPort());
}

Address FromEngine(const AnabranchAddress& address)
{
    if (address.family == 6)
        return Inet6SocketAddress(Ipv6Of(address), address.port);
    return InetSocketAddress(Ipv4Of(address), address.port);
}

Address MappedFromEngine(const AnabranchAddress& address)
{
    if (address.family == 6)
        return FromEngine(address);
    return Inet6SocketAddress(Ipv6Address::MakeIpv4MappedAddress(Ipv4Of(address)), address.port);
}

Ipv4Address Ipv4Of(const AnabranchAddress& address)
{
    return Ipv4Address::Deserialize(address.octets);
}

Ipv6Address Ipv6Of(const AnabranchAddress& address)
{
    return Ipv6Address::Deserialize(address.octets);
}

std::string TextOf(const AnabranchAddress& address)
{
    std::ostringstream text;
    if (address.family == 6)
        text << '[' << Ipv6Of(address) << "]:" << address.port;
    else
        text << Ipv4Of(address) << ':' << address.port;
    return text.str();
}

std::string TextOf(const uint8_t* octets, size_t count)
{
    std::ostringstream text;
    text << std::hex << std::setfill('0');
    for (size_t at = 0; at < count; at++)
        text << std::setw(2) << static_cast<int>(octets[at]);
    return text.str();
}

bool IsAny(const AnabranchAddress& address)
{
    return address.family == 6 ? Ipv6Of(address).IsAny() : Ipv4Of(address).IsAny();
}

bool IsMulticast(const AnabranchAddress& address)
{
    return address.family == 6 ? Ipv6Of(address).IsMulticast() : Ipv4Of(address).IsMulticast();
}

int Compare(const AnabranchAddress& left, const AnabranchAddress& right)
{
    if (left.port != right.port)
        return left.port < right.port ? -1 : 1;
    if (left.family != right.family)
        return left.family < right.family ? -1 : 1;
    return std::memcmp(left.octets, right.octets, sizeof left.octets);
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
