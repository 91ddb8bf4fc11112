// SPDX-License-Identifier: GPL-2.0-only
// The names that ns-3 has for the same things of IPv4 and of IPv6, and what differs between the two.
#pragma once

#include "ns3/icmpv6-l4-protocol.h"
#include "ns3/ipv4-header.h"
#include "ns3/ipv4-route.h"
#include "ns3/ipv4-routing-protocol.h"
#include "ns3/ipv4.h"
#include "ns3/ipv6-header.h"
#include "ns3/ipv6-route.h"
#include "ns3/ipv6-routing-protocol.h"
#include "ns3/ipv6.h"
#include "ns3/socket.h"

namespace anabranch {

// What a header says beyond addresses: the type of service or traffic class, and the time to live or hop limit.
struct Marks {
    uint8_t tos, ttl;
};

struct Family4 {
    using Ip = ns3::Ipv4;
    using Address = ns3::Ipv4Address;
    using InterfaceAddress = ns3::Ipv4InterfaceAddress;
    using Header = ns3::Ipv4Header;
    using Route = ns3::Ipv4Route;

    static constexpr bool IS_IPV6 = false;

    // Returns whether packets can leave from an address, and whether subflows of all connections may use it.
    static bool MaySend(const InterfaceAddress&) { return true; }
    static bool IsForAll(const ns3::Ptr<Ip>&, const InterfaceAddress& address)
    {
        return !address.GetAddress().IsLocalhost();
    }
    static bool IsLinkLocal(Address) { return false; }

    // As the only address of its network.
    static InterfaceAddress Alone(Address address) { return {address, ns3::Ipv4Mask::GetOnes()}; }

    static void SetProtocol(Header& header, uint8_t protocol) { header.SetProtocol(protocol); }
    static Marks MarksOf(const Header& header) { return {header.GetTos(), header.GetTtl()}; }
    static void Mark(const ns3::Ptr<ns3::Packet>& packet, Marks marks)
    {
        if (marks.tos != 0) {
            ns3::SocketIpTosTag tag;
            tag.SetTos(marks.tos);
            packet->AddPacketTag(tag);
        }
        ns3::SocketIpTtlTag tag;
        tag.SetTtl(marks.ttl);
        packet->AddPacketTag(tag);
    }
};

struct Family6 {
    using Ip = ns3::Ipv6;
    using Address = ns3::Ipv6Address;
    using InterfaceAddress = ns3::Ipv6InterfaceAddress;
    using Header = ns3::Ipv6Header;
    using Route = ns3::Ipv6Route;

    static constexpr bool IS_IPV6 = true;

    // ns-3 is optimistic (RFC 4429) about an address that it still checks for duplicates: its TCP uses it.
    static bool MaySend(const InterfaceAddress& address)
    {
        return address.GetState() != InterfaceAddress::TENTATIVE && address.GetState() != InterfaceAddress::INVALID;
    }
    // A neighbour that asks for an address while ns-3 checks it makes it a duplicate for ns-3, so subflows wait for the
    // end. A link-local address means nothing to a peer elsewhere, and names no device.
    static bool IsForAll(const ns3::Ptr<Ip>& ip, const InterfaceAddress& address)
    {
        const bool isChecked = address.GetState() != InterfaceAddress::TENTATIVE_OPTIMISTIC || CheckTime(ip).IsZero();
        return isChecked && MaySend(address) && address.GetScope() == InterfaceAddress::GLOBAL;
    }
    static bool IsLinkLocal(Address address) { return address.IsLinkLocal(); }
    // How long a new address is checked for duplicates.
    static ns3::Time CheckTime(const ns3::Ptr<Ip>& ip)
    {
        const auto icmp = ip->GetObject<ns3::Icmpv6L4Protocol>();
        return icmp && icmp->IsAlwaysDad() ? icmp->GetDadTimeout() : ns3::Time();
    }

    static InterfaceAddress Alone(Address address) { return {address, ns3::Ipv6Prefix::GetOnes()}; }

    static void SetProtocol(Header& header, uint8_t protocol) { header.SetNextHeader(protocol); }
    static Marks MarksOf(const Header& header) { return {header.GetTrafficClass(), header.GetHopLimit()}; }
    static void Mark(const ns3::Ptr<ns3::Packet>& packet, Marks marks)
    {
        if (marks.tos != 0) {
            ns3::SocketIpv6TclassTag tag;
            tag.SetTclass(marks.tos);
            packet->AddPacketTag(tag);
        }
        ns3::SocketIpv6HopLimitTag tag;
        tag.SetHopLimit(marks.ttl);
        packet->AddPacketTag(tag);
    }
};

} // namespace anabranch
