// SPDX-License-Identifier: GPL-2.0-only
// Hears of the addresses and interfaces of a node.
#pragma once

#include "ns3/ipv4-routing-protocol.h"

namespace anabranch {

class Host;

// ns-3 tells only routing protocols of new addresses and of interfaces that go down. This one knows no routes.
class AddressWatch : public ns3::Ipv4RoutingProtocol {
public:
    static ns3::TypeId GetTypeId();

    // Returns whether the node has a list of routing protocols, and this one is now the last of them.
    static bool Install(ns3::Ptr<ns3::Ipv4> ipv4, ns3::Ptr<Host> host);

    ns3::Ptr<ns3::Ipv4Route> RouteOutput(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv4Header& header,
                                         ns3::Ptr<ns3::NetDevice> device, ns3::Socket::SocketErrno& error) override;
    bool RouteInput(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv4Header& header,
                    ns3::Ptr<const ns3::NetDevice> device, UnicastForwardCallback unicast,
                    MulticastForwardCallback multicast, LocalDeliverCallback local, ErrorCallback error) override;
    void NotifyInterfaceUp(uint32_t interface) override;
    void NotifyInterfaceDown(uint32_t interface) override;
    void NotifyAddAddress(uint32_t interface, ns3::Ipv4InterfaceAddress address) override;
    void NotifyRemoveAddress(uint32_t interface, ns3::Ipv4InterfaceAddress address) override;
    void SetIpv4(ns3::Ptr<ns3::Ipv4> ipv4) override;
    void PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper> stream, ns3::Time::Unit unit) const override;

protected:
    void DoDispose() override;

private:
    void Tell();

    ns3::Ptr<Host> host;
};

} // namespace anabranch
