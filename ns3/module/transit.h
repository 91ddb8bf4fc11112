// SPDX-License-Identifier: GPL-2.0-only
// Packets of a destination on their way through a relay, for the agent of the relay.
#pragma once

#include "ns3/ipv4-routing-protocol.h"
#include "ns3/net-device.h"

namespace anabranch {

// Stands first among the IPv4 routing protocols of a relay and delivers locally, instead of forwarding, what a destination
// sends from the lent address by TCP. The node's IPv4 puts fragments together before the relay gets the packets. Knows no
// routes.
class Transit : public ns3::Ipv4RoutingProtocol {
public:
    static ns3::TypeId GetTypeId();

    // `from`: the device by which packets of the destination come; `lent`: the address that they have. Ends the program if
    // the routing of the node is no list, which InternetStackHelper makes.
    static void Install(ns3::Ptr<ns3::Ipv4> ipv4, ns3::Ptr<ns3::NetDevice> from, ns3::Ipv4Address lent);

    ns3::Ptr<ns3::Ipv4Route> RouteOutput(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv4Header& header,
                                         ns3::Ptr<ns3::NetDevice> device, ns3::Socket::SocketErrno& error) override;
    bool RouteInput(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv4Header& header,
                    ns3::Ptr<const ns3::NetDevice> device, UnicastForwardCallback unicast,
                    MulticastForwardCallback multicast, LocalDeliverCallback local, ErrorCallback error) override;
    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void SetIpv4(ns3::Ptr<ns3::Ipv4> ipv4) override;
    void PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper>, ns3::Time::Unit) const override {}

protected:
    void DoDispose() override;

private:
    ns3::Ptr<ns3::Ipv4> ip;
    ns3::Ptr<ns3::NetDevice> from;
    ns3::Ipv4Address lent;
};

} // namespace anabranch
