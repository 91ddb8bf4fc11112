// SPDX-License-Identifier: GPL-2.0-only
// Hears of the IPv6 addresses and interfaces of a node.
#pragma once

#include "ns3/ipv6-list-routing.h"

namespace anabranch {

class Host;

// Stands in front of the IPv6 routing of a node, and routes as that does. It hears what only routing protocols are
// told: new addresses, and interfaces that go down. AddressWatch needs a list of routing protocols, but
// InternetStackHelper makes none for IPv6. To helpers that look for a routing protocol, this is a list of one.
class RoutingWatch : public ns3::Ipv6ListRouting {
public:
    static ns3::TypeId GetTypeId();

    // Returns true: it always works.
    static bool Install(ns3::Ptr<ns3::Ipv6> ipv6, ns3::Ptr<Host> host);

    void AddRoutingProtocol(ns3::Ptr<ns3::Ipv6RoutingProtocol> added, int16_t priority) override;
    uint32_t GetNRoutingProtocols() const override;
    ns3::Ptr<ns3::Ipv6RoutingProtocol> GetRoutingProtocol(uint32_t index, int16_t& priority) const override;

    ns3::Ptr<ns3::Ipv6Route> RouteOutput(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv6Header& header,
                                         ns3::Ptr<ns3::NetDevice> device, ns3::Socket::SocketErrno& error) override;
    bool RouteInput(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv6Header& header,
                    ns3::Ptr<const ns3::NetDevice> device, UnicastForwardCallback unicast,
                    MulticastForwardCallback multicast, LocalDeliverCallback local, ErrorCallback error) override;
    void NotifyInterfaceUp(uint32_t interface) override;
    void NotifyInterfaceDown(uint32_t interface) override;
    void NotifyAddAddress(uint32_t interface, ns3::Ipv6InterfaceAddress address) override;
    void NotifyRemoveAddress(uint32_t interface, ns3::Ipv6InterfaceAddress address) override;
    void NotifyAddRoute(ns3::Ipv6Address destination, ns3::Ipv6Prefix mask, ns3::Ipv6Address nextHop,
                        uint32_t interface, ns3::Ipv6Address prefix) override;
    void NotifyRemoveRoute(ns3::Ipv6Address destination, ns3::Ipv6Prefix mask, ns3::Ipv6Address nextHop,
                           uint32_t interface, ns3::Ipv6Address prefix) override;
    void SetIpv6(ns3::Ptr<ns3::Ipv6> ipv6) override;
    void PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper> stream, ns3::Time::Unit unit) const override;

protected:
    void DoDispose() override;

private:
    void Tell();
    void TellWhenChecked();

    ns3::Ptr<ns3::Ipv6> ip;
    ns3::Ptr<ns3::Ipv6RoutingProtocol> routing;
    // The same, if it is a list.
    ns3::Ptr<ns3::Ipv6ListRouting> list;
    ns3::Ptr<Host> host;
};

} // namespace anabranch
